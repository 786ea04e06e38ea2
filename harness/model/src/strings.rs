//! Where Kubernetes' API has texts, and YAML would quietly make a boolean or a number of a bare word.
//!
//! `status: True` in a condition is the trap that people meet first.

use crate::reader::Reader;
use crate::yaml::{Entry, Kind, Node};

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
    if let Some(text) = node.as_text() {
        check_word(reader, parent, text, node);
    }
    if !matches!(node.kind, Kind::Bool(_) | Kind::Number(_)) {
        return;
    }
    if TEXT_KEYS.contains(&parent) || TEXT_PARENTS.contains(&parent) {
        refuse(reader, parent, node);
    }
}

/// Keys whose value is one of a few words, which the API writes in this way.
const WORDS: [(&str, &[&str]); 4] = [
    ("phase", &["Pending", "Running", "Succeeded", "Failed", "Unknown", "Active", "Terminating"]),
    ("effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"]),
    ("restartPolicy", &["Always", "OnFailure", "Never"]),
    ("concurrencyPolicy", &["Allow", "Forbid", "Replace"]),
];

/// Notes such a word in other letters: small or capital ones matter.
fn check_word(reader: &mut Reader<'_>, key: &str, text: &str, node: &Node) {
    let words = WORDS.iter().find(|(known, _)| *known == key).map_or(&[][..], |(_, words)| words);
    if let Some(word) = words.iter().find(|word| word.eq_ignore_ascii_case(text) && **word != text) {
        reader.wrong(&node.span, format!("`{text}` is never the {key}"), format!("write {word}"));
    }
}

/// Notes a list of one-key mappings that were most likely meant as one element: `[type: Ready, status: "True"]`.
pub(crate) fn check_torn(reader: &mut Reader<'_>, list: &Node) {
    let Kind::List(items) = &list.kind else { return };
    let mut keys: Vec<&str> = Vec::new();
    for item in items {
        let bare = !reader.source().get(item.span.start..).unwrap_or_default().starts_with('{');
        match &item.kind {
            Kind::Map(entries) if bare && entries.len() == 1 && !keys.contains(&entries[0].key.as_str()) => {
                keys.push(&entries[0].key);
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => {
                return;
            }
        }
    }
    if keys.len() >= 2 {
        let one: Vec<String> = keys.iter().map(|key| format!("{key}: …")).collect();
        reader.wrong(
            &list.span,
            format!("each key makes an element of its own here: these are {} elements", keys.len()),
            format!("for one element write [{{{}}}]; for several put braces around each", one.join(", ")),
        );
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

/// Parts of an object under which keys are fields of the API, never the writer's own.
const PARTS: [&str; 3] = ["metadata", "spec", "status"];

/// Notes paths that stand as keys, at the top of an object (`spec.nodeName: a`) or of a part of it, where nothing is ever
/// called so.
pub(crate) fn check_dotted(reader: &mut Reader<'_>, object: &Node) {
    let Kind::Map(entries) = &object.kind else { return };
    for entry in entries {
        let part = PARTS.contains(&entry.key.as_str());
        let inner = match &entry.value.kind {
            Kind::Map(entries) if part => entries.as_slice(),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => {
                &[]
            }
        };
        for found in std::iter::once(entry).chain(inner) {
            refuse_path(reader, found);
        }
    }
}

/// Notes a key that is a path. A key of the writer's own, such as a label's, has a slash or stands deeper.
fn refuse_path(reader: &mut Reader<'_>, entry: &Entry) {
    let is_word = |part: &str| {
        let name = part.split('[').next().unwrap_or_default();
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let parts: Vec<&str> = entry.key.split('.').collect();
    let bracketed = parts.iter().any(|part| part.contains('['));
    if (parts.len() < 2 && !bracketed) || !parts.iter().all(|part| is_word(part)) {
        return;
    }
    let remedy = if bracketed {
        "a list's element stands in a list: conditions: [{type: Ready, status: \"True\"}]".to_owned()
    } else {
        let nested = parts.iter().rev().fold("…".to_owned(), |inner, part| match inner.as_str() {
            "…" => format!("{part}: …"),
            inner => format!("{part}: {{{inner}}}"),
        });
        format!("put one mapping into the other: {nested}")
    };
    reader.wrong(&entry.key_span, format!("`{}` is a path, and no field is called so", entry.key), remedy);
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
        Kind::List(items) => {
            check_torn(reader, node);
            items.iter().for_each(|item| check_object(reader, item, parent));
        }
        Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
            if let Some(parent) = parent {
                check_scalar(reader, parent, node);
            }
        }
        Kind::Null => {}
    }
}
