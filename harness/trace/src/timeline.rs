//! What an observation amounts to over time: a state that changes, or occurrences one after another.

use std::collections::BTreeMap;

use rigor_model::expect::{NamespaceScope, Observation, RequestFilter, Selector, Subject};
use rigor_model::path::Path;
use rigor_model::pattern::{Count, Pattern};
use rigor_model::template::{self, MissingName};
use serde_json::Value;

use crate::history::{Fact, Micros, Record};
use crate::index::{ObjectKey, Stream, Version};
use crate::interval::Interval;
use crate::matching::{BadRegex, Matcher};
use crate::view::View;

/// Values for `${NAME}`.
pub type Values = BTreeMap<String, Value>;

/// Why an observation cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotLook {
    /// A name has no value.
    #[error(transparent)]
    Name(#[from] MissingName),
    /// A filled-in expression is wrong.
    #[error(transparent)]
    Regex(#[from] BadRegex),
}

/// A selector with its names filled in.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub stream: &'static str,
    pub kind: &'static str,
    pub names: Option<Vec<String>>,
    /// `None`: all namespaces.
    namespace: Option<String>,
    labels: Vec<(String, String)>,
    fields: Vec<(Path, Value)>,
}

/// An observation with its names filled in.
#[derive(Debug, Clone)]
pub(crate) enum Look {
    /// States of objects.
    State { selection: Selection, matcher: Option<Matcher>, pattern: Option<Pattern>, count: Option<Count> },
    /// Occurrences.
    Occurrences { of: Source, count: Option<Count> },
}

/// Where occurrences come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Events {
        selection: Selection,
        matcher: Option<Matcher>,
        pattern: Option<Pattern>,
    },
    Console {
        board: String,
        matches: regex::Regex,
    },
    Requests {
        method: Option<String>,
        path: Option<Matcher>,
        user: Option<String>,
        status: Option<u16>,
        body: Option<Matcher>,
    },
}

/// A change of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub when: Interval,
    /// How it is from here on.
    pub holds: bool,
    /// The record that brought the change.
    pub record: Option<usize>,
    /// How many matched and how many were selected from here on.
    pub numbers: (u64, u64),
}

/// Something that happened, `times` times at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occurrence {
    pub when: Interval,
    pub times: u64,
    pub record: usize,
}

impl Selection {
    pub fn new(selector: &Selector, view: &View<'_>, values: &Values) -> Result<Selection, CannotLook> {
        let text = |text: &String| template::fill_text(text, values);
        let namespace = match &selector.namespace {
            NamespaceScope::Trial => Some(view.namespace().to_owned()),
            NamespaceScope::Named(namespace) => Some(text(namespace)?),
            NamespaceScope::All => None,
        };
        Ok(Selection {
            stream: selector.kind.plural,
            kind: selector.kind.kind,
            names: match &selector.names {
                Some(names) => Some(names.iter().map(text).collect::<Result<_, _>>()?),
                None => None,
            },
            namespace: namespace.filter(|_| selector.kind.namespaced),
            labels: selector
                .labels
                .iter()
                .map(|(key, value)| Ok((text(key)?, text(value)?)))
                .collect::<Result<_, MissingName>>()?,
            fields: selector
                .fields
                .iter()
                .map(|(path, value)| Ok((path.clone(), template::fill(value, values)?)))
                .collect::<Result<_, MissingName>>()?,
        })
    }

    /// Whether an object with that key may be meant.
    pub fn admits(&self, key: &ObjectKey) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == key.0)
            && self.names.as_ref().is_none_or(|names| names.contains(&key.1))
    }

    /// Whether an object as it is now is meant.
    pub fn selects(&self, object: &Value) -> bool {
        self.labels.iter().all(|(key, value)| object["metadata"]["labels"][key].as_str() == Some(value))
            && self.fields.iter().all(|(path, value)| path.get(object) == Some(value))
    }

    /// The objects that may be meant, with their versions.
    pub fn objects<'a>(&self, view: &View<'a>) -> Vec<(&'a ObjectKey, &'a [Version])> {
        let Some(stream) = view.stream(self.stream) else { return Vec::new() };
        let named = |stream: &'a Stream, name: &String| {
            let key = (self.namespace.clone().unwrap_or_default(), name.clone());
            stream.objects.get_key_value(&key)
        };
        let found: Vec<(&'a ObjectKey, &'a Vec<Version>)> = match &self.names {
            // A name and one namespace (or a kind that has none) make a key.
            Some(names) if self.namespace.is_some() || is_cluster_scoped(self.kind) => {
                names.iter().filter_map(|name| named(stream, name)).collect()
            }
            Some(_) | None => stream.objects.iter().filter(|(key, _)| self.admits(key)).collect(),
        };
        found
            .into_iter()
            .map(|(key, versions)| (key, view.seen_versions(versions)))
            .filter(|(_, versions)| !versions.is_empty())
            .collect()
    }
}

fn is_cluster_scoped(kind: &str) -> bool {
    rigor_model::kinds::ObjectKind::named(kind).is_some_and(|row| !row.namespaced)
}

impl Look {
    pub fn new(what: &Observation, view: &View<'_>, values: &Values) -> Result<Look, CannotLook> {
        let ready = |pattern: &Option<Pattern>| -> Result<Option<Matcher>, CannotLook> {
            match pattern {
                Some(pattern) => Ok(Some(Matcher::new(&pattern.fill(values)?)?)),
                None => Ok(None),
            }
        };
        let matcher = ready(&what.pattern)?;
        let pattern = what.pattern.as_ref().map(|pattern| pattern.fill(values)).transpose()?;
        let count = what.count.clone();
        Ok(match &what.subject {
            Subject::Objects(selector) => {
                let selection = Selection::new(selector, view, values)?;
                if what.is_occurrence() {
                    Look::Occurrences { of: Source::Events { selection, matcher, pattern }, count }
                } else {
                    Look::State { selection, matcher, pattern, count }
                }
            }
            Subject::Console { board, matches } => {
                let text = template::fill_text(matches, values)?;
                let matcher = regex::Regex::new(&text).map_err(|_| BadRegex::of(text))?;
                Look::Occurrences { of: Source::Console { board: board.clone(), matches: matcher }, count }
            }
            Subject::Requests(RequestFilter { method, path, user, status, body }) => Look::Occurrences {
                of: Source::Requests {
                    method: method.clone(),
                    path: ready(path)?,
                    user: user.as_ref().map(ToString::to_string),
                    status: *status,
                    body: ready(body)?,
                },
                count,
            },
        })
    }

    /// The stream it looks at, if it looks at objects.
    pub fn selection(&self) -> Option<&Selection> {
        match self {
            Look::State { selection, .. }
            | Look::Occurrences { of: Source::Events { selection, .. }, .. } => Some(selection),
            Look::Occurrences { of: Source::Console { .. } | Source::Requests { .. }, .. } => None,
        }
    }

    /// What its objects must look like.
    pub fn pattern(&self) -> (Option<&Pattern>, Option<&Matcher>) {
        match self {
            Look::State { pattern, matcher, .. }
            | Look::Occurrences { of: Source::Events { pattern, matcher, .. }, .. } => {
                (pattern.as_ref(), matcher.as_ref())
            }
            Look::Occurrences { of: Source::Console { .. } | Source::Requests { .. }, .. } => (None, None),
        }
    }
}

/// How a state changes over time. The first entry is how it is at the trial's start.
pub(crate) fn states(
    view: &View<'_>,
    selection: &Selection,
    matcher: Option<&Matcher>,
    count: Option<&Count>,
) -> Vec<Change> {
    let objects = selection.objects(view);
    let holds = |matching: u64, selected: u64| match (count, &selection.names) {
        (Some(count), _) => count.holds(matching, selected),
        (None, Some(names)) => matching == names.len() as u64,
        (None, None) => matching > 0,
    };
    let mut steps: Vec<(usize, usize, &Version)> = objects
        .iter()
        .enumerate()
        .flat_map(|(object, (_, versions))| {
            versions.iter().map(move |version| (version.record, object, version))
        })
        .collect();
    steps.sort_by_key(|(record, object, _)| (*record, *object));
    let mut now = vec![(false, false); objects.len()];
    let (mut selected, mut matching) = (0_u64, 0_u64);
    let start = Interval::exactly(Micros::ZERO);
    let mut changes = vec![Change { when: start, holds: holds(0, 0), record: None, numbers: (0, 0) }];
    for (record, object, version) in steps {
        let body = view.object(version);
        let is_selected = !version.gone && selection.selects(body);
        let is_matching = is_selected && matcher.is_none_or(|matcher| matcher.matches(Some(body)));
        let before = std::mem::replace(&mut now[object], (is_selected, is_matching));
        selected = selected + u64::from(is_selected) - u64::from(before.0);
        matching = matching + u64::from(is_matching) - u64::from(before.1);
        let is = holds(matching, selected);
        if changes.last().is_some_and(|last| last.holds != is) {
            let when = view.interval(version);
            changes.push(Change { when, holds: is, record: Some(record), numbers: (matching, selected) });
        }
    }
    changes
}

/// A field at some time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldState<'a> {
    pub when: Interval,
    pub record: usize,
    /// Whether the object is there, and selected.
    pub there: bool,
    /// Nothing if the object has no such field.
    pub value: Option<&'a Value>,
}

/// How a field's value changes over time, object by object.
pub(crate) fn field_values<'a>(
    view: &View<'a>,
    selection: &Selection,
    field: &Path,
) -> Vec<(&'a ObjectKey, Vec<FieldState<'a>>)> {
    let state = |version: &'a Version| {
        let body = view.object(version);
        let there = !version.gone && selection.selects(body);
        let value = if there { field.get(body) } else { None };
        FieldState { when: view.interval(version), record: version.record, there, value }
    };
    let objects = selection.objects(view).into_iter();
    objects.map(|(key, versions)| (key, versions.iter().map(state).collect())).collect()
}

/// Everything that happened, oldest first.
pub(crate) fn occurrences(view: &View<'_>, source: &Source) -> Vec<Occurrence> {
    match source {
        Source::Events { selection, matcher, .. } => events(view, selection, matcher.as_ref()),
        Source::Console { board, matches } => view
            .console(board)
            .filter(|record| matches!(&record.fact, Fact::Console { line, .. } if matches.is_match(line)))
            .map(|record| once(view, record))
            .collect(),
        Source::Requests { method, path, user, status, body } => view
            .requests()
            .filter(|record| {
                let Fact::Request { as_user, method: made, path: to, status: code, response, .. } =
                    &record.fact
                else {
                    return false;
                };
                method.as_ref().is_none_or(|method| method == made)
                    && path.as_ref().is_none_or(|path| path.matches(Some(&Value::String(to.clone()))))
                    && user.as_ref().is_none_or(|user| user == as_user)
                    && status.is_none_or(|status| status == *code)
                    && body.as_ref().is_none_or(|body| body.matches(response.as_ref()))
            })
            .map(|record| once(view, record))
            .collect(),
    }
}

fn once(view: &View<'_>, record: &Record) -> Occurrence {
    let record_number = usize::try_from(record.seq).unwrap_or(usize::MAX);
    Occurrence { when: view.fact_interval(record), times: 1, record: record_number }
}

/// Events: one occurrence for each time its count rose.
fn events(view: &View<'_>, selection: &Selection, matcher: Option<&Matcher>) -> Vec<Occurrence> {
    let mut all = Vec::new();
    for (_, versions) in selection.objects(view) {
        let (mut known, mut did_match) = (0_u64, false);
        for version in versions {
            if version.gone {
                (known, did_match) = (0, false);
                continue;
            }
            let object = view.object(version);
            let count = event_count(object);
            let does_match =
                selection.selects(object) && matcher.is_none_or(|matcher| matcher.matches(Some(object)));
            let raised = count.saturating_sub(known);
            let times = if does_match && !did_match { raised.max(1) } else { raised };
            if does_match && times > 0 {
                all.push(Occurrence { when: view.interval(version), times, record: version.record });
            }
            (known, did_match) = (count, does_match);
        }
    }
    all.sort_by_key(|occurrence| occurrence.record);
    all
}

/// How often an Event says that it happened.
fn event_count(object: &Value) -> u64 {
    object["count"].as_u64().or_else(|| object["series"]["count"].as_u64()).unwrap_or(1).max(1)
}
