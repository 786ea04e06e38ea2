//! Scenarios of the language's own: each act does on a rig what the documents say of it.
//!
//! One file in `acts/` is one scenario; what its trial must come to stands in its first line, after `# expect: `. They
//! run on the simulated rig, whose history is the same every time.

use rigor::ground::{Ground, find_rig};
use rigor::runner::{Trial, run_trial};
use rigor_model::catalogue::Catalogue;
use rigor_model::faults::Faults;
use rigor_model::{Outcome, Scenario};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn catalogue() -> Catalogue {
    let path = root().join("suites/requirements.yaml");
    Catalogue::parse("requirements.yaml", &fs::read_to_string(path).unwrap()).unwrap()
}

/// The scenarios of a file in `acts/`.
fn scenarios(path: &Path) -> Vec<Scenario> {
    let source = fs::read_to_string(path).unwrap();
    let folder = path.parent().unwrap();
    let beside = |name: &str| fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let name = path.file_name().unwrap().to_string_lossy();
    Scenario::parse(&name, &source, &catalogue(), &beside).unwrap_or_else(|mistakes| panic!("{mistakes:#}"))
}

/// Outcome and text of each of its trials on the rig, or why the rig does not run it.
fn tried(path: &Path, rig: &str) -> Vec<(String, Outcome, String)> {
    let ground = Ground::prepare(find_rig(rig, &root().join("rigs")).unwrap()).unwrap();
    let evidence = tempfile::tempdir().unwrap();
    let open: Box<rigor::runner::Open<'_>> = Box::new(|asked| ground.open(asked));
    let of = |scenario: &Scenario| {
        if let Some(lack) = ground.rig().lacks(scenario.boards.len(), &scenario.needs) {
            return (scenario.title(), Outcome::Skipped, lack);
        }
        let trial = Trial {
            name: &scenario.title(),
            scenario,
            rig: ground.rig(),
            seed: 7,
            faults: Faults::None,
            evidence: Some(evidence.path().join("kept")),
            keep: false,
        };
        let report = run_trial(&trial, &*open);
        (scenario.title(), report.outcome, report.text.unwrap_or_default())
    };
    scenarios(path).iter().map(of).collect()
}

#[test]
fn every_act_does_what_the_documents_say() {
    let mut count = 0;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acts");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let Some(expected) = source.lines().next().and_then(|line| line.strip_prefix("# expect: ")) else {
            continue;
        };
        for (title, outcome, text) in tried(&path, "sim") {
            let came = match outcome {
                Outcome::Pass => "pass".to_owned(),
                other => format!("{}: {text}", other.name()),
            };
            assert!(came.starts_with(expected), "{title}: expected {expected}, came to {came}");
            count += 1;
        }
    }
    assert!(count > 0);
}

#[test]
fn fragments_of_the_acts_are_right_by_themselves() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acts/fragments");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = rigor::suite::FragmentFile::at(&entry.unwrap().path()).expect("a fragment");
        file.check().unwrap_or_else(|error| panic!("{error:#}"));
        count += 1;
    }
    assert_eq!(count, 2);
}
