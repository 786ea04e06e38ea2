//! A list of steps laid out in one row: repeats are unrolled and static values filled in, and what
//! later steps may refer to is collected.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};

use super::{Files, RawStep, Scope, Section};
use crate::fragment::{self, INCLUDE, Origin, beside};
use crate::mistake::suggestion;
use crate::reader::{Fields, Reader};
use crate::verbs::{Class, FOR_EACH, REPEAT, Verb};
use crate::yaml::{self, Kind, Node};

/// Lists of steps laid out in one row: repeats are unrolled, fragments included, static values filled in.
pub(crate) struct Unrolled<'f> {
    /// The row so far.
    pub steps: Vec<RawStep>,
    files: &'f Files<'f>,
    /// Whether a fragment is looked at by itself: what is inside of those that it includes is not told.
    alone: bool,
}

impl<'f> Unrolled<'f> {
    /// An empty row.
    pub fn new(files: &'f Files<'f>, alone: bool) -> Self {
        Self { steps: Vec::new(), files, alone }
    }

    /// Lays out a list at the end of the row. `origin` is the fragment it stands in.
    pub fn list(
        &mut self,
        reader: &mut Reader<'_>,
        section: Section,
        list: &Node,
        prefix: &str,
        values: &BTreeMap<String, Value>,
        origin: Option<&Rc<Origin>>,
    ) {
        for (index, item) in reader.list(list).iter().enumerate() {
            if self.steps.len() > MAX_STEPS {
                reader.wrong(&list.span, format!("more than {MAX_STEPS} steps"), "repeat less often");
                return;
            }
            let number = format!("{prefix}{}", index + 1);
            let Some((verb, body)) = structure(reader, item) else {
                let node = item.with_values(values);
                self.steps.push(RawStep { section, number, node, origin: origin.cloned() });
                continue;
            };
            if std::ptr::eq(body, item) {
                continue;
            }
            if verb == Verb::Repeat {
                self.repeat(reader, section, body, &number, values, origin);
            } else if verb == Verb::ForEach {
                self.for_each(reader, section, body, &number, values, origin);
            } else {
                self.include(reader, section, body, &number, values, origin);
            }
        }
    }

    fn repeat(
        &mut self,
        reader: &mut Reader<'_>,
        section: Section,
        body: &Node,
        number: &str,
        values: &BTreeMap<String, Value>,
        origin: Option<&Rc<Origin>>,
    ) {
        let Some(fields) = reader.open(body, &REPEAT) else { return };
        let times = fields
            .get("times")
            .map(|node| node.with_values(values))
            .and_then(|node| reader.whole(&node, 1..=1000));
        let Some(steps) = fields.get("steps") else { return };
        // A number that is wrong was told; the steps are read once all the same.
        for round in 1..=times.unwrap_or(1) {
            let mut values = values.clone();
            values.insert("round".to_owned(), json!(round));
            self.list(reader, section, steps, &format!("{number}.{round}."), &values, origin);
        }
    }

    fn for_each(
        &mut self,
        reader: &mut Reader<'_>,
        section: Section,
        body: &Node,
        number: &str,
        values: &BTreeMap<String, Value>,
        origin: Option<&Rc<Origin>>,
    ) {
        let Some(fields) = reader.open(body, &FOR_EACH) else { return };
        let (Some(name), Some(items), Some(steps)) =
            (fields.get("name"), fields.get("in"), fields.get("steps"))
        else {
            return;
        };
        let Some(name) = reader.text(name) else { return };
        let items = items.with_values(values);
        for (turn, value) in reader.list(&items).iter().enumerate() {
            let mut values = values.clone();
            values.insert(name.clone(), value.to_value());
            self.list(reader, section, steps, &format!("{number}.{}.", turn + 1), &values, origin);
        }
    }

    fn include(
        &mut self,
        reader: &mut Reader<'_>,
        section: Section,
        body: &Node,
        number: &str,
        values: &BTreeMap<String, Value>,
        origin: Option<&Rc<Origin>>,
    ) {
        let body = body.with_values(values);
        let Some(fields) = reader.open(&body, &INCLUDE) else { return };
        let Some(node) = fields.get("file") else { return };
        let Some(name) = reader.text(node) else { return };
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
                reader.wrong(&node.span, message, "paths are relative to the file they stand in");
                return;
            }
        };
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
        self.list(&mut inner, section, opened.steps, &format!("{number}."), &given, Some(&origin));
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
    for entry in fields.get("with").map_or(&[][..], |node| reader.map(node)) {
        if known.contains(&entry.key.as_str()) {
            given.insert(entry.key.clone(), entry.value.to_value());
        } else {
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
