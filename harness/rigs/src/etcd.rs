//! The etcd of a trial: one member on loopback ports of its own, its data in the trial's folder. The control plane may come
//! and go meanwhile.

use crate::binaries::on_path;
use crate::ledger::Ledger;
use crate::log::{Log, Start};
use crate::place::Place;
use crate::port::ReservedPort;
use crate::process::{Input, Process};
use crate::world::Infra;
use rigor_model::{Capability, Rig, duration};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// A part of the line that says it serves, in etcd 3.4 and later.
const READY: &str = "ready to serve client requests";

/// Longest time from start to that line.
const START_LIMIT: Duration = Duration::from_secs(30);

/// What a person does where a program is missing.
pub(crate) const REMEDY: &str = "Debian: apt-get install etcd-server etcd-client";

/// What every variable begins with that etcd and etcdctl read.
const VARIABLES: [&str; 2] = ["ETCD_", "ETCDCTL_"];

/// Without it etcd 3.4 does not start on some processors.
const PROCESSOR: &str = "ETCD_UNSUPPORTED_ARCH";

/// The rig as this machine lets it be: without the capability `etcd` where its programs are not installed.
#[must_use]
pub fn as_installed(mut rig: Rig) -> Rig {
    let missing: Vec<&str> = ["etcd", "etcdctl"].into_iter().filter(|name| on_path(name).is_none()).collect();
    if !missing.is_empty() {
        rig.withdraw(Capability::Etcd, &not_installed(&missing));
    }
    rig
}

fn not_installed(missing: &[&str]) -> String {
    let are = if missing.len() == 1 { "is" } else { "are" };
    format!("{} {are} not on PATH ({REMEDY})", missing.join(" and "))
}

/// A program of etcd's without what the environment of the harness tells it.
pub(crate) fn bare(program: PathBuf) -> Command {
    let mut command = Command::new(program);
    let told = |name: &OsStr| {
        let name = name.to_string_lossy();
        VARIABLES.iter().any(|start| name.starts_with(start)) && name != PROCESSOR
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| told(name)) {
        command.env_remove(name);
    }
    command
}

/// A running etcd; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Etcd {
    process: Process,
    log: Arc<Log>,
    clients: ReservedPort,
    _peers: ReservedPort,
}

impl Etcd {
    /// Starts it and waits until it serves.
    pub(crate) fn start(place: &Place, ledger: Arc<Ledger>) -> Result<Self, Infra> {
        let program = on_path("etcd").ok_or_else(|| Infra::lasting("etcd is not installed", REMEDY))?;
        let port = || {
            ReservedPort::reserve(0)
                .map_err(|error| Infra::transient(format!("no port of 127.0.0.1 for etcd: {error}")))
        };
        let (clients, peers) = (port()?, port()?);
        let log = Arc::new(Log::of_server("etcd", READY, ledger));
        let mut command = bare(program);
        command.args(flags(&clients, &peers)).arg("--data-dir").arg(place.file("etcd"));
        let process = Process::start(command, Input::Nothing, log.clone()).map_err(|error| {
            Infra::lasting(
                format!("etcd could not be started: {error}"),
                "check that etcd --version runs on this machine",
            )
        })?;
        let problem = match log.wait_ready(START_LIMIT) {
            Start::Ready => return Ok(Self { process, log, clients, _peers: peers }),
            Start::Ended => "ended before it served".to_owned(),
            Start::Waiting => format!("did not say `{READY}` within {}", duration::format(START_LIMIT)),
        };
        process.kill();
        Err(Infra::transient(format!("etcd {problem}; its last line: {}", log.last_line())))
    }

    /// Where clients reach it.
    pub(crate) fn endpoint(&self) -> String {
        url(&self.clients)
    }

    pub(crate) fn log(&self) -> String {
        self.log.text()
    }

    pub(crate) fn kill(&self) {
        self.process.kill();
    }
}

fn url(port: &ReservedPort) -> String {
    format!("http://{}", port.address())
}

/// Its flags but for the folder of its data. It is its only member, so its elections are with itself: short ones let it
/// serve soon.
fn flags(clients: &ReservedPort, peers: &ReservedPort) -> Vec<String> {
    let (clients, peers) = (url(clients), url(peers));
    vec![
        "--name=trial".to_owned(),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=trial={peers}"),
        "--heartbeat-interval=50".to_owned(),
        "--election-timeout=500".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_its_remedy() {
        let source = "apiVersion: rigor.dev/v1alpha1\nkind: Rig\nmetadata: {name: r}\nspec:\n  kind: host\n  constants: {leaseDuration: 15s, renewInterval: 5s, noExecuteDelay: 15s, tolerationSeconds: 300s, checkPeriod: 500ms, retryPeriod: 1s, controllerPeriod: 1s, slack: 500ms}\n";
        let mut rig = Rig::parse("r.yaml", source).unwrap();
        let needs = [Capability::Etcd].into();
        assert_eq!(rig.lacks(0, &needs), None);
        rig.withdraw(Capability::Etcd, &not_installed(&["etcd", "etcdctl"]));
        assert_eq!(
            rig.lacks(0, &needs).as_deref(),
            Some(
                "the rig r lacks etcd: etcd and etcdctl are not on PATH (Debian: apt-get install etcd-server etcd-client)"
            )
        );
        assert_eq!(not_installed(&["etcdctl"]), format!("etcdctl is not on PATH ({REMEDY})"));
    }
}
