//! The hash of a pod template, and pods made from it.

use serde_json::Value;

use super::TEMPLATE_HASH;
use crate::controllers::children::{Fnv, Owner};
use crate::json;

/// The hash of a pod template, for labels and names: the same for the same JSON, whatever the order of its fields.
#[must_use]
pub fn hash(template: &Value) -> String {
    let mut state = Fnv::new();
    canonical(template, &mut |bytes| state.write(bytes));
    state.text()
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
    let owner = Owner {
        object: deployment,
        api_version: "apps/v1",
        kind: "Deployment",
        component: "deployment-controller",
    };
    let mut pod = owner.pod(&format!("{}-{hash}-", json::name(deployment)));
    json::object_mut(&mut pod, &["metadata", "labels"]).insert(TEMPLATE_HASH.to_owned(), hash.into());
    pod
}
