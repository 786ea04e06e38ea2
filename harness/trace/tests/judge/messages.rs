//! What failures say, whole.

use rigor_trace::PowerAct;
use rigor_trace::history::{Fact, Micros, Verb};
use serde_json::json;

use super::story::{Story, scenario};

#[test]
fn a_failure_says_what_was_expected_when_and_what_came_instead() {
    let steps = "- power: {board: a, do: cut}\n  as: outage\n- expect:\n    of: {kind: Node, name: a}\n    match: {status: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown}]}}\n    between:\n      - lastRenewal(a) + leaseDuration\n      - lastRenewal(a) + leaseDuration + checkPeriod + slack";
    let scenario = scenario(steps);
    let unknown = |reason: &str| json!({"kind": "Node", "metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": reason}]}});
    let tell = |at: u64, reason: &str| {
        let mut story = Story::exact();
        story.ready(0, "a", "True").renew(6_000, "a").begin(7_000, 0);
        story.fact(7_010, Fact::Power { board: "a".into(), act: PowerAct::Cut, begun: Micros(7_000_000) });
        story.end(7_010, 0).begin(7_010, 1);
        story.see(at, Verb::Modified, "nodes", unknown(reason)).end(30_000, 1);
        story.judged(&scenario).message.unwrap_or_default()
    };
    insta::assert_snapshot!(format!(
        "{}\n\n{}\n\n{}",
        tell(18_690, "NodeStatusUnknown"),
        tell(25_000, "NodeStatusUnknown"),
        tell(21_200, "NodeLost")
    ),);
}

#[test]
fn other_failures_say_as_much() {
    let mut gallery = Vec::new();
    let mut tell = |steps: &str, story: &mut Story| gallery.push(story.told_whole(&scenario(steps)));
    let mut story = Story::exact();
    story.begin(1_000, 0).event(1_500, "e", "Scheduled", 1).end(12_000, 0);
    tell(
        "- expect: {of: {kind: Event}, match: {reason: Evicted, involvedObject: {name: lamp}}, within: 10s}",
        &mut story,
    );
    let mut story = Story::exact();
    story.begin(1_000, 0).event(1_500, "e", "Evicted", 1).event(2_500, "e", "Evicted", 3).end(12_000, 0);
    tell(
        "- expect: {of: {kind: Event}, match: {reason: Evicted}, count: 1, between: [500ms, 5s]}",
        &mut story,
    );
    let mut story = Story::exact();
    story
        .begin(1_000, 0)
        .console(1_500, "a", "network up")
        .console(1_600, "a", "api server lost")
        .end(12_000, 0);
    tell("- expect: {console: {board: a, matches: kubelet ready}, within: 5s}", &mut story);
    let mut story = Story::exact();
    story
        .pod(0, Verb::Added, "lamp", "a", "Running")
        .begin(1_000, 0)
        .pod(1_500, Verb::Modified, "lamp", "a", "Failed")
        .end(12_000, 0);
    tell("- always: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, for: 5s}", &mut story);
    let mut story = Story::exact();
    story.begin(1_000, 0).event(1_500, "e", "Evicted", 1).end(12_000, 0);
    tell("- never: {of: {kind: Event}, match: {reason: Evicted}, until: begin + 1s}", &mut story);
    let mut story = Story::real();
    story.begin(1_000, 0).event(1_900, "e", "Evicted", 1).end(12_000, 0);
    tell("- never: {of: {kind: Event}, match: {reason: Evicted}, for: 500ms}", &mut story);
    let mut story = Story::exact();
    story.begin(1_000, 0).end(40_000, 0);
    tell("- never: {of: {kind: Event}, match: {reason: Evicted}, until: lastRenewal(a) + 1s}", &mut story);
    insta::assert_snapshot!(gallery.join("\n\n"));
}
