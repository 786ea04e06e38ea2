//! `rigor lint`: every mistake of every file, each with its place and a remedy.

use super::{Trouble, Where, say, tell};
use crate::exit::Exit;
use crate::lint::{Chosen, Found, Severity, lint};
use crate::suite::{FragmentFile, SuiteError, Suites};
use crate::terminal::many;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Check scenarios, rigs and files of known limitations without running anything.
///
/// What is wrong is an error and ends with 2. What is probably not meant so, such as a name that is never used or a need that
/// no rig meets, is a warning.
#[derive(Debug, Args)]
pub(super) struct Lint {
    /// Areas, folders, scenario files, names of trials, rig files or files of known limitations; if left out, all
    /// scenarios and rigs with the limitations that these name.
    #[arg(value_name = "SUITE|FILE")]
    what: Vec<String>,
    /// How findings are told: with the source around them, one a line, or one JSON object a line.
    #[arg(long, value_enum, default_value = "full")]
    format: Format,
    /// End with 2 for warnings, too.
    #[arg(long)]
    deny_warnings: bool,
    #[command(flatten)]
    place: Where,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// With the source around them.
    Full,
    /// `FILE:LINE:COLUMN: error: what is wrong; what would be right`.
    Short,
    /// One object a line: file, severity, line, column, endLine, endColumn, message, remedy.
    Json,
}

impl Lint {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let suites = Suites::new(self.place.suites());
        let catalogue = suites.catalogue()?;
        let files = match chosen(&self.what, &self.place).and_then(not_nothing) {
            Ok(files) => files,
            Err(error) if self.format == Format::Full => return Err(error.into()),
            Err(error) => {
                told(&error.into(), self.format);
                return Ok(Exit::BadInput);
            }
        };
        let found = lint(&files, &suites, &catalogue, &self.place.rigs());
        let count =
            |severity| found.iter().filter(|one| one.severity == severity).flat_map(Found::findings).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        for one in &found {
            told(one, self.format);
        }
        if self.format != Format::Json {
            say(&format!(
                "{}: {}, {}",
                counted(&files),
                if errors == 0 { "no mistakes".to_owned() } else { many(errors, "mistake") },
                if warnings == 0 { "no warnings".to_owned() } else { many(warnings, "warning") },
            ));
        }
        let wrong = errors > 0 || self.deny_warnings && warnings > 0;
        Ok(if wrong { Exit::BadInput } else { Exit::Passed })
    }
}

/// The files, if there are any.
fn not_nothing(files: Chosen) -> Result<Chosen, SuiteError> {
    let Chosen { scenarios, fragments, rigs, limitations } = &files;
    if scenarios.is_empty() && fragments.is_empty() && rigs.is_empty() && limitations.is_empty() {
        return Err(nothing("the suites and the rigs"));
    }
    Ok(files)
}

/// There is nothing to look at in `place`.
fn nothing(place: &str) -> SuiteError {
    SuiteError::Unreadable {
        path: place.to_owned(),
        problem: "there is nothing to look at".to_owned(),
        remedy:
            "scenarios are files NAME.yaml directly in the folder, of kind Scenario; name one that has some"
                .into(),
    }
}

/// How many files of which kind were looked at: `1 scenario file and 0 rigs`.
fn counted(files: &Chosen) -> String {
    let mut counts = vec![many(files.scenarios.len(), "scenario file"), many(files.rigs.len(), "rig")];
    let fragments = many(files.fragments.len(), "fragment");
    let limitations = match files.limitations.len() {
        1 => "1 file of known limitations".to_owned(),
        more => format!("{more} files of known limitations"),
    };
    counts.extend((!files.fragments.is_empty()).then_some(fragments));
    counts.extend((!files.limitations.is_empty()).then_some(limitations));
    let last = counts.pop().unwrap_or_default();
    format!("{} and {last}", counts.join(", "))
}

fn told(found: &Found, format: Format) {
    let word = match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    match format {
        Format::Full => eprintln!("{:?}", miette::Report::from(found.mistakes.clone())),
        Format::Short => {
            for one in found.findings() {
                let remedy = one.remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
                say(&format!("{}:{}:{}: {word}: {}{remedy}", one.file, one.line, one.column, one.message));
            }
        }
        Format::Json => {
            for one in found.findings() {
                tell(&format!("{}\n", serde_json::json!(one)));
            }
        }
    }
}

/// The files that a person means; all scenarios and rigs without a name.
fn chosen(what: &[String], place: &Where) -> Result<Chosen, SuiteError> {
    let suites = Suites::new(place.suites());
    if what.is_empty() {
        return Ok(Chosen {
            scenarios: suites.files()?,
            fragments: suites.fragments()?,
            rigs: rig_files(&place.rigs()),
            limitations: Vec::new(),
        });
    }
    let (mut files, mut names) = (Chosen::default(), Vec::new());
    for name in what {
        if is_of_kind(name, "Rig") {
            files.rigs.push(name.into());
        } else if let Some(fragment) = FragmentFile::at(Path::new(name)) {
            files.fragments.push(fragment);
        } else if is_of_kind(name, "Limitations") {
            files.limitations.push(name.into());
        } else if Path::new(name).is_dir() && !rigs_in(Path::new(name)).is_empty() {
            files.rigs.extend(rigs_in(Path::new(name)));
        } else {
            names.push(name.clone());
        }
    }
    for name in names {
        let chosen = suites.chosen(std::slice::from_ref(&name))?;
        if chosen.is_empty() {
            // A folder of fragments, or of an area that has nothing else.
            let folder = [PathBuf::from(&name), place.suites().join(&name)];
            let folder = folder.iter().find(|folder| folder.is_dir());
            let fragments = folder.map_or(Ok(Vec::new()), |folder| FragmentFile::below(folder))?;
            if fragments.is_empty() {
                return Err(nothing(&name));
            }
            files.fragments.extend(fragments);
        }
        files.scenarios.extend(chosen);
    }
    files.scenarios.sort();
    files.scenarios.dedup();
    files.fragments.sort();
    files.fragments.dedup();
    Ok(files)
}

/// [`chosen`] as paths, each once.
pub(super) fn files_of(what: &[String], place: &Where) -> Result<Vec<PathBuf>, Trouble> {
    let files = chosen(what, place)?;
    let mut paths: Vec<PathBuf> = files.scenarios.iter().map(|file| file.path().to_owned()).collect();
    paths.extend(files.rigs);
    paths.extend(files.limitations);
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Whether a file says that it is of a kind.
fn is_of_kind(name: &str, kind: &str) -> bool {
    std::fs::read_to_string(name).is_ok_and(|source| {
        source.lines().any(|line| line.strip_prefix("kind: ").map(str::trim) == Some(kind))
    })
}

/// The rigs of a folder that holds nothing else.
fn rigs_in(folder: &Path) -> Vec<PathBuf> {
    let files = rig_files(folder);
    if files.iter().all(|file| is_of_kind(&file.display().to_string(), "Rig")) { files } else { Vec::new() }
}

/// The rig files of a folder, sorted.
pub(crate) fn rig_files(rigs: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(rigs)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files
}
