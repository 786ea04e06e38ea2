//! The world of a rig of real processes: a control plane, boards behind relays or on a network of the harness, a
//! recorder, in real time.
//!
//! Everything asynchronous lives in a runtime of the trial's own, hidden behind the synchronous trait.

use crate::bench::{Bench, Boards};
use crate::board::{Board, Cable, Machine};
use crate::control_plane::{ControlPlane, Tokens};
use crate::etcd::Etcd;
use crate::host::HostMachine;
use crate::http;
use crate::kubelet_config::{MachineName, kubelet_config};
use crate::network::{Network, Seat};
use crate::place::Place;
use crate::qemu::QemuMachine;
use crate::recorder::Source;
use crate::recording::{Opening, Recording};
use crate::relay::Relay;
use crate::scheduler::Schedulers;
use crate::streams;
use crate::tool;
use crate::world::{
    ApiAnswer, ApiRequest, BoardSpec, ControlPlaneAct, Identity, Infra, LinkChange, PowerAct, SchedulerAct,
    ToolOutcome, World,
};
use futures_util::future::join_all;
use reqwest::Client;
use rigor_model::Constants;
use rigor_model::act::Tool;
use rigor_model::kinds::ObjectKind;
use rigor_trace::{Fact, History, Micros};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Longest wait for the recorder's first lists.
const SYNC_LIMIT: Duration = Duration::from_secs(20);

/// A trial on a rig of processes. Fields are dropped in this order: boards before the network they sit on and the
/// control plane they talk to, that before its etcd, the runtime after all that uses it, the directory last.
struct Processes {
    boards: Vec<Board>,
    /// Where the boards are emulators.
    network: Option<Arc<Network>>,
    schedulers: Schedulers,
    recording: Recording,
    control_plane: ControlPlane,
    /// Where the control plane keeps its state, if that is an etcd.
    etcd: Option<Etcd>,
    tokens: Tokens,
    client: Client,
    /// How many requests were sent.
    sent: u32,
    runtime: Runtime,
    place: Place,
}

/// Starts a trial: the control plane serves, the recorder has its first lists, the boards have just been powered. What
/// links lose is drawn from `seed`.
///
/// # Errors
/// A process does not start, or a file cannot be written.
pub fn open(
    bench: &Bench,
    constants: &Constants,
    specs: &[BoardSpec],
    seed: u64,
) -> Result<Box<dyn World>, Infra> {
    let opening = Opening::begin()?;
    let (clock, ledger) = (opening.clock, opening.ledger.clone());
    let place = Place::new()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("rigor-io")
        .enable_all()
        .build()
        .map_err(|error| Infra::transient(format!("no runtime: {error}")))?;
    // A connection kept from before a restart of the control plane would fail the scenario's next request.
    let client = http::client(http::plain()?, |builder| builder.pool_max_idle_per_host(0))?;
    let watching = http::client(http::plain()?, |builder| builder)?;
    let tokens = Tokens::draw(specs)?;
    let etcd = bench.etcd.then(|| Etcd::start(&place, ledger.clone())).transpose()?;
    let endpoint = etcd.as_ref().map(Etcd::endpoint);
    let control_plane =
        ControlPlane::start(bench, &place, &tokens, constants, endpoint.as_deref(), ledger.clone())?;
    ledger.note(Fact::ControlPlaneReady {});
    let base = format!("http://{}", control_plane.address());
    let kubeconfig = ControlPlane::scheduler_kubeconfig(&place);
    let schedulers = Schedulers::new(bench.scheduler.clone(), kubeconfig, ledger.clone());
    let source = Source::local(watching, &base, &tokens.admin, ledger)?;
    let recording = opening.record(runtime.handle(), source, &streams::everywhere(), SYNC_LIMIT);
    let recording = recording.ok_or_else(|| {
        Infra::transient(format!(
            "the control plane at {base} did not answer the recorder's lists; its last line: {}",
            control_plane.log().lines().last().unwrap_or("none")
        ))
    })?;
    let network = match bench.boards {
        Boards::Host { .. } => None,
        Boards::Qemu(_) => Some(Arc::new(connect(&place, specs, seed, control_plane.address(), clock)?)),
    };
    let mut world = Processes {
        boards: Vec::new(),
        network,
        schedulers,
        recording,
        control_plane,
        etcd,
        tokens,
        client,
        sent: 0,
        runtime,
        place,
    };
    for (index, spec) in specs.iter().enumerate() {
        let mut board = world.board(bench, constants, spec, index)?;
        board.power(PowerAct::Restore)?;
        world.boards.push(board);
    }
    world.boards.sort_by(|one, other| one.name().cmp(other.name()));
    Ok(Box::new(world))
}

/// Starts the network that these boards are to sit on.
fn connect(
    place: &Place,
    specs: &[BoardSpec],
    seed: u64,
    upstream: SocketAddr,
    clock: crate::clock::Clock,
) -> Result<Network, Infra> {
    if specs.len() > rigor_switch::address::MOST_BOARDS {
        return Err(Infra::lasting(
            format!("more than {} boards", rigor_switch::address::MOST_BOARDS),
            "ask for fewer",
        ));
    }
    let boards = specs.iter().map(|spec| spec.name.clone()).collect();
    let plan = rigor_switch::Plan { seed, boards, port: upstream.port() };
    let sockets = (0..specs.len()).map(|index| place.socket(&board_socket(index)));
    let sockets = sockets.collect::<Result<Vec<_>, _>>()?;
    Network::start(&plan, &sockets, upstream, clock)
        .map_err(|error| Infra::transient(format!("no network for the boards: {error}")))
}

/// Name of the socket that joins a board's emulator to the network.
fn board_socket(index: usize) -> String {
    format!("board-{index}.net")
}

impl Processes {
    fn board(
        &self,
        bench: &Bench,
        constants: &Constants,
        spec: &BoardSpec,
        index: usize,
    ) -> Result<Board, Infra> {
        let upstream = self.control_plane.address();
        let relay =
            match &self.network {
                Some(_) => None,
                None => Some(Relay::open(self.runtime.handle(), upstream).map_err(|error| {
                    Infra::transient(format!("no relay for board {}: {error}", spec.name))
                })?),
            };
        let server = match &relay {
            Some(relay) => format!("http://127.0.0.1:{}", relay.port()),
            None => format!("http://{}:{}", rigor_switch::address::GATEWAY, upstream.port()),
        };
        let machine = MachineName { name: spec.profile.name.clone(), arch: spec.profile.arch.clone() };
        let token = &self.tokens.boards[&spec.name];
        let config = kubelet_config(spec, &machine, &server, token, constants).to_string();
        let config = self.place.write(&format!("board-{index}.json"), &config)?;
        let machine: Box<dyn Machine> = match &bench.boards {
            Boards::Host { kubelet } => Box::new(HostMachine { binary: kubelet.clone(), config }),
            Boards::Qemu(emulator) => {
                let machine = QemuMachine {
                    emulator: emulator.clone(),
                    image: emulator.firmware.clone(),
                    storage: self.place.file(&format!("board-{index}.storage")),
                    config,
                    socket: self.place.socket(&format!("board-{index}.qmp"))?,
                    network: self.place.socket(&board_socket(index))?,
                    index,
                };
                Box::new(machine.erased()?)
            }
        };
        let cable: Box<dyn Cable> = match (relay, &self.network) {
            (Some(relay), _) => Box::new(relay),
            (None, network) => {
                let network =
                    network.clone().ok_or_else(|| Infra::transient("the boards have no network"))?;
                Box::new(Seat { network, board: index })
            }
        };
        Ok(Board::new(&spec.name, machine, cable, self.recording.ledger.clone()))
    }

    fn find(&mut self, name: &str) -> Result<&mut Board, Infra> {
        let names = self.boards().join(", ");
        self.boards.iter_mut().find(|board| board.name() == name).ok_or_else(|| {
            Infra::lasting(format!("no board is called {name}"), format!("the trial's boards are: {names}"))
        })
    }

    fn token(&self, identity: &Identity) -> Option<String> {
        match identity {
            Identity::Admin => Some(self.tokens.admin.clone()),
            // A board that does not exist has a token nobody knows, and the server says so.
            Identity::Board(name) => Some(self.tokens.boards.get(name).unwrap_or(name).clone()),
            Identity::Anonymous => None,
            Identity::Token(token) => Some(token.clone()),
        }
    }
}

impl World for Processes {
    fn watch(&mut self, kind: &ObjectKind) -> Result<(), Infra> {
        if self.recording.watch(streams::of_kind(kind, None)) {
            return Ok(());
        }
        Err(Infra::transient(format!("the control plane gave no list of {}", kind.stream)))
    }

    fn now(&self) -> Micros {
        self.recording.now()
    }

    fn history(&self) -> &History {
        self.recording.history()
    }

    fn record(&mut self, fact: Fact) {
        self.recording.record(fact, None);
    }

    fn request(&mut self, request: ApiRequest) -> ApiAnswer {
        self.requests(vec![request]).pop().unwrap_or_default()
    }

    fn requests(&mut self, requests: Vec<ApiRequest>) -> Vec<ApiAnswer> {
        let exchanges: Vec<_> = (self.sent..)
            .zip(&requests)
            .map(|(id, request)| {
                let base = format!("http://{}", self.control_plane.address());
                let proof = self.token(&request.identity).map(|token| http::bearer(&token)).transpose();
                let (client, ledger) = (self.client.clone(), self.recording.ledger.clone());
                async move {
                    let sent = ledger.now();
                    let answer = match proof {
                        Ok(proof) => http::exchange(&client, &base, proof.unwrap_or_default(), request).await,
                        Err(error) => ApiAnswer { error: Some(error), ..ApiAnswer::default() },
                    };
                    ledger.note(request_fact(id, sent, request, &answer));
                    answer
                }
            })
            .collect();
        self.sent += u32::try_from(exchanges.len()).unwrap_or(u32::MAX);
        let answers = self.runtime.block_on(join_all(exchanges));
        self.recording.take_in();
        answers
    }

    fn power(&mut self, board: &str, act: PowerAct) -> Result<(), Infra> {
        let outcome = self.find(board)?.power(act);
        self.recording.take_in();
        outcome
    }

    fn link(&mut self, board: &str, change: LinkChange) -> Result<(), Infra> {
        let outcome = self.find(board)?.link(change);
        self.recording.take_in();
        outcome
    }

    fn control_plane(&mut self, act: ControlPlaneAct) -> Result<(), Infra> {
        let outcome = self.control_plane.act(act);
        self.recording.take_in();
        outcome
    }

    fn scheduler(&mut self, name: &str, act: SchedulerAct) -> Result<(), Infra> {
        let outcome = self.schedulers.act(name, act);
        self.recording.take_in();
        outcome
    }

    fn flash(&mut self, board: &str, image: Option<&str>, erase: bool) -> Result<(), Infra> {
        let outcome = self.find(board)?.flash(image, erase);
        self.recording.take_in();
        outcome
    }

    fn send(&mut self, board: &str, line: &str) -> Result<(), Infra> {
        let outcome = self.find(board)?.send(line);
        self.recording.take_in();
        outcome
    }

    fn wait(&mut self, until: Micros) {
        self.recording.wait(until);
    }

    fn boards(&self) -> Vec<String> {
        self.boards.iter().map(|board| board.name().to_owned()).collect()
    }

    fn run(&mut self, tool: Tool, argv: &[String], stdin: Option<&str>) -> Result<ToolOutcome, Infra> {
        let command = match (tool, &self.etcd) {
            (Tool::Kubectl, _) => {
                tool::kubectl(self.control_plane.kubeconfig(), &self.place.file("kubectl-cache"), argv)?
            }
            (Tool::Etcdctl, Some(etcd)) => tool::etcdctl(&etcd.endpoint(), argv)?,
            (Tool::Etcdctl, None) => {
                return Err(Infra::lasting(
                    "this trial's control plane keeps its state in its own folder: there is no etcd",
                    "let the scenario need one: rig: {needs: [etcd]}",
                ));
            }
        };
        let begun = self.recording.now();
        let outcome = tool::run(tool, command, stdin)?;
        self.recording.ran(tool, begun, argv, &outcome);
        Ok(outcome)
    }

    fn save_evidence(&mut self, dir: &Path) -> Result<(), Infra> {
        self.recording.take_in();
        let mut files = vec![("control-plane.log".to_owned(), self.control_plane.log().into_bytes())];
        files.extend(self.etcd.as_ref().map(|etcd| ("etcd.log".to_owned(), etcd.log().into_bytes())));
        for (name, log) in self.schedulers.logs() {
            files.push((format!("scheduler-{name}.log"), log.into_bytes()));
        }
        for board in &self.boards {
            files.push((format!("board-{}.log", board.name()), board.log().into_bytes()));
        }
        if let Some(network) = &self.network {
            files.extend(network.evidence()?.into_iter().map(|(name, content)| (name.to_owned(), content)));
        }
        for (name, content) in files {
            let path = dir.join(name);
            std::fs::write(&path, content).map_err(|error| {
                Infra::transient(format!("{} could not be written: {error}", path.display()))
            })?;
        }
        Ok(())
    }

    fn close(mut self: Box<Self>) {
        self.schedulers.end();
        for board in &mut self.boards {
            // The trial is over: what a thread that has ended would have said is heard by nobody.
            let _ = board.off();
        }
        self.control_plane.kill();
        if let Some(etcd) = &self.etcd {
            etcd.kill();
        }
    }
}

/// The record of a request and its answer.
#[must_use]
pub fn request_fact(id: u32, sent: Micros, request: &ApiRequest, answer: &ApiAnswer) -> Fact {
    let response = match (&answer.body, answer.text.is_empty()) {
        (Some(json), _) => Some(json.clone()),
        (None, false) => Some(Value::String(answer.text.clone())),
        (None, true) => None,
    };
    Fact::Request {
        id,
        sent,
        as_user: request.identity.label(),
        method: request.method.clone(),
        path: request.path.clone(),
        body: request
            .body
            .as_deref()
            .map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))),
        status: answer.status,
        response,
        date: answer.headers.get("date").cloned(),
        headers: request.heed.iter().map(|name| (name.clone(), answer.headers.get(name).cloned())).collect(),
        error: answer.error.clone(),
    }
}
