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
use crate::pod;
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

/// Looks at the pods that have come to their end or are on their way out.
#[must_use]
pub fn decide(snapshot: &Snapshot, config: PodGarbageConfig, now: &Now) -> Decision {
    let (ownership, pod) = (snapshot.ownership(), |key| snapshot.at("pods", key));
    let terminating = ownership.terminating().filter_map(pod);
    let abandoned = terminating.filter(|pod| is_abandoned(snapshot, pod, now));
    let mut writes: Vec<Write> = abandoned.map(|pod| children::delete(pod, Some(0))).collect();
    let finished = ownership.finished();
    let surplus = if config.threshold == 0 { 0 } else { finished.len().saturating_sub(config.threshold) };
    if surplus > 0 {
        let mut finished: Vec<&Object> = finished.filter_map(pod).collect();
        finished.sort_by_cached_key(|pod| age(pod));
        writes.extend(finished.into_iter().take(surplus).map(|pod| children::delete(pod, None)));
    }
    writes.truncate(MOST);
    let because = format!("{surplus} finished pods beyond {}", config.threshold);
    Decision { writes, ..Decision::nothing(because) }
}

/// Its grace is over, and there is no node that could tell that it has ended.
fn is_abandoned(snapshot: &Snapshot, pod: &Object, now: &Now) -> bool {
    if pod::node(pod).is_none_or(|node| snapshot.get("nodes", "", node).is_some()) {
        return false;
    }
    let end = json::text(pod, &["metadata", "deletionTimestamp"]).and_then(time::parse);
    let waits = json::int(pod, &["metadata", "deletionGracePeriodSeconds"]) != Some(0);
    waits && end.is_some_and(|end| time::elapsed(now.wall, end) >= WHOLE_SECOND)
}

/// Evicted pods go first, then the oldest.
fn age(pod: &Value) -> (bool, String, String, String) {
    let evicted = json::text(pod, &["status", "reason"]) == Some("Evicted");
    let created = json::text(pod, &["metadata", "creationTimestamp"]).unwrap_or_default().to_owned();
    (!evicted, created, json::namespace(pod).to_owned(), json::name(pod).to_owned())
}
