//! Reading typed values out of a YAML tree, collecting every mistake on the way.
//!
//! Each method returns `None` after noting a mistake, so that the caller can go on with the rest.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use crate::expr::{self, Expr, Length};
use crate::mistake::{Mistake, nearest, suggestion};
use crate::path::Path;
use crate::shape::Shape;
use crate::yaml::{Entry, Kind, Node};

/// Reads one file's tree.
pub(crate) struct Reader<'a> {
    source: &'a str,
    /// What was found wrong so far.
    pub mistakes: Vec<Mistake>,
}

/// An opened mapping: its keys are known to be in its shape.
pub(crate) struct Fields<'a> {
    entries: &'a [Entry],
    shape: &'static Shape,
    /// Keys that are missing, each with the unknown one that was meant: told already, and read as if it were right.
    meant: Vec<(&'static str, &'a Entry)>,
}

impl<'a> Fields<'a> {
    /// The value of a key of the shape.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        debug_assert!(
            self.shape.fields.iter().any(|field| field.key == key),
            "{} has no {key}",
            self.shape.name
        );
        let entry = self.entries.iter().find(|entry| entry.key == key);
        let meant = || self.meant.iter().find(|(meant, _)| *meant == key).map(|(_, entry)| *entry);
        entry.or_else(meant).map(|entry| &entry.value)
    }
}

impl<'a> Reader<'a> {
    pub fn new(source: &'a str) -> Reader<'a> {
        Reader { source, mistakes: Vec::new() }
    }

    /// The text that is read.
    pub fn source(&self) -> &'a str {
        self.source
    }

    /// Notes a mistake with its remedy.
    pub fn wrong(&mut self, span: &Range<usize>, message: impl Into<String>, remedy: impl Into<String>) {
        self.mistakes.push(Mistake::new(span.clone(), message).remedy(remedy));
    }

    /// Opens a mapping: notes unknown keys, missing keys and broken groups. What is there can be read even so.
    pub fn open<'n>(&mut self, node: &'n Node, shape: &'static Shape) -> Option<Fields<'n>> {
        let Kind::Map(entries) = &node.kind else {
            let keys = shape.keys().join(", ");
            self.wrong(
                &node.span,
                format!("{} must be a mapping, not {}", shape.name, node.describe()),
                format!("write it with its keys: {keys}"),
            );
            return None;
        };
        let mut meant: Vec<(&'static str, &'n Entry)> = Vec::new();
        for entry in entries {
            if !shape.fields.iter().any(|field| field.key == entry.key) {
                let keys = shape.keys();
                let missing = keys.iter().copied().filter(|key| {
                    !entries.iter().any(|entry| entry.key == *key)
                        && !meant.iter().any(|(meant, _)| meant == key)
                });
                if let Some(key) = nearest(&entry.key, missing) {
                    meant.push((key, entry));
                }
                self.wrong(
                    &entry.key_span,
                    format!("{} has no key `{}`", shape.name, entry.key),
                    suggestion(&entry.key, &keys),
                );
            }
        }
        let has = |key: &str| {
            entries.iter().any(|entry| entry.key == key) || meant.iter().any(|(meant, _)| *meant == key)
        };
        for field in shape.fields {
            if field.required && !has(field.key) {
                self.wrong(
                    &self.head_of(node),
                    format!("{} needs the key `{}`", shape.name, field.key),
                    format!("add `{}`: {}", field.key, lower_first(field.about)),
                );
            }
        }
        for group in shape.exactly_one {
            let present: Vec<&str> = group.iter().copied().filter(|key| has(key)).collect();
            if present.len() != 1 {
                let found = if present.is_empty() {
                    "has none".to_owned()
                } else {
                    format!("has {}", present.join(" and "))
                };
                self.wrong(
                    &self.head_of(node),
                    format!("{} {found} of {}", shape.name, group.join(", ")),
                    "write exactly one of them",
                );
            }
        }
        for group in shape.at_most_one {
            let present: Vec<&str> = group.iter().copied().filter(|key| has(key)).collect();
            if present.len() > 1 {
                self.wrong(
                    &self.head_of(node),
                    format!("{} has {}", shape.name, present.join(" and ")),
                    "write at most one of them",
                );
            }
        }
        Some(Fields { entries, shape, meant })
    }

    /// The first line of a node, to point at without marking a page.
    fn head_of(&self, node: &Node) -> Range<usize> {
        let text = self.source.get(node.span.clone()).unwrap_or_default();
        let length = text.find('\n').unwrap_or(text.len());
        node.span.start..node.span.start + length
    }

    /// The items of a list; not a list is a mistake.
    pub fn list<'n>(&mut self, node: &'n Node) -> &'n [Node] {
        match &node.kind {
            Kind::List(items) => items,
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Map(_) => {
                self.wrong(
                    &node.span,
                    format!("a list belongs here, not {}", node.describe()),
                    "write [ … ] or lines that begin with `-`",
                );
                &[]
            }
        }
    }

    /// The entries of a mapping of free keys.
    pub fn map<'n>(&mut self, node: &'n Node) -> &'n [Entry] {
        match &node.kind {
            Kind::Map(entries) => entries,
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => {
                self.wrong(
                    &node.span,
                    format!("a mapping belongs here, not {}", node.describe()),
                    "write { key: value }",
                );
                &[]
            }
        }
    }

    /// A text.
    pub fn text(&mut self, node: &Node) -> Option<String> {
        match &node.kind {
            Kind::Text(text) if !text.is_empty() => Some(text.clone()),
            Kind::Text(_) => {
                self.wrong(&node.span, "an empty text", "write something between the quotes");
                None
            }
            Kind::Bool(_) | Kind::Number(_) => {
                let written = self.source.get(node.span.clone()).unwrap_or_default().to_owned();
                self.wrong(
                    &node.span,
                    format!("a text belongs here, not {}", node.describe()),
                    format!("write \"{written}\""),
                );
                None
            }
            Kind::Null | Kind::List(_) | Kind::Map(_) => {
                self.wrong(
                    &node.span,
                    format!("a text belongs here, not {}", node.describe()),
                    "write a text",
                );
                None
            }
        }
    }

    /// `true` or `false`.
    pub fn flag(&mut self, node: &Node) -> Option<bool> {
        if let Kind::Bool(value) = node.kind {
            return Some(value);
        }
        self.wrong(
            &node.span,
            format!("true or false belongs here, not {}", node.describe()),
            "write true or false without quotes",
        );
        None
    }

    /// A whole number in `range`.
    pub fn whole(&mut self, node: &Node, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let number = match &node.kind {
            Kind::Number(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
            Kind::Null | Kind::Bool(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => None,
        };
        match number {
            Some(number) if range.contains(&number) => Some(number),
            Some(_) | None => {
                self.wrong(
                    &node.span,
                    format!("a whole number belongs here, not {}", node.describe()),
                    format!("write a number from {} to {}", range.start(), range.end()),
                );
                None
            }
        }
    }

    /// A regular expression, as text; names in it are filled in later, so only whole ones are checked.
    pub fn regex(&mut self, node: &Node) -> Option<String> {
        let text = self.text(node)?;
        if crate::template::names(&text).is_empty()
            && let Err(error) = regex::Regex::new(&text)
        {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            self.wrong(
                &node.span,
                format!("no regular expression: {why}"),
                "escape special characters with a backslash, in single quotes",
            );
            return None;
        }
        Some(text)
    }

    /// A path into an object.
    pub fn path(&mut self, node: &Node) -> Option<Path> {
        let text = self.text(node)?;
        Path::parse(&text)
            .map_err(|error| {
                self.wrong(
                    &node.span,
                    error.to_string(),
                    "write for example status.conditions[type=Ready].status",
                )
            })
            .ok()
    }

    /// An expression of either type. `names` are the names of steps; `None` accepts any.
    pub fn expr(&mut self, node: &Node, names: Option<&[&str]>) -> Option<Expr> {
        let text = match &node.kind {
            Kind::Text(text) => text,
            Kind::Number(number) => {
                self.wrong(
                    &node.span,
                    format!("a duration needs a unit; {number} is a bare number"),
                    format!("write {number}s or {number}ms"),
                );
                return None;
            }
            Kind::Null | Kind::Bool(_) | Kind::List(_) | Kind::Map(_) => {
                self.wrong(
                    &node.span,
                    format!("an instant or a duration belongs here, not {}", node.describe()),
                    "write for example 5s, slack, outage + 5s",
                );
                return None;
            }
        };
        match expr::parse(text, names) {
            Ok(expr) => Some(expr),
            Err(error) => {
                let span = self.inside(node, text, &error.span);
                self.wrong(&span, error.message, error.remedy);
                None
            }
        }
    }

    /// A duration expression.
    pub fn length(&mut self, node: &Node, names: Option<&[&str]>) -> Option<Length> {
        match self.expr(node, names)? {
            Expr::Length(length) => Some(length),
            Expr::Instant(instant) => {
                self.wrong(
                    &node.span,
                    format!("a duration belongs here; `{instant}` is an instant"),
                    "write a duration such as 5s or checkPeriod + slack",
                );
                None
            }
        }
    }

    /// A written-out duration (no constants).
    pub fn duration(&mut self, node: &Node) -> Option<Duration> {
        let length = self.length(node, Some(&[]))?;
        if let Length::Fixed(length) = length {
            return Some(length);
        }
        self.wrong(
            &node.span,
            format!("`{length}` is not a plain duration"),
            "write for example 15s or 500ms",
        );
        None
    }

    /// A written-out duration of whole seconds.
    pub fn whole_seconds(&mut self, node: &Node) -> Option<Duration> {
        let length = self.duration(node)?;
        if length.subsec_nanos() != 0 {
            self.wrong(&node.span, "the API counts this in whole seconds", "write for example 4s");
            return None;
        }
        Some(length)
    }

    /// The place of a part of a text, if the text stands in the source as it is.
    pub fn inside(&self, node: &Node, text: &str, part: &Range<usize>) -> Range<usize> {
        let written = self.source.get(node.span.clone()).unwrap_or_default();
        match written.find(text) {
            Some(at) if !text.is_empty() => {
                let start = node.span.start + at + part.start;
                start..node.span.start + at + part.end
            }
            Some(_) | None => node.span.clone(),
        }
    }

    /// Notes names in `${…}` that nothing will ever fill in.
    pub fn check_names(&mut self, span: &Range<usize>, used: &[&str], known: &BTreeSet<String>) {
        for name in used {
            if !known.contains(*name) {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                self.wrong(span, format!("nothing is called `{name}`"), suggestion(name, &known));
            }
        }
    }
}

/// One of an enum's words.
pub(crate) fn word<T: Copy>(
    reader: &mut Reader<'_>,
    node: &Node,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Option<T> {
    let found = node.as_text().and_then(|text| all.iter().copied().find(|value| name(*value) == text));
    if found.is_none() {
        let words: Vec<&str> = all.iter().map(|value| name(*value)).collect();
        let remedy = match node.as_text() {
            Some(text) => suggestion(text, &words),
            None => format!("write one of {}", words.join(", ")),
        };
        reader.wrong(&node.span, format!("{} is not possible here", node.describe()), remedy);
    }
    found
}

/// A sentence's first letter made small, to go on after a colon.
fn lower_first(text: &str) -> String {
    let mut chars = text.trim_end_matches('.').chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
