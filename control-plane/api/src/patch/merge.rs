//! JSON merge patch (RFC 7386): objects merge, null deletes, everything else replaces.

use serde_json::{Map, Value};

use crate::status::ApiError;

/// Applies the patch in `body`. Errors: 400 for a body that is no JSON object.
pub(super) fn apply(current: &Value, body: &[u8]) -> Result<Value, ApiError> {
    let patch = super::read_object(body)?;
    let mut merged = current.clone();
    merge(&mut merged, patch);
    Ok(merged)
}

/// Merges `patch` into `target`.
pub(super) fn merge(target: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else { return };
    for (key, value) in fields {
        if value.is_null() {
            map.remove(&key);
        } else {
            merge(map.entry(key).or_insert(Value::Null), value);
        }
    }
}
