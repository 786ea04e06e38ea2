//! What of an object a pattern can see, for telling whether anything of it changed.

use rigor_model::pattern::Pattern;
use serde_json::Value;

/// The part of an object that a pattern speaks of, with whole list elements where it picks them by key;
/// what changes with every report (`lastHeartbeatTime`) is left out. Two equal projections mean that
/// nothing which the pattern can see has changed.
pub(crate) fn projection(pattern: &Pattern, value: Option<&Value>) -> Value {
    match (pattern, value) {
        (Pattern::Map(pairs), Some(Value::Object(object))) => Value::Object(
            pairs.iter().map(|(key, pattern)| (key.clone(), projection(pattern, object.get(key)))).collect(),
        ),
        (Pattern::List(items), Some(Value::Array(elements))) => {
            let keyed = items.iter().all(|item| pattern_key(item).is_some());
            let kept = elements.iter().filter(|element| {
                !keyed
                    || items.iter().any(|item| {
                        pattern_key(item)
                            .is_some_and(|(key, text)| element.get(key).and_then(Value::as_str) == Some(text))
                    })
            });
            Value::Array(kept.map(without_heartbeat).collect())
        }
        (_, Some(value)) => without_heartbeat(value),
        (_, None) => Value::Null,
    }
}

fn pattern_key(item: &Pattern) -> Option<(&'static str, &str)> {
    let Pattern::Map(pairs) = item else { return None };
    ["type", "key", "name"].into_iter().find_map(|key| {
        pairs.iter().find_map(|(found, pattern)| match pattern {
            Pattern::Scalar(Value::String(text)) if found == key => Some((key, text.as_str())),
            Pattern::Scalar(_) | Pattern::Map(_) | Pattern::List(_) | Pattern::Operators(_) => None,
        })
    })
}

fn without_heartbeat(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(
            object
                .iter()
                .filter(|(key, _)| !matches!(key.as_str(), "lastHeartbeatTime" | "resourceVersion"))
                .map(|(key, value)| (key.clone(), without_heartbeat(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_heartbeat).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
