//! Scenario files: reading them whole, reading only their head for listings, and their JSON schema.

mod head;
mod parts;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::capability::{CAPABILITY_NAMES, Capability, imply};
use crate::catalogue::{Catalogue, PROFILE_NAMES, Profile};
use crate::constants::{Constant, OVERRIDES};
use crate::faults::{FAULT_NAMES, Withheld};
use crate::foreign::bare_board;
use crate::kinds::ObjectKind;
use crate::mistake::{Mistake, Mistakes, place};
use crate::pattern;
use crate::reader::{Fields, Reader};
use crate::shape::{Field, FieldType, Shape};
use crate::step::{Context, Files, Place, Scope, Section, Step, Unrolled, survey};
use crate::stranger::stranger;
use crate::verbs::step_schema;
use crate::yaml::{self, Kind, Node};

use head::read_head;
pub(crate) use head::read_name;
use parts::{RigPart, read_flags, read_rig, read_rows, read_withheld, tell_cells};
pub(crate) use parts::{read_capabilities, read_constants};

/// The apiVersion of every file that people write.
pub const API_VERSION: &str = "rigor.dev/v1alpha1";

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
    /// Bytes of PSRAM of those boards that are to have so much; the others have what the rig's boards have.
    pub psram: BTreeMap<String, u32>,
    /// What the rig must offer: what it says and what its acts imply.
    pub needs: BTreeSet<Capability>,
    /// Constants that it wants otherwise.
    pub constants: BTreeMap<Constant, Duration>,
    /// Flags that it wants the control plane to be started with, besides the rig's own: `--NAME=VALUE`.
    pub flags: Vec<String>,
    /// Faults that do not strike in it.
    pub withheld: Option<Withheld>,
    /// Its steps only expect, and hold over a history recorded elsewhere, too; what is in its setup brings the situation about on rigs.
    pub observe: bool,
    /// Where a board's letter stands as it is in a text of the API, with the line: it names a Node only on rigs
    /// that call their Nodes so.
    pub bare_board: Option<(String, usize)>,
    /// Kinds that it looks at and that are in no table; a rig watches them when it is asked to.
    pub own_kinds: Vec<&'static ObjectKind>,
    /// Header fields of answers that its expectations look at, in lower case; acts heed their own.
    pub heeded: BTreeSet<String>,
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
            "Lower-case letters, digits and hyphens; unique among all suites, and the file's name.",
        )
        .such_as("power-cut-evicts"),
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
        Field::optional(
            "cases",
            FieldType::Mapping(&FieldType::Mapping(&FieldType::Any)),
            "The rows of its table.",
        ),
        Field::optional("rig", FieldType::Shape(&RIG), "What the rig must offer."),
        Field::optional(
            "constants",
            FieldType::Shape(&OVERRIDES),
            "Constants that it wants otherwise; all others come from the rig.",
        ),
        Field::optional(
            "controlPlane",
            FieldType::Shape(&CONTROL_PLANE),
            "How the control plane is to be started.",
        ),
        Field::optional(
            "faults",
            FieldType::Shape(&FAULTS),
            "Which injected faults break what it says, so that they do not strike in it.",
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

static CONTROL_PLANE: Shape = Shape::new(
    "controlPlane",
    "How the control plane is to be started.",
    &[Field::required(
        "flags",
        FieldType::List(&FieldType::Text),
        "Flags besides those of the rig, as --NAME=VALUE or --NAME.",
    )
    .such_as("[--default-scheduler-profile=upstream]")],
);

static FAULTS: Shape = Shape::new(
    "faults",
    "Which injected faults break what it says, so that they do not strike in it.",
    &[
        Field::required(
            "without",
            FieldType::List(&FieldType::Word(FAULT_NAMES)),
            "Kinds of faults that do not strike; one at least. They are drawn as ever, and counted.",
        )
        .such_as("[power-cut]"),
        Field::required(
            "because",
            FieldType::Text,
            "One sentence: what the scenario says that does not hold with them.",
        )
        .such_as("The count of restarts begins anew when the board does."),
    ],
);

static RIG: Shape = Shape::new(
    "rig",
    "What the rig must offer.",
    &[
        Field::optional(
            "boards",
            FieldType::Whole { min: 0, max: 26 },
            "How many boards; they are called a, b, c ….",
        )
        .usually("0"),
        Field::optional(
            "psram",
            FieldType::Mapping(&FieldType::Any),
            "PSRAM of boards that are to have some, by board, as quantities.",
        )
        .such_as("{a: 2Mi}"),
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
        if let Some(mistake) = root.as_ref().and_then(|root| stranger(root, "Scenario")) {
            return Err(Mistakes::new(file, source, vec![mistake]));
        }
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
        if let Some(mistake) = root.as_ref().and_then(|root| stranger(root, "Scenario")) {
            return Err(Mistakes::new(file, source, vec![mistake]));
        }
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

    /// What a scenario file looks like.
    pub fn shape() -> &'static Shape {
        &SCENARIO
    }

    /// The JSON schema of scenario files.
    pub fn schema() -> Value {
        let mut schema = SCENARIO.schema();
        schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        schema["title"] = json!("rigor scenario");
        schema["definitions"] = definitions();
        schema
    }
}

/// What schemas of files with steps refer to.
pub(crate) fn definitions() -> Value {
    json!({"step": step_schema(), "pattern": pattern::schema()})
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
    let head = fields.get("metadata").and_then(|metadata| read_head(reader, metadata, Some(catalogue)));
    let spec = fields.get("spec")?;
    let fields = reader.open(spec, &SPEC)?;
    let RigPart { boards, psram, needs: stated } = read_rig(reader, fields.get("rig"));
    let rows = read_rows(reader, &fields, head.as_ref(), &boards, fields.get("cases"));
    let constants = read_constants(reader, fields.get("constants"), true);
    let withheld = read_withheld(reader, fields.get("faults"));
    let observe = fields.get("observe").and_then(|node| reader.flag(node)).unwrap_or(false);
    let mut scenarios = Vec::new();
    for (case, values) in rows {
        if reader.is_full() {
            break;
        }
        let flags = read_flags(reader, fields.get("controlPlane"), &values);
        let told = reader.mistakes.len();
        let Planned { plan, bare_board, own_kinds, heeded } =
            read_plan(reader, &fields, &boards, (observe, &constants), &values, files);
        let row = case.as_deref().zip(fields.get("cases"));
        if let Some((case, cells)) = row.and_then(|(case, table)| Some((case, table.get(case)?))) {
            tell_cells(reader, told, case, cells);
        }
        let Some(head) = &head else { continue };
        let mut needs = stated.clone();
        plan.iter().for_each(|step| imply(&step.action, &mut needs));
        needs.extend((!flags.is_empty()).then_some(Capability::ControlPlaneFlags));
        scenarios.push(Scenario {
            file: file.to_owned(),
            name: head.name.clone(),
            case,
            requirements: head.requirements.clone(),
            profile: head.profile,
            tags: head.tags.clone(),
            description: head.description.clone(),
            boards: boards.clone(),
            psram: psram.clone(),
            needs,
            constants: constants.clone(),
            flags: flags.clone(),
            withheld: withheld.clone(),
            observe,
            bare_board,
            own_kinds,
            heeded,
            plan,
        });
    }
    Some(scenarios)
}

/// Checks apiVersion and kind of a file.
pub(crate) fn check_kind(reader: &mut Reader<'_>, fields: &Fields<'_>, kind: &'static str) {
    if let Some(node) = fields.get("apiVersion")
        && node.as_text() != Some(API_VERSION)
    {
        reader.wrong(
            &node.span,
            format!("{} is no known version", node.describe()),
            format!("write {API_VERSION}"),
        );
    }
    if let Some(node) = fields.get("kind")
        && node.as_text() != Some(kind)
    {
        reader.wrong(
            &node.span,
            format!("{} is not the kind that belongs here", node.describe()),
            format!("write {kind}"),
        );
    }
}

/// A plan, and what was found out while it was read.
struct Planned {
    plan: Vec<Step>,
    bare_board: Option<(String, usize)>,
    own_kinds: Vec<&'static ObjectKind>,
    heeded: BTreeSet<String>,
}

fn read_plan(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    boards: &[String],
    (observe, constants): (bool, &BTreeMap<Constant, Duration>),
    values: &BTreeMap<String, Value>,
    files: &Files<'_>,
) -> Planned {
    let mut row = Unrolled::new(files, false);
    for section in [Section::Setup, Section::Steps, Section::Cleanup] {
        if let Some(list) = fields.get(section.name()) {
            row.list(reader, list, &Place::first(section, values));
        }
    }
    if let Some(steps) = fields.get("steps")
        && matches!(&steps.kind, Kind::List(items) if items.is_empty())
    {
        reader
            .mistakes
            .push(Mistake::new(steps.span.clone(), "a scenario without steps").remedy("add at least one"));
    }
    let constants = constants.clone();
    let mut scope = Scope { boards: boards.to_vec(), observe, constants, ..Scope::default() };
    scope.values.extend(boards.iter().cloned());
    scope.values.insert("namespace".to_owned());
    let row = row.steps;
    survey(&row, &mut scope);
    let bare = row.iter().find_map(|raw| bare_board(&raw.node, boards));
    let bare = bare.map(|(board, at)| (board.to_owned(), place(reader.source(), at).0));
    let mut context = Context { reader, scope, files, section: Section::Setup, base: None };
    let plan = row.iter().map_while(|raw| context.goes_on().then(|| context.step(raw))).flatten().collect();
    let own_kinds = context.scope.own_kinds.into_values().collect();
    Planned { plan, bare_board: bare, own_kinds, heeded: context.scope.heeded }
}
