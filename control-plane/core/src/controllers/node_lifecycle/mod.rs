//! seam
use crate::{Decision, Key, Now, Snapshot};
use serde_json::Value;
use std::time::Duration;
/// Durations of the lifecycle.
#[derive(Debug, Clone)]
pub struct LifecycleConfig {
    /// N (`--not-ready-timeout`): from NoSchedule to NoExecute; also L for a lease without a duration (NODE-21).
    pub not_ready_timeout: Duration,
}
/// Looks at one node, at a check tick, or at the instant that an earlier decision asked for.
#[must_use]
pub fn decide(_snapshot: &Snapshot, _config: &LifecycleConfig, _node: &str, _now: &Now) -> Decision {
    Decision::nothing("seam")
}
/// Looks at one pod at a check tick, after the nodes were decided and their writes are in the snapshot.
#[must_use]
pub fn decide_pod(_snapshot: &Snapshot, _config: &LifecycleConfig, _key: &Key, _now: &Now) -> Decision {
    Decision::nothing("seam")
}
/// The pod after eviction (NODE-18).
#[must_use]
pub fn evicted(pod: &Value, _message: &str, _now: &Now) -> Value {
    pod.clone()
}
