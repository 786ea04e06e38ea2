//! Scenarios of the language's own: each act does on a rig what the documents say of it.
//!
//! One file in `acts/` is one scenario; what its trial must come to stands in its first line, after `# expect: `. They
//! run on the simulated rig, whose history is the same every time; what is of processes also runs on those.

#[path = "bench/acts.rs"]
mod bench;

use bench::{folder, rig, scenarios, tried};
use rigor::terminal::Style;
use rigor::timeline::{Layout, Wanted, timeline};
use std::fs;
use std::path::Path;

/// What the trials of a file have to come to, and how many came to it.
fn check(path: &Path, on: &str) -> usize {
    let source = fs::read_to_string(path).unwrap();
    let Some(expected) = source.lines().next().and_then(|line| line.strip_prefix("# expect: ")) else {
        return 0;
    };
    let evidence = tempfile::tempdir().unwrap();
    let all = tried(path, rig(on), evidence.path());
    for trial in &all {
        let (title, came) = (&trial.title, &trial.came);
        assert!(came.starts_with(expected), "{title} on {on}: expected {expected}, came to {came}");
    }
    all.len()
}

#[test]
fn every_act_does_what_the_documents_say() {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let count: usize = files.filter(|path| !path.is_dir()).map(|path| check(&path, "sim")).sum();
    assert!(count > 0);
}

#[test]
fn a_second_scheduler_is_a_process_too() {
    assert_eq!(check(&folder().join("second-scheduler.yaml"), "host"), 1);
}

#[test]
fn what_a_second_scheduler_prints_is_looked_at() {
    let (path, evidence) = (folder().join("scheduler-log.yaml"), tempfile::tempdir().unwrap());
    let trials = tried(&path, rig("host"), evidence.path());
    let [trial] = trials.as_slice() else { panic!("one trial") };
    assert_eq!(trial.came, "pass");
    // Its history says the same by itself, and shows the lines to whoever reads it.
    let file = fs::read(evidence.path().join("scheduler-log/events.jsonl")).unwrap();
    let history = rigor_trace::jsonl::read(file.as_slice()).unwrap().remove(0);
    let scenario = &scenarios(&path)[0];
    assert_eq!(rigor_trace::judge(scenario, &history).outcome.name(), "pass");
    let layout = Layout { style: Style { colour: false }, width: None };
    let shown = timeline(&history, Some(scenario), &Wanted::default(), layout);
    let would = format!("{}/lamp would be bound to n1 (dry run)", history.namespace());
    assert!(shown.lines().any(|line| line.contains("output second") && line.contains(&would)), "{shown}");
    let kept = fs::read_to_string(evidence.path().join("scheduler-log/scheduler-second.log")).unwrap();
    assert!(kept.contains(&would), "{kept}");
}

#[test]
fn a_control_plane_that_is_a_process_takes_a_scenarios_flags() {
    assert_eq!(check(&folder().join("upstream-profile.yaml"), "host"), 2);
    assert_eq!(check(&folder().join("unknown-flag.yaml"), "host"), 1);
    assert_eq!(check(&folder().join("flag-of-the-rig.yaml"), "host"), 1);
}

#[test]
fn a_control_plane_that_is_a_process_keeps_its_state_in_etcd() {
    let evidence = tempfile::tempdir().unwrap();
    let trials = tried(&folder().join("etcd.yaml"), rig("host"), evidence.path());
    let [trial] = trials.as_slice() else { panic!("one trial") };
    if let Some(lack) = trial.came.strip_prefix("skipped: the rig host lacks etcd: ") {
        assert!(lack.ends_with("not on PATH (Debian: apt-get install etcd-server etcd-client)"), "{lack}");
        println!("skipped: {lack}");
        return;
    }
    assert_eq!(trial.came, "pass");
    let log = fs::read_to_string(evidence.path().join("etcd/etcd.log")).unwrap();
    assert!(log.contains("ready to serve client requests") && !log.contains("-- ended"), "{log}");
    let history = fs::read_to_string(evidence.path().join("etcd/events.jsonl")).unwrap();
    let ran = history.lines().filter(|line| line.contains(r#""kind":"Etcdctl""#));
    assert!(ran.clone().count() >= 5 && ran.clone().all(|line| line.contains(r#""argv":["#)), "{history}");
}

#[test]
fn fragments_of_the_acts_are_right_by_themselves() {
    let folder = folder().join("fragments");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = rigor::suite::FragmentFile::at(&entry.unwrap().path()).expect("a fragment");
        file.check().unwrap_or_else(|error| panic!("{error:#}"));
        count += 1;
    }
    assert_eq!(count, 2);
}
