//! Reading typed values out of a YAML tree, collecting every mistake on the way.
//!
//! Each method returns `None` after noting a mistake, so that the caller can go on with the rest.

mod open;
mod remedy;

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use crate::borrowed::meant_word;
use crate::expr::{self, Expr, Length};
use crate::mistake::{MAX_TOLD, Mistake, suggestion};
use crate::path::Path;
use crate::yaml::{Entry, Kind, Node};

pub(crate) use open::Fields;
use remedy::{is_range, no_whole};

/// Reads one file's tree.
pub(crate) struct Reader<'a> {
    source: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
    /// What was found wrong so far.
    pub mistakes: Vec<Mistake>,
}

/// A dash and what looks like a blank.
const NO_DASH: &str = "-\u{a0}";

impl<'a> Reader<'a> {
    pub fn new(source: &'a str) -> Reader<'a> {
        let lines = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Reader { source, lines, mistakes: Vec::new() }
    }

    /// The line of a byte, from 1.
    pub fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|begin| *begin <= at)
    }

    /// Whether so much is wrong that more would not be told.
    pub fn is_full(&self) -> bool {
        self.mistakes.len() > 2 * MAX_TOLD
    }

    /// The text that is read.
    pub fn source(&self) -> &'a str {
        self.source
    }

    /// Notes a mistake with its remedy.
    pub fn wrong(&mut self, span: &Range<usize>, message: impl Into<String>, remedy: impl Into<String>) {
        self.mistakes.push(Mistake::new(span.clone(), message).remedy(remedy));
    }

    /// The first line of a node, to point at without marking a page.
    fn head_of(&self, node: &Node) -> Range<usize> {
        let text = self.source.get(node.span.clone()).unwrap_or_default();
        let length = text.find('\n').unwrap_or(text.len());
        node.span.start..node.span.start + length
    }

    /// The items of a list; not a list is a mistake.
    pub fn list<'n>(&mut self, node: &'n Node) -> &'n [Node] {
        let written = self.source.get(node.span.clone()).unwrap_or_default();
        let remedy = match &node.kind {
            Kind::List(items) => return items,
            Kind::Bool(_) | Kind::Number(_) | Kind::Text(_)
                if written.len() < 60 && !written.contains('\n') && !is_range(written) =>
            {
                let words: Vec<&str> = written.split_whitespace().collect();
                let plain = !written.contains([',', '"', '\'']);
                format!("write [{}]", if plain { words.join(", ") } else { written.to_owned() })
            }
            Kind::Map(_) if written.starts_with(NO_DASH) => {
                "the sign after the dash looks like a blank and is none (U+00A0): write a blank".to_owned()
            }
            Kind::Map(entries) if entries.iter().any(|entry| entry.value.kind != Kind::Null) => {
                "begin each of its items with `- `".to_owned()
            }
            Kind::Map(entries) if entries.len() <= 5 => {
                let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
                format!("write [{}], or lines that begin with `-`", keys.join(", "))
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Map(_) => {
                "write [ … ] or lines that begin with `-`".to_owned()
            }
        };
        self.wrong(&node.span, format!("a list belongs here, not {}", node.describe()), remedy);
        &[]
    }

    /// The items of a list that has one at least: not a list, or an empty one, is a mistake.
    pub fn some_list<'n>(&mut self, node: &'n Node, empty: &str, remedy: &str) -> Option<&'n [Node]> {
        if matches!(&node.kind, Kind::List(items) if items.is_empty()) {
            self.wrong(&node.span, empty, remedy);
        }
        let items = self.list(node);
        (!items.is_empty()).then_some(items)
    }

    /// The entries of a mapping of free keys.
    pub fn map<'n>(&mut self, node: &'n Node) -> &'n [Entry] {
        let pair = node.as_text().and_then(|text| text.split_once(['=', ':']));
        let remedy = match (&node.kind, pair) {
            (Kind::Map(entries), _) => return entries,
            (_, Some((key, value))) if !key.trim().is_empty() && !value.contains(['=', ':', '\n', ',']) => {
                format!("write {{{}: {}}}", key.trim(), value.trim())
            }
            (Kind::List(_), _) => "write { key: value }, without brackets or dashes".to_owned(),
            (Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_), _) => {
                "write { key: value }".to_owned()
            }
        };
        self.wrong(&node.span, format!("a mapping belongs here, not {}", node.describe()), remedy);
        &[]
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
            match node.as_text().map(str::to_lowercase).as_deref() {
                Some("yes" | "y" | "on" | "true") => "write true, without quotes",
                Some("no" | "n" | "off" | "false") => "write false, without quotes",
                Some(_) | None => "write true or false without quotes",
            },
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
                let (message, remedy) = no_whole(node, &range);
                self.wrong(&node.span, message, remedy);
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
            if let regex::Error::CompiledTooBig(_) = error {
                let message = "a regular expression that is too large once its repetitions are counted out";
                self.wrong(
                    &node.span,
                    message,
                    "write smaller numbers in braces, or fewer of them in one another",
                );
                return None;
            }
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
                self.wrong(&node.span, error.to_string(), error.remedy());
            })
            .ok()
    }

    /// An expression of either type. `names` are the names of steps; `None` accepts any.
    pub fn expr(&mut self, node: &Node, names: Option<&BTreeSet<String>>) -> Option<Expr> {
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
    pub fn length(&mut self, node: &Node, names: Option<&BTreeSet<String>>) -> Option<Length> {
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

    /// Notes a duration that is nothing, whatever the constants are.
    pub fn refuse_none(&mut self, node: &Node, length: &Length, message: &str) {
        if length.is_none() {
            self.wrong(&node.span, message, "write a longer one, for example 5s");
        }
    }

    /// A written-out duration (no constants).
    pub fn duration(&mut self, node: &Node) -> Option<Duration> {
        let length = self.length(node, Some(&BTreeSet::new()))?;
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

    /// Whether a path leads from a file to another one beside it: it is relative. Notes one that is not.
    pub fn is_beside(&mut self, node: &Node, path: &str) -> bool {
        let drive = path.as_bytes().get(1) == Some(&b':');
        let absolute = path.starts_with(['/', '\\', '~']) || drive || path.contains("://");
        let folder = path.split('/').next_back().is_some_and(|last| matches!(last, "" | "." | ".."));
        if absolute {
            self.wrong(&node.span, "a file is named by a path that is relative", crate::step::RELATIVE);
        } else if folder {
            self.wrong(&node.span, format!("`{path}` is a folder, not a file"), crate::step::RELATIVE);
        }
        !absolute && !folder
    }

    /// Notes names in `${…}` that nothing will ever fill in.
    pub fn check_names(&mut self, span: &Range<usize>, used: &[&str], known: &BTreeSet<String>) {
        for name in used {
            if !known.contains(*name) {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let remedy = match *name {
                    "round" => "it is known inside of `repeat` only; a fragment gets it by `with`: {round: \"${round}\"}".to_owned(),
                    name => suggestion(name, &known),
                };
                self.wrong(span, format!("nothing is called `{name}`"), remedy);
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
            Some(text) => match meant_word(text, &words) {
                Some(ours) => format!("write {ours}; known are {}", words.join(", ")),
                None => suggestion(text, &words),
            },
            None => format!("write one of {}", words.join(", ")),
        };
        reader.wrong(&node.span, format!("{} is not possible here", node.describe()), remedy);
    }
    found
}
