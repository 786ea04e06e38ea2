//! A list of steps laid out in one row: repeats are unrolled and static values filled in, and what
//! later steps may refer to is collected.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Value, json};

use super::names::Shows;
use super::{Files, RELATIVE, RawStep, Scope, Section};
use crate::fragment::{self, INCLUDE, Origin, beside};
use crate::mistake::{nearest, suggestion};
use crate::reader::{Fields, Reader};
use crate::verbs::{Class, FOR_EACH, REPEAT, Verb};
use crate::yaml::{self, Kind, Node};

/// Where a list of steps stands, and what is known there.
pub(crate) struct Place<'p> {
    /// The part of the scenario.
    pub section: Section,
    /// What stands in front of its steps' numbers: `4.2.`.
    pub prefix: String,
    /// The values of names that are put in before anything is read.
    pub values: &'p BTreeMap<String, Value>,
    /// The fragment that it stands in.
    pub origin: Option<&'p Rc<Origin>>,
}

impl<'p> Place<'p> {
    /// The scenario's or fragment's own list.
    pub fn first(section: Section, values: &'p BTreeMap<String, Value>) -> Self {
        Self { section, prefix: String::new(), values, origin: None }
    }

    /// A list inside of a step of this one.
    fn inside<'q>(&'q self, prefix: String, values: &'q BTreeMap<String, Value>) -> Place<'q> {
        Place { section: self.section, prefix, values, origin: self.origin }
    }
}

/// Lists of steps laid out in one row: repeats are unrolled, fragments included, static values filled in.
pub(crate) struct Unrolled<'f> {
    /// The row so far.
    pub steps: Vec<RawStep>,
    files: &'f Files<'f>,
    /// Whether a fragment is looked at by itself: what is inside of those that it includes is not told.
    alone: bool,
    /// How many items and rounds were gone through so far.
    turns: usize,
    /// Whether it was told that there are too many.
    spent: bool,
}

impl<'f> Unrolled<'f> {
    /// An empty row.
    pub fn new(files: &'f Files<'f>, alone: bool) -> Self {
        Self { steps: Vec::new(), files, alone, turns: 0, spent: false }
    }

    /// Lays out a list at the end of the row.
    pub fn list(&mut self, reader: &mut Reader<'_>, list: &Node, place: &Place<'_>) {
        for (index, item) in reader.list(list).iter().enumerate() {
            if self.is_spent(reader, list) {
                return;
            }
            let number = format!("{}{}", place.prefix, index + 1);
            let Some((verb, body)) = structure(reader, item) else {
                let node = item.with_values(place.values);
                self.steps.push(RawStep {
                    section: place.section,
                    number,
                    node,
                    origin: place.origin.cloned(),
                });
                continue;
            };
            if std::ptr::eq(body, item) {
                continue;
            }
            if verb == Verb::Repeat {
                self.repeat(reader, body, &number, place);
            } else if verb == Verb::ForEach {
                self.for_each(reader, body, &number, place);
            } else {
                self.include(reader, body, &number, place);
            }
        }
    }

    /// Whether there are more steps already than a plan may have: told once, of all the lists around.
    fn is_spent(&mut self, reader: &mut Reader<'_>, list: &Node) -> bool {
        self.turns += 1;
        let spent = self.steps.len() > MAX_STEPS || self.turns > MAX_TURNS;
        if spent && !std::mem::replace(&mut self.spent, true) {
            let begin = list.span.start..list.span.start;
            reader.wrong(&begin, format!("more than {MAX_STEPS} steps"), "repeat less often");
        }
        spent
    }

    /// The list of steps of a structure, which holds one at least.
    fn steps<'n>(reader: &mut Reader<'_>, fields: &Fields<'n>) -> Option<&'n Node> {
        let steps = fields.get("steps")?;
        if matches!(&steps.kind, Kind::List(items) if items.is_empty()) {
            reader.wrong(&steps.span, "no steps", "add at least one, or leave out what holds them");
        }
        Some(steps)
    }

    fn repeat(&mut self, reader: &mut Reader<'_>, body: &Node, number: &str, place: &Place<'_>) {
        let Some(fields) = reader.open(body, &REPEAT) else { return };
        let times = fields
            .get("times")
            .map(|node| node.with_values(place.values))
            .and_then(|node| reader.whole(&node, 1..=1000));
        let Some(steps) = Self::steps(reader, &fields) else { return };
        // A number that is wrong was told; the steps are read once all the same.
        for round in 1..=times.unwrap_or(1) {
            if self.is_spent(reader, body) {
                return;
            }
            let mut values = place.values.clone();
            values.insert("round".to_owned(), json!(round));
            self.list(reader, steps, &place.inside(format!("{number}.{round}."), &values));
        }
    }

    fn for_each(&mut self, reader: &mut Reader<'_>, body: &Node, number: &str, place: &Place<'_>) {
        let Some(fields) = reader.open(body, &FOR_EACH) else { return };
        let (Some(name), Some(items), Some(steps)) =
            (fields.get("name"), fields.get("in"), Self::steps(reader, &fields))
        else {
            return;
        };
        let Some(name) = reader.text(name) else { return };
        let items = items.with_values(place.values);
        if matches!(&items.kind, Kind::List(items) if items.is_empty()) {
            reader.wrong(
                &items.span,
                "there is no value, so its steps are never taken",
                "write [first, second]",
            );
        }
        for (turn, value) in reader.list(&items).iter().enumerate() {
            let mut values = place.values.clone();
            values.insert(name.clone(), value.to_value());
            self.list(reader, steps, &place.inside(format!("{number}.{}.", turn + 1), &values));
        }
    }

    fn include(&mut self, reader: &mut Reader<'_>, body: &Node, number: &str, place: &Place<'_>) {
        let origin = place.origin;
        let body = body.with_values(place.values);
        let Some(fields) = reader.open(&body, &INCLUDE) else { return };
        let Some(node) = fields.get("file") else { return };
        let Some(name) = reader.text(node) else { return };
        if !reader.is_beside(node, &name) {
            return;
        }
        let file = beside(origin.map(|origin| origin.file.as_str()), &name);
        let chain = origin.map_or_else(Vec::new, |origin| origin.chain());
        if chain.contains(&file.as_str()) {
            let way: Vec<&str> = chain.iter().rev().copied().chain([file.as_str()]).collect();
            let message = format!("`{file}` includes itself: {}", way.join(" includes "));
            reader.wrong(&node.span, message, "leave one of them out");
            return;
        }
        let source = match (self.files)(&file) {
            Ok(source) => source,
            Err(error) => {
                let message = format!("the file `{file}` cannot be read: {error}");
                reader.wrong(&node.span, message, RELATIVE);
                return;
            }
        };
        if self.alone && origin.is_none() && source == reader.source() {
            reader.wrong(&node.span, format!("`{file}` includes itself"), "leave it out");
            return;
        }
        let at = node.span.clone();
        let mut origin = Origin { file, source, at, parent: origin.map(Rc::clone), muted: false };
        let source = origin.source.clone();
        let mut inner = Reader::new(&source);
        let mut mistakes = Vec::new();
        let root = yaml::parse_one(&source, &mut mistakes);
        inner.mistakes.append(&mut mistakes);
        let opened = root.as_ref().and_then(|root| fragment::open(&mut inner, root));
        let Some(opened) = opened else {
            reader.mistakes.extend(inner.mistakes.into_iter().map(|mistake| origin.outwards(mistake)));
            return;
        };
        let told = reader.mistakes.len();
        let given = arguments(reader, &origin.file, &fields, node, &opened.parameters);
        origin.muted = self.alone || reader.mistakes.len() > told;
        let origin = Rc::new(origin);
        let before = inner.mistakes.len();
        let inside = Place {
            section: place.section,
            prefix: format!("{number}."),
            values: &given,
            origin: Some(&origin),
        };
        self.list(&mut inner, opened.steps, &inside);
        if origin.muted {
            inner.mistakes.truncate(before);
        }
        reader.mistakes.extend(inner.mistakes.into_iter().map(|mistake| origin.outwards(mistake)));
    }
}

/// The values of a fragment's parameters: those that are given, else the defaults.
fn arguments(
    reader: &mut Reader<'_>,
    file: &str,
    fields: &Fields<'_>,
    at: &Node,
    parameters: &BTreeMap<String, Option<Value>>,
) -> BTreeMap<String, Value> {
    let mut given: BTreeMap<String, Value> = BTreeMap::new();
    let known: Vec<&str> = parameters.keys().map(String::as_str).collect();
    let with = fields.get("with").map_or(&[][..], |node| reader.map(node));
    let missing = |name: &&str| !with.iter().any(|entry| entry.key == **name);
    for entry in with {
        if known.contains(&entry.key.as_str()) {
            given.insert(entry.key.clone(), entry.value.to_value());
        } else {
            // What is misspelt is told, and read as if it were right.
            if let Some(meant) = nearest(&entry.key, known.iter().copied().filter(missing)) {
                given.insert(meant.to_owned(), entry.value.to_value());
            }
            let message = format!("{file} has no parameter `{}`", entry.key);
            reader.wrong(&entry.key_span, message, suggestion(&entry.key, &known));
        }
    }
    for (name, default) in parameters {
        match default {
            Some(default) => {
                given.entry(name.clone()).or_insert_with(|| default.clone());
            }
            None if !given.contains_key(name) => {
                let message = format!("{file} needs the parameter `{name}`");
                reader.wrong(&at.span, message, format!("add with: {{{name}: …}}"));
            }
            None => {}
        }
    }
    given
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
/// The same with the lists that hold no steps, or hold others.
const MAX_TURNS: usize = 3 * MAX_STEPS;

/// Collects what later steps may refer to: names, captures and played nodes.
pub(crate) fn survey(row: &[RawStep], scope: &mut Scope) {
    for raw in row {
        survey_step(&raw.node, scope);
    }
}

fn survey_step(node: &Node, scope: &mut Scope) {
    let Kind::Map(entries) = &node.kind else { return };
    let verbs = entries.iter().filter_map(|entry| Some((super::meant(&entry.key)?, &entry.value)));
    let verbs: Vec<(Verb, &Node)> = verbs.collect();
    let shows = match verbs.as_slice() {
        [(verb, value)] => Shows::of(*verb, value),
        _ => Shows::Body,
    };
    for name in super::names::given(node) {
        scope.all_names.insert(name.to_owned());
        let known = scope.shows.entry(name.to_owned()).or_insert(shows);
        *known = shows.max(*known);
    }
    for (verb, value) in &verbs {
        if verb.class() == Class::Act {
            sent(value, &mut scope.sent);
        }
    }
    let played = verbs.iter().filter(|(verb, _)| *verb == Verb::Node);
    for name in played.filter_map(|(_, value)| value.get("name").and_then(Node::as_text)) {
        scope.played.insert(name.to_owned());
    }
    if let Some(Kind::List(acts)) = node.get("parallel").map(|node| &node.kind) {
        acts.iter().for_each(|act| survey_step(act, scope));
    }
}

/// All texts that an act has as names of something.
fn sent(node: &Node, names: &mut BTreeSet<String>) {
    match &node.kind {
        Kind::Map(entries) => {
            for entry in entries {
                if let ("name" | "namespace", Some(text)) = (entry.key.as_str(), entry.value.as_text()) {
                    names.insert(text.to_owned());
                }
                sent(&entry.value, names);
            }
        }
        Kind::List(items) => items.iter().for_each(|item| sent(item, names)),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {}
    }
}
