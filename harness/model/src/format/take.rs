//! Taking a file apart: entries in the order of their shape, each with the comments and the empty line in front of it.

use std::ops::Range;

use super::comments::{Comment, blank_before, comments, whole};
use crate::mistake::Mistake;
use crate::shape::{FieldType, Shape};
use crate::verbs::{Class, Verb};
use crate::yaml::{Entry, Kind, Node};

/// A comment on a line of its own.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub text: String,
    pub after_blank: bool,
}

/// A comment behind something, with the blanks between them.
#[derive(Debug, Clone)]
pub(super) struct Trail {
    pub text: String,
    pub gap: usize,
}

/// An entry of a block: `key: value`, or `- value`.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub lead: Vec<Line>,
    pub after_blank: bool,
    /// As it is written, with its quotes; nothing for an element of a list.
    pub key: Option<String>,
    /// Behind the key, where the value stands on lines of its own.
    pub key_trail: Option<Trail>,
    pub value: Piece,
    pub trail: Option<Trail>,
}

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    /// Nothing is written.
    Nothing,
    /// On one line.
    Inline(String),
    /// Several lines that stay as they are; the first stands behind the key, the others so much further to the right
    /// than the entry (or to the left).
    Raw { first: String, rest: Vec<(isize, String)> },
    /// A mapping in block style, and comments behind its last entry.
    Map(Vec<Item>, Vec<Line>),
    /// A list in block style, and comments behind its last element.
    List(Vec<Item>, Vec<Line>),
}

/// A whole file.
#[derive(Debug)]
pub(super) struct Document {
    /// Comments in front of the first entry.
    pub head: Vec<Line>,
    pub body: Piece,
    pub tail: Vec<Line>,
}

/// What is known about the keys of a mapping.
#[derive(Debug, Clone, Copy)]
enum Kin {
    Free,
    Shape(&'static Shape),
    Step,
    Type(FieldType),
}

pub(super) fn document(
    source: &str,
    root: &Node,
    shape: Option<&'static Shape>,
) -> Result<Document, Mistake> {
    let mut taker = Taker { source, comments: comments(source, root), next: 0 };
    let kin = shape.map_or(Kin::Free, Kin::Shape);
    taker.plain(0..root.span.start)?;
    let first = match &root.kind {
        Kind::Map(entries) => entries.first().map_or(root.span.start, |entry| entry.key_span.start),
        Kind::List(items) => items.first().map_or(root.span.start, |item| item.span.start),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => root.span.start,
    };
    let head = taker.lines_before(first);
    let body = taker.piece(root, kin, 0, source.len())?;
    let tail = taker.lines_before(source.len());
    Ok(Document { head, body, tail })
}

struct Taker<'s> {
    source: &'s str,
    comments: Vec<Comment>,
    next: usize,
}

impl Taker<'_> {
    /// Refuses directives in front of a document.
    fn plain(&self, range: Range<usize>) -> Result<(), Mistake> {
        match self.source[range.clone()].lines().find(|line| line.starts_with('%')) {
            Some(_) => Err(Mistake::new(range.start..range.start, "a directive of YAML")
                .remedy("leave the line that begins with % out")),
            None => Ok(()),
        }
    }

    /// Takes the comments on lines of their own in front of a place.
    fn lines_before(&mut self, place: usize) -> Vec<Line> {
        self.take_lines(place, 0)
    }

    /// Those that stand at least `column` from the left.
    fn take_lines(&mut self, place: usize, column: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(comment) = self.comments.get(self.next)
            && comment.span.start < place
            && comment.column >= column
        {
            lines.push(Line { text: comment.text.clone(), after_blank: comment.after_blank });
            self.next += 1;
        }
        lines
    }

    /// Takes the comment behind `end` on the same line.
    fn trail(&mut self, end: usize) -> Option<Trail> {
        let comment = self.comments.get(self.next).filter(|comment| !comment.alone)?;
        let between = self.source.get(end..comment.span.start)?;
        if between.contains('\n') {
            return None;
        }
        let trail = Trail { text: comment.text.clone(), gap: comment.gap.max(1) };
        self.next += 1;
        Some(trail)
    }

    /// Passes over comments inside of what stays as it is.
    fn pass(&mut self, end: usize) {
        while self.comments.get(self.next).is_some_and(|comment| comment.span.start < end) {
            self.next += 1;
        }
    }

    fn column(&self, at: usize) -> usize {
        let begin = self.source[..at].rfind('\n').map_or(0, |at| at + 1);
        self.source[begin..at].chars().count()
    }

    /// A value; `column` is that of the entry it belongs to, `limit` where something else begins.
    fn piece(&mut self, node: &Node, kin: Kin, column: usize, limit: usize) -> Result<Piece, Mistake> {
        let span = whole(self.source, &node.span);
        let text = self.source.get(span.clone()).unwrap_or_default();
        if let Some(header) = block_header(self.source, node) {
            return Ok(self.raw(header.start..span.end, column));
        }
        match &node.kind {
            Kind::Map(entries) if !text.starts_with('{') => self.map(entries, kin, limit),
            Kind::List(items) if !text.starts_with('[') => self.list(items, kin, limit),
            Kind::Map(_) | Kind::List(_) if !text.contains('\n') => {
                Ok(Piece::Inline(flow(self.source, node, kin).unwrap_or_else(|| text.to_owned())))
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) if !text.contains('\n') => {
                Ok(Piece::Inline(scalar(text)))
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Map(_) | Kind::List(_) => {
                Ok(self.raw(span, column))
            }
        }
    }

    /// Several lines that stay as they are.
    fn raw(&mut self, span: Range<usize>, column: usize) -> Piece {
        self.pass(span.end);
        let mut lines = self.source[span].split('\n');
        let first = lines.next().unwrap_or_default().trim_end().to_owned();
        let column = isize::try_from(column).unwrap_or(0);
        let rest = lines
            .map(|line| {
                let text = line.trim_start_matches(' ');
                (isize::try_from(line.len() - text.len()).unwrap_or(0) - column, text.to_owned())
            })
            .collect();
        Piece::Raw { first, rest }
    }

    fn map(&mut self, entries: &[Entry], kin: Kin, limit: usize) -> Result<Piece, Mistake> {
        let mut items = Vec::new();
        let column = entries.first().map_or(0, |entry| self.column(entry.key_span.start));
        for (index, entry) in entries.iter().enumerate() {
            let lead = self.lines_before(entry.key_span.start);
            let limit = entries.get(index + 1).map_or(limit, |next| next.key_span.start);
            let after_blank = blank_before(self.source, entry.key_span.start);
            let nothing = entry.value.kind == Kind::Null && entry.value.span == entry.key_span;
            let begin = entry.value.span.start;
            let below = nothing || self.source[entry.key_span.end..begin].contains('\n');
            let key_trail = if below { self.trail(entry.key_span.end) } else { None };
            let value = if nothing {
                Piece::Nothing
            } else {
                self.piece(&entry.value, inner(kin, &entry.key), column, limit)?
            };
            let end = whole(self.source, &entry.value.span).end;
            let trail = if nothing { None } else { self.trail_of(&value, end) };
            // A short value comes up to its key, and brings the key's comment behind itself.
            let (key_trail, trail) = match &value {
                Piece::Inline(_) => (None, key_trail.or(trail)),
                Piece::Nothing | Piece::Raw { .. } | Piece::Map(..) | Piece::List(..) => (key_trail, trail),
            };
            let key = Some(scalar(&self.source[entry.key_span.clone()]));
            items.push((rank(kin, &entry.key), Item { lead, after_blank, key, key_trail, value, trail }));
        }
        let tail = self.take_lines(limit, column.max(1));
        // The empty line in front of the first entry stays where it is, whichever comes first.
        let first_blank = items.first_mut().is_some_and(|(_, item)| std::mem::take(&mut item.after_blank));
        items.sort_by_key(|(rank, _)| *rank);
        let mut items: Vec<Item> = items.into_iter().map(|(_, item)| item).collect();
        if let Some(first) = items.first_mut() {
            first.after_blank = first_blank;
        }
        Ok(Piece::Map(items, tail))
    }

    fn list(&mut self, elements: &[Node], kin: Kin, limit: usize) -> Result<Piece, Mistake> {
        let mut items = Vec::new();
        let dash = elements.first().map_or(0, |element| self.column(element.span.start).saturating_sub(1));
        for (index, element) in elements.iter().enumerate() {
            let mut lead = self.lines_before(element.span.start);
            let limit = elements.get(index + 1).map_or(limit, |next| next.span.start);
            let after_blank = blank_before(self.source, element.span.start);
            let nothing = element.kind == Kind::Null && element.span.is_empty();
            let column = self.column(element.span.start).saturating_sub(2);
            let mut value =
                if nothing { Piece::Nothing } else { self.piece(element, element_kin(kin), column, limit)? };
            // Beside the dash there is no room for comments of what comes first.
            if let Piece::Map(items, _) | Piece::List(items, _) = &mut value
                && let Some(first) = items.first_mut()
            {
                lead.append(&mut first.lead);
            }
            let end = whole(self.source, &element.span).end;
            let trail = self.trail_of(&value, end);
            items.push(Item { lead, after_blank, key: None, key_trail: None, value, trail });
        }
        Ok(Piece::List(items, self.take_lines(limit, dash.max(1))))
    }

    /// The comment behind a value that ends where it says; a block's belongs to its last entry.
    fn trail_of(&mut self, value: &Piece, end: usize) -> Option<Trail> {
        match value {
            Piece::Map(..) | Piece::List(..) => None,
            Piece::Nothing | Piece::Inline(_) | Piece::Raw { .. } => self.trail(end),
        }
    }
}

/// Where the `|` or `>` of a block scalar stands, whose span is only its content.
fn block_header(source: &str, node: &Node) -> Option<Range<usize>> {
    let (Kind::Text(_), before) = (&node.kind, source[..node.span.start].trim_end()) else { return None };
    let begin = before.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '+' || sign == '-');
    let mark = begin.strip_suffix(['|', '>'])?;
    mark.ends_with([' ', '\n']).then_some(mark.len()..before.len())
}

/// What is known about the value under a key.
fn inner(kin: Kin, key: &str) -> Kin {
    match kin {
        Kin::Shape(shape) => {
            let field = shape.fields.iter().find(|field| field.key == key);
            field.map_or(Kin::Free, |field| Kin::Type(field.value))
        }
        Kin::Step => Verb::named(key).map_or(Kin::Free, |verb| match verb.value() {
            // Inside a verb the order is the writer's: who does it may well stand in front of what is done.
            FieldType::Shape(shape) if verb.class() == Class::Structure => Kin::Shape(shape),
            value @ FieldType::Steps => Kin::Type(value),
            _ => Kin::Free,
        }),
        Kin::Type(FieldType::Shape(shape)) => inner(Kin::Shape(shape), key),
        Kin::Type(FieldType::Mapping(value)) => Kin::Type(*value),
        Kin::Type(_) | Kin::Free => Kin::Free,
    }
}

/// What is known about the elements of a list.
fn element_kin(kin: Kin) -> Kin {
    match kin {
        Kin::Type(FieldType::Steps) => Kin::Step,
        Kin::Type(FieldType::List(item) | FieldType::OneOrList(item)) => Kin::Type(*item),
        Kin::Type(_) | Kin::Free | Kin::Shape(_) | Kin::Step => Kin::Free,
    }
}

/// Where a key belongs among the others: in the order of its shape; the verb of a step before its `as`. Keys that
/// nothing is known about keep their order, behind the others.
fn rank(kin: Kin, key: &str) -> usize {
    match kin {
        Kin::Step => match key {
            "as" => 2,
            key if Verb::named(key).is_some() => 0,
            _ => 1,
        },
        Kin::Shape(shape) | Kin::Type(FieldType::Shape(shape)) => {
            shape.fields.iter().position(|field| field.key == key).unwrap_or(usize::MAX)
        }
        Kin::Type(_) | Kin::Free => 0,
    }
}

/// A value in flow style on one line; nothing where it has to stay as it is.
fn flow(source: &str, node: &Node, kin: Kin) -> Option<String> {
    let text = source.get(node.span.clone())?;
    match &node.kind {
        Kind::Map(entries) => {
            let braces = text.starts_with('{');
            let mut pairs = Vec::new();
            for entry in entries {
                let nothing = entry.value.kind == Kind::Null && entry.value.span == entry.key_span;
                if nothing {
                    return None;
                }
                let key = scalar(source.get(entry.key_span.clone())?);
                let value = flow(source, &entry.value, inner(kin, &entry.key))?;
                pairs.push((rank(kin, &entry.key), format!("{key}: {value}")));
            }
            pairs.sort_by_key(|(rank, _)| *rank);
            let pairs: Vec<String> = pairs.into_iter().map(|(_, pair)| pair).collect();
            let inside = pairs.join(", ");
            Some(if braces { format!("{{{inside}}}") } else { inside })
        }
        Kind::List(items) => {
            let items: Option<Vec<String>> =
                items.iter().map(|item| flow(source, item, element_kin(kin))).collect();
            Some(format!("[{}]", items?.join(", ")))
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
            (!text.is_empty()).then(|| scalar(text))
        }
    }
}

/// A scalar on one line: single quotes become double ones where nothing has to be escaped.
fn scalar(text: &str) -> String {
    match text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(inside) if !inside.contains(['\'', '"', '\\']) => format!("\"{inside}\""),
        Some(_) | None => text.to_owned(),
    }
}
