//! seam
use crate::{Decision, EventRecord, Key, Now, Snapshot};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// A named set of filters and scores.
#[derive(Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
}
/// The small control plane's profile.
pub static KUBE32: Profile = Profile { name: "kube32" };

/// Which profile serves which `spec.schedulerName`.
#[derive(Debug, Clone)]
pub struct SchedulerConfig {
    /// Profiles by `spec.schedulerName`.
    pub profiles: BTreeMap<String, &'static Profile>,
    /// R: a pending pod is tried again this long after each failure.
    pub retry_period: Duration,
}

/// Bindings that were decided but are not in the snapshot yet.
#[derive(Debug, Clone, Default)]
pub struct Assumed {
    pods: BTreeMap<Key, (String, Value)>,
}
impl Assumed {
    /// Counts `pod` on `node` from now on.
    pub fn assume(&mut self, pod: &Value, node: &str) {
        self.pods.insert(Key::of(pod), (node.to_owned(), pod.clone()));
    }
    /// The write was refused, or the snapshot has it.
    pub fn forget(&mut self, key: &Key) {
        self.pods.remove(key);
    }
}

/// What came of looking for a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It fits here.
    Bind {
        /// Node.
        node: String,
    },
    /// It fits nowhere.
    Unschedulable {
        /// Message of the event and condition.
        message: String,
        /// Reasons by node.
        per_node: BTreeMap<String, Vec<String>>,
    },
}

/// Looks for a node.
#[must_use]
pub fn schedule(_profile: &Profile, _pod: &Value, _snapshot: &Snapshot, _assumed: &Assumed) -> Verdict {
    Verdict::Unschedulable { message: String::new(), per_node: BTreeMap::new() }
}
/// A pod as it is to be stored by the create request.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The pod.
    pub pod: Value,
    /// Events to record once it is stored.
    pub events: Vec<EventRecord>,
    /// When to try again, where it found no node.
    pub look_again: Option<Duration>,
}
/// Binds inside the create request (SCHED-01). Pods that are not ours come back unchanged.
#[must_use]
pub fn place(
    _config: &SchedulerConfig,
    pod: Value,
    _snapshot: &Snapshot,
    _assumed: &Assumed,
    _now: &Now,
) -> Placed {
    Placed { pod, events: Vec::new(), look_again: None }
}
/// Decides one pending pod.
#[must_use]
pub fn decide(
    _snapshot: &Snapshot,
    _config: &SchedulerConfig,
    _assumed: &Assumed,
    _key: &Key,
    _now: &Now,
) -> Decision {
    Decision::nothing("seam")
}
/// Pods that wait for this scheduler, oldest first.
#[must_use]
pub fn pending(_snapshot: &Snapshot, _config: &SchedulerConfig) -> Vec<Key> {
    Vec::new()
}
/// The pod bound to `node`.
#[must_use]
pub fn bound(pod: &Value, _node: &str, _now: &Now) -> Value {
    pod.clone()
}
