//! Steps: one verb each, and perhaps a name for the instant. Repeats and tables are unrolled before
//! anything is read, so that a plan is one row of steps.

mod context;
mod names;
mod unroll;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use crate::borrowed::{meant_key, meant_step};
use crate::constants::Constant;
use crate::expect::read::is_reserved;
use crate::expr::Instant;
use crate::fragment::Origin;
use crate::kinds::ObjectKind;
use crate::mistake::{nearest, suggestion};
use crate::reader::Reader;
use crate::verbs::{Action, Class, Verb};
use crate::yaml::{Entry, Kind, Node};

use names::Shows;
pub(crate) use names::{is_instant_name, rightly};
pub(crate) use unroll::{Place, Unrolled, survey};

/// What to do about a file that cannot be read.
pub(crate) const RELATIVE: &str =
    "write a path relative to the file it stands in, to a file below the folder of all suites";

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
    /// Second schedulers that run, so far.
    pub schedulers: BTreeSet<String>,
    /// Second schedulers that were started, so far.
    pub started: BTreeSet<String>,
    /// Whether this is a fragment by itself, of which it is not known what went before.
    pub lone: bool,
    /// Names of all steps.
    pub all_names: BTreeSet<String>,
    /// What they lead to.
    pub shows: BTreeMap<String, Shows>,
    /// Names of the steps so far.
    pub names: BTreeSet<String>,
    /// The place of the last step of each name so far, and whether it is an act.
    pub places: BTreeMap<String, (usize, bool)>,
    /// How many steps were read so far, those that stand in parallel as one.
    pub turn: usize,
    /// The constants that the scenario states.
    pub constants: BTreeMap<Constant, Duration>,
    /// What acts have as names of something, anywhere.
    pub sent: BTreeSet<String>,
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

impl<'s> Context<'_, 's> {
    /// Whether what is wrong so far leaves room for more.
    pub fn goes_on(&self) -> bool {
        !self.reader.is_full()
    }

    /// Reads a step and then lets later steps refer to it.
    pub fn step(&mut self, raw: &RawStep) -> Option<Step> {
        if self.scope.observe && self.section == Section::Setup && raw.section != Section::Setup {
            // Over a history from elsewhere the setup is left out, and what it named with it; where it happened is known.
            self.scope.names.clear();
            self.scope.values.retain(|value| value == "namespace");
        }
        self.section = raw.section;
        self.scope.turn += 1;
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
            let remedy = match verbs.first() {
                Some((verb, _)) => beside_verb(*verb, &entry.key),
                None => meant_step(&entry.key)
                    .map_or_else(|| suggestion(&entry.key, &words), |remedy| remedy.to_owned()),
            };
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
        if self.scope.observe && self.section == Section::Steps {
            self.check_observed(verb, &action, &entry.key_span);
        }
        Some(Step {
            section: self.section,
            number: number.to_owned(),
            fragment: self.base.clone(),
            line: self.reader.line(node.span.start),
            sentence: sentence(self.reader.source(), &node.span),
            name,
            action,
        })
    }

    /// That a step of an observed scenario can be judged over any history: nothing is done, and no window opens where the step
    /// happens to stand.
    fn check_observed(&mut self, verb: Verb, action: &Action, span: &Range<usize>) {
        if verb.class() == Class::Act {
            self.reader.wrong(
                span,
                format!("an observed scenario does nothing in its steps, so there is no `{}`", verb.name()),
                "let `setup` bring it about, or leave out `observe`",
            );
        }
        let windows = match action {
            Action::Expect(expect) => expect.window.instants(),
            Action::Never(crate::expect::Never { span, .. })
            | Action::Always(crate::expect::Always { span, .. })
            | Action::Unchanged(crate::expect::Unchanged { span, .. }) => vec![&span.from, &span.until],
            Action::Capture(_) | Action::Order(_) => Vec::new(),
            // No other verb expects anything.
            _ => return,
        };
        if windows.into_iter().flat_map(Instant::bases).any(|base| *base == Instant::Begin) {
            self.reader.wrong(
                span,
                "this window opens with the step, and in a history from elsewhere there are no steps",
                "say from which instant it counts: `from: mark(heartbeats-stopped)`, a captured step's name, or `start`",
            );
        }
    }

    /// What later steps may refer to after this one, even where something in it is wrong: a mistake is told once,
    /// not again wherever its name is used.
    fn known(&mut self, node: &Node, verb: Verb, value: &Node) {
        self.scope.names.extend(names::given(node).map(str::to_owned));
        let place = (self.scope.turn, verb.class() == Class::Act);
        self.scope.places.extend(names::given(node).map(|name| (name.to_owned(), place)));
        for key in ["fields", "body"] {
            if let (Verb::Capture, Some(Kind::Map(names))) = (verb, value.get(key).map(|node| &node.kind)) {
                self.scope.values.extend(names.iter().map(|entry| entry.key.clone()));
            }
        }
        if let (Verb::Parallel, Kind::List(acts)) = (verb, &value.kind) {
            self.scope.names.extend(acts.iter().flat_map(names::given).map(str::to_owned));
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
            names::refuse(self.reader, node, &name);
            return None;
        }
        if is_reserved(&name) {
            self.reader.wrong(&node.span, format!("`{name}` is a word of the language"), "use another name");
            return None;
        }
        Some(name)
    }
}

/// The verb that a word is, or is nearly.
fn meant(word: &str) -> Option<Verb> {
    if word == "as" {
        return None;
    }
    let words = Verb::ALL.iter().map(|verb| verb.name());
    Verb::named(word).or_else(|| Verb::named(nearest(word, words)?))
}

/// What to do about a key that stands beside a verb.
fn beside_verb(verb: Verb, key: &str) -> String {
    if let crate::shape::FieldType::Shape(shape) = verb.value() {
        let keys = shape.keys();
        if keys.contains(&key) {
            let verb = verb.name();
            return format!("`{key}` belongs inside `{verb}`: indent it further, or move it into the braces");
        }
        if let Some((_, remedy)) = meant_key(shape.name, &keys, key) {
            return format!("inside `{}` {remedy}", verb.name());
        }
        if let Some(near) = nearest(key, keys.into_iter().chain(["as"])) {
            return format!("did you mean `{near}`?");
        }
    }
    match (Verb::named(key), meant_step(key)) {
        (None, Some(remedy)) => remedy.to_owned(),
        (Some(_), _) | (None, None) => {
            "a step is one verb, and `as` if one likes: leave it out, or make a step of it".to_owned()
        }
    }
}

/// Reads `parallel`: acts only.
pub(crate) fn parallel(context: &mut Context<'_, '_>, node: &Node) -> Option<Vec<Step>> {
    let items = context.reader.some_list(node, "nothing to do in parallel", "write a list of acts")?;
    let steps: Vec<Option<Step>> = items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            if !context.goes_on() {
                return None;
            }
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
