//! Pods that nobody needs and nobody takes away: finished ones beyond a threshold, and ones that were to go from a node
//! that does not exist.
//!
//! A pod that is bound to a node without a Node object and that nobody deletes stays (BIND-05): scheduling is
//! bookkeeping, the node may come, or come back with its pods still running (NODE-26). Kubernetes deletes it (UP-05).

use std::time::Duration;

use serde_json::Value;

use super::children;
use crate::decision::{Decision, Write};
use crate::json;
use crate::pod::{self, Phase};
use crate::snapshot::{Object, Snapshot};
use crate::time::{self, Now};

/// So many pods are removed at one time.
const MOST: usize = 500;
/// Stamps are whole seconds: the true end of a grace lies within the second that its stamp begins.
const WHOLE_SECOND: Duration = Duration::from_secs(1);

/// What the collector is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodGarbageConfig {
    /// `--terminated-pod-gc-threshold`: so many finished pods may stand; 0 for any number.
    pub threshold: usize,
}

/// Looks at all pods.
#[must_use]
pub fn decide(snapshot: &Snapshot, config: PodGarbageConfig, now: &Now) -> Decision {
    let mut finished = Vec::new();
    let mut writes: Vec<Write> = Vec::new();
    for (_, pod) in snapshot.list("pods") {
        if pod::is_terminating(pod) {
            if is_abandoned(snapshot, pod, now) {
                writes.push(children::delete(pod, Some(0)));
            }
        } else if Phase::of(pod).is_finished() {
            finished.push(pod);
        }
    }
    let surplus = if config.threshold == 0 { 0 } else { finished.len().saturating_sub(config.threshold) };
    if surplus > 0 {
        finished.sort_by_cached_key(|pod| age(pod));
        writes.extend(finished.into_iter().take(surplus).map(|pod| children::delete(pod, None)));
    }
    writes.truncate(MOST);
    let because = format!("{surplus} finished pods beyond {}", config.threshold);
    Decision { writes, ..Decision::nothing(because) }
}

/// Its grace is over, and there is no node that could tell that it has ended.
fn is_abandoned(snapshot: &Snapshot, pod: &Object, now: &Now) -> bool {
    let Some(node) = pod::node(pod).filter(|node| snapshot.get("nodes", "", node).is_none()) else {
        return false;
    };
    let end = json::text(pod, &["metadata", "deletionTimestamp"]).and_then(time::parse);
    let waits = json::int(pod, &["metadata", "deletionGracePeriodSeconds"]) != Some(0);
    !node.is_empty() && waits && end.is_some_and(|end| time::elapsed(now.wall, end) >= WHOLE_SECOND)
}

/// Evicted pods go first, then the oldest.
fn age(pod: &Value) -> (bool, String, String, String) {
    let evicted = json::text(pod, &["status", "reason"]) == Some("Evicted");
    let created = json::text(pod, &["metadata", "creationTimestamp"]).unwrap_or_default().to_owned();
    (!evicted, created, json::namespace(pod).to_owned(), json::name(pod).to_owned())
}
