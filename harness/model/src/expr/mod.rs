//! Instants and durations as scenarios write them: `lastRenewal(a) + leaseDuration + slack`.
//!
//! Typed when read: an instant plus a duration is an instant, and nothing else mixes. What an instant
//! amounts to in a trial is decided by the judge.

mod later;
mod parse;

use std::fmt;
use std::time::Duration;

use crate::constants::{Constant, Constants};
use crate::path::Path;
use crate::template;

pub use parse::{ExprError, parse};

/// Words of the language that cannot name a step.
pub const RESERVED: [&str; 10] =
    ["start", "begin", "serving", "lastRenewal", "stamp", "mark", "request", "max", "min", "now"];

/// Either type of expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A point in time.
    Instant(Instant),
    /// A length of time.
    Length(Length),
}

/// A point in a trial's time.
#[derive(Debug, Clone, PartialEq)]
pub enum Instant {
    /// The instant of the step that bears the name.
    Named(String),
    /// The trial's start.
    Start,
    /// The begin of the step in which the expression stands.
    Begin,
    /// The last time the control plane began to serve.
    Serving,
    /// When the server accepted the last renewal of a node's lease.
    LastRenewal {
        /// The node.
        node: String,
        /// Only renewals accepted before this instant.
        before: Option<Box<Instant>>,
    },
    /// A time stamp in the object that a named expectation found.
    Stamp {
        /// The expectation's name.
        name: String,
        /// Where in the object.
        path: Path,
    },
    /// Something done outside the API.
    Mark {
        /// What was done.
        name: String,
        /// To what.
        subject: Option<String>,
    },
    /// The last request of that kind that the scenario made, from sending to answer.
    Request {
        /// In capitals.
        method: String,
        /// The path; without a query it stands for any, and `*` for one part.
        path: String,
    },
    /// Later by a length.
    Plus(Box<Instant>, Length),
    /// Earlier by a length.
    Minus(Box<Instant>, Length),
    /// The latest of several.
    Latest(Vec<Instant>),
    /// The earliest of several.
    Earliest(Vec<Instant>),
}

/// A length of time.
#[derive(Debug, Clone, PartialEq)]
pub enum Length {
    /// Written out.
    Fixed(Duration),
    /// A constant by name.
    Constant(Constant),
    /// Both together.
    Sum(Box<Length>, Box<Length>),
    /// The first less the second; not below zero.
    Difference(Box<Length>, Box<Length>),
    /// Several times.
    Times(u32, Box<Length>),
    /// The longest of several.
    Longest(Vec<Length>),
    /// The shortest of several.
    Shortest(Vec<Length>),
}

impl Length {
    /// Whether it is no time at all, whatever the constants are.
    pub fn is_none(&self) -> bool {
        match self {
            Length::Fixed(length) => length.is_zero(),
            Length::Constant(_) | Length::Difference(..) => false,
            Length::Sum(a, b) => a.is_none() && b.is_none(),
            Length::Times(count, length) => *count == 0 || length.is_none(),
            Length::Longest(all) => all.iter().all(Length::is_none),
            Length::Shortest(all) => all.iter().any(Length::is_none),
        }
    }

    /// What it amounts to under `constants`.
    pub fn resolve(&self, constants: &Constants) -> Duration {
        match self {
            Length::Fixed(length) => *length,
            Length::Constant(constant) => constants.get(*constant),
            Length::Sum(a, b) => a.resolve(constants).saturating_add(b.resolve(constants)),
            Length::Difference(a, b) => a.resolve(constants).saturating_sub(b.resolve(constants)),
            Length::Times(count, length) => length.resolve(constants).saturating_mul(*count),
            Length::Longest(all) => {
                all.iter().map(|length| length.resolve(constants)).max().unwrap_or_default()
            }
            Length::Shortest(all) => {
                all.iter().map(|length| length.resolve(constants)).min().unwrap_or_default()
            }
        }
    }
}

impl Instant {
    /// The instants it is computed from, without the arithmetic.
    pub fn bases(&self) -> Vec<&Instant> {
        match self {
            Instant::Plus(from, _) | Instant::Minus(from, _) => from.bases(),
            Instant::Latest(all) | Instant::Earliest(all) => all.iter().flat_map(Instant::bases).collect(),
            Instant::Named(_)
            | Instant::Start
            | Instant::Begin
            | Instant::Serving
            | Instant::LastRenewal { .. }
            | Instant::Stamp { .. }
            | Instant::Mark { .. }
            | Instant::Request { .. } => vec![self],
        }
    }

    /// The names of steps it refers to, at any depth.
    pub fn step_names(&self) -> Vec<&str> {
        self.references().into_iter().map(|(name, _)| name).collect()
    }

    /// The names of steps it refers to, and whether it asks for a time stamp in what the step found.
    pub fn references(&self) -> Vec<(&str, bool)> {
        self.bases()
            .into_iter()
            .flat_map(|base| match base {
                Instant::Named(name) => vec![(name.as_str(), false)],
                Instant::Stamp { name, .. } => vec![(name.as_str(), true)],
                Instant::LastRenewal { before: Some(before), .. } => before.references(),
                Instant::Start
                | Instant::Begin
                | Instant::Serving
                | Instant::LastRenewal { before: None, .. }
                | Instant::Mark { .. }
                | Instant::Request { .. }
                | Instant::Plus(..)
                | Instant::Minus(..)
                | Instant::Latest(_)
                | Instant::Earliest(_) => Vec::new(),
            })
            .collect()
    }

    /// The nodes whose lease it refers to.
    pub fn nodes(&self) -> Vec<&str> {
        self.bases()
            .into_iter()
            .filter_map(|base| match base {
                Instant::LastRenewal { node, .. } => Some(node.as_str()),
                Instant::Named(_)
                | Instant::Start
                | Instant::Begin
                | Instant::Serving
                | Instant::Stamp { .. }
                | Instant::Mark { .. }
                | Instant::Request { .. }
                | Instant::Plus(..)
                | Instant::Minus(..)
                | Instant::Latest(_)
                | Instant::Earliest(_) => None,
            })
            .collect()
    }

    /// The names in `${…}` that it refers to: captured values.
    pub fn value_names(&self) -> Vec<&str> {
        self.bases()
            .into_iter()
            .flat_map(|base| match base {
                Instant::LastRenewal { node, before } => {
                    let before = before.as_ref().map(|before| before.value_names()).unwrap_or_default();
                    template::names(node).into_iter().chain(before).collect()
                }
                Instant::Mark { subject: Some(text), .. } | Instant::Request { path: text, .. } => {
                    template::names(text)
                }
                Instant::Named(_)
                | Instant::Start
                | Instant::Begin
                | Instant::Serving
                | Instant::Stamp { .. }
                | Instant::Mark { subject: None, .. }
                | Instant::Plus(..)
                | Instant::Minus(..)
                | Instant::Latest(_)
                | Instant::Earliest(_) => Vec::new(),
            })
            .collect()
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Instant::Named(name) => f.write_str(name),
            Instant::Start => f.write_str("start"),
            Instant::Begin => f.write_str("begin"),
            Instant::Serving => f.write_str("serving"),
            Instant::LastRenewal { node, before: None } => write!(f, "lastRenewal({node})"),
            Instant::LastRenewal { node, before: Some(before) } => write!(f, "lastRenewal({node}, {before})"),
            Instant::Stamp { name, path } => write!(f, "stamp({name}, {path})"),
            Instant::Mark { name, subject: None } => write!(f, "mark({name})"),
            Instant::Mark { name, subject: Some(subject) } => write!(f, "mark({name}, {subject})"),
            Instant::Request { method, path } => write!(f, "request({method}, {path})"),
            Instant::Plus(from, length) => write!(f, "{from} + {}", Operand(length)),
            Instant::Minus(from, length) => write!(f, "{from} - {}", Operand(length)),
            Instant::Latest(all) => list(f, "max", all),
            Instant::Earliest(all) => list(f, "min", all),
        }
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Length::Fixed(length) => f.write_str(&crate::duration::format(*length)),
            Length::Constant(constant) => f.write_str(constant.name()),
            Length::Sum(a, b) => write!(f, "{a} + {}", Operand(b)),
            Length::Difference(a, b) => write!(f, "{a} - {}", Operand(b)),
            Length::Times(count, length) => write!(f, "{count} * {}", Operand(length)),
            Length::Longest(all) => list(f, "max", all),
            Length::Shortest(all) => list(f, "min", all),
        }
    }
}

/// A length as the right side of a sum: sums in it need parentheses.
struct Operand<'a>(&'a Length);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Length::Sum(..) | Length::Difference(..) => write!(f, "({})", self.0),
            Length::Fixed(_)
            | Length::Constant(_)
            | Length::Times(..)
            | Length::Longest(_)
            | Length::Shortest(_) => write!(f, "{}", self.0),
        }
    }
}

/// Whether a request's path is meant by one in an expression: there a query may be left out, and `*` stands
/// for one part.
pub fn is_path_of(wanted: &str, path: &str) -> bool {
    let path = if wanted.contains('?') { path } else { path.split('?').next().unwrap_or_default() };
    let (mut wanted, mut parts) = (wanted.split('/'), path.split('/'));
    loop {
        match (wanted.next(), parts.next()) {
            (None, None) => return true,
            (Some(wanted), Some(part)) if wanted == "*" || wanted == part => {}
            (_, _) => return false,
        }
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, function: &str, all: &[T]) -> fmt::Result {
    write!(f, "{function}(")?;
    for (index, item) in all.iter().enumerate() {
        write!(f, "{}{item}", if index > 0 { ", " } else { "" })?;
    }
    f.write_str(")")
}
