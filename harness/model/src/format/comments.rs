//! Comments: where they stand in a source. A `#` begins one only outside of scalars, after a blank or at a line's begin.

use std::ops::Range;

use crate::yaml::{self, Kind, Node};

/// One comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Comment {
    /// From its `#` to the end of its line.
    pub span: Range<usize>,
    /// Its text with the `#`, without blanks at the end.
    pub text: String,
    /// Whether nothing stands in front of it on its line.
    pub alone: bool,
    /// Whether the line in front of it is empty.
    pub after_blank: bool,
    /// How far from the left its `#` stands.
    pub column: usize,
    /// How many blanks stand between it and what it follows.
    pub gap: usize,
}

/// The comments of a source, in order.
pub(super) fn comments(source: &str, root: &Node) -> Vec<Comment> {
    let mut scalars = Vec::new();
    collect(root, source, &mut scalars);
    scalars.sort_by_key(|span| span.start);
    let mut found = Vec::new();
    let mut at = 0;
    let mut next = scalars.into_iter().peekable();
    while at < source.len() {
        while next.peek().is_some_and(|span: &Range<usize>| span.end <= at) {
            next.next();
        }
        if let Some(span) = next.peek()
            && span.contains(&at)
        {
            at = span.end;
            continue;
        }
        let begins = source[at..].starts_with('#') && (at == 0 || source[..at].ends_with([' ', '\t', '\n']));
        if begins {
            let end = at + source[at..].find('\n').unwrap_or(source.len() - at);
            found.push(comment(source, at..end));
            at = end;
        } else {
            at += source[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

fn comment(source: &str, span: Range<usize>) -> Comment {
    let line = &source[source[..span.start].rfind('\n').map_or(0, |at| at + 1)..span.start];
    Comment {
        text: source[span.clone()].trim_end().to_owned(),
        alone: line.trim().is_empty(),
        after_blank: blank_before(source, span.start),
        column: line.chars().count(),
        gap: line.len() - line.trim_end().len(),
        span,
    }
}

/// Whether the line in front of that of `at` is empty.
pub(super) fn blank_before(source: &str, at: usize) -> bool {
    let Some(line) = source[..at].rfind('\n') else { return false };
    let before = source[..line].rsplit('\n').next();
    line > 0 && before.is_some_and(|before| before.trim().is_empty())
}

/// The texts of all comments, sorted.
pub(super) fn texts(source: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    let Some(root) = yaml::parse_one(source, &mut mistakes) else { return Vec::new() };
    let mut texts: Vec<String> = comments(source, &root).into_iter().map(|comment| comment.text).collect();
    texts.sort();
    texts
}

/// The places of all scalars, keys included. A block scalar's reaches from its `|` to its last line.
fn collect(node: &Node, source: &str, scalars: &mut Vec<Range<usize>>) {
    match &node.kind {
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
            scalars.push(whole(source, &node.span))
        }
        Kind::List(items) => items.iter().for_each(|item| collect(item, source, scalars)),
        Kind::Map(entries) => {
            for entry in entries {
                scalars.push(entry.key_span.clone());
                collect(&entry.value, source, scalars);
            }
        }
    }
}

/// The place of a scalar without the ends of lines that a block scalar's span may hold.
pub(super) fn whole(source: &str, span: &Range<usize>) -> Range<usize> {
    let text = &source[span.clone()];
    span.start..span.start + text.trim_end().len()
}
