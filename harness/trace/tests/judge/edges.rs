//! `expect`: too early, in time, too late, undecided, for every kind of observation.

use rigor_trace::history::Verb;
use serde_json::json;

use super::story::{Story, node_object, scenario};

const UNKNOWN: &str =
    "of: {kind: Node, name: a}, match: {status: {conditions: [{type: Ready, status: Unknown}]}}";

/// A state that comes at these times and goes at those, in a step from 10 s to 15 s.
fn state(window: &str, changes: &[(u64, &str)]) -> String {
    let scenario = scenario(&format!("- expect: {{{UNKNOWN}, {window}}}"));
    let mut story = Story::exact();
    story.ready(0, "a", "True");
    let mut begun = false;
    for (at, status) in changes {
        if !begun && *at >= 10_000 {
            story.begin(10_000, 0);
            begun = true;
        }
        story.ready(*at, "a", status);
    }
    if !begun {
        story.begin(10_000, 0);
    }
    story.end(15_000, 0);
    story.told(&scenario)
}

#[test]
fn a_state_within_a_time() {
    let check = |changes: &[(u64, &str)], expected: &str| {
        assert_eq!(state("within: 2s", changes), expected, "{changes:?}")
    };
    check(&[(5_000, "Unknown")], "pass");
    check(&[(11_000, "Unknown")], "pass");
    check(&[(12_000, "Unknown")], "pass");
    check(&[(11_000, "Unknown"), (11_100, "True")], "pass");
    check(
        &[(12_001, "Unknown")],
        "fail: it came at 12.001 s, 0.001 s too late: Node a (resourceVersion 101, Modified)",
    );
    check(
        &[(5_000, "Unknown"), (6_000, "True")],
        "fail: it never came; closest was Node a (resourceVersion 102, Modified), at 6.000 s, which differs: | status.conditions[type=Ready].status: expected \"Unknown\", found \"True\"",
    );
}

#[test]
fn a_state_between_two_instants() {
    let check = |changes: &[(u64, &str)], expected: &str| {
        assert_eq!(state("between: [2s, 3s]", changes), expected, "{changes:?}");
    };
    check(
        &[(11_999, "Unknown")],
        "fail: it came at 11.999 s, 0.001 s too early: Node a (resourceVersion 101, Modified)",
    );
    check(&[(12_000, "Unknown")], "pass");
    check(&[(13_000, "Unknown")], "pass");
    check(
        &[(13_001, "Unknown")],
        "fail: it came at 13.001 s, 0.001 s too late: Node a (resourceVersion 101, Modified)",
    );
    // So before the window's base, and still so: nothing became of it inside.
    check(
        &[(5_000, "Unknown")],
        "fail: it came at 5.000 s, 7.000 s too early: Node a (resourceVersion 101, Modified)",
    );
    // So before, but over: an earlier outage does not count.
    check(&[(5_000, "Unknown"), (6_000, "True"), (12_500, "Unknown")], "pass");
    // A flash after the base and before the window is too early, though it comes again in time.
    check(
        &[(11_000, "Unknown"), (11_100, "True"), (12_500, "Unknown")],
        "fail: it came at 11.000 s, 1.000 s too early: Node a (resourceVersion 101, Modified)",
    );
}

#[test]
fn a_state_that_ends_as_the_window_opens() {
    let check = |window: &str, end: u64, again: u64, expected: &str| {
        let changes = [(5_000, "Unknown"), (end, "True"), (again, "Unknown")];
        let told = state(window, &changes);
        assert_eq!(told.split(',').next(), Some(expected), "{window} {end} {again}");
    };
    check("between: [2s, 3s]", 11_999, 12_500, "pass");
    check("between: [2s, 3s]", 12_000, 12_500, "pass");
    check("between: [2s, 3s]", 12_001, 12_500, "fail: it came at 5.000 s");
    check("between: [2s, 3s]", 12_000, 14_000, "fail: it came at 14.000 s");
    // The base itself opens the window.
    check("between: [0s, 3s]", 10_000, 10_500, "pass");
    check("between: [0s, 3s]", 10_001, 10_500, "fail: it came at 5.000 s");
    // Nothing comes of it in the window.
    assert!(
        state("between: [2s, 3s]", &[(5_000, "Unknown"), (12_000, "True")])
            .starts_with("fail: it never came")
    );
}

#[test]
fn a_state_that_ends_about_when_the_window_opens() {
    let check = |earliest: u64, latest: u64, expected: &str| {
        let scenario = scenario(&format!("- expect: {{{UNKNOWN}, between: [2s, 3s]}}"));
        let mut story = Story::real();
        story.ready(0, "a", "True").pulse(4_900, 4_900).ready(5_000, "a", "Unknown").begin(10_000, 0);
        story.pulse(earliest, earliest).ready(latest, "a", "True");
        story.pulse(12_700, 12_700).ready(12_710, "a", "Unknown").end(20_000, 0);
        let told = story.told(&scenario);
        assert_eq!(told.split(',').next(), Some(expected), "{earliest}..{latest}");
    };
    check(11_500, 11_999, "pass");
    check(11_800, 12_200, "pass");
    check(11_800, 12_301, "undecided: the observer was too slow: it was so before");
    check(12_001, 12_200, "fail: it came at 4.900..5.000 s");
}

/// A state known to have come between two times, in a window of 2 to 3 s; the slack is 500 ms.
fn uncertain(earliest: u64, latest: u64) -> String {
    let scenario = scenario(&format!("- expect: {{{UNKNOWN}, between: [2s, 3s]}}"));
    let mut story = Story::real();
    story.ready(0, "a", "True").begin(10_000, 0).pulse(earliest, earliest);
    story.ready(latest, "a", "Unknown").end(20_000, 0);
    story.told(&scenario)
}

#[test]
fn what_is_uncertain_by_more_than_the_slack_is_undecided() {
    let check = |earliest, latest, expected: &str| {
        assert_eq!(uncertain(earliest, latest).split(':').next(), Some(expected), "{earliest}..{latest}");
    };
    check(11_800, 11_999, "fail");
    check(11_800, 12_000, "pass");
    check(11_500, 12_000, "pass");
    check(11_499, 12_000, "undecided");
    check(12_100, 12_900, "pass");
    check(12_900, 13_200, "pass");
    check(12_600, 13_200, "undecided");
    check(13_001, 13_900, "fail");
}

#[test]
fn a_state_of_several_objects() {
    let check = |how: &str, expected: &str| {
        let scenario = scenario(&format!("- expect: {{of: {{kind: Pod, {how}, between: [2s, 3s]}}"));
        let mut story = Story::exact();
        story.begin(10_000, 0);
        story.pod(11_000, Verb::Added, "web-1", "a", "Running");
        story.pod(12_500, Verb::Added, "web-2", "", "Pending");
        story.pod(12_800, Verb::Modified, "web-2", "b", "Running");
        story.pod(13_500, Verb::Deleted, "web-1", "a", "Running").end(20_000, 0);
        assert_eq!(story.told(&scenario), expected, "{how}");
    };
    check("names: [web-1, web-2]}, match: {status: {phase: Running}}", "pass");
    check("labels: {app: web}}, match: {status: {phase: Running}}, count: 2", "pass");
    check("labels: {app: web}}, count: {$ge: 2}", "pass");
    check(
        "labels: {app: web}}, match: {status: {phase: Running}}, count: all",
        "fail: it came at 11.000 s, 1.000 s too early: Pod default/web-1 (resourceVersion 100, Added)",
    );
    check(
        "labels: {app: web}}, count: 3",
        "fail: it never came: when the window closed there were 2, where the count is 3",
    );
    check(
        "name: web-1}, absent: true",
        "fail: it came at 13.500 s, 0.500 s too late: Pod default/web-1 (resourceVersion 103, Deleted)",
    );
    check("fields: {spec.nodeName: b}}", "pass");
    check("labels: {app: other}}", "fail: it never came: no Pod of that selection was there");
}

#[test]
fn absence_has_an_onset_too() {
    let check = |deleted, expected: &str| {
        let scenario = scenario("- expect: {of: {kind: Pod, name: lamp}, absent: true, between: [2s, 3s]}");
        let mut story = Story::exact();
        story.pod(1_000, Verb::Added, "lamp", "a", "Running").begin(10_000, 0);
        story.pod(deleted, Verb::Deleted, "lamp", "a", "Running").end(20_000, 0);
        assert_eq!(story.told(&scenario).split(':').next(), Some(expected), "{deleted}");
    };
    check(11_999, "fail");
    check(12_000, "pass");
    check(13_000, "pass");
    check(13_001, "fail");
}

#[test]
fn an_event_between_two_instants() {
    let check = |at: &[u64], expected: &str| {
        let scenario = scenario("- expect: {of: {kind: Event}, match: {reason: Evicted}, between: [2s, 3s]}");
        let mut story = Story::exact();
        story.event(1_000, "old", "Evicted", 1).begin(10_000, 0);
        for (index, at) in at.iter().enumerate() {
            story.event(*at, &format!("e{index}"), "Evicted", 1);
        }
        story.end(20_000, 0);
        assert_eq!(story.told(&scenario), expected, "{at:?}");
    };
    check(&[11_999], "fail: it came at 11.999 s, 0.001 s too early: Event Evicted on lamp: Evicted happened");
    check(&[12_000], "pass");
    check(&[13_000, 14_000], "pass");
    check(&[13_001], "fail: it came at 13.001 s, 0.001 s too late: Event Evicted on lamp: Evicted happened");
    check(&[], "fail: it never came; there was no Event at all in that time");
}

#[test]
fn events_are_counted_by_how_often_they_say_they_occurred() {
    let check = |count: &str, expected: &str| {
        let scenario = scenario(&format!(
            "- expect: {{of: {{kind: Event}}, match: {{reason: FailedScheduling}}, count: {count}, between: [1s, 5s]}}"
        ));
        let mut story = Story::exact();
        story.begin(10_000, 0);
        story.event(10_500, "e", "FailedScheduling", 1).event(11_500, "e", "FailedScheduling", 2);
        story
            .event(12_500, "e", "FailedScheduling", 5)
            .event(16_000, "e", "FailedScheduling", 6)
            .end(20_000, 0);
        assert_eq!(story.told(&scenario).split(" | ").next(), Some(expected), "{count}");
    };
    check("4", "pass");
    check("{$ge: 2, $lt: 5}", "pass");
    check("1", "fail: 4 in the window, where the count is 1");
    check("5", "fail: 4 in the window, where the count is 5");
}

#[test]
fn a_count_that_an_edge_leaves_open_is_undecided_only_if_it_matters() {
    let check = |pulse: u64, count: &str, expected: &str| {
        let scenario = scenario(&format!(
            "- expect: {{of: {{kind: Event}}, match: {{reason: Evicted}}, count: {count}, between: [2s, 3s]}}"
        ));
        let mut story = Story::real();
        story.begin(10_000, 0).pulse(pulse, pulse).event(12_300, "one", "Evicted", 1).end(20_000, 0);
        assert_eq!(story.told(&scenario).split(':').next(), Some(expected), "{pulse} {count}");
    };
    check(12_000, "1", "pass");
    check(11_900, "1", "pass");
    check(11_700, "1", "undecided");
    check(11_700, "{$le: 1}", "pass");
    check(11_700, "2", "fail");
}

#[test]
fn what_an_act_brought_about_counts_though_it_came_before_the_answer() {
    let scenario = scenario(
        "- power: {board: a, do: restore}\n- expect: {console: {board: a, matches: kubelet ready}, within: 1s}",
    );
    let check = |at: u64, expected: &str| {
        let mut story = Story::exact();
        story.console(5_000, "a", "kubelet ready node=a");
        let power = rigor_trace::Fact::Power {
            board: "a".into(),
            act: rigor_trace::PowerAct::Restore,
            begun: rigor_trace::Micros(10_000_000),
        };
        story.begin(10_000, 0).console(
            at.min(10_050),
            "a",
            if at < 10_100 { "kubelet ready node=a" } else { "booting" },
        );
        story.fact(10_100, power).end(10_100, 0).begin(10_100, 1);
        if at >= 10_100 {
            story.console(at, "a", "kubelet ready node=a");
        }
        story.end(15_000, 1);
        let verdict = story.judged(&scenario).steps[1].1.outcome;
        assert_eq!(verdict.name(), expected, "{at}");
    };
    check(10_050, "pass");
    check(11_100, "pass");
    check(11_101, "fail");
}

#[test]
fn requests_are_occurrences() {
    let check = |what: &str, expected: &str| {
        let scenario =
            scenario(&format!("- expect: {{request: {what}, from: start, within: 20s, count: 1}}"));
        let mut story = Story::exact();
        for (id, (path, status)) in [("/api/v1/nodes", 200), ("/api/v1/nodes/a", 404)].into_iter().enumerate()
        {
            story.fact(
                1_000,
                rigor_trace::Fact::Request {
                    id: id as u32,
                    sent: rigor_trace::Micros(900_000),
                    as_user: "admin".into(),
                    method: "GET".into(),
                    path: path.into(),
                    body: None,
                    status,
                    response: Some(json!({"kind": "Status", "code": status})),
                    date: None,
                    headers: std::collections::BTreeMap::new(),
                    error: None,
                },
            );
        }
        story.begin(10_000, 0).end(30_000, 0);
        assert_eq!(story.told(&scenario).split(" | ").next(), Some(expected), "{what}");
    };
    check("{path: /api/v1/nodes}", "pass");
    check("{status: 404}", "pass");
    check("{match: {code: {$lt: 300}}}", "pass");
    check("{path: {$regex: nodes}}", "fail: 2 in the window, where the count is 1");
    check(
        "{user: anonymous}",
        "fail: 0 in the window, where the count is 1; the last requests in that time:",
    );
}

#[test]
fn margins_are_told() {
    let scenario = scenario(&format!("- expect: {{{UNKNOWN}, between: [2s, 3s]}}"));
    let mut story = Story::exact();
    story.ready(0, "a", "True").begin(10_000, 0).ready(12_250, "a", "Unknown").end(15_000, 0);
    let margins = story.first(&scenario).margins.expect("margins");
    assert_eq!(
        (margins.early_micros, margins.late_micros, margins.uncertainty_micros),
        (Some(250_000), Some(750_000), 0)
    );
    assert_eq!(node_object("a", "True")["kind"], "Node");
}
