//! The catalogue of requirements (`suites/requirements.yaml`): what scenarios cite and reports group by.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::mistake::{Mistake, Mistakes};
use crate::reader::{Reader, word};
use crate::shape::{Field, FieldType, Shape};
use crate::yaml::{self, Kind, Node};

/// Whose behaviour a requirement, or a scenario, is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The small control plane for boards.
    Kube32,
    /// Kubernetes itself.
    Upstream,
    /// The same on either.
    Both,
    /// The board's side.
    Kubelet,
    /// The second scheduler.
    External,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Profile; 5] =
        [Profile::Kube32, Profile::Upstream, Profile::Both, Profile::Kubelet, Profile::External];

    /// The word for it in files.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Kube32 => "kube32",
            Profile::Upstream => "upstream",
            Profile::Both => "both",
            Profile::Kubelet => "kubelet",
            Profile::External => "external",
        }
    }

    /// Whether a scenario of this profile can show a requirement of `requirement`: what runs on either
    /// control plane shows nothing that only one of them does.
    pub fn suits(self, requirement: Profile) -> bool {
        match (self, requirement) {
            (Profile::Upstream | Profile::Both, Profile::Kube32)
            | (Profile::Kube32 | Profile::Both, Profile::Upstream) => false,
            (_, _) => true,
        }
    }
}

/// The words of [`Profile`], for shapes.
pub(crate) const PROFILE_NAMES: &[&str] = &["kube32", "upstream", "both", "kubelet", "external"];

/// Whether core conformance needs a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Feature {
    /// It does.
    Core,
    /// It is reported, but core conformance does not need it.
    Extended,
}

/// One behaviour that a conforming system shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    /// `NODE-03`.
    pub id: String,
    /// The heading it stands under: `node-lifecycle`.
    pub area: String,
    /// Whose behaviour it is.
    pub profile: Profile,
    /// Whether core conformance needs it.
    pub feature: Feature,
    /// What has to be true.
    pub must: String,
    /// When it has to be true.
    pub bounds: Vec<Bound>,
    /// An interpretation or a remark.
    pub note: Option<String>,
}

/// `[not before, not after]`, from an instant told in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The profile it is for, where a requirement has one for each.
    pub profile: Option<Profile>,
    /// Not before, in constants and durations; `None` where only prose can say it.
    pub not_before: Option<String>,
    /// Not after.
    pub not_after: Option<String>,
    /// From which instant, or of what.
    pub from: Option<String>,
}

/// All requirements, by id.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    requirements: BTreeMap<String, Requirement>,
}

static ROOT: Shape = Shape::new(
    "Catalogue",
    "The catalogue of requirements.",
    &[
        Field::required("version", FieldType::Whole { min: 2, max: 2 }, "Version of this form."),
        Field::required(
            "areas",
            FieldType::Mapping(&FieldType::List(&FieldType::Shape(&ROW))),
            "Rows by area.",
        ),
    ],
);

static ROW: Shape = Shape::new(
    "Requirement",
    "One observable behaviour.",
    &[
        Field::required("id", FieldType::Text, "Stable name, such as NODE-03."),
        Field::required("profile", FieldType::Word(PROFILE_NAMES), "Whose behaviour it is."),
        Field::optional(
            "feature",
            FieldType::Word(&["core", "extended"]),
            "Whether core conformance needs it.",
        ),
        Field::required("must", FieldType::Text, "What has to be true."),
        Field::optional("bounds", FieldType::List(&FieldType::Shape(&BOUND)), "When it has to be true."),
        Field::optional("note", FieldType::Text, "An interpretation or a remark."),
    ],
);

static BOUND: Shape = Shape::new(
    "Bound",
    "From an instant, not before and not after.",
    &[
        Field::optional("profile", FieldType::Word(PROFILE_NAMES), "The profile it is for."),
        Field::optional("notBefore", FieldType::Duration, "Not before; constants by name."),
        Field::optional("notAfter", FieldType::Duration, "Not after; constants by name."),
        Field::optional("from", FieldType::Text, "From which instant, or of what."),
    ],
);

impl Catalogue {
    /// Reads the catalogue.
    ///
    /// # Errors
    /// All mistakes of the file.
    pub fn parse(file: &str, source: &str) -> Result<Catalogue, Mistakes> {
        let mut mistakes = Vec::new();
        let root = yaml::parse_one(source, &mut mistakes);
        let mut catalogue = Catalogue::default();
        let mut reader = Reader::new(source);
        if let Some(root) = &root {
            catalogue.read(root, &mut reader);
        }
        mistakes.append(&mut reader.mistakes);
        if mistakes.is_empty() { Ok(catalogue) } else { Err(Mistakes::new(file, source, mistakes)) }
    }

    fn read(&mut self, root: &Node, reader: &mut Reader<'_>) {
        let Some(fields) = reader.open(root, &ROOT) else { return };
        let areas = match fields.get("areas").map(|node| &node.kind) {
            Some(Kind::Map(areas)) => areas,
            Some(_) | None => return,
        };
        for area in areas {
            for row in reader.list(&area.value) {
                let Some(requirement) = read_row(row, &area.key, reader) else { continue };
                let id = requirement.id.clone();
                if self.requirements.insert(id.clone(), requirement).is_some() {
                    reader.mistakes.push(
                        Mistake::new(row.span.clone(), format!("{id} stands in the catalogue twice"))
                            .remedy("give one of the rows another id"),
                    );
                }
            }
        }
    }

    /// The requirement of that id.
    pub fn get(&self, id: &str) -> Option<&Requirement> {
        self.requirements.get(id)
    }

    /// All requirements in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Requirement> {
        self.requirements.values()
    }
}

fn read_row(row: &Node, area: &str, reader: &mut Reader<'_>) -> Option<Requirement> {
    let fields = reader.open(row, &ROW)?;
    let bounds = fields.get("bounds").map(|node| reader.list(node)).unwrap_or_default();
    Some(Requirement {
        id: reader.text(fields.get("id")?)?,
        area: area.to_owned(),
        profile: word(reader, fields.get("profile")?, &Profile::ALL, Profile::name)?,
        feature: match fields.get("feature").and_then(Node::as_text) {
            Some("extended") => Feature::Extended,
            Some(_) | None => Feature::Core,
        },
        must: reader.text(fields.get("must")?)?,
        bounds: bounds.iter().filter_map(|node| read_bound(node, reader)).collect(),
        note: fields.get("note").and_then(|node| reader.text(node)),
    })
}

fn read_bound(node: &Node, reader: &mut Reader<'_>) -> Option<Bound> {
    let fields = reader.open(node, &BOUND)?;
    let mut length = |key| {
        fields
            .get(key)
            .and_then(|node| reader.length(node, Some(&BTreeSet::new())))
            .map(|length| length.to_string())
    };
    Some(Bound {
        not_before: length("notBefore"),
        not_after: length("notAfter"),
        profile: fields.get("profile").and_then(|node| word(reader, node, &Profile::ALL, Profile::name)),
        from: fields.get("from").and_then(|node| reader.text(node)),
    })
}
