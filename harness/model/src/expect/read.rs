//! Reading of expectations.

use std::collections::BTreeSet;

use super::look::{CONSOLE, LOG, REQUESTS, SELECTOR, console, log, requests, selector};
use super::{Always, Expect, ExpectWindow, Never, Observation, Order, Span, Subject, Unchanged};
use crate::act::api::pattern;
use crate::cel::{Cel, OBJECT};
use crate::constants::Constant;
use crate::expr::{Instant, Length, RESERVED};
use crate::pattern::{self, CountWords, Pattern};
use crate::reader::Fields;
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::yaml::{Kind, Node};

const OF: Field = Field::optional("of", FieldType::Shape(&SELECTOR), "Which objects are looked at.");
const OF_CONSOLE: Field = Field::optional(
    "console",
    FieldType::Shape(&CONSOLE),
    "Lines of a board's console, or that a second scheduler prints.",
);
const OF_REQUESTS: Field =
    Field::optional("request", FieldType::Shape(&REQUESTS), "Requests that this scenario made.");
const OF_LOG: Field = Field::optional("log", FieldType::Shape(&LOG), "Lines of a container's log.");
pub(super) const CEL: Field = Field::optional("cel", FieldType::Text, "What must hold of `object`, in CEL.");
pub(super) const MATCH: Field = Field::optional("match", FieldType::Pattern, "What they must look like.");
const COUNT: Field =
    Field::optional("count", FieldType::Count, "How many: a number, comparisons, all, any or none.");
const ABSENT: Field = Field::optional("absent", FieldType::Flag, "true: none at all.");
const FROM: Field =
    Field::optional("from", FieldType::Instant, "Where the window opens.").usually("begin").such_as("outage");
const FOR: Field = Field::optional("for", FieldType::Duration, "How long.").such_as("5s");
pub(super) const GIVEN: Field = Field::optional(
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

/// The window of an expectation that states none, and of a capture.
pub(super) fn default_within() -> Length {
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
            let apart = not_before.base() != not_after.base();
            let most = context.at_most_after(&not_after, &not_before);
            if most.is_some_and(|length| length < 0 || (apart && length == 0)) {
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
            if let Some((first, second)) = bound.split_once("..").filter(|_| !bound.contains("${")) {
                let second = second.trim_start_matches(['.', '=']).trim();
                return format!("write between: [{}, {second}]", first.trim());
            }
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
    let mut seen = BTreeSet::new();
    let names: Vec<Option<String>> = items
        .iter()
        .map(|item| {
            let instant = context.instant(item)?;
            if let Instant::Named(name) = instant {
                if seen.insert(name.clone()) {
                    return Some(name);
                }
                let message = format!("`{name}` stands twice, and nothing is before itself");
                context.reader.wrong(&item.span, message, "write each name once: [first, second, …]");
                return None;
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

/// Whether an expectation is a premise.
pub(super) fn given(context: &mut Context<'_, '_>, fields: &Fields<'_>) -> bool {
    fields.get("given").and_then(|node| context.reader.flag(node)).unwrap_or(false)
}

/// `match` and `cel` about objects.
pub(super) fn conditions(
    context: &mut Context<'_, '_>,
    fields: &Fields<'_>,
) -> Option<(Option<Pattern>, Option<Cel>)> {
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
    if context.at_most_after(&until, &from).is_some_and(|length| length <= 0) {
        let end = fields.get("for").or_else(|| fields.get("until"))?;
        let message = "the window ends before it opens, or as it opens: there is no time in which anything could be seen";
        let remedy = match (fields.get("from"), from.base(), until.base()) {
            (Some(_), opens, closes) if opens != closes => {
                format!("`{closes}` comes before `{opens}`: swap them, from: {until}, until: {from}")
            }
            (None, _, closes) if *closes != Instant::Begin => {
                format!(
                    "`{closes}` is past when this step begins: write from: {until} with an end that is later"
                )
            }
            (_, _, _) => "write an end that is later than `from`".to_owned(),
        };
        context.reader.wrong(&end.span, message, remedy);
        return None;
    }
    Some(Span { from, until })
}

/// Whether a name would be taken for a word of the expressions.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || Constant::named(name).is_some()
}
