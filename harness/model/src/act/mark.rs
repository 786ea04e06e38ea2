//! `mark`: something is done outside the API, and the history says so.

use super::api::text;
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::template;
use crate::yaml::Node;

/// Notes in the history that something is done; what `heartbeats-stopped` and `heartbeats-resumed` say is done, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// What is done.
    pub name: String,
    /// To which node.
    pub node: Option<String>,
}

/// The marks that do something, with whether a played node's heart beats after them.
const HEARTBEATS: [(&str, bool); 2] = [("heartbeats-stopped", false), ("heartbeats-resumed", true)];

impl Mark {
    /// Whether the node's heart beats from then on, where the mark is about that.
    pub fn heartbeats(&self) -> Option<bool> {
        HEARTBEATS.iter().find(|(name, _)| *name == self.name).map(|(_, beats)| *beats)
    }
}

pub(crate) static MARK: Shape = Shape::new(
    "mark",
    "Notes in the history that something is done outside the API. `heartbeats-stopped` and `heartbeats-resumed` do it to a played node: no renewals and no reports until then.",
    &[
        Field::required("name", FieldType::Text, "What is done.").such_as("heartbeats-stopped"),
        Field::optional("node", FieldType::Text, "To which node.").such_as("n1"),
    ],
);

pub(crate) fn mark(context: &mut Context<'_, '_>, node: &Node) -> Option<Mark> {
    let fields = context.reader.open(node, &MARK)?;
    let name_node = fields.get("name")?;
    let name = text(context, name_node)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if template::names(&name).is_empty() && !name.chars().all(fits) {
        context.reader.wrong(
            &name_node.span,
            format!("no mark can be called `{name}`"),
            "use letters (a to z), digits and hyphens, so that `mark(NAME)` can be written",
        );
    }
    let subject = match fields.get("node") {
        Some(node) => Some(text(context, node)?),
        None => None,
    };
    let mark = Mark { name, node: subject };
    if mark.heartbeats().is_some() && mark.node.is_none() {
        context.reader.wrong(
            &node.span,
            format!("`{}` of which node?", mark.name),
            "add `node:` with the name of a played node",
        );
    }
    Some(mark)
}
