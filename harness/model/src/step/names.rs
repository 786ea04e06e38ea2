//! Names that steps give to their instants by `as`, and what such a name leads to.

use crate::letters::camel;
use crate::reader::Reader;
use crate::verbs::Verb;
use crate::yaml::{Kind, Node};

/// What a name that a step gives leads to; of several steps of one name what the richest of them does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shows {
    /// Nothing: what holds all the time, or not at all, is at no instant.
    Nothing,
    /// An instant.
    Instant,
    /// An instant, and an object or an answer that shows it.
    Body,
}

impl Shows {
    /// What a step of that verb, with that value, leads to.
    pub fn of(verb: Verb, value: &Node) -> Shows {
        match verb {
            Verb::Never | Verb::Always | Verb::Unchanged | Verb::Order => Shows::Nothing,
            Verb::Expect | Verb::Capture if value.get("console").or(value.get("log")).is_some() => {
                Shows::Instant
            }
            Verb::Power
            | Verb::Link
            | Verb::ControlPlane
            | Verb::Scheduler
            | Verb::Flash
            | Verb::Send
            | Verb::Mark
            | Verb::Kubectl
            | Verb::Etcdctl
            | Verb::Wait
            | Verb::Advance => Shows::Instant,
            Verb::Expect
            | Verb::Capture
            | Verb::Apply
            | Verb::Create
            | Verb::Replace
            | Verb::Patch
            | Verb::Delete
            | Verb::Scale
            | Verb::Cordon
            | Verb::Uncordon
            | Verb::Bind
            | Verb::Request
            | Verb::Node
            | Verb::Parallel
            | Verb::Repeat
            | Verb::ForEach
            | Verb::Include => Shows::Body,
        }
    }
}

/// The names that a step gives: beside its verb, and, wrongly, inside of it.
pub(crate) fn given(step: &Node) -> impl Iterator<Item = &str> {
    let inside = match &step.kind {
        Kind::Map(entries) => entries.as_slice(),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => &[],
    };
    let inside = inside.iter().filter_map(|entry| entry.value.get("as"));
    step.get("as").into_iter().chain(inside).filter_map(Node::as_text)
}

/// Whether a text can name a step or a value.
pub(crate) fn is_instant_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Notes a name that cannot be an instant's.
pub(super) fn refuse(reader: &mut Reader<'_>, node: &Node, name: &str) {
    let rule =
        "names are letters (a to z) and digits, beginning with a small letter; a hyphen would be a minus";
    reader.wrong(&node.span, format!("`{name}` cannot name an instant"), rightly(name, rule));
}

/// What to do about a name that breaks the rule for names of instants and values.
pub(crate) fn rightly(name: &str, rule: &str) -> String {
    let right = camel(name);
    if right != name && is_instant_name(&right) { format!("write {right}: {rule}") } else { rule.to_owned() }
}
