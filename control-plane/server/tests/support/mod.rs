//! The binary as a process: started on a free port, stopped when dropped.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

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
    /// Starts it and waits for its line, which is on standard error where standard output is the audit log.
    pub fn start(mut command: Command) -> Self {
        let arguments: Vec<_> = command.get_args().collect();
        let audited = arguments.windows(2).any(|pair| pair == ["--audit-log-path", "-"]);
        if audited {
            command.stderr(Stdio::piped());
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let errors = if audited { child.stderr.take() } else { None };
        let mut process = Self { url: String::new(), child, output };
        let line = match errors {
            Some(errors) => said_where(BufReader::new(errors)),
            None => process.line(),
        };
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

/// The line that says where it serves, among those of the log. The others are read as well, so that nobody waits to write them.
fn said_where(errors: BufReader<ChildStderr>) -> String {
    let mut lines = errors.lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with("control-plane: ")).unwrap_or_default();
    std::thread::spawn(move || lines.for_each(drop));
    line
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
