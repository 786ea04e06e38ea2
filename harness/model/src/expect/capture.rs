//! Reading of `capture`: values become names.

use std::ops::Range;

use super::look::{CONSOLE, LOG, REQUESTS, SELECTOR, console, log, requests, selector};
use super::read::{CEL, GIVEN, MATCH, conditions, default_within, given};
use super::{Capture, CaptureFrom, Subject};
use crate::act::api::text;
use crate::cel::{ANSWER, OBJECT, STATUS};
use crate::path::Path;
use crate::reader::Fields;
use crate::shape::{Field, FieldType, Shape};
use crate::step::{Context, is_instant_name, rightly};
use crate::template;
use crate::yaml::{Kind, Node};

pub(crate) static CAPTURE: Shape = Shape::new(
    "capture",
    "Values of an object, of an answer or of a line become names.",
    &[
        Field::optional("of", FieldType::Shape(&SELECTOR), "Which object; exactly one."),
        Field::optional(
            "console",
            FieldType::Shape(&CONSOLE),
            "The first such line since the last act; the named groups of `matches` are the names.",
        ),
        Field::optional("log", FieldType::Shape(&LOG), "The first such line, likewise."),
        Field::optional(
            "request",
            FieldType::Shape(&REQUESTS),
            "The last such request; paths lead into its answer. The named groups of its `path` are names, too.",
        ),
        Field::optional(
            "mark",
            FieldType::Shape(&MARKED),
            "The last such mark; its parts are `name` and `node`.",
        ),
        MATCH,
        CEL,
        Field::optional(
            "fields",
            FieldType::Mapping(&FieldType::Text),
            "Names, and the paths of their values.",
        ),
        Field::optional(
            "body",
            FieldType::Mapping(&FieldType::Text),
            "With `request`: names, and the paths of their values in what was sent.",
        ),
        Field::optional("within", FieldType::Duration, "How long to wait for it.").usually("10s"),
        GIVEN,
    ],
)
.exactly_one(&[&["of", "console", "log", "request", "mark"]]);

static MARKED: Shape = Shape::new(
    "mark",
    "A mark in the history.",
    &[
        Field::required("name", FieldType::Text, "What was done.").such_as("heartbeats-stopped"),
        Field::optional("node", FieldType::Text, "To which node; to any if left out."),
    ],
);

pub(crate) fn capture(context: &mut Context<'_, '_>, node: &Node) -> Option<Capture> {
    let told = context.reader.mistakes.len();
    let fields = context.reader.open(node, &CAPTURE)?;
    let within = match fields.get("within") {
        Some(node) => context.some_length(node),
        None => Some(default_within()),
    };
    let beside = [("match", fields.get("match")), ("cel", fields.get("cel"))];
    if fields.get("of").is_none()
        && let Some((key, Some(node))) = beside.into_iter().find(|(_, node)| node.is_some())
    {
        context.reader.wrong(
            &node.span,
            format!("`{key}` belongs to `of`"),
            "console and log lines have `matches`; requests have a `match` and a `cel` of their own",
        );
        return None;
    }
    let from = if let Some(of) = fields.get("of") {
        let of = selector(context, of);
        let (pattern, cel) = conditions(context, &fields)?;
        let fields = captured(context, node, &fields, told)?;
        CaptureFrom::Object { of: of?, pattern, cel, fields }
    } else if let Some(request) = fields.get("request") {
        answer(context, node, request, &fields, told)?
    } else if let Some(mark) = fields.get("mark") {
        marked(context, node, mark, &fields, told)?
    } else {
        let (of, lines) = match (fields.get("console"), fields.get("log")) {
            (Some(lines), _) => (console(context, lines)?, lines),
            (None, lines) => (Subject::Log(log(context, lines?)?), lines?),
        };
        if let Some(fields) = fields.get("fields") {
            context.reader.wrong(
                &fields.span,
                "what is captured of a line are the named groups of its expression",
                "leave `fields` out and write for example matches: 'ip=(?<ip>[0-9.]+)'",
            );
            return None;
        }
        let groups = groups(context, lines.get("matches")?)?;
        CaptureFrom::Line { of, groups }
    };
    Some(Capture { from, within: within?, given: given(context, &fields) })
}

/// A capture of an answer, of what was asked, and of parts of the path.
fn answer(
    context: &mut Context<'_, '_>,
    node: &Node,
    request: &Node,
    fields: &Fields<'_>,
    told: usize,
) -> Option<CaptureFrom> {
    let expression = request.get("path").and_then(|path| path.get("$regex"));
    let request = requests(context, request);
    let groups = expression.and_then(|node| named_groups(context, node)).unwrap_or_default();
    let sent = fields.get("body").map(|node| paths(context, node)).unwrap_or_default();
    let of_answer = if fields.get("fields").is_some() || (groups.is_empty() && sent.is_empty()) {
        captured(context, node, fields, told)?
    } else {
        Vec::new()
    };
    Some(CaptureFrom::Answer { request: request?, fields: of_answer, sent, groups })
}

/// A capture of a mark's parts.
fn marked(
    context: &mut Context<'_, '_>,
    node: &Node,
    mark: &Node,
    fields: &Fields<'_>,
    told: usize,
) -> Option<CaptureFrom> {
    let parts = context.reader.open(mark, &MARKED)?;
    let name = parts.get("name").and_then(|node| text(context, node));
    let subject = match parts.get("node") {
        Some(node) => Some(text(context, node)?),
        None => None,
    };
    // That it was, and when, may be all that is asked for.
    let captured =
        if fields.get("fields").is_some() { captured(context, node, fields, told)? } else { Vec::new() };
    for (_, path) in &captured {
        let part = path.to_string();
        if part != "name" && part != "node" {
            let span = fields.get("fields").map_or(node.span.clone(), |node| node.span.clone());
            context.reader.wrong(
                &span,
                format!("a mark has no `{part}`"),
                "its parts are name and node: {lost: node}",
            );
        }
    }
    Some(CaptureFrom::Mark { name: name?, node: subject, fields: captured })
}

/// The names that a capture gives, with the paths of their values. `told` is how many mistakes there were before it.
fn captured(
    context: &mut Context<'_, '_>,
    node: &Node,
    fields: &Fields<'_>,
    told: usize,
) -> Option<Vec<(String, Path)>> {
    let Some(names) = fields.get("fields") else {
        // A key that is unknown was meant to say it.
        if context.reader.mistakes.len() > told {
            return None;
        }
        context.reader.wrong(&node.span, "nothing to capture", "add `fields: {uid: metadata.uid}`");
        return None;
    };
    let entries = context.reader.map(names);
    if entries.is_empty() && matches!(names.kind, Kind::Map(_)) {
        context.reader.wrong(&names.span, "nothing to capture", "write {uid: metadata.uid}");
    }
    Some(paths(context, names))
}

/// Names, and the paths of their values.
fn paths(context: &mut Context<'_, '_>, names: &Node) -> Vec<(String, Path)> {
    let mut paths = Vec::new();
    for entry in context.reader.map(names) {
        check_captured(context, &entry.key_span, &entry.key);
        if let Some(path) = context.reader.path(&entry.value) {
            paths.push((entry.key.clone(), path));
        }
    }
    paths
}

/// Notes a name that cannot be a captured value's.
fn check_captured(context: &mut Context<'_, '_>, span: &Range<usize>, name: &str) {
    if !is_instant_name(name) || context.is_board(name) || [OBJECT, ANSWER, STATUS].contains(&name) {
        context.reader.wrong(
            span,
            format!("`{name}` cannot be a captured value's name"),
            rightly(
                name,
                "use letters (a to z) and digits, beginning with a small letter; no board's name, and none of object, answer, status",
            ),
        );
    }
}

/// The named groups of an expression; nothing of what is none, which is told elsewhere.
fn named_groups(context: &mut Context<'_, '_>, node: &Node) -> Option<Vec<String>> {
    // What is filled in later has no groups of its own.
    let mut text = node.as_text()?.to_owned();
    for name in template::names(&text.clone()) {
        text = text.replace(&format!("${{{name}}}"), "x");
    }
    let expression = regex::Regex::new(&text).ok()?;
    let names: Vec<String> = expression.capture_names().flatten().map(str::to_owned).collect();
    for name in &names {
        check_captured(context, &node.span, name);
    }
    Some(names)
}

/// The named groups of an expression that must have some.
fn groups(context: &mut Context<'_, '_>, node: &Node) -> Option<Vec<String>> {
    let names = named_groups(context, node)?;
    if names.is_empty() {
        context.reader.wrong(
            &node.span,
            "the expression has no named group, so there is nothing to capture",
            "write for example 'ip=(?<ip>[0-9.]+)'",
        );
        return None;
    }
    Some(names)
}
