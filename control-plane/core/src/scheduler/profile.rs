//! What a profile is: a named table of filters and scores, and its rules of accounting.
//!
//! A profile is data; the choice in `choice.rs` knows none by name. Another dialect is another table.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::accounting::Assumed;
use super::amounts::Amounts;
use super::ledger::KnownNode;
use super::score::Share;
use crate::snapshot::Snapshot;
use crate::{json, pod};

/// A way to choose nodes.
#[derive(Debug)]
pub struct Profile {
    /// Its name, as flags and logs have it.
    pub name: &'static str,
    /// Reporting component of its events.
    pub component: &'static str,
    /// What a pod asks for.
    pub request: fn(&Value) -> Amounts,
    /// What a node offers.
    pub offer: fn(&Value) -> Amounts,
    /// Whether a pod that is bound is still to be subtracted from what its node offers, given the resourceVersion
    /// of the node's last report.
    pub outstanding: fn(pod: &Value, covered: u64) -> bool,
    /// In this order; a node is counted under the first filter that it fails.
    pub filters: &'static [Filter],
    /// The mean of these is the score; the highest wins.
    pub scores: &'static [ScorePlugin],
    /// Whether the message of a failure goes on with what preemption would come to, as Kubernetes' does.
    pub tells_preemption: bool,
}

/// Why a node will not do, in the words of the FailedScheduling message.
pub type Reason = Cow<'static, str>;

/// Rules nodes out.
#[derive(Debug)]
pub struct Filter {
    /// Its name.
    pub name: &'static str,
    /// Adds every reason for which this node will not do; none if it will.
    pub reasons: fn(&Candidate<'_>, &mut Vec<Reason>),
    /// Whether it can rule out any node for this pod. One that cannot is not asked about each of them.
    pub applies: fn(&Wanted<'_>) -> bool,
    /// Whether the node might do if other pods left it.
    pub depends_on_pods: bool,
}

/// Rates nodes.
#[derive(Debug)]
pub struct ScorePlugin {
    /// Its name.
    pub name: &'static str,
    /// How much it counts beside the others.
    pub weight: u32,
    /// How it rates.
    pub rate: Rate,
}

/// How a plugin rates a node.
#[derive(Debug)]
pub enum Rate {
    /// By a share, from nothing to one, that depends on this node alone.
    Share(fn(&Candidate<'_>) -> Share),
    /// The fewer the better, in whole hundredths of the most that any candidate has.
    Fewest(fn(&Candidate<'_>) -> u64),
}

/// A pod that looks for a node, with what filters and scores ask of it read once.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The pod.
    pub pod: &'a Value,
    /// What it asks for.
    pub request: Amounts,
    /// `spec.nodeSelector`.
    pub selector: Option<&'a Map<String, Value>>,
    /// `spec.tolerations`.
    pub tolerations: &'a [Value],
    /// The node that it is bound to already, if any.
    pub node_name: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    /// Reads `pod` as `profile` does.
    #[must_use]
    pub fn new(profile: &Profile, pod: &'a Value) -> Self {
        Self {
            pod,
            request: (profile.request)(pod),
            selector: json::get(pod, &["spec", "nodeSelector"]).and_then(Value::as_object),
            tolerations: json::list(pod, &["spec", "tolerations"]),
            node_name: pod::node(pod),
        }
    }
}

/// A pod before a node that may take it.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// The pod.
    pub wanted: &'a Wanted<'a>,
    /// The node.
    pub node: &'a KnownNode,
    /// What of it is taken, before this pod.
    pub taken: Cow<'a, Amounts>,
    /// Whether enough is left of everything that is counted; what is short is only looked for where it is not.
    pub has_room: bool,
    /// Everything else, for the few that ask.
    pub snapshot: &'a Snapshot,
    /// Bindings that are on their way.
    pub assumed: &'a Assumed,
}

impl<'a> Candidate<'a> {
    /// `wanted` before `node`, of which so much is taken.
    #[must_use]
    pub fn new(
        wanted: &'a Wanted<'a>,
        node: &'a KnownNode,
        taken: Cow<'a, Amounts>,
        snapshot: &'a Snapshot,
        assumed: &'a Assumed,
    ) -> Self {
        let has_room = wanted.request.fits_into(&node.offer, &taken);
        Self { wanted, node, taken, has_room, snapshot, assumed }
    }

    /// What is left of a resource before this pod, in nano-units; negative where pods were bound past the scheduler.
    #[must_use]
    pub fn free(&self, resource: &str) -> i128 {
        self.node.offer.get(resource) - self.taken.get(resource)
    }

    /// Whether the pod asks for more of a resource than is left. Asking for nothing always fits.
    #[must_use]
    pub fn is_short_of(&self, resource: &str) -> bool {
        let asked = self.wanted.request.get(resource);
        asked > 0 && asked > self.free(resource)
    }

    /// What is left of a resource after this pod, as a share of what the node offers; nothing where it offers none
    /// (SCHED-40, SCHED-42).
    #[must_use]
    pub fn share_left(&self, resource: &str) -> Share {
        Share::new(self.free(resource) - self.wanted.request.get(resource), self.node.offer.get(resource))
    }

    /// Adds a reason where too little is left of a resource.
    pub(super) fn tell_if_short(&self, resource: &str, reasons: &mut Vec<Reason>) {
        if !self.has_room && self.is_short_of(resource) {
            reasons.push(format!("Insufficient {resource}").into());
        }
    }
}
