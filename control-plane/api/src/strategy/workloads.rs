//! Deployments, ReplicaSets, DaemonSets and Jobs: defaults, validation, and what an update may not change
//! (DEPL-05, DEPL-09, DS-06, JOB-04).

use control_plane_core::selectors::LabelSelector;
use serde_json::{Map, Value, json};

use super::pod_spec::{self, NOT_NEGATIVE};
use super::{go, jobs, meta, pod_defaults, rollout};
use crate::decode::Dialect;
use crate::json::{self, set_default};
use crate::kinds::Kind;
use crate::status::Cause;

pub(super) const IMMUTABLE: &str = "field is immutable";
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
pub(super) const MISMATCH: &str = "`selector` does not match template `labels`";

/// Fills in the defaults of a workload's spec.
pub(super) fn defaults(kind: &Kind, object: &mut Value) {
    let template = json::object_mut(object, &["spec", "template"]);
    set_default(template, "metadata", json!({"creationTimestamp": null}));
    set_default(template, "spec", json!({}));
    pod_defaults::pod_spec(&mut object["spec"]["template"]["spec"]);
    let spec = json::object_mut(object, &["spec"]);
    match kind.resource {
        "deployments" => {
            set_default(spec, "replicas", 1);
            set_default(spec, "revisionHistoryLimit", 10);
            set_default(spec, "progressDeadlineSeconds", 600);
            rolling(spec, "strategy", json!("25%"), json!("25%"));
        }
        "replicasets" => set_default(spec, "replicas", 1),
        "daemonsets" => {
            set_default(spec, "revisionHistoryLimit", 10);
            rolling(spec, "updateStrategy", json!(1), json!(0));
        }
        "jobs" => jobs::defaults(spec),
        _ => {}
    }
    default_labels(kind, object);
}

/// Fills in a rolling update strategy.
fn rolling(spec: &mut Map<String, Value>, field: &str, unavailable: Value, surge: Value) {
    set_default(spec, field, json!({}));
    let Some(Value::Object(strategy)) = spec.get_mut(field) else { return };
    set_default(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        set_default(strategy, "rollingUpdate", json!({}));
        if let Some(Value::Object(update)) = strategy.get_mut("rollingUpdate") {
            set_default(update, "maxUnavailable", unavailable);
            set_default(update, "maxSurge", surge);
        }
    }
}

/// ReplicaSets and Jobs without labels get those of their template.
fn default_labels(kind: &Kind, object: &mut Value) {
    if !matches!(kind.resource, "replicasets" | "jobs")
        || json::object(object, &["metadata", "labels"]).is_some()
    {
        return;
    }
    if let Some(labels) = json::object(object, &["spec", "template", "metadata", "labels"]).cloned() {
        json::object_mut(object, &["metadata"]).insert("labels".to_owned(), Value::Object(labels));
    }
}

/// Fills in what only a new workload gets: no status, a Job's selector.
pub(super) fn create(kind: &Kind, object: &mut Value) {
    let replicas = matches!(kind.resource, "replicasets");
    let daemons = matches!(kind.resource, "daemonsets");
    let root = json::object_mut(object, &[]);
    root.insert("status".to_owned(), json!({}));
    if replicas {
        root.insert("status".to_owned(), json!({"replicas": 0}));
    }
    if daemons {
        let zeros = json!({
            "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
        });
        root.insert("status".to_owned(), zeros);
        let annotations = json::object_mut(object, &["metadata", "annotations"]);
        annotations.insert(TEMPLATE_GENERATION.to_owned(), json!("1"));
    }
    if kind.resource == "jobs" && !json::flag(object, &["spec", "manualSelector"]) {
        jobs::select_by_uid(object);
    }
}

/// Checks a workload, new or changed; its metadata is checked by the caller.
pub(super) fn validate(kind: &Kind, object: &Value, dialect: Dialect, causes: &mut Vec<Cause>) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    match kind.resource {
        "deployments" => {
            not_negative(spec, "replicas", causes);
            selector(spec, causes);
            template(spec, &["Always"], dialect, causes);
            rollout::validate(spec, "strategy", &["Recreate", "RollingUpdate"], causes);
            not_negative(spec, "minReadySeconds", causes);
            not_negative(spec, "revisionHistoryLimit", causes);
            not_negative(spec, "progressDeadlineSeconds", causes);
            if let (Some(deadline), minimum) = (
                json::int(spec, &["progressDeadlineSeconds"]),
                json::int(spec, &["minReadySeconds"]).unwrap_or(0),
            ) && deadline <= minimum
            {
                let why = "must be greater than minReadySeconds";
                causes.push(Cause::invalid("spec.progressDeadlineSeconds", &json!(deadline), why));
            }
        }
        "replicasets" => {
            not_negative(spec, "replicas", causes);
            not_negative(spec, "minReadySeconds", causes);
            selector(spec, causes);
            template(spec, &["Always"], dialect, causes);
        }
        "daemonsets" => {
            selector(spec, causes);
            template(spec, &["Always"], dialect, causes);
            rollout::validate(spec, "updateStrategy", &["RollingUpdate", "OnDelete"], causes);
            not_negative(spec, "minReadySeconds", causes);
            not_negative(spec, "revisionHistoryLimit", causes);
        }
        "jobs" => jobs::validate(object, dialect, causes),
        _ => {}
    }
}

/// Fills in an updated workload from what it was.
pub(super) fn default_update(kind: &Kind, old: &Value, new: &mut Value) {
    defaults(kind, new);
    if kind.resource == "daemonsets" {
        count_template(old, new);
    }
}

/// The number that a DaemonSet gives its template, one more with each change of it. It is kept whatever a client
/// says.
fn count_template(old: &Value, new: &mut Value) {
    let number = json::text(old, &["metadata", "annotations", TEMPLATE_GENERATION]);
    let number = number.parse::<i64>().unwrap_or(0);
    let changed = old.pointer("/spec/template") != new.pointer("/spec/template");
    let number = if changed { number + 1 } else { number };
    json::object_mut(new, &["metadata", "annotations"])
        .insert(TEMPLATE_GENERATION.to_owned(), json!(number.to_string()));
}

/// Checks the update of a workload.
pub(super) fn validate_update(kind: &Kind, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if kind.resource == "jobs" {
        jobs::validate_update(old, new, causes);
        return;
    }
    let (before, after) = (json::at(old, &["spec", "selector"]), json::at(new, &["spec", "selector"]));
    if before != after {
        let shown = go::selector(after.unwrap_or(&Value::Null));
        causes.push(Cause::invalid_text("spec.selector", &shown, IMMUTABLE));
    }
}

/// Checks a workload's selector: it is there and selects something.
fn selector(spec: &Value, causes: &mut Vec<Cause>) {
    let Some(selector) = spec.get("selector") else {
        causes.push(Cause::required("spec.selector", ""));
        return;
    };
    meta::validate_selector(selector, "spec.selector", causes);
    let empty = json::object(selector, &["matchLabels"]).is_none_or(Map::is_empty)
        && json::list(selector, &["matchExpressions"]).is_empty();
    if empty {
        let why = "empty selector is invalid for deployment";
        causes.push(Cause::invalid_text("spec.selector", &go::selector(selector), why));
    }
}

/// Refuses a count below 0.
pub(super) fn not_negative(spec: &Value, field: &str, causes: &mut Vec<Cause>) {
    if let Some(number) = json::int(spec, &[field])
        && number < 0
    {
        causes.push(Cause::invalid(format!("spec.{field}"), &json!(number), NOT_NEGATIVE));
    }
}

/// Checks a template: the selector matches it, its metadata and pod spec are right, its restart policy allowed.
fn template(spec: &Value, policies: &[&str], dialect: Dialect, causes: &mut Vec<Cause>) {
    let template = spec.get("template").unwrap_or(&Value::Null);
    let labels = json::object(template, &["metadata", "labels"]).cloned().unwrap_or_default();
    if !selects(spec.get("selector").unwrap_or(&Value::Null), &labels) {
        causes.push(Cause::invalid_text("spec.template.metadata.labels", &go::map(&labels), MISMATCH));
    }
    meta::validate_maps(template.get("metadata").unwrap_or(&Value::Null), "spec.template", causes);
    let pod = template.get("spec").unwrap_or(&Value::Null);
    pod_spec::validate(pod, "spec.template.spec", dialect, causes);
    let policy = json::text(pod, &["restartPolicy"]);
    if !policies.contains(&policy) && matches!(policy, "Always" | "OnFailure" | "Never") {
        causes.push(Cause::not_supported("spec.template.spec.restartPolicy", policy, policies));
    }
    if pod.get("activeDeadlineSeconds").is_some() {
        let why = "activeDeadlineSeconds in ReplicaSet is not Supported";
        causes.push(Cause::forbidden("spec.template.spec.activeDeadlineSeconds", why));
    }
}

/// Whether a selector object matches labels; an empty one does, a missing one does not.
pub(super) fn selects(selector: &Value, labels: &Map<String, Value>) -> bool {
    let labels = Value::Object(labels.clone());
    LabelSelector::from_object(selector).is_ok_and(|selector| selector.matches(&labels))
}
