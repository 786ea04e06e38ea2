//! Reading of patterns.

use serde_json::Value;

use super::{Comparison, Count, OPERATORS, Operator, Pattern, Presence};
use crate::mistake::suggestion;
use crate::reader::Reader;
use crate::strings;
use crate::yaml::{Entry, Kind, Node};

/// Reads a pattern; `parent` is the key it stands under.
pub(crate) fn read(reader: &mut Reader<'_>, node: &Node, parent: Option<&str>) -> Option<Pattern> {
    match &node.kind {
        Kind::Null => {
            reader.wrong(&node.span, "nothing to match", "write {$is: absent} or {$is: present}");
            None
        }
        Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
            if let Some(parent) = parent {
                strings::check_scalar(reader, parent, node);
            }
            Some(Pattern::Scalar(node.to_value()))
        }
        Kind::List(items) if items.is_empty() => {
            reader.wrong(
                &node.span,
                "an empty list matches every list",
                "write {$count: 0} for a list without elements, {$is: present} for any",
            );
            None
        }
        Kind::List(items) => {
            let patterns: Vec<Option<Pattern>> =
                items.iter().map(|item| read(reader, item, parent)).collect();
            Some(Pattern::List(patterns.into_iter().collect::<Option<_>>()?))
        }
        Kind::Map(entries) if entries.is_empty() => {
            reader.wrong(&node.span, "an empty mapping matches every mapping", "write {$is: present}");
            None
        }
        Kind::Map(entries) => read_map(reader, node, entries, parent),
    }
}

fn read_map(
    reader: &mut Reader<'_>,
    node: &Node,
    entries: &[Entry],
    parent: Option<&str>,
) -> Option<Pattern> {
    let operators = entries.iter().filter(|entry| is_operator(&entry.key)).count();
    if operators == 0 {
        strings::check_status(reader, node);
        let pairs: Vec<Option<(String, Pattern)>> = entries
            .iter()
            .map(|entry| {
                let parent = strings::parent_of(parent, &entry.key);
                read(reader, &entry.value, Some(&parent)).map(|pattern| (entry.key.clone(), pattern))
            })
            .collect();
        return Some(Pattern::Map(pairs.into_iter().collect::<Option<_>>()?));
    }
    if operators < entries.len() {
        reader.wrong(
            &node.span,
            "operators and plain keys stand side by side",
            "put the operator under the key that it is about, or use {$oneOf: …}, {$not: …} around whole mappings",
        );
        return None;
    }
    let all: Vec<Option<Operator>> =
        entries.iter().map(|entry| read_operator(reader, entry, parent)).collect();
    Some(Pattern::Operators(all.into_iter().collect::<Option<_>>()?))
}

/// `$x`, but not `${name}`.
fn is_operator(key: &str) -> bool {
    key.starts_with('$') && !key.starts_with("${") && !key.starts_with("$${")
}

fn read_operator(reader: &mut Reader<'_>, entry: &Entry, parent: Option<&str>) -> Option<Operator> {
    let value = &entry.value;
    Some(match entry.key.as_str() {
        "$is" => Operator::Is(match value.as_text() {
            Some("present") => Presence::Present,
            Some("absent") => Presence::Absent,
            Some("any") => Presence::Any,
            Some(_) | None => {
                reader.wrong(
                    &value.span,
                    format!("$is cannot be {}", value.describe()),
                    "write present, absent or any",
                );
                return None;
            }
        }),
        "$regex" => Operator::Regex(reader.regex(value)?),
        "$eq" => Operator::Equal(value.to_value()),
        "$ne" => Operator::NotEqual(read_scalar(reader, value)?),
        "$gt" | "$ge" | "$lt" | "$le" => {
            Operator::Compare(Comparison::named(&entry.key)?, read_scalar(reader, value)?)
        }
        "$quantity" => Operator::Quantity(read_quantity(reader, value)?),
        "$any" => Operator::Any(Box::new(read(reader, value, parent)?)),
        "$all" => Operator::All(Box::new(read(reader, value, parent)?)),
        "$none" => Operator::NoneOf(Box::new(read(reader, value, parent)?)),
        "$byKey" => read_by_key(reader, value)?,
        "$count" => Operator::Count(read_count(reader, value, CountWords::None)?),
        "$oneOf" => {
            let ways = reader.list(value);
            if ways.is_empty() {
                reader.wrong(
                    &value.span,
                    "$oneOf has nothing to choose from",
                    "write {$oneOf: [first, second]}",
                );
                return None;
            }
            let ways: Vec<Option<Pattern>> = ways.iter().map(|way| read(reader, way, parent)).collect();
            Operator::OneOf(ways.into_iter().collect::<Option<_>>()?)
        }
        "$not" => Operator::Not(Box::new(read(reader, value, parent)?)),
        other => {
            reader.wrong(
                &entry.key_span,
                format!("there is no operator `{other}`"),
                suggestion(other, &OPERATORS),
            );
            return None;
        }
    })
}

/// `{type: {Ready: {status: "True"}}}`: the key by which elements are told apart, and what each is like.
fn read_by_key(reader: &mut Reader<'_>, node: &Node) -> Option<Operator> {
    let [entry] = reader.map(node) else {
        reader.wrong(
            &node.span,
            "$byKey takes one key by which the elements are told apart",
            "write {$byKey: {type: {Ready: {status: \"True\"}}}}",
        );
        return None;
    };
    let elements = reader.map(&entry.value);
    if elements.is_empty() {
        reader.wrong(
            &entry.value.span,
            "no element is named",
            "write {$byKey: {type: {Ready: {status: \"True\"}}}}",
        );
        return None;
    }
    let read_element = |reader: &mut Reader<'_>, element: &Entry| {
        if entry.key == "type" {
            strings::check_condition(reader, &element.value);
        }
        Some((element.key.clone(), read(reader, &element.value, None)?))
    };
    let elements: Vec<Option<(String, Pattern)>> =
        elements.iter().map(|element| read_element(reader, element)).collect();
    Some(Operator::ByKey(entry.key.clone(), elements.into_iter().collect::<Option<_>>()?))
}

fn read_scalar(reader: &mut Reader<'_>, node: &Node) -> Option<Value> {
    match &node.kind {
        Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => Some(node.to_value()),
        Kind::Null | Kind::List(_) | Kind::Map(_) => {
            reader.wrong(
                &node.span,
                format!("a text or a number belongs here, not {}", node.describe()),
                "compare with {$not: …} or $eq if it is a whole tree",
            );
            None
        }
    }
}

fn read_quantity(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<(Comparison, Value)>> {
    let Kind::Map(entries) = &node.kind else {
        return Some(vec![(Comparison::Equal, read_scalar(reader, node)?)]);
    };
    let mut all = Vec::new();
    for entry in entries {
        match Comparison::named(&entry.key) {
            Some(comparison) => all.push((comparison, read_scalar(reader, &entry.value)?)),
            None => {
                let known = ["$eq", "$ne", "$gt", "$ge", "$lt", "$le"];
                reader.wrong(
                    &entry.key_span,
                    format!("a quantity cannot be compared by `{}`", entry.key),
                    suggestion(&entry.key, &known),
                );
                return None;
            }
        }
    }
    Some(all)
}

/// Which words may stand for a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountWords {
    /// No word.
    None,
    /// `any` and `none`.
    Occurrences,
    /// `any`, `none` and `all`.
    Objects,
}

/// Reads a count: a number, comparisons of a number, or one of the words that may stand here.
pub(crate) fn read_count(reader: &mut Reader<'_>, node: &Node, words: CountWords) -> Option<Count> {
    match &node.kind {
        Kind::Number(number) => match number.as_u64() {
            Some(number) => Some(Count::exactly(number)),
            None => wrong_count(reader, node, words),
        },
        Kind::Text(text) if words == CountWords::Objects && text == "all" => Some(Count::All),
        Kind::Text(text) if words != CountWords::None && text == "any" => Some(Count::at_least(1)),
        Kind::Text(text) if words != CountWords::None && text == "none" => Some(Count::exactly(0)),
        Kind::Map(entries) if !entries.is_empty() => {
            let mut conditions = Vec::new();
            for entry in entries {
                let number = match &entry.value.kind {
                    Kind::Number(number) => number.as_u64(),
                    Kind::Null | Kind::Bool(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => None,
                };
                match (Comparison::named(&entry.key), number) {
                    (Some(comparison), Some(number)) => conditions.push((comparison, number)),
                    (_, _) => return wrong_count(reader, node, words),
                }
            }
            Some(Count::Compared(conditions))
        }
        Kind::Null | Kind::Bool(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => {
            wrong_count(reader, node, words)
        }
    }
}

fn wrong_count(reader: &mut Reader<'_>, node: &Node, words: CountWords) -> Option<Count> {
    let remedy = match words {
        CountWords::None => "write 3 or {$ge: 2}",
        CountWords::Occurrences => "write 3, {$ge: 2}, any or none",
        CountWords::Objects => "write 3, {$ge: 2}, all, any or none",
    };
    reader.wrong(&node.span, format!("{} is no count", node.describe()), remedy);
    None
}
