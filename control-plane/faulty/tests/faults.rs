//! The hand-made faults as they lie in this repository: each fits the sources of today, and names requirements that exist.

use std::path::{Path, PathBuf};

use control_plane_faulty::fault::{self, Kind};
use control_plane_faulty::shadow::{SECOND_SCHEDULER, Woven};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A fault that does not fit any more stops `ci/mutants`; whoever moves the code is told here.
#[test]
fn every_fault_fits_the_sources_of_today() {
    let faults = fault::load(&root()).unwrap();
    let woven = Woven::of(&root(), &faults).unwrap_or_else(|error| panic!("{error:#}"));
    for file in woven.edits.keys() {
        let source = woven.source(&root(), file).unwrap_or_else(|error| panic!("{error:#}"));
        assert!(source.contains("::fault::on("), "{file}");
    }
}

#[test]
fn faults_name_requirements_that_exist_in_one_sentence() {
    let catalogue = std::fs::read_to_string(root().join("suites/requirements.yaml")).unwrap();
    for fault in fault::load(&root()).unwrap() {
        for id in &fault.breaks {
            assert!(
                catalogue.contains(&format!("- id: {id}\n")),
                "{} breaks {id}, which is no requirement",
                fault.id
            );
        }
        assert!(fault.goes_wrong.ends_with('.'), "{}: `goes-wrong` is no sentence", fault.id);
    }
}

#[test]
fn there_are_as_many_as_were_asked_for() {
    let faults = fault::load(&root()).unwrap();
    let count = |kind| faults.iter().filter(|fault| fault.kind == kind).count();
    assert!(count(Kind::HandMade) >= 80, "{}", count(Kind::HandMade));
    assert!(count(Kind::Firmware) >= 15, "{}", count(Kind::Firmware));
    let second =
        |fault: &&fault::Fault| fault.edits.iter().all(|edit| edit.file.starts_with(SECOND_SCHEDULER));
    let of_second = faults.iter().filter(second).count();
    assert!(of_second >= 30, "{of_second}");
}

/// Rows of what only a real Kubernetes does are shown by histories instead (docs/coverage.md).
#[test]
fn every_requirement_of_what_is_here_has_a_fault_that_breaks_it() {
    let faults = fault::load(&root()).unwrap();
    let catalogue = std::fs::read_to_string(root().join("suites/requirements.yaml")).unwrap();
    let ids = catalogue.lines().filter_map(|line| line.trim().strip_prefix("- id: "));
    let mut whole: Vec<&str> =
        ids.filter(|id| !faults.iter().any(|fault| fault.breaks.iter().any(|it| it == id))).collect();
    whole.sort_unstable();
    assert_eq!(whole, ["JOB-09", "UP-01", "UP-02", "UP-03", "UP-04", "UP-05", "UP-06"]);
}
