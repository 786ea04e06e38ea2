//! `node`: a node that the harness plays, with exact figures.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use serde_json::{Map, Value};

use super::api::text;
use crate::borrowed::meant_word;
use crate::constants::Constant;
use crate::expr::{Instant, Length};
use crate::letters::hyphened;
use crate::mistake::nearest;
use crate::quantity;
use crate::reader::{Fields, word};
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::template;
use crate::yaml::{Kind, Node};

/// A node that the harness plays: created at the first use of its name, changed by later ones.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayedNode {
    /// Its name.
    pub name: String,
    /// `status.allocatable`.
    pub allocatable: Option<Map<String, Value>>,
    /// `status.capacity`; as allocatable if absent.
    pub capacity: Option<Map<String, Value>>,
    /// Labels, laid over those it has.
    pub labels: BTreeMap<String, String>,
    /// Annotations, laid over those it has.
    pub annotations: BTreeMap<String, String>,
    /// `spec.taints`, all of them.
    pub taints: Option<Vec<Value>>,
    /// `spec.unschedulable`.
    pub unschedulable: Option<bool>,
    /// Its Ready condition.
    pub state: Option<NodeState>,
    /// `leaseDurationSeconds`; the constant if absent. Whole seconds.
    pub lease_duration: Option<Duration>,
    /// How it renews its lease.
    pub renew: Option<Renew>,
    /// When it writes its status.
    pub report: Option<Report>,
}

super::words! {
    /// What a played node reports about itself.
    NodeState {
        /// Ready=True; the default.
        Ready "ready";
        /// Ready=False.
        Unready "unready";
        /// Ready=Unknown.
        Unknown "unknown";
        /// No status at all.
        Bare "bare";
    }
}

/// How a played node renews its lease.
#[derive(Debug, Clone, PartialEq)]
pub enum Renew {
    /// That often; the default is `renewInterval`.
    Every(Length),
    /// No more.
    Stop,
    /// It has no lease at all.
    Never,
}

/// When a played node writes its status.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Once, in this step; the default.
    Now,
    /// Now and then that often.
    Every(Length),
    /// Once, at that instant or in this step if it is past, and not before.
    At(Instant),
    /// Not at all.
    Never,
}

pub(crate) static NODE: Shape = Shape::new(
    "node",
    "Plays a node: the first use of a name creates it, later ones change it.",
    &[
        Field::required("name", FieldType::Text, "The node's name."),
        Field::optional("allocatable", FieldType::Mapping(&FieldType::Any), "What it offers."),
        Field::optional("capacity", FieldType::Mapping(&FieldType::Any), "What it has.")
            .usually("as allocatable"),
        Field::optional("labels", FieldType::Mapping(&FieldType::Text), "Its labels."),
        Field::optional("annotations", FieldType::Mapping(&FieldType::Text), "Its annotations."),
        Field::optional("taints", FieldType::List(&FieldType::Shape(&TAINT)), "Its taints, all of them."),
        Field::optional("unschedulable", FieldType::Flag, "Whether it is cordoned."),
        Field::optional(
            "state",
            FieldType::Word(NodeState::WORDS),
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
            "When it writes its status: once now, once `at` an instant, that often, or never.",
        )
        .usually("now"),
    ],
);

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

static TAINT: Shape = Shape::new(
    "taint",
    "What keeps pods away.",
    &[
        Field::required("key", FieldType::Text, "Its key."),
        Field::optional("value", FieldType::Text, "Its value."),
        Field::required("effect", FieldType::Word(EFFECTS), "What it does."),
        Field::optional("timeAdded", FieldType::Text, "When it was added, as RFC 3339 has it."),
    ],
);

/// A time as RFC 3339 has it.
static STAMP: LazyLock<Regex> = LazyLock::new(|| {
    let parts = r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$";
    Regex::new(parts).expect("an expression")
});

pub(crate) fn node(context: &mut Context<'_, '_>, node: &Node) -> Option<PlayedNode> {
    let fields = context.reader.open(node, &NODE)?;
    let name_node = fields.get("name")?;
    let name = text(context, name_node)?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    if template::names(&name).is_empty() && !name.chars().all(fits) {
        let rule = "names are small letters (a to z), digits, hyphens and dots";
        let remedy = match hyphened(&name) {
            right if right.is_empty() => rule.to_owned(),
            right => format!("write {right}: {rule}"),
        };
        context.reader.wrong(&name_node.span, format!("no Node can be called `{name}`"), remedy);
    }
    if context.is_board(&name) {
        context.reader.wrong(
            &name_node.span,
            format!("`{name}` is a board"),
            "give the played node another name, such as n1",
        );
    }
    Some(PlayedNode {
        name,
        allocatable: figures(context, &fields, "allocatable"),
        capacity: figures(context, &fields, "capacity"),
        labels: texts(context, fields.get("labels")),
        annotations: texts(context, fields.get("annotations")),
        taints: fields.get("taints").map(|node| taints(context, node)),
        unschedulable: fields.get("unschedulable").and_then(|node| context.reader.flag(node)),
        state: fields
            .get("state")
            .and_then(|node| word(context.reader, node, &NodeState::ALL, NodeState::name)),
        lease_duration: fields.get("leaseDuration").and_then(|node| context.reader.whole_seconds(node)),
        renew: fields.get("renew").and_then(|node| match node.as_text() {
            Some("stop") => Some(Renew::Stop),
            Some("never") => Some(Renew::Never),
            Some(_) | None => how_often(context, node, &["stop", "never"]).map(Renew::Every),
        }),
        report: fields.get("report").and_then(|node| match node.as_text() {
            Some("now") => Some(Report::Now),
            Some("never") => Some(Report::Never),
            Some(written) if written.starts_with("at ") => report_at(context, node, written),
            Some(_) | None => how_often(context, node, &["now", "never"]).map(Report::Every),
        }),
    })
}

/// A duration, or one of some words, which was looked for already: a word that was meant as one of them is told so.
fn how_often(context: &mut Context<'_, '_>, node: &Node, words: &[&str]) -> Option<Length> {
    let written = match &node.kind {
        Kind::Text(text) => text.clone(),
        Kind::Bool(value) => value.to_string(),
        Kind::Null | Kind::Number(_) | Kind::List(_) | Kind::Map(_) => return context.some_length(node),
    };
    // A word that is nearly one of them, or another form of it (`stopped`), and no constant's name.
    let near = Some(written.as_str()).filter(|text| text.chars().all(char::is_alphabetic)).and_then(|text| {
        let known = Constant::ALL.map(Constant::name);
        let form = words.iter().copied().find(|word| text.starts_with(word));
        nearest(text, words.iter().copied()).or(form).filter(|_| nearest(text, known).is_none())
    });
    let Some(ours) = meant_word(&written, words).or(near) else { return context.some_length(node) };
    let message = format!("{} is not possible here", node.describe());
    context.reader.wrong(
        &node.span,
        message,
        format!("write {ours}; possible are {} and a duration", words.join(", ")),
    );
    None
}

/// `at` an instant.
fn report_at(context: &mut Context<'_, '_>, node: &Node, written: &str) -> Option<Report> {
    let instant = Kind::Text(written.trim_start_matches("at ").trim().to_owned());
    context.instant(&Node { span: node.span.clone(), kind: instant }).map(Report::At)
}

/// Texts by names of the writer's choice.
fn texts(context: &mut Context<'_, '_>, node: Option<&Node>) -> BTreeMap<String, String> {
    let entries = node.map_or(&[][..], |node| context.reader.map(node));
    entries.iter().filter_map(|entry| Some((entry.key.clone(), text(context, &entry.value)?))).collect()
}

fn taints(context: &mut Context<'_, '_>, node: &Node) -> Vec<Value> {
    let mut taints = Vec::new();
    for item in context.reader.list(node) {
        let Some(fields) = context.reader.open(item, &TAINT) else { continue };
        let mut taint = Map::new();
        for key in ["key", "value", "timeAdded"] {
            let value = fields.get(key).and_then(|node| text(context, node));
            if key == "timeAdded"
                && let (Some(node), Some(text)) = (fields.get(key), &value)
                && !text.contains("${")
                && !STAMP.is_match(text)
            {
                let message = format!("`{text}` is no time stamp");
                context.reader.wrong(&node.span, message, "write for example 2026-01-31T12:00:00Z");
            }
            taint.extend(value.map(|value| (key.to_owned(), Value::String(value))));
        }
        let effect = fields.get("effect").and_then(|node| word(context.reader, node, EFFECTS, |word| word));
        taint.extend(effect.map(|effect| ("effect".to_owned(), Value::from(effect))));
        taints.push(Value::Object(taint));
    }
    taints
}

/// Resources and their amounts: texts or whole numbers.
fn figures(context: &mut Context<'_, '_>, fields: &Fields<'_>, key: &str) -> Option<Map<String, Value>> {
    let node = fields.get(key)?;
    let entries = context.reader.map(node);
    let mut figures = Map::new();
    for entry in entries {
        match &entry.value.kind {
            Kind::Text(_) | Kind::Number(_) => {
                quantity::check(context.reader, &entry.value);
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
