//! Everything that is wrong with scenario, rig and limitations files, and what is probably wrong: one finding a mistake.
//!
//! Mistakes of one file come from its reader. What is wrong only between files is found here: a name that two files
//! have, a file called otherwise than what is in it, a capability that no rig offers.

use crate::limits;
use crate::suite::{FragmentFile, ScenarioFile, SuiteError, Suites};
use rigor_model::catalogue::Catalogue;
use rigor_model::mistake::{Mistake, Mistakes};
use rigor_model::yaml::{self, Kind, Node};
use rigor_model::{Capability, Rig, Scenario};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It is wrong: nothing of the file is run.
    Error,
    /// It is probably not meant so.
    Warning,
}

/// What was found in one file.
#[derive(Debug, Clone)]
pub struct Found {
    /// How sure all of it is.
    pub severity: Severity,
    /// The mistakes with their places.
    pub mistakes: Mistakes,
}

/// One finding, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding<'a> {
    /// The file as it was named.
    pub file: &'a str,
    /// How sure it is.
    pub severity: Severity,
    /// Line of its begin, from 1.
    pub line: usize,
    /// Column of its begin in characters, from 1.
    pub column: usize,
    /// Line of its end.
    pub end_line: usize,
    /// Column behind its end.
    pub end_column: usize,
    /// What is wrong.
    pub message: &'a str,
    /// What would be right.
    pub remedy: Option<&'a str>,
}

impl Found {
    /// Each finding by itself.
    pub fn findings(&self) -> impl Iterator<Item = Finding<'_>> {
        self.mistakes.iter().map(|mistake| {
            let (line, column) = self.mistakes.place(mistake.span.start);
            let (end_line, end_column) = self.mistakes.place(mistake.span.end);
            Finding {
                file: self.mistakes.file(),
                severity: self.severity,
                line,
                column,
                end_line,
                end_column,
                message: &mistake.message,
                remedy: mistake.remedy.as_deref(),
            }
        })
    }
}

impl From<SuiteError> for Found {
    fn from(error: SuiteError) -> Self {
        let mistakes = match error {
            SuiteError::Mistakes(mistakes) => mistakes,
            SuiteError::Unreadable { path, problem, remedy } => {
                let mistake =
                    Mistake::new(0..0, format!("the file cannot be read: {problem}")).remedy(remedy);
                Mistakes::new(&path, "", vec![mistake])
            }
        };
        Found { severity: Severity::Error, mistakes }
    }
}

/// What is to be looked at.
#[derive(Debug, Default)]
pub struct Files {
    /// Scenarios.
    pub scenarios: Vec<ScenarioFile>,
    /// Fragments, each by itself.
    pub fragments: Vec<FragmentFile>,
    /// Rig files.
    pub rigs: Vec<PathBuf>,
    /// Files of known limitations, besides those that the rigs name.
    pub limitations: Vec<PathBuf>,
}

/// Looks at all files.
///
/// # Errors
/// The suites cannot be read.
pub fn lint(
    files: &Files,
    suites: &Suites,
    catalogue: &Catalogue,
    rigs: &Path,
) -> Result<Vec<Found>, SuiteError> {
    let mut found = Vec::new();
    let mut limitations = files.limitations.clone();
    for path in &files.rigs {
        let shown = path.display().to_string();
        match std::fs::read_to_string(path) {
            Err(error) => found.push(unreadable(&shown, &error)),
            Ok(source) => match Rig::parse(&shown, &source) {
                Ok(rig) => {
                    let folder = path.parent().unwrap_or(Path::new(""));
                    limitations.extend(rig.limitations.as_ref().map(|named| folder.join(named)));
                    found.extend(warnings(&shown, &source, rig_is_called_otherwise(path, &source, &rig)));
                }
                Err(mistakes) => found.push(Found { severity: Severity::Error, mistakes }),
            },
        }
    }
    limitations.sort();
    limitations.dedup();
    for path in &limitations {
        found.extend(limits::load(path, suites, catalogue).err().map(Found::from));
    }
    found.extend(files.fragments.iter().filter_map(|file| file.check().err()).map(Found::from));
    let names = names(&suites.files()?, &files.scenarios);
    let offered = offered(rigs);
    for file in &files.scenarios {
        scenario(file, catalogue, &names, offered.as_deref(), &mut found);
    }
    Ok(found)
}

fn unreadable(shown: &str, error: &std::io::Error) -> Found {
    let mistake = Mistake::new(0..0, format!("the file cannot be read: {error}"))
        .remedy("files are UTF-8 and readable");
    Found { severity: Severity::Error, mistakes: Mistakes::new(shown, "", vec![mistake]) }
}

fn warnings(shown: &str, source: &str, list: Vec<Mistake>) -> Option<Found> {
    (!list.is_empty())
        .then(|| Found { severity: Severity::Warning, mistakes: Mistakes::new(shown, source, list) })
}

/// For each name of a scenario the files that have it: by their true paths, as they are shown.
type Names = BTreeMap<String, BTreeMap<PathBuf, String>>;

/// The paths of all files by the name of the scenario in them, whatever else is wrong with them.
fn names(all: &[ScenarioFile], chosen: &[ScenarioFile]) -> Names {
    let mut names = Names::new();
    for file in all.iter().chain(chosen) {
        let Ok(source) = std::fs::read_to_string(file.path()) else { continue };
        if let Some((name, _)) = name_of(&source) {
            let path = file.path().canonicalize().unwrap_or_else(|_| file.path().to_owned());
            names.entry(name).or_default().entry(path).or_insert_with(|| file.path().display().to_string());
        }
    }
    names
}

/// `metadata.name` and where it stands, if the file is YAML.
fn name_of(source: &str) -> Option<(String, Range<usize>)> {
    let root = yaml::parse_one(source, &mut Vec::new())?;
    let name = root.get("metadata")?.get("name")?;
    Some((name.as_text()?.to_owned(), name.span.clone()))
}

/// The rigs whose files can be read; nothing where there is none to ask.
fn offered(rigs: &Path) -> Option<Vec<Rig>> {
    let rigs: Vec<Rig> = super::cli::rig_files(rigs)
        .iter()
        .filter_map(|path| Rig::parse(&path.display().to_string(), &std::fs::read_to_string(path).ok()?).ok())
        .collect();
    (!rigs.is_empty()).then_some(rigs)
}

fn scenario(
    file: &ScenarioFile,
    catalogue: &Catalogue,
    names: &Names,
    rigs: Option<&[Rig]>,
    found: &mut Vec<Found>,
) {
    let shown = file.path().display().to_string();
    let source = match std::fs::read_to_string(file.path()) {
        Ok(source) => source,
        Err(error) => return found.push(unreadable(&shown, &error)),
    };
    let folder = file.path().parent().unwrap_or(Path::new("."));
    let beside = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let read = Scenario::parse(&shown, &source, catalogue, &beside);
    let mut mistakes: Vec<Mistake> = match &read {
        Ok(_) => Vec::new(),
        Err(mistakes) => mistakes.iter().cloned().collect(),
    };
    if let Some((name, span)) = name_of(&source) {
        let stem = file.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
        if stem.as_ref() != Some(&name) {
            mistakes.push(
                Mistake::new(span.clone(), format!("the scenario in this file is called {name}"))
                    .remedy("a scenario and its file have the same name: rename one of them"),
            );
        }
        let own = file.path().canonicalize().unwrap_or_else(|_| file.path().to_owned());
        let others: Vec<String> = names
            .get(&name)
            .into_iter()
            .flatten()
            .filter(|(path, _)| **path != own)
            .map(|(_, shown)| shown.clone())
            .collect();
        if !others.is_empty() {
            mistakes.push(
                Mistake::new(span, format!("the name {name} is given twice, also by {}", others.join(", ")))
                    .remedy("rename one: a scenario's name stands alone in reports and histories"),
            );
        }
    }
    if !mistakes.is_empty() {
        found.push(Found { severity: Severity::Error, mistakes: Mistakes::new(&shown, &source, mistakes) });
    }
    if let (Ok(scenarios), Some(root)) = (&read, yaml::parse_one(&source, &mut Vec::new())) {
        let mut list = unused(&source, &root);
        list.extend(no_rig(&root, scenarios, rigs));
        found.extend(warnings(&shown, &source, list));
    }
}

/// A rig file called otherwise than its rig: found by neither name.
fn rig_is_called_otherwise(path: &Path, source: &str, rig: &Rig) -> Vec<Mistake> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let Some((_, span)) = name_of(source).filter(|_| stem != rig.name) else { return Vec::new() };
    vec![
        Mistake::new(
            span,
            format!("the rig in this file is called {}, and --rig finds files by their name", rig.name),
        )
        .remedy("give the rig and its file the same name"),
    ]
}

/// Scenarios that none of the rigs that are there can run.
fn no_rig(root: &Node, scenarios: &[Scenario], rigs: Option<&[Rig]>) -> Vec<Mistake> {
    let (Some(rigs), Some(scenario)) = (rigs, scenarios.first()) else { return Vec::new() };
    if scenario.observe || rigs.iter().any(|rig| rig.lacks(scenario.boards.len(), &scenario.needs).is_none())
    {
        return Vec::new();
    }
    let needs: Vec<&str> = scenario.needs.iter().map(|need: &Capability| need.name()).collect();
    let span = root
        .get("spec")
        .and_then(|spec| spec.get("rig").or(Some(spec)))
        .map_or(0..0, |node| node.span.clone());
    let needs = if needs.is_empty() { "nothing".to_owned() } else { needs.join(", ") };
    vec![
        Mistake::new(
            span.start..span.start,
            format!(
                "no rig here can run it: it wants {} boards and {needs} of one rig",
                scenario.boards.len()
            ),
        )
        .remedy("needs less, or write a rig that offers it"),
    ]
}

/// Names that are given and never used: instants, captured values, columns of a table, names of `forEach`.
fn unused(source: &str, root: &Node) -> Vec<Mistake> {
    let mut given = Vec::new();
    let spec = root.get("spec");
    for section in ["setup", "steps", "cleanup"] {
        if let Some(list) = spec.and_then(|spec| spec.get(section)) {
            names_of_steps(list, &mut given);
        }
    }
    if let Some(Kind::Map(rows)) = spec.and_then(|spec| spec.get("cases")).map(|cases| &cases.kind)
        && let Some(Kind::Map(cells)) = rows.first().map(|row| &row.value.kind)
    {
        given
            .extend(cells.iter().map(|cell| Given::Value("column", cell.key.clone(), cell.key_span.clone())));
    }
    let mut list = Vec::new();
    for one in &given {
        match one {
            Given::Value(what, name, span) => {
                if !source.contains(&format!("${{{name}}}")) {
                    list.push(
                        Mistake::new(span.clone(), format!("the {what} `{name}` is never used"))
                            .remedy(format!("write ${{{name}}} where it belongs, or leave it out")),
                    );
                }
            }
            Given::Instant(name, span) => {
                let times = given
                    .iter()
                    .filter(|other| matches!(other, Given::Instant(other, _) if other == name))
                    .count();
                if words(source).filter(|word| word == name).count() <= times {
                    list.push(
                        Mistake::new(span.clone(), format!("the instant `{name}` is never used"))
                            .remedy("leave `as` out, or refer to it in a window or an order"),
                    );
                }
            }
        }
    }
    list
}

/// A name that a scenario gives.
enum Given {
    /// By `as`.
    Instant(String, Range<usize>),
    /// A value for `${…}`, and what it is called.
    Value(&'static str, String, Range<usize>),
}

fn names_of_steps(list: &Node, given: &mut Vec<Given>) {
    let Kind::List(steps) = &list.kind else { return };
    for step in steps {
        if let Some(name) = step.get("as")
            && let Some(text) = name.as_text()
        {
            given.push(Given::Instant(text.to_owned(), name.span.clone()));
        }
        if let Some(Kind::Map(fields)) =
            step.get("capture").and_then(|capture| capture.get("fields")).map(|node| &node.kind)
        {
            let fields = fields.iter();
            given.extend(
                fields.map(|one| Given::Value("captured value", one.key.clone(), one.key_span.clone())),
            );
        }
        if let Some(name) = step.get("forEach").and_then(|each| each.get("name"))
            && let Some(text) = name.as_text()
        {
            given.push(Given::Value("value", text.to_owned(), name.span.clone()));
        }
        for holder in ["repeat", "forEach"] {
            if let Some(inner) = step.get(holder).and_then(|holder| holder.get("steps")) {
                names_of_steps(inner, given);
            }
        }
        if let Some(inner) = step.get("parallel") {
            names_of_steps(inner, given);
        }
    }
}

/// The words of a source outside of its comments' lines.
fn words(source: &str) -> impl Iterator<Item = &str> {
    source
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| line.split(|sign: char| !sign.is_ascii_alphanumeric()))
}
