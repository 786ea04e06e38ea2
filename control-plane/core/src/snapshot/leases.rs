//! When each node's lease was renewed, on the monotonic clock (NODE-03, NODE-11, NODE-26).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::Key;
use crate::json;

/// Namespace of the nodes' leases.
pub const LEASE_NAMESPACE: &str = "kube-node-lease";

#[derive(Debug, Clone, PartialEq, Eq)]
struct LeaseClock {
    counted_from: Duration,
    /// False while `counted_from` is a period of grace (start of the process, node made anew).
    renewed: bool,
}

/// Leases by the names of their nodes.
#[derive(Debug, Clone, Default)]
pub(super) struct Leases {
    clocks: BTreeMap<String, LeaseClock>,
    /// `leaseDurationSeconds` as last seen.
    seconds: BTreeMap<String, u64>,
}

impl Leases {
    /// The instant that the lease is counted from.
    pub(super) fn counted_from(&self, node: &str) -> Option<Duration> {
        self.clocks.get(node).map(|lease| lease.counted_from)
    }

    /// Whether that instant is a renewal, and no period of grace.
    pub(super) fn was_renewed(&self, node: &str) -> bool {
        self.clocks.get(node).is_some_and(|lease| lease.renewed)
    }

    /// `leaseDurationSeconds` as last seen.
    pub(super) fn duration(&self, node: &str) -> Option<Duration> {
        self.seconds.get(node).copied().map(Duration::from_secs)
    }

    /// The nodes whose leases are not fresh: run out, where `duration` holds for one that says none, or in a period of grace.
    pub(super) fn without_fresh(
        &self,
        duration: Duration,
        now: Duration,
    ) -> impl Iterator<Item = &str> + use<'_> {
        let mut seconds = self.seconds.iter().peekable();
        // Both are in the order of the names, so one walk along both finds each node's.
        let stale = self.clocks.iter().filter(move |(name, lease)| {
            while seconds.next_if(|(of, _)| of < name).is_some() {}
            let own = seconds
                .peek()
                .filter(|(of, _)| of == name)
                .map(|(_, seconds)| Duration::from_secs(**seconds));
            !lease.renewed || now.saturating_sub(lease.counted_from) >= own.unwrap_or(duration)
        });
        stale.map(|(name, _)| name.as_str())
    }

    /// A node has one full lease from here on.
    pub(super) fn grant(&mut self, node: &str, now: Duration) {
        self.clocks.insert(node.to_owned(), LeaseClock { counted_from: now, renewed: false });
    }

    /// A node is gone; what its lease said of its duration stays.
    pub(super) fn forget(&mut self, node: &str) {
        self.clocks.remove(node);
    }

    /// Takes in an accepted write of an object in [`LEASE_NAMESPACE`].
    pub(super) fn observe(&mut self, key: &Key, old: Option<&Value>, new: Option<&Value>, now: Duration) {
        let renew_time = |lease| json::text(lease, &["spec", "renewTime"]);
        let renewed = new.is_some_and(|new| {
            renew_time(new).is_some() && old.is_none_or(|old| renew_time(old) != renew_time(new))
        });
        if renewed {
            self.clocks.insert(key.name.clone(), LeaseClock { counted_from: now, renewed: true });
        }
        if let Some(lease) = new {
            self.note_duration(key, lease);
        }
    }

    /// Keeps what a lease says of its duration.
    pub(super) fn note_duration(&mut self, key: &Key, lease: &Value) {
        match json::int(lease, &["spec", "leaseDurationSeconds"]).and_then(|s| u64::try_from(s).ok()) {
            Some(seconds) if seconds > 0 => self.seconds.insert(key.name.clone(), seconds),
            _ => self.seconds.remove(&key.name),
        };
    }
}
