//! `metadata.generation`: 1 for a new object, one more with each change of what is wanted.

use serde_json::{Map, Value, json};

use super::Context;
use crate::decode::Dialect;
use crate::json;
use crate::kinds::Kind;

/// Starts the count of a new object.
pub(super) fn begin(kind: &Kind, object: &mut Value) {
    if kind.generation {
        json::object_mut(object, &["metadata"]).insert("generation".to_owned(), json!(1));
    }
}

/// Counts on where an update changes what is wanted: everything but metadata and status.
///
/// The labels of an endpoint slice count as well; in Kubernetes' dialect so do the annotations of a Deployment. A
/// priority class has nothing that may change and keeps its count.
pub(super) fn raise(kind: &Kind, old: &Value, new: &mut Value, context: &Context) {
    if !kind.generation || kind.resource == "priorityclasses" {
        return;
    }
    let differs =
        |field: &str| json::object(old, &["metadata", field]) != json::object(new, &["metadata", field]);
    let counted = match kind.resource {
        "deployments" => context.dialect == Dialect::Kubernetes && differs("annotations"),
        "endpointslices" => differs("labels"),
        _ => false,
    };
    if counted || !same_content(old, new) {
        let generation = json::int(old, &["metadata", "generation"]).unwrap_or(0);
        json::object_mut(new, &["metadata"]).insert("generation".to_owned(), json!(generation + 1));
    }
}

fn same_content(old: &Value, new: &Value) -> bool {
    let content = |object: &Value| -> Map<String, Value> {
        let fields = object.as_object().into_iter().flatten();
        fields
            .filter(|(name, value)| {
                !matches!(name.as_str(), "metadata" | "status" | "apiVersion" | "kind") && !value.is_null()
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    content(old) == content(new)
}
