//! The control plane under test as a process: started on one port and one store, so that it can be stopped, killed
//! and started again as the same control plane.

use crate::bench::Bench;
use crate::ledger::Ledger;
use crate::log::{Log, Start};
use crate::place::Place;
use crate::port::ReservedPort;
use crate::process::{Input, Process};
use crate::world::{BoardSpec, ControlPlaneAct, Infra};
use rigor_model::{Constants, duration};
use rigor_trace::Fact;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// The line that says the server is ready begins so.
const READY: &str = "control-plane: serving on ";

/// The flag that says whether it is elected among several.
const ELECTED: &str = "--leader-elect";

/// Longest time from start to that line.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Longest time from SIGTERM to the end.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// The bearer tokens of a trial.
#[derive(Debug, Clone)]
pub(crate) struct Tokens {
    pub(crate) admin: String,
    pub(crate) boards: BTreeMap<String, String>,
}

impl Tokens {
    /// One for the administrator and one a board, drawn from the system's randomness.
    pub(crate) fn draw(boards: &[BoardSpec]) -> Result<Self, Infra> {
        let mut tokens = Self { admin: token()?, boards: BTreeMap::new() };
        for board in boards {
            tokens.boards.insert(board.name.clone(), token()?);
        }
        Ok(tokens)
    }

    /// Kubernetes' token file.
    fn file(&self) -> String {
        let mut csv = format!("{},rigor-admin,rigor-admin,\"system:masters\"\n", self.admin);
        for (board, token) in &self.boards {
            let _ = writeln!(csv, "{token},system:node:{board},system:node:{board},\"system:nodes\"");
        }
        csv
    }
}

pub(crate) fn token() -> Result<String, Infra> {
    use std::io::Read;
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| Infra::transient(format!("no random bytes for tokens: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// One control plane.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    binary: PathBuf,
    arguments: Vec<String>,
    port: ReservedPort,
    kubeconfig: PathBuf,
    process: Option<Process>,
    log: Arc<Log>,
    ledger: Arc<Ledger>,
}

impl ControlPlane {
    /// Starts it and waits until it serves. Its state is in the etcd at that endpoint, or in its own folder.
    pub(crate) fn start(
        bench: &Bench,
        place: &Place,
        tokens: &Tokens,
        constants: &Constants,
        etcd: Option<&str>,
        ledger: Arc<Ledger>,
    ) -> Result<Self, Infra> {
        let listen_port = bench.port;
        let port = ReservedPort::reserve(listen_port).map_err(|error| {
            Infra::lasting(
                format!("port {listen_port} of 127.0.0.1 cannot be had: {error}"),
                "end the process that listens there, or let the rig choose a port (0)",
            )
        })?;
        let token_file = place.write("tokens.csv", &tokens.file())?;
        let kubeconfig = place.file("admin.kubeconfig");
        let mut arguments = flags(&port, place, &token_file, &kubeconfig, constants);
        arguments.extend(store(etcd, &bench.flags));
        arguments.extend(bench.flags.iter().cloned());
        let log = Arc::new(Log::of_server("control-plane", READY, ledger.clone()));
        let binary = bench.control_plane.clone();
        let mut server = Self { binary, arguments, port, kubeconfig, process: None, log, ledger };
        server.up().map_err(|error| refused(error, &bench.flags, &server.log))?;
        Ok(server)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The administrator's kubeconfig, written by the server.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The kubeconfig of schedulers, written by the server.
    pub(crate) fn scheduler_kubeconfig(place: &Place) -> PathBuf {
        place.file("data").join("kubeconfig/scheduler.kubeconfig")
    }

    pub(crate) fn log(&self) -> String {
        self.log.text()
    }

    pub(crate) fn act(&mut self, act: ControlPlaneAct) -> Result<(), Infra> {
        let begun = self.ledger.now();
        let starts = match act {
            ControlPlaneAct::Restart => {
                self.stop()?;
                self.up()?;
                true
            }
            ControlPlaneAct::Stop => {
                self.stop()?;
                false
            }
            ControlPlaneAct::Kill => {
                self.kill();
                false
            }
            ControlPlaneAct::Start => {
                self.up()?;
                true
            }
        };
        self.ledger.note(Fact::ControlPlane { act, begun });
        if starts {
            self.ledger.note(Fact::ControlPlaneReady {});
        }
        Ok(())
    }

    fn up(&mut self) -> Result<(), Infra> {
        if self.process.as_ref().is_some_and(Process::running) {
            return Err(Infra::lasting(
                "the control plane is running already",
                "stop or kill it before it is started, or restart it",
            ));
        }
        self.log.rearm();
        let mut command = Command::new(&self.binary);
        command.args(&self.arguments);
        let process = Process::start(command, Input::Nothing, self.log.clone()).map_err(|error| {
            Infra::lasting(
                format!("{} could not be started: {error}", self.binary.display()),
                "check that it is a program for this machine",
            )
        })?;
        self.process = Some(process);
        match self.log.wait_ready(START_LIMIT) {
            Start::Ready => Ok(()),
            Start::Ended => Err(Infra::transient(format!(
                "the control plane ended before it served; its output:\n{}",
                indent(&self.log.text())
            ))),
            Start::Waiting => {
                self.kill();
                Err(Infra::transient(format!(
                    "the control plane did not print `{READY}…` within {}; its last line: {}",
                    duration::format(START_LIMIT),
                    self.log.last_line()
                )))
            }
        }
    }

    fn stop(&mut self) -> Result<(), Infra> {
        let Some(process) = self.process.take() else { return Ok(()) };
        process.signal(Signal::TERM);
        match process.wait(STOP_LIMIT) {
            Some(_) => Ok(()),
            None => Err(Infra::transient(format!(
                "the control plane did not end within {} of SIGTERM",
                duration::format(STOP_LIMIT)
            ))),
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }
}

fn flags(
    port: &ReservedPort,
    place: &Place,
    token_file: &Path,
    kubeconfig: &Path,
    constants: &Constants,
) -> Vec<String> {
    let path = |path: &Path| path.display().to_string();
    let valued = [
        ("--listen", port.address().to_string()),
        ("--data-dir", path(&place.file("data"))),
        ("--token-auth-file", path(token_file)),
        ("--admin-kubeconfig", path(kubeconfig)),
        ("--node-monitor-period", duration::format(constants.check_period)),
        ("--not-ready-timeout", duration::format(constants.no_execute_delay)),
        ("--eviction-timeout", duration::format(constants.toleration_seconds)),
        ("--reconcile-interval", duration::format(constants.retry_period)),
    ];
    let mut flags = vec!["--plain-http".to_owned()];
    for (flag, value) in valued {
        flags.push(flag.to_owned());
        flags.push(value);
    }
    flags
}

/// Where it keeps its state. In etcd it is by itself, so it is not elected unless the scenario's flags say so: after a kill it
/// would first wait for its own old lease.
fn store(etcd: Option<&str>, flags: &[String]) -> Vec<String> {
    let Some(endpoint) = etcd else { return vec!["--store=redb".to_owned()] };
    let mut store = vec!["--store=etcd".to_owned(), format!("--etcd-servers={endpoint}")];
    if !flags.iter().any(|flag| flag.split('=').next() == Some(ELECTED)) {
        store.push(format!("{ELECTED}=false"));
    }
    store
}

/// A control plane that does not start with a scenario's flags will not with another attempt.
fn refused(error: Infra, flags: &[String], log: &Log) -> Infra {
    if flags.is_empty() || !error.transient {
        return error;
    }
    let text = log.text();
    let why = text.lines().find_map(|line| line.split_once("error: ").or(line.split_once("control-plane: ")));
    Infra::lasting(
        format!(
            "the control plane does not take the scenario's flags: {}",
            why.map_or(error.what.as_str(), |(_, why)| why)
        ),
        "correct spec.controlPlane.flags; control-plane --help lists what there is",
    )
}

fn indent(text: &str) -> String {
    text.lines()
        .rev()
        .take(20)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .map(|line| format!("    {line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_file_has_the_administrator_and_each_board() {
        let mut tokens = Tokens::draw(&[BoardSpec::named("a"), BoardSpec::named("b")]).unwrap();
        assert_ne!(tokens.boards["a"], tokens.boards["b"]);
        assert_eq!(tokens.admin.len(), 32);
        tokens.admin = "A".to_owned();
        tokens.boards = [("a".to_owned(), "B".to_owned())].into();
        insta::assert_snapshot!(tokens.file(), @r#"
        A,rigor-admin,rigor-admin,"system:masters"
        B,system:node:a,system:node:a,"system:nodes"
        "#);
    }

    #[test]
    fn constants_become_flags() {
        let place = Place::new().unwrap();
        let port = ReservedPort::reserve(0).unwrap();
        let flags = flags(&port, &place, Path::new("T"), Path::new("K"), &Constants::default()).join(" ");
        let flags = flags
            .replace(&port.address().to_string(), "ADDRESS")
            .replace(&*place.file("").to_string_lossy(), "PLACE/");
        insta::assert_snapshot!(flags, @"--plain-http --listen ADDRESS --data-dir PLACE/data --token-auth-file T --admin-kubeconfig K --node-monitor-period 500ms --not-ready-timeout 15s --eviction-timeout 5m --reconcile-interval 1s");
    }

    #[test]
    fn its_state_is_in_its_folder_or_in_the_trials_etcd() {
        let check = |etcd, flags: &[&str]| {
            let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
            store(etcd, &flags).join(" ")
        };
        assert_eq!(check(None, &[]), "--store=redb");
        let etcd = Some("http://127.0.0.1:1");
        let there = "--store=etcd --etcd-servers=http://127.0.0.1:1";
        assert_eq!(check(etcd, &["--event-ttl=1h"]), format!("{there} --leader-elect=false"));
        assert_eq!(check(etcd, &["--leader-elect=true"]), there);
        assert_eq!(check(etcd, &["--leader-elect"]), there);
        assert_eq!(check(etcd, &["--leader-elect-retry-period=1s"]), format!("{there} --leader-elect=false"));
    }
}
