//! The seam between the runner and a rig: one trial's control plane, its boards and the recorded history.
//!
//! The trait is synchronous; a rig of real processes hides its runtime behind it, the simulated rig moves virtual
//! time. A world never judges: it acts, and everything that happens becomes a fact of the history.

use rigor_model::act::Tool;
use rigor_model::faults::Tally;
use rigor_model::kinds::ObjectKind;
use rigor_model::rig::BoardProfile;
use rigor_trace::{Fact, History, Micros};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub use rigor_trace::history::{ControlPlaneAct, Garbage, LinkChange, PowerAct, SchedulerAct};

/// Everything one trial acts on: its own control plane and its own boards.
pub trait World {
    /// Time since the trial's start on the harness's monotonic clock; virtual on the simulated rig.
    fn now(&self) -> Micros;

    /// What has been recorded so far; it only grows.
    fn history(&self) -> &History;

    /// Appends a fact of the runner's own (`Step`, `Instant`, `TrialStarted`, …) at the present instant.
    fn record(&mut self, fact: Fact);

    /// Watches another kind from now on, besides those that every rig watches.
    ///
    /// # Errors
    /// The rig cannot, or the server gave no list of it.
    fn watch(&mut self, kind: &ObjectKind) -> Result<(), Infra> {
        Err(Infra::lasting(
            format!("this rig cannot watch {}", kind.stream),
            "look at kinds that scenarios know by their name",
        ))
    }

    /// Performs one API request and records it as a `Request` fact, whatever came of it. An answer that never
    /// came has status 0.
    fn request(&mut self, request: ApiRequest) -> ApiAnswer;

    /// Performs requests begun together and records each; answers in the order of `requests`.
    fn requests(&mut self, requests: Vec<ApiRequest>) -> Vec<ApiAnswer> {
        requests.into_iter().map(|request| self.request(request)).collect()
    }

    /// Switches a board's power or halts its processor; returns when done and records a `Power` fact.
    ///
    /// # Errors
    /// The board is unknown, or the rig could not do it.
    fn power(&mut self, board: &str, act: PowerAct) -> Result<(), Infra>;

    /// Cuts, delays, thins or heals a board's link, or makes garbage of what the board is sent (capabilities `link`,
    /// `link-quality` and `link-garbage`); records a `Link` fact.
    ///
    /// # Errors
    /// The board is unknown, or the rig could not do it.
    fn link(&mut self, board: &str, change: LinkChange) -> Result<(), Infra>;

    /// Stops, kills, starts or restarts the control plane on the same address and store; records a `ControlPlane`
    /// fact, and `ControlPlaneReady` once it serves again.
    ///
    /// # Errors
    /// The process did not come up again.
    fn control_plane(&mut self, act: ControlPlaneAct) -> Result<(), Infra>;

    /// Starts or stops a second scheduler (capability `second-scheduler`), which places the pods whose
    /// `spec.schedulerName` is its name; records a `Scheduler` fact, and what it prints as `SchedulerLine` facts where that
    /// can be read (capability `scheduler-log`). A start is done when the scheduler is ready. It ends
    /// with the trial.
    ///
    /// # Errors
    /// It runs already or does not run, or the rig could not do it.
    fn scheduler(&mut self, name: &str, _: SchedulerAct) -> Result<(), Infra> {
        Err(Infra::lasting(
            format!("this rig cannot run {name} as a second scheduler"),
            "run the scenario on a rig that offers second-scheduler",
        ))
    }

    /// Puts an image on a board and starts it (capability `flash`); records a `Flash` fact. The image is one of the
    /// rig file's by name, or the one that boards begin with. Until the board starts it has no power; what it stored is
    /// kept unless `erase`.
    ///
    /// # Errors
    /// Board or image are unknown, or the rig could not do it.
    fn flash(&mut self, board: &str, _image: Option<&str>, _erase: bool) -> Result<(), Infra> {
        Err(Infra::lasting(
            format!("this rig cannot put an image on board {board}"),
            "run the scenario on a rig that offers flash",
        ))
    }

    /// Sends a line to a board's console (capability `console-input`), with a line feed after it; records a `Sent`
    /// fact. Whether the board has read it is not known.
    ///
    /// # Errors
    /// The board is unknown, has no power, or leaves unread what was sent before.
    fn send(&mut self, board: &str, _line: &str) -> Result<(), Infra> {
        Err(Infra::lasting(
            format!("board {board} of this rig reads no console"),
            "run the scenario on a rig that offers console-input",
        ))
    }

    /// Lets time pass until `until`, or returns earlier when something new was recorded. Returns at once when
    /// `until` is not after `now`, having taken in what was already there.
    fn wait(&mut self, until: Micros);

    /// Faults that would have been injected so far, had the trial not asked for none of their kind.
    fn withheld(&self) -> Tally {
        Tally::default()
    }

    /// Names of the boards, sorted.
    fn boards(&self) -> Vec<String>;

    /// Runs a program to its end and records it: kubectl against the control plane as the administrator (capability
    /// `kubectl`), or etcdctl against the etcd in which that keeps its state (capability `etcd`).
    ///
    /// # Errors
    /// The rig has no such program, or it could not be started.
    fn run(&mut self, tool: Tool, argv: &[String], stdin: Option<&str>) -> Result<ToolOutcome, Infra>;

    /// Writes what the history does not hold into `dir`, which exists: `control-plane.log`, `etcd.log` where there is one,
    /// `scheduler-<name>.log`, `board-<board>.log` (what a board's process wrote besides its console) and, of emulators, `network.pcap` and
    /// `network.log`. Objects and consoles are written from the history.
    ///
    /// # Errors
    /// A file could not be written.
    fn save_evidence(&mut self, dir: &Path) -> Result<(), Infra>;

    /// Ends every process of the trial and removes its files.
    fn close(self: Box<Self>);
}

/// One request to the API server.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiRequest {
    /// HTTP method in capitals.
    pub method: String,
    /// Path with query, from the leading slash.
    pub path: String,
    /// Whose credentials to use.
    pub identity: Identity,
    /// Header fields besides Authorization, Host and Content-Length; names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Body bytes; JSON unless a `content-type` header says otherwise.
    pub body: Option<String>,
    /// How long to wait for the answer, in microseconds.
    pub timeout: Micros,
    /// Names, in lower case, of the answer's header fields that are to stand in the history.
    pub heed: BTreeSet<String>,
}

impl ApiRequest {
    /// A request of the administrator with a JSON body and 10 s to answer.
    #[must_use]
    pub fn new(method: &str, path: impl Into<String>, body: Option<&Value>) -> Self {
        Self {
            method: method.to_owned(),
            path: path.into(),
            identity: Identity::Admin,
            headers: BTreeMap::new(),
            body: body.map(Value::to_string),
            timeout: Micros(10_000_000),
            heed: BTreeSet::new(),
        }
    }

    /// The same request as someone else.
    #[must_use]
    pub fn as_user(mut self, identity: Identity) -> Self {
        self.identity = identity;
        self
    }

    /// The same request with one more header field.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_ascii_lowercase(), value.to_owned());
        self
    }
}

/// Whose credentials a request carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// The administrator, group `system:masters`.
    Admin,
    /// A board's own token.
    Board(String),
    /// No Authorization header at all.
    Anonymous,
    /// A literal bearer token.
    Token(String),
}

impl Identity {
    /// How scenarios write it, and the history: `admin`, `board:a`, `anonymous`, `token:TEXT`.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Admin => "admin".to_owned(),
            Self::Board(name) => format!("board:{name}"),
            Self::Anonymous => "anonymous".to_owned(),
            Self::Token(token) => format!("token:{token}"),
        }
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ApiAnswer {
    /// HTTP status; 0 when no answer came.
    pub status: u16,
    /// Header fields, names in lower case; of repeated ones the last.
    pub headers: BTreeMap<String, String>,
    /// The body as text.
    pub text: String,
    /// The body as JSON, where it is JSON.
    pub body: Option<Value>,
    /// Why there was no answer.
    pub error: Option<String>,
}

/// What a run of a program gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutcome {
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A board as a trial asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardSpec {
    /// Node name.
    pub name: String,
    /// What it is and has.
    pub profile: BoardProfile,
}

impl BoardSpec {
    /// A board with the pins and buses of an ESP32-C3 and 200 KiB of heap.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), profile: BoardProfile::default() }
    }
}

/// Something of the rig failed: never a conformance failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Infra {
    /// What went wrong, in one sentence.
    pub what: String,
    /// What a person can do about it.
    pub remedy: Option<String>,
    /// Whether another attempt can succeed; a missing file does not appear by trying again.
    pub transient: bool,
}

impl Infra {
    /// A failure that another attempt may not meet.
    #[must_use]
    pub fn transient(what: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: None, transient: true }
    }

    /// A failure that stays until a person does `remedy`.
    #[must_use]
    pub fn lasting(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: Some(remedy.into()), transient: false }
    }

    /// What went wrong, and on a line of its own what a person can do about it.
    #[must_use]
    pub fn whole(&self) -> String {
        let remedy = self.remedy.as_ref().map(|remedy| format!("\nremedy: {remedy}"));
        format!("{}{}", self.what, remedy.unwrap_or_default())
    }
}
