//! Reading of `node`: a node that the harness plays, with exact figures.

use serde_json::{Map, Value};

use super::api::text;
use super::{NodeState, PlayedNode, Renew, Report};
use crate::reader::{Fields, word};
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::yaml::{Kind, Node};

pub(crate) static NODE: Shape = Shape::new(
    "node",
    "Plays a node: the first use of a name creates it, later ones change it.",
    &[
        Field::required("name", FieldType::Text, "The node's name."),
        Field::optional("allocatable", FieldType::Mapping(&FieldType::Any), "What it offers."),
        Field::optional("capacity", FieldType::Mapping(&FieldType::Any), "What it has.")
            .usually("as allocatable"),
        Field::optional("labels", FieldType::Mapping(&FieldType::Text), "Its labels."),
        Field::optional(
            "state",
            FieldType::Word(&["ready", "unready", "unknown", "bare"]),
            "Its Ready condition; bare: no status at all.",
        )
        .usually("ready"),
        Field::optional("leaseDuration", FieldType::Duration, "leaseDurationSeconds of its lease.")
            .usually("leaseDuration"),
        Field::optional(
            "renew",
            FieldType::DurationOr(&["stop", "never"]),
            "How often it renews its lease, or no more, or no lease at all.",
        )
        .usually("renewInterval"),
        Field::optional(
            "report",
            FieldType::DurationOr(&["now", "never"]),
            "When it writes its status: once now, that often, or never.",
        )
        .usually("now"),
    ],
);

pub(crate) fn node(context: &mut Context<'_, '_>, node: &Node) -> Option<PlayedNode> {
    let fields = context.reader.open(node, &NODE)?;
    let name_node = fields.get("name")?;
    let name = context.reader.text(name_node)?;
    if context.is_board(&name) {
        context.reader.wrong(
            &name_node.span,
            format!("`{name}` is a board"),
            "give the played node another name, such as n1",
        );
    }
    let labels = match fields.get("labels") {
        Some(node) => {
            let entries = context.reader.map(node);
            entries
                .iter()
                .filter_map(|entry| Some((entry.key.clone(), text(context, &entry.value)?)))
                .collect()
        }
        None => std::collections::BTreeMap::new(),
    };
    Some(PlayedNode {
        name,
        allocatable: figures(context, &fields, "allocatable"),
        capacity: figures(context, &fields, "capacity"),
        labels,
        state: fields
            .get("state")
            .and_then(|node| word(context.reader, node, &NodeState::ALL, NodeState::name)),
        lease_duration: fields.get("leaseDuration").and_then(|node| context.reader.whole_seconds(node)),
        renew: fields.get("renew").and_then(|node| match node.as_text() {
            Some("stop") => Some(Renew::Stop),
            Some("never") => Some(Renew::Never),
            Some(_) | None => context.length(node).map(Renew::Every),
        }),
        report: fields.get("report").and_then(|node| match node.as_text() {
            Some("now") => Some(Report::Now),
            Some("never") => Some(Report::Never),
            Some(_) | None => context.length(node).map(Report::Every),
        }),
    })
}

/// Resources and their amounts: texts or whole numbers.
fn figures(context: &mut Context<'_, '_>, fields: &Fields<'_>, key: &str) -> Option<Map<String, Value>> {
    let node = fields.get(key)?;
    let entries = context.reader.map(node);
    let mut figures = Map::new();
    for entry in entries {
        match &entry.value.kind {
            Kind::Text(_) | Kind::Number(_) => {
                figures.insert(entry.key.clone(), entry.value.to_value());
            }
            Kind::Null | Kind::Bool(_) | Kind::List(_) | Kind::Map(_) => {
                let message = format!("an amount belongs here, not {}", entry.value.describe());
                context.reader.wrong(&entry.value.span, message, "write for example 64Ki, \"4\" or 4");
            }
        }
    }
    Some(figures)
}
