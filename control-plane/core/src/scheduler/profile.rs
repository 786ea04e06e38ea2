//! What a profile is: a named table of filters and scores, and its rules of accounting.
//!
//! A profile is data; the choice in `choice.rs` knows none by name. Another dialect is another table.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::accounting::Assumed;
use super::amounts::{Amounts, RATED};
use super::ledger::{Facts, Figure, KnownNode, Ledger};
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
    /// The same for what nodes can be short of, by the ledger's numbers of the resources.
    counted: Vec<(Option<usize>, i128)>,
    /// `spec.nodeSelector`.
    pub selector: Option<&'a Map<String, Value>>,
    /// `spec.tolerations`.
    pub tolerations: &'a [Value],
    /// The node that it is bound to already, if any.
    pub node_name: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    /// Reads `pod` as the ledger's profile does.
    #[must_use]
    pub fn new(ledger: &Ledger, pod: &'a Value) -> Self {
        let request = (ledger.profile().request)(pod);
        let counted = request.iter().filter(|(name, asked)| *asked > 0 && !name.starts_with(RATED));
        Self {
            pod,
            counted: counted.map(|(name, asked)| (ledger.column(name), asked)).collect(),
            request,
            selector: json::get(pod, &["spec", "nodeSelector"]).and_then(Value::as_object),
            tolerations: json::list(pod, &["spec", "tolerations"]),
            node_name: pod::node(pod),
        }
    }
}

/// A pod before a node that may take it.
#[derive(Debug)]
pub struct Candidate<'a> {
    wanted: &'a Wanted<'a>,
    ledger: &'a Ledger,
    slot: usize,
    /// What most filters ask of the node.
    pub facts: Facts,
    /// What of it is taken besides what the ledger says.
    beside: Option<&'a Amounts>,
    /// Whether enough is left of everything that is counted; what is short is only looked for where it is not.
    pub has_room: bool,
    /// Everything else, for the few that ask.
    pub snapshot: &'a Snapshot,
    /// Bindings that are on their way.
    pub assumed: &'a Assumed,
}

impl<'a> Candidate<'a> {
    /// `wanted` before the node in that place of the ledger, of which so much is taken `beside` what the ledger says.
    #[must_use]
    pub fn new(
        wanted: &'a Wanted<'a>,
        (ledger, slot): (&'a Ledger, usize),
        beside: Option<&'a Amounts>,
        snapshot: &'a Snapshot,
        assumed: &'a Assumed,
    ) -> Self {
        let facts = ledger.facts(slot);
        let mut candidate = Self { wanted, ledger, slot, facts, beside, has_room: true, snapshot, assumed };
        candidate.has_room = match candidate.beside {
            None => wanted.counted.iter().all(|(column, asked)| {
                let figure = column.map_or_else(Figure::default, |column| ledger.figure(column, slot));
                *asked <= figure.offered - figure.taken
            }),
            Some(_) => {
                wanted.request.iter().all(|(name, _)| name.starts_with(RATED) || !candidate.is_short_of(name))
            }
        };
        candidate
    }

    /// The pod.
    #[must_use]
    pub fn wanted(&self) -> &'a Wanted<'a> {
        self.wanted
    }

    /// The node, which costs a look far from the figures.
    #[must_use]
    pub fn node(&self) -> Option<&'a KnownNode> {
        self.ledger.known(self.slot)
    }

    /// The name of the node.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.node().map(KnownNode::name).unwrap_or_default()
    }

    /// What there is of a resource, before this pod. More may be taken than there is, where pods were bound past the scheduler.
    #[must_use]
    pub fn figure(&self, resource: &str) -> Figure {
        let listed = self.ledger.column(resource);
        let mut figure = listed.map_or_else(Figure::default, |column| self.ledger.figure(column, self.slot));
        figure.taken += self.beside.map_or(0, |beside| beside.get(resource));
        figure
    }

    /// Whether the pod asks for more of a resource than is left. Asking for nothing always fits.
    #[must_use]
    pub fn is_short_of(&self, resource: &str) -> bool {
        let (asked, figure) = (self.wanted.request.get(resource), self.figure(resource));
        asked > 0 && asked > figure.offered - figure.taken
    }

    /// What is left of a resource after this pod, as a share of what the node offers; nothing where it offers none
    /// (SCHED-40, SCHED-42).
    #[must_use]
    pub fn share_left(&self, resource: &str) -> Share {
        let figure = self.figure(resource);
        Share::new(figure.offered - figure.taken - self.wanted.request.get(resource), figure.offered)
    }

    /// Adds a reason where too little is left of a resource.
    pub(super) fn tell_if_short(&self, resource: &str, reasons: &mut Vec<Reason>) {
        if !self.has_room && self.is_short_of(resource) {
            reasons.push(format!("Insufficient {resource}").into());
        }
    }
}
