//! Everything that is wrong with scenario, rig and limitations files, and what is probably wrong: one finding a mistake.
//!
//! Mistakes of one file come from its reader. What is wrong only between files is found here: a name that two files
//! have, a file called otherwise than what is in it, a capability that no rig offers. Of the files that are not chosen only
//! those are read whose names say that they could be twins.

mod fields;
mod flags;
mod instants;
mod misspelt;
mod nothing;
mod shapes;
#[cfg(test)]
mod tests;
mod unused;

use crate::ground::refuse_own;
use crate::limits;
use crate::plan::only_observes;
use crate::suite::{FragmentFile, ScenarioFile, SuiteError, Suites, beside, read};
pub(crate) use flags::refused as refused_flags;
use instants::never_come;
use misspelt::misspelt;
use nothing::expects_nothing;
use rigor_model::catalogue::Catalogue;
use rigor_model::mistake::{Mistake, Mistakes};
use rigor_model::yaml::{self, Node};
use rigor_model::{Capability, Files, Rig, Scenario};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use unused::unused;

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
pub struct Chosen {
    /// Scenarios.
    pub scenarios: Vec<ScenarioFile>,
    /// Fragments, each by itself.
    pub fragments: Vec<FragmentFile>,
    /// Rig files.
    pub rigs: Vec<PathBuf>,
    /// Files of known limitations, besides those that the rigs name.
    pub limitations: Vec<PathBuf>,
}

/// Looks at all files. What cannot be read is found wrong as well.
pub fn lint(files: &Chosen, suites: &Suites, catalogue: &Catalogue, rigs: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    let mut limitations = files.limitations.clone();
    for path in &files.rigs {
        let shown = path.display().to_string();
        let source = match read(path) {
            Ok(source) => source,
            Err(error) => {
                found.push(error.into());
                continue;
            }
        };
        match Rig::parse(&shown, &source) {
            Ok(rig) => {
                match named_limitations(path, &source, &rig) {
                    Ok(named) => limitations.extend(named),
                    Err(mistake) => found.extend(errors(&shown, &source, vec![mistake])),
                }
                found.extend(warnings(&shown, &source, rig_is_called_otherwise(path, &source, &rig)));
            }
            Err(mistakes) => found.push(Found { severity: Severity::Error, mistakes }),
        }
    }
    limitations.sort();
    limitations.dedup();
    for path in &limitations {
        found.extend(limits::load(path, suites, catalogue).err().map(Found::from));
    }
    found.extend(files.fragments.iter().filter_map(fragment));
    let sources: Vec<(&ScenarioFile, Result<String, SuiteError>)> =
        files.scenarios.iter().map(|file| (file, read(file.path()))).collect();
    let names = names(&sources, suites);
    let offered = if sources.is_empty() { None } else { offered(rigs) };
    for (file, source) in sources {
        let source = match source {
            Ok(source) => source,
            Err(error) => {
                found.push(error.into());
                continue;
            }
        };
        let shown = file.path().display().to_string();
        let own = file.path().canonicalize().unwrap_or_else(|_| file.path().to_owned());
        let twins = |name: &str| -> Vec<String> {
            let all = names.get(name).into_iter().flatten();
            all.filter(|(path, _)| **path != own).map(|(_, shown)| shown.clone()).collect()
        };
        let scenario = Source { shown: &shown, source: &source, files: &beside(file.path()) };
        found.extend(scenario.check(catalogue, &twins, offered.as_deref()));
    }
    found
}

/// What is, or may be, wrong with a fragment by itself.
fn fragment(file: &FragmentFile) -> Option<Found> {
    if let Err(error) = file.check() {
        return Some(error.into());
    }
    let source = read(file.path()).ok()?;
    let root = yaml::parse_one(&source, &mut Vec::new())?;
    let mut list = misspelt(&root);
    list.extend(never_come(&root));
    warnings(&file.path().display().to_string(), &source, list)
}

fn errors(shown: &str, source: &str, list: Vec<Mistake>) -> Option<Found> {
    (!list.is_empty())
        .then(|| Found { severity: Severity::Error, mistakes: Mistakes::new(shown, source, list) })
}

fn warnings(shown: &str, source: &str, list: Vec<Mistake>) -> Option<Found> {
    (!list.is_empty())
        .then(|| Found { severity: Severity::Warning, mistakes: Mistakes::warnings(shown, source, list) })
}

/// The file of limitations that a rig names. That it is not there is a mistake of the rig's file.
fn named_limitations(path: &Path, source: &str, rig: &Rig) -> Result<Option<PathBuf>, Mistake> {
    let Some(name) = &rig.limitations else { return Ok(None) };
    let named = path.parent().unwrap_or(Path::new("")).join(name);
    let Err(error) = std::fs::metadata(&named) else { return Ok(Some(named)) };
    let root = yaml::parse_one(source, &mut Vec::new());
    let node = root.as_ref().and_then(|root| root.get("spec")?.get("limitations"));
    Err(Mistake::new(
        node.map_or(0..0, |node| node.span.clone()),
        format!("the file of limitations `{name}` cannot be read: {error}"),
    )
    .remedy("write a path relative to the rig's file, or leave it out"))
}

/// For each name of a scenario the files that have it: by their true paths, as they are shown.
type Names = BTreeMap<String, BTreeMap<PathBuf, String>>;

/// The paths by the name of the scenario in them, whatever else is wrong with them: of the chosen files, and of those
/// others whose file is called as a chosen scenario.
fn names(chosen: &[(&ScenarioFile, Result<String, SuiteError>)], suites: &Suites) -> Names {
    let mut names = Names::new();
    let mut note = |file: &ScenarioFile, source: &str| {
        let (name, _) = name_of(source)?;
        let path = file.path().canonicalize().unwrap_or_else(|_| file.path().to_owned());
        let shown = file.path().display().to_string();
        names.entry(name.clone()).or_default().entry(path).or_insert(shown);
        Some(name)
    };
    let known: BTreeSet<String> =
        chosen.iter().filter_map(|(file, source)| note(file, source.as_ref().ok()?)).collect();
    for file in known.iter().flat_map(|name| suites.called(name)) {
        if !chosen.iter().any(|(other, _)| other.path() == file.path())
            && let Ok(source) = read(file.path())
        {
            note(&file, &source);
        }
    }
    names
}

/// `metadata.name` and where it stands, if the file is YAML and ours.
fn name_of(source: &str) -> Option<(String, Range<usize>)> {
    let root = yaml::parse_one(source, &mut Vec::new())?;
    let version = root.get("apiVersion").and_then(Node::as_text);
    let name = root.get("metadata")?.get("name")?;
    let ours = version.is_none_or(|version| version.starts_with("rigor.dev/"));
    Some((name.as_text().filter(|_| ours)?.to_owned(), name.span.clone()))
}

/// The rigs whose files can be read; nothing where there is none to ask.
fn offered(rigs: &Path) -> Option<Vec<Rig>> {
    let rigs: Vec<Rig> = super::cli::rig_files(rigs)
        .iter()
        .filter_map(|path| Rig::parse(&path.display().to_string(), &std::fs::read_to_string(path).ok()?).ok())
        .collect();
    (!rigs.is_empty()).then_some(rigs)
}

/// The text of a scenario file.
struct Source<'a> {
    /// The file as it was named.
    shown: &'a str,
    source: &'a str,
    /// Reads what it names.
    files: &'a Files<'a>,
}

impl Source<'_> {
    /// Everything that is, or may be, wrong with it. `twins` are the other files that have a name.
    fn check(
        &self,
        catalogue: &Catalogue,
        twins: &dyn Fn(&str) -> Vec<String>,
        rigs: Option<&[Rig]>,
    ) -> Vec<Found> {
        let read = Scenario::parse(self.shown, self.source, catalogue, self.files);
        let mut mistakes: Vec<Mistake> = match &read {
            Ok(_) => Vec::new(),
            Err(mistakes) => mistakes.iter().cloned().collect(),
        };
        if let Some((name, span)) = name_of(self.source)
            // What cannot be a name at all is told already.
            && !mistakes.iter().any(|mistake| mistake.span == span)
        {
            mistakes.extend(self.misnamed(&name, &span));
            let twins = twins(&name);
            if !twins.is_empty() {
                let message = format!("the name {name} is given twice, also by {}", twins.join(", "));
                let remedy = "rename one: a scenario's name stands alone in reports and histories";
                mistakes.push(Mistake::new(span, message).remedy(remedy));
            }
        }
        let root = yaml::parse_one(self.source, &mut Vec::new());
        if let (Ok(scenarios), Some(root)) = (&read, &root) {
            mistakes.extend(flags::refused(root, scenarios, &refuse_own));
        }
        #[cfg(feature = "sim")]
        let right = mistakes.is_empty();
        let mut found = Vec::from_iter(errors(self.shown, self.source, mistakes));
        if let (Ok(scenarios), Some(root)) = (&read, root) {
            let mut list = unused(self.source, &root);
            // Of another control plane they may be.
            #[cfg(feature = "sim")]
            list.extend(flags::refused(&root, scenarios, &rigor_sim::check_flags).filter(|_| right));
            list.extend(misspelt(&root));
            list.extend(never_come(&root));
            list.extend(expects_nothing(&root, scenarios));
            list.extend(no_rig(&root, scenarios, rigs));
            found.extend(warnings(self.shown, self.source, list));
        }
        found
    }

    /// That the file is called otherwise than the scenario in it.
    fn misnamed(&self, name: &str, span: &Range<usize>) -> Option<Mistake> {
        let stem = Path::new(self.shown).file_stem()?.to_string_lossy().into_owned();
        (stem != name).then(|| {
            Mistake::new(span.clone(), format!("the scenario in this file is called {name}"))
                .remedy("a scenario and its file have the same name: rename one of them")
        })
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
    if only_observes(scenario) {
        return Vec::new();
    }
    let mut able = rigs.iter().filter(|rig| rig.lacks(scenario.boards.len(), &scenario.needs).is_none());
    if let Some(first) = able.next() {
        let reason = first.contradicts(scenario);
        let reason = reason.filter(|_| able.all(|rig| rig.contradicts(scenario).is_some()));
        let span = root.get("spec").and_then(|spec| spec.get("constants")).map(|node| node.span.clone());
        let mistake = |reason: String| {
            Mistake::new(span.unwrap_or(0..0), format!("no rig here can run it: on {}, {reason}", first.name))
                .remedy("state a renewInterval that is shorter than leaseDuration")
        };
        return reason.map(mistake).into_iter().collect();
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
