//! Reading of patterns.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Comparison, Count, OPERATORS, Operator, Pattern, Presence};
use crate::borrowed::meant_operator;
use crate::mistake::suggestion;
use crate::quantity;
use crate::reader::Reader;
use crate::strings;
use crate::template;
use crate::yaml::{Entry, Kind, Node};

/// Reads a pattern; `parent` is the key it stands under.
pub(crate) fn read(reader: &mut Reader<'_>, node: &Node, parent: Option<&str>) -> Option<Pattern> {
    if reader.is_full() {
        return None;
    }
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
            strings::check_torn(reader, node);
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
        if parent.is_none() {
            strings::check_dotted(reader, node);
        }
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
            let right = read_scalar(reader, value)?;
            quantity::check_plain(reader, &entry.key, value);
            Operator::Compare(Comparison::named(&entry.key)?, right)
        }
        "$quantity" => Operator::Quantity(read_quantity(reader, value)?),
        "$any" => Operator::Any(Box::new(read(reader, value, parent)?)),
        "$all" => Operator::All(Box::new(read(reader, value, parent)?)),
        "$none" => Operator::NoneOf(Box::new(read(reader, value, parent)?)),
        "$byKey" => read_by_key(reader, value)?,
        "$count" => Operator::Count(read_count(reader, value, CountWords::None)?),
        "$oneOf" => {
            let ways = reader.some_list(
                value,
                "$oneOf has nothing to choose from",
                "write {$oneOf: [first, second]}",
            )?;
            let ways: Vec<Option<Pattern>> = ways.iter().map(|way| read(reader, way, parent)).collect();
            Operator::OneOf(ways.into_iter().collect::<Option<_>>()?)
        }
        "$not" => Operator::Not(Box::new(read(reader, value, parent)?)),
        other => {
            reader.wrong(
                &entry.key_span,
                format!("there is no operator `{other}`"),
                meant_operator(other)
                    .map_or_else(|| suggestion(other, &OPERATORS), |remedy| remedy.to_owned()),
            );
            return None;
        }
    })
}

/// `{type: {Ready: {status: "True"}}}`: the key by which elements are told apart, and what each is like.
fn read_by_key(reader: &mut Reader<'_>, node: &Node) -> Option<Operator> {
    let [entry] = reader.map(node) else {
        if !matches!(node.kind, Kind::Map(_)) {
            return None;
        }
        reader.wrong(
            &node.span,
            "$byKey takes one key by which the elements are told apart",
            "write {$byKey: {type: {Ready: {status: \"True\"}}}}",
        );
        return None;
    };
    let elements = reader.map(&entry.value);
    if elements.is_empty() && matches!(entry.value.kind, Kind::Map(_)) {
        reader.wrong(
            &entry.value.span,
            "no element is named",
            "write {$byKey: {type: {Ready: {status: \"True\"}}}}",
        );
        return None;
    }
    let read_element = |reader: &mut Reader<'_>, element: &Entry| {
        let scalar = matches!(element.value.kind, Kind::Bool(_) | Kind::Number(_) | Kind::Text(_));
        if scalar && element.value.as_text().is_none_or(|text| template::names(text).is_empty()) {
            reader.wrong(
                &element.value.span,
                format!("an element that has a key is a mapping, not {}", element.value.describe()),
                "name the key that tells elements apart first: {$byKey: {type: {Ready: {status: \"True\"}}}}",
            );
            return None;
        }
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
        let value = read_scalar(reader, node)?;
        quantity::check(reader, node);
        return Some(vec![(Comparison::Equal, value)]);
    };
    let mut all = Vec::new();
    for entry in entries {
        match Comparison::named(&entry.key) {
            Some(comparison) => {
                all.push((comparison, read_scalar(reader, &entry.value)?));
                quantity::check(reader, &entry.value);
            }
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
                    (None, _) => {
                        let message = format!("a number cannot be compared by `{}`", entry.key);
                        let known = ["$eq", "$ne", "$gt", "$ge", "$lt", "$le"];
                        reader.wrong(&entry.key_span, message, suggestion(&entry.key, &known));
                        return None;
                    }
                    (Some(_), None) => return wrong_count(reader, &entry.value, CountWords::None),
                }
            }
            refuse_idle(reader, node, &conditions)?;
            Some(Count::Compared(conditions))
        }
        Kind::Null | Kind::Bool(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => {
            wrong_count(reader, node, words)
        }
    }
}

/// Notes comparisons that hold of any number, or of none.
fn refuse_idle(reader: &mut Reader<'_>, node: &Node, conditions: &[(Comparison, u64)]) -> Option<()> {
    // Whether they hold changes only beside one of their numbers.
    let beside = |number: &u64| [number.saturating_sub(1), *number, number.saturating_add(1)];
    let numbers = conditions.iter().flat_map(|(_, number)| beside(number)).chain([0, u64::MAX]);
    let held: BTreeSet<bool> = numbers
        .map(|number| conditions.iter().all(|(comparison, wanted)| comparison.holds(&number, wanted)))
        .collect();
    let (what, remedy) = match (held.contains(&true), held.contains(&false)) {
        (true, true) => return Some(()),
        (true, false) => ("any", "leave it out, or write for example {$ge: 1}"),
        (false, _) => ("no", "write numbers that there are: 0, {$ge: 2}, {$ge: 2, $lt: 4}"),
    };
    reader.wrong(&node.span, format!("{what} number is so: this says nothing"), remedy);
    None
}

fn wrong_count(reader: &mut Reader<'_>, node: &Node, words: CountWords) -> Option<Count> {
    let text = node.as_text().unwrap_or_default().trim();
    let (sign, number) = text.split_at(text.find(|c: char| c.is_ascii_digit()).unwrap_or(0));
    let compared = [(">=", "$ge"), ("<=", "$le"), (">", "$gt"), ("<", "$lt"), ("==", "$eq"), ("!=", "$ne")];
    let compared = compared.iter().find(|(written, _)| *written == sign.trim());
    let remedy = match (compared, number.parse::<u64>()) {
        (Some((_, ours)), Ok(number)) => format!("write {{{ours}: {number}}}"),
        (None, Ok(number)) if sign.is_empty() => format!("write {number} without quotes"),
        (_, _) => match words {
            CountWords::None => "write 3 or {$ge: 2}",
            CountWords::Occurrences => "write 3, {$ge: 2}, any or none",
            CountWords::Objects => "write 3, {$ge: 2}, all, any or none",
        }
        .to_owned(),
    };
    reader.wrong(&node.span, format!("{} is no count", node.describe()), remedy);
    None
}
