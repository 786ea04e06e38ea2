//! Fragments: steps that several scenarios share, with parameters. A step `include` puts them in its place.
//!
//! A parameter's value is put in before anything is read, as a table's rows are; a fragment knows nothing of its
//! scenario but what it is given. Mistakes in one are told with its file, line and column, at the step that includes it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use serde_json::Value;

use crate::mistake::{Mistake, Mistakes, place};
use crate::reader::Reader;
use crate::scenario::{API_VERSION, check_kind, read_name};
use crate::shape::{Field, FieldType, Shape};
use crate::step::{Context, Files, Place, Scope, Section, Unrolled, is_instant_name, rightly, survey};
use crate::stranger::stranger;
use crate::template;
use crate::yaml::{self, Kind, Node};

/// Where the steps of a fragment come from.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The fragment's path, relative to the scenario.
    pub file: String,
    /// Its text.
    pub source: String,
    /// Where it is included, in the text of what includes it.
    pub at: Range<usize>,
    /// What includes it, if that is a fragment as well.
    pub parent: Option<Rc<Origin>>,
    /// What it lacks is told already: mistakes of its steps would only follow from that.
    pub muted: bool,
}

impl Origin {
    /// A mistake in the fragment as it is told where it is included.
    pub fn outwards(&self, mistake: Mistake) -> Mistake {
        let (line, column) = place(&self.source, mistake.span.start);
        let message = format!("in {}, line {line}, column {column}: {}", self.file, mistake.message);
        Mistake { span: self.at.clone(), message, remedy: mistake.remedy }
    }

    /// A mistake in the fragment as the scenario tells it, unless it only follows from another one.
    pub fn told(&self, mistake: Mistake) -> Option<Mistake> {
        let mut told = self.outwards(mistake);
        let mut muted = self.muted;
        let mut outer = self.parent.as_deref();
        while let Some(origin) = outer {
            told = origin.outwards(told);
            muted |= origin.muted;
            outer = origin.parent.as_deref();
        }
        (!muted).then_some(told)
    }

    /// The files that lead here, the outermost last.
    pub fn chain(&self) -> Vec<&str> {
        let mut chain = vec![self.file.as_str()];
        let mut next = self.parent.as_deref();
        while let Some(origin) = next {
            chain.push(&origin.file);
            next = origin.parent.as_deref();
        }
        chain
    }
}

/// A path as it stands in a file, relative to the scenario.
pub(crate) fn beside(file: Option<&str>, name: &str) -> String {
    let mut parts: Vec<&str> = file.map_or_else(Vec::new, |file| file.split('/').collect());
    parts.pop();
    for part in name.split('/') {
        match (part, parts.last()) {
            (".", _) => {}
            ("..", Some(last)) if *last != ".." => {
                parts.pop();
            }
            (part, _) => parts.push(part),
        }
    }
    parts.join("/")
}

pub(crate) static INCLUDE: Shape = Shape::new(
    "include",
    "Puts the steps of a fragment in its place.",
    &[
        Field::required("file", FieldType::Text, "The fragment's file, relative to this one.")
            .such_as("fragments/outage.yaml"),
        Field::optional("with", FieldType::Mapping(&FieldType::Any), "Its parameters' values, by name."),
    ],
);

static FRAGMENT: Shape = Shape::new(
    "Fragment",
    "Steps that several scenarios include.",
    &[
        Field::required("apiVersion", FieldType::Word(&[API_VERSION]), "The version of the language."),
        Field::required("kind", FieldType::Word(&["Fragment"]), "Fragment."),
        Field::required("metadata", FieldType::Shape(&METADATA), "What it is called."),
        Field::required("spec", FieldType::Shape(&SPEC), "What it does and expects."),
    ],
);

static METADATA: Shape = Shape::new(
    "metadata",
    "What the fragment is called.",
    &[
        Field::required("name", FieldType::Text, "Lower-case letters, digits and hyphens."),
        Field::optional("description", FieldType::Text, "A sentence for those who include it."),
    ],
);

static SPEC: Shape = Shape::new(
    "spec",
    "What the fragment does and expects.",
    &[
        Field::optional(
            "parameters",
            FieldType::Mapping(&FieldType::Shape(&PARAMETER)),
            "What `${NAME}` stands for, by name.",
        ),
        Field::required("steps", FieldType::Steps, "The steps."),
    ],
);

static PARAMETER: Shape = Shape::new(
    "parameter",
    "A value that whoever includes the fragment gives.",
    &[
        Field::optional("default", FieldType::Any, "Its value where none is given; without it one must be."),
        Field::optional("about", FieldType::Text, "What it is, in a sentence."),
    ],
);

/// A fragment's file, opened.
pub(crate) struct Opened<'n> {
    /// Parameters with their defaults.
    pub parameters: BTreeMap<String, Option<Value>>,
    /// The list of its steps.
    pub steps: &'n Node,
}

/// Opens a fragment's tree.
pub(crate) fn open<'n>(reader: &mut Reader<'_>, root: &'n Node) -> Option<Opened<'n>> {
    if let Some(mistake) = stranger(root, "Fragment") {
        reader.mistakes = vec![mistake];
        return None;
    }
    let fields = reader.open(root, &FRAGMENT)?;
    check_kind(reader, &fields, "Fragment");
    if let Some(fields) = reader.open(fields.get("metadata")?, &METADATA) {
        fields.get("name").and_then(|node| read_name(reader, node));
    }
    let fields = reader.open(fields.get("spec")?, &SPEC)?;
    let mut parameters = BTreeMap::new();
    let node = fields.get("parameters");
    if let Some(Kind::List(items)) = node.map(|node| &node.kind) {
        // That it is no mapping is told below; its names are meant even so.
        parameters.extend(items.iter().filter_map(|item| Some((item.as_text()?.to_owned(), None))));
    }
    for entry in node.map_or(&[][..], |node| reader.map(node)) {
        if !is_instant_name(&entry.key) {
            let rule = "parameters are letters (a to z) and digits, beginning with a small letter";
            let remedy = rightly(&entry.key, rule);
            reader.wrong(&entry.key_span, format!("`{}` cannot name a parameter", entry.key), remedy);
        }
        let default = match reader.open(&entry.value, &PARAMETER) {
            Some(fields) => fields.get("default").map(Node::to_value),
            None => Some(entry.value.to_value()).filter(|value| !value.is_null()),
        };
        parameters.insert(entry.key.clone(), default);
    }
    let steps = fields.get("steps")?;
    if matches!(&steps.kind, Kind::List(items) if items.is_empty()) {
        reader.wrong(&steps.span, "a fragment without steps", "add at least one");
    }
    Some(Opened { parameters, steps })
}

/// A fragment by itself.
#[derive(Debug)]
pub struct Fragment;

impl Fragment {
    /// What a fragment file looks like.
    pub fn shape() -> &'static Shape {
        &FRAGMENT
    }

    /// Reads a fragment file by itself. What stands where a parameter without a default belongs is not known
    /// and passes; everything else is checked as in a scenario, whose boards may be any.
    ///
    /// # Errors
    /// All mistakes of the file.
    pub fn check(file: &str, source: &str, files: &Files<'_>) -> Result<(), Mistakes> {
        let mut mistakes = Vec::new();
        if let Some(root) = yaml::parse_one(source, &mut mistakes) {
            let mut reader = Reader::new(source);
            check(&mut reader, &root, files);
            mistakes.append(&mut reader.mistakes);
        }
        if mistakes.is_empty() { Ok(()) } else { Err(Mistakes::new(file, source, mistakes)) }
    }

    /// The JSON schema of fragment files.
    pub fn schema() -> Value {
        let mut schema = FRAGMENT.schema();
        schema["$schema"] = serde_json::json!("http://json-schema.org/draft-07/schema#");
        schema["title"] = serde_json::json!("rigor fragment");
        schema["definitions"] = crate::scenario::definitions();
        schema
    }
}

fn check(reader: &mut Reader<'_>, root: &Node, files: &Files<'_>) {
    let Some(opened) = open(reader, root) else { return };
    let values: BTreeMap<String, Value> =
        opened.parameters.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
    let open_names: Vec<&str> = opened
        .parameters
        .iter()
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let head = reader.mistakes.len();
    let mut row = Unrolled::new(files, true);
    row.list(reader, opened.steps, &Place::first(Section::Steps, &values));
    let boards = ('a'..='z').map(String::from).collect();
    let mut scope = Scope { boards, lone: true, ..Scope::default() };
    scope.values.extend(scope.boards.iter().cloned());
    scope.values.insert("namespace".to_owned());
    scope.values.extend(open_names.iter().map(|name| (*name).to_owned()));
    survey(&row.steps, &mut scope);
    let mut context = Context { reader, scope, files, section: Section::Steps, base: None };
    // What another fragment holds is checked with that one; here only its names count.
    for raw in &row.steps {
        if context.goes_on() {
            context.step(raw);
        }
    }
    let mut unknown = Vec::new();
    holes(opened.steps, &open_names, &mut unknown);
    let known = |mistake: &Mistake| {
        !unknown.iter().any(|hole| hole.start <= mistake.span.start && mistake.span.end <= hole.end)
    };
    let told = reader.mistakes.split_off(head);
    reader.mistakes.extend(told.into_iter().filter(known));
}

/// The places of texts whose value is not known yet.
fn holes(node: &Node, names: &[&str], found: &mut Vec<Range<usize>>) {
    let is_open = |text: &str| template::names(text).iter().any(|name| names.contains(name));
    match &node.kind {
        Kind::Text(text) => found.extend(is_open(text).then(|| node.span.clone())),
        Kind::List(items) => items.iter().for_each(|item| holes(item, names, found)),
        Kind::Map(entries) => {
            for entry in entries {
                found.extend(is_open(&entry.key).then(|| entry.key_span.clone()));
                holes(&entry.value, names, found);
            }
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_file_they_stand_in() {
        let check = |file, name, expected: &str| assert_eq!(beside(file, name), expected, "{file:?} {name}");
        check(None, "a.yaml", "a.yaml");
        check(None, "./f/../a.yaml", "a.yaml");
        check(Some("f/b.yaml"), "a.yaml", "f/a.yaml");
        check(Some("f/b.yaml"), "../a.yaml", "a.yaml");
        check(Some("b.yaml"), "../../a.yaml", "../../a.yaml");
    }
}
