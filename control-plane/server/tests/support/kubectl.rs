//! kubectl in a home of its own, with the kubeconfigs that the control plane wrote. It knows of nothing that it judges.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory of files, and kubectl run in it.
pub struct Kubectl {
    dir: PathBuf,
    kubeconfig: PathBuf,
}

/// Whether a program can be started; where not, the reason is printed.
pub fn have(program: &str, arguments: &[&str]) -> bool {
    let found = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        println!("skipped: {program} is not on PATH");
    }
    found.is_ok()
}

impl Kubectl {
    /// kubectl as the user of a kubeconfig; nothing where there is no kubectl.
    pub fn new(dir: &Path, kubeconfig: PathBuf) -> Option<Self> {
        have("kubectl", &["version", "--client"]).then(|| Self { dir: dir.to_owned(), kubeconfig })
    }

    /// Puts a file beside it.
    pub fn write(&self, name: &str, content: &str) {
        std::fs::write(self.dir.join(name), content).unwrap();
    }

    /// kubectl with these arguments, in the directory of the files.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments).current_dir(&self.dir);
        command.env("HOME", self.dir.join("home")).env_remove("KUBECONFIG").stdin(Stdio::null());
        command
    }

    /// Its exit code and all that it said.
    pub fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(arguments).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    /// What it says when it ends with `code`; every word of `words` must be in it.
    #[track_caller]
    pub fn ends(&self, code: i32, arguments: &[&str], words: &[&str]) -> String {
        let (got, said) = self.run(arguments);
        assert_eq!(got, Some(code), "kubectl {arguments:?}: {said}");
        for word in words {
            assert!(said.contains(word), "kubectl {arguments:?} does not say {word:?}:\n{said}");
        }
        said
    }

    /// What it says on success.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str], words: &[&str]) -> String {
        self.ends(0, arguments, words)
    }
}
