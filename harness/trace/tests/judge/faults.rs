//! Injected faults: mild ones change nothing, harsh ones move upper edges and excuse what they may rightly break, and nothing
//! else.

use rigor_trace::history::{ControlPlaneAct, Fact, FaultKind, FaultLevel, Phase, Verb};
use rigor_trace::{Judge, Micros, StepState};

use super::story::{Story, scenario};

const UNKNOWN: &str =
    "of: {kind: Node, name: a}, match: {status: {conditions: [{type: Ready, status: Unknown}]}}";
const DARK: FaultKind = FaultKind::PowerCut { dark: 1_000_000 };
const KILL: FaultKind = FaultKind::Kill { down: 1_000_000, writes: 0 };

/// Things that happen in a step from 10 s on: a state of Node a, or a fault with both its ends.
enum Then {
    Ready(u64, &'static str),
    Dark(u64, u64),
    Delayed(u64),
}
use Then::{Dark, Delayed, Ready};

/// The story of Node a and of board b, in one step from 10 s to the given end.
fn told(level: FaultLevel, step: &str, then: &[Then], end: u64) -> (String, Option<String>) {
    let scenario = scenario(step);
    let mut facts: Vec<(u64, usize)> = Vec::new();
    for (index, one) in then.iter().enumerate() {
        match one {
            Ready(at, _) | Delayed(at) => facts.push((*at, index)),
            Dark(from, until) => facts.extend([(*from, index), (*until, index)]),
        }
    }
    facts.sort_unstable();
    let mut story = Story::faulty(level);
    story.ready(0, "a", "True");
    let mut begun = false;
    for (at, index) in facts {
        if !begun && at >= 10_000 {
            story.begin(10_000, 0);
            begun = true;
        }
        match &then[index] {
            Ready(_, status) => story.ready(at, "a", status),
            Delayed(_) => story.fault(at, "link:a", FaultKind::Delay { micros: 9 }, Phase::Begin),
            Dark(from, _) if *from == at => story.fault(at, "board:b", DARK, Phase::Begin),
            Dark(..) => story.fault(at, "board:b", DARK, Phase::End),
        };
    }
    if !begun {
        story.begin(10_000, 0);
    }
    story.end(end, 0);
    let verdict = story.first(&scenario);
    (story.told(&scenario), verdict.excused)
}

#[test]
fn an_upper_edge_counts_from_the_last_fault_that_began_before_the_window_closed() {
    let step = format!("- expect: {{{UNKNOWN}, within: 2s}}");
    let outcome = |level, then: &[Then]| {
        let (told, excused) = told(level, &step, then, 40_000);
        assert_eq!(excused, None);
        told.split(':').next().unwrap_or_default().to_owned()
    };
    use FaultLevel::{Harsh, Mild};
    assert_eq!(outcome(Harsh, &[Ready(12_001, "Unknown")]), "fail");
    assert_eq!(outcome(Harsh, &[Dark(11_000, 15_000), Ready(19_500, "Unknown")]), "pass");
    assert_eq!(outcome(Harsh, &[Dark(11_000, 15_000), Ready(19_501, "Unknown")]), "fail");
    // It ended before the step began, and moves the edge all the same.
    assert_eq!(outcome(Harsh, &[Dark(9_000, 11_000), Ready(15_500, "Unknown")]), "pass");
    assert_eq!(outcome(Harsh, &[Dark(6_000, 7_000), Ready(12_001, "Unknown")]), "fail");
    // One after another.
    assert_eq!(
        outcome(Harsh, &[Dark(11_000, 15_000), Dark(16_000, 20_000), Ready(24_500, "Unknown")]),
        "pass"
    );
    // It had been quiet for two seconds.
    assert_eq!(outcome(Harsh, &[Dark(12_001, 15_000), Ready(15_500, "Unknown")]), "fail");
    assert_eq!(outcome(Harsh, &[Dark(12_000, 15_000), Ready(15_500, "Unknown")]), "pass");
    // What a healthy network does moves nothing, nor does a mild level.
    assert_eq!(outcome(Harsh, &[Delayed(11_000), Ready(12_001, "Unknown")]), "fail");
    assert_eq!(outcome(Mild, &[Dark(11_000, 15_000), Ready(12_001, "Unknown")]), "fail");
}

#[test]
fn where_there_are_no_boards_nobody_waits_before_trying_again() {
    let outcome = |boards: bool, at: u64| {
        let mut scenario = scenario(&format!("- expect: {{{UNKNOWN}, within: 2s}}"));
        if !boards {
            scenario.boards.clear();
        }
        let mut story = Story::faulty(FaultLevel::Harsh);
        story.ready(0, "a", "True").begin(10_000, 0);
        story.fault(11_000, "server", KILL, Phase::Begin).fault(15_000, "server", KILL, Phase::End);
        story.ready(at, "a", "Unknown").end(40_000, 0);
        story.first(&scenario).outcome.name()
    };
    assert_eq!([17_000, 17_001].map(|at| outcome(false, at)), ["pass", "fail"]);
    assert_eq!([19_500, 19_501].map(|at| outcome(true, at)), ["pass", "fail"]);
}

#[test]
fn the_message_says_that_the_edge_was_moved() {
    let step = format!("- expect: {{{UNKNOWN}, within: 2s}}");
    let (told, _) = told(FaultLevel::Harsh, &step, &[Dark(11_000, 15_000), Ready(19_501, "Unknown")], 40_000);
    assert_eq!(
        told,
        "fail: the upper edge counts from the last fault, power-cut at board:b from 11.000 s to 15.000 s | it came at 19.501 s, 0.001 s too late: Node a (resourceVersion 101, Modified)"
    );
}

#[test]
fn a_lower_edge_stays_where_it_is() {
    let step = format!("- expect: {{{UNKNOWN}, between: [2s, 3s]}}");
    let check = |then: &[Then], expected: &str| {
        let (told, excused) = told(FaultLevel::Harsh, &step, then, 40_000);
        assert_eq!((told.split(':').next(), excused), (Some(expected), None));
    };
    check(&[Dark(9_000, 11_500), Ready(11_999, "Unknown")], "fail");
    check(&[Dark(9_000, 11_500), Ready(12_000, "Unknown")], "pass");
    check(&[Dark(9_000, 11_500), Ready(17_000, "Unknown")], "pass");
    check(&[Dark(9_000, 11_500), Ready(17_001, "Unknown")], "fail");
}

#[test]
fn what_a_fault_brought_about_before_the_base_is_excused() {
    let step = format!("- expect: {{{UNKNOWN}, between: [2s, 3s]}}");
    let outcome = |then: &[Then]| {
        let (told, excused) = told(FaultLevel::Harsh, &step, then, 40_000);
        (told.split(':').next().unwrap_or_default().to_owned(), excused)
    };
    assert_eq!(outcome(&[Ready(9_000, "Unknown")]), ("fail".to_owned(), None));
    // Not one that began later.
    assert_eq!(outcome(&[Ready(8_000, "Unknown"), Dark(8_001, 9_000)]).0, "fail");
    let (outcome, excused) = outcome(&[Dark(7_000, 8_000), Ready(9_000, "Unknown")]);
    assert_eq!(outcome, "pass");
    let excused = excused.expect("an excuse");
    assert!(excused.contains("3.000 s too early"), "{excused}");
    assert!(
        excused.ends_with("excused: faults in its window: power-cut at board:b from 7.000 s to 8.000 s"),
        "{excused}"
    );
}

#[test]
fn what_must_never_be_is_excused_in_the_wake_of_a_fault_only() {
    let step = format!("- never: {{{UNKNOWN}, for: 100s}}");
    let check = |level, then: &[Then], expected: &str, is_excused: bool| {
        let (told, excused) = told(level, &step, then, 130_000);
        assert_eq!((told.split(':').next(), excused.is_some()), (Some(expected), is_excused), "{told}");
    };
    use FaultLevel::{Harsh, Mild};
    check(Harsh, &[], "pass", false);
    check(Harsh, &[Ready(20_000, "Unknown")], "fail", false);
    check(Harsh, &[Dark(15_000, 16_000), Ready(20_000, "Unknown"), Ready(21_000, "True")], "pass", true);
    check(Mild, &[Dark(15_000, 16_000), Ready(20_000, "Unknown"), Ready(21_000, "True")], "fail", false);
    check(Harsh, &[Ready(20_000, "Unknown"), Dark(20_001, 21_000)], "fail", false);
    // What was so before the window opened, at 10 s, breaks it only then: a fault may have kept it so.
    check(Harsh, &[Ready(5_000, "Unknown"), Dark(7_000, 8_000), Ready(12_000, "True")], "pass", true);
    check(Harsh, &[Ready(5_000, "Unknown"), Dark(10_500, 11_000), Ready(12_000, "True")], "fail", false);
    // The aftermath: lease 15 s, check 0.5 s, scheduler and controllers 1 s each, a board's retry 10 s.
    check(Harsh, &[Dark(15_000, 16_000), Ready(43_500, "Unknown")], "pass", true);
    check(Harsh, &[Dark(15_000, 16_000), Ready(43_501, "Unknown")], "fail", false);
    // What is excused hides nothing that comes later.
    check(
        Harsh,
        &[Dark(15_000, 16_000), Ready(20_000, "Unknown"), Ready(21_000, "True"), Ready(90_000, "Unknown")],
        "fail",
        false,
    );
}

#[test]
fn a_window_after_the_last_fault_is_judged_sharply() {
    let step = "- unchanged: {of: {kind: Node, name: a}, field: status.conditions, for: 100s}";
    let check = |then: &[Then], expected: &str, is_excused: bool| {
        let (told, excused) = told(FaultLevel::Harsh, step, then, 130_000);
        assert_eq!((told.split(':').next(), excused.is_some()), (Some(expected), is_excused), "{told}");
    };
    check(&[Dark(15_000, 16_000), Ready(20_000, "Unknown")], "pass", true);
    check(&[Dark(1_000, 2_000), Ready(20_000, "Unknown")], "pass", true);
    check(&[Dark(1_000, 2_000), Ready(31_000, "Unknown")], "fail", false);
    let always = "- always: {of: {kind: Node, name: a}, match: {status: {conditions: [{type: Ready, status: 'True'}]}}, for: 100s}";
    let (told, excused) =
        told(FaultLevel::Harsh, always, &[Dark(15_000, 16_000), Ready(20_000, "Unknown")], 130_000);
    assert_eq!((told.as_str(), excused.is_some()), ("pass", true));
}

#[test]
fn an_exact_number_is_excused_and_a_least_number_is_not() {
    let told = |count: &str, faulty: bool, events: u64| {
        let scenario = scenario(&format!(
            "- expect: {{of: {{kind: Event}}, match: {{reason: Evicted}}, count: {count}, between: [0s, 5s]}}"
        ));
        let mut story = Story::faulty(FaultLevel::Harsh);
        story.begin(10_000, 0);
        if faulty {
            story.fault(10_500, "server", KILL, Phase::Begin).fault(11_000, "server", KILL, Phase::End);
        }
        for number in 1..=events {
            story.event(11_000 + number, "lamp.1", "Evicted", number);
        }
        story.end(30_000, 0);
        let verdict = story.first(&scenario);
        (verdict.outcome.name(), verdict.excused.is_some())
    };
    assert_eq!(told("1", false, 1), ("pass", false));
    assert_eq!(told("1", false, 2), ("fail", false));
    assert_eq!(told("1", true, 2), ("pass", true));
    assert_eq!(told("1", true, 1), ("pass", false));
    assert_eq!(told("{$ge: 2}", true, 1), ("fail", false));
}

#[test]
fn what_an_answer_shows_is_excused_and_a_refusal_is_not() {
    let told = |method: &str, at: u64, status: u16| {
        let step = format!(
            "- request: {{method: {method}, path: /api/v1/nodes/a, answer: {{status: 200, match: {{kind: Node}}}}}}"
        );
        let scenario = scenario(&step);
        let mut story = Story::faulty(FaultLevel::Harsh);
        story.fault(1_000, "board:a", DARK, Phase::Begin).fault(2_000, "board:a", DARK, Phase::End);
        let request = Fact::Request {
            id: 0,
            sent: Micros(at * 1000),
            as_user: "admin".into(),
            method: method.into(),
            path: "/api/v1/nodes/a".into(),
            body: None,
            status,
            response: Some(serde_json::json!({"kind": "Status"})),
            headers: std::collections::BTreeMap::new(),
            date: None,
            error: None,
        };
        story.begin(at, 0).fact(at, request).end(at, 0);
        let verdict = story.first(&scenario);
        (verdict.outcome.name(), verdict.excused.is_some())
    };
    assert_eq!(told("GET", 20_000, 404), ("pass", true));
    assert_eq!(told("GET", 29_501, 404), ("fail", false));
    assert_eq!(told("DELETE", 20_000, 404), ("fail", false));
    assert_eq!(told("DELETE", 20_000, 200), ("pass", true));
    assert_eq!(told("DELETE", 29_501, 200), ("fail", false));
}

#[test]
fn a_fault_that_is_not_over_keeps_an_expectation_waiting() {
    let scenario = scenario(&format!("- expect: {{{UNKNOWN}, within: 2s}}"));
    let mut story = Story::faulty(FaultLevel::Harsh);
    story.ready(0, "a", "True").begin(10_000, 0).fault(11_000, "server", KILL, Phase::Begin);
    let state =
        |story: &Story, millis: u64| Judge::new(&scenario).step(0, &story.history, Micros(millis * 1000));
    assert_eq!(state(&story, 60_000), StepState::Pending { until: Micros(64_500_001) });
    story.fault(61_000, "server", KILL, Phase::End);
    assert_eq!(state(&story, 62_000), StepState::Pending { until: Micros(65_500_001) });
    assert!(matches!(state(&story, 65_501), StepState::Settled(verdict) if verdict.outcome.name() == "fail"));
    story.ready(62_500, "a", "Unknown");
    assert!(matches!(state(&story, 62_500), StepState::Settled(verdict) if verdict.outcome.name() == "pass"));
}

#[test]
fn a_server_that_a_fault_killed_saw_nothing_happen_meanwhile() {
    let step = "- never: {of: {kind: Pod, name: lamp}, match: {status: {phase: Failed}}, for: 20s}";
    let told = |ready: u64| {
        let scenario = scenario(step);
        let mut story = Story::faulty(FaultLevel::Harsh);
        story.pod(9_000, Verb::Added, "lamp", "a", "Running").begin(10_000, 0);
        story.fault(11_000, "server", KILL, Phase::Begin);
        story.fact(11_000, Fact::Gap { stream: "pods".into(), reason: "killed".into() });
        story.fact(ready, Fact::ControlPlaneReady {});
        story.pod(15_000, Verb::Listed, "lamp", "a", "Running");
        story.fact(15_000, Fact::Synced { stream: "pods".into() });
        story.fault(15_000, "server", KILL, Phase::End).end(40_000, 0);
        (story.told(&scenario), story.first(&scenario).excused.is_some())
    };
    assert_eq!(told(15_000), ("pass".to_owned(), false));
    // It served again for seconds before anyone looked: that is the fault's doing, and said.
    assert_eq!(told(12_000), ("pass".to_owned(), true));
}

#[test]
fn a_server_that_a_fault_had_killed_began_to_serve_when_the_fault_was_over() {
    let scenario =
        scenario("- always: {of: {kind: Node, name: a}, match: {kind: Node}, from: serving, for: 2s}");
    let mut story = Story::faulty(FaultLevel::Harsh);
    story.ready(0, "a", "True").begin(10_000, 0);
    story.fault(11_000, "server", KILL, Phase::Begin).fault(14_000, "server", KILL, Phase::End);
    story.fact(14_000, Fact::ControlPlaneReady {}).end(20_000, 0);
    let serving = Judge::new(&scenario).instant(
        0,
        &story.history,
        Micros(20_000_000),
        &rigor_model::expr::Instant::Serving,
    );
    assert_eq!(serving, Ok(rigor_trace::Interval::exactly(Micros(14_000_000))));
}

#[test]
fn a_doubt_is_excused_where_the_breach_would_be() {
    let act = |did, begun: u64| Fact::ControlPlane { act: did, begun: Micros(begun * 1000) };
    // The node changed while the server was being started: before it served, or after.
    let told = |step: &str, changes: &[(u64, &str)], faulty: bool, level: FaultLevel| {
        let scenario = scenario(step);
        let mut story = Story::faulty(level);
        story.ready(0, "a", "True").begin(8_000, 0);
        if faulty {
            story.fault(9_000, "board:b", DARK, Phase::Begin).fault(10_000, "board:b", DARK, Phase::End);
        }
        story.fact(10_000, act(ControlPlaneAct::Stop, 10_000));
        for (at, status) in changes {
            story.ready(*at, "a", status);
        }
        story.fact(11_500, act(ControlPlaneAct::Start, 11_000));
        story.fact(11_500, Fact::ControlPlaneReady {}).end(40_000, 0);
        let verdict = story.first(&scenario);
        (verdict.outcome.name(), verdict.excused.is_some())
    };
    let never = format!("- never: {{{UNKNOWN}, from: serving, for: 5s}}");
    let unchanged =
        "- unchanged: {of: {kind: Node, name: a}, field: status.conditions, from: begin, until: serving}";
    let back: &[(u64, &str)] = &[(10_500, "Unknown"), (11_200, "True")];
    for (step, changes) in [(never.as_str(), back), (unchanged, &[(11_200, "Unknown")])] {
        assert_eq!(told(step, changes, true, FaultLevel::Harsh), ("pass", true), "{step}");
        assert_eq!(told(step, changes, false, FaultLevel::Harsh), ("undecided", false), "{step}");
        assert_eq!(told(step, changes, true, FaultLevel::Mild), ("undecided", false), "{step}");
    }
    // Of two occurrences one is inside for certain.
    let counted = |expectation: &str, faulty: bool| {
        let scenario = scenario(expectation);
        let mut story = Story::faulty(FaultLevel::Harsh);
        story.begin(8_000, 0);
        if faulty {
            story.fault(9_000, "board:b", DARK, Phase::Begin).fault(10_000, "board:b", DARK, Phase::End);
        }
        story.fact(10_000, act(ControlPlaneAct::Stop, 10_000)).event(11_200, "lamp.1", "Evicted", 1);
        story.fact(11_500, act(ControlPlaneAct::Start, 11_000)).fact(11_500, Fact::ControlPlaneReady {});
        story.event(12_000, "lamp.1", "Evicted", 2).end(40_000, 0);
        let verdict = story.first(&scenario);
        (verdict.outcome.name(), verdict.excused.is_some())
    };
    let events = "of: {kind: Event}, match: {reason: Evicted}";
    let exactly = format!("- expect: {{{events}, count: 1, between: [serving, serving + 5s]}}");
    let never = format!("- never: {{{events}, count: 2, from: serving, for: 5s}}");
    for expectation in [&exactly, &never] {
        assert_eq!(counted(expectation, true), ("pass", true), "{expectation}");
        assert_eq!(counted(expectation, false), ("undecided", false), "{expectation}");
    }
    let least = format!("- expect: {{{events}, count: {{$ge: 2}}, between: [serving, serving + 5s]}}");
    assert_eq!(counted(&least, true), ("undecided", false), "so many at least must come");
}

#[test]
fn a_window_that_closes_while_nobody_sees_is_judged_when_someone_does() {
    for step in [
        "- never: {of: {kind: Pod, name: lamp}, match: {status: {phase: Failed}}, for: 2s}",
        "- unchanged: {of: {kind: Pod, name: lamp}, field: status.phase, for: 2s}",
        "- expect: {of: {kind: Event}, match: {reason: Evicted}, count: 0, between: [1s, 2s]}",
    ] {
        let scenario = scenario(step);
        let mut story = Story::faulty(FaultLevel::Harsh);
        story.pod(9_000, Verb::Added, "lamp", "a", "Running").begin(10_000, 0);
        story.fault(11_000, "server", KILL, Phase::Begin);
        for stream in ["pods", "events"] {
            story.fact(11_000, Fact::Gap { stream: stream.into(), reason: "killed".into() });
        }
        let state =
            |story: &Story, millis: u64| Judge::new(&scenario).step(0, &story.history, Micros(millis * 1000));
        assert!(matches!(state(&story, 20_000), StepState::Pending { .. }), "{step}");
        story.fact(20_000, Fact::ControlPlaneReady {}).fault(20_000, "server", KILL, Phase::End);
        story.see_version(20_000, Verb::Listed, "pods", lamp(), 101);
        for stream in ["pods", "events"] {
            story.fact(20_000, Fact::Synced { stream: stream.into() });
        }
        let state = state(&story, 24_501);
        let passed = matches!(&state, StepState::Settled(verdict) if verdict.outcome.name() == "pass");
        assert!(passed, "{step} {state:?}");
    }
}

/// The pod as the list after the gap shows it.
fn lamp() -> serde_json::Value {
    serde_json::json!({"kind": "Pod", "metadata": {"name": "lamp", "namespace": "default"}, "spec": {"nodeName": "a"},
        "status": {"phase": "Running"}})
}

#[test]
fn monitors_take_a_fault_for_what_it_is() {
    let seen = |story: &Story| -> Vec<&str> {
        let all = rigor_trace::monitors::all(&scenario("- wait: 1s"), &story.history);
        all.into_iter().map(|violation| violation.monitor).collect()
    };
    let banner = "rigor kubelet 0.1.0 board=qemu-virt reset=power-on";
    let mut story = Story::faulty(FaultLevel::Harsh);
    story.console(100, "b", banner);
    story.fault(1_000, "board:b", DARK, Phase::Begin).fault(2_000, "board:b", DARK, Phase::End);
    story.console(2_100, "b", banner);
    assert!(seen(&story).is_empty());
    story.console(2_200, "b", banner);
    assert_eq!(seen(&story), ["no reset that nobody asked for"]);

    // A pod on two boards: only time in which neither a fault nor the server's death keeps one from hearing counts.
    let started = "pod default/lamp container main started";
    let twice = |site: &str, kind: FaultKind, until: u64| {
        let mut story = Story::faulty(FaultLevel::Harsh);
        story.renew(900, "a").console(1_000, "a", started).fault(5_000, site, kind, Phase::Begin);
        story.console(30_000, "b", started).fault(60_000, site, kind, Phase::End);
        if site == "server" {
            story.fact(60_000, Fact::ControlPlaneReady {});
        }
        story.renew(61_000, "a").renew(61_000, "b").console(
            until,
            "a",
            "pod default/lamp dropped: it was moved",
        );
        story.fact(90_000, Fact::TrialEnded {});
        seen(&story)
    };
    for (site, kind) in [
        ("link:a", FaultKind::Lose {}),
        ("link:a", FaultKind::Cut { keep: 0, silent: true }),
        ("server", KILL),
    ] {
        assert!(twice(site, kind, 71_000).is_empty(), "{kind:?}");
        assert_eq!(twice(site, kind, 72_000), ["no pod runs twice"], "{kind:?}");
    }
    // On another board's link it is no excuse; a board without power runs nothing.
    assert_eq!(twice("link:c", FaultKind::Lose {}, 71_000), ["no pod runs twice"]);
    assert!(twice("board:a", DARK, 80_000).is_empty());
}
