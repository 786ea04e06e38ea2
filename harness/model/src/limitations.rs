//! Files of known limitations and quarantine: what is known of one implementation under test, outside of every scenario.
//!
//! A known limitation explains a failure and stays until it is mended; a quarantined trial runs and is told of, and
//! counts for nothing until a date. Each entry gives a reference, so that nobody has to guess why it stands there.

use std::fmt;

use crate::catalogue::Catalogue;
use crate::mistake::{Mistakes, suggestion};
use crate::reader::{Fields, Reader};
use crate::scenario::{API_VERSION, check_kind, read_name};
use crate::shape::{Field, FieldType, Shape};
use crate::stranger::stranger;
use crate::yaml::{self, Kind, Node};

/// What is known of an implementation under test.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limitations {
    /// Which implementation.
    pub name: String,
    /// The entries, in the order of the file: limitations, then quarantine.
    pub entries: Vec<Entry>,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which trials it is about.
    pub about: About,
    /// Where more is said: an address, a ticket, a page.
    pub reference: String,
    /// Why, in a sentence.
    pub reason: String,
    /// What it does for them.
    pub sort: EntrySort,
    /// Its first line in the file, from 1.
    pub line: usize,
}

/// Which trials an entry is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// Those of a scenario, called `area/scenario`; only one row of its table if a case is named.
    Scenario {
        /// `area/scenario`.
        name: String,
        /// The row.
        case: Option<String>,
    },
    /// Those that cite a requirement.
    Requirement(String),
}

/// What an entry does for the trials it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntrySort {
    /// Their failures are known.
    KnownLimitation,
    /// What comes of them does not count.
    Quarantine {
        /// The last day of it, `YYYY-MM-DD` in UTC; dates of that form are in order as texts are.
        until: String,
    },
}

impl EntrySort {
    /// Whether it does nothing any more on the day `today` (`YYYY-MM-DD`).
    pub fn is_expired(&self, today: &str) -> bool {
        match self {
            EntrySort::KnownLimitation => false,
            EntrySort::Quarantine { until } => until.as_str() < today,
        }
    }
}

impl About {
    /// Whether a trial (`area/scenario` or `area/scenario/case`) that cites these requirements is meant.
    pub fn is_about(&self, trial: &str, requirements: &[String]) -> bool {
        match self {
            About::Scenario { name, case } => {
                let rest = trial.strip_prefix(name.as_str());
                match case {
                    Some(case) => rest.is_some_and(|rest| rest.strip_prefix('/') == Some(case)),
                    None => rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
                }
            }
            About::Requirement(id) => requirements.contains(id),
        }
    }
}

impl fmt::Display for About {
    /// `area/scenario`, `area/scenario/case`, `requirement NODE-07`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            About::Scenario { name, case: None } => f.write_str(name),
            About::Scenario { name, case: Some(case) } => write!(f, "{name}/{case}"),
            About::Requirement(id) => write!(f, "requirement {id}"),
        }
    }
}

static LIMITATIONS: Shape = Shape::new(
    "Limitations",
    "What is known of one implementation under test.",
    &[
        Field::required("apiVersion", FieldType::Word(&[API_VERSION]), "The version of the language."),
        Field::required("kind", FieldType::Word(&["Limitations"]), "Limitations."),
        Field::required("metadata", FieldType::Shape(&METADATA), "Which implementation it is about."),
        Field::required("spec", FieldType::Shape(&SPEC), "What is known."),
    ],
);

static METADATA: Shape = Shape::new(
    "metadata",
    "Which implementation it is about.",
    &[
        Field::required("name", FieldType::Text, "Lower-case letters, digits and hyphens."),
        Field::optional("description", FieldType::Text, "A sentence for readers."),
    ],
);

static SPEC: Shape = Shape::new(
    "spec",
    "What is known.",
    &[
        Field::optional(
            "knownLimitations",
            FieldType::List(&FieldType::Shape(&KNOWN)),
            "Failures that are known and stay until they are mended.",
        ),
        Field::optional(
            "quarantine",
            FieldType::List(&FieldType::Shape(&QUARANTINED)),
            "Trials that run and are told of, and count for nothing until a date.",
        ),
    ],
);

const SCENARIO: Field =
    Field::optional("scenario", FieldType::Text, "area/scenario, as rigor list shows it.");
const CASE: Field = Field::optional("case", FieldType::Text, "Only this row of its table.");
const REFERENCE: Field =
    Field::required("reference", FieldType::Text, "Where more is said: an address, a ticket, a page.");
const REASON: Field = Field::required("reason", FieldType::Text, "Why, in a sentence.");

static KNOWN: Shape = Shape::new(
    "a known limitation",
    "Failures that are known.",
    &[
        SCENARIO,
        CASE,
        Field::optional("requirement", FieldType::Text, "All trials that cite it."),
        REFERENCE,
        REASON,
    ],
)
.exactly_one(&[&["scenario", "requirement"]])
.at_most_one(&[&["case", "requirement"]]);

static QUARANTINED: Shape = Shape::new(
    "a quarantine",
    "Trials that count for nothing until a date.",
    &[
        Field { required: true, ..SCENARIO },
        CASE,
        REFERENCE,
        REASON,
        Field::required("until", FieldType::Text, "The last day of it, YYYY-MM-DD in UTC."),
    ],
);

/// What entries may speak of.
pub struct Known<'a> {
    /// The catalogue of requirements.
    pub catalogue: &'a Catalogue,
    /// The names of a scenario's rows, by `area/scenario`; nothing where there is no such scenario.
    pub cases: &'a dyn Fn(&str) -> Option<Vec<String>>,
    /// All names of scenarios, for suggestions.
    pub scenarios: &'a dyn Fn() -> Vec<String>,
}

impl fmt::Debug for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Known")
    }
}

impl Limitations {
    /// Reads a file of limitations.
    ///
    /// # Errors
    /// All mistakes of the file, entries that speak of nothing there is among them.
    pub fn parse(file: &str, source: &str, known: &Known<'_>) -> Result<Limitations, Mistakes> {
        let mut mistakes = Vec::new();
        let root = yaml::parse_one(source, &mut mistakes);
        if let Some(mistake) = root.as_ref().and_then(|root| stranger(root, "Limitations")) {
            return Err(Mistakes::new(file, source, vec![mistake]));
        }
        let mut reader = Reader::new(source);
        let read = root.as_ref().and_then(|root| read(&mut reader, root, known));
        mistakes.append(&mut reader.mistakes);
        match read {
            Some(limitations) if mistakes.is_empty() => Ok(limitations),
            Some(_) | None => Err(Mistakes::new(file, source, mistakes)),
        }
    }

    /// The entry that a trial comes under on the day `today`: the first limitation, else the first quarantine that has not expired.
    pub fn entry(&self, trial: &str, requirements: &[String], today: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.about.is_about(trial, requirements) && !entry.sort.is_expired(today))
    }

    /// The JSON schema of such files.
    pub fn schema() -> serde_json::Value {
        let mut schema = LIMITATIONS.schema();
        schema["$schema"] = serde_json::json!("http://json-schema.org/draft-07/schema#");
        schema["title"] = serde_json::json!("rigor limitations");
        schema
    }
}

fn read(reader: &mut Reader<'_>, root: &Node, known: &Known<'_>) -> Option<Limitations> {
    let fields = reader.open(root, &LIMITATIONS)?;
    check_kind(reader, &fields, "Limitations");
    let metadata = reader.open(fields.get("metadata")?, &METADATA);
    let name =
        metadata.as_ref().and_then(|fields| fields.get("name")).and_then(|node| read_name(reader, node));
    let spec = reader.open(fields.get("spec")?, &SPEC)?;
    let mut entries: Vec<Entry> = Vec::new();
    for (key, shape) in [("knownLimitations", &KNOWN), ("quarantine", &QUARANTINED)] {
        for node in spec.get(key).map_or(&[][..], |list| reader.list(list)) {
            let Some(entry) = read_entry(reader, node, shape, known) else { continue };
            if let Some(first) = entries.iter().find(|other| other.about == entry.about) {
                let message =
                    format!("{} stands here for the second time, first on line {}", entry.about, first.line);
                reader.wrong(&node.span, message, "leave one of them: a trial comes under one entry");
            }
            entries.push(entry);
        }
    }
    Some(Limitations { name: name?, entries })
}

fn read_entry(
    reader: &mut Reader<'_>,
    node: &Node,
    shape: &'static Shape,
    known: &Known<'_>,
) -> Option<Entry> {
    let fields = reader.open(node, shape)?;
    let about = match fields.get("scenario") {
        Some(name) => read_scenario(reader, name, fields.get("case"), known),
        // A quarantine is never of a requirement, and has no such key.
        None if !shape.keys().contains(&"requirement") => None,
        None => fields.get("requirement").and_then(|id| read_requirement(reader, id, known.catalogue)),
    };
    let reference = fields.get("reference").and_then(|node| reader.text(node));
    let reason = fields.get("reason").and_then(|node| reader.text(node));
    let sort = read_sort(reader, &fields, shape);
    let (line, _) = crate::mistake::place(reader.source(), node.span.start);
    Some(Entry { about: about?, reference: reference?, reason: reason?, sort: sort?, line })
}

fn read_sort(reader: &mut Reader<'_>, fields: &Fields<'_>, shape: &'static Shape) -> Option<EntrySort> {
    if !shape.keys().contains(&"until") {
        return Some(EntrySort::KnownLimitation);
    }
    let node = fields.get("until")?;
    match &node.kind {
        Kind::Text(text) if is_day(text) => Some(EntrySort::Quarantine { until: text.clone() }),
        Kind::Text(_) | Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::List(_) | Kind::Map(_) => {
            let message = format!("{} is no day", node.describe());
            reader.wrong(&node.span, message, "write YYYY-MM-DD, for example 2027-03-31");
            None
        }
    }
}

fn read_scenario(
    reader: &mut Reader<'_>,
    node: &Node,
    case: Option<&Node>,
    known: &Known<'_>,
) -> Option<About> {
    let name = reader.text(node)?;
    let case = case.map(|node| Some((node, reader.text(node)?)));
    let Some(cases) = (known.cases)(&name) else {
        let all = (known.scenarios)();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let row = name.rsplit_once('/').filter(|(scenario, row)| {
            (known.cases)(scenario).is_some_and(|cases| cases.iter().any(|case| case == row))
        });
        let tail = format!("/{name}");
        let remedy = match crate::mistake::nearest(&name, all.iter().copied()) {
            _ if let Some((scenario, row)) = row => format!("write scenario: {scenario} and case: {row}"),
            None if let Some(whole) = all.iter().find(|it| it.ends_with(&tail)) => format!("write {whole}"),
            Some(near) => format!("did you mean {near}?"),
            None => "write area/scenario, as rigor list shows it; a row of its table stands under `case`"
                .to_owned(),
        };
        reader.wrong(&node.span, format!("no scenario is called {name}"), remedy);
        return None;
    };
    let case = match case {
        Some(Some((node, case))) if !cases.contains(&case) => {
            let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
            let remedy = if cases.is_empty() {
                "leave it out: that scenario has no table".to_owned()
            } else {
                suggestion(&case, &cases)
            };
            reader.wrong(&node.span, format!("{name} has no row {case}"), remedy);
            return None;
        }
        Some(Some((_, case))) => Some(case),
        Some(None) => return None,
        None => None,
    };
    Some(About::Scenario { name, case })
}

fn read_requirement(reader: &mut Reader<'_>, node: &Node, catalogue: &Catalogue) -> Option<About> {
    let id = reader.text(node)?;
    if catalogue.get(&id).is_none() {
        let remedy = match crate::mistake::nearest(&id, catalogue.iter().map(|row| row.id.as_str())) {
            Some(near) => format!("did you mean {near}?"),
            None => "ids stand in suites/requirements.yaml".to_owned(),
        };
        reader.wrong(&node.span, format!("no requirement is called {id}"), remedy);
        return None;
    }
    Some(About::Requirement(id))
}

/// Whether a text is a day of the calendar, `YYYY-MM-DD`.
fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (year.len(), month.len(), day.len()) != (4, 2, 2) || !parts.iter().all(digits) {
        return false;
    }
    let (Ok(year), Ok(month), Ok(day)) = (year.parse::<u32>(), month.parse::<u32>(), day.parse::<u32>())
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_calendar() {
        for (text, expected) in [
            ("2027-03-31", true),
            ("2028-02-29", true),
            ("2027-02-29", false),
            ("2100-02-29", false),
            ("2027-13-01", false),
            ("2027-04-31", false),
            ("2027-4-30", false),
            ("27-04-30", false),
            ("2027-04-00", false),
            ("+027-04-01", false),
            ("tomorrow", false),
        ] {
            assert_eq!(is_day(text), expected, "{text}");
        }
    }

    #[test]
    fn entries_are_about_a_scenario_a_row_or_a_requirement() {
        let scenario =
            |case: Option<&str>| About::Scenario { name: "node/loss".into(), case: case.map(str::to_owned) };
        let check = |about: &About, trial: &str, expected: bool| {
            assert_eq!(about.is_about(trial, &["NODE-03".to_owned()]), expected, "{about} {trial}");
        };
        check(&scenario(None), "node/loss", true);
        check(&scenario(None), "node/loss/short", true);
        check(&scenario(None), "node/loss-of-power", false);
        check(&scenario(Some("short")), "node/loss/short", true);
        check(&scenario(Some("short")), "node/loss/shorter", false);
        check(&scenario(Some("short")), "node/loss", false);
        check(&About::Requirement("NODE-03".into()), "any/thing", true);
        check(&About::Requirement("NODE-04".into()), "any/thing", false);
    }
}
