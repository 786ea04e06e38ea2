//! What instants amount to: renewals, stamps, serving, marks, names.

use rigor_model::Outcome;
use rigor_trace::history::{ControlPlaneAct, Fact, Micros, Verb};
use rigor_trace::{Judge, Phase, StepState};
use serde_json::json;

use super::story::{Story, scenario};

/// What an instant is in the last step of a scenario, in milliseconds.
fn told(story: &Story, instant: &str, before: &str) -> String {
    let scenario = scenario(&format!("{before}- wait: {instant}"));
    let judge = Judge::new(&scenario);
    let index = scenario.plan.len() - 1;
    let rigor_model::Action::Wait(wait) = &scenario.plan[index].action else { panic!("a wait") };
    match judge.instant(index, &story.history, story.history.last_at(), &wait.until) {
        Ok(interval) => interval.to_string(),
        Err(why) => why.to_string(),
    }
}

#[test]
fn the_last_renewal_is_when_the_server_took_it() {
    let mut story = Story::exact();
    story.renew(1_000, "a").renew(6_000, "a").renew(7_000, "b").renew(11_000, "a").begin(12_000, 0);
    assert_eq!(told(&story, "lastRenewal(a)", ""), "11.000 s");
    assert_eq!(told(&story, "lastRenewal(a, start + 8s) + leaseDuration", ""), "21.000 s");
    assert_eq!(told(&story, "lastRenewal(b)", ""), "7.000 s");
    let mut story = Story::exact();
    story.begin(1_000, 0);
    assert_eq!(
        told(&story, "lastRenewal(a)", ""),
        "lastRenewal(a) cannot be told: no renewal of its lease was seen"
    );
}

#[test]
fn a_board_whose_node_is_called_otherwise_is_found_by_its_letter() {
    let mut story = Story::exact();
    story.fact(0, Fact::Board { board: "a".into(), node: "kitchen".into() });
    story.fact(0, Fact::Namespace { name: "rigor-1".into() });
    story.renew(1_000, "kitchen").renew(2_000, "a").begin(6_000, 0);
    assert_eq!(told(&story, "lastRenewal(a)", ""), "1.000 s");
    let scenario = scenario("- wait: 1s\n");
    let values = Judge::new(&scenario).values(0, &story.history);
    assert_eq!([&values["a"], &values["b"], &values["namespace"]], ["kitchen", "b", "rigor-1"]);
}

#[test]
fn a_write_of_the_lease_that_renews_nothing_does_not_count() {
    let mut story = Story::exact();
    story.renew(1_000, "a");
    let lease = json!({"kind": "Lease", "metadata": {"name": "a", "namespace": "kube-node-lease", "labels": {"x": "y"}},
        "spec": {"renewTime": "2026-01-01T00:00:01.000000Z", "leaseDurationSeconds": 15}});
    story.see(5_000, Verb::Modified, "leases", lease).begin(6_000, 0);
    assert_eq!(told(&story, "lastRenewal(a)", ""), "1.000 s");
}

#[test]
fn pulses_make_a_renewal_as_exact_as_they_are() {
    let mut story = Story::real();
    story.pulse(900, 910).renew(1_300, "a").pulse(1_000, 1_010);
    story.begin(2_000, 0);
    // Written after the first poll was sent; the second poll already knew it.
    assert_eq!(told(&story, "lastRenewal(a)", ""), "0.900..1.300 s");
}

#[test]
fn a_stamp_is_as_wide_as_its_last_digit_and_meets_its_first_sight() {
    let expect = "- expect: {of: {kind: Node, name: a}, match: {spec: {taints: [{effect: NoExecute}]}}, from: start, within: 60s}\n  as: tainted\n";
    let tainted = |stamp: &str| json!({"kind": "Node", "metadata": {"name": "a"}, "spec": {"taints": [{"effect": "NoExecute", "timeAdded": stamp}]}});
    let instant = "stamp(tainted, spec.taints[effect=NoExecute].timeAdded) + 1s";
    // First seen at 30.4 s, in the second that it tells.
    let mut story = Story::exact();
    story
        .see(30_400, Verb::Added, "nodes", tainted("2026-01-01T00:00:30Z"))
        .begin(31_000, 0)
        .end(31_000, 0)
        .begin(31_000, 1);
    assert_eq!(told(&story, instant, expect), "31.400 s");
    // The stamp is older than the sight: only the stamp is known.
    let mut story = Story::exact();
    story
        .see(50_000, Verb::Added, "nodes", tainted("2026-01-01T00:00:30Z"))
        .begin(51_000, 0)
        .end(51_000, 0)
        .begin(51_000, 1);
    assert_eq!(told(&story, instant, expect), "31.000..31.999 s");
    // Microseconds leave less open.
    let mut story = Story::exact();
    story
        .see(50_000, Verb::Added, "nodes", tainted("2026-01-01T00:00:30.250000Z"))
        .begin(51_000, 0)
        .end(51_000, 0)
        .begin(51_000, 1);
    assert_eq!(told(&story, instant, expect), "31.250 s");
}

#[test]
fn dates_of_answers_tell_the_servers_clock() {
    let expect = "- expect: {of: {kind: Node, name: a}, from: start, within: 60s}\n  as: seen\n";
    let mut story = Story::real();
    let node = json!({"kind": "Node", "metadata": {"name": "a", "annotations": {"at": "2026-01-01T01:00:20.500000Z"}}});
    story.pulse(1, 2);
    for (sent, answered, date) in [
        (9_000, 9_010, "Thu, 01 Jan 2026 01:00:08 GMT"),
        (9_400, 9_410, "Thu, 01 Jan 2026 01:00:09 GMT"),
        (9_800, 9_810, "Thu, 01 Jan 2026 01:00:09 GMT"),
    ] {
        let fact = Fact::Request {
            id: 1,
            sent: Micros(sent * 1000),
            as_user: "admin".into(),
            method: "GET".into(),
            path: "/".into(),
            body: None,
            status: 200,
            response: None,
            date: Some(date.into()),
            headers: std::collections::BTreeMap::new(),
            error: None,
        };
        story.history.push(Micros(answered * 1000), fact);
    }
    story.see(25_000, Verb::Added, "nodes", node).begin(26_000, 0).end(26_000, 0).begin(26_000, 1);
    // One hour and from -0.41 to 0 s ahead: the stamp's 20.5 s are between these on our clock.
    assert_eq!(told(&story, "stamp(seen, metadata.annotations.at)", expect), "20.500..20.910 s");
}

#[test]
fn serving_again_is_after_the_start_began() {
    let mut story = Story::real();
    story.fact(10, Fact::ControlPlaneReady {});
    story.fact(5_300, Fact::ControlPlane { act: ControlPlaneAct::Restart, begun: Micros(5_000_000) });
    story.fact(5_300, Fact::ControlPlaneReady {}).begin(6_000, 0);
    assert_eq!(told(&story, "serving", ""), "5.000..5.300 s");
    assert_eq!(told(&story, "max(serving, start + 5100ms)", ""), "5.100..5.300 s");
}

#[test]
fn a_step_is_pending_until_its_window_is_past_and_then_settled_for_good() {
    let scenario = scenario("- expect: {of: {kind: Pod, name: lamp}, between: [2s, 3s]}");
    let mut story = Story::exact();
    story.begin(10_000, 0);
    let judge = Judge::new(&scenario);
    let at = |story: &Story, millis: u64| judge.step(0, &story.history, Micros(millis * 1000));
    assert_eq!(at(&story, 10_000), StepState::Pending { until: Micros(13_000_001) });
    assert_eq!(at(&story, 13_000), StepState::Pending { until: Micros(13_000_001) });
    let settled = judge.step(0, &story.history, Micros(13_000_001));
    let StepState::Settled(verdict) = &settled else { panic!("{settled:?}") };
    assert_eq!(verdict.outcome, Outcome::Fail);
    story.history.push(Micros(13_000_001), Fact::Step { index: 0, phase: Phase::End });
    story.pod(13_500, Verb::Added, "lamp", "a", "Running");
    assert_eq!(judge.step(0, &story.history, Micros(20_000_000)), settled);
    assert_eq!(story.first(&scenario), *verdict, "judged later, by another judge");
}
