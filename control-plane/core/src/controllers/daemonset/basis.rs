//! What of a DaemonSet decides where its pods belong and which of them are its present ones.

use std::time::Duration;

use serde_json::{Map, Value};

use super::template::HOSTNAME;
use crate::controllers::{children, deployment};
use crate::json;
use crate::pod;
use crate::selectors::LabelSelector;
use crate::snapshot::{Object, Snapshot};

/// A DaemonSet, with what is asked of it for each node and pod read once.
#[derive(Debug, Clone)]
pub(super) struct Basis {
    object: Object,
    selector: LabelSelector,
    pub(super) hash: String,
    pub(super) min_ready: Duration,
}

impl Basis {
    /// Reads a DaemonSet; nothing where its selector cannot be read.
    pub(super) fn of(daemon_set: &Object) -> Option<Self> {
        let field = |name| json::get(daemon_set, &["spec", name]).unwrap_or(&Value::Null);
        Some(Self {
            object: Object::clone(daemon_set),
            selector: LabelSelector::from_object(field("selector")).ok()?,
            hash: deployment::template_hash(field("template")),
            min_ready: children::min_ready(daemon_set),
        })
    }

    /// Whether this is still what `daemon_set` says.
    pub(super) fn is_of(&self, daemon_set: &Object) -> bool {
        let same = |path: &[&str]| json::get(&self.object, path) == json::get(daemon_set, path);
        Object::ptr_eq(&self.object, daemon_set) || (same(&["metadata", "uid"]) && same(&["spec"]))
    }

    /// Its uid.
    pub(super) fn uid(&self) -> &str {
        json::uid(&self.object)
    }

    /// Its namespace.
    pub(super) fn namespace(&self) -> &str {
        json::namespace(&self.object)
    }

    /// Whether the pod is of this DaemonSet and in its namespace.
    pub(super) fn owns(&self, pod: &Value) -> bool {
        owner(pod) == Some(self.uid()) && json::namespace(pod) == self.namespace()
    }

    /// Whether its selector matches the pod.
    pub(super) fn selects(&self, pod: &Value) -> bool {
        self.selector.matches_object(pod)
    }

    /// Whether the template's node selector matches the node.
    pub(super) fn wants(&self, node: &Value) -> bool {
        let field = |name| json::get(&self.object, &["spec", "template", "spec", name]);
        let selector: Option<&Map<String, Value>> = field("nodeSelector").and_then(Value::as_object);
        let name = field("nodeName").and_then(Value::as_str).filter(|name| !name.is_empty());
        let has = |(label, value): (&String, &Value)| {
            json::get(node, &["metadata", "labels", label]) == Some(value)
        };
        name.is_none_or(|name| name == json::name(node))
            && selector.is_none_or(|selector| selector.iter().all(has))
    }
}

/// The uid of the DaemonSet that controls the pod.
pub(crate) fn owner(pod: &Value) -> Option<&str> {
    let owner = pod::controller(pod).filter(|owner| json::text(owner, &["kind"]) == Some("DaemonSet"))?;
    json::text(owner, &["uid"]).filter(|uid| !uid.is_empty())
}

/// What a node is placed by: its hostname label, or its name while it has none.
pub(crate) fn host(node: &Value) -> &str {
    let label = json::text(node, &["metadata", "labels", HOSTNAME]).filter(|label| !label.is_empty());
    label.unwrap_or_else(|| json::name(node))
}

/// The place that a pod is on, or is meant for while it is unbound; none where its node is gone.
pub(super) fn target<'a>(snapshot: &'a Snapshot, pod: &'a Value) -> Option<&'a str> {
    match pod::node(pod) {
        Some(node) => snapshot.get("nodes", "", node).map(|node| host(node)),
        None => json::text(pod, &["spec", "nodeSelector", HOSTNAME]),
    }
}
