//! Ledgers of mutants (`ci/ledger/mutants-DATE.json`): which change of which file turned which trials red.
//!
//! A line says what it was found with, by hashes, and counts only while that is still so: a mutant of a file that has
//! changed since, or that other suites judged, shows nothing about today's.

use super::table::is_trial_of;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where ledgers lie, from the root of the tree.
const FOLDER: &str = "ci/ledger";

/// Where the mutants that people wrote lie, one file a mutant that is called as its id.
const FAULTS: &str = "control-plane/faulty/faults";

/// The version of the form that is read.
const VERSION: u64 = 1;

/// Why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}; run ci/mutants again, or take the file away")]
pub struct LedgerError {
    /// Which file.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What came of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictOfMutant {
    /// A trial turned red.
    Killed,
    /// None did.
    Survived,
    /// No trial can: it changes nothing that can be observed.
    Equivalent,
    /// It does not build, or cannot be tried.
    Invalid,
}

impl VerdictOfMutant {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Survived => "survived",
            Self::Equivalent => "equivalent",
            Self::Invalid => "invalid",
        }
    }
}

/// A file as it was without the mutant.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Touched {
    path: String,
    sha256: String,
}

/// A line as it stands in a ledger.
#[derive(Debug, Clone, Deserialize)]
struct Line {
    id: String,
    kind: String,
    description: String,
    files: Vec<Touched>,
    mutant: Option<String>,
    suites: String,
    verdict: VerdictOfMutant,
    #[serde(default)]
    reason: Option<String>,
    /// How it was seen: a trial that failed is `red`; others became undecided, or took the rig with them.
    #[serde(default)]
    how: Option<String>,
    #[serde(default)]
    trials: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct File {
    version: u64,
    date: String,
    lines: Vec<Line>,
}

/// Whether a line still says something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "standing", content = "because")]
pub enum Standing {
    /// What it was found with is what is there.
    Valid,
    /// Something has changed since; what.
    Stale(String),
}

/// A mutant, by the newest line about it that is valid, or else by the newest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mutant {
    /// Its name.
    pub id: String,
    /// Its sort: hand-made, firmware, cargo.
    pub kind: String,
    /// What goes wrong with it.
    pub description: String,
    /// The files that it changes, from the root of the tree.
    pub files: Vec<String>,
    /// What came of it.
    pub verdict: VerdictOfMutant,
    /// Why it is equivalent or invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The trials that failed because of it, as `rigor list` shows them.
    pub trials: Vec<String>,
    /// The day of the ledger.
    pub date: String,
    /// Whether that still counts.
    #[serde(flatten)]
    pub standing: Standing,
}

impl Mutant {
    /// Whether it counts, and turned a trial of that scenario (`area/scenario`) red.
    #[must_use]
    pub fn is_killed_by(&self, scenario: &str) -> bool {
        self.standing == Standing::Valid
            && self.verdict == VerdictOfMutant::Killed
            && self.trials.iter().any(|trial| is_trial_of(trial, scenario))
    }
}

/// What all ledgers say together, a mutant once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// The mutants by id.
    pub mutants: Vec<Mutant>,
}

impl Ledger {
    /// The ledgers of the tree at `root` whose suites are in `suites`; nothing where there is none.
    ///
    /// # Errors
    /// A ledger cannot be read.
    pub fn read(root: &Path, suites: &Path) -> Result<Option<Self>, LedgerError> {
        let mut files = Vec::new();
        for path in ledgers(&root.join(FOLDER)) {
            files.push(parse(&path)?);
        }
        if files.is_empty() {
            return Ok(None);
        }
        files.sort_by(|one, other| other.date.cmp(&one.date));
        let today = Today::of(root, suites);
        let mut newest: BTreeMap<String, Mutant> = BTreeMap::new();
        for (date, line) in files.into_iter().flat_map(|file| {
            let date = file.date;
            file.lines.into_iter().map(move |line| (date.clone(), line))
        }) {
            let mutant = today.judged(date, line);
            let better = newest
                .get(&mutant.id)
                .is_none_or(|known| known.standing != Standing::Valid && mutant.standing == Standing::Valid);
            if better {
                newest.insert(mutant.id.clone(), mutant);
            }
        }
        Ok(Some(Self { mutants: newest.into_values().collect() }))
    }
}

fn ledgers(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_ledger = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with("mutants-") && name.ends_with(".json")
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_ledger).collect();
    paths.sort();
    paths
}

fn parse(path: &Path) -> Result<File, LedgerError> {
    let wrong = |problem: String| LedgerError { path: path.display().to_string(), problem };
    let source = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let file: File = serde_json::from_str(&source)
        .map_err(|error| wrong(format!("this is no ledger of mutants: {error}")))?;
    if file.version != VERSION {
        return Err(wrong(format!("it is of version {}, and version {VERSION} is read", file.version)));
    }
    Ok(file)
}

/// Hashes of what is there now.
struct Today {
    root: PathBuf,
    suites: String,
    faults: BTreeMap<String, PathBuf>,
}

impl Today {
    fn of(root: &Path, suites: &Path) -> Self {
        let mut faults = BTreeMap::new();
        for path in files_below(&root.join(FAULTS)) {
            if let Some(stem) = path.file_stem() {
                faults.insert(stem.to_string_lossy().into_owned(), path);
            }
        }
        Self { root: root.to_owned(), suites: suites_hash(suites), faults }
    }

    fn judged(&self, date: String, line: Line) -> Mutant {
        let standing = self.standing(&line);
        // `area/scenario [sim]`: which rig it turned red on is not part of its name.
        let trial = |told: &String| told.split(" [").next().unwrap_or_default().to_owned();
        let failed = line.how.as_deref().is_none_or(|how| how == "red");
        Mutant {
            id: line.id,
            kind: line.kind,
            description: line.description,
            files: line.files.into_iter().map(|file| file.path).collect(),
            verdict: line.verdict,
            reason: line.reason,
            trials: line.trials.iter().filter(|_| failed).map(trial).collect(),
            date,
            standing,
        }
    }

    fn standing(&self, line: &Line) -> Standing {
        let changed = |path: &Path, sha256: &str| hash_of(path).is_none_or(|now| now != sha256);
        if let Some(file) = line.files.iter().find(|file| changed(&self.root.join(&file.path), &file.sha256))
        {
            return Standing::Stale(format!("{} has changed since", file.path));
        }
        if line.suites != self.suites {
            return Standing::Stale("the suites have changed since".to_owned());
        }
        match (self.faults.get(&line.id), &line.mutant) {
            (Some(path), Some(sha256)) if changed(path, sha256) => {
                Standing::Stale("the mutant itself has changed since".to_owned())
            }
            (Some(_) | None, Some(_) | None) => Standing::Valid,
        }
    }
}

fn hash_of(path: &Path) -> Option<String> {
    Some(hex(Sha256::digest(std::fs::read(path).ok()?).as_slice()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What trials are judged with, as one hash: every YAML file below a folder of the suites but `schema` and `tests`, in the
/// order of their paths from the root, each as path, 0, length, 0, content. The catalogue is not in it: what a row says
/// changes no verdict.
fn suites_hash(suites: &Path) -> String {
    let above = suites.parent().unwrap_or(Path::new(""));
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for folder in folders(suites) {
        if folder.ends_with("schema") || folder.ends_with("tests") {
            continue;
        }
        for path in files_below(&folder) {
            if path.extension().is_some_and(|extension| extension == "yaml") {
                files.push((path.strip_prefix(above).unwrap_or(&path).display().to_string(), path));
            }
        }
    }
    files.sort();
    let mut hash = Sha256::new();
    for (name, path) in files {
        let content = std::fs::read(path).unwrap_or_default();
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(content.len().to_string().as_bytes());
        hash.update([0]);
        hash.update(&content);
    }
    hex(hash.finalize().as_slice())
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) =
        entries.map(|entry| entry.path()).partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| files_below(folder))).collect()
}
