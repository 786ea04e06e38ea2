//! Bindings that are on their way: decided, and not in the snapshot yet.

use std::collections::BTreeMap;

use serde_json::Value;

use super::amounts::Amounts;
use super::attempt::SchedulerConfig;
use super::ledger::Ledger;
use super::ports::HostPort;
use super::profile::Profile;
use crate::snapshot::{Key, Snapshot};
use crate::{json, pod};

/// Bindings that were decided and are not in the snapshot yet. They count in full, so that no number of concurrent
/// creates can over-commit a node (SCHED-56).
///
/// A binding is assumed before its write begins and forgotten when the write was refused or is in the snapshot.
#[derive(Debug, Clone, Default)]
pub struct Assumed {
    pods: BTreeMap<(Key, String), OnItsWay>,
}

#[derive(Debug, Clone)]
struct OnItsWay {
    node: String,
    /// What it asks for, in the eyes of each profile.
    requests: Vec<(&'static str, Amounts)>,
    ports: Vec<HostPort>,
}

impl Assumed {
    /// Counts `pod` on `node` from now on.
    pub fn assume(&mut self, config: &SchedulerConfig, pod: &Value, node: &str) {
        let place = (Key::of(pod), json::uid(pod).to_owned());
        let requests = config.distinct_profiles().map(|profile| (profile.name, (profile.request)(pod)));
        let requests = requests.collect();
        self.pods.insert(place, OnItsWay { node: node.to_owned(), requests, ports: HostPort::all_of(pod) });
    }

    /// Counts the pod with this uid no longer.
    pub fn forget(&mut self, key: &Key, uid: &str) {
        self.pods.remove(&(key.clone(), uid.to_owned()));
    }

    /// Whether nothing is on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// The host ports that pods on their way to `node` will have.
    pub(super) fn ports_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a HostPort> {
        self.pods.values().filter(move |it| it.node == node).flat_map(|it| &it.ports)
    }

    /// What is on its way to each node, the pod under `except` aside.
    fn by_node(&self, profile: &Profile, snapshot: &Snapshot, except: &Key) -> BTreeMap<&str, Amounts> {
        let mut sums: BTreeMap<&str, Amounts> = BTreeMap::new();
        for ((key, uid), it) in self.pods.iter().filter(|((key, _), _)| key != except) {
            let arrived = snapshot
                .at("pods", key)
                .is_some_and(|there| json::uid(there) == uid && pod::node(there).is_some());
            let request = it.requests.iter().find(|(name, _)| *name == profile.name);
            if let Some((_, request)) = request.filter(|_| !arrived) {
                sums.entry(&it.node).or_default().add_all(request);
            }
        }
        sums
    }
}

/// What is taken of nodes beside what a ledger says, from the view of one pod.
pub(super) struct Beside<'a> {
    on_their_way: BTreeMap<&'a str, Amounts>,
    /// The pod's own, where it is bound already.
    own: Option<(&'a str, &'a Amounts)>,
}

impl<'a> Beside<'a> {
    pub(super) fn new(ledger: &'a Ledger, snapshot: &Snapshot, assumed: &'a Assumed, pod: &Key) -> Self {
        Self { on_their_way: assumed.by_node(ledger.profile(), snapshot, pod), own: ledger.subtracted(pod) }
    }

    /// What is taken of `node` more than the ledger says; less, where it is negative.
    pub(super) fn on(&self, node: &str) -> Option<Amounts> {
        let coming = if self.on_their_way.is_empty() { None } else { self.on_their_way.get(node).cloned() };
        match self.own.filter(|(own, _)| *own == node) {
            Some((_, request)) => {
                let mut beside = coming.unwrap_or_default();
                beside.take_all(request);
                Some(beside)
            }
            None => coming,
        }
    }
}
