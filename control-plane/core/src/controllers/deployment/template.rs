//! The hash of a pod template, and pods made from it.

use serde_json::{Map, Value, json};

use super::TEMPLATE_HASH;
use crate::json;

/// The hash of a pod template, for labels and names: the same for the same JSON, whatever the order of its fields.
#[must_use]
pub fn hash(template: &Value) -> String {
    // FNV-1a, 32 bits
    let mut state = 0x811c_9dc5_u32;
    canonical(template, &mut |bytes| {
        for byte in bytes {
            state = (state ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    });
    // Kubernetes' alphabet for generated names: no vowels, nothing that looks alike
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let digits = state.to_string().into_bytes();
    digits.iter().map(|digit| char::from(ALPHABET[usize::from(*digit) % ALPHABET.len()])).collect()
}

/// Feeds a JSON value to `write` with the fields of objects in the order of their names; fields that are null are
/// left out, since clients differ in whether they send them.
fn canonical(value: &Value, write: &mut impl FnMut(&[u8])) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().filter(|(_, value)| !value.is_null()).collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            write(b"{");
            for (name, value) in fields {
                write(name.as_bytes());
                write(b"\0");
                canonical(value, write);
            }
            write(b"}");
        }
        Value::Array(items) => {
            write(b"[");
            for item in items {
                canonical(item, write);
                write(b",");
            }
            write(b"]");
        }
        Value::String(text) => {
            write(b"\"");
            write(text.as_bytes());
            write(b"\0");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => write(value.to_string().as_bytes()),
    }
}

/// A pod of `deployment`, to be named by the server from its `generateName` (DEPL-01).
pub(super) fn pod(deployment: &Value, hash: &str) -> Value {
    let template = json::get(deployment, &["spec", "template"]).cloned().unwrap_or_default();
    let name = json::name(deployment);
    let mut metadata = Map::new();
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = json::get(&template, &["metadata", field]) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    metadata.insert("generateName".to_owned(), format!("{name}-{hash}-").into());
    metadata.insert("namespace".to_owned(), json::namespace(deployment).into());
    metadata.insert(
        "ownerReferences".to_owned(),
        json!([{
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": name,
            "uid": json::uid(deployment),
            "controller": true,
            "blockOwnerDeletion": true,
        }]),
    );
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": json::get(&template, &["spec"]).cloned().unwrap_or_default(),
    });
    json::object_mut(&mut pod, &["metadata", "labels"]).insert(TEMPLATE_HASH.to_owned(), hash.into());
    pod
}
