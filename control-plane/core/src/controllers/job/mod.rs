//! Jobs (JOB-01 to JOB-08): pods that run to their end, so often and so many at once as asked for.
//!
//! [`decide`] is one pass over one Job. What it must never do: count a pod twice, lose one that ended, have more than
//! `parallelism` pods active, or make a pod once the Job is finished.
//!
//! Each pod carries the finalizer [`TRACKING`] until it is counted, so that one that ended and was deleted waits in the
//! store. Counting takes three steps, each a write that may be the last before a crash: the pod's uid is noted in
//! `status.uncountedTerminatedPods`; its finalizer is taken away; the uid turns into one more in `succeeded` or
//! `failed`. This is what Kubernetes' own controller does with the same names, so either can go on where the other
//! stopped. Indexed Jobs note the index instead, which is as good as a uid.
//!
//! A pod that was evicted from a dead board is the same pod, and active (JOB-07, NODE-18). Containers that restart in
//! place are the kubelet's matter (JOB-03).

mod census;
mod end;
mod indexes;
mod pass;
mod pods;
mod status;
mod template;

use crate::decision::{Decision, Write};
use crate::snapshot::{Key, Snapshot};
use crate::{json, pod};

pub(crate) use end::finished;
pub use pass::decide;

/// The finalizer of a Job's pods that are not counted yet.
pub const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// The value of `spec.managedBy` that stands for this controller, as does none.
const MANAGED_BY: &str = "kubernetes.io/job-controller";

/// The pods that wait to be counted by a Job that is no more, or is not theirs any more.
#[must_use]
pub fn orphans(snapshot: &Snapshot) -> Vec<Key> {
    let keys = snapshot.ownership().finalized();
    keys.filter(|key| snapshot.at("pods", key).is_some_and(|pod| is_orphan(snapshot, pod))).cloned().collect()
}

/// Lets go of such a pod.
#[must_use]
pub fn decide_orphan(snapshot: &Snapshot, key: &Key) -> Decision {
    match snapshot.at("pods", key) {
        Some(pod) if is_orphan(snapshot, pod) => {
            Decision { writes: vec![untracked(pod)], ..Decision::nothing("nobody is left to count it") }
        }
        Some(_) | None => Decision::nothing("it is no orphan"),
    }
}

fn is_orphan(snapshot: &Snapshot, pod: &serde_json::Value) -> bool {
    let is_lost = |owner: &serde_json::Value| {
        let uid = json::text(owner, &["uid"]).unwrap_or_default();
        json::text(owner, &["kind"]) == Some("Job") && snapshot.find_uid(uid).is_none()
    };
    is_tracked(pod) && pod::controller(pod).is_none_or(is_lost)
}

fn is_tracked(pod: &serde_json::Value) -> bool {
    json::list(pod, &["metadata", "finalizers"]).iter().any(|it| it.as_str() == Some(TRACKING))
}

/// Takes the pod's finalizer away.
fn untracked(pod: &serde_json::Value) -> Write {
    super::garbage::without_finalizer("pods", pod, TRACKING)
}
