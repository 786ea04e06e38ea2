//! Reading of what is looked at: objects, lines of consoles and logs, requests.

use super::{LogFilter, NamespaceScope, RequestFilter, Selector, Speaker, Subject};
use crate::act::api::{answer_headers, check_path, kind, pattern, templated, text, user};
use crate::act::{board, started_scheduler};
use crate::cel::{ANSWER, Cel, STATUS};
use crate::kinds::{KIND_NAMES, LEASE_NAMESPACE, ObjectKind};
use crate::letters::hyphened;
use crate::pattern::Pattern;
use crate::reader::{Fields, word};
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::yaml::{Kind, Node};

pub(super) static SELECTOR: Shape = Shape::new(
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

pub(super) static CONSOLE: Shape = Shape::new(
    "console",
    "Lines of a board's console, or that a second scheduler prints.",
    &[
        Field::optional("board", FieldType::Text, "The board.").such_as("a"),
        Field::optional(
            "scheduler",
            FieldType::Text,
            "The name of a second scheduler that a step before starts; its standard output and its standard error.",
        )
        .such_as("second-scheduler"),
        Field::required("matches", FieldType::Text, "A regular expression that is found in the line."),
    ],
)
.exactly_one(&[&["board", "scheduler"]]);

pub(super) static LOG: Shape = Shape::new(
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

pub(super) static REQUESTS: Shape = Shape::new(
    "request",
    "Requests that this scenario made.",
    &[
        Field::optional("method", FieldType::Word(METHODS), "The method in capitals."),
        Field::optional("path", FieldType::TextOrPattern, "The path with its query."),
        Field::optional("user", FieldType::Text, "The identity."),
        Field::optional("status", FieldType::Whole { min: 0, max: 599 }, "The status code; 0: no answer."),
        Field::optional("body", FieldType::Pattern, "What was sent."),
        Field::optional("match", FieldType::Pattern, "What the answer looks like."),
        Field::optional("cel", FieldType::Text, "What holds of `answer` and `status`, in CEL."),
        Field::optional(
            "headers",
            FieldType::Mapping(&FieldType::TextOrPattern),
            "What the answer's header fields look like.",
        ),
    ],
);

pub(crate) const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

pub(super) fn console(context: &mut Context<'_, '_>, node: &Node) -> Option<Subject> {
    let console = context.reader.open(node, &CONSOLE)?;
    let of = match (console.get("board"), console.get("scheduler")) {
        (Some(node), _) => board(context, node).map(Speaker::Board),
        (None, node) => started_scheduler(context, node?).map(Speaker::Scheduler),
    };
    let matches = context.reader.regex(console.get("matches")?);
    Some(Subject::Console { of: of?, matches: matches? })
}

pub(super) fn log(context: &mut Context<'_, '_>, node: &Node) -> Option<LogFilter> {
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

pub(super) fn requests(context: &mut Context<'_, '_>, node: &Node) -> Option<RequestFilter> {
    let fields = context.reader.open(node, &REQUESTS)?;
    let path: Option<Option<Pattern>> = fields.get("path").map(|node| pattern(context, node));
    // A path is a text, or the same in `$eq`; what else there is to say of one need not be a whole path.
    let whole = fields.get("path").map(|node| node.get("$eq").unwrap_or(node));
    if let Some((node, text)) = whole.and_then(|node| Some((node, node.as_text()?))) {
        check_path(context, node, text);
    }
    let body: Option<Option<Pattern>> = fields.get("match").map(|node| pattern(context, node));
    let sent: Option<Option<Pattern>> = fields.get("body").map(|node| pattern(context, node));
    let cel: Option<Option<Cel>> = fields.get("cel").map(|node| context.cel(node, &[ANSWER, STATUS]));
    let headers = answer_headers(context, fields.get("headers"));
    context.scope.heeded.extend(headers.keys().cloned());
    Some(RequestFilter {
        headers,
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
        sent: sent.map_or(Some(None), |read| read.map(Some))?,
        cel: cel.map_or(Some(None), |read| read.map(Some))?,
    })
}

pub(super) fn selector(context: &mut Context<'_, '_>, node: &Node) -> Option<Selector> {
    let fields = context.reader.open(node, &SELECTOR)?;
    let kind = selected_kind(context, &fields)?;
    let names = match (fields.get("name"), fields.get("names")) {
        (Some(node), _) => Some(vec![name(context, kind, node)?]),
        (None, Some(node)) => {
            let items = context.reader.some_list(node, "no name", "leave `names` out to mean any")?;
            let mut names = Vec::new();
            for item in items {
                let name = name(context, kind, item);
                if name.as_ref().is_some_and(|name| names.contains(&Some(name.clone()))) {
                    let message = format!("{} is named twice", item.describe());
                    context.reader.wrong(&item.span, message, "write each name once; how many is `count`");
                }
                names.push(name);
            }
            Some(names.into_iter().collect::<Option<Vec<String>>>()?)
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
            name => {
                check_name(context, node, name, "namespace", &[]);
                NamespaceScope::Named(name.to_owned())
            }
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
            if matches!(entry.value.kind, Kind::Map(_) | Kind::List(_)) {
                context.reader.wrong(
                    &entry.value.span,
                    format!("a field is compared with a plain value, not {}", entry.value.describe()),
                    "write the whole path: {spec.nodeName: a}; what a part looks like is `match`, beside `of`",
                );
            } else if let Some(path) = context.reader.path(&path) {
                context.check_broken_in(&entry.value, true);
                wanted.push((path, templated(context, &entry.value)));
            }
        }
    }
    Some(Selector { kind, names, namespace, labels, fields: wanted })
}

/// The name of an object that is looked for.
fn name(context: &mut Context<'_, '_>, kind: &ObjectKind, node: &Node) -> Option<String> {
    let name = text(context, node)?;
    // What kinds of one's own can be called is not known.
    if crate::kinds::KINDS.iter().any(|known| known == kind) {
        check_name(context, node, &name, kind.kind, &['.']);
    }
    Some(name)
}

/// Notes a name that nothing of its kind can have: there are small letters, digits, hyphens and `dots`, and it begins and ends
/// with a letter or a digit (RFC 1123). That what was sent is not there may be expected even so.
fn check_name(context: &mut Context<'_, '_>, node: &Node, name: &str, what: &str, dots: &[char]) {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let right = name.starts_with(plain)
        && name.ends_with(plain)
        && name.chars().all(|c| plain(c) || c == '-' || dots.contains(&c));
    if right || name.contains("${") || context.scope.lone || context.scope.sent.contains(name) {
        return;
    }
    let hyphened = hyphened(name);
    let remedy = if name.contains(['*', '?']) {
        "one name is meant: leave it out to mean any, or choose by `labels`".to_owned()
    } else if hyphened.is_empty() {
        "names are small letters (a to z), digits and hyphens".to_owned()
    } else {
        format!("write {hyphened}: names are small letters (a to z), digits and hyphens")
    };
    context.reader.wrong(&node.span, format!("no {what} can be called `{name}`"), remedy);
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
