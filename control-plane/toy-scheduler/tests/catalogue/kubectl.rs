//! kubectl as the administrator. Where there is none, what it would have shown is left out, and that is said.

use std::process::{Command, Stdio};

use crate::cluster::Cluster;

/// What kubectl prints on success; nothing where there is no kubectl.
pub fn kubectl(cluster: &Cluster, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("kubectl");
    command.arg("--kubeconfig").arg(cluster.kubeconfig("admin")).args(arguments).stdin(Stdio::null());
    command.env("HOME", cluster.dir()).env_remove("KUBECONFIG");
    let Ok(output) = command.output() else {
        println!("left out: kubectl is not on PATH");
        return None;
    };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "kubectl {arguments:?}: {said}");
    Some(said)
}
