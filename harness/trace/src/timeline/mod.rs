//! What an observation amounts to over time: a state that changes, or occurrences one after another.

mod tally;

use std::collections::BTreeMap;

use rigor_model::expect::{NamespaceScope, Observation, RequestFilter, Selector, Speaker, Subject};
use rigor_model::path::Path;
use rigor_model::pattern::{Count, Operator, Pattern};
use rigor_model::template::{self, MissingName};
use serde_json::Value;

use crate::history::{Fact, Record};
use crate::index::{ObjectKey, Version};
use crate::interval::Interval;
use crate::matching::{BadRegex, Matcher, projection};
use crate::view::View;

pub(crate) use tally::{FieldWatch, Watch, log_answer};

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
    /// Whether objects of that kind live in namespaces.
    namespaced: bool,
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
        of: Speaker,
        matches: regex::Regex,
    },
    Requests(Asked),
    Log {
        /// The path by which the server gives the log, with its query.
        path: String,
        /// The pod whose container it is.
        pod: ObjectKey,
        matches: regex::Regex,
    },
}

/// Requests with names filled in.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    method: Option<String>,
    path: Option<Box<Matcher>>,
    /// The path's expression, if it is compared with one.
    path_expression: Option<regex::Regex>,
    user: Option<String>,
    status: Option<u16>,
    sent: Option<Box<Matcher>>,
    answer: Option<Matcher>,
    headers: Vec<(String, Matcher)>,
}

/// The expression among the operators of a pattern.
fn expression_of(pattern: Option<&Pattern>) -> Option<&str> {
    let Pattern::Operators(all) = pattern? else { return None };
    all.iter()
        .find_map(|operator| if let Operator::Regex(text) = operator { Some(text.as_str()) } else { None })
}

impl Asked {
    pub fn new(filter: &RequestFilter, values: &Values) -> Result<Asked, CannotLook> {
        Ok(Asked {
            method: filter.method.clone(),
            path: Matcher::with(filter.path.as_ref(), None, values)?.map(Box::new),
            path_expression: match expression_of(filter.path.as_ref()) {
                Some(text) => regex::Regex::new(&template::fill_text(text, values)?).ok(),
                None => None,
            },
            user: filter.user.as_ref().map(ToString::to_string),
            status: filter.status,
            sent: Matcher::with(filter.sent.as_ref(), None, values)?.map(Box::new),
            answer: Matcher::with(filter.body.as_ref(), filter.cel.as_ref(), values)?,
            headers: filter
                .headers
                .iter()
                .map(|(name, pattern)| Ok((name.clone(), Matcher::new(&pattern.fill(values)?)?)))
                .collect::<Result<_, CannotLook>>()?,
        })
    }

    /// Whether a request is meant, whatever was answered.
    pub fn is_made(&self, record: &Record) -> bool {
        let Fact::Request { as_user, method, path, body, .. } = &record.fact else { return false };
        self.method.as_ref().is_none_or(|wanted| wanted == method)
            && self.path.as_ref().is_none_or(|wanted| wanted.matches(Some(&Value::String(path.clone()))))
            && self.user.as_ref().is_none_or(|wanted| wanted == as_user)
            && self.sent.as_ref().is_none_or(|wanted| wanted.matches(body.as_ref()))
    }

    /// What the named groups of the path's expression found; nothing where one of them found nothing.
    pub fn groups(&self, path: &str, names: &[String]) -> Option<Values> {
        let found = self.path_expression.as_ref().and_then(|expression| expression.captures(path));
        let of = |name: &String| {
            let text = found.as_ref()?.name(name)?.as_str();
            Some((name.clone(), Value::String(text.to_owned())))
        };
        names.iter().map(of).collect()
    }

    /// Whether a request is meant.
    pub fn is(&self, record: &Record) -> bool {
        let Fact::Request { status, response, headers, .. } = &record.fact else { return false };
        self.is_made(record)
            && self.headers.iter().all(|(name, matcher)| {
                headers
                    .get(name)
                    .is_some_and(|value| matcher.matches(value.clone().map(Value::String).as_ref()))
            })
            && self.status.is_none_or(|wanted| wanted == *status)
            && self.answer.as_ref().is_none_or(|answer| answer.answers(*status, response.as_ref()))
    }

    /// How the answer to a request that is meant differs from what is wanted.
    pub fn differences(&self, record: &Record) -> Vec<crate::matching::Difference> {
        let Fact::Request { status, response, headers, .. } = &record.fact else { return Vec::new() };
        let mut found = Vec::new();
        for (name, matcher) in &self.headers {
            let path = format!("header field {name}");
            match headers.get(name) {
                Some(value) => {
                    let value = value.clone().map(Value::String);
                    let unlike = matcher.differences(value.as_ref()).into_iter();
                    found.extend(
                        unlike.map(|unlike| crate::matching::Difference { path: path.clone(), ..unlike }),
                    );
                }
                None => found.push(crate::matching::Difference {
                    path,
                    expected: "one that was recorded".to_owned(),
                    found: "nothing: the history does not hold it".to_owned(),
                }),
            }
        }
        if let Some(wanted) = self.status.filter(|wanted| wanted != status) {
            found.push(crate::matching::Difference {
                path: "status".to_owned(),
                expected: wanted.to_string(),
                found: status.to_string(),
            });
        }
        if let Some(answer) = &self.answer {
            found.extend(answer.answer_differences(*status, response.as_ref()));
        }
        found
    }
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
            stream: selector.kind.stream,
            kind: selector.kind.kind,
            names: match &selector.names {
                Some(names) => Some(names.iter().map(text).collect::<Result<_, _>>()?),
                None => None,
            },
            namespaced: selector.kind.namespaced,
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
        let key = |name: &String| (self.namespace.clone().unwrap_or_default(), name.clone());
        let found: Vec<(&'a ObjectKey, &'a [Version])> = match &self.names {
            // A name and one namespace (or a kind that has none) make a key.
            Some(names) if self.namespace.is_some() || !self.namespaced => {
                names.iter().filter_map(|name| stream.object(&key(name))).collect()
            }
            Some(_) | None => stream.objects().filter(|(key, _)| self.admits(key)).collect(),
        };
        found
            .into_iter()
            .map(|(key, versions)| (key, view.seen_versions(versions)))
            .filter(|(_, versions)| !versions.is_empty())
            .collect()
    }
}

impl Look {
    pub fn new(what: &Observation, view: &View<'_>, values: &Values) -> Result<Look, CannotLook> {
        let count = what.count.clone();
        let of = match &what.subject {
            Subject::Objects(selector) => {
                let matcher = Matcher::with(what.pattern.as_ref(), what.cel.as_ref(), values)?;
                let pattern = what.pattern.as_ref().map(|pattern| pattern.fill(values)).transpose()?;
                let selection = Selection::new(selector, view, values)?;
                if !what.is_occurrence() {
                    return Ok(Look::State { selection, matcher, pattern, count });
                }
                Source::Events { selection, matcher, pattern }
            }
            lines => Source::lines(lines, view, values)?,
        };
        Ok(Look::Occurrences { of, count })
    }

    /// The stream it looks at, if it looks at objects.
    pub fn selection(&self) -> Option<&Selection> {
        match self {
            Look::State { selection, .. }
            | Look::Occurrences { of: Source::Events { selection, .. }, .. } => Some(selection),
            Look::Occurrences {
                of: Source::Console { .. } | Source::Requests(_) | Source::Log { .. },
                ..
            } => None,
        }
    }

    /// What its objects must look like.
    pub fn matcher(&self) -> Option<&Matcher> {
        match self {
            Look::State { matcher, .. } | Look::Occurrences { of: Source::Events { matcher, .. }, .. } => {
                matcher.as_ref()
            }
            Look::Occurrences {
                of: Source::Console { .. } | Source::Requests(_) | Source::Log { .. },
                ..
            } => None,
        }
    }

    /// Why its condition could not be evaluated over something that it looked at.
    pub fn broken(&self) -> Option<String> {
        match self {
            Look::Occurrences { of: Source::Requests(asked), .. } => {
                asked.answer.as_ref().and_then(Matcher::broken)
            }
            Look::State { .. } | Look::Occurrences { .. } => self.matcher().and_then(Matcher::broken),
        }
    }

    /// What of an object it can see; nothing if that the object is there is all that matters.
    pub fn projected(&self, object: &Value) -> Option<Value> {
        let (Look::State { pattern, .. } | Look::Occurrences { of: Source::Events { pattern, .. }, .. }) =
            self
        else {
            return None;
        };
        let whole = Pattern::Operators(Vec::new());
        let pattern = match pattern {
            _ if self.matcher().is_some_and(Matcher::has_condition) => &whole,
            Some(pattern) => pattern,
            None => return None,
        };
        Some(projection(pattern, Some(object)))
    }
}

impl Source {
    /// Lines of a console or a log, or requests.
    pub fn lines(subject: &Subject, view: &View<'_>, values: &Values) -> Result<Source, CannotLook> {
        let expression = |text: &str| -> Result<regex::Regex, CannotLook> {
            let text = template::fill_text(text, values)?;
            regex::Regex::new(&text).map_err(|_| BadRegex::of(text).into())
        };
        Ok(match subject {
            Subject::Console { of, matches } => {
                Source::Console { of: of.clone(), matches: expression(matches)? }
            }
            Subject::Log(log) => {
                let namespace = match &log.namespace {
                    Some(namespace) => template::fill_text(namespace, values)?,
                    None => view.namespace().to_owned(),
                };
                Source::Log {
                    path: log.path(values, view.namespace())?,
                    pod: (namespace, template::fill_text(&log.pod, values)?),
                    matches: expression(&log.matches)?,
                }
            }
            Subject::Requests(filter) => Source::Requests(Asked::new(filter, values)?),
            Subject::Objects(selector) => Source::Events {
                selection: Selection::new(selector, view, values)?,
                matcher: None,
                pattern: None,
            },
        })
    }
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

/// Everything that happened so far, oldest first.
pub(crate) fn occurrences(view: &View<'_>, source: &Source) -> Vec<Occurrence> {
    let look = Look::Occurrences { of: source.clone(), count: None };
    Watch::new(look).occurrences(view).to_vec()
}
