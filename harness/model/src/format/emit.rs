//! Writing a file that was taken apart.

use super::take::{Document, Item, Line, Piece, Trail};

/// The whole text.
pub(super) fn document(document: &Document) -> String {
    let mut text = String::new();
    lines(&mut text, &document.head, 0);
    match &document.body {
        Piece::Nothing => {}
        Piece::Inline(line) => text.push_str(&format!("{line}\n")),
        Piece::Raw { first, rest } => {
            text.push_str(first);
            raw(&mut text, rest, 0);
            text.push('\n');
        }
        Piece::Map(items, tail) | Piece::List(items, tail) => block(&mut text, items, tail, 0, false),
    }
    lines(&mut text, &document.tail, 0);
    text
}

/// Comments on lines of their own. No empty line begins a file.
fn lines(text: &mut String, lines: &[Line], indent: usize) {
    for line in lines {
        empty(text, line.after_blank);
        text.push_str(&format!("{:indent$}{}\n", "", line.text));
    }
}

fn empty(text: &mut String, wanted: bool) {
    if wanted && !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
}

/// Entries one below another; the first goes on where the text stands if it is `inline`.
fn block(text: &mut String, items: &[Item], tail: &[Line], indent: usize, inline: bool) {
    for (index, item) in items.iter().enumerate() {
        let inline = inline && index == 0;
        if !inline {
            lines(text, &item.lead, indent);
            empty(
                text,
                item.after_blank && !(text.is_empty() || index == 0 && item.lead.is_empty() && indent > 0),
            );
            text.push_str(&" ".repeat(indent));
        }
        entry(text, item, indent);
    }
    lines(text, tail, indent);
}

fn entry(text: &mut String, item: &Item, indent: usize) {
    match &item.key {
        Some(key) => text.push_str(&format!("{key}:")),
        None => text.push('-'),
    }
    trail(text, item.key_trail.as_ref());
    match &item.value {
        Piece::Nothing => {}
        Piece::Inline(line) => text.push_str(&format!(" {line}")),
        Piece::Raw { first, rest } => {
            text.push_str(&format!(" {first}"));
            raw(text, rest, indent);
        }
        Piece::Map(items, tail) | Piece::List(items, tail) if item.key.is_none() => {
            text.push(' ');
            block(text, items, tail, indent + 2, true);
            return;
        }
        Piece::Map(items, tail) | Piece::List(items, tail) => {
            text.push('\n');
            block(text, items, tail, indent + 2, false);
            return;
        }
    }
    trail(text, item.trail.as_ref());
    text.push('\n');
}

fn trail(text: &mut String, trail: Option<&Trail>) {
    if let Some(trail) = trail {
        text.push_str(&format!("{:gap$}{}", "", trail.text, gap = trail.gap));
    }
}

/// The further lines of what stays as it is, as far from the entry as they were.
fn raw(text: &mut String, rest: &[(isize, String)], indent: usize) {
    let base = isize::try_from(indent).unwrap_or(0);
    for (offset, line) in rest {
        text.push('\n');
        if !line.is_empty() {
            let indent = usize::try_from(base + offset).unwrap_or(0);
            text.push_str(&format!("{:indent$}{}", "", line));
        }
    }
}
