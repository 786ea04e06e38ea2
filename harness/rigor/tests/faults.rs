//! Scenarios of the suites under injected faults: mild ones change nothing, and whatever was injected can be injected again.
#![cfg(feature = "sim")]

use std::path::Path;

use rigor::dispatch::dispatch;
use rigor::filter::Filter;
use rigor::ground::{Ground, find_rig};
use rigor::plan::plan;
use rigor::report::TrialReport;
use rigor::runner::{Trial, run_trial, seed_of};
use rigor::suite::Suites;
use rigor_model::faults::Tally;
use rigor_model::{FaultLevel, FaultName, Faults, Outcome, Profile, Scenario};
use rigor_trace::faults::{schedule, tally};

/// Every so many-th trial is run.
const SHARE: usize = 6;

struct Planned {
    name: String,
    scenario: Scenario,
    seed: u64,
}

/// A share of all trials, each with a seed of its own.
fn some(ground: &Ground, suites: &Suites) -> Vec<Planned> {
    let catalogue = suites.catalogue().unwrap();
    let all = suites
        .files()
        .unwrap()
        .into_iter()
        .flat_map(|file| plan(&file, &catalogue, ground.rig(), &[Profile::Kube32], &Filter::All));
    let able = all.filter(|planned| planned.skip.is_none());
    let some = able.enumerate().filter(|(number, _)| number % SHARE == 0);
    some.map(|(number, planned)| Planned {
        seed: seed_of(number as u64, &planned.name),
        name: planned.name,
        scenario: planned.scenario.unwrap(),
    })
    .collect()
}

/// Runs each trial with drawn faults and then with those faults as a list, and compares the histories.
fn replayed(level: FaultLevel) -> (Vec<TrialReport>, Tally) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ground = Ground::prepare(find_rig("sim", &root.join("rigs")).unwrap()).unwrap();
    let trials = some(&ground, &Suites::new(root.join("suites")));
    assert!(trials.len() > 30, "{} trials", trials.len());
    let folder = tempfile::tempdir().unwrap();
    let one = |planned: &Planned| {
        let run = |faults: Faults| {
            // Without a folder the history is not kept.
            let evidence = folder.path().join(&planned.name);
            std::fs::create_dir_all(&evidence).unwrap();
            let trial = Trial {
                name: &planned.name,
                scenario: &planned.scenario,
                rig: ground.rig(),
                seed: planned.seed,
                faults,
                evidence: Some(evidence),
                keep: false,
            };
            run_trial(&trial, &|asked| ground.open(asked))
        };
        let found = run(Faults::Drawn(level));
        let again = run(Faults::Listed(schedule(&found.history)));
        let lines = |report: &TrialReport| -> Vec<String> {
            report.history.records().iter().map(|record| serde_json::to_string(record).unwrap()).collect()
        };
        let (was, is) = (lines(&found), lines(&again));
        assert!(!was.is_empty(), "{} has a history", planned.name);
        let differs = was.iter().zip(&is).find(|(was, is)| was != is);
        assert!(differs.is_none() && was.len() == is.len(), "{}: {differs:?}", planned.name);
        found
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let reports = dispatch(&trials, workers, one, |_, _| {});
    assert_eq!(reports.len(), trials.len());
    let mut injected = Tally::default();
    reports.iter().for_each(|report| injected.add(&tally(&report.history)));
    (reports, injected)
}

#[test]
fn scenarios_pass_under_mild_faults_and_their_histories_replay() {
    let (reports, injected) = replayed(FaultLevel::Mild);
    for report in reports {
        assert_eq!(report.outcome, Outcome::Pass, "{}: {:?}", report.name, report.text);
    }
    for kind in [FaultName::Delay, FaultName::Reorder, FaultName::Duplicate, FaultName::Clock] {
        assert!(injected.of(kind) > 0, "no {} among {injected}", kind.name());
    }
}

#[test]
fn histories_with_harsh_faults_replay_and_nothing_inside_gives_out() {
    let (reports, injected) = replayed(FaultLevel::Harsh);
    for report in reports {
        assert_ne!(report.outcome, Outcome::InfraError, "{}: {:?}", report.name, report.text);
    }
    for kind in FaultName::ALL {
        assert!(injected.of(kind) > 0, "no {} among {injected}", kind.name());
    }
}
