//! The scenarios in `acts/`, tried on a rig.

use rigor::ground::{Ground, find_rig};
use rigor::runner::{Trial, run_trial};
use rigor_model::catalogue::Catalogue;
use rigor_model::faults::Faults;
use rigor_model::{Outcome, Rig, Scenario};
use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of the scenarios.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acts")
}

/// A rig that ships.
pub fn rig(name: &str) -> Rig {
    find_rig(name, &root().join("rigs")).unwrap()
}

fn catalogue() -> Catalogue {
    let path = root().join("suites/requirements.yaml");
    Catalogue::parse("requirements.yaml", &fs::read_to_string(path).unwrap()).unwrap()
}

/// The scenarios of a file in `acts/`.
pub fn scenarios(path: &Path) -> Vec<Scenario> {
    let source = fs::read_to_string(path).unwrap();
    let folder = path.parent().unwrap();
    let beside = |name: &str| fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let name = path.file_name().unwrap().to_string_lossy();
    Scenario::parse(&name, &source, &catalogue(), &beside).unwrap_or_else(|mistakes| panic!("{mistakes:#}"))
}

/// What a trial came to, as the first line of its file expects it.
pub struct Tried {
    /// Its title.
    pub title: String,
    /// `pass`, or another outcome with its text.
    pub came: String,
}

/// Each trial of a file on the rig, or why the rig does not run it. Evidence is kept in `evidence`, a folder a trial.
pub fn tried(path: &Path, rig: Rig, evidence: &Path) -> Vec<Tried> {
    let ground = Ground::prepare(rig).unwrap_or_else(|infra| panic!("{}", infra.whole()));
    let open: Box<rigor::runner::Open<'_>> = Box::new(|asked| ground.open(asked));
    let of = |scenario: &Scenario| {
        let title = scenario.title();
        if let Some(lack) = ground.rig().refuses(scenario) {
            return Tried { title, came: format!("{}: {lack}", Outcome::Skipped.name()) };
        }
        let trial = Trial {
            name: &title,
            scenario,
            rig: ground.rig(),
            seed: 7,
            faults: Faults::None,
            evidence: Some(evidence.join(title.replace('/', "-"))),
            keep: true,
        };
        let report = run_trial(&trial, &*open);
        let came = match report.outcome {
            Outcome::Pass => "pass".to_owned(),
            other => format!("{}: {}", other.name(), report.text.unwrap_or_default()),
        };
        Tried { title, came }
    };
    scenarios(path).iter().map(of).collect()
}
