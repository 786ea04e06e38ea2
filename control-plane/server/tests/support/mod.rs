//! The binary as a process: started on a free port, stopped when dropped.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The binary with flags that suit a test; more can be added.
pub fn command(data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_control-plane"));
    command.args(["--listen", "127.0.0.1:0", "--plain-http", "--data-dir"]).arg(data_dir);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// A control plane that serves.
pub struct Process {
    /// The process.
    pub child: Child,
    /// `http://127.0.0.1:PORT`
    pub url: String,
}

impl Process {
    /// Starts it and waits for its line.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url =
            line.trim().strip_prefix("control-plane: serving on ").unwrap_or_else(|| panic!("{line:?}"));
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Self { url: url.to_owned(), child }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
