//! The binding subresource: the one way in which a pod gets its node (BIND-01 … BIND-13).
//!
//! Pure bookkeeping: whether the node exists is not looked at. Making sure that of several bindings one wins is the
//! store's part: the pod that comes out is written on condition that the pod that went in is still there.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::json;
use crate::kinds;
use crate::status::{ApiError, Cause};
use crate::typed::stamp;

/// The pod as it is after the binding; `url_name` and `url_namespace` are those of the request's path.
///
/// For the old collection of bindings, where the path names no pod, pass the name in the body.
///
/// Errors: 400 where the body's name or namespace differs from the path's; 422 for a target that is no node (the
/// catalogue asks for a refusal, Kubernetes answers 500); 409 for a pod that is bound, terminating or gated, and for
/// a uid or resourceVersion that is not the pod's.
pub fn bind(
    pod: &Value,
    url_name: &str,
    url_namespace: &str,
    binding: &Value,
    now: Timestamp,
) -> Result<Value, ApiError> {
    check(url_name, url_namespace, binding)?;
    let pods = kinds::find("", "v1", "pods").expect("pods are served");
    let meta = |field: &str| json::text(binding, &["metadata", field]);
    for (what, field) in [("UID", "uid"), ("ResourceVersion", "resourceVersion")] {
        let (wanted, found) = (meta(field), json::text(pod, &["metadata", field]));
        if !wanted.is_empty() && wanted != found {
            return Err(ApiError::precondition_failed(pods, url_namespace, url_name, what, wanted, found));
        }
    }
    let conflict = |why: String| Err(ApiError::conflict("", "pods/binding", url_name, &why));
    if json::at(pod, &["metadata", "deletionTimestamp"]).is_some_and(|at| !at.is_null()) {
        return conflict(format!("pod {url_name} is being deleted, cannot be assigned to a host"));
    }
    let node = json::text(pod, &["spec", "nodeName"]);
    if !node.is_empty() {
        return conflict(format!(
            "pod {url_name} is already assigned to node {}",
            crate::status::quote(node)
        ));
    }
    if !json::list(pod, &["spec", "schedulingGates"]).is_empty() {
        return conflict(format!("pod {url_name} has non-empty .spec.schedulingGates"));
    }
    let mut bound = pod.clone();
    json::object_mut(&mut bound, &["spec"])
        .insert("nodeName".to_owned(), Value::from(json::text(binding, &["target", "name"])));
    if let Some(annotations) = json::object(binding, &["metadata", "annotations"]) {
        json::object_mut(&mut bound, &["metadata", "annotations"]).extend(annotations.clone());
    }
    set_scheduled(&mut bound, now);
    Ok(bound)
}

/// What can be said about a binding without its pod.
///
/// Errors: as [`bind`], 400 and 422 only.
pub fn check(url_name: &str, url_namespace: &str, binding: &Value) -> Result<(), ApiError> {
    let namespace = json::text(binding, &["metadata", "namespace"]);
    if !namespace.is_empty() && namespace != url_namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if json::text(binding, &["metadata", "name"]) != url_name {
        return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
    }
    let mut causes = Vec::new();
    let kind = json::text(binding, &["target", "kind"]);
    if !matches!(kind, "" | "Node") {
        causes.push(Cause::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if json::text(binding, &["target", "name"]).is_empty() {
        causes.push(Cause::required("target.name", ""));
    }
    if causes.is_empty() { Ok(()) } else { Err(ApiError::invalid_for("", "Binding", url_name, causes)) }
}

/// Sets PodScheduled to True; a condition that says so already keeps its transition time.
fn set_scheduled(pod: &mut Value, now: Timestamp) {
    let status = json::object_mut(pod, &["status"]);
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return };
    let mut condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": stamp(now, 0),
    });
    match conditions.iter_mut().find(|one| json::text(one, &["type"]) == "PodScheduled") {
        Some(old) => {
            if json::text(old, &["status"]) == "True" {
                condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u1", "resourceVersion": "7"},
            "spec": {"schedulerName": "other"},
            "status": {"phase": "Pending"},
        })
    }

    fn binding() -> Value {
        json!({"metadata": {"name": "p", "namespace": "ns"}, "target": {"kind": "Node", "name": "node-a"}})
    }

    /// Binds [`pod`] after merging what is given into it and into the binding.
    fn run(pod_change: Value, binding_change: Value) -> Result<Value, ApiError> {
        let (mut pod, mut binding) = (pod(), binding());
        json_patch::merge(&mut pod, &pod_change);
        json_patch::merge(&mut binding, &binding_change);
        bind(&pod, "p", "ns", &binding, "2026-11-29T12:00:49.9Z".parse().unwrap())
    }

    #[test]
    fn a_binding_sets_node_and_condition_and_nothing_else_in_spec() {
        let bound = run(json!({}), json!({})).unwrap();
        assert_eq!(bound["spec"], json!({"schedulerName": "other", "nodeName": "node-a"}));
        let scheduled = json!([{
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-11-29T12:00:49Z",
        }]);
        assert_eq!(bound["status"], json!({"phase": "Pending", "conditions": scheduled}));
    }

    #[test]
    fn annotations_are_merged_and_labels_are_not() {
        let change = json!({"metadata": {"annotations": {"a": "b"}, "labels": {"l": "m"}}});
        let bound = run(json!({"metadata": {"annotations": {"old": "1"}}}), change).unwrap();
        assert_eq!(bound["metadata"]["annotations"], json!({"old": "1", "a": "b"}));
        assert!(bound["metadata"].get("labels").is_none());
    }

    #[test]
    fn an_unschedulable_condition_gives_way() {
        let waiting = json!({"status": {"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "x",
        }]}});
        let bound = run(waiting, json!({})).unwrap();
        assert_eq!(bound["status"]["conditions"].as_array().map(Vec::len), Some(1));
        assert_eq!(bound["status"]["conditions"][0]["status"], "True");
        assert!(bound["status"]["conditions"][0].get("reason").is_none());
    }

    #[test]
    fn targets_that_are_accepted() {
        for change in [
            json!({"target": {"kind": null}}),
            json!({"target": {"kind": "Node"}}),
            json!({"target": {"name": "no-such-node"}}),
            json!({"target": {"name": "Bad_Node!"}}),
            json!({"metadata": {"namespace": null}}),
            json!({"metadata": {"uid": "u1", "resourceVersion": "7"}}),
        ] {
            assert!(run(json!({}), change.clone()).is_ok(), "{change}");
        }
    }

    #[test]
    fn refusals() {
        let nothing = json!({});
        let storage = "Operation cannot be fulfilled on pods \"p\": StorageError: invalid object, Code: 4, Key: \
                       /registry/pods/ns/p, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed:";
        let cases = [
            (nothing.clone(), json!({"target": null}), 422, "Binding \"p\" is invalid: target.name: Required value".to_owned()),
            (
                nothing.clone(),
                json!({"target": {"kind": "Pod"}}),
                422,
                "Binding \"p\" is invalid: target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\""
                    .to_owned(),
            ),
            (
                nothing.clone(),
                json!({"metadata": {"name": "other"}}),
                400,
                "name in URL does not match name in Binding object".to_owned(),
            ),
            (
                nothing.clone(),
                json!({"metadata": {"namespace": "default"}}),
                400,
                "the namespace of the provided object does not match the namespace sent on the request".to_owned(),
            ),
            (
                json!({"spec": {"nodeName": "node-a"}}),
                nothing.clone(),
                409,
                "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"node-a\""
                    .to_owned(),
            ),
            (
                json!({"metadata": {"deletionTimestamp": "2026-11-29T12:00:49Z"}}),
                nothing.clone(),
                409,
                "Operation cannot be fulfilled on pods/binding \"p\": pod p is being deleted, cannot be assigned to a host"
                    .to_owned(),
            ),
            (
                json!({"spec": {"schedulingGates": [{"name": "g"}]}}),
                nothing.clone(),
                409,
                "Operation cannot be fulfilled on pods/binding \"p\": pod p has non-empty .spec.schedulingGates".to_owned(),
            ),
            (
                nothing.clone(),
                json!({"metadata": {"uid": "u2"}}),
                409,
                format!("{storage} UID in precondition: u2, UID in object meta: u1"),
            ),
            (
                nothing,
                json!({"metadata": {"resourceVersion": "1"}}),
                409,
                format!("{storage} ResourceVersion in precondition: 1, ResourceVersion in object meta: 7"),
            ),
        ];
        for (pod_change, binding_change, code, message) in cases {
            let error = run(pod_change, binding_change).unwrap_err();
            assert_eq!((error.code, error.message), (code, message));
        }
    }
}
