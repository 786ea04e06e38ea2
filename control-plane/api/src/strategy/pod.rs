//! Pods: what a new one gets, and which few fields of one that exists may still change (BIND-10, NODE-13).

use serde_json::{Value, json};

use super::meta;
use super::{Context, Identity, pod_defaults, pod_spec, priority};
use crate::json;
use crate::kinds::Kind;
use crate::status::{ApiError, Cause, quote};
use crate::typed::stamp;

/// Marks a pod that mirrors one which a kubelet runs of its own accord.
const MIRROR: &str = "kubernetes.io/config.mirror";

const MAY_CHANGE: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
    additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
    previously negative)";

/// Fills in a new pod: defaults, tolerations, priority and its first status.
///
/// Errors: 403 for a priority that no priority class gives.
pub(super) fn create(object: &mut Value, identity: &Identity<'_>, context: &Context) -> Result<(), ApiError> {
    priority::admit(object, identity.classes)?;
    let spec = &mut object["spec"];
    pod_defaults::pod_spec(spec);
    pod_defaults::pod(spec);
    if let Some(seconds) = context.eviction_seconds {
        pod_defaults::tolerations(spec, seconds);
    }
    let mut status = json!({"phase": "Pending", "qosClass": pod_defaults::qos_class(spec)});
    if !json::list(spec, &["schedulingGates"]).is_empty() {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": stamp(context.now, 0),
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    object["status"] = status;
    Ok(())
}

/// The annotation of a pod that mirrors one which a kubelet runs of its own accord.
fn mirror(pod: &Value) -> Option<&Value> {
    json::at(pod, &["metadata", "annotations", MIRROR])
}

/// Whether a pod mirrors one which a kubelet runs of its own accord.
pub fn is_mirror(pod: &Value) -> bool {
    mirror(pod).is_some()
}

/// Checks a new pod.
pub(super) fn validate(kind: &Kind, object: &Value, context: &Context, causes: &mut Vec<Cause>) {
    meta::validate(kind, object, meta::name_check(kind), causes);
    validate_mirror(object, causes);
    pod_spec::validate(object.get("spec").unwrap_or(&Value::Null), "spec", context.dialect, causes);
    if !json::text(object, &["spec", "nodeName"]).is_empty()
        && !json::list(object, &["spec", "schedulingGates"]).is_empty()
    {
        causes.push(Cause::forbidden(
            "spec.nodeName",
            "cannot be set until all schedulingGates have been cleared",
        ));
    }
}

/// A mirror pod is on the node whose kubelet runs what it mirrors.
fn validate_mirror(pod: &Value, causes: &mut Vec<Cause>) {
    if let Some(value) = mirror(pod)
        && json::text(pod, &["spec", "nodeName"]).is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        causes.push(Cause::invalid(mirror_field(), value, why));
    }
}

/// No pod becomes a mirror pod, or ceases to be that one.
fn validate_mirror_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let why = match (mirror(old), mirror(new)) {
        (None, Some(_)) => "may not add mirror pod annotation",
        (Some(old), new) if new != Some(old) => "may not remove or update mirror pod annotation",
        (Some(_) | None, _) => return,
    };
    causes.push(Cause::forbidden(mirror_field(), why));
}

fn mirror_field() -> String {
    format!("metadata.annotations[{MIRROR}]")
}

/// Fills in an update as a new pod is filled in, so that the manifest it was made from changes nothing.
pub(super) fn default_update(new: &mut Value, old: &Value, context: &Context) {
    json::object_mut(new, &["spec"]);
    let spec = &mut new["spec"];
    pod_defaults::pod_spec(spec);
    pod_defaults::pod(spec);
    if let Some(seconds) = context.eviction_seconds {
        pod_defaults::tolerations(spec, seconds);
    }
    // Admission computes the priority again; the class does not change.
    if let Some(priority) = old.pointer("/spec/priority") {
        json::set_default(json::object_mut(spec, &[]), "priority", priority.clone());
    }
}

/// Checks the update of a pod.
pub(super) fn validate_update(
    kind: &Kind,
    old: &Value,
    new: &Value,
    context: &Context,
    causes: &mut Vec<Cause>,
) {
    meta::validate_update(old, new, causes);
    validate(kind, new, context, causes);
    validate_mirror_update(old, new, causes);
    let (before, after) = (&old["spec"], &new["spec"]);
    for list in ["containers", "initContainers"] {
        let (have, want) = (json::list(before, &[list]), json::list(after, &[list]));
        if have.len() != want.len() {
            let why = if list == "containers" {
                "pod updates may not add or remove containers"
            } else {
                "pod updates may not add or remove initContainers"
            };
            causes.push(Cause::forbidden(format!("spec.{list}"), why));
            return;
        }
    }
    active_deadline(before, after, causes);
    added_tolerations(before, after, causes);
    removed_gates(before, after, causes);
    let munged = munge(before, after);
    if munged != *before {
        let why = format!("{MAY_CHANGE}\n{}", difference(before, &munged));
        causes.push(Cause::forbidden("spec", &why));
    }
}

fn active_deadline(before: &Value, after: &Value, causes: &mut Vec<Cause>) {
    let field = "spec.activeDeadlineSeconds";
    match (json::int(before, &["activeDeadlineSeconds"]), json::int(after, &["activeDeadlineSeconds"])) {
        (Some(old), Some(new)) if new > old => {
            causes.push(Cause::invalid(field, &json!(new), "must be less than or equal to previous value"));
        }
        (Some(_), None) => {
            causes.push(Cause::invalid(
                field,
                &Value::Null,
                "must not update from a positive integer to nil value",
            ));
        }
        (Some(_), Some(_)) | (None, _) => {}
    }
}

/// Tolerations may be added, and their seconds changed.
fn added_tolerations(before: &Value, after: &Value, causes: &mut Vec<Cause>) {
    let bare = |toleration: &Value| {
        let mut bare = toleration.clone();
        json::object_mut(&mut bare, &[]).remove("tolerationSeconds");
        bare
    };
    let kept: Vec<Value> = json::list(after, &["tolerations"]).iter().map(bare).collect();
    if json::list(before, &["tolerations"]).iter().any(|old| !kept.contains(&bare(old))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(Cause::forbidden("spec.tolerations", why));
    }
}

fn removed_gates(before: &Value, after: &Value, causes: &mut Vec<Cause>) {
    let have = json::list(before, &["schedulingGates"]);
    for (index, gate) in json::list(after, &["schedulingGates"]).iter().enumerate() {
        if !have.contains(gate) {
            let name = json::text(gate, &["name"]);
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            causes.push(Cause::forbidden(format!("spec.schedulingGates[{index}].name"), &why));
        }
    }
}

/// The new spec with everything that may change set back to what it was.
fn munge(before: &Value, after: &Value) -> Value {
    let mut munged = after.clone();
    for list in ["containers", "initContainers"] {
        let have = json::list(before, &[list]);
        for (index, old) in have.iter().enumerate() {
            if let Some(container) = munged.get_mut(list).and_then(|list| list.get_mut(index)) {
                restore(old, container, "image");
            }
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        restore(before, &mut munged, field);
    }
    let grace = |spec: &Value| json::int(spec, &["terminationGracePeriodSeconds"]);
    if grace(before).is_some_and(|old| old < 0) && grace(after) == Some(1) {
        restore(before, &mut munged, "terminationGracePeriodSeconds");
    }
    let gated = !json::list(before, &["schedulingGates"]).is_empty();
    if gated
        && json::text(before, &["nodeName"]) == json::text(after, &["nodeName"])
        && narrows(before, after)
    {
        restore(before, &mut munged, "nodeSelector");
    }
    munged
}

/// Whether the node selector of a gated pod only gains keys.
fn narrows(before: &Value, after: &Value) -> bool {
    let after = json::object(after, &["nodeSelector"]);
    json::object(before, &["nodeSelector"])
        .into_iter()
        .flatten()
        .all(|(key, value)| after.is_some_and(|after| after.get(key) == Some(value)))
}

fn restore(from: &Value, to: &mut Value, field: &str) {
    let map = json::object_mut(to, &[]);
    match from.get(field) {
        Some(value) => map.insert(field.to_owned(), value.clone()),
        None => map.remove(field),
    };
}

/// The fields of the spec that differ, one a line, old value and new.
fn difference(before: &Value, after: &Value) -> String {
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else { return String::new() };
    let mut lines = String::new();
    for key in old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))) {
        let (old, new) = (old.get(key), new.get(key));
        if old != new {
            let shown = |value: Option<&Value>| value.map_or_else(|| "unset".to_owned(), Value::to_string);
            lines.push_str(&format!("- \t{key}: {}\n+ \t{key}: {}\n", shown(old), shown(new)));
        }
    }
    lines
}

/// Puts right a write of a pod's status: spec and owners are the old ones, and some fields cannot be lost.
pub(super) fn status_update(old: &Value, new: &mut Value) {
    new["spec"] = old["spec"].clone();
    let owners = json::at(old, &["metadata", "ownerReferences"]).cloned();
    let meta = json::object_mut(new, &["metadata"]);
    match owners {
        Some(owners) => meta.insert("ownerReferences".to_owned(), owners),
        None => meta.remove("ownerReferences"),
    };
    let quality = json::at(old, &["status", "qosClass"]).cloned();
    let status = json::object_mut(new, &["status"]);
    if let Some(quality) = quality {
        json::set_default(status, "qosClass", quality);
    }
    // Clients may give one address or the list; readers find both.
    for (one, list) in [("podIP", "podIPs"), ("hostIP", "hostIPs")] {
        let text = |status: &serde_json::Map<String, Value>| {
            status.get(one).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let first =
            status.get(list).and_then(|list| list.get(0)).map(|first| json::text(first, &["ip"]).to_owned());
        match (text(status), first) {
            (address, _) if address.is_empty() => {
                status.remove(one);
                if one == "podIP" {
                    status.remove(list);
                }
            }
            (address, Some(first)) if first == address => {}
            (address, _) => {
                status.insert(list.to_owned(), json!([{"ip": address}]));
            }
        }
    }
}

/// Checks a write of a pod's status.
pub(super) fn validate_status(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    validate_mirror_update(old, new, causes);
    let phase = json::text(new, &["status", "phase"]);
    if !matches!(phase, "" | "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown") {
        let known = ["Pending", "Running", "Succeeded", "Failed", "Unknown"];
        causes.push(Cause::not_supported("status.phase", phase, &known));
    }
    let policy = json::text(new, &["spec", "restartPolicy"]);
    if policy == "Always" {
        return;
    }
    // A container that ended for good does not come back.
    for (index, before) in json::list(old, &["status", "containerStatuses"]).iter().enumerate() {
        let Some(ended) = json::at(before, &["state", "terminated"]) else { continue };
        if policy == "OnFailure" && json::int(ended, &["exitCode"]).unwrap_or(0) != 0 {
            continue;
        }
        let name = json::text(before, &["name"]);
        let after = json::list(new, &["status", "containerStatuses"])
            .iter()
            .find(|status| json::text(status, &["name"]) == name);
        if after.is_some_and(|after| json::at(after, &["state", "terminated"]).is_none()) {
            let why = "may not be transitioned to non-terminated state";
            causes.push(Cause::forbidden(format!("status.containerStatuses[{index}].state"), why));
        }
    }
}

/// Gives a pod that names no service account the `default` one (GHOST-09).
pub fn admit_service_account(object: &mut Value) {
    let spec = json::object_mut(object, &["spec"]);
    let named = |field: &str| spec.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let account =
        [named("serviceAccountName"), named("serviceAccount")].into_iter().find(|name| !name.is_empty());
    let account = json!(account.unwrap_or_else(|| "default".to_owned()));
    spec.insert("serviceAccountName".to_owned(), account.clone());
    spec.insert("serviceAccount".to_owned(), account);
}

/// 403 for a pod whose service account does not exist (GHOST-04).
pub fn service_account_missing(namespace: &str, account: &str, pod: &str) -> ApiError {
    let why = format!(
        "error looking up service account {namespace}/{account}: serviceaccount {} not found",
        quote(account)
    );
    ApiError::forbidden("", "pods", pod, &why)
}
