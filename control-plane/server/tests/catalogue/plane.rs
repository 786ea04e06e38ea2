//! The binary as a process, with whatever flags a row asks for, and the objects that most rows need.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::client::{Client, Credentials};

/// A control plane that serves; killed when dropped.
pub struct Plane {
    child: Child,
    // Held open: a server that logs to a closed pipe would fail.
    _output: BufReader<ChildStdout>,
    dir: PathBuf,
    flags: Vec<String>,
    /// `https://127.0.0.1:PORT` or `http://…`
    pub url: String,
    /// The administrator.
    pub admin: Client,
}

impl Plane {
    /// Starts it with plain HTTP on a data directory.
    #[track_caller]
    pub fn plain(dir: &Path, flags: &[&str]) -> Self {
        let flags = ["--plain-http"].iter().chain(flags).map(|&flag| flag.to_owned());
        Self::start(dir, flags.collect())
    }

    /// Starts it with TLS (the default) on a data directory.
    #[track_caller]
    pub fn tls(dir: &Path, flags: &[&str]) -> Self {
        let plane = Self::start(dir, flags.iter().map(|&flag| flag.to_owned()).collect());
        assert!(plane.url.starts_with("https://"), "{}", plane.url);
        plane
    }

    /// Starts it with TLS and a server certificate that `authority` (PEM) signed; the administrator is who the
    /// control plane wrote a kubeconfig for.
    #[track_caller]
    pub fn tls_signed_by(dir: &Path, flags: &[&str], authority: &[u8]) -> Self {
        let mut plane = Self::tls(dir, flags);
        let credentials = Credentials { ca: authority.to_vec(), ..plane.admin.credentials().clone() };
        plane.admin = plane.admin.with(&credentials);
        plane
    }

    /// Starts it with plain HTTP where no file may grow beyond `kibibytes`: writes beyond fail, as on a full disk.
    #[track_caller]
    pub fn limited(dir: &Path, flags: &[&str], kibibytes: u32) -> Self {
        let mut shell = Command::new("bash");
        let script = format!("trap '' XFSZ; ulimit -f {kibibytes}; exec \"$@\"");
        shell.args(["-c", &script, "limited", env!("CARGO_BIN_EXE_control-plane")]);
        let flags = ["--plain-http"].iter().chain(flags).map(|&flag| flag.to_owned());
        Self::run(shell, dir, flags.collect())
    }

    #[track_caller]
    fn start(dir: &Path, flags: Vec<String>) -> Self {
        Self::run(Command::new(env!("CARGO_BIN_EXE_control-plane")), dir, flags)
    }

    #[track_caller]
    fn run(mut command: Command, dir: &Path, flags: Vec<String>) -> Self {
        let log = std::fs::File::options().create(true).append(true).open(dir.join("stderr.log")).unwrap();
        let mut child = command
            .args(["--listen", "127.0.0.1:0", "--data-dir"])
            .arg(dir)
            .args(&flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let Some(url) = line.trim().strip_prefix("control-plane: serving on ") else {
            drop(child.kill());
            drop(child.wait());
            panic!("{flags:?}: {line:?} {}", std::fs::read_to_string(dir.join("stderr.log")).unwrap());
        };
        let (_, credentials) = Credentials::read(&dir.join("kubeconfig/admin.kubeconfig"));
        let admin = Client::new(url, &credentials);
        Self { url: url.to_owned(), admin, child, _output: output, dir: dir.to_owned(), flags }
    }

    /// A kubeconfig that the control plane wrote.
    pub fn kubeconfig(&self, name: &str) -> PathBuf {
        self.dir.join(format!("kubeconfig/{name}.kubeconfig"))
    }

    /// Someone that the control plane wrote a kubeconfig for.
    #[track_caller]
    pub fn client(&self, name: &str) -> Client {
        Client::new(&self.url, &Credentials::read(&self.kubeconfig(name)).1)
    }

    /// SIGKILL, then the same flags on the same directory.
    #[track_caller]
    pub fn kill_and_start(mut self) -> Self {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Self::start(&self.dir.clone(), self.flags.clone())
    }

    /// SIGTERM, and waits for its end.
    #[track_caller]
    pub fn stop(mut self) {
        let sent = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
        assert!(self.child.wait().unwrap().success());
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it said on standard error so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("stderr.log")).unwrap()
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A pod of one container.
pub fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
           "spec": {"containers": [{"name": "c", "image": "rigor.dev/pause"}]}})
}

/// A pod that no scheduler here takes.
pub fn pod_for_nobody(name: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["schedulerName"] = json!("nobody");
    pod
}

/// A ready node with room, whose lease outlasts the test.
#[track_caller]
pub fn node(admin: &Client, name: &str) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    admin.post("/api/v1/nodes", &node).is(201);
    let room = json!({"memory": "1Mi", "cpu": "4", "pods": "110", "esp32.io/gpio": "8"});
    let ready = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ok"}]);
    let status = json!({"status": {"capacity": room, "allocatable": room, "conditions": ready}});
    admin.merge(&format!("/api/v1/nodes/{name}/status"), &status).is(200);
    admin.post("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", &lease(name)).is(201);
}

/// A node's lease of an hour.
pub fn lease(node: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
           "metadata": {"name": node, "namespace": "kube-node-lease"},
           "spec": {"holderIdentity": node, "leaseDurationSeconds": 3600,
                    "renewTime": "2026-01-01T00:00:00.000000Z"}})
}

/// A binding of a pod to a node.
pub fn binding(pod: &str, node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
           "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
}
