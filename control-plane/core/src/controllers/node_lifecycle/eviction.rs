//! The pods of an unreachable node: not ready at once, and who has to go, when, and how.

use std::time::Duration;

use serde_json::Value;

use super::outage::Outage;
use super::{Lease, LifecycleConfig};
use crate::conditions::{self, Saying};
use crate::decision::{Decision, EventKind, EventRecord, ObjectRef, Write};
use crate::json;
use crate::pod::{self, Phase};
use crate::snapshot::{Key, Mark, Snapshot};
use crate::time::Now;
use crate::tolerations::{self, Stay, UNREACHABLE};

/// Looks at one pod. While its node is Unknown it is not ready (NODE-27). Once it has stayed as long as it tolerates
/// the NoExecute taint, counted from the instant that `timeAdded` stands for, it is evicted (NODE-08, NODE-12,
/// NODE-15, NODE-16), or removed if it was terminating (NODE-19). Finished pods stay (NODE-20). Nothing happens to a
/// pod whose node has renewed its lease, even if the taint has not been cleared yet (NODE-09).
///
/// Only the unreachable taint counts: the scheduler of this dialect does not look at taints (SCHED-32), so a pod that
/// was evicted for any other would be bound to the same node again.
#[must_use]
pub fn decide_pod(snapshot: &Snapshot, config: &LifecycleConfig, key: &Key, now: &Now) -> Decision {
    let Some(pod) = snapshot.at("pods", key) else {
        return Decision::nothing("the pod is gone");
    };
    let Some(name) = pod::node(pod).filter(|_| !Phase::of(pod).is_finished()) else {
        return Decision::nothing("the pod holds no node");
    };
    let Some(node) = snapshot.get("nodes", "", name) else {
        return Decision::nothing("its node is gone");
    };
    if Lease::of(name, snapshot, config, now.mono) == Lease::Renewed {
        return Decision::nothing("its node is alive");
    }
    let not_ready = if conditions::status(node, "Ready") == Some("Unknown") {
        not_ready(pod, now)
    } else {
        Decision::nothing("its node is not known to be lost")
    };
    let Some(taint) = tolerations::no_execute(node).find(|taint| taint.key == UNREACHABLE) else {
        return not_ready;
    };
    let kept = Outage::of(node).and_then(|outage| outage.no_execute_since);
    let mark = Mark::NoExecute(name.to_owned(), taint.key.clone());
    let tainted_for = snapshot.since(&mark, taint.time_added, kept, now).unwrap_or(Duration::ZERO);
    match tolerations::stay(json::list(pod, &["spec", "tolerations"]), std::slice::from_ref(&taint)) {
        Stay::Forever => not_ready,
        Stay::For(stay) if tainted_for < stay => {
            Decision { look_again: Some(now.mono + (stay - tainted_for)), ..not_ready }
        }
        Stay::For(_) if pod::is_terminating(pod) => Decision {
            writes: vec![Write::Delete {
                resource: "pods",
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                uid: Some(json::uid(pod).to_owned()),
                resource_version: json::resource_version(pod),
                grace_seconds: Some(0),
            }],
            ..Decision::nothing("it was terminating, and its node will not tell the end")
        },
        Stay::For(_) => {
            let message =
                format!("Node {name} is unreachable, and the pod does not tolerate that any longer");
            let event = EventRecord {
                regarding: ObjectRef::to("v1", "Pod", pod),
                kind: EventKind::Warning,
                reason: "Evicted",
                message: message.clone(),
                component: "taint-eviction-controller",
            };
            let evict = Write::Evict {
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                uid: json::uid(pod).to_owned(),
                resource_version: json::resource_version(pod),
                message: message.clone(),
            };
            Decision { writes: vec![evict], events: vec![event], look_again: None, because: message }
        }
    }
}

/// Ready=False, where the pod still says True; without a reason, as Kubernetes' own controller does it.
fn not_ready(pod: &Value, now: &Now) -> Decision {
    if !pod::is_ready(pod) {
        return Decision::nothing("it stays, and is not ready");
    }
    let mut pod = pod.clone();
    conditions::set(&mut pod, Saying { kind: "Ready", status: "False", reason: "", message: "" }, now);
    let write = Write::Update { resource: "pods", subresource: Some("status"), object: pod };
    Decision { writes: vec![write], ..Decision::nothing("its node is lost") }
}

/// Fields of `status` that tell of a node and of a run on it.
const OF_THE_RUN: [&str; 9] = [
    "podIP",
    "podIPs",
    "hostIP",
    "hostIPs",
    "startTime",
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
    "nominatedNodeName",
];

/// Conditions that only a kubelet can say.
const OF_THE_KUBELET: [&str; 4] = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"];

/// The pod after its eviction (NODE-18): the same object, bound nowhere, Pending, with reason Evicted,
/// DisruptionTarget=True and PodScheduled=False, and nothing left of its run.
#[must_use]
pub fn evicted(pod: &Value, message: &str, now: &Now) -> Value {
    let mut pod = pod.clone();
    json::object_mut(&mut pod, &["spec"]).remove("nodeName");
    let status = json::object_mut(&mut pod, &["status"]);
    for field in OF_THE_RUN {
        status.remove(field);
    }
    for (field, value) in [("phase", "Pending"), ("reason", "Evicted"), ("message", message)] {
        status.insert(field.to_owned(), value.into());
    }
    conditions::retain(&mut pod, |condition| {
        !json::text(condition, &["type"]).is_some_and(|kind| OF_THE_KUBELET.contains(&kind))
    });
    for (kind, status, reason) in
        [("PodScheduled", "False", "Evicted"), ("DisruptionTarget", "True", "EvictionByTaintManager")]
    {
        conditions::set(&mut pod, Saying { kind, status, reason, message }, now);
    }
    pod
}
