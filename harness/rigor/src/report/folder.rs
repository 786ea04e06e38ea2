//! The report folder: `events.jsonl`, `report.yaml`, `junit.xml` and `evidence/`.
//!
//! `events.jsonl` holds the histories one after another in the order of the trials' names, so that a simulated run
//! gives the same bytes whatever the number of workers.

use crate::report::conformance::conformance;
use crate::report::junit::junit;
use crate::report::trial::RunReport;
use rigor_model::catalogue::Catalogue;
use rigor_trace::jsonl;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or folder cannot be written.
    #[error("{path}: {error}; make the folder writable or name another one with --report-dir")]
    Write {
        /// Which one.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The folder holds someone else's `evidence/`.
    #[error(
        "{path} holds files and is no report's; name another folder with --report-dir, or move them away"
    )]
    Foreign {
        /// That folder.
        path: String,
    },
    /// The text could not be made.
    #[error("{name} could not be made: {error}")]
    Form {
        /// Which file.
        name: &'static str,
        /// Why.
        error: String,
    },
}

/// The files of a report, besides `evidence/`.
const REPORT: [&str; 3] = ["events.jsonl", "report.yaml", "junit.xml"];

/// A folder that a run reports into.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder and removes what an earlier run left in it, which would otherwise pass for this run's.
    ///
    /// # Errors
    /// The folder cannot be made, or the old report not removed.
    pub fn make(path: &Path) -> Result<Self, ReportError> {
        let folder = Self { path: path.to_owned() };
        fs::create_dir_all(path).map_err(|error| folder.cannot("", error))?;
        let evidence = path.join("evidence");
        let is_report = REPORT.iter().any(|name| path.join(name).exists());
        if !is_report && fs::read_dir(&evidence).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(ReportError::Foreign { path: evidence.display().to_string() });
        }
        for name in REPORT {
            match fs::remove_file(path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(folder.cannot(name, error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        match fs::remove_dir_all(&evidence) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(folder.cannot("evidence", error));
            }
            Ok(()) | Err(_) => {}
        }
        // A run that is ended from outside leaves this, by which the next one knows the folder for a report's.
        File::create(path.join("events.jsonl")).map_err(|error| folder.cannot("events.jsonl", error))?;
        Ok(folder)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a trial's evidence goes.
    #[must_use]
    pub fn evidence(&self, trial: &str) -> PathBuf {
        self.path.join("evidence").join(trial)
    }

    /// Writes the run's files.
    ///
    /// # Errors
    /// See [`ReportError`].
    pub fn write(&self, run: &RunReport, catalogue: &Catalogue) -> Result<(), ReportError> {
        let evidence = self.path.join("evidence");
        prune(&evidence);
        fs::create_dir_all(&evidence).map_err(|error| self.cannot("evidence", error))?;
        self.write_events(run).map_err(|error| self.cannot("events.jsonl", error))?;
        let report = serde_saphyr::to_string(&conformance(run, catalogue))
            .map_err(|error| ReportError::Form { name: "report.yaml", error: error.to_string() })?;
        self.write_file("report.yaml", &report)?;
        let xml =
            junit(run).map_err(|error| ReportError::Form { name: "junit.xml", error: error.to_string() })?;
        self.write_file("junit.xml", &xml)
    }

    fn write_events(&self, run: &RunReport) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(self.path.join("events.jsonl"))?);
        for trial in &run.trials {
            jsonl::write(&trial.history, &mut file)?;
        }
        file.flush()
    }

    fn write_file(&self, name: &str, text: &str) -> Result<(), ReportError> {
        fs::write(self.path.join(name), text).map_err(|error| self.cannot(name, error))
    }

    fn cannot(&self, name: &str, error: io::Error) -> ReportError {
        ReportError::Write { path: self.path.join(name).display().to_string(), error }
    }
}

/// Removes folders without anything in them: those of trials whose evidence nobody wants.
fn prune(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            prune(&entry.path());
        }
    }
    // One that still holds something stays.
    let _ = fs::remove_dir(dir);
}
