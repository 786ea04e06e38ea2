//! NODE: what happens when a lease runs out, and when. Each window is asserted at both of its edges.

use std::time::Duration;

use control_plane_core::controllers::node_lifecycle::{self, OUTAGE};
use control_plane_core::scheduler::{Assumed, KUBE32, Verdict, schedule};
use control_plane_core::{Key, conditions, reports, time};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, condition, node, pod, s, taints, tolerating};

pub const PERIOD: Duration = Duration::from_millis(500);

pub fn board(name: &str) -> Value {
    let mut board = node(name, json!({"memory": "1Mi", "esp32.io/gpio": "10"}));
    let pressure = json!({
        "type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory",
        "message": "kubelet has sufficient memory available", "lastTransitionTime": "2026-11-29T11:00:00Z",
    });
    board["status"]["conditions"].as_array_mut().expect("a list").insert(0, pressure);
    board
}

/// One board `a` with the pod `p` running on it.
pub fn world_with(pod: Value) -> World {
    let mut world = World::new();
    world.register(board("a"));
    world.create_pod(pod);
    world.start("p");
    world
}

pub fn run(world: &mut World, seconds: f64) {
    let end = world.now.mono + s(seconds);
    world.run_until(end, PERIOD, s(0.1));
}

pub fn is_unknown(node: &Value) -> bool {
    condition(node, "Ready").as_deref() == Some("Unknown")
}

pub fn is_tainted(effect: &str) -> impl Fn(&Value) -> bool {
    move |node| taints(node).iter().any(|it| it == effect)
}

fn is_evicted(pod: &Value) -> bool {
    pod["status"]["reason"] == "Evicted"
}

pub fn between(from: Timestamp, to: Timestamp) -> Duration {
    time::elapsed(to, from)
}

#[track_caller]
pub fn within(what: &str, span: Duration, from: Duration, to: Duration) {
    assert!(span >= from && span <= to, "{what}: {span:?} is not within [{from:?}, {to:?}]");
}

/// Instants of one whole outage.
struct Outage {
    unknown: Timestamp,
    no_execute: Timestamp,
    evicted: Timestamp,
}

fn outage(world: &World, from: Timestamp) -> Outage {
    let node = |test: &dyn Fn(&Value) -> bool| world.first("nodes", "a", from, test).expect("it happens");
    Outage {
        unknown: node(&is_unknown),
        no_execute: node(&is_tainted("NoExecute")),
        evicted: world.first("pods", "p", from, is_evicted).expect("an eviction"),
    }
}

#[test]
fn node_03_to_08_one_outage_within_its_windows() {
    let mut world = world_with(tolerating(pod("p", json!({})), json!(20)));
    run(&mut world, 3.0);
    world.renew("a", Some(15));
    let renewed = world.now.wall;
    run(&mut world, 60.0);
    let outage = outage(&world, renewed);
    within("NODE-03", between(renewed, outage.unknown), s(15.0), s(15.5));
    assert_eq!(world.first("nodes", "a", renewed, is_tainted("NoSchedule")), Some(outage.unknown), "NODE-04");
    within("NODE-07", between(renewed, outage.no_execute), s(30.0), s(30.5));
    within("NODE-07 from NoSchedule", between(outage.unknown, outage.no_execute), s(15.0), s(15.5));
    within("NODE-08", between(outage.no_execute, outage.evicted), s(20.0), s(20.5));

    let node = world.node("a");
    assert_eq!(taints(&node), ["NoSchedule", "NoExecute"]);
    assert_eq!(node["spec"]["taints"][1]["timeAdded"], time::stamp(outage.no_execute));
    let ready = conditions::get(&node, "Ready").expect("Ready");
    assert_eq!(ready["reason"], "NodeStatusUnknown");
    assert_eq!(ready["message"], "Kubelet stopped posting node status.");
    assert_eq!(ready["lastTransitionTime"], time::stamp(outage.unknown));
    assert_eq!(ready["lastHeartbeatTime"], "2026-11-29T11:00:00Z");
    for (kind, reason) in [
        ("MemoryPressure", "NodeStatusUnknown"),
        ("DiskPressure", "NodeStatusNeverUpdated"),
        ("PIDPressure", "NodeStatusNeverUpdated"),
    ] {
        let condition = conditions::get(&node, kind).expect(kind);
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&json!("Unknown"), &json!(reason)),
            "{kind}"
        );
    }
}

#[test]
fn node_05_exactly_one_event_an_outage() {
    let mut world = world_with(tolerating(pod("p", json!({})), json!(20)));
    let begun = world.now.wall;
    run(&mut world, 60.0);
    // a status write without a renewal is no sign of life, and no second outage either (more in `outage`)
    world.report("a", |status| status["conditions"] = board("a")["status"]["conditions"].clone());
    run(&mut world, 60.0);
    assert!(is_unknown(&world.node("a")));
    let told = world.told("NodeNotReady");
    assert_eq!(told.len(), 1);
    within("NODE-05", between(begun, told[0].at), s(15.0), s(15.5));
    assert_eq!(told[0].event.message, "Node a status is now: NodeNotReady");
    assert_eq!((told[0].event.kind.as_str(), told[0].event.component), ("Normal", "node-controller"));
    assert_eq!(told[0].event.regarding.uid, world.node("a")["metadata"]["uid"]);

    world.renew("a", Some(15));
    run(&mut world, 60.0);
    assert_eq!(world.told("NodeNotReady").len(), 2, "the next outage has its own");
}

#[test]
fn node_06_and_21_the_leases_own_duration_counts_else_the_timeout() {
    for (seconds, timeout, expected) in [
        (Some(4), 15.0, 4.0),
        (Some(40), 15.0, 40.0),
        (None, 15.0, 15.0),
        (None, 7.0, 7.0),
        (Some(0), 7.0, 7.0),
    ] {
        let mut world = World::new();
        world.lifecycle.not_ready_timeout = s(timeout);
        world.register(board("a"));
        world.renew("a", seconds);
        let renewed = world.now.wall;
        run(&mut world, 2.0 * expected + timeout + 2.0);
        let unknown = world.first("nodes", "a", renewed, is_unknown).expect("an outage");
        within("NODE-06", between(renewed, unknown), s(expected), s(expected + 0.5));
        let no_execute = world.first("nodes", "a", renewed, is_tainted("NoExecute")).expect("a taint");
        within("NODE-21", between(unknown, no_execute), s(timeout), s(timeout + 0.5));
    }
}

#[test]
fn node_09_a_renewal_undoes_everything_but_evictions() {
    for (silent, effects) in [(20.0, 1), (40.0, 2)] {
        let mut world = world_with(tolerating(pod("p", json!({})), json!(300)));
        let reported = world.node("a");
        run(&mut world, silent);
        assert_eq!(taints(&world.node("a")).len(), effects);
        world.renew("a", Some(15));
        let renewed = world.now.wall;
        run(&mut world, 10.0);
        let back = world.first("nodes", "a", renewed, |node| taints(node).is_empty()).expect("recovery");
        within("NODE-09", between(renewed, back), s(0.0), s(0.5));
        let node = world.node("a");
        assert_eq!(node["spec"], reported["spec"]);
        // What the last report covers is kept as long as no board reports anew.
        let annotations = node["metadata"]["annotations"].as_object().expect("annotations");
        assert_eq!(annotations.keys().collect::<Vec<_>>(), [reports::ANNOTATION]);
        let mut expected = reported["status"].clone();
        for condition in expected["conditions"].as_array_mut().expect("a list") {
            condition["lastTransitionTime"] = time::stamp(back).into();
        }
        assert_eq!(node["status"], expected, "Ready returns to what the kubelet last reported");
        let told = world.told("NodeReady");
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].event.message, "Node a status is now: NodeReady");
        assert_eq!(world.pod("p")["spec"]["nodeName"], "a");
        assert!(world.told("Evicted").is_empty());
    }
}

#[test]
fn node_09_what_the_board_says_itself_stands_and_not_ready_is_no_node_ready() {
    let mut world = world_with(tolerating(pod("p", json!({})), json!(300)));
    world.report("a", |status| status["conditions"][1]["status"] = "False".into());
    run(&mut world, 40.0);
    world.renew("a", Some(15));
    run(&mut world, 5.0);
    assert_eq!(condition(&world.node("a"), "Ready").as_deref(), Some("False"));
    assert!(world.told("NodeReady").is_empty() && taints(&world.node("a")).is_empty());

    run(&mut world, 40.0);
    world.report("a", |status| {
        status["conditions"][1] = json!({"type": "Ready", "status": "True", "reason": "Rebooted"});
    });
    world.renew("a", Some(15));
    run(&mut world, 5.0);
    let node = world.node("a");
    assert_eq!(conditions::get(&node, "Ready").expect("Ready")["reason"], "Rebooted");
    assert_eq!(condition(&node, "MemoryPressure").as_deref(), Some("False"), "as last reported");
    assert_eq!(world.told("NodeReady").len(), 1);
}

#[test]
fn node_09_a_renewal_saves_the_pod_even_before_the_taint_is_cleared() {
    let mut world = world_with(tolerating(pod("p", json!({})), json!(5)));
    run(&mut world, 34.9);
    assert_eq!(taints(&world.node("a")).len(), 2);
    world.renew("a", Some(15));
    world.pass(s(3.0));
    let key = Key::new("default", "p");
    let decision = node_lifecycle::decide_pod(&world.snapshot, &world.lifecycle, &key, &world.now);
    assert!(decision.is_idle(), "{decision:?}");
}

#[test]
fn node_11_a_restart_gives_a_ready_node_one_full_lease() {
    let mut world = world_with(tolerating(pod("p", json!({})), json!(300)));
    run(&mut world, 14.0);
    world.restart(s(100.0));
    let serving = world.now.wall;
    run(&mut world, 40.0);
    let unknown = world.first("nodes", "a", serving, is_unknown).expect("an outage");
    within("NODE-11", between(serving, unknown), s(15.0), s(15.5));
}

#[test]
fn node_11_a_restart_is_no_sign_of_life() {
    let mut world = world_with(tolerating(pod("p", json!({})), json!(300)));
    run(&mut world, 40.0);
    world.restart(s(1.0));
    run(&mut world, 60.0);
    assert_eq!(taints(&world.node("a")), ["NoSchedule", "NoExecute"]);
    assert!(is_unknown(&world.node("a")));
    assert_eq!((world.told("NodeReady").len(), world.told("NodeNotReady").len()), (0, 1));
    world.renew("a", Some(15));
    run(&mut world, 1.0);
    assert!(taints(&world.node("a")).is_empty(), "a renewal is");
}

#[test]
fn node_15_and_16_who_goes_at_once_and_who_never() {
    let plain = pod("p", json!({}));
    let other = {
        let mut pod = plain.clone();
        pod["spec"]["tolerations"] = json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]);
        pod
    };
    for (what, pod, stays) in [
        ("NODE-15: no toleration", plain.clone(), Some(0.0)),
        ("NODE-15: another toleration", other, Some(0.0)),
        ("NODE-16: 0 s", tolerating(plain.clone(), json!(0)), Some(0.0)),
        ("NODE-16: -5 s", tolerating(plain.clone(), json!(-5)), Some(0.0)),
        ("NODE-08: 3 s", tolerating(plain.clone(), json!(3)), Some(3.0)),
        ("NODE-16, NODE-17: without seconds", tolerating(plain, Value::Null), None),
    ] {
        let mut world = world_with(pod);
        let begun = world.now.wall;
        run(&mut world, 700.0);
        let no_execute = world.first("nodes", "a", begun, is_tainted("NoExecute")).expect("a taint");
        let evicted = world.first("pods", "p", begun, is_evicted);
        match stays {
            Some(stays) => within(what, between(no_execute, evicted.expect(what)), s(stays), s(stays + 0.5)),
            None => assert_eq!(evicted, None, "{what}"),
        }
    }
}

#[test]
fn node_18_eviction_keeps_the_pod_and_clears_its_run() {
    let mut world = world_with(tolerating(pod("p", json!({})), json!(5)));
    world.register(board("b"));
    let before = world.pod("p");
    for _ in 0..12 {
        run(&mut world, 4.0);
        world.renew("b", Some(15));
    }
    let pod = world.pod("p");
    assert_eq!(pod["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(pod["spec"]["nodeName"], Value::Null);
    let message = "Node a is unreachable, and the pod does not tolerate that any longer";
    let evicted = world.first("pods", "p", world.history[0].0, is_evicted).expect("an eviction");
    let stamp = time::stamp(evicted);
    assert_eq!(
        pod["status"],
        json!({
            "phase": "Pending", "reason": "Evicted", "message": message,
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Evicted", "message": message, "lastTransitionTime": stamp},
                {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByTaintManager", "message": message, "lastTransitionTime": stamp},
            ],
        })
    );
    let told = world.told("Evicted");
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].event.kind.as_str(), told[0].event.message.as_str()), ("Warning", message));
    world.retry_pending();
    let pod = world.pod("p");
    assert_eq!(
        (&pod["spec"]["nodeName"], condition(&pod, "PodScheduled").as_deref()),
        (&json!("b"), Some("True"))
    );
    assert_eq!(pod["status"]["reason"], Value::Null);
}

#[test]
fn node_19_a_terminating_pod_is_removed_when_its_toleration_runs_out() {
    let mut world = world_with(tolerating(pod("p", json!({})), json!(20)));
    let begun = world.now.wall;
    world.change("pods", "default", "p", |pod| {
        pod["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into()
    });
    run(&mut world, 49.9);
    world.pod("p");
    run(&mut world, 10.0);
    assert_eq!(world.get("pods", "default", "p"), None);
    let no_execute = world.first("nodes", "a", begun, is_tainted("NoExecute")).expect("a taint");
    let removed =
        world.history.iter().find(|(_, resource, _, it)| *resource == "pods" && it.is_none()).expect("it").0;
    within("NODE-19", between(no_execute, removed), s(20.0), s(20.5));
    assert!(world.told("Evicted").is_empty());
}

#[test]
fn node_20_finished_pods_stay() {
    for phase in ["Succeeded", "Failed"] {
        let mut world = world_with(pod("p", json!({})));
        world.change("pods", "default", "p", |pod| pod["status"]["phase"] = phase.into());
        run(&mut world, 60.0);
        assert_eq!(taints(&world.node("a")).len(), 2);
        assert_eq!(world.pod("p")["spec"]["nodeName"], "a", "{phase}");
    }
}

#[test]
fn node_22_and_23_each_by_its_own_lease_and_nothing_onto_an_unknown_node() {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.register(board(name));
    }
    world.create_pod(tolerating(pod("p", json!({})), json!(3)));
    world.create_pod(tolerating(pod("q", json!({})), json!(3)));
    run(&mut world, 5.0);
    world.renew("b", Some(15));
    let renewed = world.now.wall;
    for _ in 0..100 {
        run(&mut world, 1.0);
        world.retry_pending();
    }
    let begun = world.history[0].0;
    let unknown = |name| world.first("nodes", name, begun, is_unknown).expect("an outage");
    within("NODE-22: a", between(begun, unknown("a")), s(15.0), s(15.5));
    within("NODE-22: b", between(renewed, unknown("b")), s(15.0), s(15.5));
    for name in ["p", "q"] {
        let pod = world.pod(name);
        assert_eq!(
            (&pod["spec"]["nodeName"], &pod["status"]["phase"]),
            (&Value::Null, &json!("Pending")),
            "{name}"
        );
    }
    let verdict = schedule(&KUBE32, &world.pod("p"), &world.snapshot, &Assumed::default());
    assert!(matches!(verdict, Verdict::Unschedulable { .. }));
    world.renew("b", Some(15));
    run(&mut world, 1.0);
    world.retry_pending();
    assert!(["p", "q"].iter().all(|name| world.pod(name)["spec"]["nodeName"] == "b"), "NODE-23");
}

#[test]
fn node_25_flapping_for_less_than_a_lease_costs_nothing() {
    let mut world = world_with(pod("p", json!({})));
    for round in 0..20 {
        run(&mut world, 14.9 - f64::from(round) * 0.1);
        world.renew("a", Some(15));
    }
    assert!(world.history.iter().all(|(_, resource, _, it)| *resource != "nodes" || it.as_deref().is_some_and(|n| !is_unknown(n))));
    assert_eq!(world.pod("p")["spec"]["nodeName"], "a");
}

#[test]
fn node_26_a_node_made_anew_gets_a_full_lease_and_a_deleted_lease_counts_from_its_last_renewal() {
    let mut world = World::new();
    world.register(board("a"));
    run(&mut world, 14.0);
    world.remove("nodes", &Key::new("", "a"));
    run(&mut world, 10.0);
    world.put("nodes", board("a"));
    let made = world.now.wall;
    run(&mut world, 40.0);
    let unknown = world.first("nodes", "a", made, is_unknown).expect("an outage");
    within("NODE-26: made anew", between(made, unknown), s(15.0), s(15.5));

    let mut world = World::new();
    world.register(board("a"));
    world.renew("a", Some(20));
    let renewed = world.now.wall;
    run(&mut world, 5.0);
    world.remove("leases", &Key::new("kube-node-lease", "a"));
    run(&mut world, 30.0);
    let unknown = world.first("nodes", "a", renewed, is_unknown).expect("an outage");
    within("NODE-26: deleted lease", between(renewed, unknown), s(20.0), s(20.5));
}

#[test]
fn node_27_pods_of_an_unknown_node_are_not_ready() {
    let mut world = world_with(tolerating(pod("p", json!({})), json!(300)));
    let begun = world.now.wall;
    run(&mut world, 20.0);
    let unknown = world.first("nodes", "a", begun, is_unknown).expect("an outage");
    let not_ready =
        world.first("pods", "p", unknown, |pod| condition(pod, "Ready").as_deref() == Some("False"));
    assert_eq!(not_ready, Some(unknown), "with NODE-03");
    let pod = world.pod("p");
    let ready = conditions::get(&pod, "Ready").expect("Ready");
    assert_eq!(ready["lastTransitionTime"], time::stamp(unknown));
    assert_eq!(pod["status"]["phase"], "Running");
    // one that its board called ready in the meantime as well
    world.start("p");
    run(&mut world, 1.0);
    assert_eq!(condition(&world.pod("p"), "Ready").as_deref(), Some("False"));
}

#[test]
fn ghost_02_a_node_without_a_kubelet_is_never_ready() {
    let mut world = World::new();
    world.put("nodes", json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}));
    let made = world.now.wall;
    run(&mut world, 40.0);
    let unknown = world.first("nodes", "a", made, is_unknown).expect("a condition");
    within("GHOST-02", between(made, unknown), s(15.0), s(15.5));
    assert_eq!(
        conditions::get(&world.node("a"), "Ready").expect("Ready")["reason"],
        "NodeStatusNeverUpdated"
    );
    assert_eq!(taints(&world.node("a")), ["NoSchedule", "NoExecute"]);
    world.renew("a", Some(15));
    run(&mut world, 1.0);
    let node = world.node("a");
    assert_eq!((conditions::get(&node, "Ready"), taints(&node).len()), (None, 0), "nobody ever reported");
    assert!(world.told("NodeReady").is_empty());
}

#[test]
fn taints_of_others_stay_and_evict_nobody() {
    let mut world = world_with(pod("p", json!({})));
    let theirs = json!({"key": "dedicated", "effect": "NoExecute", "timeAdded": "2026-11-29T11:00:00Z"});
    world.change("nodes", "", "a", |node| node["spec"]["taints"] = json!([theirs]));
    run(&mut world, 10.0);
    assert_eq!(world.pod("p")["spec"]["nodeName"], "a");
    run(&mut world, 10.0);
    world.renew("a", Some(15));
    run(&mut world, 1.0);
    assert_eq!(world.node("a")["spec"]["taints"], json!([theirs]));
}

#[test]
fn a_stale_decision_changes_nothing() {
    let mut world = world_with(pod("p", json!({})));
    world.pass(s(20.0));
    let decision = node_lifecycle::decide(&world.snapshot, &world.lifecycle, "a", &world.now);
    assert!(!decision.is_idle());
    world.change("nodes", "", "a", |node| node["metadata"]["labels"]["x"] = "y".into());
    let before = (world.node("a"), world.pod("p"));
    world.apply(decision);
    assert_eq!((world.node("a"), world.pod("p")), before);
    assert!(world.told("NodeNotReady").is_empty(), "events wait for the writes");
}

#[test]
fn a_node_that_was_called_unknown_by_hand_is_lost_like_any_other() {
    let mut world = World::new();
    world.register(board("a"));
    world.report("a", |status| {
        status["conditions"] = json!([{"type": "Ready", "status": "Unknown", "reason": "Mine"}])
    });
    let reported = world.now.wall;
    run(&mut world, 40.0);
    let first = |effect| world.first("nodes", "a", reported, is_tainted(effect)).expect("a taint");
    within("NODE-04", between(reported, first("NoSchedule")), s(15.0), s(15.5));
    within("NODE-07", between(reported, first("NoExecute")), s(30.0), s(31.0));
    assert_eq!(world.told("NodeNotReady").len(), 1);
    world.renew("a", Some(15));
    run(&mut world, 1.0);
    assert_eq!(conditions::get(&world.node("a"), "Ready").expect("Ready")["reason"], "Mine");
}

#[test]
fn the_memory_of_an_outage_survives_losing_its_annotation() {
    let mut world = world_with(tolerating(pod("p", json!({})), json!(20)));
    run(&mut world, 16.0);
    world.change("nodes", "", "a", |node| node["metadata"]["annotations"][OUTAGE] = "nonsense".into());
    let unknown = world.first("nodes", "a", world.history[0].0, is_unknown).expect("an outage");
    world.restart(s(1.0));
    run(&mut world, 60.0);
    let no_execute = world.first("nodes", "a", unknown, is_tainted("NoExecute")).expect("a taint");
    // the stamp is all there is: never early, at most its second late
    within("from the stamp", between(unknown, no_execute), s(15.0), s(16.5));
    world.change("nodes", "", "a", |node| node["metadata"]["annotations"] = json!({}));
    world.renew("a", Some(15));
    run(&mut world, 1.0);
    assert!(taints(&world.node("a")).is_empty());
}

/// Times in milliseconds.
#[derive(Debug, Clone)]
struct Course {
    lease: u64,
    not_ready: u64,
    toleration: u64,
    period: u64,
    phase: u64,
    latency: u64,
    renewed: u64,
    /// The server ends this long after the last renewal, and is away for the second of the two.
    restart: Option<(u64, u64)>,
}

fn courses(restarts: bool) -> impl Strategy<Value = Course> {
    let restart =
        if restarts { (0_u64..30_000, 0_u64..10_000).prop_map(Some).boxed() } else { Just(None).boxed() };
    (2_u64..9, 1_u64..9, 0_u64..9, 100_u64..1500, 0_u64..1500, 0_u64..12, 0_u64..5000, restart).prop_map(
        |(lease, not_ready, toleration, period, phase, latency, renewed, restart)| Course {
            lease: lease * 1000,
            not_ready: not_ready * 1000,
            toleration,
            period,
            phase: phase % period,
            latency,
            renewed,
            restart,
        },
    )
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Runs a course; returns the world, the instant of the last renewal and that of serving again.
fn follow(course: &Course) -> (World, Timestamp, Option<Timestamp>) {
    let mut world = World::new();
    world.lifecycle.not_ready_timeout = ms(course.not_ready);
    world.latency = ms(course.latency);
    world.register(board("a"));
    world.create_pod(tolerating(pod("p", json!({})), json!(course.toleration)));
    world.start("p");
    let (period, phase) = (ms(course.period), ms(course.phase));
    world.run_until(ms(course.renewed), period, phase);
    world.renew("a", Some(i64::try_from(course.lease / 1000).expect("small")));
    let renewed = world.now.wall;
    let mut serving = None;
    if let Some((at, down)) = course.restart {
        world.run_until(world.now.mono + ms(at), period, phase);
        world.restart(ms(down));
        serving = Some(world.now.wall);
    }
    world.run_until(world.now.mono + ms(60_000), period, phase);
    (world, renewed, serving)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn node_03_07_08_no_course_leaves_its_windows(course in courses(false)) {
        let (world, renewed, _) = follow(&course);
        let outage = outage(&world, renewed);
        // each look may be followed by up to three writes, each accepted a latency later
        let (period, slack) = (ms(course.period), ms(6 * course.latency));
        let (lease, not_ready) = (ms(course.lease), ms(course.not_ready));
        within("NODE-03", between(renewed, outage.unknown), lease, lease + period + slack);
        within("NODE-07", between(renewed, outage.no_execute), lease + not_ready, lease + not_ready + period + slack);
        within("NODE-07 from NoSchedule", between(outage.unknown, outage.no_execute), not_ready, not_ready + period + slack);
        let stay = s(f64::from(u32::try_from(course.toleration).expect("small")));
        within("NODE-08", between(outage.no_execute, outage.evicted), stay, stay + period + slack);
        prop_assert_eq!(world.told("NodeNotReady").len(), 1);
    }

    #[test]
    fn node_11_12_28_nor_does_a_restart_at_any_instant(course in courses(true)) {
        let (world, renewed, serving) = follow(&course);
        let serving = serving.expect("a restart");
        let outage = outage(&world, renewed);
        let later = |instant: Timestamp| if instant > serving { instant } else { serving };
        // after a restart a kept instant is taken to be 20 ms later than it says
        let (period, slack) = (ms(course.period), ms(6 * course.latency + 20));
        let (lease, not_ready) = (ms(course.lease), ms(course.not_ready));
        if outage.unknown >= serving {
            within("NODE-11", between(serving, outage.unknown), lease, lease + period + slack);
        } else {
            within("NODE-03", between(renewed, outage.unknown), lease, lease + period + slack);
        }
        let due = |from: Timestamp, span: Duration| from.checked_add(span).expect("an instant");
        let not_before = |what: &str, at: Timestamp, from: Timestamp, span: Duration| {
            assert!(at >= due(from, span), "{what}: {:?} instead of {span:?}", between(from, at));
        };
        let not_after = |what: &str, at: Timestamp, from: Timestamp, span: Duration| {
            // a restart within the wait may cost up to one period, since the ticks begin anew
            let limit = due(if from < serving { later(due(from, span)) } else { due(from, span) }, period + slack);
            assert!(at <= limit, "{what}: {:?} instead of {span:?}", between(from, at));
        };
        not_before("NODE-28", outage.no_execute, outage.unknown, not_ready);
        not_after("NODE-28", outage.no_execute, outage.unknown, not_ready);
        let stay = s(f64::from(u32::try_from(course.toleration).expect("small")));
        not_before("NODE-12", outage.evicted, outage.no_execute, stay);
        not_after("NODE-12", outage.evicted, outage.no_execute, stay);
        prop_assert_eq!(world.told("NodeNotReady").len(), 1);
        prop_assert_eq!(world.told("NodeReady").len(), 0);
    }
}
