//! Small readers and writers over Kubernetes objects in JSON form, shared by the decisions of this crate.
//!
//! Readers never fail: what is absent or of another type is `None`, as untyped input demands.

use serde_json::{Map, Value};

/// The value at `path`, if every step is an object that has it.
pub(crate) fn get<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |at, step| at.as_object()?.get(*step))
}

/// The string at `path`.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    get(value, path)?.as_str()
}

/// The integer at `path`.
pub(crate) fn int(value: &Value, path: &[&str]) -> Option<i64> {
    get(value, path)?.as_i64()
}

/// The elements of the list at `path`; none where there is no list.
pub(crate) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    get(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether the boolean at `path` is true.
pub(crate) fn is_true(value: &Value, path: &[&str]) -> bool {
    get(value, path) == Some(&Value::Bool(true))
}

/// The object at `path`, made (over whatever else stood there) where it is missing.
pub(crate) fn object_mut<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    let mut at = as_object(value);
    for step in path {
        at = as_object(at.entry(*step).or_insert(Value::Null));
    }
    at
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

/// `value` as a list, made (over whatever else stood there) where it is none.
pub(crate) fn list_mut(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(list) => list,
        _ => unreachable!("made a list above"),
    }
}

/// `metadata.uid`, or the empty string.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"]).unwrap_or_default()
}

/// `metadata.name`, or the empty string.
pub(crate) fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"]).unwrap_or_default()
}

/// `metadata.namespace`, or the empty string.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"]).unwrap_or_default()
}

/// `metadata.resourceVersion`, as the opaque string that preconditions use.
pub(crate) fn resource_version(object: &Value) -> Option<String> {
    text(object, &["metadata", "resourceVersion"]).map(str::to_owned)
}

/// Whether `metadata.deletionTimestamp` is set.
pub(crate) fn is_terminating(object: &Value) -> bool {
    text(object, &["metadata", "deletionTimestamp"]).is_some()
}
