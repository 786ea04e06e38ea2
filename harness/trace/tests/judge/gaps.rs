//! Blind spots and stalls leave things undecided, unless lists on both sides settle them.

use rigor_trace::history::{ControlPlaneAct, Fact, Micros, Ran, Verb};
use serde_json::json;

use super::story::{Story, node_object, scenario};

const NEVER_UNKNOWN: &str = "- never: {of: {kind: Node, name: a}, match: {status: {conditions: [{type: Ready, status: Unknown}]}}, for: 10s}";

fn gap(story: &mut Story, stream: &str, since: u64) {
    story.fact(since, Fact::Gap { stream: stream.into(), reason: "connection lost".into() });
}

#[test]
fn a_gap_is_settled_by_lists_that_show_no_change() {
    let check = |after: serde_json::Value, version: u64, expected: &str| {
        let scenario = scenario(NEVER_UNKNOWN);
        let mut story = Story::exact();
        story.see_version(0, Verb::Added, "nodes", node_object("a", "True"), 7).begin(10_000, 0);
        gap(&mut story, "nodes", 12_000);
        story.see_version(14_000, Verb::Listed, "nodes", after, version);
        story.fact(14_000, Fact::Synced { stream: "nodes".into() }).end(21_000, 0);
        assert_eq!(story.told(&scenario).split(':').next(), Some(expected), "{version}");
    };
    check(node_object("a", "True"), 7, "pass");
    // Another version, but the condition tells since when it has been so.
    check(node_object("a", "True"), 9, "pass");
    // So now: it became so in the gap, and that is inside.
    check(node_object("a", "Unknown"), 9, "fail");
    let mut without = node_object("a", "True");
    without["status"]["conditions"][0]["lastTransitionTime"] = json!("another");
    // It went and came back.
    check(without, 9, "pass");
}

#[test]
fn a_gap_leaves_open_what_may_have_come_and_gone() {
    let check = |steps: &str, expected: &str| {
        let scenario = scenario(steps);
        let mut story = Story::exact();
        story.pod(0, Verb::Added, "lamp", "a", "Running").begin(10_000, 0);
        gap(&mut story, "pods", 12_000);
        gap(&mut story, "events", 12_000);
        let pod = json!({"kind": "Pod", "metadata": {"name": "lamp", "namespace": "default"}, "spec": {"nodeName": "a"}, "status": {"phase": "Running"}});
        story.see(14_000, Verb::Listed, "pods", pod);
        story.fact(14_000, Fact::Synced { stream: "pods".into() });
        story.fact(14_000, Fact::Synced { stream: "events".into() }).end(30_000, 0);
        assert_eq!(story.told(&scenario).split(':').next(), Some(expected), "{steps}");
    };
    check("- never: {of: {kind: Pod, name: lamp}, match: {status: {phase: Failed}}, for: 10s}", "undecided");
    check("- never: {of: {kind: Pod, name: lamp}, match: {status: {phase: Failed}}, for: 1s}", "pass");
    check("- never: {of: {kind: Pod, labels: {app: other}}, for: 10s}", "undecided");
    check("- never: {of: {kind: Event}, match: {reason: Evicted}, for: 10s}", "pass");
    check("- unchanged: {of: {kind: Pod, name: lamp}, field: spec.nodeName, for: 10s}", "pass");
    check(
        "- expect: {of: {kind: Pod, name: lamp}, match: {status: {phase: Failed}}, within: 3s}",
        "undecided",
    );
    check("- expect: {of: {kind: Pod, name: lamp}, match: {status: {phase: Failed}}, within: 1s}", "fail");
}

#[test]
fn nothing_is_written_while_the_control_plane_is_down() {
    let scenario = scenario("- never: {of: {kind: Pod, labels: {app: other}}, for: 10s}");
    let mut story = Story::exact();
    story.begin(10_000, 0);
    story.fact(12_000, Fact::ControlPlane { act: ControlPlaneAct::Kill, begun: Micros(12_000_000) });
    gap(&mut story, "pods", 12_000);
    story.fact(18_000, Fact::ControlPlane { act: ControlPlaneAct::Start, begun: Micros(17_990_000) });
    story.fact(18_000, Fact::ControlPlaneReady {});
    story.fact(18_010, Fact::Synced { stream: "pods".into() }).end(30_000, 0);
    assert_eq!(story.told(&scenario), "pass");
}

/// A pod that came while a watch was lost, from half a second before `lost` to 37.126 s; the server was away from 12.5 s to 37 s.
fn over_an_outage(flags: &[&str], window: &str, lost: u64, serves_at: Option<u64>) -> String {
    let served = serves_at.map(|at| (at, Fact::ControlPlaneReady {}));
    over_an_outage_with(flags, window, lost, served)
}

/// The same, and something that happened meanwhile.
fn over_an_outage_with(flags: &[&str], window: &str, lost: u64, meanwhile: Option<(u64, Fact)>) -> String {
    let mut scenario = scenario(&format!("- expect: {{of: {{kind: Pod, name: lamp}}, between: {window}}}"));
    scenario.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let mut story = Story::real();
    story.begin(10_000, 0);
    story.fact(12_500, Fact::ControlPlane { act: ControlPlaneAct::Kill, begun: Micros(12_450_000) });
    gap(&mut story, "pods", lost);
    if let Some((at, fact)) = meanwhile {
        story.fact(at, fact);
    }
    story.fact(37_100, Fact::ControlPlane { act: ControlPlaneAct::Start, begun: Micros(37_000_000) });
    story.fact(37_100, Fact::ControlPlaneReady {}).pod(37_126, Verb::Listed, "lamp", "a", "Running");
    story.fact(37_126, Fact::Synced { stream: "pods".into() }).end(60_000, 0);
    story.told(&scenario)
}

#[test]
fn a_change_that_nobody_saw_came_before_an_outage_or_after_it() {
    let check = |window: &str, expected: &str| {
        let told = over_an_outage(&[], window, 12_500, None);
        assert_eq!(told.split(':').next(), Some(expected), "{window}: {told}");
    };
    check("[2s, 30s]", "pass");
    // From 12.0 s to 12.5 s, or from 37.0 s to 37.1 s: either is inside, as far as half a second lets one tell.
    check("[2300ms, 30s]", "pass");
    check("[1s, 27100ms]", "pass");
    // Both are outside.
    check("[3s, 20s]", "fail");
    // One is inside and the other is not.
    check("[20s, 30s]", "undecided");
    check("[1s, 20s]", "undecided");
    assert_eq!(
        over_an_outage(&[], "[3s, 20s]", 12_500, None),
        "fail: it came at 12.000..37.126 s, too early or too late (the control plane was away from 12.500 s to 37.000 s): Pod default/lamp (resourceVersion 100, Listed)",
    );
    assert_eq!(
        over_an_outage(&[], "[20s, 30s]", 12_500, None),
        "undecided: the observer was too slow: it came at 12.000..37.126 s, and that is uncertain by 25.126 s where the slack is 0.500 s; the control plane was away from 12.500 s to 37.000 s, and it matters whether it came before that or after",
    );
}

#[test]
fn a_change_that_came_in_an_outage_or_after_it_came_after_it() {
    assert_eq!(over_an_outage(&[], "[20s, 30s]", 13_001, None), "pass");
    let late = over_an_outage(&[], "[1s, 20s]", 13_001, None);
    assert!(late.starts_with("fail: it came at 37.000..37.126 s, 7.000 s too late"), "{late}");
    // It served meanwhile, or somebody else may have written to its store.
    let unknown = over_an_outage(&[], "[20s, 30s]", 13_001, Some(20_000));
    assert!(unknown.starts_with("undecided") && !unknown.contains("away"), "{unknown}");
    let shared = over_an_outage(&["--store=etcd"], "[20s, 30s]", 13_001, None);
    assert!(shared.starts_with("undecided") && !shared.contains("away"), "{shared}");
}

#[test]
fn what_etcdctl_wrote_was_written_while_the_control_plane_was_away() {
    let check = |word: &str, expected: &str| {
        let ran = Ran {
            begun: Micros(20_000_000),
            argv: vec![word.to_owned(), "/registry/pods/default/lamp".to_owned()],
            status: 0,
            stdout: String::new(),
            stderr: String::new(),
        };
        let told = over_an_outage_with(&[], "[20s, 30s]", 13_001, Some((20_100, Fact::Etcdctl(ran))));
        assert_eq!(told.split(':').next(), Some(expected), "{word}: {told}");
    };
    check("get", "pass");
    check("put", "undecided");
}

#[test]
fn what_a_list_no_longer_shows_went_in_the_gap() {
    let scenario = scenario("- expect: {of: {kind: Pod, name: lamp}, absent: true, between: [3s, 6s]}");
    let check = |since: u64, synced: u64, expected: &str| {
        let mut story = Story::exact();
        story.pod(0, Verb::Added, "lamp", "a", "Running").begin(10_000, 0);
        gap(&mut story, "pods", since);
        story.fact(synced, Fact::Synced { stream: "pods".into() }).end(30_000, 0);
        assert_eq!(story.told(&scenario).split(':').next(), Some(expected), "{since}..{synced}");
    };
    check(13_500, 15_500, "pass");
    check(12_000, 15_500, "undecided");
    check(11_000, 12_000, "fail");
    check(16_001, 17_000, "fail");
}

#[test]
fn a_stall_of_the_harness_excuses_lateness_but_not_haste() {
    let check = |at: u64, stall: u64, expected: &str| {
        let scenario = scenario("- expect: {of: {kind: Pod, name: lamp}, between: [2s, 3s]}");
        let mut story = Story::real();
        story.begin(10_000, 0).pulse(at - 10, at - 5);
        story.pod(at, Verb::Added, "lamp", "a", "Running");
        story.fact(at.max(13_000), Fact::Stall { length: Micros(stall * 1000) }).end(30_000, 0);
        assert_eq!(story.told(&scenario).split(':').next(), Some(expected), "{at} {stall}");
    };
    check(14_000, 400, "fail");
    check(14_000, 2_000, "undecided");
    check(11_000, 2_000, "fail");
    check(12_500, 2_000, "pass");
}

#[test]
fn a_recording_that_ends_too_early_settles_nothing() {
    let scenario = scenario(NEVER_UNKNOWN);
    let mut story = Story::exact();
    story.ready(0, "a", "True").begin(10_000, 0).fact(12_000, Fact::TrialEnded {});
    assert_eq!(story.outcome(&scenario).name(), "undecided");
    let mut story = Story::exact();
    story.ready(0, "a", "True").begin(10_000, 0).end(12_000, 0);
    assert_eq!(story.outcome(&scenario).name(), "undecided");
}

#[test]
fn what_nobody_watched_is_undecided() {
    let scenario = scenario("- never: {of: {kind: ConfigMap}, for: 1s}");
    let mut story = Story::exact();
    story.begin(10_000, 0).end(12_000, 0);
    assert_eq!(story.told(&scenario), "undecided: nobody watched configmaps");
}
