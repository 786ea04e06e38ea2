//! What a value is to look like: subset match of trees, with `{$…}` operators where equality is not enough.
//!
//! Only the types and their reading are here; the judge does the matching.

mod read;
mod schema;
mod show;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::template::{self, MissingName};

pub(crate) use read::{CountWords, read, read_count};
pub(crate) use schema::schema;

/// What a value is to look like.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// A mapping in which each of these keys matches.
    Map(Vec<(String, Pattern)>),
    /// A list in which each of these matches some element.
    List(Vec<Pattern>),
    /// A text, number or boolean that is equal.
    Scalar(Value),
    /// All of these hold.
    Operators(Vec<Operator>),
}

/// A `{$…}`.
#[derive(Debug, Clone, PartialEq)]
pub enum Operator {
    /// `$is`
    Is(Presence),
    /// `$regex`
    Regex(String),
    /// `$eq`: the same and nothing more.
    Equal(Value),
    /// `$ne`
    NotEqual(Value),
    /// `$gt`, `$ge`, `$lt`, `$le`
    Compare(Comparison, Value),
    /// `$quantity`: all of these hold of the value as a Kubernetes quantity.
    Quantity(Vec<(Comparison, Value)>),
    /// `$any`: some element of the list.
    Any(Box<Pattern>),
    /// `$all`: every element of the list.
    All(Box<Pattern>),
    /// `$none`: no element of the list.
    NoneOf(Box<Pattern>),
    /// `$byKey`: the elements of a list are found by the text (or number) under this key, and then matched.
    ByKey(String, Vec<(String, Pattern)>),
    /// `$count`: as many elements.
    Count(Count),
    /// `$oneOf`: one of these patterns.
    OneOf(Vec<Pattern>),
    /// `$not`
    Not(Box<Pattern>),
}

/// The words of `$is`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// There, and not null.
    Present,
    /// Not there, or null.
    Absent,
    /// Whatever.
    Any,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    AtLeast,
    /// Less.
    Less,
    /// Less or equal.
    AtMost,
}

impl Comparison {
    /// The operator's name.
    pub fn name(self) -> &'static str {
        match self {
            Comparison::Equal => "$eq",
            Comparison::NotEqual => "$ne",
            Comparison::Greater => "$gt",
            Comparison::AtLeast => "$ge",
            Comparison::Less => "$lt",
            Comparison::AtMost => "$le",
        }
    }

    /// Whether `left` stands so to `right`.
    pub fn holds<T: PartialOrd>(self, left: &T, right: &T) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Greater => left > right,
            Comparison::AtLeast => left >= right,
            Comparison::Less => left < right,
            Comparison::AtMost => left <= right,
        }
    }

    fn named(key: &str) -> Option<Comparison> {
        [
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Greater,
            Comparison::AtLeast,
            Comparison::Less,
            Comparison::AtMost,
        ]
        .into_iter()
        .find(|comparison| comparison.name() == key)
    }
}

/// How many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Count {
    /// Every one there is, and at least one.
    All,
    /// As all of these say.
    Compared(Vec<(Comparison, u64)>),
}

impl Count {
    /// Exactly that many.
    pub fn exactly(number: u64) -> Count {
        Count::Compared(vec![(Comparison::Equal, number)])
    }

    /// At least that many.
    pub fn at_least(number: u64) -> Count {
        Count::Compared(vec![(Comparison::AtLeast, number)])
    }

    /// Whether `number` out of `all` is right.
    pub fn holds(&self, number: u64, all: u64) -> bool {
        match self {
            Count::All => number == all && all > 0,
            Count::Compared(conditions) => {
                conditions.iter().all(|(comparison, wanted)| comparison.holds(&number, wanted))
            }
        }
    }
}

/// The operators by name, for messages and documents.
pub const OPERATORS: [&str; 16] = [
    "$is",
    "$regex",
    "$eq",
    "$ne",
    "$gt",
    "$ge",
    "$lt",
    "$le",
    "$quantity",
    "$any",
    "$all",
    "$none",
    "$byKey",
    "$count",
    "$oneOf",
    "$not",
];

impl Pattern {
    /// The names in `${…}` anywhere in it.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Pattern::Map(pairs) => pairs
                .iter()
                .flat_map(|(key, pattern)| template::names(key).into_iter().chain(pattern.names()))
                .collect(),
            Pattern::List(items) => items.iter().flat_map(Pattern::names).collect(),
            Pattern::Scalar(value) => template::names_in(value),
            Pattern::Operators(all) => all.iter().flat_map(Operator::names).collect(),
        }
    }

    /// With all names filled in.
    ///
    /// # Errors
    /// [`MissingName`] for the first name without a value.
    pub fn fill(&self, values: &BTreeMap<String, Value>) -> Result<Pattern, MissingName> {
        Ok(match self {
            Pattern::Map(pairs) => Pattern::Map(
                pairs
                    .iter()
                    .map(|(key, pattern)| Ok((template::fill_text(key, values)?, pattern.fill(values)?)))
                    .collect::<Result<_, MissingName>>()?,
            ),
            Pattern::List(items) => Pattern::List(fill_all(items, values)?),
            Pattern::Scalar(value) => Pattern::Scalar(template::fill(value, values)?),
            Pattern::Operators(all) => Pattern::Operators(
                all.iter().map(|operator| operator.fill(values)).collect::<Result<_, _>>()?,
            ),
        })
    }
}

fn fill_all(items: &[Pattern], values: &BTreeMap<String, Value>) -> Result<Vec<Pattern>, MissingName> {
    items.iter().map(|item| item.fill(values)).collect()
}

impl Operator {
    fn names(&self) -> Vec<&str> {
        match self {
            Operator::Is(_) | Operator::Count(_) => Vec::new(),
            Operator::Regex(text) => template::names(text),
            Operator::Equal(value) | Operator::NotEqual(value) | Operator::Compare(_, value) => {
                template::names_in(value)
            }
            Operator::Quantity(all) => all.iter().flat_map(|(_, value)| template::names_in(value)).collect(),
            Operator::Any(pattern)
            | Operator::All(pattern)
            | Operator::NoneOf(pattern)
            | Operator::Not(pattern) => pattern.names(),
            Operator::ByKey(_, elements) => elements
                .iter()
                .flat_map(|(value, pattern)| template::names(value).into_iter().chain(pattern.names()))
                .collect(),
            Operator::OneOf(ways) => ways.iter().flat_map(Pattern::names).collect(),
        }
    }

    fn fill(&self, values: &BTreeMap<String, Value>) -> Result<Operator, MissingName> {
        let boxed = |pattern: &Pattern| pattern.fill(values).map(Box::new);
        Ok(match self {
            Operator::Is(presence) => Operator::Is(*presence),
            Operator::Count(count) => Operator::Count(count.clone()),
            Operator::Regex(text) => Operator::Regex(template::fill_text(text, values)?),
            Operator::Equal(value) => Operator::Equal(template::fill(value, values)?),
            Operator::NotEqual(value) => Operator::NotEqual(template::fill(value, values)?),
            Operator::Compare(comparison, value) => {
                Operator::Compare(*comparison, template::fill(value, values)?)
            }
            Operator::Quantity(all) => Operator::Quantity(
                all.iter()
                    .map(|(comparison, value)| Ok((*comparison, template::fill(value, values)?)))
                    .collect::<Result<_, MissingName>>()?,
            ),
            Operator::Any(pattern) => Operator::Any(boxed(pattern)?),
            Operator::All(pattern) => Operator::All(boxed(pattern)?),
            Operator::NoneOf(pattern) => Operator::NoneOf(boxed(pattern)?),
            Operator::Not(pattern) => Operator::Not(boxed(pattern)?),
            Operator::ByKey(key, elements) => Operator::ByKey(
                key.clone(),
                elements
                    .iter()
                    .map(|(value, pattern)| Ok((template::fill_text(value, values)?, pattern.fill(values)?)))
                    .collect::<Result<_, MissingName>>()?,
            ),
            Operator::OneOf(ways) => Operator::OneOf(fill_all(ways, values)?),
        })
    }
}
