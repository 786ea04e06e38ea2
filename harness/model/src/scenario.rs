//! Scenario files: reading them whole, reading only their head for listings, and their JSON schema.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::catalogue::{Catalogue, PROFILE_NAMES, Profile};
use crate::constants::Constant;
use crate::expect::Subject;
use crate::mistake::{Mistake, Mistakes, suggestion};
use crate::reader::{Fields, Reader, word};
use crate::shape::{Field, FieldType, Shape};
use crate::step::{Context, Files, RawStep, Scope, Section, Step, survey, unroll};
use crate::verbs::{Action, step_schema};
use crate::yaml::{self, Kind, Node};

/// The apiVersion of every file that people write.
pub const API_VERSION: &str = "rigor.dev/v1alpha1";

/// Something that a rig offers and a scenario may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Power of boards can be cut and restored.
    Power,
    /// Processors of boards can be stopped.
    Hang,
    /// Links of boards can be cut and healed.
    Link,
    /// Consoles of boards can be read.
    Console,
    /// The control plane can be stopped, killed and started.
    ControlPlane,
    /// kubectl can reach the control plane.
    Kubectl,
    /// Nothing else is on the cluster.
    ExclusiveCluster,
}

impl Capability {
    /// Every capability.
    pub const ALL: [Capability; 7] = [
        Capability::Power,
        Capability::Hang,
        Capability::Link,
        Capability::Console,
        Capability::ControlPlane,
        Capability::Kubectl,
        Capability::ExclusiveCluster,
    ];

    /// The word for it in files.
    pub fn name(self) -> &'static str {
        match self {
            Capability::Power => "power",
            Capability::Hang => "hang",
            Capability::Link => "link",
            Capability::Console => "console",
            Capability::ControlPlane => "control-plane",
            Capability::Kubectl => "kubectl",
            Capability::ExclusiveCluster => "exclusive-cluster",
        }
    }
}

/// The words of [`Capability`], for shapes.
pub(crate) const CAPABILITY_NAMES: &[&str] =
    &["power", "hang", "link", "console", "control-plane", "kubectl", "exclusive-cluster"];

/// One trial's worth of a scenario: a row of its table, or the whole of one without a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The file's name as it was given.
    pub file: String,
    /// Its name.
    pub name: String,
    /// The row of its table.
    pub case: Option<String>,
    /// Ids of requirements, one to five.
    pub requirements: Vec<String>,
    /// Whose behaviour it shows.
    pub profile: Profile,
    /// Words to filter by.
    pub tags: Vec<String>,
    /// A sentence for readers of reports.
    pub description: Option<String>,
    /// Names of its boards, in order.
    pub boards: Vec<String>,
    /// What the rig must offer: what it says and what its acts imply.
    pub needs: BTreeSet<Capability>,
    /// Constants that it wants otherwise.
    pub constants: BTreeMap<Constant, Duration>,
    /// Only expectations, over a history recorded elsewhere.
    pub observe: bool,
    /// Setup, steps and cleanup in one row, repeats unrolled. A step's index here is its index in the history.
    pub plan: Vec<Step>,
}

/// What a listing needs of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// Its name.
    pub name: String,
    /// The rows of its table; empty without one.
    pub cases: Vec<String>,
    /// Ids of requirements.
    pub requirements: Vec<String>,
    /// Whose behaviour it shows.
    pub profile: Profile,
    /// Words to filter by.
    pub tags: Vec<String>,
    /// A sentence for readers of reports.
    pub description: Option<String>,
}

static SCENARIO: Shape = Shape::new(
    "Scenario",
    "What is done to a small cluster, and what must be seen.",
    &[
        Field::required("apiVersion", FieldType::Word(&[API_VERSION]), "The version of the language."),
        Field::required("kind", FieldType::Word(&["Scenario"]), "Scenario."),
        Field::required("metadata", FieldType::Shape(&METADATA), "What it is called and what it shows."),
        Field::required("spec", FieldType::Shape(&SPEC), "What it does and expects."),
    ],
);

static METADATA: Shape = Shape::new(
    "metadata",
    "What the scenario is called and what it shows.",
    &[
        Field::required(
            "name",
            FieldType::Text,
            "Lower-case letters, digits and hyphens; unique among all suites.",
        ),
        Field::required(
            "requirements",
            FieldType::List(&FieldType::Text),
            "One to five ids of the catalogue.",
        ),
        Field::required("profile", FieldType::Word(PROFILE_NAMES), "Whose behaviour it shows."),
        Field::optional("tags", FieldType::List(&FieldType::Text), "Words to filter by."),
        Field::optional("description", FieldType::Text, "A sentence for readers of reports."),
        Field::optional("cases", FieldType::List(&FieldType::Text), "Names of the rows of its table."),
    ],
);

static SPEC: Shape = Shape::new(
    "spec",
    "What the scenario does and expects.",
    &[
        Field::optional("rig", FieldType::Shape(&RIG), "What the rig must offer."),
        Field::optional(
            "constants",
            FieldType::Mapping(&FieldType::Duration),
            "Constants that it wants otherwise.",
        ),
        Field::optional(
            "cases",
            FieldType::Mapping(&FieldType::Mapping(&FieldType::Any)),
            "The rows of its table.",
        ),
        Field::optional(
            "observe",
            FieldType::Flag,
            "true: only expectations, over a history recorded elsewhere.",
        ),
        Field::optional("setup", FieldType::Steps, "What has to be there before."),
        Field::required("steps", FieldType::Steps, "The steps."),
        Field::optional("cleanup", FieldType::Steps, "Always run; never changes the verdict."),
    ],
);

static RIG: Shape = Shape::new(
    "rig",
    "What the rig must offer.",
    &[
        Field::optional("boards", FieldType::Whole { min: 0, max: 26 }, "How many boards; none if left out."),
        Field::optional(
            "needs",
            FieldType::List(&FieldType::Word(CAPABILITY_NAMES)),
            "What it must be able to do.",
        ),
    ],
);

impl Head {
    /// Reads only the head of a scenario file.
    ///
    /// # Errors
    /// Mistakes of the YAML and of the head; those of the steps are not looked for.
    pub fn read(file: &str, source: &str) -> Result<Head, Mistakes> {
        let mut mistakes = Vec::new();
        let root = yaml::parse_one(source, &mut mistakes);
        let mut reader = Reader::new(source);
        let head = root.as_ref().and_then(|root| {
            let fields = reader.open(root, &SCENARIO)?;
            read_head(&mut reader, fields.get("metadata")?, None)
        });
        mistakes.append(&mut reader.mistakes);
        match head {
            Some(head) if mistakes.is_empty() => Ok(head),
            Some(_) | None => Err(Mistakes::new(file, source, mistakes)),
        }
    }

    /// The names of its trials: the scenario's own, or one a row.
    pub fn trials(&self) -> Vec<(String, Option<String>)> {
        if self.cases.is_empty() {
            return vec![(self.name.clone(), None)];
        }
        self.cases.iter().map(|case| (format!("{}/{case}", self.name), Some(case.clone()))).collect()
    }
}

impl Scenario {
    /// Reads a scenario file: one scenario a row of its table. `files` reads what it names, by paths
    /// relative to it.
    ///
    /// # Errors
    /// All mistakes of the file.
    pub fn parse(
        file: &str,
        source: &str,
        catalogue: &Catalogue,
        files: &Files<'_>,
    ) -> Result<Vec<Scenario>, Mistakes> {
        let mut mistakes = Vec::new();
        let root = yaml::parse_one(source, &mut mistakes);
        let mut scenarios = Vec::new();
        if let Some(root) = &root {
            let mut reader = Reader::new(source);
            scenarios = read_scenarios(&mut reader, file, root, catalogue, files).unwrap_or_default();
            mistakes.append(&mut reader.mistakes);
        }
        if mistakes.is_empty() && !scenarios.is_empty() {
            return Ok(scenarios);
        }
        Err(Mistakes::new(file, source, mistakes))
    }

    /// `NAME`, or `NAME/CASE`.
    pub fn title(&self) -> String {
        match &self.case {
            Some(case) => format!("{}/{case}", self.name),
            None => self.name.clone(),
        }
    }

    /// The JSON schema of scenario files.
    pub fn schema() -> Value {
        let mut schema = SCENARIO.schema();
        schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        schema["title"] = json!("rigor scenario");
        schema["definitions"] = json!({"step": step_schema()});
        schema
    }
}

fn read_scenarios(
    reader: &mut Reader<'_>,
    file: &str,
    root: &Node,
    catalogue: &Catalogue,
    files: &Files<'_>,
) -> Option<Vec<Scenario>> {
    let fields = reader.open(root, &SCENARIO)?;
    check_kind(reader, &fields, "Scenario");
    let head = read_head(reader, fields.get("metadata")?, Some(catalogue));
    let spec = fields.get("spec")?;
    let fields = reader.open(spec, &SPEC)?;
    let rows = read_rows(reader, &fields, head.as_ref(), fields.get("cases"));
    let (boards, stated) = read_rig(reader, fields.get("rig"));
    let constants = read_constants(reader, fields.get("constants"), true);
    let observe = fields.get("observe").and_then(|node| reader.flag(node)).unwrap_or(false);
    let mut scenarios = Vec::new();
    for (case, values) in rows {
        let plan = read_plan(reader, &fields, &boards, observe, &values, files);
        let Some(head) = &head else { continue };
        let mut needs = stated.clone();
        plan.iter().for_each(|step| imply(&step.action, &mut needs));
        scenarios.push(Scenario {
            file: file.to_owned(),
            name: head.name.clone(),
            case,
            requirements: head.requirements.clone(),
            profile: head.profile,
            tags: head.tags.clone(),
            description: head.description.clone(),
            boards: boards.clone(),
            needs,
            constants: constants.clone(),
            observe,
            plan,
        });
    }
    Some(scenarios)
}

/// Checks apiVersion and kind of a file.
pub(crate) fn check_kind(reader: &mut Reader<'_>, fields: &Fields<'_>, kind: &'static str) {
    if let Some(node) = fields.get("apiVersion") {
        if node.as_text() != Some(API_VERSION) {
            reader.wrong(
                &node.span,
                format!("{} is no known version", node.describe()),
                format!("write {API_VERSION}"),
            );
        }
    }
    if let Some(node) = fields.get("kind") {
        if node.as_text() != Some(kind) {
            reader.wrong(
                &node.span,
                format!("{} is not the kind that belongs here", node.describe()),
                format!("write {kind}"),
            );
        }
    }
}

/// Whether a text is lower-case letters, digits and hyphens, at most 63.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && !text.ends_with('-')
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn read_head(reader: &mut Reader<'_>, node: &Node, catalogue: Option<&Catalogue>) -> Option<Head> {
    let fields = reader.open(node, &METADATA)?;
    let name = fields.get("name").and_then(|node| read_name(reader, node));
    let profile = fields.get("profile").and_then(|node| word(reader, node, &Profile::ALL, Profile::name));
    let ids = fields.get("requirements")?;
    let items = reader.list(ids);
    if !(1..=5).contains(&items.len()) {
        let remedy = if items.is_empty() {
            "cite at least one requirement of the catalogue"
        } else {
            "cite at most five; more is two scenarios"
        };
        reader.wrong(&ids.span, format!("{} requirements are cited", items.len()), remedy);
    }
    let mut requirements: Vec<String> = Vec::new();
    for item in items {
        let Some(id) = reader.text(item) else { continue };
        if requirements.contains(&id) {
            reader.wrong(&item.span, format!("{id} is cited twice"), "once is enough");
        }
        if let Some(catalogue) = catalogue {
            check_requirement(reader, item, &id, profile, catalogue);
        }
        requirements.push(id);
    }
    let mut texts = |key| match fields.get(key) {
        Some(node) => reader.list(node).iter().filter_map(|item| reader.text(item)).collect(),
        None => Vec::new(),
    };
    let (tags, cases): (Vec<String>, Vec<String>) = (texts("tags"), texts("cases"));
    if let Some(node) = fields.get("cases") {
        for item in reader.list(node) {
            let _ = read_name(reader, item);
        }
    }
    let description = fields.get("description").and_then(|node| reader.text(node));
    Some(Head { name: name?, cases, requirements, profile: profile?, tags, description })
}

pub(crate) fn read_name(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let name = reader.text(node)?;
    if !is_name(&name) {
        reader.wrong(
            &node.span,
            format!("`{name}` cannot be a name"),
            "use lower-case letters, digits and hyphens, at most 63",
        );
        return None;
    }
    Some(name)
}

fn check_requirement(
    reader: &mut Reader<'_>,
    node: &Node,
    id: &str,
    profile: Option<Profile>,
    catalogue: &Catalogue,
) {
    let Some(requirement) = catalogue.get(id) else {
        let mut near: Vec<&str> = catalogue.iter().map(|row| row.id.as_str()).collect();
        let remedy = match crate::mistake::nearest(id, near.iter().copied()) {
            Some(candidate) => format!("did you mean {candidate}?"),
            None => {
                let area = id.split('-').next().unwrap_or_default();
                near.retain(|candidate| candidate.starts_with(area) && !area.is_empty());
                if near.is_empty() {
                    "ids stand in suites/requirements.yaml".to_owned()
                } else {
                    format!("known are {}", near.join(", "))
                }
            }
        };
        reader.wrong(&node.span, format!("no requirement is called {id}"), remedy);
        return;
    };
    if let Some(profile) = profile {
        if !profile.suits(requirement.profile) {
            reader.wrong(
                &node.span,
                format!(
                    "{id} is a requirement of the profile {}, and the scenario's is {}",
                    requirement.profile.name(),
                    profile.name()
                ),
                format!("write profile: {}, or cite another requirement", requirement.profile.name()),
            );
        }
    }
}

/// The rows of a table as static values; one row without values if there is no table.
fn read_rows(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    head: Option<&Head>,
    table: Option<&Node>,
) -> Vec<(Option<String>, BTreeMap<String, Value>)> {
    let names: &[String] = head.map_or(&[], |head| &head.cases);
    let Some(table) = table else {
        if !names.is_empty() {
            if let Some(steps) = fields.get("steps") {
                reader.wrong(
                    &steps.span,
                    "metadata.cases names rows, and there is no table",
                    "add spec.cases with a row for each",
                );
            }
        }
        return vec![(None, BTreeMap::new())];
    };
    let entries = reader.map(table);
    for name in names {
        if !entries.iter().any(|entry| &entry.key == name) {
            reader.wrong(
                &table.span,
                format!("the table has no row `{name}`"),
                "metadata.cases and spec.cases have the same names",
            );
        }
    }
    let mut rows = Vec::new();
    let mut keys: Option<BTreeSet<&str>> = None;
    for entry in entries {
        if head.is_some() && !names.contains(&entry.key) {
            reader.wrong(
                &entry.key_span,
                format!("metadata.cases does not name the row `{}`", entry.key),
                "metadata.cases and spec.cases have the same names",
            );
        }
        let cells = reader.map(&entry.value);
        let found: BTreeSet<&str> = cells.iter().map(|cell| cell.key.as_str()).collect();
        match &keys {
            Some(keys) if *keys != found => {
                let keys: Vec<&str> = keys.iter().copied().collect();
                reader.wrong(
                    &entry.key_span,
                    format!("the row `{}` has other keys than the first", entry.key),
                    format!("each row has {}", keys.join(", ")),
                );
            }
            Some(_) => {}
            None => keys = Some(found),
        }
        let mut values: BTreeMap<String, Value> =
            cells.iter().map(|cell| (cell.key.clone(), cell.value.to_value())).collect();
        values.insert("case".to_owned(), json!(entry.key));
        rows.push((Some(entry.key.clone()), values));
    }
    rows
}

fn read_rig(reader: &mut Reader<'_>, node: Option<&Node>) -> (Vec<String>, BTreeSet<Capability>) {
    let Some(fields) = node.and_then(|node| reader.open(node, &RIG)) else {
        return (Vec::new(), BTreeSet::new());
    };
    let count = fields.get("boards").and_then(|node| reader.whole(node, 0..=26)).unwrap_or(0);
    let boards = ('a'..='z').take(count as usize).map(String::from).collect();
    (boards, read_capabilities(reader, fields.get("needs")))
}

pub(crate) fn read_capabilities(reader: &mut Reader<'_>, node: Option<&Node>) -> BTreeSet<Capability> {
    let Some(node) = node else { return BTreeSet::new() };
    reader
        .list(node)
        .iter()
        .filter_map(|item| word(reader, item, &Capability::ALL, Capability::name))
        .collect()
}

/// Constants by name. A scenario may not change the slack, which is the observer's.
pub(crate) fn read_constants(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
    scenario: bool,
) -> BTreeMap<Constant, Duration> {
    let mut constants = BTreeMap::new();
    let Some(node) = node else { return constants };
    for entry in reader.map(node) {
        let Some(constant) = Constant::named(&entry.key) else {
            let known = Constant::ALL.map(Constant::name);
            reader.wrong(
                &entry.key_span,
                format!("there is no constant `{}`", entry.key),
                suggestion(&entry.key, &known),
            );
            continue;
        };
        if scenario && constant == Constant::Slack {
            reader.wrong(&entry.key_span, "the slack is the rig's, not the scenario's", "leave it out");
            continue;
        }
        let length = if matches!(constant, Constant::LeaseDuration | Constant::TolerationSeconds) {
            reader.whole_seconds(&entry.value)
        } else {
            reader.duration(&entry.value)
        };
        match length {
            Some(Duration::ZERO) if constant != Constant::TolerationSeconds => {
                reader.wrong(
                    &entry.value.span,
                    format!("{} cannot be zero", constant.name()),
                    "write for example 1s",
                );
            }
            Some(length) => {
                constants.insert(constant, length);
            }
            None => {}
        }
    }
    constants
}

fn read_plan(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    boards: &[String],
    observe: bool,
    values: &BTreeMap<String, Value>,
    files: &Files<'_>,
) -> Vec<Step> {
    let mut row: Vec<RawStep> = Vec::new();
    for section in [Section::Setup, Section::Steps, Section::Cleanup] {
        if let Some(list) = fields.get(section.name()) {
            unroll(reader, section, list, "", values, &mut row);
        }
    }
    if let Some(steps) = fields.get("steps") {
        if matches!(&steps.kind, Kind::List(items) if items.is_empty()) {
            reader.mistakes.push(
                Mistake::new(steps.span.clone(), "a scenario without steps").remedy("add at least one"),
            );
        }
    }
    let mut scope = Scope { boards: boards.to_vec(), observe, ..Scope::default() };
    scope.values.extend(boards.iter().cloned());
    scope.values.insert("namespace".to_owned());
    survey(&row, &mut scope);
    let mut context = Context { reader, scope, files, section: Section::Setup };
    row.iter().filter_map(|raw| context.step(raw)).collect()
}

/// What an action needs of the rig.
fn imply(action: &Action, needs: &mut BTreeSet<Capability>) {
    let subject = |subject: &Subject| match subject {
        Subject::Console { .. } => Some(Capability::Console),
        Subject::Objects(_) | Subject::Requests(_) => None,
    };
    let need = match action {
        Action::Power(power) => match power.act {
            crate::act::PowerAct::Hang | crate::act::PowerAct::Resume => Some(Capability::Hang),
            crate::act::PowerAct::Cut | crate::act::PowerAct::Restore | crate::act::PowerAct::Cycle => {
                Some(Capability::Power)
            }
        },
        Action::Link(_) => Some(Capability::Link),
        Action::ControlPlane(_) => Some(Capability::ControlPlane),
        Action::Kubectl(_) => Some(Capability::Kubectl),
        Action::Parallel(steps) => {
            steps.iter().for_each(|step| imply(&step.action, needs));
            None
        }
        Action::Expect(expect) => subject(&expect.what.subject),
        Action::Never(never) => subject(&never.what.subject),
        Action::Always(always) => subject(&always.what.subject),
        Action::Apply(_)
        | Action::Create(_)
        | Action::Replace(_)
        | Action::Patch(_)
        | Action::Delete(_)
        | Action::Scale(_)
        | Action::Cordon(_)
        | Action::Uncordon(_)
        | Action::Bind(_)
        | Action::Request(_)
        | Action::Node(_)
        | Action::Wait(_)
        | Action::Unchanged(_)
        | Action::Order(_)
        | Action::Capture(_) => None,
    };
    needs.extend(need);
}
