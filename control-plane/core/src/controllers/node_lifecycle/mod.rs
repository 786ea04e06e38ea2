//! Nodes whose lease ran out, and the pods on them (NODE-03 to NODE-28).
//!
//! The server calls [`decide`] for every node at every check tick (period C) and at the instant that the last
//! decision asked for, then [`decide_pod`] for every bound pod, with the nodes' writes in the snapshot already.
//! A lease is the only proof of life: a status write without a renewal changes nothing here, and the server passes
//! each through [`hold`], so that nobody sees it lift what only a renewal may.
//!
//! No delay ends early: renewals and stamps are counted from the instants at which the server accepted them
//! ([`crate::Snapshot::since`]); across a restart they are counted from instants kept in an annotation ([`OUTAGE`]),
//! because stamps in whole seconds would be up to a second early.

mod eviction;
mod node;
mod outage;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::conditions;
use crate::snapshot::{Key, Snapshot};
use crate::time::Now;
use crate::tolerations::{self, UNREACHABLE};

pub use eviction::{decide_pod, evicted};
pub use node::decide;
pub use outage::{ANNOTATION as OUTAGE, hold};

/// Durations of the lifecycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifecycleConfig {
    /// N (`--not-ready-timeout`): from NoSchedule to NoExecute; also L for a lease without a duration (NODE-21).
    pub not_ready_timeout: Duration,
}

/// What a node's lease says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lease {
    /// Renewed less than L ago.
    Renewed,
    /// In its period of grace: no proof of life, but not run out either (NODE-11, NODE-26).
    Grace,
    /// Run out (NODE-03).
    RunOut,
    /// Not counted: the snapshot does not know the node.
    Uncounted,
}

impl Lease {
    fn of(node: &str, snapshot: &Snapshot, config: &LifecycleConfig, now: Duration) -> Self {
        let Some(counted_from) = snapshot.lease_counted_from(node) else { return Self::Uncounted };
        let duration = snapshot.lease_duration(node).unwrap_or(config.not_ready_timeout);
        if now.saturating_sub(counted_from) >= duration {
            Self::RunOut
        } else if snapshot.lease_was_renewed(node) {
            Self::Renewed
        } else {
            Self::Grace
        }
    }
}

/// The nodes for which [`decide`] may have something to say, in the order of their names: those whose lease is not fresh, and
/// those that show signs of an outage. Where thousands are well, they cost next to nothing.
#[must_use]
pub fn doubtful(snapshot: &Snapshot, config: &LifecycleConfig, now: &Now) -> Vec<String> {
    let stale = snapshot.nodes_without_fresh_lease(config.not_ready_timeout, now.mono);
    let names: BTreeSet<&str> = stale.chain(snapshot.marked_nodes()).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// The pods for which [`decide_pod`] may have something to say, in the order of their keys: those on nodes that are lost.
#[must_use]
pub fn endangered(snapshot: &Snapshot) -> Vec<Key> {
    let pods = snapshot.marked_nodes().flat_map(|node| snapshot.pods_on(node)).map(|(key, _)| key.clone());
    let mut pods: Vec<Key> = pods.collect();
    pods.sort_unstable();
    pods
}

/// Whether a node shows signs of an outage: said to be Unknown, tainted, or still carrying what it was before.
pub(crate) fn is_marked(node: &Value) -> bool {
    conditions::status(node, "Ready") == Some("Unknown")
        || crate::json::text(node, &["metadata", "annotations", OUTAGE]).is_some()
        || tolerations::taints(node).any(|taint| taint.key == UNREACHABLE)
}

/// The four conditions that a kubelet reports, and that become Unknown with it.
const REPORTED: [&str; 4] = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];

/// Whether the control plane, not the kubelet, said this condition.
fn is_ours(condition: &Value) -> bool {
    let reason = crate::json::text(condition, &["reason"]);
    crate::json::text(condition, &["status"]) == Some("Unknown")
        && matches!(reason, Some("NodeStatusUnknown" | "NodeStatusNeverUpdated"))
}
