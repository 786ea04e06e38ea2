//! Pods of a DaemonSet.

use serde_json::{Value, json};

use super::REVISION_HASH;
use crate::controllers::children::Owner;
use crate::json;
use crate::tolerations::{NOT_READY, UNREACHABLE};

/// Label that places a DaemonSet's pods (DS-01).
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";
const GENERATION: &str = "deprecated.daemonset.template.generation";

/// What a DaemonSet's pods stay through, with the effects that they stay through (NODE-17).
const TOLERATED: [(&str, &str); 6] = [
    (NOT_READY, "NoExecute"),
    (UNREACHABLE, "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
const OF_THE_HOST_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// A pod for the node with this hostname.
pub(super) fn pod(owner: &Owner<'_>, hash: &str, host: &str) -> Value {
    let mut pod = owner.pod(&format!("{}-", json::name(owner.object)));
    let labels = json::object_mut(&mut pod, &["metadata", "labels"]);
    labels.insert(REVISION_HASH.to_owned(), hash.into());
    if let Some(generation) = json::get(owner.object, &["metadata", "annotations", GENERATION]) {
        labels.insert("pod-template-generation".to_owned(), generation.clone());
    }
    json::object_mut(&mut pod, &["spec", "nodeSelector"]).insert(HOSTNAME.to_owned(), host.into());
    tolerate(&mut pod);
    pod
}

/// Puts the tolerations before the template's own, since for each taint the first that matches counts: one of the
/// template for every taint, with seconds, would have the pod evicted.
fn tolerate(pod: &mut Value) {
    let more = json::is_true(pod, &["spec", "hostNetwork"]).then_some(OF_THE_HOST_NETWORK);
    let tolerated: Vec<(&str, &str)> = TOLERATED.into_iter().chain(more).collect();
    let mut tolerations: Vec<Value> = tolerated
        .iter()
        .map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect}))
        .collect();
    let is_ours = |toleration: &Value| {
        let field = |name| json::text(toleration, &[name]).unwrap_or_default();
        field("operator") == "Exists" && tolerated.contains(&(field("key"), field("effect")))
    };
    let own = json::list(pod, &["spec", "tolerations"]).iter().filter(|it| !is_ours(it)).cloned();
    tolerations.extend(own);
    json::object_mut(pod, &["spec"]).insert("tolerations".to_owned(), tolerations.into());
}
