//! `rigor lint`: every mistake of every file, each with its place and a remedy.

use super::{Trouble, Where, say};
use crate::exit::Exit;
use crate::ground::find_rig;
use crate::limits;
use crate::suite::{ScenarioFile, Suites};
use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Check scenarios, rigs and files of known limitations without running anything.
#[derive(Debug, Args)]
pub(super) struct Lint {
    /// Areas, folders, scenario files, names of trials, rig files or files of known limitations; if left out, all
    /// scenarios and rigs with the limitations that these name.
    #[arg(value_name = "SUITE|FILE")]
    what: Vec<String>,
    #[command(flatten)]
    place: Where,
}

impl Lint {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let suites = Suites::new(self.place.suites());
        let catalogue = suites.catalogue()?;
        let (rigs, names): (Vec<String>, Vec<String>) =
            self.what.iter().cloned().partition(|name| is_of_kind(name, "Rig"));
        let (mut known, names): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| is_of_kind(name, "Limitations"));
        let files =
            if self.what.is_empty() || !names.is_empty() { suites.chosen(&names)? } else { Vec::new() };
        let rigs = if self.what.is_empty() { rig_files(&self.place.rigs()) } else { rigs };
        let mut troubles = Vec::new();
        for rig in &rigs {
            match find_rig(rig, Path::new("")) {
                Ok(rig) => known.extend(rig.limitations),
                Err(error) => troubles.push(Trouble::from(error)),
            }
        }
        known.sort();
        known.dedup();
        for file in &known {
            if let Err(error) = limits::load(Path::new(file), &suites, &catalogue) {
                troubles.push(Trouble::from(error));
            }
        }
        for file in &files {
            if let Err(error) = file.load(&catalogue) {
                troubles.push(Trouble::from(error));
            }
        }
        // Names are unique among all suites, whichever of them were asked for.
        for (name, same) in twice(&suites.files()?) {
            troubles.push(Trouble::Input(miette::miette!(
                help = "rename all but one: a scenario's name stands alone in reports and histories",
                "the name {name} is given {} times: {}",
                same.len(),
                same.join(", ")
            )));
        }
        for trouble in &troubles {
            match trouble {
                Trouble::Input(report) => eprintln!("{report:?}"),
                Trouble::Infra(error) => eprintln!("{error}"),
            }
        }
        say(&format!("{} scenario files and {} rigs: {}", files.len(), rigs.len(), count(troubles.len())));
        Ok(if troubles.is_empty() { Exit::Passed } else { Exit::BadInput })
    }
}

fn count(troubles: usize) -> String {
    match troubles {
        0 => "no mistakes".to_owned(),
        1 => "1 with mistakes".to_owned(),
        more => format!("{more} with mistakes"),
    }
}

/// Whether a file says that it is of a kind.
fn is_of_kind(name: &str, kind: &str) -> bool {
    std::fs::read_to_string(name).is_ok_and(|source| {
        source.lines().any(|line| line.strip_prefix("kind: ").map(str::trim) == Some(kind))
    })
}

fn rig_files(rigs: &Path) -> Vec<String> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(rigs)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files.iter().map(|path| path.display().to_string()).collect()
}

/// Scenario names that several files have.
fn twice(files: &[ScenarioFile]) -> BTreeMap<String, Vec<String>> {
    let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        if let Ok(head) = file.head() {
            by_name.entry(head.name).or_default().push(file.path().display().to_string());
        }
    }
    by_name.retain(|_, same| same.len() > 1);
    by_name
}
