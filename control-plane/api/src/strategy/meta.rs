//! Object metadata: what the server fills in, what it checks, and what an update may not change.

use serde_json::{Map, Value, json};

use super::names::{self, Check};
use super::{Context, Identity};
use crate::json;
use crate::kinds::Kind;
use crate::status::{ApiError, Cause, quote};
use crate::typed::stamp;

/// Bytes that all annotations of an object may take together.
const MAX_ANNOTATIONS: usize = 256 * 1024;
/// Bytes of a generateName that are used; the suffix has five more, and names have at most 63.
const MAX_PREFIX: usize = 58;
const IMMUTABLE: &str = "field is immutable";

/// The check of a kind's object names.
pub(super) fn name_check(kind: &Kind) -> Check {
    match kind.resource {
        "namespaces" => names::dns_label,
        "services" => names::dns_1035_label,
        "apiservices" | "clusterrolebindings" | "clusterroles" | "rolebindings" | "roles" => {
            names::path_segment
        }
        _ => names::dns_subdomain,
    }
}

/// Makes the object's namespace the request's.
///
/// Errors: 400 for another namespace in the body.
pub(super) fn settle_namespace(
    kind: &Kind,
    namespace: Option<&str>,
    object: &mut Value,
) -> Result<(), ApiError> {
    let meta = json::object_mut(object, &["metadata"]);
    let Some(namespace) = namespace.filter(|_| kind.namespaced) else {
        meta.remove("namespace");
        return Ok(());
    };
    let given = meta.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if !given.is_empty() && given != namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    meta.insert("namespace".to_owned(), Value::from(namespace));
    Ok(())
}

/// `metadata.creationTimestamp` of an object that is made now: whole seconds.
pub(super) fn creation_timestamp(context: &Context) -> Value {
    Value::from(stamp(context.now, 0))
}

/// Fills in what a new object gets from the server: uid, creation time, a generated name.
///
/// Errors: 400 for an object that comes with a resourceVersion.
pub(super) fn fill_new(
    object: &mut Value,
    identity: &Identity<'_>,
    context: &Context,
) -> Result<(), ApiError> {
    if !json::text(object, &["metadata", "resourceVersion"]).is_empty() {
        return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
    }
    let meta = json::object_mut(object, &["metadata"]);
    for field in [
        "resourceVersion",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "managedFields",
    ] {
        meta.remove(field);
    }
    meta.insert("uid".to_owned(), Value::from(identity.uid));
    meta.insert("creationTimestamp".to_owned(), creation_timestamp(context));
    let text = |field: &str| meta.get(field).and_then(Value::as_str).unwrap_or_default();
    if text("name").is_empty() && !text("generateName").is_empty() {
        let prefix: String = text("generateName").chars().take(MAX_PREFIX).collect();
        meta.insert("name".to_owned(), Value::from(format!("{prefix}{}", identity.name_suffix)));
    }
    Ok(())
}

/// Checks the metadata of an object under `path`.
pub(super) fn validate(kind: &Kind, object: &Value, check: Check, causes: &mut Vec<Cause>) {
    let text = |field: &str| json::text(object, &["metadata", field]);
    let generate = text("generateName");
    if !generate.is_empty() {
        // A prefix may end in what a whole name may not.
        let probe = format!("{}a", generate.trim_end_matches('-'));
        for why in check(&probe) {
            causes.push(Cause::invalid("metadata.generateName", &json!(generate), &why));
        }
    }
    if text("name").is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        for why in check(text("name")) {
            causes.push(Cause::invalid("metadata.name", &json!(text("name")), &why));
        }
    }
    if kind.namespaced {
        for why in names::dns_label(text("namespace")) {
            causes.push(Cause::invalid("metadata.namespace", &json!(text("namespace")), &why));
        }
    }
    validate_maps(object.get("metadata").unwrap_or(&Value::Null), "metadata", causes);
    validate_owners(object, causes);
    for (index, finalizer) in json::list(object, &["metadata", "finalizers"]).iter().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        for why in names::qualified(name) {
            causes.push(Cause::invalid("metadata.finalizers", finalizer, &why));
        }
        if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(format!("metadata.finalizers[{index}]"), finalizer, why));
        }
    }
}

/// Checks the labels and annotations of a metadata object.
pub(super) fn validate_maps(meta: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(labels) = json::object(meta, &["labels"]) {
        validate_labels(labels, &format!("{path}.labels"), causes);
    }
    let mut total = 0;
    let field = format!("{path}.annotations");
    for (key, value) in json::object(meta, &["annotations"]).into_iter().flatten() {
        for why in names::qualified(&key.to_lowercase()) {
            causes.push(Cause::invalid(&field, &json!(key), &why));
        }
        total += key.len() + value.as_str().map_or(0, str::len);
    }
    if total > MAX_ANNOTATIONS {
        causes.push(Cause::too_long(&field, MAX_ANNOTATIONS));
    }
}

/// Checks the keys and values of labels or of a selector made of labels.
pub(super) fn validate_labels(labels: &Map<String, Value>, field: &str, causes: &mut Vec<Cause>) {
    for (key, value) in labels {
        for why in names::qualified(key) {
            causes.push(Cause::invalid(field, &json!(key), &why));
        }
        for why in names::label_value(value.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid(field, value, &why));
        }
    }
}

fn validate_owners(object: &Value, causes: &mut Vec<Cause>) {
    let mut controller: Option<&str> = None;
    for owner in json::list(object, &["metadata", "ownerReferences"]) {
        for (field, what) in [("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid")] {
            if json::text(owner, &[field]).is_empty() {
                let why = format!("{what} must not be empty");
                causes.push(Cause::invalid(format!("metadata.ownerReferences.{field}"), &json!(""), &why));
            }
        }
        // Events come and go by themselves, and are no owners.
        if (json::text(owner, &["apiVersion"]), json::text(owner, &["kind"])) == ("v1", "Event") {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid("metadata.ownerReferences", owner, why));
        }
        if json::flag(owner, &["controller"]) {
            let name = json::text(owner, &["name"]);
            if let Some(first) = controller {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                let all = json::at(object, &["metadata", "ownerReferences"]).unwrap_or(&Value::Null);
                causes.push(Cause::invalid("metadata.ownerReferences", all, &why));
            }
            controller = Some(name);
        }
    }
}

/// Carries over from the old object what an update may leave out or not touch, before anything is compared.
pub(super) fn carry_over(old: &Value, new: &mut Value) {
    let old = old.get("metadata").unwrap_or(&Value::Null);
    let meta = json::object_mut(new, &["metadata"]);
    meta.remove("managedFields");
    meta.remove("selfLink");
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if meta.get(field).is_none_or(|value| value.is_null() || value == "") {
            copy_field(old, meta, field);
        }
    }
    for field in ["creationTimestamp", "generation", "resourceVersion"] {
        copy_field(old, meta, field);
    }
}

fn copy_field(from: &Value, to: &mut Map<String, Value>, field: &str) {
    match from.get(field) {
        Some(value) => to.insert(field.to_owned(), value.clone()),
        None => to.remove(field),
    };
}

/// Checks what an update may not change, and the labels and annotations it brings.
pub(super) fn validate_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if !json::text(old, &["metadata", "deletionTimestamp"]).is_empty() {
        let before = json::list(old, &["metadata", "finalizers"]);
        let added: Vec<String> = json::list(new, &["metadata", "finalizers"])
            .iter()
            .filter(|one| !before.contains(one))
            .map(|one| quote(one.as_str().unwrap_or_default()))
            .collect();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            causes.push(Cause::forbidden("metadata.finalizers", &why));
        }
    }
    for field in ["name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = |object| json::at(object, &["metadata", field]).filter(|value| !value.is_null());
        if value(old) != value(new) {
            let shown = value(new).cloned().unwrap_or(Value::Null);
            causes.push(Cause::invalid(format!("metadata.{field}"), &shown, IMMUTABLE));
        }
    }
    validate_maps(new.get("metadata").unwrap_or(&Value::Null), "metadata", causes);
    validate_owners(new, causes);
}

/// Checks a label selector at `path`.
pub(super) fn validate_selector(selector: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(labels) = json::object(selector, &["matchLabels"]) {
        validate_labels(labels, &format!("{path}.matchLabels"), causes);
    }
    for (index, expression) in json::list(selector, &["matchExpressions"]).iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let values = json::list(expression, &["values"]).len();
        match json::text(expression, &["operator"]) {
            "In" | "NotIn" if values == 0 => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                causes.push(Cause::required(format!("{path}.values"), why));
            }
            "Exists" | "DoesNotExist" if values > 0 => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(Cause::forbidden(format!("{path}.values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let why = "not a valid selector operator";
                causes.push(Cause::invalid(format!("{path}.operator"), &json!(other), why));
            }
        }
        let key = json::text(expression, &["key"]);
        for why in names::qualified(key) {
            causes.push(Cause::invalid(format!("{path}.key"), &json!(key), &why));
        }
    }
}
