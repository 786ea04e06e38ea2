//! JSON patch (RFC 6902), through the `json-patch` crate, with Kubernetes' answers.
//!
//! Kubernetes names no cause when an operation fails: every failure of a well-formed list is the same 422.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::json::{MAX_DEPTH, Node};
use crate::status::ApiError;

/// Operations that one patch may hold, as in Kubernetes.
const MAX_OPERATIONS: usize = 10_000;

/// Bytes that the copies of one patch may add, as in Kubernetes: without a limit 30 copies make gigabytes.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Applies the patch in `body`.
///
/// Errors: 400 for a body that is no JSON list of objects, 413 for too many operations, 422 for one that fails.
pub(super) fn apply(current: &Value, body: &[u8]) -> Result<Value, ApiError> {
    let node = crate::json::parse(body).map_err(|why| refuse(&why))?;
    let operations = match node {
        Node::List(operations) => operations,
        Node::Null => Vec::new(),
        other => {
            return Err(refuse(&format!(
                "json: cannot unmarshal {} into Go value of type []interface {{}}",
                other.go_kind()
            )));
        }
    };
    if operations.len() > MAX_OPERATIONS {
        return Err(ApiError::too_large(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    if let Some(odd) = operations.iter().find(|one| !matches!(one, Node::Object(_) | Node::Null)) {
        return Err(ApiError::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.Operation",
            odd.go_kind()
        )));
    }
    let list = Node::List(operations).into_value();
    let patch: Patch = serde_json::from_value(list).map_err(|_| ApiError::rejected())?;
    let mut patched = current.clone();
    let mut copied = 0;
    for operation in patch.0 {
        if let PatchOperation::Copy(copy) = &operation {
            copied += patched.pointer(copy.from.as_str()).map_or(0, size);
            if copied > MAX_COPIED {
                return Err(ApiError::rejected());
            }
        }
        // Every operation may nest what is there once more; none may grow it beyond what can be walked.
        json_patch::patch_unsafe(&mut patched, &[operation]).map_err(|_| ApiError::rejected())?;
        if depth(&patched) > MAX_DEPTH {
            return Err(ApiError::rejected());
        }
    }
    Ok(patched)
}

fn refuse(why: &str) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {why}"))
}

/// How many levels of arrays and objects a value has, counted without recursion.
fn depth(value: &Value) -> usize {
    let mut level: Vec<&Value> = vec![value];
    let mut depth = 0;
    loop {
        let mut below = Vec::new();
        for value in level {
            match value {
                Value::Array(items) => below.extend(items),
                Value::Object(map) => below.extend(map.values()),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        if below.is_empty() {
            return depth;
        }
        level = below;
        depth += 1;
    }
}

/// About how many bytes a value takes as JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| size(item) + 1).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(key, item)| key.len() + 4 + size(item)).sum::<usize>(),
    }
}
