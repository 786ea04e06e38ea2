//! What would be right where a value is not: as near as can be to what was written.

use crate::quantity::Quantity;
use crate::shape::{FieldType, Shape};
use crate::yaml::{Kind, Node};

/// Words in back quotes, one after another.
pub(super) fn quoted(words: &[&str], between: &str) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(between)
}

/// What to do about a value that stands where a mapping of known keys belongs.
pub(super) fn as_mapping(node: &Node, shape: &Shape) -> String {
    let keys = shape.keys().join(", ");
    let plain = match &node.kind {
        Kind::List(_) => return format!("write its keys without dashes and brackets: {keys}"),
        Kind::Text(text) if text.len() < 60 => text.clone(),
        Kind::Number(number) => number.to_string(),
        Kind::Null | Kind::Bool(_) | Kind::Text(_) | Kind::Map(_) => {
            return format!("write it with its keys: {keys}");
        }
    };
    if shape.keys().contains(&"file") && (plain.ends_with(".yaml") || plain.ends_with(".yml")) {
        return format!("write {{file: {plain}}}");
    }
    let is_number = matches!(node.kind, Kind::Number(_));
    let fits = |value: &FieldType| {
        if let FieldType::Word(words) | FieldType::WordOrText(words) = value {
            return words.contains(&plain.as_str());
        }
        is_number && matches!(value, FieldType::OneOrList(FieldType::Whole { .. }) | FieldType::Whole { .. })
    };
    let required: Vec<&str> =
        shape.fields.iter().filter(|field| field.required).map(|field| field.key).collect();
    let meant = shape.fields.iter().find(|field| fits(&field.value)).map(|field| field.key);
    match (meant, required.as_slice()) {
        (Some(key), []) => format!("write {{{key}: {plain}}}"),
        (Some(key), required) if required.iter().all(|other| *other == key) => {
            format!("write {{{key}: {plain}}}")
        }
        (Some(key), required) => {
            let others = required.iter().filter(|other| **other != key).map(|other| format!("{other}: …"));
            format!("write {{{}, {key}: {plain}}}", others.collect::<Vec<_>>().join(", "))
        }
        (None, [only]) if !is_number => format!("write {{{only}: {plain}}}"),
        (None, _) => format!("write it with its keys: {keys}"),
    }
}

/// Why a value is no whole number of a range, and what would be right.
pub(super) fn no_whole(node: &Node, range: &std::ops::RangeInclusive<u32>) -> (String, String) {
    let wanted = format!("write a number from {} to {}", range.start(), range.end());
    let inside = |text: &str| text.trim().parse().is_ok_and(|number: u32| range.contains(&number));
    match &node.kind {
        Kind::Number(number) if number.is_f64() => (format!("{number} is no whole number"), wanted),
        Kind::Number(number) if number.as_u64().is_some_and(|number| number > u64::from(*range.end())) => {
            (format!("{number} is too much here"), wanted)
        }
        Kind::Number(number) => (format!("{number} is too little here"), wanted),
        Kind::Text(text) => {
            let plain = crate::yaml::plain(text);
            let bare = text.trim_end_matches('%').trim();
            let bytes = Quantity::parse(text).map(|quantity| (quantity.nano() / 1_000_000_000).to_string());
            let remedy = match plain {
                Some(plain) if inside(&plain) => format!("write {plain}"),
                Some(_) | None if inside(text) => format!("write {} without quotes", text.trim()),
                Some(_) | None if inside(bare) => format!("write {bare} without a sign"),
                Some(_) | None => {
                    bytes.filter(|bytes| inside(bytes)).map_or(wanted, |bytes| format!("write {bytes}"))
                }
            };
            (format!("a whole number belongs here, not {}", node.describe()), remedy)
        }
        Kind::Null | Kind::Bool(_) | Kind::List(_) | Kind::Map(_) => {
            (format!("a whole number belongs here, not {}", node.describe()), wanted)
        }
    }
}

/// A sentence's first letter made small, to go on after a colon.
pub(super) fn lower_first(text: &str) -> String {
    let mut chars = text.trim_end_matches('.').chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Whether a text is a range of another language: `1-10`, `a..c`.
pub(super) fn is_range(text: &str) -> bool {
    let is_number = |part: &str| part.trim().parse::<u32>().is_ok();
    text.contains("..") || text.split_once('-').is_some_and(|(from, to)| is_number(from) && is_number(to))
}
