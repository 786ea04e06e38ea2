//! What a pod or a node says, read off its JSON.

use serde_json::Value;

use super::acts::Kind;

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

pub fn text<'a>(of: &'a Value, pointer: &str) -> &'a str {
    of.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub fn uid(of: &Value) -> &str {
    text(of, "/metadata/uid")
}

pub fn node_of(pod: &Value) -> &str {
    text(pod, "/spec/nodeName")
}

pub fn is_finished(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

pub fn is_terminating(of: &Value) -> bool {
    of["metadata"]["deletionTimestamp"].is_string()
}

/// Neither finished nor going.
pub fn is_active(pod: &Value) -> bool {
    !is_finished(pod) && !is_terminating(pod)
}

pub fn is_of(pod: &Value, kind: Kind) -> bool {
    text(pod, "/metadata/labels/app") == kind.name()
}

pub fn owner(pod: &Value) -> &str {
    text(pod, "/metadata/ownerReferences/0/uid")
}

pub fn taint<'a>(node: &'a Value, effect: &str) -> Option<&'a Value> {
    let taints = node["spec"]["taints"].as_array()?;
    taints.iter().find(|taint| taint["key"] == UNREACHABLE && taint["effect"] == effect)
}

/// How long a pod stays on a tainted node, in milliseconds; none for ever.
pub fn stay(pod: &Value) -> Option<i64> {
    let tolerations = pod["spec"]["tolerations"].as_array().map_or(&[][..], Vec::as_slice);
    match tolerations.iter().find(|it| it["key"] == UNREACHABLE) {
        None => Some(0),
        Some(toleration) => toleration["tolerationSeconds"].as_i64().map(|seconds| seconds.max(0) * 1000),
    }
}

/// The node that a daemon's pod is meant for.
pub fn host(pod: &Value) -> &str {
    text(pod, "/spec/nodeSelector/kubernetes.io~1hostname")
}
