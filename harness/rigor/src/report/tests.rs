//! Reports as a person reads them, from one made-up run with every outcome in it.

use super::*;
use rigor_model::catalogue::Catalogue;
use rigor_model::report::{Margins, RigReport};
use rigor_model::{Constant, Constants, FaultLevel, Outcome, Profile, RigKind};
use rigor_trace::{Fact, History, Micros, PowerAct, Verb};
use serde_json::json;
use std::time::Duration;

fn history() -> History {
    let object = |name: &str, phase: &str| json!({"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "status": {"phase": phase}});
    let pod = |verb, object| Fact::Object { stream: "pods".to_owned(), verb, object };
    let mut history = History::new();
    history.push(Micros(1_000), pod(Verb::Listed, object("p", "Pending")));
    history.push(Micros(2_000), pod(Verb::Modified, object("p", "Running")));
    history.push(Micros(3_000), pod(Verb::Added, object("q", "True")));
    history.push(Micros(4_000), pod(Verb::Deleted, object("q", "True")));
    history.push(
        Micros(5_000),
        Fact::Object {
            stream: "events".to_owned(),
            verb: Verb::Added,
            object: json!({
                "metadata": {"name": "p.1", "namespace": "default"}, "type": "Warning", "reason": "Evicted",
                "involvedObject": {"kind": "Pod", "name": "p"}, "count": 2, "message": "taint"
            }),
        },
    );
    history.push(
        Micros(6_000),
        Fact::Console { board: "a".to_owned(), line: "kubelet ready node=a".to_owned() },
    );
    history.push(
        Micros(7_000_000),
        Fact::Power { board: "a".to_owned(), act: PowerAct::Cut, begun: Micros(6_990_000) },
    );
    history
}

fn catalogue() -> Catalogue {
    let row = |id: &str, profile: &str| format!("  - {{id: {id}, profile: {profile}, must: \"be so\"}}\n");
    let rows = [
        row("NODE-03", "kube32"),
        row("NODE-04", "both"),
        row("NODE-09", "kube32"),
        row("NODE-99", "kube32"),
        row("SCHED-34", "upstream"),
    ];
    Catalogue::parse("requirements.yaml", &format!("version: 2\nareas:\n  all:\n{}", rows.concat())).unwrap()
}

fn run() -> RunReport {
    let trial = |name: &str, requirement: &str, outcome, reason: Option<&str>| TrialReport {
        reason: reason.map(str::to_owned),
        length: Micros(1_234_000),
        ..TrialReport::unrun(name, vec![requirement.to_owned()], outcome, String::new())
    };
    let mut failed = trial("node/power-loss", "NODE-03", Outcome::Fail, None);
    failed.text = Some("expected Node a Unknown\n2.31 s too early".to_owned());
    let margins =
        Margins { early_micros: Some(-2_310_000), late_micros: Some(2_810_000), uncertainty_micros: 100_000 };
    failed.steps = vec![
        ("steps 1".to_owned(), Outcome::Pass, None),
        ("steps 2".to_owned(), Outcome::Fail, Some(margins)),
    ];
    failed.evidence = Some("report/evidence/node/power-loss".into());
    failed.history = history();
    let mut retried = trial("node/hang", "NODE-09", Outcome::Pass, None);
    retried.attempts = vec!["the emulator ended".to_owned()];
    retried.constants = [(Constant::TolerationSeconds, Duration::from_secs(20))].into();
    let mut unsteady = trial("sched/unsteady", "SCHED-34", Outcome::Fail, None);
    unsteady.text = Some("expected two\nfound one".to_owned());
    unsteady.quarantined = Some("quarantined until 2027-03-31: now and then (tickets/7)".to_owned());
    RunReport {
        started: Some("2026-11-29T12:00:00Z".to_owned()),
        rig: RigReport {
            name: "qemu-short".to_owned(),
            kind: RigKind::Qemu,
            machine: "qemu-virt".to_owned(),
            emulator: Some("QEMU emulator version 7.2.22".to_owned()),
            firmware_sha256: Some("ba78".to_owned()),
            control_plane: None,
        },
        constants: Constants::default(),
        seed: 7,
        faults: FaultLevel::None,
        search: None,
        profile: Profile::Kube32,
        trials: vec![
            trial("binding/conflict", "BIND-02", Outcome::Pass, None),
            trial("kubectl/raw", "BIND-04", Outcome::Skipped, Some("the rig has no kubectl")),
            retried,
            trial("node/late", "NODE-03", Outcome::Pass, None),
            failed,
            trial("node/slow", "NODE-04", Outcome::Undecided, Some("observer too slow")),
            trial("sched/known", "SCHED-26", Outcome::KnownLimitation, Some("see docs/limits.md")),
            trial("sched/rig", "SCHED-01", Outcome::InfraError, Some("no emulator")),
            unsteady,
        ],
        limitations: vec![rigor_model::report::LimitationReport {
            about: "sched/unsteady".to_owned(),
            line: 12,
            until: Some("2027-03-31".to_owned()),
            reference: "tickets/7".to_owned(),
            reason: "now and then".to_owned(),
            state: rigor_model::report::EntryState::InForce,
        }],
    }
}

#[test]
fn the_conformance_report_states_what_ran_and_what_came_of_it() {
    insta::assert_snapshot!(serde_saphyr::to_string(&conformance(&run(), &catalogue())).unwrap());
}

#[test]
fn junit_has_a_suite_an_area() {
    let xml = junit(&run()).unwrap();
    insta::assert_snapshot!(xml);
}

#[test]
fn a_folder_holds_this_run_and_nothing_older() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report");
    let folder = Folder::make(&path).unwrap();
    std::fs::create_dir_all(folder.evidence("node/old")).unwrap();
    std::fs::write(path.join("junit.xml"), "old").unwrap();
    std::fs::write(path.join("notes.txt"), "a person's").unwrap();
    let folder = Folder::make(&path).unwrap();
    std::fs::create_dir_all(folder.evidence("node/passed")).unwrap();
    std::fs::create_dir_all(folder.evidence("node/failed")).unwrap();
    std::fs::write(folder.evidence("node/failed").join("events.txt"), "").unwrap();
    folder.write(&run(), &catalogue()).unwrap();
    assert!(folder.evidence("node/failed").exists() && !folder.evidence("node/passed").exists());
    let mut names: Vec<_> = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["events.jsonl", "evidence", "junit.xml", "notes.txt", "report.yaml"]);
    let events = std::fs::read_to_string(path.join("events.jsonl")).unwrap();
    assert_eq!(events.lines().count(), history().len());
    assert!(
        events.lines().next().unwrap().starts_with("{\"seq\":0,\"at\":1000,\"kind\":\"Object\""),
        "{events}"
    );
}

#[test]
fn evidence_that_is_no_reports_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mine = dir.path().join("evidence/mine");
    std::fs::create_dir(dir.path().join("evidence")).unwrap();
    std::fs::write(&mine, "a person's").unwrap();
    let error = Folder::make(dir.path()).unwrap_err().to_string();
    assert!(error.contains("name another folder with --report-dir") && mine.exists(), "{error}");
    // What an interrupted run left is a report's.
    let path = dir.path().join("report");
    let folder = Folder::make(&path).unwrap();
    std::fs::create_dir_all(folder.evidence("node/failed")).unwrap();
    assert!(Folder::make(&path).is_ok() && !path.join("evidence").exists());
}

#[test]
fn a_folder_that_cannot_be_made_says_what_to_do() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Folder::make(&file.path().join("report")).unwrap_err().to_string();
    assert!(error.contains("name another one with --report-dir"), "{error}");
}

#[test]
fn only_what_still_exists_is_a_current_object() {
    let history = history();
    let objects = current_objects(&history);
    let keys: Vec<_> = objects.keys().map(|(stream, key)| format!("{stream} {key}")).collect();
    assert_eq!(keys, ["events default/p.1", "pods default/p"]);
    assert_eq!(objects[&("pods", "default/p".to_owned())]["status"]["phase"], "Running");
}
