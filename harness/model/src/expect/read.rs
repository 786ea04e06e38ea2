//! Reading of expectations.

use super::look::{CONSOLE, LOG, REQUESTS, SELECTOR, console, log, requests, selector};
use super::{
    Always, Capture, CaptureFrom, Expect, ExpectWindow, Never, Observation, Order, Span, Subject, Unchanged,
};
use crate::act::api::{pattern, text};
use crate::cel::{ANSWER, Cel, OBJECT, STATUS};
use crate::constants::Constant;
use crate::expr::{Instant, Length, RESERVED};
use crate::path::Path;
use crate::pattern::{self, CountWords, Pattern};
use crate::reader::Fields;
use crate::shape::{Field, FieldType, Shape};
use crate::step::{Context, is_instant_name};
use crate::template;
use crate::yaml::{Kind, Node};

const OF: Field = Field::optional("of", FieldType::Shape(&SELECTOR), "Which objects are looked at.");
const OF_CONSOLE: Field =
    Field::optional("console", FieldType::Shape(&CONSOLE), "Lines of a board's console.");
const OF_REQUESTS: Field =
    Field::optional("request", FieldType::Shape(&REQUESTS), "Requests that this scenario made.");
const OF_LOG: Field = Field::optional("log", FieldType::Shape(&LOG), "Lines of a container's log.");
const CEL: Field = Field::optional("cel", FieldType::Text, "What must hold of `object`, in CEL.");
const MATCH: Field = Field::optional("match", FieldType::Pattern, "What they must look like.");
const COUNT: Field =
    Field::optional("count", FieldType::Count, "How many: a number, comparisons, all, any or none.");
const ABSENT: Field = Field::optional("absent", FieldType::Flag, "true: none at all.");
const FROM: Field =
    Field::optional("from", FieldType::Instant, "Where the window opens.").usually("begin").such_as("outage");
const FOR: Field = Field::optional("for", FieldType::Duration, "How long.").such_as("5s");
const GIVEN: Field = Field::optional(
    "given",
    FieldType::Flag,
    "true: it is a premise. Where it is not so the trial is undecided, not failed.",
);
const UNTIL: Field =
    Field::optional("until", FieldType::Instant, "Until when.").such_as("outage + leaseDuration");

pub(crate) static EXPECT: Shape = Shape::new(
    "expect",
    "It becomes so inside the window.",
    &[
        OF,
        OF_CONSOLE,
        OF_REQUESTS,
        OF_LOG,
        MATCH,
        CEL,
        COUNT,
        ABSENT,
        FROM,
        Field::optional("within", FieldType::Duration, "How long the window is; what already is so is fine.")
            .usually("10s"),
        Field::optional(
            "between",
            FieldType::List(&FieldType::Instant),
            "Not before the first and not after the second instant.",
        ),
        GIVEN,
    ],
)
.exactly_one(&[&["of", "console", "request", "log"]])
.at_most_one(&[&["count", "absent"], &["within", "between"], &["from", "between"]]);

pub(crate) static NEVER: Shape = Shape::new(
    "never",
    "It is not so at any time in the window.",
    &[OF, OF_CONSOLE, OF_REQUESTS, OF_LOG, MATCH, CEL, COUNT, ABSENT, FROM, FOR, UNTIL],
)
.exactly_one(&[&["of", "console", "request", "log"], &["for", "until"]])
.at_most_one(&[&["count", "absent"]]);

pub(crate) static ALWAYS: Shape = Shape::new(
    "always",
    "It is so at every time in the window.",
    &[OF, MATCH, CEL, COUNT, ABSENT, FROM, FOR, UNTIL],
)
.exactly_one(&[&["of"], &["for", "until"]])
.at_most_one(&[&["count", "absent"]]);

pub(crate) static UNCHANGED: Shape = Shape::new(
    "unchanged",
    "A field keeps its value throughout the window.",
    &[
        Field::required("of", FieldType::Shape(&SELECTOR), "Which objects."),
        Field::required("field", FieldType::Text, "The path of the field.").such_as("spec.nodeName"),
        FROM,
        FOR,
        UNTIL,
    ],
)
.exactly_one(&[&["for", "until"]]);

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

/// The window of an expectation that states none, and of a capture.
fn default_within() -> Length {
    Length::Fixed(std::time::Duration::from_secs(10))
}

pub(crate) fn expect(context: &mut Context<'_, '_>, node: &Node) -> Option<Expect> {
    let fields = context.reader.open(node, &EXPECT)?;
    let what = observation(context, &fields, true);
    let window = match fields.get("between") {
        Some(list) => {
            let [not_before, not_after] = bounds(list) else {
                context.reader.wrong(&list.span, "between takes two instants", two_bounds(list));
                return None;
            };
            let (not_before, not_after) = (context.instant(not_before)?, context.instant(not_after)?);
            if not_after.after(&not_before).is_some_and(|length| length < 0) {
                context.reader.wrong(
                    &list.span,
                    "the window ends before it opens",
                    "write the earlier instant first",
                );
                return None;
            }
            ExpectWindow::Between { not_before, not_after }
        }
        None => ExpectWindow::Within {
            from: from(context, &fields)?,
            length: match fields.get("within") {
                Some(node) => context.some_length(node)?,
                None => default_within(),
            },
        },
    };
    Some(Expect { what: what?, window, given: given(context, &fields) })
}

/// The bounds of a window, as they are written.
fn bounds(node: &Node) -> &[Node] {
    match &node.kind {
        Kind::List(items) => items,
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Map(_) => {
            std::slice::from_ref(node)
        }
    }
}

/// What to do about a window that has not two bounds.
fn two_bounds(node: &Node) -> String {
    match bounds(node) {
        [only] if only.as_text().is_some_and(|text| !text.trim().is_empty()) => {
            let bound = only.as_text().unwrap_or_default().trim();
            format!("for not later than that write within: {bound}; else between: [not before, not after]")
        }
        _ => "write [not before, not after]; an expression with a comma needs quotes inside […]".to_owned(),
    }
}

pub(crate) fn never(context: &mut Context<'_, '_>, node: &Node) -> Option<Never> {
    let fields = context.reader.open(node, &NEVER)?;
    let what = observation(context, &fields, true);
    let span = span(context, &fields);
    Some(Never { what: what?, span: span? })
}

pub(crate) fn always(context: &mut Context<'_, '_>, node: &Node) -> Option<Always> {
    let fields = context.reader.open(node, &ALWAYS)?;
    let what = observation(context, &fields, false);
    let span = span(context, &fields);
    let what = what?;
    if what.is_occurrence() {
        context.reader.wrong(
            &node.span,
            "an Event happens, it is not so at every time",
            "use expect or never with Events",
        );
        return None;
    }
    Some(Always { what, span: span? })
}

pub(crate) fn unchanged(context: &mut Context<'_, '_>, node: &Node) -> Option<Unchanged> {
    let fields = context.reader.open(node, &UNCHANGED)?;
    let of = selector(context, fields.get("of")?);
    let field = fields.get("field").and_then(|node| context.reader.path(node));
    let span = span(context, &fields);
    Some(Unchanged { of: of?, field: field?, span: span? })
}

pub(crate) fn order(context: &mut Context<'_, '_>, node: &Node) -> Option<Order> {
    let items = context.reader.some_list(node, "an order of no instants", "write [first, second, …]")?;
    if items.len() < 2 {
        context.reader.wrong(&node.span, "an order of fewer than two instants", "write [first, second, …]");
        return None;
    }
    let names: Vec<Option<String>> = items
        .iter()
        .map(|item| {
            let instant = context.instant(item)?;
            if let Instant::Named(name) = instant {
                return Some(name);
            }
            context.reader.wrong(
                &item.span,
                format!("`{instant}` is no step's name"),
                "order takes names that steps got by `as:`",
            );
            None
        })
        .collect();
    Some(Order { names: names.into_iter().collect::<Option<_>>()? })
}

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

/// Whether an expectation is a premise.
fn given(context: &mut Context<'_, '_>, fields: &Fields<'_>) -> bool {
    fields.get("given").and_then(|node| context.reader.flag(node)).unwrap_or(false)
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
fn check_captured(context: &mut Context<'_, '_>, span: &std::ops::Range<usize>, name: &str) {
    if !is_instant_name(name) || context.is_board(name) || [OBJECT, ANSWER, STATUS].contains(&name) {
        context.reader.wrong(
            span,
            format!("`{name}` cannot be a captured value's name"),
            "use letters and digits, beginning with a small letter; no board's name, and none of object, answer, status",
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

/// `match` and `cel` about objects.
fn conditions(context: &mut Context<'_, '_>, fields: &Fields<'_>) -> Option<(Option<Pattern>, Option<Cel>)> {
    let pattern = match fields.get("match") {
        Some(node)
            if matches!(node.kind, Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_)) =>
        {
            let message = format!("an object is a mapping, and never {}", node.describe());
            let remedy = "write for example {status: {phase: Running}}; a condition is `cel`, beside `match`";
            context.reader.wrong(&node.span, message, remedy);
            return None;
        }
        Some(node) => Some(pattern(context, node)?),
        None => None,
    };
    let cel = match fields.get("cel") {
        Some(node) => Some(context.cel(node, &[OBJECT])?),
        None => None,
    };
    Some((pattern, cel))
}

fn observation(context: &mut Context<'_, '_>, fields: &Fields<'_>, occurrences: bool) -> Option<Observation> {
    let subject = subject(context, fields, occurrences);
    if let Some(Subject::Console { .. } | Subject::Requests(_) | Subject::Log(_)) = &subject {
        for (key, node) in [("match", fields.get("match")), ("cel", fields.get("cel"))] {
            if let Some(node) = node {
                context.reader.wrong(
                    &node.span,
                    format!("{key} belongs to `of`"),
                    "console and log lines have `matches`; requests have a `match` and a `cel` of their own",
                );
                return None;
            }
        }
    }
    let conditions = conditions(context, fields);
    let count = match (fields.get("count"), fields.get("absent")) {
        (Some(node), _) => {
            let objects = match &subject {
                Some(Subject::Objects(selector)) => selector.kind.kind != "Event",
                Some(Subject::Console { .. } | Subject::Requests(_) | Subject::Log(_)) => false,
                None => true,
            };
            let words = if objects { CountWords::Objects } else { CountWords::Occurrences };
            Some(pattern::read_count(context.reader, node, words)?)
        }
        (None, Some(node)) => context.reader.flag(node)?.then(|| pattern::Count::exactly(0)),
        (None, None) => None,
    };
    let (pattern, cel) = conditions?;
    Some(Observation { subject: subject?, pattern, cel, count })
}

/// What is looked at.
fn subject(context: &mut Context<'_, '_>, fields: &Fields<'_>, occurrences: bool) -> Option<Subject> {
    if let Some(node) = fields.get("of") {
        return Some(Subject::Objects(selector(context, node)?));
    }
    if !occurrences {
        return None;
    }
    if let Some(node) = fields.get("console") {
        return console(context, node);
    }
    match fields.get("log") {
        Some(node) => Some(Subject::Log(log(context, node)?)),
        None => Some(Subject::Requests(requests(context, fields.get("request")?)?)),
    }
}

fn from(context: &mut Context<'_, '_>, fields: &Fields<'_>) -> Option<Instant> {
    match fields.get("from") {
        Some(node) => context.instant(node),
        None => Some(Instant::Begin),
    }
}

fn span(context: &mut Context<'_, '_>, fields: &Fields<'_>) -> Option<Span> {
    let from = from(context, fields);
    let until = match (fields.get("for"), fields.get("until")) {
        (Some(node), _) => {
            context.length(node).zip(from.clone()).map(|(length, from)| Instant::Plus(Box::new(from), length))
        }
        (None, Some(node)) => context.instant(node),
        (None, None) => None,
    };
    let (from, until) = (from?, until?);
    if until.after(&from).is_some_and(|length| length <= 0) {
        let end = fields.get("for").or_else(|| fields.get("until"))?;
        let message = "the window ends before it opens, or as it opens: there is no time in which anything could be seen";
        context.reader.wrong(&end.span, message, "write an end that is later than `from`");
        return None;
    }
    Some(Span { from, until })
}

/// Whether a name would be taken for a word of the expressions.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || Constant::named(name).is_some()
}
