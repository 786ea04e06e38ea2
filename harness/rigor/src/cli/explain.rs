//! `rigor explain`: all that is known of a requirement.

use super::coverage::read;
use super::{Trouble, Where, tell};
use crate::coverage::{LastRun, explain, near_ids};
use crate::exit::Exit;
use crate::report;
use crate::suite::Suites;
use clap::Args;
use std::path::{Path, PathBuf};

/// Tell all that is known of a requirement: what it says, its scenarios, tests and mutants, and how they came out last.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// An id of the catalogue, such as NODE-07.
    id: String,
    /// The report with the last results; the newest of the folders report* and target/conformance if left out.
    #[arg(long, value_name = "DIR|FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    place: Where,
}

impl Explain {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let catalogue = Suites::new(self.place.suites()).catalogue()?;
        if catalogue.get(&self.id).is_none() {
            let near = near_ids(&self.id, &catalogue);
            let help = if near.is_empty() {
                "ids stand in suites/requirements.yaml, and rigor coverage lists them".to_owned()
            } else {
                format!("near are {}", near.join(", "))
            };
            return Err(Trouble::Input(miette::miette!(help = help, "no requirement is called {}", self.id)));
        }
        let coverage = read(&self.place)?;
        let last = self.last()?;
        if let Some(row) = coverage.row(&self.id) {
            tell(&explain(row, &coverage, last.as_ref()));
        }
        Ok(Exit::Passed)
    }

    /// The report that was asked for, or the newest that can be read.
    fn last(&self) -> Result<Option<LastRun>, Trouble> {
        let run = |folder: &Path| {
            let report = report::read(folder)?;
            Ok::<LastRun, report::ReadError>(LastRun { folder: folder.display().to_string(), report })
        };
        match &self.report {
            Some(folder) => Ok(Some(run(folder).map_err(Trouble::input)?)),
            None => {
                let folder = report::newest(Path::new("."));
                let folder =
                    folder.map(|folder| folder.strip_prefix(".").map(Path::to_owned).unwrap_or(folder));
                Ok(folder.and_then(|folder| run(&folder).ok()))
            }
        }
    }
}
