//! The simulated rig as the runner sees it: [`World`] over virtual time.
//!
//! Requests of the runner go straight into the router, without a link: they are sent and answered at one instant.
//! Acts on boards and links take no time; starting the server takes a little, drawn from the seed.

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::Path;

use axum::body::Body;
use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE};
use http::{HeaderValue, Method, Request};
use rigor_model::Capability;
use rigor_model::act::Tool;
use rigor_model::faults::Tally;
use rigor_model::kinds::ObjectKind;
use rigor_rigs::processes::request_fact;
use rigor_rigs::scheduler::{no_scheduler, scheduler_runs};
use rigor_rigs::{
    ApiAnswer, ApiRequest, ControlPlaneAct, Identity, Infra, LinkChange, PowerAct, SchedulerAct, ToolOutcome,
    World,
};
use rigor_trace::history::{Fact, History, Micros};

use crate::clock::HttpDate;
use crate::server::Fault;
use crate::simulation::Simulation;
use crate::stream::{Reached, Reader, Stream};

/// Longest wait for a second scheduler to see the cluster, in microseconds.
const SCHEDULER_LIMIT: u64 = 30_000_000;

/// From the start of the server's process to its first answer, in microseconds.
const START: RangeInclusive<u64> = 30_000..=90_000;

/// One trial.
pub(crate) struct Simulated {
    simulation: Simulation,
    /// What was recorded while the trial was opened; follows the runner's `TrialStarted`.
    opening: History,
    tokens: Tokens,
    draws: fastrand::Rng,
    requests: u32,
    date: HttpDate,
}

/// The bearer tokens of a trial; no secrets, since nothing but the trial can reach the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens;

impl Tokens {
    /// The administrator's.
    pub(crate) fn admin(self) -> &'static str {
        "simulated-admin"
    }

    /// That of second schedulers.
    pub(crate) fn scheduler(self) -> &'static str {
        "simulated-scheduler"
    }

    /// A board's; of one that does not exist, a token nobody knows.
    pub(crate) fn board(self, name: &str) -> String {
        format!("simulated-board-{name}")
    }

    fn of(self, identity: &Identity) -> Option<String> {
        match identity {
            Identity::Admin => Some(self.admin().to_owned()),
            Identity::Board(name) => Some(self.board(name)),
            Identity::Anonymous => None,
            Identity::Token(token) => Some(token.clone()),
        }
    }
}

/// The value of an Authorization header.
pub(crate) fn bearer(token: &str) -> Result<HeaderValue, Fault> {
    HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|error| Fault::Wrong(format!("a token: {error}")))
}

impl Simulated {
    /// Starts the server and powers the boards at microsecond 0.
    ///
    /// # Errors
    /// The server did not come up.
    pub(crate) fn start(mut simulation: Simulation, draws: fastrand::Rng) -> Result<Self, Infra> {
        if let Err(fault) = simulation.start_server(None) {
            return Err(simulation.fail(fault));
        }
        simulation.set_clocks();
        for index in 0..simulation.seats.len() {
            let effects = simulation.seats[index].board.restore(0);
            simulation.perform(index, effects);
        }
        let opening = std::mem::take(&mut simulation.history);
        Ok(Self { simulation, opening, tokens: Tokens, draws, requests: 0, date: HttpDate::default() })
    }

    /// Lets the history begin, if it has not; `true` when that brought something new.
    fn begin(&mut self) -> bool {
        let opening = std::mem::take(&mut self.opening);
        for record in opening.records() {
            self.simulation.history.push(record.at, record.fact.clone());
        }
        !opening.is_empty()
    }

    fn find(&self, name: &str) -> Result<usize, Infra> {
        self.simulation.sound()?;
        self.simulation.seats.iter().position(|seat| seat.board.name() == name).ok_or_else(|| {
            let names = self.boards().join(", ");
            Infra::lasting(format!("no board is called {name}"), format!("the trial's boards are: {names}"))
        })
    }

    /// Waits, where a fault has killed the server, until a request can be made.
    fn reach(&mut self, deadline: u64) -> Result<(), String> {
        let simulation = &mut self.simulation;
        if simulation.server.is_up() {
            return Ok(());
        }
        simulation.sound().map_err(|infra| infra.what)?;
        if simulation.struck.killed() {
            // Nobody who wrote the scenario asked for this outage.
            simulation.run(deadline, |it| it.server.is_up());
            simulation.sound().map_err(|infra| infra.what)?;
        }
        if simulation.server.is_up() { Ok(()) } else { Err("connection refused".to_owned()) }
    }

    /// Performs a request, and waits for the end of its answer when that is a stream.
    fn exchange(&mut self, request: &ApiRequest, deadline: u64) -> Result<ApiAnswer, String> {
        let simulation = &mut self.simulation;
        let prepared = prepare(request, self.tokens.of(&request.identity).as_deref())?;
        let response = simulation
            .call(&request.identity.label(), prepared)
            .map_err(|fault| simulation.fail(fault).what)?;
        let (parts, body) = response.into_parts();
        let mut headers = std::collections::BTreeMap::new();
        headers.insert(DATE.to_string(), self.date.at(simulation.time.wall()).to_owned());
        for (name, value) in &parts.headers {
            headers.insert(name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned());
        }
        let mut stream = Stream::new(body, Reader::Runner, simulation.server.woken());
        let mut bytes = Vec::new();
        simulation.struck.spare_server(true);
        let outcome = loop {
            match stream.read(|data| bytes.extend_from_slice(data)) {
                Reached::End => break Ok(()),
                Reached::Broken(error) => break Err(error),
                Reached::Pause => {
                    if let Err(fault) = simulation.settle() {
                        break Err(simulation.fail(fault).what);
                    }
                    simulation.run(deadline, |it| it.runner_woken() || !it.server.is_up());
                    if !simulation.server.is_up() {
                        break Err("the connection was closed before the answer was complete".to_owned());
                    }
                    if simulation.now() >= deadline {
                        break Err("no complete answer within the time limit".to_owned());
                    }
                }
            }
        };
        simulation.struck.spare_server(false);
        outcome?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(ApiAnswer {
            status: parts.status.as_u16(),
            headers,
            body: serde_json::from_str(&text).ok(),
            text,
            error: None,
        })
    }

    fn start_scheduler(&mut self, name: &str, dry_run: bool) -> Result<(), Infra> {
        let simulation = &mut self.simulation;
        if simulation.seconds.runs(name) {
            return Err(scheduler_runs(name));
        }
        simulation.start_scheduler(name, dry_run);
        let limit = simulation.now() + SCHEDULER_LIMIT;
        simulation.run(limit, |it| it.seconds.is_ready(name));
        simulation.sound()?;
        if simulation.seconds.is_ready(name) {
            return Ok(());
        }
        simulation.end_scheduler(name, "ended: it saw no cluster");
        Err(Infra::transient(format!(
            "the scheduler {name} did not see the cluster within {} s",
            SCHEDULER_LIMIT / 1_000_000
        )))
    }

    fn end_scheduler(&mut self, name: &str, how: &str) -> Result<(), Infra> {
        if self.simulation.end_scheduler(name, how) { Ok(()) } else { Err(no_scheduler(name)) }
    }

    fn start_control_plane(&mut self, fact: Fact) -> Result<(), Infra> {
        if self.simulation.server.is_up() {
            return Err(Infra::lasting(
                "the control plane is running already",
                "stop or kill it before it is started, or restart it",
            ));
        }
        let ready = self.simulation.now() + self.draws.u64(START);
        self.simulation.run(ready, |_| false);
        self.simulation.sound()?;
        self.simulation.start_server(Some(fact)).map_err(|fault| self.simulation.fail(fault))
    }
}

/// The request as the router takes it.
fn prepare(request: &ApiRequest, token: Option<&str>) -> Result<Request<Body>, String> {
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| format!("`{}` is no HTTP method", request.method))?;
    let mut prepared = Request::builder().method(method).uri(&request.path);
    if let Some(token) = token {
        prepared = prepared.header(AUTHORIZATION, bearer(token).map_err(|fault| fault.text())?);
    }
    if request.body.is_some() && !request.headers.contains_key(CONTENT_TYPE.as_str()) {
        prepared = prepared.header(CONTENT_TYPE, "application/json");
    }
    for (name, value) in &request.headers {
        prepared = prepared.header(name, value);
    }
    let body = request.body.clone().map_or_else(Body::empty, Body::from);
    prepared.body(body).map_err(|error| format!("not a request: {error}"))
}

impl World for Simulated {
    fn watch(&mut self, kind: &ObjectKind) -> Result<(), Infra> {
        self.begin();
        let watched = self.simulation.watch(kind.stream, &kind.collection_path(None));
        watched.map_err(|fault| self.simulation.fail(fault))
    }

    fn now(&self) -> Micros {
        Micros(self.simulation.now())
    }

    fn history(&self) -> &History {
        &self.simulation.history
    }

    fn record(&mut self, fact: Fact) {
        if !matches!(fact, Fact::TrialStarted { .. }) {
            self.begin();
        }
        self.simulation.record(fact);
        self.begin();
    }

    fn request(&mut self, request: ApiRequest) -> ApiAnswer {
        self.begin();
        let deadline = self.simulation.now().saturating_add(request.timeout.0);
        let reached = self.reach(deadline);
        // What waited for a server was sent when there was one.
        let sent = self.now();
        let answer = reached
            .and_then(|()| self.exchange(&request, deadline))
            .unwrap_or_else(|error| ApiAnswer { error: Some(error), ..ApiAnswer::default() });
        let id = self.requests;
        self.requests += 1;
        self.record(request_fact(id, sent, &request, &answer));
        // Done and answered; the server may go before its controllers have looked at what was written, meanwhile, or after.
        if let Err(fault) = self.simulation.decide() {
            self.simulation.fail(fault);
        }
        answer
    }

    fn power(&mut self, board: &str, act: PowerAct) -> Result<(), Infra> {
        self.begin();
        let index = self.find(board)?;
        let simulation = &mut self.simulation;
        let now = simulation.now();
        simulation.take_over_power(index, act);
        let it = &mut simulation.seats[index].board;
        let effects = match act {
            PowerAct::Cut => it.cut(),
            PowerAct::Restore => it.restore(now),
            PowerAct::Cycle => {
                let mut effects = it.cut();
                effects.extend(it.restore(now));
                effects
            }
            PowerAct::Hang | PowerAct::Resume if !it.is_on() => {
                return Err(Infra::lasting(
                    format!("board {board} has no power: its processor can be neither halted nor resumed"),
                    "restore its power first",
                ));
            }
            PowerAct::Hang => {
                it.halt(now);
                Vec::new()
            }
            PowerAct::Resume => simulation.resume(index),
        };
        simulation.perform(index, effects);
        self.record(Fact::Power { board: board.to_owned(), act, begun: Micros(now) });
        Ok(())
    }

    fn link(&mut self, board: &str, change: LinkChange) -> Result<(), Infra> {
        let index = self.find(board)?;
        let now = self.simulation.now();
        match change {
            LinkChange::Cut => self.simulation.seats[index].link.cut(now),
            LinkChange::Heal => self.simulation.heal(index),
            LinkChange::Delay(by) => self.simulation.seats[index].link.set_delay(Micros::from_duration(by).0),
            LinkChange::Loss(percent) => self.simulation.seats[index].link.set_loss(percent),
            LinkChange::Garbage(garbage) => self.simulation.seats[index].link.set_garbage(garbage),
        }
        self.record(Fact::link(board, change, Micros(now)));
        Ok(())
    }

    fn control_plane(&mut self, act: ControlPlaneAct) -> Result<(), Infra> {
        self.begin();
        self.simulation.sound()?;
        self.simulation.take_over_server();
        let fact = Fact::ControlPlane { act, begun: self.now() };
        match act {
            ControlPlaneAct::Stop => self.simulation.end_server("stopped"),
            ControlPlaneAct::Kill => self.simulation.end_server("killed"),
            ControlPlaneAct::Start => return self.start_control_plane(fact),
            ControlPlaneAct::Restart => {
                self.simulation.end_server("stopped");
                return self.start_control_plane(fact);
            }
        }
        self.record(fact);
        Ok(())
    }

    fn scheduler(&mut self, name: &str, act: SchedulerAct) -> Result<(), Infra> {
        self.begin();
        self.simulation.sound()?;
        let begun = self.now();
        match act {
            SchedulerAct::Start | SchedulerAct::DryRun => {
                self.start_scheduler(name, act == SchedulerAct::DryRun)?;
            }
            SchedulerAct::Stop => self.end_scheduler(name, "stopped")?,
            SchedulerAct::Kill => self.end_scheduler(name, "killed")?,
        }
        self.record(Fact::Scheduler { name: name.to_owned(), act, begun });
        Ok(())
    }

    fn wait(&mut self, until: Micros) {
        if self.begin() {
            return;
        }
        let known = self.simulation.history.len();
        self.simulation.run(until.0, |it| it.history.len() > known);
    }

    fn withheld(&self) -> Tally {
        self.simulation.sites.withheld().clone()
    }

    fn boards(&self) -> Vec<String> {
        self.simulation.seats.iter().map(|seat| seat.board.name().to_owned()).collect()
    }

    fn run(&mut self, tool: Tool, argv: &[String], _: Option<&str>) -> Result<ToolOutcome, Infra> {
        let (name, need) = match tool {
            Tool::Kubectl => ("kubectl", Capability::Kubectl),
            Tool::Etcdctl => ("etcdctl", Capability::Etcd),
        };
        Err(Infra::lasting(
            format!("{name} {} cannot run on the simulated rig, which has no sockets", argv.join(" ")),
            format!("run the scenario on a rig of kind host or qemu (needs: [{}])", need.name()),
        ))
    }

    fn save_evidence(&mut self, dir: &Path) -> Result<(), Infra> {
        let mut text = String::new();
        for logged in self.simulation.server.log() {
            let _ = writeln!(text, "{:>12} {}", Micros(logged.at).to_string(), logged.what);
        }
        let mut files = vec![("control-plane.log".to_owned(), text)];
        let schedulers = self.simulation.seconds.logs().iter();
        files.extend(schedulers.map(|(name, log)| (format!("scheduler-{name}.log"), log.clone())));
        for (name, text) in files {
            let path = dir.join(name);
            std::fs::write(&path, text).map_err(|error| {
                Infra::transient(format!("{} could not be written: {error}", path.display()))
            })?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) {}
}
