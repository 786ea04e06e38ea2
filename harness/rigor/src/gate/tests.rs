//! Every refusal once, each from a report that is accepted and has one thing changed.

use super::*;
use rigor_model::report::{EntryState, LimitationReport, RigReport, roll_up, summarise};
use rigor_model::scenario::API_VERSION;
use rigor_model::{Constants, FaultLevel, RigKind};
use std::collections::BTreeMap;
use std::time::Duration;

fn catalogue() -> Catalogue {
    let row = |id: &str, profile: &str, more: &str| {
        format!("  - {{id: {id}, profile: {profile}, must: \"be so\"{more}}}\n")
    };
    let rows = [
        row("NODE-03", "kube32", ""),
        row("NODE-04", "both", ""),
        row("KLET-01", "kubelet", ""),
        row("UP-01", "upstream", ""),
        row("EXT-01", "external", ""),
        row("NODE-90", "kube32", ", feature: extended"),
    ];
    Catalogue::parse("requirements.yaml", &format!("version: 2\nareas:\n  all:\n{}", rows.concat())).unwrap()
}

fn trial(name: &str, id: &str, outcome: Outcome) -> ScenarioReport {
    ScenarioReport {
        name: name.to_owned(),
        outcome,
        requirements: vec![id.to_owned()],
        reason: (outcome != Outcome::Pass).then(|| "because\nof this".to_owned()),
        quarantined: None,
        excused: Vec::new(),
        injected: None,
        withheld: None,
        length_micros: 1,
        constants: BTreeMap::new(),
        steps: Vec::new(),
        evidence: Vec::new(),
    }
}

/// A report that every gate accepts for the profile kube32, and then what is done to its trials.
fn report(change: impl Fn(&mut Vec<ScenarioReport>)) -> Report {
    let mut scenarios = vec![
        trial("node/loss", "NODE-03", Outcome::Pass),
        trial("node/taint/short", "NODE-04", Outcome::Pass),
        trial("node/unlit", "KLET-01", Outcome::Pass),
        trial("node/extra", "NODE-90", Outcome::Skipped),
    ];
    change(&mut scenarios);
    Report {
        api_version: API_VERSION.to_owned(),
        kind: "ConformanceReport".to_owned(),
        date: None,
        profile: Some(Profile::Kube32),
        seed: 1,
        faults: FaultLevel::None,
        search: None,
        rig: RigReport {
            name: "qemu".to_owned(),
            kind: RigKind::Qemu,
            machine: "qemu-virt".to_owned(),
            emulator: Some("QEMU emulator version 9".to_owned()),
            firmware_sha256: Some("ab".to_owned()),
            control_plane: None,
        },
        constants: Constants::default(),
        summary: summarise(&scenarios),
        requirements: roll_up(&catalogue(), &scenarios),
        scenarios,
        not_shown: Vec::new(),
        limitations: Vec::new(),
    }
}

fn same(_: &mut Vec<ScenarioReport>) {}

fn gate(catalogue: &Catalogue) -> Gate<'_> {
    Gate { catalogue, baseline: None, require: None, release: false }
}

fn said(refusals: &[Refusal]) -> Vec<&str> {
    refusals.iter().map(|refusal| refusal.said.as_str()).collect()
}

#[test]
fn without_more_a_gate_says_what_the_run_said() {
    let catalogue = catalogue();
    let check = |outcome: Outcome, code: u8, expected: &[&str]| {
        let report = report(|trials| trials[0] = trial("node/loss", "NODE-03", outcome));
        let refusals = gate(&catalogue).refusals(&report);
        assert_eq!(said(&refusals), expected, "{outcome:?}");
        assert_eq!(exit(&refusals).code(), code, "{outcome:?}");
        let outcomes: Vec<Outcome> = report.scenarios.iter().map(|trial| trial.outcome).collect();
        assert_eq!(exit(&refusals), Exit::of(&outcomes), "{outcome:?}");
    };
    check(Outcome::Pass, 0, &[]);
    check(Outcome::Skipped, 0, &[]);
    check(Outcome::KnownLimitation, 0, &[]);
    check(
        Outcome::Fail,
        1,
        &["node/loss failed (because); mend it, or state it as a known limitation (docs/limitations.md)"],
    );
    check(Outcome::InfraError, 3, &["node/loss was not tried: its rig failed (because); run it again"]);
    check(
        Outcome::Undecided,
        4,
        &["node/loss stayed undecided (because); run it again on a quieter machine"],
    );
    let nothing = report(|trials| trials.retain(|trial| trial.outcome == Outcome::Skipped));
    let refusals = gate(&catalogue).refusals(&nothing);
    assert_eq!(exit(&refusals), Exit::Infra);
    assert!(said(&refusals)[0].contains("nothing passed"), "{refusals:?}");
    // What is quarantined counts for nothing, as in the run.
    let quarantined = report(|trials| {
        trials[0].outcome = Outcome::Fail;
        trials[0].quarantined = Some("quarantined until 2027-03-31".to_owned());
    });
    assert_eq!(gate(&catalogue).refusals(&quarantined), []);
}

#[test]
fn an_entry_that_is_out_of_date_is_refused_where_nothing_is_worse() {
    let catalogue = catalogue();
    let mut report = report(same);
    report.limitations = vec![LimitationReport {
        about: "node/loss".to_owned(),
        line: 7,
        until: None,
        reference: "tickets/7".to_owned(),
        reason: "it is slow".to_owned(),
        state: EntryState::PassedUnexpectedly,
    }];
    let refusals = gate(&catalogue).refusals(&report);
    assert_eq!(exit(&refusals), Exit::Stale);
    assert_eq!(
        said(&refusals),
        [
            "the limitation of node/loss (line 7) is out of date: passed-unexpectedly; take the entry out of its file"
        ]
    );
    report.limitations[0].state = EntryState::InForce;
    assert_eq!(gate(&catalogue).refusals(&report), []);
}

#[test]
fn what_is_worse_than_the_baseline_is_named() {
    let catalogue = catalogue();
    let baseline = report(same);
    let against = Gate { baseline: Some(&baseline), ..gate(&catalogue) };
    assert_eq!(against.refusals(&baseline), []);
    let regressions = |report: &Report| -> Vec<String> {
        let refusals = against.refusals(report);
        let told = refusals.iter().filter(|refusal| refusal.said.starts_with("regression: "));
        told.map(|refusal| refusal.said.clone()).collect()
    };
    for outcome in [Outcome::Fail, Outcome::Undecided, Outcome::InfraError] {
        let worse = report(|trials| trials[1].outcome = outcome);
        let found = regressions(&worse);
        let expected = format!("node/taint/short passed in the baseline and is {} now", outcome.name());
        assert!(found.len() == 1 && found[0].contains(&expected), "{found:?}");
        assert_eq!(exit(&against.refusals(&worse)), Exit::Failed, "{outcome:?}: a regression is a failure");
    }
    let missing = report(|trials| trials.retain(|trial| trial.name != "node/extra"));
    let found = regressions(&missing);
    assert!(
        found.len() == 1
            && found[0].contains("node/extra is in the baseline (skipped) and not in the report"),
        "{found:?}"
    );
    let skipped = report(|trials| trials[0].outcome = Outcome::Skipped);
    let found = regressions(&skipped);
    assert!(
        found.len() == 1
            && found[0].contains("NODE-03 is core and every trial of it is skipped now (node/loss)"),
        "{found:?}"
    );
    // What was no better before is no regression, and neither is more.
    let before = report(|trials| trials[0].outcome = Outcome::Fail);
    let against = Gate { baseline: Some(&before), ..gate(&catalogue) };
    assert_eq!(
        against.refusals(&report(|trials| trials.push(trial("node/new", "NODE-03", Outcome::Pass)))),
        []
    );
    assert_eq!(said(&against.refusals(&before)).len(), 1);
    let mut other = report(same);
    other.rig.kind = RigKind::Sim;
    assert!(incomparable(&other, &baseline).unwrap().contains("kind qemu (qemu)"));
    assert_eq!(incomparable(&baseline, &baseline), None);
}

#[test]
fn each_core_requirement_of_the_profile_needs_a_pass() {
    let catalogue = catalogue();
    let required = |report: &Report, profile| {
        let refusals = Gate { require: Some(profile), ..gate(&catalogue) }.refusals(report);
        refusals.iter().map(|refusal| refusal.said.clone()).collect::<Vec<_>>()
    };
    assert!(required(&report(same), Profile::Kube32).is_empty(), "extended and external ones are not needed");
    assert_eq!(
        required(&report(same), Profile::Upstream),
        [
            "UP-01, core for upstream: no trial of the report cites it; run the suites whole, or write a scenario that shows it"
        ]
    );
    let limited = report(|trials| trials[0].outcome = Outcome::KnownLimitation);
    assert_eq!(
        required(&limited, Profile::Kube32),
        [
            "NODE-03, core for kube32: no trial of the report passed for it (node/loss known-limitation); make one pass, on a rig that has what it needs"
        ]
    );
    let one_of_two = report(|trials| trials.push(trial("node/other", "NODE-03", Outcome::Skipped)));
    assert!(required(&one_of_two, Profile::Kube32).is_empty());
}

#[test]
fn a_release_is_decided_true_to_time_and_on_boards_or_emulators() {
    let catalogue = catalogue();
    let release = Gate { release: true, ..gate(&catalogue) };
    assert_eq!(release.refusals(&report(same)), []);
    let check = |change: &dyn Fn(&mut Report), code: u8, expected: &str| {
        let mut report = report(same);
        change(&mut report);
        report.requirements = roll_up(&catalogue, &report.scenarios);
        let refusals = release.refusals(&report);
        assert_eq!(said(&refusals).len(), 1, "{expected}: {refusals:?}");
        assert!(refusals[0].said.contains(expected), "{expected}: {refusals:?}");
        assert_eq!(exit(&refusals).code(), code, "{expected}");
    };
    check(&|report| report.scenarios[0].outcome = Outcome::Undecided, 4, "node/loss stayed undecided");
    check(&|report| report.scenarios[0].outcome = Outcome::InfraError, 3, "node/loss was not tried");
    let quarantined = |report: &mut Report| {
        report.scenarios[0].outcome = Outcome::Undecided;
        report.scenarios[0].quarantined = Some("quarantined until 2027-03-31".to_owned());
    };
    check(&quarantined, 1, "node/loss is undecided and quarantined until 2027-03-31");
    let seconds = Duration::from_secs;
    check(
        &|report| report.constants.lease_duration = seconds(4),
        1,
        "constants.leaseDuration is 4s, not 15s",
    );
    check(
        &|report| report.constants.no_execute_delay = seconds(3),
        1,
        "constants.noExecuteDelay is 3s, not 15s",
    );
    check(
        &|report| report.constants.toleration_seconds = seconds(6),
        1,
        "constants.tolerationSeconds is 6s, not 5m",
    );
    check(
        &|report| report.constants.slack = Duration::from_millis(501),
        1,
        "constants.slack is 501ms, above 500ms",
    );
    check(
        &|report| report.scenarios[0].outcome = Outcome::Skipped,
        1,
        "NODE-03 is core and skipped: node/loss",
    );
    check(
        &|report| report.rig.kind = RigKind::Sim,
        1,
        "rig.kind is sim: qemu has neither emulator nor board",
    );
    check(&|report| report.rig.kind = RigKind::Host, 1, "rig.kind is host");
    check(&|report| report.rig.kind = RigKind::External, 1, "rig.kind is external");
    check(&|report| report.rig.emulator = None, 1, "rig.emulator is missing");
    check(&|report| report.rig.firmware_sha256 = None, 1, "rig.firmwareSha256 is missing");
    // What another profile asks may be skipped.
    let foreign = report(|trials| trials.push(trial("node/up", "UP-01", Outcome::Skipped)));
    assert_eq!(release.refusals(&foreign), []);
}
