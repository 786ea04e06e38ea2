//! Reading of objects that acts send to the API.

use serde_json::Value;

use super::api::{kind, templated};
use crate::reader::Fields;
use crate::step::Context;
use crate::strings;
use crate::yaml::{Kind, Node};

/// The one object of `manifest` or `file`.
pub(super) fn object(context: &mut Context<'_, '_>, fields: &Fields<'_>, node: &Node) -> Option<Value> {
    let mut objects = objects(context, fields)?;
    if objects.len() != 1 {
        context.reader.wrong(
            &node.span,
            format!("the file holds {} objects", objects.len()),
            "one object belongs here; `apply` takes several",
        );
        return None;
    }
    objects.pop()
}

/// The objects of `manifest` or `file`.
pub(super) fn objects(context: &mut Context<'_, '_>, fields: &Fields<'_>) -> Option<Vec<Value>> {
    if let Some(node) = fields.get("manifest") {
        return Some(vec![manifest(context, node)?]);
    }
    let node = fields.get("file")?;
    let name = context.reader.text(node)?;
    let documents = context.documents(node, &name)?;
    let objects: Vec<Option<Value>> = documents.iter().map(|document| manifest(context, document)).collect();
    objects.into_iter().collect()
}

/// One object of a known kind.
pub(super) fn manifest(context: &mut Context<'_, '_>, node: &Node) -> Option<Value> {
    let Kind::Map(_) = &node.kind else {
        let file = node.as_text().filter(|text| text.ends_with(".yaml") || text.ends_with(".yml"));
        let remedy = match file {
            Some(file) => format!("write file: {file}"),
            None => "write its apiVersion, kind, metadata and spec".to_owned(),
        };
        context.reader.wrong(&node.span, format!("an object belongs here, not {}", node.describe()), remedy);
        return None;
    };
    if !context.goes_on() {
        return None;
    }
    strings::check_object(context.reader, node, None);
    strings::check_dotted(context.reader, node);
    let head = node.span.start..node.span.start;
    for key in ["apiVersion", "kind", "metadata"] {
        if node.get(key).is_none() {
            context.reader.wrong(
                &head,
                format!("the object has no `{key}`"),
                "add it; for a body that is wrong on purpose use `request`",
            );
            return None;
        }
    }
    let kind = kind(context, node.get("kind")?);
    let version = node.get("apiVersion")?;
    if let Some(kind) = kind
        && version.as_text() != Some(kind.api_version)
    {
        context.reader.wrong(
            &version.span,
            format!("a {} has another apiVersion than {}", kind.kind, version.describe()),
            format!("write {}", kind.api_version),
        );
    }
    let metadata = node.get("metadata")?;
    if metadata.get("name").is_none() && metadata.get("generateName").is_none() {
        context.reader.wrong(&metadata.span, "the object has no name", "add `name` under metadata");
    }
    let object = templated(context, node);
    kind.map(|_| object)
}

/// Notes operations of a JSON patch whose paths are no JSON pointers.
pub(super) fn check_operations(context: &mut Context<'_, '_>, patch: &Node) {
    let Kind::List(operations) = &patch.kind else { return };
    for path in operations.iter().filter_map(|operation| operation.get("path")) {
        let Some(text) = path.as_text() else { continue };
        if !text.is_empty() && !text.starts_with(['/', '$']) {
            let right = format!("write /{}", text.replace('.', "/"));
            context.reader.wrong(&path.span, "a path in a JSON patch begins with a slash", right);
        }
    }
}
