//! A trial's own directory: store, tokens, sockets and configurations, removed when the trial ends.
//!
//! A harness that was killed cannot clean up, so each directory has a caretaker: a shell that reads from a pipe and,
//! when the pipe closes because the harness has ended in whatever way, removes the directory. Should the caretaker be
//! killed as well, the directory still says whose it is (process id and that process's start time), and every new
//! trial first removes the directories of the dead.

use crate::world::Infra;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const PREFIX: &str = "rigor-trial-";
const OWNER: &str = "owner";

/// Longest path of a unix socket that Linux takes, in bytes.
const LONGEST_SOCKET: usize = 107;

/// What the caretaker does; it outlives signals to the process group, and the harness.
const CARETAKER: &str = "trap '' INT TERM HUP; read -r _; rm -rf -- \"$1\"";

/// The directory of one trial.
#[derive(Debug)]
pub struct Place {
    dir: TempDir,
    caretaker: Child,
}

impl Place {
    /// Makes a directory below the system's directory for temporary files.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new() -> Result<Self, Infra> {
        Self::below(&std::env::temp_dir())
    }

    fn below(root: &Path) -> Result<Self, Infra> {
        sweep(root);
        let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(root).and_then(|dir| {
            let caretaker = Command::new("/bin/sh")
                .args(["-c", CARETAKER, "caretaker"])
                .arg(dir.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            fs::write(dir.path().join(OWNER), owner())?;
            Ok(Self { dir, caretaker })
        });
        made.map_err(|error| {
            Infra::lasting(
                format!("no directory for the trial in {}: {error}", root.display()),
                "make it writable, or set TMPDIR to a directory that is",
            )
        })
    }

    /// Path of a file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file only its owner can read.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, name: &str, content: &str) -> Result<PathBuf, Infra> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.file(name);
        fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(content.as_bytes()))
            .map_err(|error| Infra::transient(format!("{} could not be written: {error}", path.display())))?;
        Ok(path)
    }

    /// Path for a unix socket.
    ///
    /// # Errors
    /// The path is longer than a socket's may be.
    pub fn socket(&self, name: &str) -> Result<PathBuf, Infra> {
        let path = self.file(name);
        if path.as_os_str().len() > LONGEST_SOCKET {
            return Err(Infra::lasting(
                format!("{} is too long for a unix socket", path.display()),
                "set TMPDIR to a shorter path",
            ));
        }
        Ok(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The caretaker removes the directory once its pipe is closed; what it leaves, `dir` removes.
        drop(self.caretaker.stdin.take());
        let _ = self.caretaker.wait();
    }
}

fn owner() -> String {
    let id = std::process::id();
    format!("{id} {}\n", start_of(id).unwrap_or_default())
}

/// Start time of a process in clock ticks since boot; `None` when there is no such process.
fn start_of(id: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold spaces; start time is the 22nd.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19).map(str::to_owned)
}

/// Removes the directories of harnesses that are gone; what cannot be removed is somebody else's.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && is_orphan(&entry.path()).unwrap_or(false)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_orphan(dir: &Path) -> io::Result<bool> {
    // A directory without the file is being made this moment.
    let owner = fs::read_to_string(dir.join(OWNER))?;
    let Some((id, start)) = owner.trim_end().split_once(' ') else { return Ok(false) };
    let Ok(id) = id.parse() else { return Ok(false) };
    Ok(start_of(id).as_deref() != Some(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_directories_of_the_dead_are_swept() {
        let root = tempfile::tempdir().unwrap();
        let ours = Place::below(root.path()).unwrap();
        let mut left = Vec::new();
        for (name, owner, stays) in [
            ("rigor-trial-dead", Some("4194304 1\n"), false),
            ("rigor-trial-reused", Some("1 999999999999\n"), false),
            ("rigor-trial-fresh", None, true),
            ("rigor-trial-garbled", Some("what"), true),
            ("else", Some("4194304 1\n"), true),
        ] {
            let dir = root.path().join(name);
            fs::create_dir(&dir).unwrap();
            if let Some(owner) = owner {
                fs::write(dir.join(OWNER), owner).unwrap();
            }
            left.push((dir, stays));
        }
        let second = Place::below(root.path()).unwrap();
        for (dir, stays) in left {
            assert_eq!(dir.exists(), stays, "{}", dir.display());
        }
        assert!(ours.file(OWNER).exists() && second.file(OWNER).exists());
    }

    #[test]
    fn a_place_goes_when_dropped_and_its_files_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let place = Place::below(root.path()).unwrap();
        let file = place.write("tokens.csv", "secret").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        drop(place);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_socket_path_that_linux_would_refuse_is_refused_here() {
        let root = tempfile::tempdir().unwrap();
        let place = Place::below(root.path()).unwrap();
        assert!(place.socket("a.qmp").is_ok());
        let error = place.socket(&"x".repeat(100)).unwrap_err();
        assert_eq!(error.remedy.as_deref(), Some("set TMPDIR to a shorter path"));
    }
}
