//! What a value is to look like: subset match of trees, with `{$…}` operators where equality is not enough.
//!
//! Only the types and their reading are here; the judge does the matching.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Number, Value};

use crate::mistake::suggestion;
use crate::reader::Reader;
use crate::strings;
use crate::template::{self, MissingName};
use crate::yaml::{Entry, Kind, Node};

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
pub const OPERATORS: [&str; 15] = [
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
    "$count",
    "$oneOf",
    "$not",
];

/// Reads a pattern; `parent` is the key it stands under.
pub(crate) fn read(reader: &mut Reader<'_>, node: &Node, parent: Option<&str>) -> Option<Pattern> {
    match &node.kind {
        Kind::Null => {
            reader.wrong(&node.span, "nothing to match", "write {$is: absent} or {$is: present}");
            None
        }
        Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
            if let Some(parent) = parent {
                strings::check_scalar(reader, parent, node);
            }
            Some(Pattern::Scalar(node.to_value()))
        }
        Kind::List(items) if items.is_empty() => {
            reader.wrong(
                &node.span,
                "an empty list matches every list",
                "write {$count: 0} for a list without elements, {$is: present} for any",
            );
            None
        }
        Kind::List(items) => {
            let patterns: Vec<Option<Pattern>> =
                items.iter().map(|item| read(reader, item, parent)).collect();
            Some(Pattern::List(patterns.into_iter().collect::<Option<_>>()?))
        }
        Kind::Map(entries) if entries.is_empty() => {
            reader.wrong(&node.span, "an empty mapping matches every mapping", "write {$is: present}");
            None
        }
        Kind::Map(entries) => read_map(reader, node, entries, parent),
    }
}

fn read_map(
    reader: &mut Reader<'_>,
    node: &Node,
    entries: &[Entry],
    parent: Option<&str>,
) -> Option<Pattern> {
    let operators = entries.iter().filter(|entry| is_operator(&entry.key)).count();
    if operators == 0 {
        strings::check_status(reader, node);
        let pairs: Vec<Option<(String, Pattern)>> = entries
            .iter()
            .map(|entry| {
                let parent = strings::parent_of(parent, &entry.key);
                read(reader, &entry.value, Some(&parent)).map(|pattern| (entry.key.clone(), pattern))
            })
            .collect();
        return Some(Pattern::Map(pairs.into_iter().collect::<Option<_>>()?));
    }
    if operators < entries.len() {
        reader.wrong(
            &node.span,
            "operators and plain keys stand side by side",
            "put the operator under the key that it is about, or use {$oneOf: …}, {$not: …} around whole mappings",
        );
        return None;
    }
    let all: Vec<Option<Operator>> =
        entries.iter().map(|entry| read_operator(reader, entry, parent)).collect();
    Some(Pattern::Operators(all.into_iter().collect::<Option<_>>()?))
}

/// `$x`, but not `${name}`.
fn is_operator(key: &str) -> bool {
    key.starts_with('$') && !key.starts_with("${") && !key.starts_with("$${")
}

fn read_operator(reader: &mut Reader<'_>, entry: &Entry, parent: Option<&str>) -> Option<Operator> {
    let value = &entry.value;
    Some(match entry.key.as_str() {
        "$is" => Operator::Is(match value.as_text() {
            Some("present") => Presence::Present,
            Some("absent") => Presence::Absent,
            Some("any") => Presence::Any,
            Some(_) | None => {
                reader.wrong(
                    &value.span,
                    format!("$is cannot be {}", value.describe()),
                    "write present, absent or any",
                );
                return None;
            }
        }),
        "$regex" => Operator::Regex(reader.regex(value)?),
        "$eq" => Operator::Equal(value.to_value()),
        "$ne" => Operator::NotEqual(read_scalar(reader, value)?),
        "$gt" | "$ge" | "$lt" | "$le" => {
            Operator::Compare(Comparison::named(&entry.key)?, read_scalar(reader, value)?)
        }
        "$quantity" => Operator::Quantity(read_quantity(reader, value)?),
        "$any" => Operator::Any(Box::new(read(reader, value, parent)?)),
        "$all" => Operator::All(Box::new(read(reader, value, parent)?)),
        "$none" => Operator::NoneOf(Box::new(read(reader, value, parent)?)),
        "$count" => Operator::Count(read_count(reader, value, false)?),
        "$oneOf" => {
            let ways = reader.list(value);
            if ways.is_empty() {
                reader.wrong(
                    &value.span,
                    "$oneOf has nothing to choose from",
                    "write {$oneOf: [first, second]}",
                );
                return None;
            }
            let ways: Vec<Option<Pattern>> = ways.iter().map(|way| read(reader, way, parent)).collect();
            Operator::OneOf(ways.into_iter().collect::<Option<_>>()?)
        }
        "$not" => Operator::Not(Box::new(read(reader, value, parent)?)),
        other => {
            reader.wrong(
                &entry.key_span,
                format!("there is no operator `{other}`"),
                suggestion(other, &OPERATORS),
            );
            return None;
        }
    })
}

fn read_scalar(reader: &mut Reader<'_>, node: &Node) -> Option<Value> {
    match &node.kind {
        Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => Some(node.to_value()),
        Kind::Null | Kind::List(_) | Kind::Map(_) => {
            reader.wrong(
                &node.span,
                format!("a text or a number belongs here, not {}", node.describe()),
                "compare with {$not: …} or $eq if it is a whole tree",
            );
            None
        }
    }
}

fn read_quantity(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<(Comparison, Value)>> {
    let Kind::Map(entries) = &node.kind else {
        return Some(vec![(Comparison::Equal, read_scalar(reader, node)?)]);
    };
    let mut all = Vec::new();
    for entry in entries {
        match Comparison::named(&entry.key) {
            Some(comparison) => all.push((comparison, read_scalar(reader, &entry.value)?)),
            None => {
                let known = ["$eq", "$ne", "$gt", "$ge", "$lt", "$le"];
                reader.wrong(
                    &entry.key_span,
                    format!("a quantity cannot be compared by `{}`", entry.key),
                    suggestion(&entry.key, &known),
                );
                return None;
            }
        }
    }
    Some(all)
}

/// Reads a count: a number, comparisons of a number, or (where `all` may stand) the word.
pub(crate) fn read_count(reader: &mut Reader<'_>, node: &Node, all: bool) -> Option<Count> {
    match &node.kind {
        Kind::Number(number) => match number.as_u64() {
            Some(number) => Some(Count::exactly(number)),
            None => wrong_count(reader, node, all),
        },
        Kind::Text(text) if all && text == "all" => Some(Count::All),
        Kind::Map(entries) if !entries.is_empty() => {
            let mut conditions = Vec::new();
            for entry in entries {
                let number = match &entry.value.kind {
                    Kind::Number(number) => number.as_u64(),
                    Kind::Null | Kind::Bool(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => None,
                };
                match (Comparison::named(&entry.key), number) {
                    (Some(comparison), Some(number)) => conditions.push((comparison, number)),
                    (_, _) => return wrong_count(reader, node, all),
                }
            }
            Some(Count::Compared(conditions))
        }
        Kind::Null | Kind::Bool(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => {
            wrong_count(reader, node, all)
        }
    }
}

fn wrong_count(reader: &mut Reader<'_>, node: &Node, all: bool) -> Option<Count> {
    let remedy = if all { "write 3, {$ge: 2} or all" } else { "write 3 or {$ge: 2}" };
    reader.wrong(&node.span, format!("{} is no count", node.describe()), remedy);
    None
}

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
            Operator::OneOf(ways) => Operator::OneOf(fill_all(ways, values)?),
        })
    }
}

impl fmt::Display for Pattern {
    /// As one line of YAML in flow style.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Map(pairs) => {
                f.write_str("{")?;
                for (index, (key, pattern)) in pairs.iter().enumerate() {
                    write!(f, "{}{key}: {pattern}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
            Pattern::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Pattern::Scalar(value) => write!(f, "{value}"),
            Pattern::Operators(all) => {
                f.write_str("{")?;
                for (index, operator) in all.iter().enumerate() {
                    write!(f, "{}{operator}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operator::Is(Presence::Present) => f.write_str("$is: present"),
            Operator::Is(Presence::Absent) => f.write_str("$is: absent"),
            Operator::Is(Presence::Any) => f.write_str("$is: any"),
            Operator::Regex(text) => write!(f, "$regex: {}", Value::String(text.clone())),
            Operator::Equal(value) => write!(f, "$eq: {value}"),
            Operator::NotEqual(value) => write!(f, "$ne: {value}"),
            Operator::Compare(comparison, value) => write!(f, "{}: {value}", comparison.name()),
            Operator::Quantity(all) => {
                f.write_str("$quantity: {")?;
                for (index, (comparison, value)) in all.iter().enumerate() {
                    write!(f, "{}{}: {value}", if index > 0 { ", " } else { "" }, comparison.name())?;
                }
                f.write_str("}")
            }
            Operator::Any(pattern) => write!(f, "$any: {pattern}"),
            Operator::All(pattern) => write!(f, "$all: {pattern}"),
            Operator::NoneOf(pattern) => write!(f, "$none: {pattern}"),
            Operator::Count(count) => write!(f, "$count: {count}"),
            Operator::OneOf(ways) => write!(f, "$oneOf: {}", Pattern::List(ways.clone())),
            Operator::Not(pattern) => write!(f, "$not: {pattern}"),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Count::All => f.write_str("all"),
            Count::Compared(conditions) => match conditions.as_slice() {
                [(Comparison::Equal, number)] => write!(f, "{}", Number::from(*number)),
                conditions => {
                    f.write_str("{")?;
                    for (index, (comparison, number)) in conditions.iter().enumerate() {
                        write!(f, "{}{}: {number}", if index > 0 { ", " } else { "" }, comparison.name())?;
                    }
                    f.write_str("}")
                }
            },
        }
    }
}
