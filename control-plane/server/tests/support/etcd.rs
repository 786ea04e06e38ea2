//! An etcd of the test's own: ports that are kept for it while it is away, a data directory that goes with it, killed when dropped.
//!
//! Nothing here measures time: it serves when it says so, however slow the machine is, and whoever waits in vain is ended by the
//! test runner.

#[path = "port.rs"]
mod port;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use port::HeldPort;

/// A running etcd.
pub struct Etcd {
    /// The process; none while it does not run.
    pub child: Option<Child>,
    dir: tempfile::TempDir,
    /// For clients and for peers.
    ports: [HeldPort; 2],
    flags: Vec<String>,
}

/// Whether a program can be started; where not, the reason is printed.
fn have(program: &str, argument: &str) -> bool {
    let found = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        println!("skipped: {program} is not on PATH (Debian: apt-get install etcd-server etcd-client)");
    }
    found.is_ok()
}

impl Etcd {
    /// Starts one with these flags; none where etcd is not installed. With a certificate it speaks TLS to clients.
    pub fn open(flags: Vec<String>) -> Option<Self> {
        if !have("etcd", "--version") || !have("etcdctl", "version") {
            return None;
        }
        let ports = [HeldPort::any(), HeldPort::any()];
        let mut etcd = Self { child: None, dir: tempfile::tempdir().unwrap(), ports, flags };
        assert!(etcd.launch(), "etcd does not start");
        Some(etcd)
    }

    /// Starts the process, on whatever an earlier one left, and waits until it serves; no where it ends first.
    pub fn launch(&mut self) -> bool {
        let (client, peer) = (self.url(), format!("http://127.0.0.1:{}", self.ports[1].number()));
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(self.dir.path().join("etcd")).args(["--name", "test"]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("test={peer}")]);
        command.args(["--heartbeat-interval", "50", "--election-timeout", "500"]).args(&self.flags);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let serves =
            lines.by_ref().any(|line| line.is_ok_and(|line| line.contains("ready to serve client requests")));
        if !serves {
            child.wait().unwrap();
            return false;
        }
        // It must never wait for somebody to read what it has to say.
        std::thread::spawn(move || lines.for_each(drop));
        self.child = Some(child);
        true
    }

    /// Where it serves.
    pub fn url(&self) -> String {
        let scheme = if self.flags.iter().any(|flag| flag == "--cert-file") { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.ports[0].number())
    }

    /// What `etcdctl` does.
    pub fn ask(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["--command-timeout=240s", "--dial-timeout=240s"]);
        command.arg("--endpoints").arg(self.url()).args(arguments);
        command.output().unwrap()
    }

    /// What `etcdctl` prints.
    pub fn etcdctl(&self, arguments: &[&str]) -> String {
        let output = self.ask(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
