//! An etcd of the test's own: free ports, a data directory that goes with it, killed when dropped.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

/// A running etcd.
pub struct Etcd {
    child: Child,
    dir: tempfile::TempDir,
    ports: [u16; 2],
    flags: Vec<String>,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Etcd {
    /// Starts one; none, with the reason printed, where no etcd is installed.
    pub fn start() -> Option<Self> {
        Self::start_with(Vec::new())
    }

    /// As [`Self::start`], with more flags. With a certificate it speaks TLS to clients.
    pub fn start_with(flags: Vec<String>) -> Option<Self> {
        if Command::new("etcd").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
        {
            eprintln!(
                "skipped: there is no etcd on the PATH (Debian: apt-get install etcd-server etcd-client)"
            );
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        // A port that is free now may be taken when etcd comes to it.
        for _ in 0..5 {
            let ports = [free_port(), free_port()];
            if let Some(child) = launch(&dir, ports, &flags) {
                return Some(Self { child, dir, ports, flags });
            }
        }
        panic!("etcd does not start");
    }

    /// Where it serves.
    pub fn url(&self) -> String {
        client_url(self.ports[0], &self.flags)
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on what it left.
    pub fn restart(&mut self) {
        self.child = launch(&self.dir, self.ports, &self.flags).expect("etcd does not start again");
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").arg("--endpoints").arg(self.url()).args(arguments);
        command.output().unwrap()
    }

    /// What `etcdctl` prints.
    pub fn etcdctl(&self, arguments: &[&str]) -> String {
        let output = self.ask(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What `etcdctl` complains of.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let output = self.ask(arguments);
        assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }
}

fn client_url(port: u16, flags: &[String]) -> String {
    let scheme = if flags.iter().any(|flag| flag == "--cert-file") { "https" } else { "http" };
    format!("{scheme}://127.0.0.1:{port}")
}

/// Starts etcd and waits until it serves; none when it ends first.
fn launch(dir: &tempfile::TempDir, [client, peer]: [u16; 2], flags: &[String]) -> Option<Child> {
    let (client, peer) = (client_url(client, flags), format!("http://127.0.0.1:{peer}"));
    let mut command = Command::new("etcd");
    command.arg("--data-dir").arg(dir.path().join("etcd")).args(["--name", "test"]);
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("test={peer}")]);
    command.args(["--heartbeat-interval", "50", "--election-timeout", "500"]).args(flags);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let serves =
        lines.by_ref().any(|line| line.is_ok_and(|line| line.contains("ready to serve client requests")));
    if !serves {
        child.wait().unwrap();
        return None;
    }
    // It must never wait for somebody to read what it has to say.
    std::thread::spawn(move || lines.for_each(drop));
    Some(child)
}

impl Drop for Etcd {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
