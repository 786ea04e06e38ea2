//! The binary as a process: started on a free port, stopped when dropped.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

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
    /// `http://127.0.0.1:PORT`, or `https://…`
    pub url: String,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it and waits for its line.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Self { url: String::new(), child, output };
        let line = process.line();
        let url =
            line.trim().strip_prefix("control-plane: serving on ").unwrap_or_else(|| panic!("{line:?}"));
        assert!(url.contains("://127.0.0.1:"), "{url}");
        process.url = url.to_owned();
        process
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
