//! Reading of expectations.

use super::{
    Always, Capture, Expect, ExpectWindow, NamespaceScope, Never, Observation, Order, RequestFilter,
    Selector, Span, Subject, Unchanged,
};
use crate::act::api::{kind, pattern, templated, text, user};
use crate::act::rig::board;
use crate::constants::Constant;
use crate::expr::{Instant, Length, RESERVED};
use crate::kinds::{KIND_NAMES, LEASE_NAMESPACE};
use crate::pattern::{self, Pattern};
use crate::reader::{Fields, word};
use crate::shape::{Field, FieldType, Shape};
use crate::step::{Context, is_instant_name};
use crate::yaml::{Kind, Node};

static SELECTOR: Shape = Shape::new(
    "of",
    "Which objects are looked at.",
    &[
        Field::required("kind", FieldType::Word(KIND_NAMES), "Their kind."),
        Field::optional("name", FieldType::Text, "The name of one."),
        Field::optional(
            "names",
            FieldType::List(&FieldType::Text),
            "The names of several: all of them are meant.",
        ),
        Field::optional("namespace", FieldType::Text, "Where they are; \"*\" for everywhere."),
        Field::optional("labels", FieldType::Mapping(&FieldType::Text), "Labels they must have."),
        Field::optional(
            "fields",
            FieldType::Mapping(&FieldType::Any),
            "Paths and the values that must stand there.",
        ),
    ],
)
.at_most_one(&[&["name", "names"]]);

static CONSOLE: Shape = Shape::new(
    "console",
    "Lines of a board's console.",
    &[
        Field::required("board", FieldType::Text, "The board."),
        Field::required("matches", FieldType::Text, "A regular expression that is found in the line."),
    ],
);

static REQUESTS: Shape = Shape::new(
    "request",
    "Requests that this scenario made.",
    &[
        Field::optional("method", FieldType::Word(METHODS), "The method in capitals."),
        Field::optional("path", FieldType::TextOrPattern, "The path with its query."),
        Field::optional("user", FieldType::Text, "The identity."),
        Field::optional("status", FieldType::Whole { min: 0, max: 599 }, "The status code; 0: no answer."),
        Field::optional("match", FieldType::Pattern, "What the answer looks like."),
    ],
);

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

const OF: Field = Field::optional("of", FieldType::Shape(&SELECTOR), "Which objects are looked at.");
const OF_CONSOLE: Field =
    Field::optional("console", FieldType::Shape(&CONSOLE), "Lines of a board's console.");
const OF_REQUESTS: Field =
    Field::optional("request", FieldType::Shape(&REQUESTS), "Requests that this scenario made.");
const MATCH: Field = Field::optional("match", FieldType::Pattern, "What they must look like.");
const COUNT: Field = Field::optional("count", FieldType::Count, "How many: a number, comparisons, or all.");
const ABSENT: Field = Field::optional("absent", FieldType::Flag, "true: none at all.");
const FROM: Field =
    Field::optional("from", FieldType::Instant, "Where the window opens.").usually("begin").such_as("outage");
const FOR: Field = Field::optional("for", FieldType::Duration, "How long.").such_as("5s");
const UNTIL: Field =
    Field::optional("until", FieldType::Instant, "Until when.").such_as("outage + leaseDuration");

pub(crate) static EXPECT: Shape = Shape::new(
    "expect",
    "It becomes so inside the window.",
    &[
        OF,
        OF_CONSOLE,
        OF_REQUESTS,
        MATCH,
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
    ],
)
.exactly_one(&[&["of", "console", "request"]])
.at_most_one(&[&["count", "absent"], &["within", "between"], &["from", "between"]]);

pub(crate) static NEVER: Shape = Shape::new(
    "never",
    "It is not so at any time in the window.",
    &[OF, OF_CONSOLE, OF_REQUESTS, MATCH, COUNT, ABSENT, FROM, FOR, UNTIL],
)
.exactly_one(&[&["of", "console", "request"], &["for", "until"]])
.at_most_one(&[&["count", "absent"]]);

pub(crate) static ALWAYS: Shape = Shape::new(
    "always",
    "It is so at every time in the window.",
    &[OF, MATCH, COUNT, ABSENT, FROM, FOR, UNTIL],
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
    "Values of one object become names.",
    &[
        Field::required("of", FieldType::Shape(&SELECTOR), "Which object; exactly one."),
        MATCH,
        Field::required(
            "fields",
            FieldType::Mapping(&FieldType::Text),
            "Names, and the paths of their values.",
        ),
        Field::optional("within", FieldType::Duration, "How long to wait for it.").usually("10s"),
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
            let [not_before, not_after] = context.reader.list(list) else {
                context.reader.wrong(
                    &list.span,
                    "between takes two instants",
                    "write [not before, not after]; an expression with a comma needs quotes inside […]",
                );
                return None;
            };
            let (not_before, not_after) = (context.instant(not_before), context.instant(not_after));
            ExpectWindow::Between { not_before: not_before?, not_after: not_after? }
        }
        None => ExpectWindow::Within {
            from: from(context, &fields)?,
            length: match fields.get("within") {
                Some(node) => context.length(node)?,
                None => default_within(),
            },
        },
    };
    Some(Expect { what: what?, window })
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
    let items = context.reader.list(node);
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
    let fields = context.reader.open(node, &CAPTURE)?;
    let of = selector(context, fields.get("of")?);
    let pattern = match fields.get("match") {
        Some(node) => Some(pattern(context, node)?),
        None => None,
    };
    let names = fields.get("fields")?;
    let entries = context.reader.map(names);
    if entries.is_empty() {
        context.reader.wrong(&names.span, "nothing to capture", "write {uid: metadata.uid}");
    }
    let mut paths = Vec::new();
    for entry in entries {
        if !is_instant_name(&entry.key) || context.is_board(&entry.key) {
            context.reader.wrong(
                &entry.key_span,
                format!("`{}` cannot be a captured value's name", entry.key),
                "use letters and digits, beginning with a small letter, and no board's name",
            );
        }
        if let Some(path) = context.reader.path(&entry.value) {
            paths.push((entry.key.clone(), path));
        }
    }
    let within = match fields.get("within") {
        Some(node) => context.length(node)?,
        None => default_within(),
    };
    Some(Capture { of: of?, pattern, fields: paths, within })
}

fn observation(context: &mut Context<'_, '_>, fields: &Fields<'_>, occurrences: bool) -> Option<Observation> {
    let subject = if let Some(node) = fields.get("of") {
        Subject::Objects(selector(context, node)?)
    } else if !occurrences {
        return None;
    } else if let Some(node) = fields.get("console") {
        let console = context.reader.open(node, &CONSOLE)?;
        let board = board(context, console.get("board")?);
        let matches = context.reader.regex(console.get("matches")?);
        Subject::Console { board: board?, matches: matches? }
    } else {
        Subject::Requests(requests(context, fields.get("request")?)?)
    };
    let pattern = match (fields.get("match"), &subject) {
        (Some(node), Subject::Objects(_)) => Some(pattern(context, node)?),
        (Some(node), Subject::Console { .. } | Subject::Requests(_)) => {
            context.reader.wrong(
                &node.span,
                "match belongs to `of`",
                "console lines have `matches`; requests have a `match` of their own",
            );
            return None;
        }
        (None, _) => None,
    };
    let count = match (fields.get("count"), fields.get("absent")) {
        (Some(node), _) => {
            let all = matches!(&subject, Subject::Objects(selector) if selector.kind.kind != "Event");
            Some(pattern::read_count(context.reader, node, all)?)
        }
        (None, Some(node)) => context.reader.flag(node)?.then(|| pattern::Count::exactly(0)),
        (None, None) => None,
    };
    Some(Observation { subject, pattern, count })
}

fn requests(context: &mut Context<'_, '_>, node: &Node) -> Option<RequestFilter> {
    let fields = context.reader.open(node, &REQUESTS)?;
    let path: Option<Option<Pattern>> = fields.get("path").map(|node| pattern(context, node));
    let body: Option<Option<Pattern>> = fields.get("match").map(|node| pattern(context, node));
    Some(RequestFilter {
        method: fields
            .get("method")
            .and_then(|node| word(context.reader, node, METHODS, |word| word))
            .map(str::to_owned),
        path: path.map_or(Some(None), |read| read.map(Some))?,
        user: fields.get("user").and_then(|node| user(context, node)),
        status: fields
            .get("status")
            .and_then(|node| context.reader.whole(node, 0..=599))
            .and_then(|code| u16::try_from(code).ok()),
        body: body.map_or(Some(None), |read| read.map(Some))?,
    })
}

fn selector(context: &mut Context<'_, '_>, node: &Node) -> Option<Selector> {
    let fields = context.reader.open(node, &SELECTOR)?;
    let kind = kind(context, fields.get("kind")?)?;
    let names = match (fields.get("name"), fields.get("names")) {
        (Some(node), _) => Some(vec![text(context, node)?]),
        (None, Some(node)) => {
            let items = context.reader.list(node);
            if items.is_empty() {
                context.reader.wrong(&node.span, "no name", "leave `names` out to mean any");
            }
            Some(
                items
                    .iter()
                    .map(|item| text(context, item))
                    .collect::<Vec<_>>()
                    .into_iter()
                    .collect::<Option<_>>()?,
            )
        }
        (None, None) => None,
    };
    let namespace = match fields.get("namespace") {
        Some(node) if !kind.namespaced => {
            context.reader.wrong(&node.span, format!("a {} has no namespace", kind.kind), "leave it out");
            NamespaceScope::All
        }
        Some(node) => match text(context, node)?.as_str() {
            "*" => NamespaceScope::All,
            name => NamespaceScope::Named(name.to_owned()),
        },
        None if kind.kind == "Lease" => NamespaceScope::Named(LEASE_NAMESPACE.to_owned()),
        None if kind.kind == "Event" || !kind.namespaced => NamespaceScope::All,
        None => NamespaceScope::Trial,
    };
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
    let mut wanted = Vec::new();
    if let Some(node) = fields.get("fields") {
        for entry in context.reader.map(node) {
            let path = Node { span: entry.key_span.clone(), kind: Kind::Text(entry.key.clone()) };
            if let Some(path) = context.reader.path(&path) {
                wanted.push((path, templated(context, &entry.value)));
            }
        }
    }
    Some(Selector { kind, names, namespace, labels, fields: wanted })
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
    Some(Span { from: from?, until: until? })
}

/// Whether a name would be taken for a word of the expressions.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || Constant::named(name).is_some()
}
