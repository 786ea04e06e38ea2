//! The recorded history of a trial: everything that was done and seen, one fact a record.
//!
//! Times are whole microseconds since the trial's start on the harness's monotonic clock. A record's
//! `at` is when the harness knew of the fact, so it is the latest instant at which it can have happened.
//! On disk a history is one JSON object a line (`events.jsonl`); [`crate::jsonl`] reads and writes it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::index::Index;

pub use crate::ran::Ran;
pub use rigor_model::Constants;
pub use rigor_model::act::{ControlPlaneAct, Garbage, LinkAct, LinkChange, PowerAct, SchedulerAct};
pub use rigor_model::faults::{Fault, FaultKind, FaultLevel};

/// The server's wall clock at microsecond 0 of a history that does not state one (the simulated rig).
pub const VIRTUAL_EPOCH: &str = "2026-01-01T00:00:00Z";

/// The namespace of a trial whose history does not name one.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Microseconds since the trial's start, on the harness's monotonic clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Micros(pub u64);

impl Micros {
    /// The trial's start.
    pub const ZERO: Micros = Micros(0);
    /// Later than anything.
    pub const MAX: Micros = Micros(u64::MAX);

    /// The instant `length` after the trial's start.
    pub fn from_duration(length: Duration) -> Micros {
        Micros(u64::try_from(length.as_micros()).unwrap_or(u64::MAX))
    }

    /// The time since the trial's start.
    pub fn as_duration(self) -> Duration {
        Duration::from_micros(self.0)
    }

    /// How long after `earlier` this is; zero where it is not after.
    pub fn since(self, earlier: Micros) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Micros {
    type Output = Micros;
    fn add(self, length: Duration) -> Micros {
        Micros(self.0.saturating_add(Micros::from_duration(length).0))
    }
}

impl Sub<Duration> for Micros {
    type Output = Micros;
    fn sub(self, length: Duration) -> Micros {
        Micros(self.0.saturating_sub(Micros::from_duration(length).0))
    }
}

impl fmt::Display for Micros {
    /// Seconds with three decimals: `12.345 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} s", self.0 / 1_000_000, self.0 / 1_000 % 1_000)
    }
}

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Position in the history, from 0, without holes.
    pub seq: u64,
    /// When the harness knew; the latest instant at which the fact can have happened.
    pub at: Micros,
    /// What happened.
    #[serde(flatten)]
    pub fact: Fact,
}

/// How an object version came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verb {
    /// A watch said that it was created.
    Added,
    /// A watch said that it was changed.
    Modified,
    /// A watch said that it was deleted; the object is its last state.
    Deleted,
    /// It stood in a list; it may have had this state for long.
    Listed,
}

/// Which end of a step, or of a fault, a record marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It begins.
    Begin,
    /// The step is settled; the fault is over.
    End,
}

/// How a process ended that nobody asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessEvent {
    /// It ended.
    Exited,
}

/// One fact of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Fact {
    /// The first record.
    TrialStarted {
        /// The scenario's name.
        scenario: String,
        /// The rig's name.
        rig: String,
        /// The row of a scenario's table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        case: Option<String>,
        /// The seed of everything drawn.
        seed: u64,
        /// RFC 3339 wall time of microsecond 0. Absent in virtual time, where times are exact and the
        /// epoch is [`VIRTUAL_EPOCH`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wall: Option<String>,
        /// The constants in force.
        constants: Constants,
        /// How bad the faults are that are injected into the trial.
        #[serde(default, skip_serializing_if = "FaultLevel::is_none")]
        faults: FaultLevel,
    },
    /// The namespace of the trial's own; without this fact it is [`DEFAULT_NAMESPACE`].
    Namespace {
        /// Its name.
        name: String,
    },
    /// A board's Node has another name than the board's letter.
    Board {
        /// The board: `a`.
        board: String,
        /// The name of its Node.
        node: String,
    },
    /// For histories without pulses: an observation is taken to arrive at most this long after the write.
    Delivery {
        /// The assumption.
        at_most: Micros,
    },
    /// A version of an object was seen.
    Object {
        /// Plural of the resource, as in the URL: `pods`, `nodes`, `leases`.
        stream: String,
        /// How it came to be known.
        verb: Verb,
        /// The whole object.
        object: Value,
    },
    /// The list that opens (or reopens) a stream is in; the stream sees again.
    Synced {
        /// Plural of the resource.
        stream: String,
    },
    /// The watch is lost; until the next `Synced` the stream is blind.
    Gap {
        /// Plural of the resource.
        stream: String,
        /// Why.
        reason: String,
    },
    /// A cheap list was answered: every write with a larger resourceVersion happened after `sent`, every
    /// other one before this record's `at`.
    Pulse {
        /// When the request was sent.
        sent: Micros,
        /// The list's resourceVersion.
        resource_version: u64,
    },
    /// A request of the scenario, and its answer.
    Request {
        /// Number of the request within the trial.
        id: u32,
        /// When it was sent.
        sent: Micros,
        /// Identity it was made under: `admin`, `board:NAME`, `anonymous`, or a token.
        as_user: String,
        /// HTTP method in capitals.
        method: String,
        /// Path with its query.
        path: String,
        /// JSON body sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
        /// Status code; 0 when there was no answer.
        status: u16,
        /// The answer: JSON, or a JSON string where it was no JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response: Option<Value>,
        /// The answer's Date header.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        date: Option<String>,
        /// Those of the answer's header fields that the scenario speaks of, by names in lower case; null where
        /// the answer had none of the name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, Option<String>>,
        /// Why there was no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A kubectl command was run to its end.
    Kubectl(Ran),
    /// An etcdctl command was run to its end.
    Etcdctl(Ran),
    /// A line on a board's console.
    Console {
        /// The board.
        board: String,
        /// The line without its end.
        line: String,
    },
    /// A line that a second scheduler printed, on its standard output or its standard error.
    SchedulerLine {
        /// Its name.
        name: String,
        /// The line without its end.
        line: String,
    },
    /// A board's power was switched.
    Power {
        /// The board.
        board: String,
        /// What was done.
        act: PowerAct,
        /// When it was begun; it was done at `at`.
        begun: Micros,
    },
    /// A board's link was cut, made worse or healed, or what the board is sent was made garbage.
    Link {
        /// The board.
        board: String,
        /// What was done.
        act: LinkAct,
        /// When it was begun; it was done at `at`.
        begun: Micros,
        /// With `delay`: how much longer a packet takes, one way, in microseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        micros: Option<u64>,
        /// With `loss`: how many percent of the packets are lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<u8>,
    },
    /// Something was done to the control plane.
    ControlPlane {
        /// What was done.
        act: ControlPlaneAct,
        /// When it was begun; it was done at `at`.
        begun: Micros,
    },
    /// A second scheduler was started or stopped.
    Scheduler {
        /// Its name: the `spec.schedulerName` of the pods that are its own.
        name: String,
        /// What was done.
        act: SchedulerAct,
        /// When it was begun; it was done at `at`.
        begun: Micros,
    },
    /// An image was put on a board, which had no power meanwhile, and the board was started.
    Flash {
        /// The board.
        board: String,
        /// The image's name in the rig file; the one that the rig's boards begin with if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// SHA-256 of the image, in hex.
        sha256: String,
        /// Whether what the board had stored was erased.
        erased: bool,
        /// When it was begun; the board was started at `at`.
        begun: Micros,
    },
    /// A line was sent to a board's console.
    Sent {
        /// The board.
        board: String,
        /// The line without its end.
        line: String,
    },
    /// The control plane serves (first start, or again).
    ControlPlaneReady {},
    /// A fault was injected, or one that lasts is over. Faults that last are [`FaultKind::Lose`], a silent
    /// [`FaultKind::Cut`], [`FaultKind::PowerCut`] and [`FaultKind::Kill`]; of the others, and of those that outlast the
    /// trial, there is only the begin.
    ///
    /// What a fault does to power and processes is told by this fact alone: `Power`, `Link` and `ControlPlane` are the
    /// scenario's acts. A killed server is followed by `Gap`s and, when it serves again, by `ControlPlaneReady`.
    Fault {
        /// Where, at which opportunity, and what.
        fault: Fault,
        /// Which end.
        phase: Phase,
    },
    /// A process ended unasked.
    Process {
        /// Which: `control-plane`, `board:NAME`, `scheduler:NAME`.
        who: String,
        /// What it did.
        event: ProcessEvent,
        /// Exit code; -1 when a signal ended it.
        status: i32,
    },
    /// A step of the scenario's plan begins or ends.
    Step {
        /// Position in the plan (setup, steps and cleanup in one row, repeats unrolled).
        index: usize,
        /// Which end.
        phase: Phase,
    },
    /// A step with `as:` gave its instant a name.
    Instant {
        /// The name.
        name: String,
    },
    /// Something done outside the API, in histories recorded elsewhere.
    Mark {
        /// What was done: `heartbeats-stopped`.
        name: String,
        /// To what: a node's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
    },
    /// The harness itself was held up; the stall ended at `at`.
    Stall {
        /// How long it lasted.
        length: Micros,
    },
    /// The last record.
    TrialEnded {},
}

impl Fact {
    /// The line of a console, or of what a second scheduler printed.
    pub(crate) fn line(&self) -> Option<&str> {
        let (Fact::Console { line, .. } | Fact::SchedulerLine { line, .. }) = self else { return None };
        Some(line)
    }

    /// What was done to a board's link since `begun`.
    pub fn link(board: &str, change: LinkChange, begun: Micros) -> Fact {
        let (micros, percent) = match change {
            LinkChange::Cut | LinkChange::Heal | LinkChange::Garbage(_) => (None, None),
            LinkChange::Delay(by) => (Some(Micros::from_duration(by).0), None),
            LinkChange::Loss(percent) => (None, Some(percent)),
        };
        Fact::Link { board: board.to_owned(), act: change.act(), begun, micros, percent }
    }
}

/// What was done to a link, in few words: `delay by 200ms`.
pub fn link_words(act: LinkAct, micros: Option<u64>, percent: Option<u8>) -> String {
    let by = micros.map(|micros| format!(" by {:?}", Duration::from_micros(micros)));
    let of = percent.map(|percent| format!(" of {percent}%"));
    format!("{}{}", act.name(), by.or(of).unwrap_or_default())
}

/// What was put on a board, in words.
pub fn flash_words(image: Option<&str>, sha256: &str, erased: bool) -> String {
    let image = image.map_or_else(|| "the rig's own image".to_owned(), |name| format!("image {name}"));
    let erased = if erased { ", storage erased" } else { "" };
    format!("{image}, sha256 {sha256}{erased}")
}

/// A trial's records, growing at the end while the trial runs.
#[derive(Debug, Clone, Default)]
pub struct History {
    records: Vec<Record>,
    index: Index,
}

impl History {
    /// A history without records.
    pub fn new() -> History {
        History::default()
    }

    /// Adds a fact known at `at`, and returns its record. Facts come in the order of `at`; an earlier
    /// `at` than the last record's is raised to it.
    pub fn push(&mut self, at: Micros, fact: Fact) -> &Record {
        let at = self.records.last().map_or(at, |last| at.max(last.at));
        let seq = self.records.len() as u64;
        self.records.push(Record { seq, at, fact });
        self.index.note(&self.records);
        &self.records[self.records.len() - 1]
    }

    /// All records, oldest first; a record's index is its `seq`.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether nothing was recorded yet.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// When the last record was made.
    pub fn last_at(&self) -> Micros {
        self.records.last().map_or(Micros::ZERO, |record| record.at)
    }

    /// The trial's own namespace.
    pub fn namespace(&self) -> &str {
        self.index.namespace()
    }

    /// The name of a board's Node: the board's own, unless a record says otherwise.
    pub fn node_of<'a>(&'a self, board: &'a str) -> &'a str {
        self.index.nodes.get(board).map_or(board, String::as_str)
    }

    /// What is known about the records without reading them all.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_one_flat_object() {
        let mut history = History::new();
        history.push(
            Micros(123),
            Fact::Object { stream: "nodes".into(), verb: Verb::Added, object: json!({"kind": "Node"}) },
        );
        let record =
            history.push(Micros(122), Fact::Pulse { sent: Micros(100), resource_version: 7 }).clone();
        assert_eq!(
            serde_json::to_string(&history.records()[0]).expect("json"),
            r#"{"seq":0,"at":123,"kind":"Object","stream":"nodes","verb":"ADDED","object":{"kind":"Node"}}"#
        );
        let line = serde_json::to_string(&record).expect("json");
        assert_eq!(line, r#"{"seq":1,"at":123,"kind":"Pulse","sent":100,"resourceVersion":7}"#);
        assert_eq!(serde_json::from_str::<Record>(&line).expect("record"), record);
    }

    #[test]
    fn a_link_says_what_was_done_by_how_much() {
        let begun = Micros(5);
        let line = |change| serde_json::to_string(&Fact::link("a", change, begun)).expect("json");
        let old = r#"{"kind":"Link","board":"a","act":"cut","begun":5}"#;
        assert_eq!(line(LinkChange::Cut), old);
        let slow = LinkChange::Delay(Duration::from_millis(200));
        assert_eq!(line(slow), r#"{"kind":"Link","board":"a","act":"delay","begun":5,"micros":200000}"#);
        assert_eq!(
            line(LinkChange::Loss(20)),
            r#"{"kind":"Link","board":"a","act":"loss","begun":5,"percent":20}"#
        );
        let noise = LinkChange::Garbage(Garbage::Noise);
        assert_eq!(line(noise), r#"{"kind":"Link","board":"a","act":"noise","begun":5}"#);
        let garbled = LinkChange::Garbage(Garbage::Bodies);
        for change in [LinkChange::Cut, LinkChange::Heal, slow, LinkChange::Loss(0), noise, garbled] {
            let read: Fact = serde_json::from_str(&line(change)).expect("fact");
            assert_eq!(read, Fact::link("a", change, begun));
        }
        assert_eq!(link_words(LinkAct::Delay, Some(200_000), None), "delay by 200ms");
        assert_eq!(link_words(LinkAct::Loss, None, Some(20)), "loss of 20%");
        assert_eq!(link_words(LinkAct::Heal, None, None), "heal");
    }

    #[test]
    fn instants_are_shown_in_seconds() {
        assert_eq!(Micros(12_345_678).to_string(), "12.345 s");
        assert_eq!(Micros(5) - Duration::from_secs(1), Micros::ZERO);
        assert_eq!(Micros(5) + Duration::from_micros(6), Micros(11));
    }
}
