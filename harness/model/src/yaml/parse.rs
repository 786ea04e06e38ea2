//! From the parser's events to trees. Recursion is bounded by the parser's own limit on nesting.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::scalar;
use super::tree::{Entry, Kind, Node};
use crate::mistake::Mistake;

/// Sources longer than this are refused unread.
const MAX_BYTES: usize = 4 << 20;
/// Deeper nesting than this is refused.
const MAX_DEPTH: usize = 100;

/// Reads a source that holds one document. Returns as much of the tree as could be read.
pub fn parse_one(source: &str, mistakes: &mut Vec<Mistake>) -> Option<Node> {
    let mut documents = parse_documents(source, mistakes).into_iter();
    let first = documents.next();
    if first.is_none() && mistakes.is_empty() {
        mistakes.push(Mistake::new(0..0, "the file is empty").remedy("write a document"));
    }
    if let Some(second) = documents.next() {
        mistakes.push(
            Mistake::new(second.span.start..second.span.start, "a second document in one file")
                .remedy("one file, one document; put the second into a file of its own"),
        );
    }
    first
}

/// Reads all documents of a source. Empty documents are left out.
pub fn parse_documents(source: &str, mistakes: &mut Vec<Mistake>) -> Vec<Node> {
    if source.len() > MAX_BYTES {
        mistakes.push(Mistake::new(0..0, format!("the file is longer than {} MiB", MAX_BYTES >> 20)));
        return Vec::new();
    }
    // Whether comments are events depends on what else is built with the parser, unless it is said here.
    let options = granit_parser::options! { emit_comments: false };
    let events = Parser::new_from_str_with_options(source, options);
    let mut reader = Reader { events, source, mistakes, depth: 0 };
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
    documents
}

struct Reader<'a> {
    events: Parser<'a, granit_parser::StrInput<'a>>,
    source: &'a str,
    mistakes: &'a mut Vec<Mistake>,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// The next event that is part of the data, or nothing at the end or after a mistake.
    fn next(&mut self) -> Option<(Event<'a>, Span)> {
        match self.events.next()? {
            Ok(next) => Some(next),
            Err(error) => {
                let at = self.byte(error.marker().index());
                self.mistakes.push(
                    Mistake::new(at..at, format!("this is no YAML: {}", error.info()))
                        .remedy("look at indentation, quotes and brackets on this line and the one before"),
                );
                None
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span) -> Option<Node> {
        let range = self.range(&span);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_decoration(anchor, tag.is_some(), &range);
                let kind = match style {
                    ScalarStyle::Plain => scalar::bare(&text, &range, self.mistakes),
                    ScalarStyle::SingleQuoted
                    | ScalarStyle::DoubleQuoted
                    | ScalarStyle::Literal
                    | ScalarStyle::Folded => Kind::Text(text.into_owned()),
                };
                Some(Node { span: range, kind })
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_decoration(anchor, tag.is_some(), &range);
                self.nested(|reader| reader.list(range))
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_decoration(anchor, tag.is_some(), &range);
                self.nested(|reader| reader.map(range))
            }
            Event::Alias(_) => {
                self.mistakes.push(
                    Mistake::new(range.clone(), "aliases are not used in these files")
                        .remedy("write the value out; for repeated steps use forEach or a table"),
                );
                Some(Node { span: range, kind: Kind::Null })
            }
            _ => None,
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<Node>) -> Option<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.mistakes.push(Mistake::new(0..0, format!("nested deeper than {MAX_DEPTH} levels")));
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
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                let end = self.range(&span).end;
                let last =
                    entries.last().map_or(start.end, |entry| entry.value.span.end.max(entry.key_span.end));
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
                    self.mistakes.push(
                        Mistake::new(
                            key.span.clone(),
                            format!("a key must be a text, not {}", key.describe()),
                        )
                        .remedy("a value that begins with `${`, `{` or `[` needs quotes"),
                    );
                    continue;
                }
            };
            if entries.iter().any(|entry| entry.key == name) {
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
            self.mistakes.push(
                Mistake::new(range.clone(), "anchors are not used in these files")
                    .remedy("write the value out; for repeated steps use forEach or a table"),
            );
        }
        if tagged {
            self.mistakes.push(
                Mistake::new(range.clone(), "tags are not used in these files")
                    .remedy("leave out the word with the exclamation mark; quotes make a text"),
            );
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
