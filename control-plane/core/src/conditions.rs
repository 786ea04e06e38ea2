//! Reading and writing `status.conditions`. `lastTransitionTime` moves only with `status`.

use serde_json::{Map, Value};

use crate::json;
use crate::time::Now;

/// The condition of this type, if the object has one.
#[must_use]
pub fn get<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    json::list(object, &["status", "conditions"]).iter().find(|c| json::text(c, &["type"]) == Some(kind))
}

/// The status (`True`, `False`, `Unknown`) of the condition of this type.
#[must_use]
pub fn status<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    json::text(get(object, kind)?, &["status"])
}

/// Whether the condition of this type is `True`.
#[must_use]
pub fn is_true(object: &Value, kind: &str) -> bool {
    status(object, kind) == Some("True")
}

/// What a condition is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Saying<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    /// Absent from the object where empty, as Kubernetes serialises it.
    pub(crate) reason: &'a str,
    /// Absent from the object where empty.
    pub(crate) message: &'a str,
}

/// Makes `object` say so. Keeps every other field of the condition (`lastProbeTime`, `lastHeartbeatTime`), and
/// `lastTransitionTime` unless the status changes. Returns whether anything changed.
pub(crate) fn set(object: &mut Value, saying: Saying<'_>, now: &Now) -> bool {
    let conditions = list_mut(object);
    let found = conditions.iter_mut().find(|c| json::text(c, &["type"]) == Some(saying.kind));
    let condition = match found {
        Some(condition) => condition,
        None => {
            conditions.push(Value::Object(Map::from_iter([("type".to_owned(), saying.kind.into())])));
            let Some(condition) = conditions.last_mut() else { return false };
            condition
        }
    };
    let before = condition.clone();
    let fields = json::object_mut(condition, &[]);
    if fields.get("status").and_then(Value::as_str) != Some(saying.status) {
        fields.insert("status".to_owned(), saying.status.into());
        fields.insert("lastTransitionTime".to_owned(), now.stamp().into());
    }
    for (field, value) in [("reason", saying.reason), ("message", saying.message)] {
        if value.is_empty() {
            fields.remove(field);
        } else {
            fields.insert(field.to_owned(), value.into());
        }
    }
    *condition != before
}

/// The conditions, an empty list where there are none.
pub(crate) fn list_mut(object: &mut Value) -> &mut Vec<Value> {
    json::list_mut(json::object_mut(object, &["status"]).entry("conditions").or_insert(Value::Null))
}

/// Removes the conditions for which `unwanted` is true.
pub(crate) fn retain(object: &mut Value, mut wanted: impl FnMut(&Value) -> bool) {
    if let Some(Value::Array(conditions)) = json::object_mut(object, &["status"]).get_mut("conditions") {
        conditions.retain(|c| wanted(c));
    }
}
