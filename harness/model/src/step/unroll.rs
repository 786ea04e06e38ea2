//! A list of steps laid out in one row: repeats are unrolled and static values filled in, and what
//! later steps may refer to is collected.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{RawStep, Scope, Section};
use crate::reader::Reader;
use crate::verbs::{Class, FOR_EACH, REPEAT, Verb};
use crate::yaml::{Kind, Node};

/// Lays out a list of steps in one row: repeats are unrolled and static values filled in.
pub(crate) fn unroll(
    reader: &mut Reader<'_>,
    section: Section,
    list: &Node,
    prefix: &str,
    values: &BTreeMap<String, Value>,
    row: &mut Vec<RawStep>,
) {
    for (index, item) in reader.list(list).iter().enumerate() {
        if row.len() > MAX_STEPS {
            reader.wrong(&list.span, format!("more than {MAX_STEPS} steps"), "repeat less often");
            return;
        }
        let number = format!("{prefix}{}", index + 1);
        let structure = structure(reader, item);
        match structure {
            Some((_, body)) if std::ptr::eq(body, item) => {}
            Some((Verb::Repeat, body)) => {
                let Some(fields) = reader.open(body, &REPEAT) else { continue };
                let times = fields
                    .get("times")
                    .map(|node| node.with_values(values))
                    .and_then(|node| reader.whole(&node, 1..=1000));
                let Some(steps) = fields.get("steps") else { continue };
                // A number that is wrong was told; the steps are read once all the same.
                for round in 1..=times.unwrap_or(1) {
                    let mut values = values.clone();
                    values.insert("round".to_owned(), json!(round));
                    unroll(reader, section, steps, &format!("{number}.{round}."), &values, row);
                }
            }
            Some((_, body)) => {
                let Some(fields) = reader.open(body, &FOR_EACH) else { continue };
                let (Some(name), Some(items), Some(steps)) =
                    (fields.get("name"), fields.get("in"), fields.get("steps"))
                else {
                    continue;
                };
                let Some(name) = reader.text(name) else { continue };
                let items = items.with_values(values);
                for (turn, value) in reader.list(&items).iter().enumerate() {
                    let mut values = values.clone();
                    values.insert(name.clone(), value.to_value());
                    unroll(reader, section, steps, &format!("{number}.{}.", turn + 1), &values, row);
                }
            }
            None => row.push(RawStep { section, number, node: item.with_values(values) }),
        }
    }
}

/// The structure that a step is, with what stands after its word. What stands beside it is told as a mistake.
fn structure<'n>(reader: &mut Reader<'_>, item: &'n Node) -> Option<(Verb, &'n Node)> {
    let Kind::Map(entries) = &item.kind else { return None };
    let verbs = entries.iter().filter_map(|entry| Verb::named(&entry.key).map(|verb| (verb, entry)));
    let verbs: Vec<_> = verbs.collect();
    let [(verb, found)] = verbs.as_slice() else { return None };
    if verb.class() != Class::Structure {
        return None;
    }
    if found.value.kind == Kind::Null && entries.len() > 1 {
        reader.wrong(
            &found.key_span,
            format!("what belongs to `{}` stands beside it and not inside of it", verb.name()),
            "indent it by four blanks more than the dash",
        );
        return Some((*verb, item));
    }
    for entry in entries.iter().filter(|entry| entry.key != found.key) {
        reader.wrong(
            &entry.key_span,
            format!("`{}` takes no `{}`", verb.name(), entry.key),
            if entry.key == "as" {
                "name the steps inside"
            } else {
                "move it inside, or into a step of its own"
            },
        );
    }
    Some((*verb, &found.value))
}

/// How many steps a plan may have when it is unrolled.
const MAX_STEPS: usize = 20_000;

/// Collects what later steps may refer to: names, captures and played nodes.
pub(crate) fn survey(row: &[RawStep], scope: &mut Scope) {
    for raw in row {
        survey_step(&raw.node, scope);
    }
}

fn survey_step(node: &Node, scope: &mut Scope) {
    if let Some(name) = node.get("as").and_then(Node::as_text) {
        scope.all_names.insert(name.to_owned());
    }
    let Kind::Map(entries) = &node.kind else { return };
    let played = entries.iter().filter(|entry| super::meant(&entry.key) == Some(Verb::Node));
    for name in played.filter_map(|entry| entry.value.get("name").and_then(Node::as_text)) {
        scope.played.insert(name.to_owned());
    }
    if let Some(Kind::List(acts)) = node.get("parallel").map(|node| &node.kind) {
        acts.iter().for_each(|act| survey_step(act, scope));
    }
}
