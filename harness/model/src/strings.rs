//! Where Kubernetes' API has texts, and YAML would quietly make a boolean or a number of a bare word.
//!
//! `status: True` in a condition is the trap that people meet first.

use crate::reader::Reader;
use crate::yaml::{Kind, Node};

/// Keys whose value is a text wherever they stand in the kinds that scenarios use.
const TEXT_KEYS: [&str; 24] = [
    "apiVersion",
    "kind",
    "name",
    "generateName",
    "namespace",
    "type",
    "reason",
    "message",
    "phase",
    "key",
    "effect",
    "operator",
    "image",
    "nodeName",
    "restartPolicy",
    "schedulerName",
    "serviceAccountName",
    "uid",
    "resourceVersion",
    "hostIP",
    "podIP",
    "containerID",
    "value",
    "component",
];

/// Keys under which every value of the mapping, or every element of the list, is a text.
const TEXT_PARENTS: [&str; 10] = [
    "labels",
    "annotations",
    "matchLabels",
    "nodeSelector",
    "data",
    "stringData",
    "args",
    "command",
    "finalizers",
    "selector",
];

/// The key that tells how the values under `key` are to be read: a parent of texts stays in force for
/// what stands right under it.
pub(crate) fn parent_of(parent: Option<&str>, key: &str) -> String {
    match parent {
        Some(parent) if TEXT_PARENTS.contains(&parent) => parent.to_owned(),
        Some(_) | None => key.to_owned(),
    }
}

/// Notes a boolean or number that stands under a key where the API has a text.
pub(crate) fn check_scalar(reader: &mut Reader<'_>, parent: &str, node: &Node) {
    if !matches!(node.kind, Kind::Bool(_) | Kind::Number(_)) {
        return;
    }
    if TEXT_KEYS.contains(&parent) || TEXT_PARENTS.contains(&parent) {
        refuse(reader, parent, node);
    }
}

/// Notes the status of a condition (a mapping that has a `type`) that is no text.
pub(crate) fn check_status(reader: &mut Reader<'_>, mapping: &Node) {
    if mapping.get("type").is_some() {
        check_condition(reader, mapping);
    }
}

/// The same for a mapping that is known to be a condition.
pub(crate) fn check_condition(reader: &mut Reader<'_>, mapping: &Node) {
    if let Some(status) = mapping.get("status")
        && matches!(status.kind, Kind::Bool(_) | Kind::Number(_))
    {
        refuse(reader, "status", status);
    }
}

fn refuse(reader: &mut Reader<'_>, key: &str, node: &Node) {
    let right = match &node.kind {
        Kind::Bool(true) if key == "status" => "True".to_owned(),
        Kind::Bool(false) if key == "status" => "False".to_owned(),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => {
            reader.source().get(node.span.clone()).unwrap_or_default().to_owned()
        }
    };
    reader.wrong(
        &node.span,
        format!("the API has a text under `{key}`, and {} is none", node.describe()),
        format!("write \"{right}\""),
    );
}

/// Notes all such mistakes in an object that is sent to the API.
pub(crate) fn check_object(reader: &mut Reader<'_>, node: &Node, parent: Option<&str>) {
    match &node.kind {
        Kind::Map(entries) => {
            check_status(reader, node);
            for entry in entries {
                check_object(reader, &entry.value, Some(&parent_of(parent, &entry.key)));
            }
        }
        Kind::List(items) => items.iter().for_each(|item| check_object(reader, item, parent)),
        Kind::Bool(_) | Kind::Number(_) => {
            if let Some(parent) = parent {
                check_scalar(reader, parent, node);
            }
        }
        Kind::Null | Kind::Text(_) => {}
    }
}
