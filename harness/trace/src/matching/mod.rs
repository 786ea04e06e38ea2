//! Whether a value looks as a pattern says, and where it does not.

mod differ;
mod projection;

use std::cell::RefCell;

use regex::Regex;
use rigor_model::cel::{self, Cel, Truth};
use rigor_model::pattern::{Comparison, Operator, Pattern, Presence};
use serde_json::Value;

use crate::quantity::Quantity;
use crate::timeline::{CannotLook, Values};

pub(crate) use projection::projection;

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

/// A pattern, a condition or both, made ready for many values: regular expressions are compiled once.
#[derive(Debug, Clone)]
pub struct Matcher {
    pattern: Option<Node>,
    condition: Option<Condition>,
}

/// A condition in CEL with the values that it refers to by name.
#[derive(Debug, Clone)]
struct Condition {
    cel: Cel,
    values: Values,
    /// Why it could not be evaluated over some value, if that came up.
    broken: RefCell<Option<String>>,
}

impl Condition {
    fn truth(&self, roots: &[(&str, &Value)]) -> Truth {
        let truth = self.cel.holds(roots, &self.values);
        if let Truth::Broken(why) = &truth {
            self.broken.borrow_mut().get_or_insert_with(|| why.clone());
        }
        truth
    }

    /// What stands in the way of its holding, if anything does.
    fn difference(&self, roots: &[(&str, &Value)]) -> Option<Difference> {
        let found = match self.truth(roots) {
            Truth::Yes => return None,
            Truth::No => {
                let told: Vec<String> =
                    roots.iter().flat_map(|(root, value)| self.cel.told(root, value)).collect();
                if told.is_empty() { "false".to_owned() } else { told.join(", ") }
            }
            Truth::NotYet(why) => why,
            Truth::Broken(why) => format!("what cannot be evaluated: {why}"),
        };
        Some(Difference { path: String::new(), expected: self.cel.to_string(), found })
    }
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
    ByKey(String, Vec<(String, Node)>),
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
        Ok(Matcher { pattern: Some(ready(pattern)?), condition: None })
    }

    /// Makes a pattern and a condition ready, of which either may be absent; nothing if both are.
    ///
    /// # Errors
    /// A name has no value yet, or a filled-in expression is wrong.
    pub fn with(
        pattern: Option<&Pattern>,
        cel: Option<&Cel>,
        values: &Values,
    ) -> Result<Option<Matcher>, CannotLook> {
        let pattern = match pattern {
            Some(pattern) => Some(ready(&pattern.fill(values)?)?),
            None => None,
        };
        let condition = match cel {
            Some(cel) => {
                let known = cel.names().iter().map(|name| match values.get(name) {
                    Some(value) => Ok((name.clone(), value.clone())),
                    None => Err(CannotLook::from(rigor_model::template::MissingName(name.clone()))),
                });
                let values = known.collect::<Result<_, _>>()?;
                Some(Condition { cel: cel.clone(), values, broken: RefCell::new(None) })
            }
            None => None,
        };
        let some = pattern.is_some() || condition.is_some();
        Ok(some.then_some(Matcher { pattern, condition }))
    }

    /// Whether the value (nothing: it is absent) looks so.
    pub fn matches(&self, value: Option<&Value>) -> bool {
        self.looks(value)
            && self.condition.as_ref().is_none_or(|condition| {
                value.is_some_and(|value| condition.truth(&[(cel::OBJECT, value)]) == Truth::Yes)
            })
    }

    /// Whether an answer looks so.
    pub fn answers(&self, status: u16, body: Option<&Value>) -> bool {
        self.looks(body)
            && self.condition.as_ref().is_none_or(|condition| {
                let (status, body) = (Value::from(status), body.unwrap_or(&Value::Null));
                condition.truth(&[(cel::ANSWER, body), (cel::STATUS, &status)]) == Truth::Yes
            })
    }

    fn looks(&self, value: Option<&Value>) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| matches(pattern, value))
    }

    /// Where the value does not look so; empty if it does.
    pub fn differences(&self, value: Option<&Value>) -> Vec<Difference> {
        let mut found = self.unlike(value);
        if let Some(condition) = &self.condition {
            let value = value.unwrap_or(&Value::Null);
            found.extend(condition.difference(&[(cel::OBJECT, value)]));
        }
        found
    }

    /// Where an answer does not look so; empty if it does.
    pub fn answer_differences(&self, status: u16, body: Option<&Value>) -> Vec<Difference> {
        let mut found = self.unlike(body);
        if let Some(condition) = &self.condition {
            let (status, body) = (Value::from(status), body.unwrap_or(&Value::Null));
            found.extend(condition.difference(&[(cel::ANSWER, body), (cel::STATUS, &status)]));
        }
        found
    }

    fn unlike(&self, value: Option<&Value>) -> Vec<Difference> {
        let mut found = Vec::new();
        if let Some(pattern) = &self.pattern {
            differ::differences(pattern, value, "", &mut found);
        }
        found
    }

    /// Why its condition could not be evaluated over some value so far: its types do not fit.
    pub fn broken(&self) -> Option<String> {
        self.condition.as_ref().and_then(|condition| condition.broken.borrow().clone())
    }

    /// Whether it speaks of more than its pattern shows.
    pub(crate) fn has_condition(&self) -> bool {
        self.condition.is_some()
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
        Operator::ByKey(key, elements) => Test::ByKey(
            key.clone(),
            elements
                .iter()
                .map(|(value, pattern)| Ok((value.clone(), ready(pattern)?)))
                .collect::<Result<_, _>>()?,
        ),
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
        Test::ByKey(key, wanted) => {
            is_list_or_absent(value)
                && wanted.iter().all(|(text, node)| keyed_matches(node, key, text, elements()))
        }
        Test::Plain(operator) => passes_plain(operator, value),
    }
}

fn is_list_or_absent(value: Option<&Value>) -> bool {
    matches!(value, None | Some(Value::Null | Value::Array(_)))
}

/// Whether an element has that text, or that number, under the key.
fn has_key(element: &Value, key: &str, text: &str) -> bool {
    match element.get(key) {
        Some(Value::String(found)) => found == text,
        Some(Value::Number(found)) => found.to_string() == text,
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => false,
    }
}

/// Whether some element of that key is so, or its absence is.
fn keyed_matches(node: &Node, key: &str, text: &str, elements: &[Value]) -> bool {
    let mut there = elements.iter().filter(|element| has_key(element, key, text)).peekable();
    match there.peek() {
        Some(_) => there.any(|element| matches(node, Some(element))),
        None => matches(node, None),
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
        | Operator::ByKey(..)
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
