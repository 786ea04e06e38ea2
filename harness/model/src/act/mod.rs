//! Acts: what a scenario does to the API and to the rig.
//!
//! Types here, their reading in [`api`], [`rig`] and [`played`]. Texts may hold `${NAME}`, which the
//! runner fills in when it acts.

pub(crate) mod api;
mod manifest;
pub(crate) mod played;
pub(crate) mod rig;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cel::Cel;
use crate::constants::Constants;
use crate::expr::{Instant, Length};
use crate::kinds::ObjectKind;
use crate::pattern::Pattern;

/// Under which identity a request is made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum User {
    /// May do everything.
    #[default]
    Admin,
    /// A board's own token.
    Board(String),
    /// No token at all.
    Anonymous,
    /// A token as it is.
    Token(String),
}

impl fmt::Display for User {
    /// As it stands in scenarios and in the history: `admin`, `board:a`, `anonymous`, `token:TEXT`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            User::Admin => f.write_str("admin"),
            User::Board(board) => write!(f, "board:{board}"),
            User::Anonymous => f.write_str("anonymous"),
            User::Token(token) => write!(f, "token:{token}"),
        }
    }
}

/// What all acts on the API have in common.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Api {
    /// Under which identity.
    pub user: User,
    /// Where namespaced objects are that do not say so themselves; the trial's own if absent.
    pub namespace: Option<String>,
    /// What the answer has to be.
    pub answer: Answer,
}

/// What an answer has to be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// One of these status codes; empty: any 2xx.
    pub status: Vec<u16>,
    /// What the body has to look like.
    pub body: Option<Pattern>,
    /// What has to hold of body and status.
    pub cel: Option<Cel>,
    /// What header fields have to look like, by their names in lower case.
    pub headers: BTreeMap<String, Pattern>,
}

impl Answer {
    /// Whether a status code is right.
    pub fn accepts(&self, status: u16) -> bool {
        if self.status.is_empty() { (200..300).contains(&status) } else { self.status.contains(&status) }
    }
}

/// Creates what is missing and merge-patches what is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Apply {
    /// The objects, in order.
    pub objects: Vec<Value>,
    /// Identity, namespace, answer (to each of the writes).
    pub api: Api,
}

/// POSTs an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Create {
    /// The object.
    pub object: Value,
    /// Identity, namespace, answer.
    pub api: Api,
}

/// PUTs an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Replace {
    /// The object, whole.
    pub object: Value,
    /// `status`, `scale`.
    pub subresource: Option<String>,
    /// Identity, namespace, answer.
    pub api: Api,
}

/// The type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// JSON merge patch.
    Merge,
    /// JSON patch: a list of operations.
    Json,
    /// Kubernetes' strategic merge patch.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchType {
    /// Every type.
    pub const ALL: [PatchType; 4] =
        [PatchType::Merge, PatchType::Json, PatchType::Strategic, PatchType::Apply];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            PatchType::Merge => "merge",
            PatchType::Json => "json",
            PatchType::Strategic => "strategic",
            PatchType::Apply => "apply",
        }
    }

    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Json => "application/json-patch+json",
            PatchType::Strategic => "application/strategic-merge-patch+json",
            // JSON is YAML.
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }
}

/// An object by kind and name.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Its kind.
    pub kind: &'static ObjectKind,
    /// Its name.
    pub name: String,
}

/// PATCHes an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// Which object.
    pub target: Target,
    /// How the patch is to be read.
    pub patch_type: PatchType,
    /// The patch.
    pub patch: Value,
    /// Who is said to change the fields; always there with [`PatchType::Apply`].
    pub field_manager: Option<String>,
    /// Takes fields from other managers; with [`PatchType::Apply`] only.
    pub force: bool,
    /// `status`, `scale`.
    pub subresource: Option<String>,
    /// Identity, namespace, answer.
    pub api: Api,
}

/// What becomes of an object's dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

impl Propagation {
    /// Every one.
    pub const ALL: [Propagation; 3] = [Propagation::Background, Propagation::Foreground, Propagation::Orphan];

    /// The word for it in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Propagation::Background => "background",
            Propagation::Foreground => "foreground",
            Propagation::Orphan => "orphan",
        }
    }

    /// The word for it in the API.
    pub fn api_name(self) -> &'static str {
        match self {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        }
    }
}

/// DELETEs an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// Which object.
    pub target: Target,
    /// `propagationPolicy`.
    pub propagation: Option<Propagation>,
    /// `gracePeriodSeconds`; whole seconds.
    pub grace: Option<Duration>,
    /// Identity, namespace, answer.
    pub api: Api,
}

/// Changes the scale subresource.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// Which object.
    pub target: Target,
    /// How many.
    pub replicas: u32,
    /// Identity, namespace, answer.
    pub api: Api,
}

/// Sets or clears a node's `spec.unschedulable`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cordon {
    /// The node.
    pub node: String,
    /// Set, not cleared.
    pub on: bool,
    /// Identity, answer.
    pub api: Api,
}

/// POSTs a Binding.
#[derive(Debug, Clone, PartialEq)]
pub struct Bind {
    /// The pod.
    pub pod: String,
    /// The node.
    pub node: String,
    /// The pod's uid as a precondition.
    pub uid: Option<String>,
    /// Identity, namespace, answer.
    pub api: Api,
}

/// Any request.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestAct {
    /// Method in capitals.
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// JSON body.
    pub body: Option<Value>,
    /// Its media type; `application/json` if absent.
    pub content_type: Option<String>,
    /// Header fields to send, by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Identity, answer.
    pub api: Api,
}

/// What is done to a board's power.
#[derive(Debug, Clone, PartialEq)]
pub struct Power {
    /// The board.
    pub board: String,
    /// What is done.
    pub act: PowerAct,
}

/// What can be done to a board's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerAct {
    /// Power off.
    Cut,
    /// Power on.
    Restore,
    /// Off and on again.
    Cycle,
    /// The processor stops.
    Hang,
    /// It goes on.
    Resume,
}

impl PowerAct {
    /// Every one.
    pub const ALL: [PowerAct; 5] =
        [PowerAct::Cut, PowerAct::Restore, PowerAct::Cycle, PowerAct::Hang, PowerAct::Resume];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            PowerAct::Cut => "cut",
            PowerAct::Restore => "restore",
            PowerAct::Cycle => "cycle",
            PowerAct::Hang => "hang",
            PowerAct::Resume => "resume",
        }
    }
}

/// What is done to a board's link.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// The board.
    pub board: String,
    /// What is done; a delay may be stated by constants.
    pub change: LinkChange<Length>,
}

/// The words for what can be done to a board's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkAct {
    /// Nothing passes.
    Cut,
    /// It passes again, as fast and as surely as before.
    Heal,
    /// What passes takes longer.
    Delay,
    /// Some of what is sent is lost.
    Loss,
}

impl LinkAct {
    /// Every one.
    pub const ALL: [LinkAct; 4] = [LinkAct::Cut, LinkAct::Heal, LinkAct::Delay, LinkAct::Loss];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            LinkAct::Cut => "cut",
            LinkAct::Heal => "heal",
            LinkAct::Delay => "delay",
            LinkAct::Loss => "loss",
        }
    }
}

/// What can be done to a board's link, with its amount.
///
/// A delay and a loss may be in force together; each replaces what was said of it before, and neither mends
/// a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkChange<D = Duration> {
    /// Nothing passes.
    Cut,
    /// It passes again; a delay and a loss end, too.
    Heal,
    /// Each packet takes so much longer, in each direction.
    Delay(D),
    /// So many percent of the packets are lost, in each direction; 0 to 100.
    Loss(u8),
}

impl<D> LinkChange<D> {
    /// The word for it.
    pub fn act(&self) -> LinkAct {
        match self {
            LinkChange::Cut => LinkAct::Cut,
            LinkChange::Heal => LinkAct::Heal,
            LinkChange::Delay(_) => LinkAct::Delay,
            LinkChange::Loss(_) => LinkAct::Loss,
        }
    }
}

impl LinkChange<Length> {
    /// With the delay that these constants make of it.
    pub fn resolve(&self, constants: &Constants) -> LinkChange {
        match self {
            LinkChange::Cut => LinkChange::Cut,
            LinkChange::Heal => LinkChange::Heal,
            LinkChange::Delay(by) => LinkChange::Delay(by.resolve(constants)),
            LinkChange::Loss(percent) => LinkChange::Loss(*percent),
        }
    }
}

/// What can be done to the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlPlaneAct {
    /// An orderly stop and a start.
    Restart,
    /// An orderly stop.
    Stop,
    /// A stop without warning.
    Kill,
    /// A start.
    Start,
}

impl ControlPlaneAct {
    /// Every one.
    pub const ALL: [ControlPlaneAct; 4] =
        [ControlPlaneAct::Restart, ControlPlaneAct::Stop, ControlPlaneAct::Kill, ControlPlaneAct::Start];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            ControlPlaneAct::Restart => "restart",
            ControlPlaneAct::Stop => "stop",
            ControlPlaneAct::Kill => "kill",
            ControlPlaneAct::Start => "start",
        }
    }
}

/// A node that the harness plays: created at the first use of its name, changed by later ones.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayedNode {
    /// Its name.
    pub name: String,
    /// `status.allocatable`.
    pub allocatable: Option<Map<String, Value>>,
    /// `status.capacity`; as allocatable if absent.
    pub capacity: Option<Map<String, Value>>,
    /// Labels, laid over those it has.
    pub labels: BTreeMap<String, String>,
    /// Annotations, laid over those it has.
    pub annotations: BTreeMap<String, String>,
    /// `spec.taints`, all of them.
    pub taints: Option<Vec<Value>>,
    /// `spec.unschedulable`.
    pub unschedulable: Option<bool>,
    /// Its Ready condition.
    pub state: Option<NodeState>,
    /// `leaseDurationSeconds`; the constant if absent. Whole seconds.
    pub lease_duration: Option<Duration>,
    /// How it renews its lease.
    pub renew: Option<Renew>,
    /// When it writes its status.
    pub report: Option<Report>,
}

/// What a played node reports about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// Ready=True; the default.
    Ready,
    /// Ready=False.
    Unready,
    /// Ready=Unknown.
    Unknown,
    /// No status at all.
    Bare,
}

impl NodeState {
    /// Every one.
    pub const ALL: [NodeState; 4] =
        [NodeState::Ready, NodeState::Unready, NodeState::Unknown, NodeState::Bare];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            NodeState::Ready => "ready",
            NodeState::Unready => "unready",
            NodeState::Unknown => "unknown",
            NodeState::Bare => "bare",
        }
    }
}

/// How a played node renews its lease.
#[derive(Debug, Clone, PartialEq)]
pub enum Renew {
    /// That often; the default is `renewInterval`.
    Every(Length),
    /// No more.
    Stop,
    /// It has no lease at all.
    Never,
}

/// When a played node writes its status.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Once, in this step; the default.
    Now,
    /// Now and then that often.
    Every(Length),
    /// Once, at that instant or in this step if it is past, and not before.
    At(Instant),
    /// Not at all.
    Never,
}

/// Runs kubectl to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Kubectl {
    /// Arguments after `kubectl`.
    pub args: Vec<String>,
    /// Text, or an object that is written as JSON.
    pub stdin: Option<Value>,
    /// The exit code that is right.
    pub exit_code: i32,
    /// What standard output must look like; a plain text must be contained in it.
    pub stdout: Option<Pattern>,
    /// What standard error must look like; a plain text must be contained in it.
    pub stderr: Option<Pattern>,
}

/// Waits, and does nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// Until then.
    pub until: Instant,
}

/// Lets virtual time pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Advance {
    /// So much of it.
    pub by: Length,
}
