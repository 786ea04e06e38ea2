//! Reading of expectations.

use super::{
    Always, Capture, CaptureFrom, Expect, ExpectWindow, LogFilter, NamespaceScope, Never, Observation, Order,
    RequestFilter, Selector, Span, Subject, Unchanged,
};
use crate::act::api::{kind, pattern, templated, text, user};
use crate::act::rig::board;
use crate::cel::{ANSWER, Cel, OBJECT, STATUS};
use crate::constants::Constant;
use crate::expr::{Instant, Length, RESERVED};
use crate::kinds::{KIND_NAMES, LEASE_NAMESPACE, ObjectKind};
use crate::path::Path;
use crate::pattern::{self, CountWords, Pattern};
use crate::reader::{Fields, word};
use crate::shape::{Field, FieldType, Shape};
use crate::step::{Context, is_instant_name};
use crate::template;
use crate::yaml::{Kind, Node};

static SELECTOR: Shape = Shape::new(
    "of",
    "Which objects are looked at.",
    &[
        Field::required("kind", FieldType::WordOrText(KIND_NAMES), "Their kind."),
        Field::optional(
            "apiVersion",
            FieldType::Text,
            "For a kind that is not known by its name alone: its group and version.",
        )
        .such_as("example.com/v1"),
        Field::optional("plural", FieldType::Text, "For such a kind: its name in paths.").such_as("widgets"),
        Field::optional("namespaced", FieldType::Flag, "For such a kind: whether it has namespaces.")
            .usually("true"),
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

static LOG: Shape = Shape::new(
    "log",
    "Lines of a container's log, which is asked for while the expectation is pending.",
    &[
        Field::required("pod", FieldType::Text, "The pod."),
        Field::optional(
            "container",
            FieldType::Text,
            "The container; it may be left out where the pod has only one.",
        ),
        Field::optional("namespace", FieldType::Text, "Where the pod is; the trial's namespace if left out."),
        Field::optional("previous", FieldType::Flag, "true: the log of the container's run before this one."),
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
        Field::optional("cel", FieldType::Text, "What holds of `answer` and `status`, in CEL."),
    ],
);

pub(crate) const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

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
            "The last such request; paths lead into its answer.",
        ),
        MATCH,
        CEL,
        Field::optional(
            "fields",
            FieldType::Mapping(&FieldType::Text),
            "Names, and the paths of their values.",
        ),
        Field::optional("within", FieldType::Duration, "How long to wait for it.").usually("10s"),
    ],
)
.exactly_one(&[&["of", "console", "log", "request"]]);

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
    let within = match fields.get("within") {
        Some(node) => context.length(node),
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
        let fields = captured(context, node, &fields)?;
        CaptureFrom::Object { of: of?, pattern, cel, fields }
    } else if let Some(request) = fields.get("request") {
        let request = requests(context, request);
        let fields = captured(context, node, &fields)?;
        CaptureFrom::Answer { request: request?, fields }
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
    Some(Capture { from, within: within? })
}

/// The names that a capture gives, with the paths of their values.
fn captured(context: &mut Context<'_, '_>, node: &Node, fields: &Fields<'_>) -> Option<Vec<(String, Path)>> {
    let Some(names) = fields.get("fields") else {
        context.reader.wrong(&node.span, "nothing to capture", "add `fields: {uid: metadata.uid}`");
        return None;
    };
    let entries = context.reader.map(names);
    if entries.is_empty() {
        context.reader.wrong(&names.span, "nothing to capture", "write {uid: metadata.uid}");
    }
    let mut paths = Vec::new();
    for entry in entries {
        check_captured(context, &entry.key_span, &entry.key);
        if let Some(path) = context.reader.path(&entry.value) {
            paths.push((entry.key.clone(), path));
        }
    }
    Some(paths)
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

/// The named groups of an expression.
fn groups(context: &mut Context<'_, '_>, node: &Node) -> Option<Vec<String>> {
    // What is filled in later has no groups of its own.
    let mut text = node.as_text()?.to_owned();
    for name in template::names(&text.clone()) {
        text = text.replace(&format!("${{{name}}}"), "x");
    }
    let expression = regex::Regex::new(&text).ok()?;
    let names: Vec<String> = expression.capture_names().flatten().map(str::to_owned).collect();
    if names.is_empty() {
        context.reader.wrong(
            &node.span,
            "the expression has no named group, so there is nothing to capture",
            "write for example 'ip=(?<ip>[0-9.]+)'",
        );
        return None;
    }
    for name in &names {
        check_captured(context, &node.span, name);
    }
    Some(names)
}

/// `match` and `cel` about objects.
fn conditions(context: &mut Context<'_, '_>, fields: &Fields<'_>) -> Option<(Option<Pattern>, Option<Cel>)> {
    let pattern = match fields.get("match") {
        Some(node) => Some(pattern(context, node)?),
        None => None,
    };
    let cel = match fields.get("cel") {
        Some(node) => Some(context.cel(node, &[OBJECT])?),
        None => None,
    };
    Some((pattern, cel))
}

fn console(context: &mut Context<'_, '_>, node: &Node) -> Option<Subject> {
    let console = context.reader.open(node, &CONSOLE)?;
    let board = board(context, console.get("board")?);
    let matches = context.reader.regex(console.get("matches")?);
    Some(Subject::Console { board: board?, matches: matches? })
}

fn log(context: &mut Context<'_, '_>, node: &Node) -> Option<LogFilter> {
    let fields = context.reader.open(node, &LOG)?;
    let pod = text(context, fields.get("pod")?);
    let matches = context.reader.regex(fields.get("matches")?);
    let container = fields.get("container").map(|node| text(context, node));
    let namespace = fields.get("namespace").map(|node| text(context, node));
    let previous = fields.get("previous").map(|node| context.reader.flag(node));
    Some(LogFilter {
        pod: pod?,
        container: container.map_or(Some(None), |read| read.map(Some))?,
        namespace: namespace.map_or(Some(None), |read| read.map(Some))?,
        previous: previous.map_or(Some(false), |read| read)?,
        matches: matches?,
    })
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

fn requests(context: &mut Context<'_, '_>, node: &Node) -> Option<RequestFilter> {
    let fields = context.reader.open(node, &REQUESTS)?;
    let path: Option<Option<Pattern>> = fields.get("path").map(|node| pattern(context, node));
    let body: Option<Option<Pattern>> = fields.get("match").map(|node| pattern(context, node));
    let cel: Option<Option<Cel>> = fields.get("cel").map(|node| context.cel(node, &[ANSWER, STATUS]));
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
        cel: cel.map_or(Some(None), |read| read.map(Some))?,
    })
}

fn selector(context: &mut Context<'_, '_>, node: &Node) -> Option<Selector> {
    let fields = context.reader.open(node, &SELECTOR)?;
    let kind = selected_kind(context, &fields)?;
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

/// A kind by its name, or by apiVersion and plural besides.
fn selected_kind(context: &mut Context<'_, '_>, fields: &Fields<'_>) -> Option<&'static ObjectKind> {
    let (named, version, plural, namespaced) =
        (fields.get("kind")?, fields.get("apiVersion"), fields.get("plural"), fields.get("namespaced"));
    let (version, plural) = match (version, plural) {
        (Some(version), Some(plural)) => (version, plural),
        (None, None) if namespaced.is_none() => return kind(context, named),
        (Some(version), None) => {
            // What is known by its name may say its apiVersion.
            let known = named.as_text().and_then(ObjectKind::named);
            if let Some(known) = known.filter(|known| version.as_text() == Some(known.api_version)) {
                return Some(known);
            }
            context.reader.wrong(
                &version.span,
                "a kind of another apiVersion needs its plural, too",
                "add for example plural: widgets",
            );
            return None;
        }
        (None, Some(node)) => {
            context.reader.wrong(
                &node.span,
                "a plural without its apiVersion",
                "add for example apiVersion: example.com/v1",
            );
            return None;
        }
        (None, None) => {
            let span = namespaced.map_or(named.span.clone(), |node| node.span.clone());
            context.reader.wrong(
                &span,
                "this belongs to kinds of your own",
                "add apiVersion and plural, or leave it out",
            );
            return None;
        }
    };
    let name = context.reader.text(named);
    let api_version = context.reader.text(version);
    let plural_name = context.reader.text(plural);
    let namespaced = match namespaced {
        Some(node) => context.reader.flag(node),
        None => Some(true),
    };
    let (name, api_version, plural_name) = (name?, api_version?, plural_name?);
    let word = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    if !word(&plural_name) {
        context.reader.wrong(
            &plural.span,
            format!("`{plural_name}` is no plural"),
            "write the name in paths: widgets",
        );
        return None;
    }
    match ObjectKind::named(&name).filter(|known| known.api_version == api_version) {
        Some(known) => Some(known),
        None => {
            let own = ObjectKind::own(&name, &api_version, &plural_name, namespaced?);
            context.scope.own_kinds.insert(own.stream, own);
            Some(own)
        }
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
    Some(Span { from: from?, until: until? })
}

/// Whether a name would be taken for a word of the expressions.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || Constant::named(name).is_some()
}
