//! Bindings that are on their way: decided, and not in the snapshot yet.

use std::collections::BTreeMap;

use serde_json::Value;

use super::amounts::Amounts;
use super::attempt::SchedulerConfig;
use super::ledger::Ledger;
use super::ports::HostPort;
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

    /// What is on its way to each node, the pod under `except` aside, by where the node is in the ledger.
    fn by_slot(&self, ledger: &Ledger, snapshot: &Snapshot, except: &Key) -> BTreeMap<usize, Amounts> {
        let mut sums: BTreeMap<usize, Amounts> = BTreeMap::new();
        for ((key, uid), it) in self.pods.iter().filter(|((key, _), _)| key != except) {
            let Some(slot) = ledger.slot(&it.node) else { continue };
            let arrived = snapshot
                .at("pods", key)
                .is_some_and(|there| json::uid(there) == uid && pod::node(there).is_some());
            let request = it.requests.iter().find(|(name, _)| *name == ledger.profile().name);
            if let Some((_, request)) = request.filter(|_| !arrived) {
                sums.entry(slot).or_default().add_all(request);
            }
        }
        sums
    }
}

/// What is taken of nodes beside what a ledger says, from the view of one pod: it has few nodes, and every node is looked up in it.
pub(super) struct Beside {
    /// By where the node is in the ledger.
    taken: Vec<(usize, Amounts)>,
}

impl Beside {
    pub(super) fn new(ledger: &Ledger, snapshot: &Snapshot, assumed: &Assumed, pod: &Key) -> Self {
        let mut taken = assumed.by_slot(ledger, snapshot, pod);
        // The pod's own, where it is bound already.
        if let Some((node, request)) = ledger.subtracted(pod)
            && let Some(slot) = ledger.slot(node)
        {
            taken.entry(slot).or_default().take_all(request);
        }
        Self { taken: taken.into_iter().collect() }
    }

    /// What is taken of the node there more than the ledger says; less, where it is negative.
    pub(super) fn on(&self, slot: usize) -> Option<&Amounts> {
        let found = self.taken.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
        self.taken.get(found).map(|(_, taken)| taken)
    }
}
