//! One shell for one page, with the page's programs on PATH, in a directory that goes away with it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::port::HeldPort;
use crate::{binaries, compare};

const END: &str = "-- this command ended --";
/// Far longer than a command of a page takes.
const LONG: Duration = Duration::from_secs(240);
/// So often, and with such pauses, a command that reads is repeated.
const REPEATS: usize = 300;
const PAUSE: &str = "sleep 0.3";

/// The shell.
pub struct Shell {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Each port of the pages, and the free one in its place.
    ports: Vec<(&'static str, HeldPort)>,
    _dir: tempfile::TempDir,
}

impl Shell {
    /// Starts it.
    pub fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let toy = std::path::Path::new(env!("CARGO_BIN_EXE_toy-scheduler")).parent().unwrap().to_owned();
        let plane = binaries::control_plane().parent().unwrap().to_owned();
        let path = format!("{}:{}:{}", plane.display(), toy.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-s"]).current_dir(dir.path()).process_group(0);
        command.env("PATH", path).env("HOME", dir.path()).env("ETCDCTL_API", "3").env_remove("KUBECONFIG");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let (told, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
        let input = child.stdin.take();
        let ports = ["6443", "2379", "2380"].map(|port| (port, HeldPort::any())).into();
        Self { child, input, lines, ports, _dir: dir }
    }

    /// What the command prints; one that only reads is repeated until that is what is shown, or for a while.
    pub fn run(&mut self, command: &str, shown: &[String]) -> Vec<String> {
        let mut said = self.once(command);
        for _ in 0..REPEATS {
            if !only_reads(command) || compare::matches(shown, &said) {
                break;
            }
            self.once(PAUSE);
            said = self.once(command);
        }
        said
    }

    fn once(&mut self, command: &str) -> Vec<String> {
        let mut command = command.to_owned();
        for (shown, real) in &self.ports {
            command = command.replace(shown, &real.number().to_string());
        }
        let script = format!("{{ {command}\n}} </dev/null 2>&1\necho; echo '{END}'\n");
        let input = self.input.as_mut().expect("the shell takes commands until it ends");
        input.write_all(script.as_bytes()).and_then(|()| input.flush()).unwrap();
        let mut said = Vec::new();
        loop {
            let line = self.lines.recv_timeout(LONG);
            let line = line.unwrap_or_else(|_| panic!("{command:?} does not end; so far {said:#?}"));
            if line == END {
                break;
            }
            let shown = |line: String, (shown, real): &(&str, HeldPort)| {
                line.replace(&real.number().to_string(), shown)
            };
            said.push(self.ports.iter().fold(line, shown));
        }
        // The empty line in front of the mark, and what else is empty at the end.
        while said.last().is_some_and(|line| line.trim().is_empty()) {
            said.pop();
        }
        said
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if let Some(mut input) = self.input.take() {
            drop(input.write_all(b"kill $(jobs -p) 2>/dev/null; wait\n"));
        }
        drop(self.child.wait());
    }
}

fn only_reads(command: &str) -> bool {
    ["kubectl get ", "kubectl describe ", "etcdctl get ", "grep "]
        .iter()
        .any(|start| command.starts_with(start))
}
