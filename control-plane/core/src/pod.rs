//! Views of a pod that several decisions share: its phase, whether it is ready or finished, who controls it.

use serde_json::Value;

use crate::{conditions, json};

/// A pod's `status.phase`; a pod without one is Pending, an unknown word is `Unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Accepted, not yet running.
    Pending,
    /// The node lost track of it.
    Unknown,
    /// At least one container runs, or will again.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended, one of them badly.
    Failed,
}

impl Phase {
    /// The phase of `pod`.
    #[must_use]
    pub fn of(pod: &Value) -> Self {
        match json::text(pod, &["status", "phase"]) {
            None | Some("" | "Pending") => Self::Pending,
            Some("Running") => Self::Running,
            Some("Succeeded") => Self::Succeeded,
            Some("Failed") => Self::Failed,
            Some(_) => Self::Unknown,
        }
    }

    /// Whether the pod has come to its end.
    #[must_use]
    pub fn is_finished(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed => true,
            Self::Pending | Self::Unknown | Self::Running => false,
        }
    }
}

/// The node that the pod is bound to.
#[must_use]
pub fn node(pod: &Value) -> Option<&str> {
    json::text(pod, &["spec", "nodeName"]).filter(|name| !name.is_empty())
}

/// Whether the pod waits for a scheduler: it is not bound, not going, not finished and not held back by a gate (SCHED-04).
#[must_use]
pub fn waits_for_node(pod: &Value) -> bool {
    node(pod).is_none() && is_active(pod) && json::list(pod, &["spec", "schedulingGates"]).is_empty()
}

/// The scheduler that is to place the pod (SCHED-05).
#[must_use]
pub fn scheduler_name(pod: &Value) -> &str {
    json::text(pod, &["spec", "schedulerName"]).unwrap_or("default-scheduler")
}

/// Whether `metadata.deletionTimestamp` is set.
#[must_use]
pub fn is_terminating(pod: &Value) -> bool {
    json::is_terminating(pod)
}

/// Whether the Ready condition is True.
#[must_use]
pub fn is_ready(pod: &Value) -> bool {
    conditions::is_true(pod, "Ready")
}

/// Whether the pod counts for a workload: neither finished nor terminating.
#[must_use]
pub fn is_active(pod: &Value) -> bool {
    !is_terminating(pod) && !Phase::of(pod).is_finished()
}

/// Whether some container waits to be started (again).
#[must_use]
pub fn has_waiting_container(pod: &Value) -> bool {
    json::list(pod, &["status", "containerStatuses"])
        .iter()
        .any(|status| json::get(status, &["state", "waiting"]).is_some_and(Value::is_object))
}

/// The owner reference with `controller: true`, if there is one.
#[must_use]
pub fn controller(object: &Value) -> Option<&Value> {
    json::list(object, &["metadata", "ownerReferences"])
        .iter()
        .find(|owner| json::is_true(owner, &["controller"]))
}
