//! Whether a value looks as a pattern says, and where it does not.

use regex::Regex;
use rigor_model::pattern::{Comparison, Operator, Pattern, Presence};
use serde_json::Value;

use crate::quantity::Quantity;

/// One place where a value differs from a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where, as a path; empty for the value itself.
    pub path: String,
    /// What was expected there.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

/// A pattern made ready for many values: regular expressions are compiled once.
#[derive(Debug, Clone)]
pub struct Matcher {
    pattern: Node,
}

/// A pattern with its expressions compiled.
#[derive(Debug, Clone)]
enum Node {
    Map(Vec<(String, Node)>),
    List(Vec<Node>),
    Scalar(Value),
    Operators(Vec<Test>),
}

#[derive(Debug, Clone)]
enum Test {
    Regex(Regex, String),
    Any(Box<Node>),
    All(Box<Node>),
    NoneOf(Box<Node>),
    OneOf(Vec<Node>),
    Not(Box<Node>),
    Plain(Operator),
}

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no regular expression once its names are filled in")]
pub struct BadRegex {
    text: String,
}

impl BadRegex {
    /// Of that text.
    pub(crate) fn of(text: String) -> BadRegex {
        BadRegex { text }
    }
}

impl Matcher {
    /// Makes a filled-in pattern ready.
    ///
    /// # Errors
    /// [`BadRegex`] if a regular expression became wrong by what was filled in.
    pub fn new(pattern: &Pattern) -> Result<Matcher, BadRegex> {
        Ok(Matcher { pattern: ready(pattern)? })
    }

    /// Whether the value (nothing: it is absent) looks so.
    pub fn matches(&self, value: Option<&Value>) -> bool {
        matches(&self.pattern, value)
    }

    /// Where the value does not look so; empty if it does.
    pub fn differences(&self, value: Option<&Value>) -> Vec<Difference> {
        let mut found = Vec::new();
        differences(&self.pattern, value, "", &mut found);
        found
    }
}

fn ready(pattern: &Pattern) -> Result<Node, BadRegex> {
    Ok(match pattern {
        Pattern::Map(pairs) => Node::Map(
            pairs
                .iter()
                .map(|(key, pattern)| Ok((key.clone(), ready(pattern)?)))
                .collect::<Result<_, _>>()?,
        ),
        Pattern::List(items) => Node::List(items.iter().map(ready).collect::<Result<_, _>>()?),
        Pattern::Scalar(value) => Node::Scalar(value.clone()),
        Pattern::Operators(all) => Node::Operators(all.iter().map(ready_test).collect::<Result<_, _>>()?),
    })
}

fn ready_test(operator: &Operator) -> Result<Test, BadRegex> {
    let boxed = |pattern: &Pattern| ready(pattern).map(Box::new);
    Ok(match operator {
        Operator::Regex(text) => {
            let regex = Regex::new(text).map_err(|_| BadRegex { text: text.clone() })?;
            Test::Regex(regex, text.clone())
        }
        Operator::Any(pattern) => Test::Any(boxed(pattern)?),
        Operator::All(pattern) => Test::All(boxed(pattern)?),
        Operator::NoneOf(pattern) => Test::NoneOf(boxed(pattern)?),
        Operator::OneOf(ways) => Test::OneOf(ways.iter().map(ready).collect::<Result<_, _>>()?),
        Operator::Not(pattern) => Test::Not(boxed(pattern)?),
        Operator::Is(_)
        | Operator::Equal(_)
        | Operator::NotEqual(_)
        | Operator::Compare(..)
        | Operator::Quantity(_)
        | Operator::Count(_) => Test::Plain(operator.clone()),
    })
}

fn matches(node: &Node, value: Option<&Value>) -> bool {
    match node {
        Node::Map(pairs) => match value {
            Some(Value::Object(object)) => pairs.iter().all(|(key, node)| matches(node, object.get(key))),
            Some(_) | None => false,
        },
        Node::List(items) => match value {
            Some(Value::Array(elements)) => {
                items.iter().all(|item| elements.iter().any(|element| matches(item, Some(element))))
            }
            Some(_) | None => false,
        },
        Node::Scalar(expected) => value.is_some_and(|value| same_scalar(expected, value)),
        Node::Operators(tests) => tests.iter().all(|test| passes(test, value)),
    }
}

fn passes(test: &Test, value: Option<&Value>) -> bool {
    let elements = || match value {
        Some(Value::Array(elements)) => elements.as_slice(),
        Some(_) | None => &[],
    };
    match test {
        Test::Regex(regex, _) => value.and_then(Value::as_str).is_some_and(|text| regex.is_match(text)),
        Test::Any(node) => elements().iter().any(|element| matches(node, Some(element))),
        Test::All(node) => elements().iter().all(|element| matches(node, Some(element))),
        Test::NoneOf(node) => !elements().iter().any(|element| matches(node, Some(element))),
        Test::OneOf(ways) => ways.iter().any(|way| matches(way, value)),
        Test::Not(node) => !matches(node, value),
        Test::Plain(operator) => passes_plain(operator, value),
    }
}

fn passes_plain(operator: &Operator, value: Option<&Value>) -> bool {
    let there = value.filter(|value| !value.is_null());
    match operator {
        Operator::Is(Presence::Present) => there.is_some(),
        Operator::Is(Presence::Absent) => there.is_none(),
        Operator::Is(Presence::Any) => true,
        Operator::Equal(expected) => {
            value.is_some_and(|value| value == expected || same_scalar(expected, value))
        }
        Operator::NotEqual(expected) => !value.is_some_and(|value| same_scalar(expected, value)),
        Operator::Compare(comparison, expected) => {
            there.is_some_and(|value| compares(*comparison, value, expected))
        }
        Operator::Quantity(all) => there.is_some_and(|value| {
            all.iter().all(|(comparison, expected)| {
                Quantity::compare(value, expected)
                    .is_some_and(|ordering| comparison.holds(&ordering, &std::cmp::Ordering::Equal))
            })
        }),
        Operator::Count(count) => {
            let length = match there {
                None => 0,
                Some(Value::Array(elements)) => elements.len(),
                Some(Value::Object(object)) => object.len(),
                Some(_) => return false,
            };
            count.holds(length as u64, length as u64)
        }
        // Made into tests of their own when the pattern was made ready.
        Operator::Regex(_)
        | Operator::Any(_)
        | Operator::All(_)
        | Operator::NoneOf(_)
        | Operator::OneOf(_)
        | Operator::Not(_) => false,
    }
}

/// Equal as texts, booleans, or numbers by value.
fn same_scalar(expected: &Value, value: &Value) -> bool {
    match (expected, value) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (_, _) => expected == value,
    }
}

fn compares(comparison: Comparison, value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => comparison.holds(&a, &b),
            (_, _) => a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| comparison.holds(&a, &b)),
        },
        (Value::String(a), Value::String(b)) => comparison.holds(a, b),
        (_, _) => false,
    }
}

fn differences(node: &Node, value: Option<&Value>, path: &str, found: &mut Vec<Difference>) {
    if matches(node, value) {
        return;
    }
    match (node, value) {
        (Node::Map(pairs), Some(Value::Object(object))) => {
            for (key, node) in pairs {
                differences(node, object.get(key), &joined(path, key), found);
            }
        }
        (Node::List(items), Some(Value::Array(elements))) => {
            for item in
                items.iter().filter(|item| !elements.iter().any(|element| matches(item, Some(element))))
            {
                // The element that a `type`, `key` or `name` points at is the one that was meant.
                match (key_of(item), meant(item, elements)) {
                    (Some((key, text)), Some(element)) => {
                        differences(item, Some(element), &format!("{path}[{key}={text}]"), found);
                    }
                    (_, _) => found.push(Difference {
                        path: path.to_owned(),
                        expected: format!("an element like {}", shown(item)),
                        found: abridged(value),
                    }),
                }
            }
        }
        (_, _) => {
            found.push(Difference { path: path.to_owned(), expected: shown(node), found: abridged(value) })
        }
    }
}

fn joined(path: &str, key: &str) -> String {
    if key.contains(['.', '/', ' ']) {
        format!("{path}[\"{key}\"]")
    } else if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// The key by which Kubernetes tells elements of a list apart, as a list item states it.
fn key_of(item: &Node) -> Option<(&'static str, &str)> {
    let Node::Map(pairs) = item else { return None };
    ["type", "key", "name"].into_iter().find_map(|key| {
        pairs.iter().find_map(|(found, node)| match node {
            Node::Scalar(Value::String(text)) if found == key => Some((key, text.as_str())),
            Node::Scalar(_) | Node::Map(_) | Node::List(_) | Node::Operators(_) => None,
        })
    })
}

/// Among the elements with the item's key, the one with the fewest differences.
fn meant<'a>(item: &Node, elements: &'a [Value]) -> Option<&'a Value> {
    let (key, text) = key_of(item)?;
    elements.iter().filter(|element| element.get(key).and_then(Value::as_str) == Some(text)).min_by_key(
        |element| {
            let mut found = Vec::new();
            differences(item, Some(element), "", &mut found);
            found.len()
        },
    )
}

/// A value in few words.
fn abridged(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    if text.chars().count() > 160 { text.chars().take(159).chain(['…']).collect() } else { text }
}

fn shown(node: &Node) -> String {
    original(node).to_string()
}

/// The pattern that was made ready.
fn original(node: &Node) -> Pattern {
    match node {
        Node::Map(pairs) => {
            Pattern::Map(pairs.iter().map(|(key, node)| (key.clone(), original(node))).collect())
        }
        Node::List(items) => Pattern::List(items.iter().map(original).collect()),
        Node::Scalar(value) => Pattern::Scalar(value.clone()),
        Node::Operators(tests) => Pattern::Operators(
            tests
                .iter()
                .map(|test| match test {
                    Test::Regex(_, text) => Operator::Regex(text.clone()),
                    Test::Any(node) => Operator::Any(Box::new(original(node))),
                    Test::All(node) => Operator::All(Box::new(original(node))),
                    Test::NoneOf(node) => Operator::NoneOf(Box::new(original(node))),
                    Test::OneOf(ways) => Operator::OneOf(ways.iter().map(original).collect()),
                    Test::Not(node) => Operator::Not(Box::new(original(node))),
                    Test::Plain(operator) => operator.clone(),
                })
                .collect(),
        ),
    }
}

/// The part of an object that a pattern speaks of, with whole list elements where it picks them by key;
/// what changes with every report (`lastHeartbeatTime`) is left out. Two equal projections mean that
/// nothing which the pattern can see has changed.
pub(crate) fn projection(pattern: &Pattern, value: Option<&Value>) -> Value {
    match (pattern, value) {
        (Pattern::Map(pairs), Some(Value::Object(object))) => Value::Object(
            pairs.iter().map(|(key, pattern)| (key.clone(), projection(pattern, object.get(key)))).collect(),
        ),
        (Pattern::List(items), Some(Value::Array(elements))) => {
            let keyed = items.iter().all(|item| pattern_key(item).is_some());
            let kept = elements.iter().filter(|element| {
                !keyed
                    || items.iter().any(|item| {
                        pattern_key(item)
                            .is_some_and(|(key, text)| element.get(key).and_then(Value::as_str) == Some(text))
                    })
            });
            Value::Array(kept.map(without_heartbeat).collect())
        }
        (_, Some(value)) => without_heartbeat(value),
        (_, None) => Value::Null,
    }
}

fn pattern_key(item: &Pattern) -> Option<(&'static str, &str)> {
    let Pattern::Map(pairs) = item else { return None };
    ["type", "key", "name"].into_iter().find_map(|key| {
        pairs.iter().find_map(|(found, pattern)| match pattern {
            Pattern::Scalar(Value::String(text)) if found == key => Some((key, text.as_str())),
            Pattern::Scalar(_) | Pattern::Map(_) | Pattern::List(_) | Pattern::Operators(_) => None,
        })
    })
}

fn without_heartbeat(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(
            object
                .iter()
                .filter(|(key, _)| !matches!(key.as_str(), "lastHeartbeatTime" | "resourceVersion"))
                .map(|(key, value)| (key.clone(), without_heartbeat(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_heartbeat).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
