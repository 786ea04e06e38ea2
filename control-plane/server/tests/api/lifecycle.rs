//! The node lifecycle end to end, on the virtual clock: each window's two ends (NODE-03 … NODE-28).

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{CHECK, LEASE, LEASES, NO_EXECUTE, PODS, RETRY, Rig, board, condition, pod, unreachable};

/// The slack of the simulated rig.
const SLACK: Duration = Duration::from_millis(50);
/// A second's width, for instants that are only known as stamps.
const SECOND: Duration = Duration::from_secs(1);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[track_caller]
fn within(took: Duration, earliest: Duration, latest: Duration) {
    assert!(took >= earliest && took <= latest, "{took:?} is not in [{earliest:?}, {latest:?}]");
}

fn unknown(rig: &Rig, node: &str) -> bool {
    condition(&rig.node(node), "Ready") == "Unknown"
}

fn evicted(rig: &Rig, name: &str, node: &str) -> bool {
    rig.pod(name)["spec"]["nodeName"] != node
}

/// A board `a` with a running pod, that has just renewed and from now on is silent.
fn silent() -> Rig {
    let rig = Rig::with(|config| config.eviction_timeout = seconds(20));
    rig.join("a", &board());
    rig.create(PODS, &pod("p", &json!({"memory": "64Ki"})));
    rig.run("a", "p");
    rig.pass_alive(seconds(20), &["a"]);
    rig.renew("a");
    rig
}

#[test]
fn node_03_04_05_a_silent_board_becomes_unknown_after_its_lease() {
    let rig = silent();
    let took = rig.until(LEASE + CHECK + SLACK, |rig| unknown(rig, "a"));
    within(took, LEASE, LEASE + CHECK + SLACK);
    let node = rig.node("a");
    assert_eq!(unreachable(&node), ["NoSchedule"]);
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|one| one["type"] == "Ready").unwrap();
    assert_eq!(ready["reason"], "NodeStatusUnknown");
    rig.pass(seconds(60));
    let events = rig.events("a", "NodeNotReady");
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["count"], &events[0]["type"]), (&json!(1), &json!("Normal")));
    assert_eq!(events[0]["involvedObject"]["kind"], "Node");
}

#[test]
fn node_06_the_leases_own_duration_counts() {
    let rig = silent();
    rig.patch(&format!("{LEASES}/a"), &json!({"spec": {"leaseDurationSeconds": 4}}));
    rig.renew("a");
    let took = rig.until(seconds(4) + CHECK + SLACK, |rig| unknown(rig, "a"));
    within(took, seconds(4), seconds(4) + CHECK + SLACK);
}

#[test]
fn node_07_no_execute_follows_and_no_schedule_stays() {
    let rig = silent();
    let took = rig.until(LEASE + NO_EXECUTE + CHECK + SLACK, |rig| unreachable(&rig.node("a")).len() == 2);
    within(took, LEASE + NO_EXECUTE, LEASE + NO_EXECUTE + CHECK + SLACK);
    let node = rig.node("a");
    let mut effects = unreachable(&node);
    effects.sort_unstable();
    assert_eq!(effects, ["NoExecute", "NoSchedule"]);
    let taints = node["spec"]["taints"].as_array().unwrap();
    assert!(
        taints.iter().any(|taint| taint["effect"] == "NoExecute" && taint["timeAdded"].is_string()),
        "{taints:?}"
    );
}

#[test]
fn node_08_and_18_pods_are_evicted_after_their_toleration_and_keep_their_identity() {
    let rig = silent();
    rig.join("b", &board());
    let before = rig.pod("p");
    let tolerance = seconds(20);
    rig.pass_alive(LEASE, &["b"]);
    let alive = |rig: &Rig| rig.renew("b");
    let no_execute = |rig: &Rig| {
        alive(rig);
        unreachable(&rig.node("a")).len() == 2
    };
    rig.until(NO_EXECUTE + CHECK + SLACK, no_execute);
    let took = rig.until(tolerance + CHECK + SLACK, |rig| {
        alive(rig);
        evicted(rig, "p", "a")
    });
    within(took, tolerance - SLACK, tolerance + CHECK + SLACK);
    let moved = rig.pod("p");
    assert_eq!(moved["metadata"]["uid"], before["metadata"]["uid"]);
    rig.until(RETRY + SLACK, |rig| rig.pod("p")["spec"]["nodeName"] == "b");
    let moved = rig.pod("p");
    assert_eq!(moved["status"]["phase"], "Pending");
    assert_eq!(condition(&moved, "DisruptionTarget"), "True");
    for field in ["podIP", "hostIP", "startTime", "containerStatuses"] {
        assert_eq!(moved["status"][field], Value::Null, "{field}");
    }
    assert_eq!(rig.events("p", "Evicted").len(), 1);
}

#[test]
fn node_18_and_23_without_another_board_an_evicted_pod_waits_and_is_not_lost() {
    let rig = silent();
    rig.pass(LEASE + NO_EXECUTE + seconds(20) + CHECK * 2 + SLACK);
    let waiting = rig.pod("p");
    assert_eq!(waiting["spec"]["nodeName"], Value::Null);
    assert_eq!(waiting["status"]["phase"], "Pending");
    assert_eq!(waiting["status"]["reason"], "Evicted");
    assert_ne!(condition(&waiting, "PodScheduled"), "True");
    rig.renew("a");
    rig.report("a", &board());
    rig.until(RETRY + CHECK + SLACK, |rig| rig.pod("p")["spec"]["nodeName"] == "a");
}

#[test]
fn node_09_a_renewal_clears_the_taints_and_keeps_the_pods() {
    let rig = silent();
    rig.until(LEASE + NO_EXECUTE + CHECK + SLACK, |rig| unreachable(&rig.node("a")).len() == 2);
    rig.pass(seconds(5));
    rig.renew("a");
    let took = rig.until(CHECK + SLACK, |rig| unreachable(&rig.node("a")).is_empty());
    within(took, Duration::ZERO, CHECK + SLACK);
    assert_eq!(condition(&rig.node("a"), "Ready"), "True");
    assert_eq!(rig.events("a", "NodeReady").len(), 1);
    rig.pass_alive(seconds(60), &["a"]);
    assert_eq!(rig.pod("p")["spec"]["nodeName"], "a");
}

#[test]
fn node_11_a_restart_gives_a_ready_board_one_full_lease() {
    let mut rig = silent();
    rig.pass(seconds(12));
    rig.restart();
    let took = rig.until(LEASE + CHECK + SLACK, |rig| unknown(rig, "a"));
    within(took, LEASE, LEASE + CHECK + SLACK);
}

/// What a board sends that stood still: figures, and the conditions' statuses alone.
fn report_alone(rig: &Rig, memory: u64) {
    let ready = json!({"type": "Ready", "status": "True", "lastHeartbeatTime": rig.stamp()});
    let status = json!({"status": {"allocatable": {"memory": memory.to_string()}, "conditions": [ready]}});
    let request = http::Request::patch("/api/v1/nodes/a/status")
        .header("content-type", "application/strategic-merge-patch+json");
    let answer = rig.ask("a-token", request, axum::body::Body::from(status.to_string())).expect(200);
    assert_eq!(condition(&answer, "Ready"), "Unknown");
    assert_eq!(answer["status"]["allocatable"]["memory"], memory.to_string());
}

fn ready(node: &Value) -> Value {
    let conditions = node["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|one| one["type"] == "Ready").unwrap().clone()
}

#[test]
fn node_05_and_09_a_board_that_reports_before_it_renews_is_seen_unknown_until_it_renews() {
    let rig = silent();
    let reported = ready(&rig.node("a"));
    rig.until(LEASE + CHECK + SLACK, |rig| unknown(rig, "a"));
    let lost = ready(&rig.node("a"));
    for round in 0..10 {
        report_alone(&rig, 1001 + round);
        rig.pass(CHECK);
        let now = ready(&rig.node("a"));
        assert_eq!(
            (&now["reason"], &now["lastTransitionTime"]),
            (&lost["reason"], &lost["lastTransitionTime"])
        );
        assert_eq!(unreachable(&rig.node("a")), ["NoSchedule"]);
    }
    let counted = |reason: &str| -> Vec<Value> {
        rig.events("a", reason).iter().map(|event| event["count"].clone()).collect()
    };
    assert_eq!((counted("NodeNotReady"), counted("NodeReady").len()), (vec![json!(1)], 0));
    rig.renew("a");
    report_alone(&rig, 2001);
    let took = rig.until(CHECK + SLACK, |rig| !unknown(rig, "a"));
    within(took, Duration::ZERO, CHECK + SLACK);
    let node = rig.node("a");
    assert_eq!(
        (&ready(&node)["status"], &ready(&node)["reason"]),
        (&reported["status"], &reported["reason"])
    );
    assert!(unreachable(&node).is_empty());
    assert_eq!((counted("NodeNotReady"), counted("NodeReady")), (vec![json!(1)], vec![json!(1)]));
}

#[test]
fn without_the_lifecycle_controller_every_report_stands() {
    let mut rig = silent();
    rig.until(LEASE + CHECK + SLACK, |rig| unknown(rig, "a"));
    rig.config.controllers = "*,-node-lifecycle".parse().unwrap();
    rig.restart();
    rig.report("a", &board());
    assert_eq!(condition(&rig.node("a"), "Ready"), "True");
}

#[test]
fn node_09_and_11_a_renewal_counts_though_the_server_ended_before_it_looked() {
    let mut rig = silent();
    rig.until(LEASE + CHECK + SLACK, |rig| unknown(rig, "a"));
    rig.renew("a");
    rig.report("a", &board());
    assert!(unknown(&rig, "a"), "until the next check");
    rig.restart_after(seconds(100));
    rig.pass(Duration::ZERO);
    assert_eq!(condition(&rig.node("a"), "Ready"), "True");
    assert!(unreachable(&rig.node("a")).is_empty());
    let took = rig.until(LEASE + CHECK + SLACK, |rig| unknown(rig, "a"));
    within(took, LEASE, LEASE + CHECK + SLACK);
    assert_eq!(rig.events("a", "NodeNotReady")[0]["count"], 2);
}

#[test]
fn node_12_what_ran_out_while_no_one_served_is_done_as_soon_as_someone_does() {
    let mut rig = silent();
    rig.until(LEASE + NO_EXECUTE + CHECK + SLACK, |rig| unreachable(&rig.node("a")).len() == 2);
    rig.restart_after(seconds(20) + SECOND);
    assert!(!evicted(&rig, "p", "a"), "nothing is done but by the controllers");
    rig.pass(Duration::ZERO);
    assert!(evicted(&rig, "p", "a"));
}

#[test]
fn node_28_a_no_execute_that_fell_due_while_no_one_served_comes_as_soon_as_someone_does() {
    let mut rig = silent();
    rig.until(LEASE + CHECK + SLACK, |rig| unknown(rig, "a"));
    rig.restart_after(NO_EXECUTE + SECOND);
    rig.pass(Duration::ZERO);
    assert_eq!(unreachable(&rig.node("a")), ["NoSchedule", "NoExecute"]);
}

#[test]
fn node_12_a_restart_does_not_begin_a_toleration_anew() {
    let mut rig = silent();
    rig.until(LEASE + NO_EXECUTE + CHECK + SLACK, |rig| unreachable(&rig.node("a")).len() == 2);
    rig.pass(seconds(10));
    rig.restart();
    let took = rig.until(seconds(10) + CHECK + SECOND + SLACK, |rig| evicted(rig, "p", "a"));
    within(took, seconds(10) - SLACK, seconds(10) + CHECK + SECOND + SLACK);
}

#[test]
fn node_28_a_restart_does_not_begin_the_delay_anew() {
    let mut rig = silent();
    rig.until(LEASE + CHECK + SLACK, |rig| unknown(rig, "a"));
    rig.pass(seconds(10));
    rig.restart();
    let left = NO_EXECUTE - seconds(10);
    let took = rig.until(left + CHECK + SECOND + SLACK, |rig| unreachable(&rig.node("a")).len() == 2);
    within(took, left - SLACK, left + CHECK + SECOND + SLACK);
}

#[test]
fn node_13_and_21_admission_gives_the_tolerations() {
    let rig = Rig::with(|config| config.eviction_timeout = seconds(6));
    let made = rig.create(PODS, &pod("p", &json!({})));
    let toleration =
        |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 6});
    let both =
        json!([toleration("node.kubernetes.io/not-ready"), toleration("node.kubernetes.io/unreachable")]);
    assert_eq!(made["spec"]["tolerations"], both);
    let mut own = pod("q", &json!({}));
    let unreachable = json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2});
    own["spec"]["tolerations"] = json!([unreachable]);
    let made = rig.create(PODS, &own);
    assert_eq!(made["spec"]["tolerations"].as_array().unwrap().len(), 2);
    assert!(made["spec"]["tolerations"].as_array().unwrap().contains(&unreachable));
}

#[test]
fn node_15_and_16_what_tolerates_nothing_goes_at_once_and_what_tolerates_forever_stays() {
    let rig = Rig::with(|config| {
        config.eviction_timeout = seconds(20);
        config.disable_admission = [control_plane::config::Admission::DefaultTolerationSeconds].into();
    });
    rig.join("a", &board());
    rig.create(PODS, &pod("none", &json!({})));
    let tolerating = |name: &str, limit: Option<i64>| {
        let mut own = pod(name, &json!({}));
        let mut toleration =
            json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"});
        if let Some(limit) = limit {
            toleration["tolerationSeconds"] = json!(limit);
        }
        own["spec"]["tolerations"] = json!([toleration]);
        rig.create(PODS, &own);
    };
    tolerating("zero", Some(0));
    tolerating("ever", None);
    rig.renew("a");
    rig.until(LEASE + NO_EXECUTE + CHECK + SLACK, |rig| unreachable(&rig.node("a")).len() == 2);
    rig.until(CHECK + SLACK, |rig| evicted(rig, "none", "a") && evicted(rig, "zero", "a"));
    rig.pass(seconds(600));
    assert!(!evicted(&rig, "ever", "a"));
}

#[test]
fn node_19_a_terminating_pod_on_a_dead_board_is_removed_when_its_toleration_ends() {
    let rig = silent();
    rig.until(LEASE + NO_EXECUTE + CHECK + SLACK, |rig| unreachable(&rig.node("a")).len() == 2);
    rig.delete(&format!("{PODS}/p"));
    let gone = |rig: &Rig| rig.call("GET", &format!("{PODS}/p"), &Value::Null).status == 404;
    let took = rig.until(seconds(20) + CHECK + SLACK, gone);
    within(took, seconds(20) - SLACK, seconds(20) + CHECK + SLACK);
    rig.create(PODS, &pod("p", &json!({})));
}

#[test]
fn node_20_finished_pods_stay_on_the_board() {
    let rig = silent();
    rig.call_as("a-token", "PATCH", &format!("{PODS}/p/status"), &json!({"status": {"phase": "Succeeded"}}))
        .expect(200);
    rig.pass(LEASE + NO_EXECUTE + seconds(40));
    assert_eq!(rig.pod("p")["spec"]["nodeName"], "a");
}

#[test]
fn node_22_boards_are_judged_each_by_its_own_lease() {
    let rig = silent();
    rig.join("b", &board());
    rig.pass_alive(seconds(60), &["b"]);
    assert!(unknown(&rig, "a"));
    assert_eq!(condition(&rig.node("b"), "Ready"), "True");
}

#[test]
fn node_25_a_board_that_flaps_is_never_unknown() {
    let rig = silent();
    for _ in 0..10 {
        rig.pass(LEASE - CHECK);
        assert!(!unknown(&rig, "a"));
        rig.renew("a");
    }
    assert_eq!(rig.pod("p")["spec"]["nodeName"], "a");
}

#[test]
fn node_26_a_node_that_is_made_again_gets_one_full_lease() {
    let rig = silent();
    rig.pass(seconds(14));
    rig.delete("/api/v1/nodes/a");
    rig.create("/api/v1/nodes", &json!({"metadata": {"name": "a"}}));
    rig.report("a", &board());
    let took = rig.until(LEASE + CHECK + SLACK, |rig| unknown(rig, "a"));
    within(took, LEASE, LEASE + CHECK + SLACK);
}

#[test]
fn node_27_pods_of_an_unknown_board_are_not_ready() {
    let rig = silent();
    rig.until(LEASE + CHECK + SLACK, |rig| unknown(rig, "a"));
    rig.until(CHECK + SLACK, |rig| condition(&rig.pod("p"), "Ready") == "False");
}

#[test]
fn ghost_02_a_node_made_by_hand_is_never_ready() {
    let rig = Rig::new();
    rig.create("/api/v1/nodes", &json!({"metadata": {"name": "ghost"}}));
    for _ in 0..60 {
        assert_ne!(condition(&rig.node("ghost"), "Ready"), "True");
        rig.pass(SECOND);
    }
}
