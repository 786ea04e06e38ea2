//! `never`, `always`, `unchanged`, `order` and `capture`.

use rigor_trace::history::{Fact, Verb};
use rigor_trace::{Micros, PowerAct, StepState, judge_step};
use serde_json::json;

use super::story::{Story, scenario};

#[test]
fn never_a_state() {
    let check = |changes: &[(u64, &str)], expected: &str| {
        let scenario = scenario(
            "- never: {of: {kind: Node, name: a}, match: {status: {conditions: [{type: Ready, status: Unknown}]}}, for: 5s}",
        );
        let mut story = Story::exact();
        story.ready(0, "a", "True");
        for (at, status) in changes.iter().filter(|(at, _)| *at < 10_000) {
            story.ready(*at, "a", status);
        }
        story.begin(10_000, 0);
        for (at, status) in changes.iter().filter(|(at, _)| *at >= 10_000) {
            story.ready(*at, "a", status);
        }
        story.end(20_000, 0);
        assert_eq!(story.told(&scenario).split(':').next(), Some(expected), "{changes:?}");
    };
    check(&[], "pass");
    check(&[(5_000, "Unknown"), (9_000, "True")], "pass");
    check(&[(5_000, "Unknown"), (10_000, "True")], "pass");
    check(&[(5_000, "Unknown")], "fail");
    check(&[(14_999, "Unknown")], "fail");
    check(&[(12_000, "Unknown"), (12_001, "True")], "fail");
    check(&[(12_000, "Unknown"), (12_000, "True")], "pass");
    check(&[(15_000, "Unknown")], "pass");
}

#[test]
fn never_an_event_until_an_instant() {
    let check = |pulse: u64, at: u64, expected: &str| {
        let scenario = scenario("- never: {of: {kind: Event}, match: {reason: Evicted}, until: begin + 5s}");
        let mut story = Story::real();
        story.begin(10_000, 0).pulse(pulse, pulse).event(at, "e", "Evicted", 1).end(20_000, 0);
        assert_eq!(story.told(&scenario).split(':').next(), Some(expected), "{pulse}..{at}");
    };
    check(14_000, 14_999, "fail");
    check(14_900, 15_000, "pass");
    check(14_300, 15_000, "undecided");
    check(15_000, 15_100, "pass");
    check(9_900, 10_100, "pass");
}

#[test]
fn never_so_many() {
    let check = |count: &str, expected: &str| {
        let scenario = scenario(&format!(
            "- never: {{of: {{kind: Pod, labels: {{app: web}}}}, match: {{status: {{phase: Running}}}}, count: {count}, for: 5s}}"
        ));
        let mut story = Story::exact();
        story.begin(10_000, 0);
        story
            .pod(11_000, Verb::Added, "web-1", "a", "Running")
            .pod(12_000, Verb::Added, "web-2", "b", "Running")
            .end(20_000, 0);
        assert_eq!(story.told(&scenario).split(':').next(), Some(expected), "{count}");
    };
    check("{$gt: 2}", "pass");
    check("{$gt: 1}", "fail");
    check("2", "fail");
}

#[test]
fn always_a_state() {
    let check = |changes: &[(u64, &str)], expected: &str| {
        let scenario =
            scenario("- always: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, for: 5s}");
        let mut story = Story::exact();
        story.begin(10_000, 0);
        for (index, (at, phase)) in changes.iter().enumerate() {
            let verb = match *phase {
                "" => Verb::Deleted,
                _ if index == 0 => Verb::Added,
                _ => Verb::Modified,
            };
            story.pod(*at, verb, "lamp", "a", phase);
        }
        story.end(20_000, 0);
        assert_eq!(story.told(&scenario).split(':').next(), Some(expected), "{changes:?}");
    };
    check(&[(10_000, "Running")], "pass");
    check(&[(10_001, "Running")], "fail");
    check(&[], "fail");
    check(&[(10_000, "Running"), (14_999, "Failed")], "fail");
    check(&[(10_000, "Running"), (15_000, "Failed")], "pass");
    check(&[(10_000, "Running"), (14_000, "")], "fail");
    check(&[(10_000, "Running"), (14_000, "Failed"), (14_000, "Running")], "pass");
}

/// What an act brought about may still be on its way when the act's answer is in.
#[test]
fn a_state_is_known_only_when_news_of_its_end_had_time_to_come() {
    let scenario =
        scenario("- always: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, for: 5s}");
    let mut story = Story::real();
    story.pod(9_000, Verb::Added, "lamp", "a", "Pending").pulse(9_990, 9_991).begin(10_000, 0);
    let settled = |story: &Story, now: u64| {
        let state = judge_step(&scenario, 0, &story.history, Micros(now * 1000));
        match state {
            StepState::Pending { .. } => "pending",
            StepState::Settled(verdict) => verdict.outcome.name(),
        }
    };
    assert_eq!(settled(&story, 10_004), "pending");
    assert_eq!(settled(&story, 10_499), "pending");
    assert_eq!(settled(&story, 10_501), "fail");
    story.pod(10_010, Verb::Modified, "lamp", "a", "Running").pulse(10_100, 10_101);
    assert_eq!(settled(&story, 10_501), "pending");
    assert_eq!(settled(&story, 15_501), "pass");
}

#[test]
fn unchanged_over_a_span() {
    let check = |changes: &[(u64, &str)], expected: &str| {
        let scenario = scenario("- unchanged: {of: {kind: Pod, name: lamp}, field: spec.nodeName, for: 5s}");
        let mut story = Story::exact();
        story
            .pod(1_000, Verb::Added, "lamp", "b", "Running")
            .pod(2_000, Verb::Modified, "lamp", "a", "Running")
            .begin(10_000, 0);
        for (at, node) in changes {
            let verb = if *node == "gone" { Verb::Deleted } else { Verb::Modified };
            story.pod(*at, verb, "lamp", node, "Running");
        }
        story.end(20_000, 0);
        assert_eq!(story.told(&scenario), expected, "{changes:?}");
    };
    check(&[], "pass");
    check(&[(12_000, "a")], "pass");
    check(
        &[(14_999, "b")],
        "fail: spec.nodeName of lamp changed from \"a\" to: \"b\" at 14.999 s: Pod default/lamp (resourceVersion 102, Modified)",
    );
    check(&[(15_000, "b")], "pass");
    check(
        &[(12_000, "gone")],
        "fail: spec.nodeName of lamp changed from \"a\" to: the object is gone at 12.000 s: Pod default/lamp (resourceVersion 102, Deleted)",
    );
}

#[test]
fn unchanged_needs_the_object() {
    let scenario = scenario("- unchanged: {of: {kind: Pod, name: lamp}, field: spec.nodeName, for: 5s}");
    let mut story = Story::exact();
    story.begin(10_000, 0).pod(12_000, Verb::Added, "lamp", "a", "Running").end(20_000, 0);
    assert!(story.told(&scenario).starts_with("fail"), "{}", story.told(&scenario));
}

/// A path that leads nowhere would never change.
#[test]
fn unchanged_needs_the_field() {
    let scenario = scenario("- unchanged: {of: {kind: Pod, name: lamp}, field: spec.nodename, for: 5s}");
    let mut story = Story::exact();
    story.pod(1_000, Verb::Added, "lamp", "a", "Running").begin(10_000, 0).end(20_000, 0);
    let told = story.told(&scenario);
    assert!(told.starts_with("fail: spec.nodename of lamp was not there when the window opened"), "{told}");
}

#[test]
fn order_of_instants() {
    let steps = "- power: {board: a, do: cut}\n  as: outage\n- expect: {of: {kind: Event}, match: {reason: One}, from: start, within: 20s}\n  as: one\n- expect: {of: {kind: Event}, match: {reason: Two}, from: start, within: 20s}\n  as: two\n- order: [outage, one, two]";
    let scenario = scenario(steps);
    let check = |one: u64, two: u64, expected: &str| {
        let mut story = Story::exact();
        let power = Fact::Power { board: "a".into(), act: PowerAct::Cut, begun: Micros(5_000_000) };
        if one < 5_000 {
            story.event(one, "One", "One", 1);
        }
        story.begin(5_000, 0).fact(5_010, power).end(5_010, 0);
        let mut events = [(one, "One"), (two, "Two")];
        // Of two at once the one that is written first comes first.
        if two < one {
            events.reverse();
        }
        for (at, reason) in events.into_iter().filter(|(at, _)| *at >= 5_000) {
            story.event(at, reason, reason, 1);
        }
        for index in 1..4 {
            story.begin(8_000, index).end(8_000, index);
        }
        let verdict = &story.judged(&scenario).steps[3].1;
        assert_eq!(verdict.outcome.name(), expected, "{one} {two} {:?}", verdict.message);
    };
    check(6_000, 7_000, "pass");
    check(6_000, 6_000, "pass");
    check(7_000, 6_000, "fail");
    check(5_005, 6_000, "pass");
    check(4_999, 6_000, "fail");
}

#[test]
fn a_capture_gives_a_value_to_later_steps() {
    let scenario = scenario(
        "- capture: {of: {kind: Pod, labels: {app: web}}, fields: {pod: metadata.name}, within: 2s}\n- expect: {of: {kind: Pod, name: \"${pod}\"}, match: {spec: {nodeName: \"${a}\"}}, within: 1s}",
    );
    let mut story = Story::exact();
    story
        .begin(1_000, 0)
        .pod(1_500, Verb::Added, "web-x7", "a", "Running")
        .end(1_500, 0)
        .begin(1_500, 1)
        .end(1_500, 1);
    let judged = story.judged(&scenario);
    assert_eq!(judged.steps[0].1.captured["pod"], json!("web-x7"));
    assert_eq!(judged.outcome.name(), "pass", "{:?}", judged.message);
    let mut story = Story::exact();
    story.pod(100, Verb::Added, "web-1", "a", "Running").pod(200, Verb::Added, "web-2", "a", "Running");
    story.begin(1_000, 0).end(3_000, 0);
    assert_eq!(
        story.told(&scenario),
        "fail: 2 objects are like that, and a capture takes exactly one: Pod default/web-1 (resourceVersion 100, Added), Pod default/web-2 (resourceVersion 101, Added)"
    );
}

/// Two acts and, third, an expectation whose window ends at the first and opens at the second.
fn reversed(expectation: &str) -> String {
    let scenario = scenario(&format!(
        "- mark: {{name: early}}\n  as: one\n- mark: {{name: late}}\n  as: two\n- {expectation}"
    ));
    let mut story = Story::exact();
    story.pod(500, Verb::Added, "lamp", "a", "Running");
    for (step, at) in [(0, 1_000), (1, 6_000)] {
        story.begin(at, step).fact(at, Fact::Mark { name: "x".into(), subject: None }).end(at, step);
    }
    story.begin(7_000, 2);
    story.pod(8_000, Verb::Modified, "lamp", "a", "Failed");
    story.end(30_000, 2);
    let verdict = story.judged(&scenario).steps.remove(2).1;
    format!("{}: {}", verdict.outcome.name(), verdict.message.unwrap_or_default())
}

#[test]
fn a_window_that_closed_before_it_opened_says_nothing() {
    let of = "of: {kind: Pod, name: lamp}";
    let window = "from: two, until: one + 1s";
    for expectation in [
        format!("never: {{{of}, match: {{status: {{phase: Running}}}}, {window}}}"),
        format!("never: {{{of}, match: {{status: {{phase: Pending}}}}, {window}}}"),
        format!("always: {{{of}, match: {{status: {{phase: Failed}}}}, {window}}}"),
        format!("always: {{{of}, match: {{status: {{phase: Pending}}}}, until: one + 1s}}"),
        format!("unchanged: {{{of}, field: status.phase, {window}}}"),
        format!("unchanged: {{of: {{kind: Pod, name: lantern}}, field: status.phase, {window}}}"),
        format!("never: {{of: {{kind: Event}}, match: {{reason: Evicted}}, count: 2, {window}}}"),
        format!(
            "expect: {{{of}, match: {{status: {{phase: Running}}}}, count: 0, between: [two, one + 1s]}}"
        ),
        "expect: {of: {kind: Event}, match: {reason: Evicted}, count: 0, between: [two, one + 1s]}"
            .to_owned(),
        "never: {request: {path: /healthz}, from: two, until: one + 1s}".to_owned(),
    ] {
        let told = reversed(&expectation);
        assert!(told.starts_with("undecided"), "{expectation}\n{told}");
        let opened = if expectation.contains("two") { "6.000 s" } else { "7.000 s" };
        let why = format!("the window closed before it opened: from at {opened}, until at 2.000 s; ");
        assert!(told.contains(&why), "{expectation}\n{told}");
    }
    // It opened.
    let told = reversed(&format!(
        "never: {{{of}, match: {{status: {{phase: Running}}}}, from: two, until: one + 6s}}"
    ));
    assert!(told.starts_with("fail"), "{told}");
}

#[test]
fn nothing_comes_in_a_window_that_closed_before_it_opened() {
    let told = reversed(
        "expect: {of: {kind: Pod, name: lamp}, match: {status: {phase: Pending}}, between: [two, one + 1s]}",
    );
    assert!(told.starts_with("undecided"), "{told}");
    assert!(
        told.contains("closed before it opened: from at 6.000 s, until at 2.000 s; nothing can"),
        "{told}"
    );
    assert!(!told.contains("never came"), "{told}");
}

/// What an implementation does fast, or did already, may leave nothing of a window.
#[test]
fn a_window_whose_end_was_found_may_be_empty() {
    let found = "- expect: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}}\n  as: ran\n";
    let check = |window: &str, expected: &str| {
        let of = "of: {kind: Pod, name: lamp}, match: {status: {phase: Failed}}";
        let scenario =
            scenario(&format!("- mark: {{name: x}}\n  as: act\n{found}- {window}").replace("OF", of));
        let mut story = Story::exact();
        story.pod(500, Verb::Added, "lamp", "a", "Running");
        story.begin(2_000, 0).fact(2_000, Fact::Mark { name: "x".into(), subject: None }).end(2_000, 0);
        story.begin(3_000, 1).end(3_000, 1).begin(4_000, 2).end(20_000, 2);
        let verdict = story.judged(&scenario).steps.remove(2).1;
        let told = format!("{}: {}", verdict.outcome.name(), verdict.message.unwrap_or_default());
        assert!(told.starts_with(expected), "{window}\n{told}");
        told
    };
    check("never: {OF, from: act, until: ran}", "pass");
    // Both ends count from it: that is how the scenario has it.
    check("never: {OF, from: ran + leaseDuration, until: ran + checkPeriod}", "undecided");
    let told = check("expect: {OF, between: [act, ran + 1s]}", "fail");
    assert!(
        told.contains("closed before it opened: from at 2.000 s, until at 1.500 s; nothing can come"),
        "{told}"
    );
}

#[test]
fn where_no_object_was_always_says_so() {
    let scenario =
        scenario("- always: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, for: 5s}");
    let mut story = Story::exact();
    story.begin(10_000, 0).end(20_000, 0);
    let told = story.told(&scenario);
    assert!(told.ends_with("it was not so at 0.000 s: no Pod of that selection was there"), "{told}");
}
