//! The ledger: what was tried, against which sources and scenarios, and what came of it; one file a day.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::digest;
use crate::fault::Kind;

/// The folder of the ledgers, from the root of the repository.
pub const FOLDER: &str = "ci/ledger";

/// What came of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A trial turned red.
    Killed,
    /// Every trial stayed green.
    Survived,
    /// Every trial stayed green, and a person has said why nothing can turn red.
    Equivalent,
    /// It does not compile.
    Invalid,
}

/// How a mutant was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// A trial failed.
    Red,
    /// No trial failed, but one stayed undecided.
    Undecided,
    /// No trial failed, but the control plane or a board panicked, or broke the rig otherwise.
    Panic,
    /// The trials did not end in time.
    Timeout,
    /// The harness ended out of order.
    Exit,
}

/// A mutated source as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// From the root of the repository.
    pub path: String,
    /// SHA-256 of the sound file.
    pub sha256: String,
}

/// What came of one mutant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The fault's id, or cargo-mutants' name.
    pub id: String,
    /// Where it comes from.
    pub kind: Kind,
    /// What goes wrong.
    pub description: String,
    /// The requirements that it is meant to break; none are known of cargo-mutants'.
    pub requirements: Vec<String>,
    /// The sources that it mutates.
    pub files: Vec<File>,
    /// SHA-256 of the fault's own file, or of cargo-mutants' name and replacement.
    pub mutant: String,
    /// SHA-256 of all scenarios.
    pub suites: String,
    /// What came of it.
    pub verdict: Verdict,
    /// How it was seen.
    pub how: Option<How>,
    /// Why nothing can see it, or why it does not compile.
    pub reason: Option<String>,
    /// The trials that turned red.
    pub trials: Vec<String>,
    /// The requirements that those trials name.
    pub broke: Vec<String>,
    /// The rig of those trials; of survivors the last one that was tried.
    pub rig: String,
    /// The seed of the trials.
    pub seed: u64,
    /// How long it took.
    pub seconds: f64,
}

impl Line {
    /// Whether sources, fault and scenarios are still those that it tells of. `suites` is the digest of today's
    /// scenarios, `mutant` that of today's fault.
    #[must_use]
    pub fn stands(&self, root: &Path, suites: &str, mutant: &str) -> bool {
        self.suites == suites
            && self.mutant == mutant
            && self
                .files
                .iter()
                .all(|file| digest::of_file(&root.join(&file.path)).is_ok_and(|digest| digest == file.sha256))
    }
}

/// The lines of one day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Of this format.
    pub version: u32,
    /// The day, `YYYY-MM-DD`, UTC.
    pub date: String,
    /// Seed of the shard of cargo-mutants.
    pub seed: u64,
    /// SHA-256 of all scenarios, when it was last written.
    pub suites: String,
    /// By kind, then by id.
    pub lines: Vec<Line>,
}

impl Ledger {
    /// A ledger without lines.
    #[must_use]
    pub fn new(date: &str, seed: u64, suites: &str) -> Self {
        Self { version: 1, date: date.to_owned(), seed, suites: suites.to_owned(), lines: Vec::new() }
    }

    /// The ledger of that day, to go on with: all of its lines, also those that another seed drew, since a day has one file.
    #[must_use]
    pub fn of_day(ledgers: &[Self], date: &str, seed: u64, suites: &str) -> Self {
        let lines =
            ledgers.iter().filter(|ledger| ledger.date == date).flat_map(|ledger| ledger.lines.clone());
        Self { lines: lines.collect(), ..Self::new(date, seed, suites) }
    }

    /// Its file, from the root of the repository.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(format!("mutants-{}.json", self.date))
    }

    /// Takes a line in place of an earlier one of the same mutant, and writes the file anew.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn take(&mut self, root: &Path, line: Line) -> Result<()> {
        self.lines.retain(|it| it.id != line.id);
        self.lines.push(line);
        self.lines.sort_by(|one, other| (one.kind, &one.id).cmp(&(other.kind, &other.id)));
        self.write(root)
    }

    /// Writes the file below `root`, whole or not at all, a line of it for each of its lines.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, root: &Path) -> Result<()> {
        let path = root.join(self.path());
        let told = || format!("{} cannot be written", path.display());
        fs::create_dir_all(root.join(FOLDER)).with_context(told)?;
        let half = path.with_extension("json.new");
        fs::write(&half, self.text()?).with_context(told)?;
        fs::rename(&half, &path).with_context(told)
    }

    fn text(&self) -> Result<String> {
        let lines = self.lines.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let Self { version, date, seed, suites, .. } = self;
        Ok(format!(
            "{{\"version\": {version},\n \"date\": {date:?},\n \"seed\": {seed},\n \"suites\": {suites:?},\n \"lines\": [\n{}]}}\n",
            lines.join(",\n") + if lines.is_empty() { "" } else { "\n" }
        ))
    }
}

/// All ledgers of the repository at `root`, the oldest first.
///
/// # Errors
/// One cannot be read.
pub fn all(root: &Path) -> Result<Vec<Ledger>> {
    let folder = root.join(FOLDER);
    let Ok(entries) = fs::read_dir(&folder) else { return Ok(Vec::new()) };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("mutants-") && name.ends_with(".json")
    });
    files.sort_unstable();
    let read = |path: &PathBuf| {
        let told = || format!("{} cannot be read; delete it, and run ci/mutants again", path.display());
        let text = fs::read_to_string(path).with_context(told)?;
        serde_json::from_str(&text).with_context(told)
    };
    files.iter().map(read).collect()
}

/// The newest line of each mutant, by its id.
#[must_use]
pub fn newest(ledgers: &[Ledger]) -> BTreeMap<String, Line> {
    let lines = ledgers.iter().flat_map(|ledger| &ledger.lines);
    lines.map(|line| (line.id.clone(), line.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, verdict: Verdict) -> Line {
        Line {
            id: id.into(),
            kind: Kind::HandMade,
            description: "It is \"late\".".into(),
            requirements: vec!["NODE-03".into()],
            files: vec![File { path: "x.rs".into(), sha256: digest::of(b"sound") }],
            mutant: "m".into(),
            suites: "s".into(),
            verdict,
            how: (verdict == Verdict::Killed).then_some(How::Red),
            reason: None,
            trials: vec!["a/b".into()],
            broke: vec!["NODE-03".into()],
            rig: "sim".into(),
            seed: 1,
            seconds: 2.5,
        }
    }

    #[test]
    fn what_was_written_is_read_again_and_the_newest_counts() {
        let root = tempfile::tempdir().unwrap();
        let mut first = Ledger::new("2026-11-29", 1, "s");
        first.write(root.path()).unwrap();
        first.take(root.path(), line("b", Verdict::Killed)).unwrap();
        first.take(root.path(), line("a", Verdict::Survived)).unwrap();
        let mut second = Ledger::new("2026-11-30", 2, "s");
        second.take(root.path(), line("a", Verdict::Survived)).unwrap();
        second.take(root.path(), line("a", Verdict::Killed)).unwrap();
        let read = all(root.path()).unwrap();
        assert_eq!(read, [first, second]);
        let newest = newest(&read);
        assert_eq!(newest.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(newest["a"].verdict, Verdict::Killed);
        let text = fs::read_to_string(root.path().join("ci/ledger/mutants-2026-11-29.json")).unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with("{\"id\":")).count(), 2, "{text}");
    }

    #[test]
    fn a_line_stands_as_long_as_everything_that_it_tells_of() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("x.rs"), "sound").unwrap();
        let line = line("a", Verdict::Killed);
        assert!(line.stands(root.path(), "s", "m"));
        assert!(!line.stands(root.path(), "t", "m"));
        assert!(!line.stands(root.path(), "s", "n"));
        fs::write(root.path().join("x.rs"), "sounder").unwrap();
        assert!(!line.stands(root.path(), "s", "m"));
        fs::remove_file(root.path().join("x.rs")).unwrap();
        assert!(!line.stands(root.path(), "s", "m"));
    }
}
