//! From the parser's events to trees. Recursion is bounded: deeper nesting is a mistake, and so are anchors, but what they
//! stand for is read even so, so that one mistake is told once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::scalar;
use super::tree::{Entry, Kind, Node};
use crate::mistake::{ANCHORS, Mistake};

/// Sources longer than this are refused unread.
const MAX_BYTES: usize = 4 << 20;
/// Deeper nesting than this is refused.
const MAX_DEPTH: usize = 100;
/// How many nodes aliases may stand for, all together.
const MAX_COPIED: usize = 100_000;

/// Signs that look like a blank and are none to YAML.
const NO_BLANKS: [char; 4] = ['\u{a0}', '\u{2007}', '\u{202f}', '\u{3000}'];
const NO_BLANK: &str = "a sign on this line looks like a blank and is none (U+00A0 or its like, as web pages have it): write a blank";
const WRITTEN_OUT: &str = "write each value out; for repeated steps use forEach, a table or a fragment";
const TOO_DEEP: &str =
    "write it flatter: nothing in these files needs that much; look for brackets that are not closed";

/// Reads a source that holds one document. Returns as much of the tree as could be read.
pub fn parse_one(source: &str, mistakes: &mut Vec<Mistake>) -> Option<Node> {
    let mut documents = parse_documents(source, mistakes).into_iter();
    let first = documents.next();
    if first.is_none() && mistakes.is_empty() {
        mistakes.push(Mistake::new(0..0, "the file is empty").remedy(
            "begin with apiVersion: rigor.dev/v1alpha1, kind, metadata and spec; for a scenario `rigor new` writes them",
        ));
    }
    if let Some(second) = documents.next() {
        mistakes.push(
            Mistake::new(second.span.start..second.span.start, "a second document in one file")
                .remedy("one file, one document; put the second into a file of its own"),
        );
    }
    first
}

/// Reads all documents of a source. Empty documents are left out. A source that is no YAML yields none, and this one mistake.
pub fn parse_documents(source: &str, mistakes: &mut Vec<Mistake>) -> Vec<Node> {
    if source.len() > MAX_BYTES {
        let message = format!("the file is longer than {} MiB", MAX_BYTES >> 20);
        mistakes.push(Mistake::new(0..0, message).remedy("make several files of it"));
        return Vec::new();
    }
    // Whether comments are events depends on what else is built with the parser, unless it is said here.
    let options = granit_parser::options! { emit_comments: false };
    let events = Parser::new_from_str_with_options(source, options);
    let before = mistakes.len();
    let mut reader = Reader {
        events,
        source,
        mistakes,
        depth: 0,
        broken: false,
        decorated: false,
        anchors: BTreeMap::new(),
        copied: 0,
    };
    let mut documents = Vec::new();
    while let Some((event, span)) = reader.next() {
        match event {
            Event::DocumentStart(..) | Event::DocumentEnd | Event::StreamStart | Event::StreamEnd => {}
            other => match reader.node(other, span) {
                Some(node) if node.kind == Kind::Null && node.span.is_empty() => {}
                Some(node) => documents.push(node),
                None => break,
            },
        }
    }
    if reader.broken {
        // What stands in front of it may mean something else once it is mended.
        let told = mistakes.pop();
        mistakes.truncate(before);
        mistakes.extend(told);
        return Vec::new();
    }
    documents
}

struct Reader<'a> {
    events: Parser<'a, granit_parser::StrInput<'a>>,
    source: &'a str,
    mistakes: &'a mut Vec<Mistake>,
    depth: usize,
    /// Whether the source is no YAML.
    broken: bool,
    /// Whether an anchor or alias was told.
    decorated: bool,
    anchors: BTreeMap<usize, Node>,
    /// How many nodes aliases stood for so far.
    copied: usize,
}

impl<'a> Reader<'a> {
    /// The next event that is part of the data, or nothing at the end or after a mistake.
    fn next(&mut self) -> Option<(Event<'a>, Span)> {
        match self.events.next()? {
            Ok(next) => Some(next),
            Err(error) => {
                let at = self.byte(error.marker().index());
                let told = error.info();
                if told.contains("recursion limit") {
                    self.broke(at..at, format!("nested deeper than {MAX_DEPTH} levels"), TOO_DEEP);
                } else if told.contains("unknown anchor") {
                    self.broke(at..at, ANCHORS.to_owned(), WRITTEN_OUT);
                } else {
                    // A text that goes on in the next line is told where it begins, not where the tab stands.
                    let tab = self.source[at..].find('\t').filter(|_| told.contains("found a tab"));
                    let at = tab.map_or(at, |tab| at + tab);
                    let begin = self.source[..at].rfind('\n').map_or(0, |newline| newline + 1);
                    let line = self.source[begin..].lines().next().unwrap_or_default();
                    let remedy = if told.contains("tab") && line.contains('\t') {
                        "write blanks in place of the tab"
                    } else if line.contains(NO_BLANKS) {
                        NO_BLANK
                    } else if told.contains("mapping values are not allowed") {
                        "a text with a colon and a blank in it needs quotes; else look at indentation on this line and the one before"
                    } else if line.contains("${") && !line.contains("\"${") && !line.contains("'${") {
                        "inside {…} and […] a value with `${…}` needs quotes: \"${name}\""
                    } else {
                        "look at indentation, quotes and brackets on this line and the one before"
                    };
                    self.broke(at..at, format!("this is no YAML: {told}"), remedy);
                }
                None
            }
        }
    }

    /// Notes why the source cannot be read any further.
    fn broke(&mut self, span: Range<usize>, message: String, remedy: &str) {
        self.broken = true;
        self.mistakes.push(Mistake::new(span, message).remedy(remedy));
    }

    fn node(&mut self, event: Event<'a>, span: Span) -> Option<Node> {
        let range = self.range(&span);
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_decoration(anchor, tag.is_some(), &range);
                let kind = match style {
                    ScalarStyle::Plain if tag.is_some() => Kind::Text(text.into_owned()),
                    ScalarStyle::Plain => scalar::bare(&text, &range, self.mistakes),
                    ScalarStyle::SingleQuoted
                    | ScalarStyle::DoubleQuoted
                    | ScalarStyle::Literal
                    | ScalarStyle::Folded => Kind::Text(text.into_owned()),
                };
                (Node { span: range, kind }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_decoration(anchor, tag.is_some(), &range);
                (self.nested(range.clone(), |reader| reader.list(range))?, anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_decoration(anchor, tag.is_some(), &range);
                (self.nested(range.clone(), |reader| reader.map(range))?, anchor)
            }
            Event::Alias(anchor) => {
                self.refuse_anchors(&range);
                return self.copy(anchor);
            }
            _ => return None,
        };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Some(node)
    }

    /// What an alias stands for; nothing where that would be too much, or stands inside of itself.
    fn copy(&mut self, anchor: usize) -> Option<Node> {
        let node = self.anchors.get(&anchor)?;
        let (nodes, depth) = extent(node);
        self.copied += nodes;
        (self.copied <= MAX_COPIED && self.depth + depth <= MAX_DEPTH).then(|| node.clone())
    }

    fn nested(&mut self, begin: Range<usize>, read: impl FnOnce(&mut Self) -> Option<Node>) -> Option<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.broke(begin, format!("nested deeper than {MAX_DEPTH} levels"), TOO_DEEP);
            return None;
        }
        let node = read(self);
        self.depth -= 1;
        node
    }

    fn list(&mut self, start: Range<usize>) -> Option<Node> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                let end = self.range(&span).end;
                let last = items.last().map_or(start.end, |item: &Node| item.span.end);
                return Some(Node { span: start.start..self.closing(last, end), kind: Kind::List(items) });
            }
            items.push(self.node(event, span)?);
        }
    }

    fn map(&mut self, start: Range<usize>) -> Option<Node> {
        let mut entries: Vec<Entry> = Vec::new();
        let (mut names, mut merged) = (BTreeSet::new(), Vec::new());
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                let end = self.range(&span).end;
                let last =
                    entries.last().map_or(start.end, |entry| entry.value.span.end.max(entry.key_span.end));
                entries.extend(merged.into_iter().filter(|entry: &Entry| names.insert(entry.key.clone())));
                return Some(Node { span: start.start..self.closing(last, end), kind: Kind::Map(entries) });
            }
            let key = self.node(event, span)?;
            let (event, span) = self.next()?;
            let mut value = self.node(event, span)?;
            if value.kind == Kind::Null && value.span.is_empty() {
                value.span = key.span.clone();
            }
            let name = match &key.kind {
                Kind::Text(text) => text.clone(),
                Kind::Null | Kind::Bool(_) | Kind::Number(_) => {
                    let text = self.source.get(key.span.clone()).unwrap_or_default().to_owned();
                    self.mistakes.push(
                        Mistake::new(
                            key.span.clone(),
                            format!("a key must be a text, not {}", key.describe()),
                        )
                        .remedy(format!("write \"{text}\"")),
                    );
                    text
                }
                Kind::List(_) | Kind::Map(_) => {
                    let told = format!("a key must be a text, not {}", key.describe());
                    let written = self.source.get(key.span.clone()).unwrap_or_default();
                    let name = written.trim_matches(['{', '}', ' ', '.', '$']);
                    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
                    let remedy = if self.source[..key.span.start].ends_with('{') && is_name {
                        format!("a value that is put in stands in quotes: \"${{{name}}}\"")
                    } else {
                        "a value that begins with `${`, `{` or `[` needs quotes".to_owned()
                    };
                    self.broke(key.span, told, &remedy);
                    return None;
                }
            };
            if name == "<<" {
                self.refuse_anchors(&key.span);
                merged.extend(entries_of(value));
            } else if !names.insert(name.clone()) {
                self.mistakes.push(
                    Mistake::new(key.span, format!("the key `{name}` stands here twice"))
                        .remedy("keep one of the two"),
                );
            } else {
                entries.push(Entry { key: name, key_span: key.span, value });
            }
        }
    }

    fn refuse_decoration(&mut self, anchor: usize, tagged: bool, range: &Range<usize>) {
        if anchor != 0 {
            self.refuse_anchors(range);
        }
        if tagged {
            self.mistakes.push(
                Mistake::new(range.clone(), "tags are not used in these files")
                    .remedy("leave out the word with the exclamation mark; quotes make a text"),
            );
        }
    }

    /// Tells of the first anchor, alias or merge of a file.
    fn refuse_anchors(&mut self, range: &Range<usize>) {
        if !std::mem::replace(&mut self.decorated, true) {
            self.mistakes.push(Mistake::new(range.clone(), ANCHORS).remedy(WRITTEN_OUT));
        }
    }

    /// Where a collection ends: at its bracket, or, in block style, with its last value.
    fn closing(&self, last: usize, end: usize) -> usize {
        let closed = end > last
            && self.source.get(last..end).is_some_and(|rest| rest.trim_end().ends_with(['}', ']']));
        if closed { end } else { last }
    }

    fn range(&self, span: &Span) -> Range<usize> {
        match span.byte_range() {
            Some(range) => range,
            None => self.byte(span.start.index())..self.byte(span.end.index()),
        }
    }

    /// The byte offset of a character offset.
    fn byte(&self, character: usize) -> usize {
        self.source.char_indices().nth(character).map_or(self.source.len(), |(at, _)| at)
    }
}

/// How many nodes there are in a tree, and how deep it is.
fn extent(node: &Node) -> (usize, usize) {
    let inner: Vec<(usize, usize)> = match &node.kind {
        Kind::List(items) => items.iter().map(extent).collect(),
        Kind::Map(entries) => entries.iter().map(|entry| extent(&entry.value)).collect(),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => return (1, 0),
    };
    let deepest = inner.iter().map(|(_, depth)| *depth).max().unwrap_or(0);
    (1 + inner.iter().map(|(nodes, _)| nodes).sum::<usize>(), 1 + deepest)
}

/// The entries that a merge brings: those of a mapping, or of each mapping in a list.
fn entries_of(node: Node) -> Vec<Entry> {
    match node.kind {
        Kind::Map(entries) => entries,
        Kind::List(items) => items.into_iter().flat_map(entries_of).collect(),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => Vec::new(),
    }
}
