//! Priority classes, and the priorities that pods get from them.

use serde_json::{Value, json};

use crate::json::{self, set_default};
use crate::status::{ApiError, Cause};

/// The classes that are always there, with their values.
const SYSTEM_CLASSES: &[(&str, i64)] =
    &[("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
/// What a class of someone else's may be worth at most.
const MAX_OWN: i64 = 1_000_000_000;
const PREEMPTION: &[&str] = &["PreemptLowerPriority", "Never"];

/// The priority classes that every cluster has, as a client would make them.
pub fn system_classes() -> Vec<Value> {
    let class = |(name, value): &(&str, i64)| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": PREEMPTION[0],
        })
    };
    SYSTEM_CLASSES.iter().map(class).collect()
}

/// Fills in a priority class.
pub(super) fn defaults(object: &mut Value) {
    set_default(json::object_mut(object, &[]), "preemptionPolicy", PREEMPTION[0]);
}

/// Checks a priority class; its metadata is checked by the caller.
pub(super) fn validate(object: &Value, causes: &mut Vec<Cause>) {
    let name = json::text(object, &["metadata", "name"]);
    let value = json::int(object, &["value"]).unwrap_or(0);
    if name.starts_with("system-") {
        let default = json::flag(object, &["globalDefault"]);
        let wrong = match SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, wanted)) if *wanted != value => {
                Some(format!("value of {name} PriorityClass must be {wanted}"))
            }
            Some(_) if default => Some(format!("globalDefault of {name} PriorityClass must be false")),
            Some(_) => None,
        };
        if let Some(wrong) = wrong {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {wrong}"
            );
            causes.push(Cause::forbidden("metadata.name", &why));
        }
    } else if value > MAX_OWN {
        let why = format!("maximum allowed value of a user defined priority is {MAX_OWN}");
        causes.push(Cause::forbidden("value", &why));
    }
    let policy = json::text(object, &["preemptionPolicy"]);
    if !PREEMPTION.contains(&policy) {
        causes.push(Cause::not_supported("preemptionPolicy", policy, PREEMPTION));
    }
}

/// A class keeps its value and its preemption policy.
pub(super) fn validate_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if old.get("value") != new.get("value") {
        causes.push(Cause::forbidden("value", "may not be changed in an update."));
    }
    if old.get("preemptionPolicy") != new.get("preemptionPolicy") {
        let shown = new.get("preemptionPolicy").unwrap_or(&Value::Null);
        causes.push(Cause::invalid("preemptionPolicy", shown, "field is immutable"));
    }
}

/// The one class that pods without a class have; the lowest where there are several.
fn default_class<'a>(classes: impl Iterator<Item = &'a Value>) -> Option<&'a Value> {
    classes
        .filter(|class| json::flag(class, &["globalDefault"]))
        .min_by_key(|class| json::int(class, &["value"]).unwrap_or(0))
}

/// Gives a new pod the priority of its class, of the default class, or 0 (the admission plugin Priority).
///
/// Errors: 403 for a class that is not there and for a priority or preemption policy other than the class's.
pub(super) fn admit(pod: &mut Value, classes: &[Value]) -> Result<(), ApiError> {
    let name = json::text(pod, &["metadata", "name"]).to_owned();
    let wanted = json::text(pod, &["spec", "priorityClassName"]).to_owned();
    let spec = json::object_mut(pod, &["spec"]);
    let system = system_classes();
    let named = |class: &Value| json::text(class, &["metadata", "name"]).to_owned();
    let class = if wanted.is_empty() {
        default_class(classes.iter())
    } else {
        Some(classes.iter().chain(&system).find(|class| named(class) == wanted).ok_or_else(|| {
            let why = format!("no PriorityClass with name {wanted} was found");
            ApiError::forbidden("", "pods", &name, &why)
        })?)
    };
    let priority = class.and_then(|class| json::int(class, &["value"])).unwrap_or(0);
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != priority
    {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {priority} from the given PriorityClass name"
        );
        return Err(ApiError::forbidden("", "pods", &name, &why));
    }
    spec.insert("priority".to_owned(), json!(priority));
    let Some(class) = class else { return Ok(()) };
    spec.insert("priorityClassName".to_owned(), json!(named(class)));
    let policy = json::text(class, &["preemptionPolicy"]);
    let policy = if policy.is_empty() { PREEMPTION[0] } else { policy };
    if let Some(given) = spec.get("preemptionPolicy").and_then(Value::as_str)
        && given != policy
    {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return Err(ApiError::forbidden("", "pods", &name, &why));
    }
    spec.insert("preemptionPolicy".to_owned(), json!(policy));
    Ok(())
}

/// Holds a priority class that wants to be the default against the one that is.
///
/// Errors: 403 where another class is the default.
pub fn admit_default_class<'a>(
    class: &Value,
    new: bool,
    classes: impl Iterator<Item = &'a Value>,
) -> Result<(), ApiError> {
    if !json::flag(class, &["globalDefault"]) {
        return Ok(());
    }
    let name = json::text(class, &["metadata", "name"]);
    match default_class(classes).map(|class| json::text(class, &["metadata", "name"])) {
        Some(present) if new || present != name => {
            let why =
                format!("PriorityClass {present} is already marked as default. Only one default can exist");
            Err(ApiError::forbidden("scheduling.k8s.io", "priorityclasses", name, &why))
        }
        Some(_) | None => Ok(()),
    }
}
