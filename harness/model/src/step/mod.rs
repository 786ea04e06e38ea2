//! Steps: one verb each, and perhaps a name for the instant. Repeats and tables are unrolled before
//! anything is read, so that a plan is one row of steps.

mod unroll;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use crate::cel::Cel;
use crate::expect::read::is_reserved;
use crate::expr::{Expr, Instant, Length};
use crate::fragment::{Origin, beside};
use crate::kinds::ObjectKind;
use crate::mistake::{Mistake, nearest, place, suggestion};
use crate::reader::Reader;
use crate::template;
use crate::verbs::{Action, Class, Verb};
use crate::yaml::{self, Entry, Kind, Node};

pub(crate) use unroll::{Unrolled, survey};

/// The part of a scenario a step stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// What has to be there before the scenario proper.
    Setup,
    /// The scenario proper.
    Steps,
    /// Always run; never changes the verdict.
    Cleanup,
}

impl Section {
    /// The key in files.
    pub fn name(self) -> &'static str {
        match self {
            Section::Setup => "setup",
            Section::Steps => "steps",
            Section::Cleanup => "cleanup",
        }
    }
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Where it stands.
    pub section: Section,
    /// Its place among the steps, for people: `3`, or `4.2.1` for round 2 of the repeat at 4.
    pub number: String,
    /// The fragment it stands in, if it is not the scenario's own.
    pub fragment: Option<String>,
    /// The line of its file, from 1.
    pub line: usize,
    /// The step as it is written, on one line.
    pub sentence: String,
    /// The name of its instant.
    pub name: Option<String>,
    /// What it does or expects.
    pub action: Action,
}

/// Reads files that a scenario names; paths are relative to the scenario.
pub type Files<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// What steps may refer to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// The boards.
    pub boards: Vec<String>,
    /// Nodes that the scenario plays, anywhere.
    pub played: BTreeSet<String>,
    /// Names of all steps.
    pub all_names: BTreeSet<String>,
    /// Names of the steps so far.
    pub names: BTreeSet<String>,
    /// Names in `${…}` that have a value while the trial runs, so far.
    pub values: BTreeSet<String>,
    /// Whether any node's name may stand where a board's is asked for.
    pub observe: bool,
    /// Kinds of the scenario's own that are looked at, by the name of their stream.
    pub own_kinds: BTreeMap<&'static str, &'static ObjectKind>,
    /// Header fields of answers that are looked at, in lower case.
    pub heeded: BTreeSet<String>,
}

/// Everything that reading a step needs.
pub(crate) struct Context<'r, 's> {
    pub reader: &'r mut Reader<'s>,
    pub scope: Scope,
    pub files: &'r Files<'r>,
    pub section: Section,
    /// The fragment in which what is read stands: the files it names are beside that.
    pub base: Option<String>,
}

/// A step before it is read.
pub(crate) struct RawStep {
    pub section: Section,
    pub number: String,
    pub node: Node,
    /// The fragment that it comes from; places in `node` are places in that.
    pub origin: Option<Rc<Origin>>,
}

/// Whether a text can name a step or a value.
pub(crate) fn is_instant_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(|c| c.is_ascii_alphanumeric())
}

impl<'s> Context<'_, 's> {
    /// Reads a step and then lets later steps refer to it.
    pub fn step(&mut self, raw: &RawStep) -> Option<Step> {
        self.section = raw.section;
        let Some(origin) = &raw.origin else { return self.read_step(&raw.node, &raw.number) };
        let mut reader = Reader::new(&origin.source);
        let mut inner = Context {
            reader: &mut reader,
            scope: std::mem::take(&mut self.scope),
            files: self.files,
            section: raw.section,
            base: Some(origin.file.clone()),
        };
        let step = inner.read_step(&raw.node, &raw.number);
        self.scope = inner.scope;
        self.reader.mistakes.extend(reader.mistakes.into_iter().filter_map(|mistake| origin.told(mistake)));
        step
    }

    fn read_step(&mut self, node: &Node, number: &str) -> Option<Step> {
        let Kind::Map(entries) = &node.kind else {
            self.reader.wrong(
                &node.span,
                format!("a step is a mapping with one verb, not {}", node.describe()),
                "write for example `- power: {board: a, do: cut}`",
            );
            return None;
        };
        let verbs: Vec<_> =
            entries.iter().filter_map(|entry| Verb::named(&entry.key).map(|verb| (verb, entry))).collect();
        if let [(verb, entry)] = verbs.as_slice()
            && entry.value.kind == Kind::Null
            && self.outside(*verb, entry, entries)
        {
            self.known(node, *verb, &entry.value);
            return None;
        }
        let words: Vec<&str> = Verb::ALL.iter().map(|verb| verb.name()).collect();
        for entry in entries.iter().filter(|entry| Verb::named(&entry.key).is_none() && entry.key != "as") {
            let message = if verbs.is_empty() {
                format!("there is no verb `{}`", entry.key)
            } else {
                format!("beside `{}` only `as` may stand, not `{}`", verbs[0].1.key, entry.key)
            };
            let inside = verbs.first().and_then(|(verb, _)| inner_key(*verb, &entry.key));
            let remedy = inside.unwrap_or_else(|| suggestion(&entry.key, &words));
            self.reader.wrong(&entry.key_span, message, remedy);
        }
        let (verb, entry) = match verbs.as_slice() {
            [only] => *only,
            [] => {
                if entries.iter().all(|entry| entry.key == "as") {
                    self.reader.wrong(
                        &node.span,
                        "a step without a verb",
                        format!("add one of {}", words.join(", ")),
                    );
                }
                self.go_on(node, &[]);
                return None;
            }
            [first, second, ..] => {
                self.go_on(node, &verbs);
                self.reader.wrong(
                    &second.1.key_span,
                    format!("a step has one verb, and here are `{}` and `{}`", first.1.key, second.1.key),
                    "make two steps of it: each begins with `- `",
                );
                return None;
            }
        };
        if verb.class() == Class::Structure {
            self.reader.wrong(
                &entry.key_span,
                format!("`{}` takes no `as`, and does not stand in parallel", verb.name()),
                "name the steps inside",
            );
            self.go_on(node, &[]);
            return None;
        }
        let action = verb.read(self, &entry.value);
        let name = node.get("as").and_then(|node| self.name(node));
        self.known(node, verb, &entry.value);
        let action = action?;
        if let Action::Capture(capture) = &action {
            self.scope.values.extend(capture.names().into_iter().map(str::to_owned));
        }
        if self.scope.observe && verb.class() == Class::Act {
            self.reader.wrong(
                &entry.key_span,
                format!("an observed scenario does nothing, so it has no `{}`", verb.name()),
                "leave it out, or leave out `observe`",
            );
        }
        Some(Step {
            section: self.section,
            number: number.to_owned(),
            fragment: self.base.clone(),
            line: place(self.reader.source(), node.span.start).0,
            sentence: sentence(self.reader.source(), &node.span),
            name,
            action,
        })
    }

    /// What later steps may refer to after this one, even where something in it is wrong: a mistake is told once,
    /// not again wherever its name is used.
    fn known(&mut self, node: &Node, verb: Verb, value: &Node) {
        if let Some(name) = node.get("as").and_then(Node::as_text) {
            self.scope.names.insert(name.to_owned());
        }
        if let (Verb::Capture, Some(Kind::Map(names))) = (verb, value.get("fields").map(|node| &node.kind)) {
            self.scope.values.extend(names.iter().map(|entry| entry.key.clone()));
        }
        if let (Verb::Parallel, Kind::List(acts)) = (verb, &value.kind) {
            let names = acts.iter().filter_map(|act| act.get("as").and_then(Node::as_text));
            self.scope.names.extend(names.map(str::to_owned));
        }
    }

    /// Tells once that the keys of a verb stand beside it instead of inside, and reads them where they were meant.
    fn outside(&mut self, verb: Verb, entry: &Entry, entries: &[Entry]) -> bool {
        let crate::shape::FieldType::Shape(shape) = verb.value() else { return false };
        let keys = shape.keys();
        let inner: Vec<Entry> =
            entries.iter().filter(|entry| keys.contains(&entry.key.as_str())).cloned().collect();
        let Some(first) = inner.first() else { return false };
        let names: Vec<String> = inner.iter().map(|entry| format!("`{}`", entry.key)).collect();
        self.reader.wrong(
            &first.key_span,
            format!(
                "{} stand{} beside `{}` and not inside of it",
                names.join(", "),
                if names.len() == 1 { "s" } else { "" },
                verb.name()
            ),
            format!("indent what belongs to `{}` by four blanks more than its dash", verb.name()),
        );
        let span = entry.key_span.start..inner.last().map_or(entry.key_span.end, |last| last.value.span.end);
        let _ = verb.read(self, &Node { span, kind: Kind::Map(inner) });
        true
    }

    /// Reads what can be read of a step that has no verb, or several: what is wrong inside the verb that was meant.
    fn go_on(&mut self, node: &Node, verbs: &[(Verb, &Entry)]) {
        let Kind::Map(entries) = &node.kind else { return };
        let meant: Vec<(Verb, &Entry)> = if verbs.is_empty() {
            entries.iter().filter_map(|entry| meant(&entry.key).map(|verb| (verb, entry))).collect()
        } else {
            verbs.to_vec()
        };
        for (verb, entry) in &meant {
            let _ = verb.read(self, &entry.value);
            self.known(node, *verb, &entry.value);
        }
        if meant.is_empty()
            && let Some(name) = node.get("as").and_then(Node::as_text)
        {
            self.scope.names.insert(name.to_owned());
        }
    }

    fn name(&mut self, node: &Node) -> Option<String> {
        let name = self.reader.text(node)?;
        if !is_instant_name(&name) {
            self.reader.wrong(
                &node.span,
                format!("`{name}` cannot name an instant"),
                "use letters and digits, beginning with a small letter; a hyphen would be a minus",
            );
            return None;
        }
        if is_reserved(&name) {
            self.reader.wrong(&node.span, format!("`{name}` is a word of the language"), "use another name");
            return None;
        }
        Some(name)
    }

    /// An instant; a duration counts from the step's begin.
    pub fn instant(&mut self, node: &Node) -> Option<Instant> {
        let instant = match self.expr(node)? {
            Expr::Instant(instant) => instant,
            Expr::Length(length) => Instant::Plus(Box::new(Instant::Begin), length),
        };
        for name in instant.nodes().into_iter().filter(|name| template::names(name).is_empty()) {
            self.check_node(&node.span, name);
        }
        self.check_names(&node.span, &instant.value_names());
        Some(instant)
    }

    /// A duration.
    pub fn length(&mut self, node: &Node) -> Option<Length> {
        match self.expr(node)? {
            Expr::Length(length) => Some(length),
            Expr::Instant(instant) => {
                self.reader.wrong(
                    &node.span,
                    format!("a duration belongs here; `{instant}` is an instant"),
                    "write a duration such as 5s or checkPeriod + slack",
                );
                None
            }
        }
    }

    fn expr(&mut self, node: &Node) -> Option<Expr> {
        let all: Vec<&str> = self.scope.all_names.iter().map(String::as_str).collect();
        let expr = self.reader.expr(node, Some(&all))?;
        if let Expr::Instant(instant) = &expr
            && let Some(later) =
                instant.step_names().into_iter().find(|name| !self.scope.names.contains(*name))
        {
            self.reader.wrong(
                &node.span,
                format!("`{later}` names this step or a later one"),
                "refer to steps further up only",
            );
            return None;
        }
        Some(expr)
    }

    /// A condition in CEL about `roots`.
    pub fn cel(&mut self, node: &Node, roots: &[&str]) -> Option<Cel> {
        let text = self.reader.text(node)?;
        match Cel::parse(&text, roots, self.scope.values.iter().map(String::as_str)) {
            Ok(cel) => Some(cel),
            Err(mistake) => {
                let span = self.reader.inside(node, &text, &mistake.span);
                self.reader.wrong(&span, mistake.message, mistake.remedy);
                None
            }
        }
    }

    /// Notes names in `${…}` that nothing fills in.
    pub fn check_names(&mut self, span: &Range<usize>, used: &[&str]) {
        self.reader.check_names(span, used, &self.scope.values);
    }

    /// Whether the trial has a board of that name.
    pub fn is_board(&self, name: &str) -> bool {
        self.scope.boards.iter().any(|board| board == name)
    }

    /// Notes a board that the trial does not have.
    pub fn check_board(&mut self, span: &Range<usize>, board: &str) {
        if !self.is_board(board) && !self.scope.observe {
            let remedy = match self.scope.boards.as_slice() {
                [] => "ask for boards: spec.rig.boards".to_owned(),
                boards => format!("its boards are {}; ask for more with spec.rig.boards", boards.join(", ")),
            };
            self.reader.wrong(span, format!("the scenario has no board `{board}`"), remedy);
        }
    }

    /// Notes a node that is neither a board nor played.
    fn check_node(&mut self, span: &Range<usize>, node: &str) {
        if !self.is_board(node) && !self.scope.played.contains(node) && !self.scope.observe {
            let known: Vec<&str> =
                self.scope.boards.iter().chain(&self.scope.played).map(String::as_str).collect();
            self.reader.wrong(
                span,
                format!("`{node}` is neither a board nor a played node"),
                suggestion(node, &known),
            );
        }
    }

    /// The documents of a file that a step names. Mistakes in it are reported at the step.
    pub fn documents(&mut self, node: &Node, name: &str) -> Option<Vec<Node>> {
        let name = beside(self.base.as_deref(), name);
        let source = match (self.files)(&name) {
            Ok(source) => source,
            Err(error) => {
                self.reader.wrong(
                    &node.span,
                    format!("the file `{name}` cannot be read: {error}"),
                    "paths are relative to the file they stand in",
                );
                return None;
            }
        };
        let mut mistakes = Vec::new();
        let documents = yaml::parse_documents(&source, &mut mistakes);
        for mistake in mistakes {
            let (line, column) = place(&source, mistake.span.start);
            let message = format!("in {name}, line {line}, column {column}: {}", mistake.message);
            self.reader.mistakes.push(Mistake { span: node.span.clone(), message, remedy: mistake.remedy });
        }
        if documents.is_empty() {
            self.reader.wrong(&node.span, format!("the file `{name}` holds no object"), "write at least one");
            return None;
        }
        // Places in another file mean nothing here: what is wrong with its objects is told at the step.
        Some(documents.into_iter().map(|document| moved(document, &node.span)).collect())
    }
}

/// The node with all of it at one place.
fn moved(node: Node, span: &Range<usize>) -> Node {
    let kind = match node.kind {
        Kind::List(items) => Kind::List(items.into_iter().map(|item| moved(item, span)).collect()),
        Kind::Map(entries) => Kind::Map(
            entries
                .into_iter()
                .map(|entry| Entry {
                    key: entry.key,
                    key_span: span.clone(),
                    value: moved(entry.value, span),
                })
                .collect(),
        ),
        plain @ (Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_)) => plain,
    };
    Node { span: span.clone(), kind }
}

/// The verb that a word is, or is nearly.
fn meant(word: &str) -> Option<Verb> {
    if word == "as" {
        return None;
    }
    let words = Verb::ALL.iter().map(|verb| verb.name());
    Verb::named(word).or_else(|| Verb::named(nearest(word, words)?))
}

/// Where a key that stands beside a verb may have been meant to stand.
fn inner_key(verb: Verb, key: &str) -> Option<String> {
    let crate::shape::FieldType::Shape(shape) = verb.value() else { return None };
    shape.keys().contains(&key).then(|| {
        format!("`{key}` belongs inside `{}`: indent it further, or move it into the braces", verb.name())
    })
}

/// Reads `parallel`: acts only.
pub(crate) fn parallel(context: &mut Context<'_, '_>, node: &Node) -> Option<Vec<Step>> {
    let items = context.reader.list(node);
    if items.is_empty() {
        context.reader.wrong(&node.span, "nothing to do in parallel", "write a list of acts");
        return None;
    }
    let steps: Vec<Option<Step>> = items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let step = context.read_step(item, &format!("{}", index + 1))?;
            let verb = step.action.verb();
            if verb.class() != Class::Act || matches!(verb, Verb::Wait | Verb::Advance | Verb::Parallel) {
                context.reader.wrong(
                    &item.span,
                    format!("`{}` cannot stand in parallel", verb.name()),
                    "only acts can; put it after the parallel step",
                );
                return None;
            }
            Some(step)
        })
        .collect();
    steps.into_iter().collect()
}

/// The source of a step on one line, without the list's dash.
fn sentence(source: &str, span: &Range<usize>) -> String {
    let text = source.get(span.clone()).unwrap_or_default();
    let mut line = text
        .lines()
        .map(|line| line.trim().split(" #").next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect::<Vec<_>>()
        .join(" ");
    if line.chars().count() > 400 {
        line = line.chars().take(399).chain(['…']).collect();
    }
    line
}
