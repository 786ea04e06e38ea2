//! Deployments, ReplicaSets, DaemonSets and Jobs: defaults, validation, and what an update may not change
//! (DEPL-05, DEPL-09, DS-06, JOB-04).

use control_plane_core::selectors::LabelSelector;
use serde_json::{Map, Value, json};

use super::pod_spec::{self, NOT_NEGATIVE};
use super::{Context, meta, names, pod_defaults};
use crate::decode::Dialect;
use crate::json::{self, set_default};
use crate::kinds::Kind;
use crate::status::{Cause, quote};

const IMMUTABLE: &str = "field is immutable";
const MISMATCH: &str = "`selector` does not match template `labels`";

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
        "jobs" => {
            if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
                set_default(spec, "completions", 1);
            }
            set_default(spec, "parallelism", 1);
            set_default(spec, "backoffLimit", 6);
            set_default(spec, "completionMode", "NonIndexed");
            set_default(spec, "suspend", false);
            set_default(spec, "manualSelector", false);
            let replacement =
                if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
            set_default(spec, "podReplacementPolicy", replacement);
        }
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

/// Fills in what only a new workload gets: no status, generation 1, a Job's selector.
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
        annotations.insert("deprecated.daemonset.template.generation".to_owned(), json!("1"));
    }
    json::object_mut(object, &["metadata"]).insert("generation".to_owned(), json!(1));
    if kind.resource == "jobs" && !json::flag(object, &["spec", "manualSelector"]) {
        job_selector(object);
    }
}

/// A Job selects its pods by its own uid.
fn job_selector(object: &mut Value) {
    let uid = json!(json::text(object, &["metadata", "uid"]));
    let name = json!(json::text(object, &["metadata", "name"]));
    let labels = json::object_mut(object, &["spec", "template", "metadata", "labels"]);
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        labels.insert(key.to_owned(), value.clone());
    }
    let selector = json::object_mut(object, &["spec", "selector", "matchLabels"]);
    selector.insert("batch.kubernetes.io/controller-uid".to_owned(), uid);
    let own = json::object(object, &["spec", "template", "metadata", "labels"]).cloned().unwrap_or_default();
    if json::object(object, &["metadata", "labels"]).is_none() {
        json::object_mut(object, &["metadata"]).insert("labels".to_owned(), Value::Object(own));
    }
}

/// Checks a workload, new or changed; its metadata is checked by the caller.
pub(super) fn validate(kind: &Kind, object: &Value, dialect: Dialect, causes: &mut Vec<Cause>) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    match kind.resource {
        "deployments" => {
            not_negative(spec, "replicas", causes);
            selector(spec, true, causes);
            template(spec, &["Always"], dialect, causes);
            rolling_update(spec, "strategy", &["Recreate", "RollingUpdate"], causes);
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
            selector(spec, true, causes);
            template(spec, &["Always"], dialect, causes);
        }
        "daemonsets" => {
            selector(spec, true, causes);
            template(spec, &["Always"], dialect, causes);
            rolling_update(spec, "updateStrategy", &["RollingUpdate", "OnDelete"], causes);
            not_negative(spec, "minReadySeconds", causes);
            not_negative(spec, "revisionHistoryLimit", causes);
        }
        "jobs" => {
            for field in [
                "parallelism",
                "completions",
                "activeDeadlineSeconds",
                "backoffLimit",
                "ttlSecondsAfterFinished",
            ] {
                not_negative(spec, field, causes);
            }
            job_template(spec, dialect, causes);
        }
        _ => {}
    }
}

/// Checks the update of a workload.
pub(super) fn validate_update(kind: &Kind, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let fields: &[&str] = match kind.resource {
        "jobs" => &["completions", "selector", "template", "completionMode"],
        _ => &["selector"],
    };
    for field in fields {
        let (before, after) = (json::at(old, &["spec", field]), json::at(new, &["spec", field]));
        if before == after {
            continue;
        }
        let after = after.unwrap_or(&Value::Null);
        let path = format!("spec.{field}");
        causes.push(match *field {
            "selector" => Cause::invalid_text(path, &go_selector(after), IMMUTABLE),
            _ => Cause::invalid(path, after, IMMUTABLE),
        });
    }
}

/// Raises the generation of an updated workload if its spec changed; in Kubernetes' dialect a Deployment's
/// annotations count as well.
pub(super) fn raise_generation(kind: &Kind, old: &Value, new: &mut Value, context: &Context) {
    let annotations = |object: &Value| json::object(object, &["metadata", "annotations"]).cloned();
    let annotated = kind.resource == "deployments"
        && context.dialect == Dialect::Kubernetes
        && annotations(old) != annotations(new);
    if old.get("spec") != new.get("spec") || annotated {
        let generation = json::int(old, &["metadata", "generation"]).unwrap_or(0);
        json::object_mut(new, &["metadata"]).insert("generation".to_owned(), json!(generation + 1));
    }
}

fn not_negative(spec: &Value, field: &str, causes: &mut Vec<Cause>) {
    if let Some(number) = json::int(spec, &[field])
        && number < 0
    {
        causes.push(Cause::invalid(format!("spec.{field}"), &json!(number), NOT_NEGATIVE));
    }
}

/// Checks a workload's selector.
fn selector(spec: &Value, required: bool, causes: &mut Vec<Cause>) {
    let Some(selector) = spec.get("selector") else {
        if required {
            causes.push(Cause::required("spec.selector", ""));
        }
        return;
    };
    if let Some(labels) = json::object(selector, &["matchLabels"]) {
        meta::validate_labels(labels, "spec.selector.matchLabels", causes);
    }
    let expressions = json::list(selector, &["matchExpressions"]);
    for (index, expression) in expressions.iter().enumerate() {
        let path = format!("spec.selector.matchExpressions[{index}]");
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
    if json::object(selector, &["matchLabels"]).is_none_or(Map::is_empty) && expressions.is_empty() {
        let why = "empty selector is invalid for deployment";
        causes.push(Cause::invalid_text("spec.selector", &go_selector(selector), why));
    }
}

/// Checks a template: the selector matches it, its metadata and pod spec are right, its restart policy allowed.
fn template(spec: &Value, policies: &[&str], dialect: Dialect, causes: &mut Vec<Cause>) {
    let template = spec.get("template").unwrap_or(&Value::Null);
    let labels = json::object(template, &["metadata", "labels"]).cloned().unwrap_or_default();
    if !selects(spec.get("selector").unwrap_or(&Value::Null), &labels) {
        causes.push(Cause::invalid_text("spec.template.metadata.labels", &go_map(&labels), MISMATCH));
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

fn job_template(spec: &Value, dialect: Dialect, causes: &mut Vec<Cause>) {
    let template = spec.get("template").unwrap_or(&Value::Null);
    let labels = json::object(template, &["metadata", "labels"]).cloned().unwrap_or_default();
    match spec.get("selector") {
        None => causes.push(Cause::required("spec.selector", "")),
        Some(selector) if !selects(selector, &labels) => {
            causes.push(Cause::invalid_text("spec.template.metadata.labels", &go_map(&labels), MISMATCH));
        }
        Some(_) => {}
    }
    meta::validate_maps(template.get("metadata").unwrap_or(&Value::Null), "spec.template", causes);
    let pod = template.get("spec").unwrap_or(&Value::Null);
    pod_spec::validate(pod, "spec.template.spec", dialect, causes);
    let policy = json::text(pod, &["restartPolicy"]);
    let field = "spec.template.spec.restartPolicy";
    match policy {
        "OnFailure" | "Never" => {}
        // A policy that was not given has been defaulted to this one.
        "Always" => causes.push(Cause::required(field, "valid values: \"OnFailure\", \"Never\"")),
        other => causes.push(Cause::not_supported(field, other, &["OnFailure", "Never"])),
    }
}

/// Checks `maxUnavailable` and `maxSurge`: whole numbers or percentages, not both 0.
fn rolling_update(spec: &Value, field: &str, known: &[&str], causes: &mut Vec<Cause>) {
    let path = format!("spec.{field}");
    let kind = json::text(spec, &[field, "type"]);
    let update = json::at(spec, &[field, "rollingUpdate"]);
    match (kind, update) {
        (kind, _) if !known.contains(&kind) => {
            causes.push(Cause::not_supported(format!("{path}.type"), kind, known));
        }
        ("Recreate", Some(_)) => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            causes.push(Cause::forbidden(format!("{path}.rollingUpdate"), why));
        }
        ("RollingUpdate", Some(update)) => {
            let mut amounts = Vec::new();
            for name in ["maxUnavailable", "maxSurge"] {
                let value = update.get(name).unwrap_or(&Value::Null);
                amounts.push(amount(value, &format!("{path}.rollingUpdate.{name}"), causes));
            }
            if amounts == [Some(0), Some(0)] {
                let why = "may not be 0 when `maxSurge` is 0";
                let value = update.get("maxUnavailable").unwrap_or(&Value::Null);
                let shown = match value {
                    Value::String(text) => {
                        format!("intstr.IntOrString{{Type:1, IntVal:0, StrVal:{}}}", quote(text))
                    }
                    other => other.to_string(),
                };
                causes.push(Cause::invalid_text(format!("{path}.rollingUpdate.maxUnavailable"), &shown, why));
            }
        }
        (_, _) => {}
    }
}

/// A count or percentage as a number; a cause where it is neither.
fn amount(value: &Value, field: &str, causes: &mut Vec<Cause>) -> Option<i64> {
    match value {
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            if number < 0 {
                causes.push(Cause::invalid(field, value, NOT_NEGATIVE));
            }
            Some(number)
        }
        Value::String(text) => {
            let digits = text.strip_suffix('%').filter(|digits| {
                !digits.is_empty() && digits.len() <= 9 && digits.chars().all(|ch| ch.is_ascii_digit())
            });
            match digits.and_then(|digits| digits.parse::<i64>().ok()) {
                Some(percent) => {
                    if percent > 100 && field.ends_with("maxUnavailable") {
                        causes.push(Cause::invalid(field, value, "must not be greater than 100%"));
                    }
                    Some(percent)
                }
                None => {
                    let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  \
                               or '93%', regex used for validation is '[0-9]+%')";
                    causes.push(Cause::invalid(field, value, why));
                    None
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Some(0),
    }
}

/// Whether a selector object matches labels; an empty one does, a missing one does not.
fn selects(selector: &Value, labels: &Map<String, Value>) -> bool {
    let labels = Value::Object(labels.clone());
    LabelSelector::from_object(selector).is_ok_and(|selector| selector.matches(&labels))
}

/// A map of texts as Go prints it with `%#v`.
fn go_map(map: &Map<String, Value>) -> String {
    let fields: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{}:{}", quote(key), quote(value.as_str().unwrap_or_default())))
        .collect();
    if fields.is_empty() {
        "map[string]string(nil)".to_owned()
    } else {
        format!("map[string]string{{{}}}", fields.join(", "))
    }
}

/// A label selector as Go prints it with `%#v`.
fn go_selector(selector: &Value) -> String {
    let labels = json::object(selector, &["matchLabels"]).cloned().unwrap_or_default();
    let expressions: Vec<String> = json::list(selector, &["matchExpressions"])
        .iter()
        .map(|one| {
            let values: Vec<String> = json::list(one, &["values"])
                .iter()
                .map(|value| quote(value.as_str().unwrap_or_default()))
                .collect();
            let values = if values.is_empty() {
                "[]string(nil)".to_owned()
            } else {
                format!("[]string{{{}}}", values.join(", "))
            };
            format!(
                "v1.LabelSelectorRequirement{{Key:{}, Operator:{}, Values:{values}}}",
                quote(json::text(one, &["key"])),
                quote(json::text(one, &["operator"]))
            )
        })
        .collect();
    let expressions = if expressions.is_empty() {
        "[]v1.LabelSelectorRequirement(nil)".to_owned()
    } else {
        format!("[]v1.LabelSelectorRequirement{{{}}}", expressions.join(", "))
    };
    format!("v1.LabelSelector{{MatchLabels:{}, MatchExpressions:{expressions}}}", go_map(&labels))
}
