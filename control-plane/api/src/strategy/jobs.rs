//! Jobs: defaults, the selector that they are given, checks, and what an update may not change (JOB-04).

use serde_json::{Map, Value, json};

use super::workloads::{IMMUTABLE, MISMATCH, not_negative, selects};
use super::{go, meta, names, pod_spec};
use crate::decode::Dialect;
use crate::json::{self, set_default};
use crate::status::Cause;

/// Completions, parallelism and failed indexes of an indexed Job.
const MAX_INDEXED: i64 = 100_000;
/// Failed indexes of a Job with more completions than [`MAX_INDEXED`].
const MAX_FAILED_OF_MANY: i64 = 10_000;
const NEW_UID: &str = "batch.kubernetes.io/controller-uid";
const NEW_NAME: &str = "batch.kubernetes.io/job-name";

/// Fills in a Job's spec; its template is filled in by the caller.
pub(super) fn defaults(spec: &mut Map<String, Value>) {
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        set_default(spec, "completions", 1);
    }
    set_default(spec, "parallelism", 1);
    // With a limit for each index there is none for the whole, unless one is given.
    let backoff = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    set_default(spec, "backoffLimit", backoff);
    set_default(spec, "completionMode", "NonIndexed");
    set_default(spec, "suspend", false);
    set_default(spec, "manualSelector", false);
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set_default(spec, "podReplacementPolicy", replacement);
}

/// A Job selects its pods by its own uid.
pub(super) fn select_by_uid(object: &mut Value) {
    let uid = json!(json::text(object, &["metadata", "uid"]));
    let name = json!(json::text(object, &["metadata", "name"]));
    let labels = json::object_mut(object, &["spec", "template", "metadata", "labels"]);
    for (key, value) in [(NEW_UID, &uid), (NEW_NAME, &name), ("controller-uid", &uid), ("job-name", &name)] {
        labels.insert(key.to_owned(), value.clone());
    }
    let selector = json::object_mut(object, &["spec", "selector", "matchLabels"]);
    selector.insert(NEW_UID.to_owned(), uid);
    let own = json::object(object, &["spec", "template", "metadata", "labels"]).cloned().unwrap_or_default();
    if json::object(object, &["metadata", "labels"]).is_none() {
        json::object_mut(object, &["metadata"]).insert("labels".to_owned(), Value::Object(own));
    }
}

/// Checks a Job; its metadata is checked by the caller.
pub(super) fn validate(object: &Value, dialect: Dialect, causes: &mut Vec<Cause>) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    own_selector(object, spec, causes);
    counts(spec, causes);
    indexed(object, spec, causes);
    policies(spec, causes);
    template(spec, dialect, causes);
    match_template(spec, causes);
}

/// A selector that the Job was given is not the client's to write.
fn own_selector(object: &Value, spec: &Value, causes: &mut Vec<Cause>) {
    if json::flag(spec, &["manualSelector"]) || spec.get("selector").is_none_or(Value::is_null) {
        return;
    }
    let (uid, name) = (json::text(object, &["metadata", "uid"]), json::text(object, &["metadata", "name"]));
    let expected = json!({NEW_UID: uid, NEW_NAME: name, "controller-uid": uid, "job-name": name});
    let labels = json::object(spec, &["template", "metadata", "labels"]).cloned().unwrap_or_default();
    for (key, wanted) in [("controller-uid", uid), ("job-name", name), (NEW_UID, uid), (NEW_NAME, name)] {
        let field = "spec.template.metadata.labels";
        match labels.get(key).and_then(Value::as_str) {
            None => {
                causes.push(Cause::required(format!("{field}[{key}]"), &format!("must be '{wanted}'")));
            }
            Some(found) if found != wanted => {
                let why = format!("must be '{wanted}'");
                causes.push(Cause::invalid(format!("{field}[{key}]"), &Value::Object(labels.clone()), &why));
            }
            Some(_) => {}
        }
    }
    let expected = expected.as_object().cloned().unwrap_or_default();
    if !selects(&spec["selector"], &expected) {
        let shown = go::selector(&spec["selector"]);
        causes.push(Cause::invalid_text("spec.selector", &shown, "`selector` not auto-generated"));
    }
}

fn counts(spec: &Value, causes: &mut Vec<Cause>) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        not_negative(spec, field, causes);
    }
    let failed = json::int(spec, &["maxFailedIndexes"]);
    if failed.is_some() && json::int(spec, &["backoffLimitPerIndex"]).is_none() {
        causes.push(Cause::required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"));
    }
}

fn indexed(object: &Value, spec: &Value, causes: &mut Vec<Cause>) {
    let int = |field: &str| json::int(spec, &[field]);
    let completions = int("completions");
    match json::text(spec, &["completionMode"]) {
        "Indexed" => {}
        "NonIndexed" => {
            if let Some(limit) = int("backoffLimitPerIndex") {
                let why = "requires indexed completion mode";
                causes.push(Cause::invalid("spec.backoffLimitPerIndex", &json!(limit), why));
            }
            return;
        }
        other => {
            let known = ["NonIndexed", "Indexed"];
            causes.push(Cause::not_supported("spec.completionMode", other, &known));
            return;
        }
    }
    let Some(completions) = completions else {
        causes.push(Cause::required("spec.completions", "when completion mode is Indexed"));
        return;
    };
    if let Some(parallelism) = int("parallelism").filter(|number| *number > MAX_INDEXED) {
        let why = format!("must be less than or equal to {MAX_INDEXED} when completion mode is Indexed");
        causes.push(Cause::invalid("spec.parallelism", &json!(parallelism), &why));
    }
    if let Some(failed) = int("maxFailedIndexes") {
        let mut refuse =
            |why: &str| causes.push(Cause::invalid("spec.maxFailedIndexes", &json!(failed), why));
        if failed > completions {
            refuse("must be less than or equal to completions");
        }
        if failed > MAX_INDEXED {
            refuse(&format!("must be less than or equal to {MAX_INDEXED}"));
        }
        if completions > MAX_INDEXED && failed > MAX_FAILED_OF_MANY {
            let why = format!(
                "must be less than or equal to {MAX_FAILED_OF_MANY} when completions are above {MAX_INDEXED} and \
                 used with backoff limit per index"
            );
            refuse(&why);
        }
    } else if completions > MAX_INDEXED && int("backoffLimitPerIndex").is_some() {
        let why = format!("must be specified when completions is above {MAX_INDEXED}");
        causes.push(Cause::required("spec.maxFailedIndexes", &why));
    }
    // Pods are named in the network after their Job and index.
    let name = json::text(object, &["metadata", "name"]);
    if completions > 0 {
        for why in names::dns_label(&format!("{name}-{}", completions - 1)) {
            let why = format!("will not able to create pod with invalid DNS label: {why}");
            causes.push(Cause::invalid("metadata.name", &json!(name), &why));
        }
    }
}

fn policies(spec: &Value, causes: &mut Vec<Cause>) {
    let failure = spec.get("podFailurePolicy").is_some_and(|policy| !policy.is_null());
    let known: &[&str] = if failure { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    let policy = json::text(spec, &["podReplacementPolicy"]);
    if !known.contains(&policy) {
        causes.push(Cause::not_supported("spec.podReplacementPolicy", policy, known));
    }
    let restart = json::text(spec, &["template", "spec", "restartPolicy"]);
    if failure && restart != "Never" {
        let why = "only \"Never\" is supported when podFailurePolicy is specified";
        causes.push(Cause::invalid("spec.template.spec.restartPolicy", &json!(restart), why));
    }
    let success = spec.get("successPolicy").is_some_and(|policy| !policy.is_null());
    if success && json::text(spec, &["completionMode"]) != "Indexed" {
        let shown = spec.get("successPolicy").unwrap_or(&Value::Null);
        causes.push(Cause::invalid("spec.successPolicy", shown, "requires indexed completion mode"));
    }
}

fn template(spec: &Value, dialect: Dialect, causes: &mut Vec<Cause>) {
    let template = spec.get("template").unwrap_or(&Value::Null);
    meta::validate_maps(template.get("metadata").unwrap_or(&Value::Null), "spec.template", causes);
    let pod = template.get("spec").unwrap_or(&Value::Null);
    pod_spec::validate(pod, "spec.template.spec", dialect, causes);
    let field = "spec.template.spec.restartPolicy";
    match json::text(pod, &["restartPolicy"]) {
        "OnFailure" | "Never" => {}
        // A policy that was not given has been defaulted to this one.
        "Always" => causes.push(Cause::required(field, "valid values: \"OnFailure\", \"Never\"")),
        other => causes.push(Cause::not_supported(field, other, &["OnFailure", "Never"])),
    }
}

fn match_template(spec: &Value, causes: &mut Vec<Cause>) {
    let labels = json::object(spec, &["template", "metadata", "labels"]).cloned().unwrap_or_default();
    match spec.get("selector") {
        None => causes.push(Cause::required("spec.selector", "")),
        Some(selector) => {
            meta::validate_selector(selector, "spec.selector", causes);
            if !selects(selector, &labels) {
                causes.push(Cause::invalid_text(
                    "spec.template.metadata.labels",
                    &go::map(&labels),
                    MISMATCH,
                ));
            }
        }
    }
}

/// Checks what an update of a Job may not change.
pub(super) fn validate_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let (before, after) = (&old["spec"], &new["spec"]);
    // Kubernetes checks the new spec twice on the way; a mismatch is listed twice.
    match_template(after, causes);
    completions(before, after, causes);
    if before.get("selector") != after.get("selector") {
        causes.push(Cause::invalid_text("spec.selector", &go::selector(&after["selector"]), IMMUTABLE));
    }
    let (was, is) = (&before["template"], &after["template"]);
    let suspended = json::flag(before, &["suspend"]);
    let started = !json::text(old, &["status", "startTime"]).is_empty();
    let allowed = if suspended && !started { with_directives(was, is) } else { was.clone() };
    if allowed != *is {
        causes.push(Cause::invalid("spec.template", is, IMMUTABLE));
    }
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        if before.get(field) != after.get(field) {
            let shown = after.get(field).unwrap_or(&Value::Null);
            causes.push(Cause::invalid(format!("spec.{field}"), shown, IMMUTABLE));
        }
    }
}

/// An indexed Job may be made wider or narrower together with its parallelism; any other keeps its completions.
fn completions(before: &Value, after: &Value, causes: &mut Vec<Cause>) {
    if before.get("completions") == after.get("completions") {
        return;
    }
    let shown = after.get("completions").unwrap_or(&Value::Null);
    if json::text(after, &["completionMode"]) != "Indexed" {
        causes.push(Cause::invalid("spec.completions", shown, IMMUTABLE));
    } else if !shown.is_null() && after.get("parallelism") != Some(shown) {
        let why = "can only be modified in tandem with spec.parallelism";
        causes.push(Cause::invalid("spec.completions", shown, why));
    }
}

/// The old template with what steers scheduling taken from the new one: a Job that has not begun may still be moved.
fn with_directives(was: &Value, is: &Value) -> Value {
    let mut allowed = was.clone();
    let mut take = |path: &[&str], field: &str| {
        let value = json::at(is, path).and_then(|object| object.get(field)).cloned();
        let map = json::object_mut(&mut allowed, path);
        match value {
            Some(value) => map.insert(field.to_owned(), value),
            None => map.remove(field),
        };
    };
    for field in ["annotations", "labels"] {
        take(&["metadata"], field);
    }
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        take(&["spec"], field);
    }
    let others = |template: &Value| {
        let affinity = json::object(template, &["spec", "affinity"]).cloned().unwrap_or_default();
        affinity.into_iter().filter(|(name, _)| name != "nodeAffinity").collect::<Map<_, _>>()
    };
    if others(was) == others(is) {
        take(&["spec"], "affinity");
    }
    allowed
}
