//! Expectations: what must be seen, and when.

pub(crate) mod capture;
pub(crate) mod look;
pub(crate) mod read;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::act::User;
use crate::cel::Cel;
use crate::expr::{Instant, Length};
use crate::kinds::ObjectKind;
use crate::path::Path;
use crate::pattern::{Count, Pattern};
use crate::template::{self, MissingName};
use crate::verbs::Action;

/// Which objects are looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    /// Their kind.
    pub kind: &'static ObjectKind,
    /// Their names; any if absent.
    pub names: Option<Vec<String>>,
    /// Where they are.
    pub namespace: NamespaceScope,
    /// Labels they must have.
    pub labels: BTreeMap<String, String>,
    /// Values they must have at these places.
    pub fields: Vec<(Path, Value)>,
}

/// In which namespaces objects are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamespaceScope {
    /// The trial's own.
    Trial,
    /// That one.
    Named(String),
    /// All of them, and none for kinds that have none.
    All,
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// Objects, as states over time; Events as occurrences.
    Objects(Selector),
    /// Lines of a board's console, or that a second scheduler prints, as occurrences.
    Console {
        /// Whose.
        of: Speaker,
        /// A regular expression.
        matches: String,
    },
    /// Requests of the scenario, as occurrences.
    Requests(RequestFilter),
    /// Lines of a container's log, as occurrences.
    Log(LogFilter),
}

/// Who prints lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// A board, on its console.
    Board(String),
    /// A second scheduler, on its standard output and its standard error.
    Scheduler(String),
}

/// Which lines of which log are looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct LogFilter {
    /// The pod.
    pub pod: String,
    /// The container; the pod's only one if absent.
    pub container: Option<String>,
    /// Where the pod is; the trial's own namespace if absent.
    pub namespace: Option<String>,
    /// The log of the container's run before this one.
    pub previous: bool,
    /// A regular expression.
    pub matches: String,
}

impl LogFilter {
    /// The path by which the API server gives the log.
    ///
    /// # Errors
    /// [`MissingName`] for the first name without a value.
    pub fn path(&self, values: &BTreeMap<String, Value>, trial: &str) -> Result<String, MissingName> {
        let namespace = match &self.namespace {
            Some(namespace) => template::fill_text(namespace, values)?,
            None => trial.to_owned(),
        };
        let pod = template::fill_text(&self.pod, values)?;
        let mut path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/log");
        let mut mark = '?';
        if let Some(container) = &self.container {
            path += &format!("{mark}container={}", template::fill_text(container, values)?);
            mark = '&';
        }
        if self.previous {
            path += &format!("{mark}previous=true");
        }
        Ok(path)
    }
}

/// Which requests are looked at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestFilter {
    /// In capitals.
    pub method: Option<String>,
    /// With its query.
    pub path: Option<Pattern>,
    /// Under which identity.
    pub user: Option<User>,
    /// The status code.
    pub status: Option<u16>,
    /// What the answer looks like.
    pub body: Option<Pattern>,
    /// What was sent.
    pub sent: Option<Pattern>,
    /// What holds of the answer.
    pub cel: Option<Cel>,
    /// What its header fields look like, by their names in lower case.
    pub headers: BTreeMap<String, Pattern>,
}

/// What is to be so, or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// What is looked at.
    pub subject: Subject,
    /// What objects must look like; that they are there is enough if absent.
    pub pattern: Option<Pattern>,
    /// What must hold of objects besides.
    pub cel: Option<Cel>,
    /// How many; if absent at least one, and all where names are given.
    pub count: Option<Count>,
}

impl Observation {
    /// Whether it is counted in occurrences within a window, not as a state at an instant.
    pub fn is_occurrence(&self) -> bool {
        match &self.subject {
            Subject::Objects(selector) => selector.kind.kind == "Event",
            Subject::Console { .. } | Subject::Requests(_) | Subject::Log(_) => true,
        }
    }
}

/// When it must become so.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpectWindow {
    /// At some time from `from` until `length` later; what already is so is fine.
    Within {
        /// Where the window opens.
        from: Instant,
        /// How long it is.
        length: Length,
    },
    /// The onset is not before `not_before` and not after `not_after`.
    Between {
        /// Before it is too early.
        not_before: Instant,
        /// After it is too late.
        not_after: Instant,
    },
}

impl ExpectWindow {
    /// The instants that it counts from.
    pub(crate) fn instants(&self) -> Vec<&Instant> {
        match self {
            ExpectWindow::Within { from, .. } => vec![from],
            ExpectWindow::Between { not_before, not_after } => vec![not_before, not_after],
        }
    }
}

/// It becomes so inside the window.
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    /// What.
    pub what: Observation,
    /// When.
    pub window: ExpectWindow,
    /// Whether it is a premise: where it is not so, nothing is said, rather than that it is wrong.
    pub given: bool,
}

/// From when until when.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Where it opens.
    pub from: Instant,
    /// Where it closes.
    pub until: Instant,
}

/// It is not so at any time in the span.
#[derive(Debug, Clone, PartialEq)]
pub struct Never {
    /// What.
    pub what: Observation,
    /// When.
    pub span: Span,
}

/// It is so at every time in the span.
#[derive(Debug, Clone, PartialEq)]
pub struct Always {
    /// What.
    pub what: Observation,
    /// When.
    pub span: Span,
}

/// A field keeps its value throughout the span.
#[derive(Debug, Clone, PartialEq)]
pub struct Unchanged {
    /// Of which objects.
    pub of: Selector,
    /// Which field.
    pub field: Path,
    /// When.
    pub span: Span,
}

/// Each instant is not before the one in front of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Names of steps.
    pub names: Vec<String>,
}

/// Values become names.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// Where they are found.
    pub from: CaptureFrom,
    /// How long to wait for it.
    pub within: Length,
    /// Whether it is a premise, see [`Expect::given`].
    pub given: bool,
}

/// Where captured values are found.
#[derive(Debug, Clone, PartialEq)]
pub enum CaptureFrom {
    /// In an object.
    Object {
        /// Which object; exactly one.
        of: Selector,
        /// What it must look like.
        pattern: Option<Pattern>,
        /// What must hold of it besides.
        cel: Option<Cel>,
        /// Names, and where their values stand.
        fields: Vec<(String, Path)>,
    },
    /// In the answer to the last such request.
    Answer {
        /// Which request.
        request: RequestFilter,
        /// Names, and where in the answer their values stand.
        fields: Vec<(String, Path)>,
        /// Names, and where in what was sent their values stand.
        sent: Vec<(String, Path)>,
        /// The named groups of the path's expression.
        groups: Vec<String>,
    },
    /// In the last such mark.
    Mark {
        /// What it is called.
        name: String,
        /// The node that it is about.
        node: Option<String>,
        /// Names, and which part of the mark they stand for: `name` or `node`.
        fields: Vec<(String, Path)>,
    },
    /// In the first such line: what the named groups of its expression matched.
    Line {
        /// A console or a log.
        of: Subject,
        /// The names of the groups.
        groups: Vec<String>,
    },
}

impl Capture {
    /// The names that it gives.
    pub fn names(&self) -> Vec<&str> {
        match &self.from {
            CaptureFrom::Object { fields, .. } | CaptureFrom::Mark { fields, .. } => {
                fields.iter().map(|(name, _)| name.as_str()).collect()
            }
            CaptureFrom::Answer { fields, sent, groups, .. } => {
                let paths = fields.iter().chain(sent).map(|(name, _)| name.as_str());
                paths.chain(groups.iter().map(String::as_str)).collect()
            }
            CaptureFrom::Line { groups, .. } => groups.iter().map(String::as_str).collect(),
        }
    }
}

impl fmt::Display for Selector {
    /// `Pod web-1`, `Pods a, b`, `any Event`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names.as_deref() {
            Some([name]) => write!(f, "{} {name}", self.kind.kind)?,
            Some(names) => write!(f, "{}s {}", self.kind.kind, names.join(", "))?,
            None => write!(f, "any {}", self.kind.kind)?,
        }
        if let NamespaceScope::Named(namespace) = &self.namespace {
            write!(f, " in {namespace}")?;
        }
        for (index, (key, value)) in self.labels.iter().enumerate() {
            write!(f, "{}{key}={value}", if index == 0 { " with " } else { ", " })?;
        }
        for (path, value) in &self.fields {
            write!(f, " where {path} is {value}")?;
        }
        Ok(())
    }
}

impl Action {
    /// What an expectation looks at, where that may be something else than objects.
    pub fn subject(&self) -> Option<&Subject> {
        match self {
            Action::Expect(expect) => Some(&expect.what.subject),
            Action::Never(never) => Some(&never.what.subject),
            Action::Always(always) => Some(&always.what.subject),
            Action::Capture(capture) => match &capture.from {
                CaptureFrom::Line { of, .. } => Some(of),
                CaptureFrom::Object { .. } | CaptureFrom::Answer { .. } | CaptureFrom::Mark { .. } => None,
            },
            Action::Unchanged(_)
            | Action::Order(_)
            | Action::Apply(_)
            | Action::Create(_)
            | Action::Replace(_)
            | Action::Patch(_)
            | Action::Delete(_)
            | Action::Scale(_)
            | Action::Cordon(_)
            | Action::Uncordon(_)
            | Action::Bind(_)
            | Action::Request(_)
            | Action::Power(_)
            | Action::Link(_)
            | Action::ControlPlane(_)
            | Action::Scheduler(_)
            | Action::Flash(_)
            | Action::Send(_)
            | Action::Node(_)
            | Action::Mark(_)
            | Action::Kubectl(_)
            | Action::Etcdctl(_)
            | Action::Wait(_)
            | Action::Advance(_)
            | Action::Parallel(_) => None,
        }
    }
}
