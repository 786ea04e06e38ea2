//! Nodes, namespaces, leases, events, config maps, secrets: defaults, validation, immutable fields. Kinds with more to
//! say have a module of their own, and whatever is left is kept as it is sent.

use serde_json::{Value, json};

use super::{Context, Identity, endpoints, generic, names, priority, rbac, resources, service};
use crate::decode::Dialect;
use crate::json::{self, set_default};
use crate::kinds::Kind;
use crate::status::{Cause, quote};

/// Fills in a new object of one of these kinds.
pub(super) fn create(kind: &Kind, object: &mut Value, identity: &Identity<'_>) {
    match kind.resource {
        "namespaces" => {
            let name = json!(json::text(object, &["metadata", "name"]));
            json::object_mut(object, &["metadata", "labels"])
                .insert("kubernetes.io/metadata.name".to_owned(), name);
            let spec = json::object_mut(object, &["spec"]);
            let mut finalizers = match spec.remove("finalizers") {
                Some(Value::Array(list)) => list,
                Some(_) | None => Vec::new(),
            };
            if !finalizers.contains(&json!("kubernetes")) {
                finalizers.push(json!("kubernetes"));
            }
            spec.insert("finalizers".to_owned(), Value::Array(finalizers));
            object["status"] = json!({"phase": "Active"});
        }
        "services" => service::create(object, identity),
        "events" => {
            // Kubernetes keeps no order of these; readers want a namespace beside the name of what it is about.
            json::object_mut(object, &["involvedObject"]);
        }
        "secrets" => {
            secret_data(object);
            set_default(json::object_mut(object, &[]), "type", "Opaque");
        }
        "nodes" | "configmaps" | "leases" | "serviceaccounts" => {}
        "endpoints" | "endpointslices" => endpoints::defaults(kind, object),
        "clusterrolebindings" | "rolebindings" => rbac::defaults(object),
        "priorityclasses" => priority::defaults(object),
        _ => generic::create(kind, object),
    }
}

/// Fills in an updated object of one of these kinds from what it was.
pub(super) fn default_update(kind: &Kind, old: &Value, new: &mut Value) {
    match kind.resource {
        "namespaces" => {
            // Only the finalize subresource writes these.
            json::object_mut(new, &[]).insert("spec".to_owned(), old["spec"].clone());
            let name = json!(json::text(old, &["metadata", "name"]));
            json::object_mut(new, &["metadata", "labels"])
                .insert("kubernetes.io/metadata.name".to_owned(), name);
        }
        "services" => service::default_update(old, new),
        "secrets" => {
            secret_data(new);
            if let Some(kind) = old.get("type") {
                set_default(json::object_mut(new, &[]), "type", kind.clone());
            }
        }
        "endpoints" | "endpointslices" => endpoints::defaults(kind, new),
        "clusterrolebindings" | "rolebindings" => rbac::defaults(new),
        "priorityclasses" => priority::defaults(new),
        _ => generic::defaults(kind, new),
    }
}

/// Text under `stringData` is a way to write `data` without base64.
fn secret_data(object: &mut Value) {
    let Some(Value::Object(texts)) = json::object_mut(object, &[]).remove("stringData") else { return };
    let data = json::object_mut(object, &["data"]);
    for (key, text) in texts {
        data.insert(key, json!(crate::typed::base64(text.as_str().unwrap_or_default().as_bytes())));
    }
}

/// Checks an object of one of these kinds; its metadata is checked by the caller.
pub(super) fn validate(kind: &Kind, object: &Value, context: &Context, causes: &mut Vec<Cause>) {
    match kind.resource {
        "nodes" => validate_node(object, context.dialect, causes),
        "services" => service::validate(object, causes),
        "endpoints" => endpoints::validate(object, causes),
        "endpointslices" => endpoints::validate_slice(object, causes),
        "clusterroles" | "roles" => rbac::validate_role(kind, object, causes),
        "clusterrolebindings" | "rolebindings" => rbac::validate_binding(kind, object, causes),
        "priorityclasses" => priority::validate(object, causes),
        "leases" => validate_lease(object, causes),
        "events" => validate_event(object, causes),
        "configmaps" => validate_keys(object, &["data", "binaryData"], causes),
        "secrets" => validate_keys(object, &["data"], causes),
        "namespaces" => {
            for (index, finalizer) in json::list(object, &["spec", "finalizers"]).iter().enumerate() {
                for why in names::qualified(finalizer.as_str().unwrap_or_default()) {
                    causes.push(Cause::invalid(format!("spec.finalizers[{index}]"), finalizer, &why));
                }
            }
        }
        _ => {}
    }
}

/// Checks what an update of one of these kinds may not change.
pub(super) fn validate_update(kind: &Kind, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    match kind.resource {
        "nodes" => {
            for field in ["podCIDR", "providerID"] {
                let (before, after) = (json::text(old, &["spec", field]), json::text(new, &["spec", field]));
                if !before.is_empty() && before != after {
                    let why = format!("node updates may not change {field} except from \"\" to valid");
                    causes.push(Cause::forbidden(format!("spec.{field}"), &why));
                }
            }
        }
        "services" => {
            let address = |object| json::text(object, &["spec", "clusterIP"]).to_owned();
            let (before, after) = (address(old), address(new));
            let external = json::text(new, &["spec", "type"]) == "ExternalName";
            if !before.is_empty() && before != after && !external {
                let shown = format!("[]string{{{}}}", quote(&after));
                causes.push(Cause::invalid_text("spec.clusterIPs[0]", &shown, "may not change once set"));
            }
        }
        "endpointslices" => endpoints::validate_slice_update(old, new, causes),
        "clusterrolebindings" | "rolebindings" => rbac::validate_binding_update(old, new, causes),
        "priorityclasses" => priority::validate_update(old, new, causes),
        "configmaps" | "secrets" => {
            if json::flag(old, &["immutable"]) {
                for field in ["immutable", "data", "binaryData"] {
                    if old.get(field) != new.get(field) {
                        let why = "field is immutable when `immutable` is set";
                        causes.push(Cause::forbidden(field, why));
                    }
                }
            }
            if kind.resource == "secrets" && old.get("type") != new.get("type") {
                let shown = new.get("type").cloned().unwrap_or(Value::Null);
                causes.push(Cause::invalid("type", &shown, "field is immutable"));
            }
        }
        _ => {}
    }
}

/// Checks a write of a node's status.
pub(super) fn validate_node_status(object: &Value, dialect: Dialect, causes: &mut Vec<Cause>) {
    for list in ["capacity", "allocatable"] {
        if let Some(amounts) = json::at(object, &["status", list]) {
            resources::validate_list(amounts, &format!("status.{list}"), dialect, causes);
        }
    }
}

fn validate_node(object: &Value, dialect: Dialect, causes: &mut Vec<Cause>) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, taint) in json::list(object, &["spec", "taints"]).iter().enumerate() {
        let path = format!("spec.taints[{index}]");
        let text = |field: &str| json::text(taint, &[field]);
        let (key, effect) = (text("key"), text("effect"));
        for why in names::qualified(key) {
            causes.push(Cause::invalid(format!("{path}.key"), &json!(key), &why));
        }
        let wrong = names::label_value(text("value"));
        if !wrong.is_empty() {
            causes.push(Cause::invalid(format!("{path}.value"), &json!(text("value")), &wrong.join(";")));
        }
        match effect {
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            "" => causes.push(Cause::required(format!("{path}.effect"), "")),
            other => {
                let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
                causes.push(Cause::not_supported(format!("{path}.effect"), other, &known));
            }
        }
        if seen.contains(&(key, effect)) {
            let shown = format!(
                "core.Taint{{Key:{}, Value:{}, Effect:{}, TimeAdded:<nil>}}",
                quote(key),
                quote(text("value")),
                quote(effect)
            );
            let message = format!("Duplicate value: {shown}: taints must be unique by key and effect pair");
            causes.push(Cause::new(&path, crate::status::CauseReason::Duplicate, message));
        }
        seen.push((key, effect));
    }
    validate_node_status(object, dialect, causes);
}

fn validate_lease(object: &Value, causes: &mut Vec<Cause>) {
    let positive = "must be greater than 0";
    if let Some(seconds) = json::int(object, &["spec", "leaseDurationSeconds"])
        && seconds <= 0
    {
        causes.push(Cause::invalid("spec.leaseDurationSeconds", &json!(seconds), positive));
    }
    if let Some(count) = json::int(object, &["spec", "leaseTransitions"])
        && count < 0
    {
        causes.push(Cause::invalid(
            "spec.leaseTransitions",
            &json!(count),
            "must be greater than or equal to 0",
        ));
    }
}

/// An event lies in the namespace of what it is about; one about something without a namespace lies in `default`.
fn validate_event(object: &Value, causes: &mut Vec<Cause>) {
    let about = json::text(object, &["involvedObject", "namespace"]);
    let namespace = json::text(object, &["metadata", "namespace"]);
    if about.is_empty() {
        if !matches!(namespace, "" | "default") {
            let why = "does not match event.namespace";
            causes.push(Cause::invalid("involvedObject.namespace", &json!(about), why));
        }
    } else if about != namespace {
        causes.push(Cause::invalid(
            "involvedObject.namespace",
            &json!(about),
            "does not match event.namespace",
        ));
    }
}

/// Checks the keys and the size of the data of a config map or secret.
fn validate_keys(object: &Value, fields: &[&str], causes: &mut Vec<Cause>) {
    const MAX_DATA: usize = 1024 * 1024;
    let mut total = 0;
    for field in fields {
        for (key, value) in json::object(object, &[field]).into_iter().flatten() {
            for why in names::config_key(key) {
                causes.push(Cause::invalid(format!("{field}[{key}]"), &json!(key), &why));
            }
            total += value.as_str().map_or(0, str::len);
        }
    }
    if total > MAX_DATA {
        causes.push(Cause::too_long("data", MAX_DATA));
    }
}
