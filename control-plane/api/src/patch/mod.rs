//! The three kinds of patch that clients send, applied to the object as it is kept.
//!
//! What comes out is not yet typed, defaulted or validated: [`crate::decode::check_patched`] and
//! [`crate::strategy`] do that, as for a replacement.

mod json;
mod merge;
mod strategic;

use serde_json::Value;

use crate::decode::{self, Decoded, Dialect, Expected};
use crate::options::FieldValidation;
use crate::status::ApiError;

/// The media type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902, `application/json-patch+json`.
    Json,
    /// RFC 7386, `application/merge-patch+json`.
    Merge,
    /// Kubernetes' own, `application/strategic-merge-patch+json`.
    Strategic,
}

impl PatchType {
    /// The type named by a `Content-Type` header; parameters are ignored.
    ///
    /// Errors: 415 for anything else, server-side apply included.
    pub fn from_content_type(header: &str) -> Result<Self, ApiError> {
        match header.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic),
            _ => Err(ApiError::unsupported_patch_type()),
        }
    }
}

/// Applies a patch to `current` and checks the result's types.
///
/// Errors: 400 for a patch that is not well formed, 422 for one that cannot be carried out or leaves a badly typed
/// object behind.
pub fn apply(
    expected: Expected,
    patch_type: PatchType,
    current: &Value,
    body: &[u8],
    validation: FieldValidation,
    dialect: Dialect,
) -> Result<Decoded, ApiError> {
    let (patched, shown) = match patch_type {
        PatchType::Json => {
            let patched = json::apply(current, body)?;
            let shown = patched.to_string();
            (patched, shown)
        }
        PatchType::Merge => {
            let patched = merge::apply(current, body)?;
            let shown = patched.to_string();
            (patched, shown)
        }
        PatchType::Strategic => strategic::apply(expected, current, body)?,
    };
    decode::check_patched(expected, patched, &shown, validation, dialect)
}

/// Reads a patch body that must be a JSON object.
fn read_object(body: &[u8]) -> Result<Value, ApiError> {
    let node = crate::json::parse(body)
        .map_err(|why| ApiError::bad_request(format!("error decoding patch: {why}")))?;
    match node {
        crate::json::Node::Object(_) => Ok(node.into_value()),
        crate::json::Node::Null => Ok(Value::Object(serde_json::Map::new())),
        other => Err(ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            other.go_kind()
        ))),
    }
}

#[cfg(test)]
mod tests;
