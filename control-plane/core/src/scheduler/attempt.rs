//! One attempt to place a pod, and what it writes and tells: inside the create request (SCHED-01) or by the retry
//! loop (SCHED-02, SCHED-03), with the same outcome (SCHED-50, SCHED-54).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::accounting::Assumed;
use super::choice::{Verdict, schedule};
use super::profile::Profile;
use crate::conditions::{self, Saying};
use crate::decision::{Decision, EventKind, EventRecord, ObjectRef, Write};
use crate::json;
use crate::pod;
use crate::snapshot::{Key, Snapshot};
use crate::time::Now;

/// Which profile serves which `spec.schedulerName`, and how often.
#[derive(Debug, Clone)]
pub struct SchedulerConfig {
    /// Profiles by `spec.schedulerName`; pods that name another are left alone (SCHED-05).
    pub profiles: BTreeMap<String, &'static Profile>,
    /// R (`--reconcile-interval`): from one attempt for a pod to the next.
    pub retry_period: Duration,
}

impl SchedulerConfig {
    /// `profile` for pods of `default-scheduler`, tried every `retry_period`.
    #[must_use]
    pub fn new(profile: &'static Profile, retry_period: Duration) -> Self {
        Self { profiles: BTreeMap::from([("default-scheduler".to_owned(), profile)]), retry_period }
    }

    /// Every profile, each once.
    pub fn distinct_profiles(&self) -> impl Iterator<Item = &'static Profile> {
        let names: BTreeMap<&str, &'static Profile> =
            self.profiles.values().map(|profile| (profile.name, *profile)).collect();
        names.into_values()
    }

    /// The profile that has to place `pod`; `None` for a pod that is bound, going, finished, gated or another
    /// scheduler's (SCHED-04, SCHED-05).
    #[must_use]
    pub fn profile_for(&self, pod: &Value) -> Option<&'static Profile> {
        self.profiles.get(pod::scheduler_name(pod)).copied().filter(|_| pod::waits_for_node(pod))
    }
}

/// A pod as the create request has to store it.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The pod: bound, or with PodScheduled=False, or unchanged where it is none of ours.
    pub pod: Value,
    /// To be recorded once it is stored.
    pub events: Vec<EventRecord>,
    /// When [`decide`] has to look at it for the first time; `None` where it is placed or none of ours.
    pub look_again: Option<Duration>,
}

/// Places a pod inside its create request (SCHED-01). `pod` has its name, uid and defaults already.
///
/// From here to the stored object nothing else may be placed, or the binding is to be in `assumed` meanwhile.
#[must_use]
pub fn place(
    config: &SchedulerConfig,
    pod: Value,
    snapshot: &Snapshot,
    assumed: &Assumed,
    now: &Now,
) -> Placed {
    let Some(profile) = config.profile_for(&pod) else {
        return Placed { pod, events: Vec::new(), look_again: None };
    };
    match schedule(profile, &pod, snapshot, assumed) {
        Verdict::Bind { node, .. } => {
            let events = vec![scheduled(profile, &pod, &node)];
            Placed { pod: bind(pod, &node, now), events, look_again: None }
        }
        Verdict::Unschedulable { message } => {
            let mut pod = pod;
            set_unschedulable(&mut pod, &message, now);
            let events = vec![failed(profile, &pod, message)];
            Placed { pod, events, look_again: Some(now.mono + config.retry_period) }
        }
    }
}

/// One attempt of the retry loop for one pending pod.
///
/// Each attempt that fails raises the event's count and asks to be looked at again R later: keeping to that instant,
/// rather than to every change, gives SCHED-03 its two edges, and is soon enough for SCHED-02.
#[must_use]
pub fn decide(
    snapshot: &Snapshot,
    config: &SchedulerConfig,
    assumed: &Assumed,
    key: &Key,
    now: &Now,
) -> Decision {
    let Some(pod) = snapshot.at("pods", key) else {
        return Decision::nothing("the pod is gone");
    };
    let Some(profile) = config.profile_for(pod) else {
        return Decision::nothing("the pod does not wait for this scheduler");
    };
    match schedule(profile, pod, snapshot, assumed) {
        Verdict::Bind { node, score, feasible } => Decision {
            because: format!("{node} is the best of {feasible} nodes that fit, with {} ‰", score.per_mille()),
            events: vec![scheduled(profile, pod, &node)],
            writes: vec![Write::Bind {
                namespace: key.namespace.clone(),
                pod: key.name.clone(),
                uid: json::uid(pod).to_owned(),
                resource_version: json::resource_version(pod),
                node,
            }],
            look_again: None,
        },
        Verdict::Unschedulable { message } => {
            let mut told = Value::clone(pod);
            let changed = set_unschedulable(&mut told, &message, now);
            let write = Write::Update { resource: "pods", subresource: Some("status"), object: told };
            Decision {
                because: message.clone(),
                writes: if changed { vec![write] } else { Vec::new() },
                events: vec![failed(profile, pod, message)],
                look_again: Some(now.mono + config.retry_period),
            }
        }
    }
}

/// The pods that wait for this scheduler, in the order in which they are to be tried: oldest first, then by name.
#[must_use]
pub fn pending(snapshot: &Snapshot, config: &SchedulerConfig) -> Vec<Key> {
    let mut waiting: Vec<&(String, Key)> =
        config.profiles.keys().flat_map(|name| snapshot.waiting_for(name)).collect();
    waiting.sort_unstable();
    waiting.into_iter().map(|(_, key)| key.clone()).collect()
}

/// The pod bound to `node`: `spec.nodeName` and PodScheduled=True (BIND-01). What an eviction had left in
/// `status.reason` goes (NODE-18).
#[must_use]
pub fn bound(pod: &Value, node: &str, now: &Now) -> Value {
    bind(pod.clone(), node, now)
}

fn bind(mut pod: Value, node: &str, now: &Now) -> Value {
    json::object_mut(&mut pod, &["spec"]).insert("nodeName".to_owned(), node.into());
    let status = json::object_mut(&mut pod, &["status"]);
    if status.get("reason").and_then(Value::as_str) == Some("Evicted") {
        status.remove("reason");
        status.remove("message");
    }
    set_scheduled_condition(&mut pod, ("True", "", ""), now);
    pod
}

fn set_unschedulable(pod: &mut Value, message: &str, now: &Now) -> bool {
    set_scheduled_condition(pod, ("False", "Unschedulable", message), now)
}

fn set_scheduled_condition(pod: &mut Value, says: (&str, &str, &str), now: &Now) -> bool {
    let (status, reason, message) = says;
    conditions::set(pod, Saying { kind: "PodScheduled", status, reason, message }, now)
}

fn scheduled(profile: &Profile, pod: &Value, node: &str) -> EventRecord {
    let message = format!("Successfully assigned {}/{} to {node}", json::namespace(pod), json::name(pod));
    event(profile, pod, EventKind::Normal, "Scheduled", message)
}

fn failed(profile: &Profile, pod: &Value, message: String) -> EventRecord {
    event(profile, pod, EventKind::Warning, "FailedScheduling", message)
}

fn event(
    profile: &Profile,
    pod: &Value,
    kind: EventKind,
    reason: &'static str,
    message: String,
) -> EventRecord {
    let regarding = ObjectRef::to("v1", "Pod", pod);
    EventRecord { regarding, kind, reason, message, component: profile.component }
}
