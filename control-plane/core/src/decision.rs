//! What a decision is: data. Writes with preconditions, events, when to look again, and why.
//!
//! The apply loop performs `writes` in order and stops at the first one that fails; `events` are recorded only
//! when all of them succeeded. A Conflict or a missing object means that the decision was stale: it is dropped
//! and made anew from a fresh snapshot, never patched up. The effects of the writes must be in the snapshot
//! before the same key is decided again.

use std::time::Duration;

use serde_json::Value;

/// The result of looking at one key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// What to write, in this order.
    pub writes: Vec<Write>,
    /// What to tell, once every write succeeded.
    pub events: Vec<EventRecord>,
    /// Look at this key again at this instant of the monotonic clock, even when nothing changes until then.
    pub look_again: Option<Duration>,
    /// One sentence for the log.
    pub because: String,
}

impl Decision {
    /// A decision to leave things as they are.
    #[must_use]
    pub fn nothing(because: impl Into<String>) -> Self {
        Self { because: because.into(), ..Self::default() }
    }

    /// Whether there is nothing to write and nothing to tell.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.writes.is_empty() && self.events.is_empty()
    }
}

/// One write to the store. Each is a single atomic store write.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Create `object` as a client would: defaults, admission and, with `metadata.generateName`, a name.
    Create {
        /// Plural name of the resource.
        resource: &'static str,
        /// The object; its namespace stands in its metadata.
        object: Value,
    },
    /// Update through the main resource or a subresource, with that path's strategy (a `status` update keeps the
    /// spec, an update of the main resource keeps the status).
    Update {
        /// Plural name of the resource.
        resource: &'static str,
        /// `None` for the main resource, else `status` or `finalize`.
        subresource: Option<&'static str>,
        /// The whole object; its `metadata.resourceVersion` is the precondition.
        object: Value,
    },
    /// Store the whole object as it is: metadata, spec and status in one write, without strategy or admission.
    /// Used where spec and status must change together (a node's Ready condition and its taint, NODE-04).
    Replace {
        /// Plural name of the resource.
        resource: &'static str,
        /// The whole object; its `metadata.resourceVersion` is the precondition.
        object: Value,
    },
    /// Delete as a client would.
    Delete {
        /// Plural name of the resource.
        resource: &'static str,
        /// Namespace, empty for cluster-scoped resources.
        namespace: String,
        /// Name.
        name: String,
        /// Precondition on the uid.
        uid: Option<String>,
        /// Precondition on the resourceVersion.
        resource_version: Option<String>,
        /// `gracePeriodSeconds`; `None` for the object's own, 0 to remove at once.
        grace_seconds: Option<i64>,
    },
    /// Bind a pod: [`crate::scheduler::bound`] computes the new object.
    Bind {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        pod: String,
        /// Precondition on the uid.
        uid: String,
        /// Precondition on the resourceVersion.
        resource_version: Option<String>,
        /// Name of the node.
        node: String,
    },
    /// Take a pod off its node (NODE-18): [`crate::controllers::node_lifecycle::evicted`] computes the new object.
    Evict {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
        /// Precondition on the uid.
        uid: String,
        /// Precondition on the resourceVersion.
        resource_version: Option<String>,
        /// Goes into `status.message`.
        message: String,
    },
}

/// An event to be recorded. The server counts repeats up in one Event object (SCHED-53): same regarding object,
/// kind, reason, message and component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// The object that the event is about.
    pub regarding: ObjectRef,
    /// Normal or Warning.
    pub kind: EventKind,
    /// Reason in one word.
    pub reason: &'static str,
    /// Message for people.
    pub message: String,
    /// Reporting component, such as `default-scheduler`.
    pub component: &'static str,
}

/// The two types of Kubernetes events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// As planned.
    Normal,
    /// Something that a person may have to look at.
    Warning,
}

impl EventKind {
    /// The word in the Event's `type`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// A reference to an object, as in an Event's `involvedObject`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// `v1`, `apps/v1`, …
    pub api_version: String,
    /// `Pod`, `Node`, …
    pub kind: String,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// uid.
    pub uid: String,
}

impl ObjectRef {
    /// A reference to `object`, which is stored as `kind` of `api_version`.
    #[must_use]
    pub fn to(api_version: &str, kind: &str, object: &Value) -> Self {
        let metadata = |field| crate::json::text(object, &["metadata", field]).unwrap_or_default().to_owned();
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: metadata("namespace"),
            name: metadata("name"),
            uid: metadata("uid"),
        }
    }
}
