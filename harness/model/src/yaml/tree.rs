//! Nodes of the tree: a value, its place in the source, and nothing about its meaning.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Number, Value};

/// A value with its place, in bytes of the source.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it stands.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `null`, `~`, or nothing at all.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A plain decimal number.
    Number(Number),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file, without duplicate keys.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Range<usize>,
    /// The value.
    pub value: Node,
}

impl Node {
    /// What kind of value it is, for messages.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Null => "nothing".to_owned(),
            Kind::Bool(value) => format!("the boolean {value}"),
            Kind::Number(value) => format!("the number {value}"),
            Kind::Text(text) => format!("the text `{}`", abridged(text)),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a mapping".to_owned(),
        }
    }

    /// The entry of that key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => None,
        }
    }

    /// The text, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// The same value without places.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(value) => Value::Number(value.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Kind::Map(entries) => {
                let pairs = entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value()));
                Value::Object(pairs.collect::<Map<String, Value>>())
            }
        }
    }

    /// A copy in which each `${NAME}` of `values` is replaced, in texts and in keys; other names stay.
    /// A text that is nothing but `${NAME}` becomes the value itself, at the place of the text.
    pub fn with_values(&self, values: &BTreeMap<String, Value>) -> Node {
        let kind = match &self.kind {
            Kind::Text(text) => match crate::template::whole(text).and_then(|name| values.get(name)) {
                Some(value) => return Node::from_value(value, &self.span),
                None => Kind::Text(crate::template::fill_known(text, values)),
            },
            Kind::List(items) => Kind::List(items.iter().map(|item| item.with_values(values)).collect()),
            Kind::Map(entries) => Kind::Map(
                entries
                    .iter()
                    .map(|entry| Entry {
                        key: crate::template::fill_known(&entry.key, values),
                        key_span: entry.key_span.clone(),
                        value: entry.value.with_values(values),
                    })
                    .collect(),
            ),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => self.kind.clone(),
        };
        Node { span: self.span.clone(), kind }
    }

    /// A tree of `value`, all of it at `span`.
    fn from_value(value: &Value, span: &Range<usize>) -> Node {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(value) => Kind::Bool(*value),
            Value::Number(value) => Kind::Number(value.clone()),
            Value::String(text) => Kind::Text(text.clone()),
            Value::Array(items) => {
                Kind::List(items.iter().map(|item| Node::from_value(item, span)).collect())
            }
            Value::Object(pairs) => Kind::Map(
                pairs
                    .iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        key_span: span.clone(),
                        value: Node::from_value(value, span),
                    })
                    .collect(),
            ),
        };
        Node { span: span.clone(), kind }
    }
}

/// The begin of a text, on one line.
fn abridged(text: &str) -> String {
    const LONGEST: usize = 60;
    let line = text.trim_end().lines().next().unwrap_or_default();
    if line.chars().count() <= LONGEST && line.len() == text.trim_end().len() {
        return line.to_owned();
    }
    line.chars().take(LONGEST).chain(['…']).collect()
}
