//! NODE-05, NODE-09, NODE-11: a renewal ends an outage and nothing else does, whoever writes or starts anew meanwhile.

use control_plane_core::controllers::node_lifecycle::{self, OUTAGE};
use control_plane_core::{conditions, time};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::lifecycle::{between, board, is_tainted, is_unknown, run, within, world_with};
use crate::world::{World, condition, pod, s, taints, tolerating};

/// A board with a patient pod, silent for so long.
fn silent(seconds: f64) -> World {
    let mut world = world_with(tolerating(pod("p", json!({})), json!(300)));
    run(&mut world, seconds);
    world
}

fn told(world: &World) -> (usize, usize) {
    (world.told("NodeNotReady").len(), world.told("NodeReady").len())
}

/// Every version of the board's Ready condition from an instant on, without its heartbeat.
fn readiness(world: &World, from: Timestamp) -> Vec<Value> {
    let nodes = world.history.iter().filter(|(at, of, _, _)| *at >= from && *of == "nodes");
    let ready = |node: &Value| conditions::get(node, "Ready").cloned().expect("Ready");
    let mut seen: Vec<Value> = nodes.filter_map(|(.., node)| node.as_deref().map(ready)).collect();
    for ready in &mut seen {
        ready.as_object_mut().expect("a condition").remove("lastHeartbeatTime");
    }
    seen.dedup();
    seen
}

#[test]
fn node_05_and_09_a_board_that_reports_before_it_renews_does_not_flap() {
    let mut world = silent(20.0);
    let before = world.now.wall;
    let unknown = world.first("nodes", "a", world.history[0].0, is_unknown).expect("an outage");
    // what a kubelet sends that was hung: figures, and statuses alone
    for round in 0..10_u32 {
        run(&mut world, 0.5);
        world.report("a", |status| {
            status["allocatable"]["memory"] = round.to_string().into();
            for condition in status["conditions"].as_array_mut().expect("a list") {
                let status = if condition["type"] == "Ready" { "True" } else { "False" };
                condition["status"] = status.into();
                condition["lastHeartbeatTime"] = time::stamp(heartbeat(round)).into();
            }
        });
    }
    let seen = readiness(&world, before);
    assert_eq!(seen.len(), 1, "nobody sees it flap: {seen:?}");
    assert_eq!(seen[0]["lastTransitionTime"], time::stamp(unknown));
    assert_eq!((told(&world), taints(&world.node("a"))), ((1, 0), vec!["NoSchedule".to_owned()]));
    let ready = conditions::get(&world.node("a"), "Ready").cloned().expect("Ready");
    assert_eq!(ready["lastHeartbeatTime"], time::stamp(heartbeat(9)), "yet it was heard");
    assert_eq!(world.node("a")["status"]["allocatable"]["memory"], "9");

    run(&mut world, 10.0);
    let no_execute = world.first("nodes", "a", before, is_tainted("NoExecute")).expect("a taint");
    within("NODE-28", between(unknown, no_execute), s(15.0), s(15.5));

    world.renew("a", Some(15));
    let renewed = world.now.wall;
    run(&mut world, 1.0);
    let back = world.first("nodes", "a", renewed, |node| !is_unknown(node)).expect("recovery");
    within("NODE-09", between(renewed, back), s(0.0), s(0.5));
    let ready = conditions::get(&world.node("a"), "Ready").cloned().expect("Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("True"), &json!("KubeletReady")));
    assert_eq!(ready["lastTransitionTime"], time::stamp(back));
    assert_eq!((told(&world), taints(&world.node("a")).len()), ((1, 1), 0));
}

fn heartbeat(second: u32) -> Timestamp {
    Timestamp::from_second(1_000_000_000 + i64::from(second)).expect("an instant")
}

/// A node in its outage with this Ready, and `kept` as what was last reported.
fn lost(ready: &Value, kept: &Value) -> Value {
    let memory = json!({"unknownSince": "2026-11-29T12:00:00.000000Z", "renewTime": "r", "reported": kept});
    json!({
        "metadata": {"name": "a", "annotations": {OUTAGE: memory.to_string()}},
        "status": {"conditions": [ready, {"type": "NetworkUnavailable", "status": "False"}]},
    })
}

#[test]
fn what_is_reported_in_an_outage_waits_for_its_end() {
    let ours = json!({
        "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": "2026-11-29T12:00:00Z", "lastHeartbeatTime": "2026-11-29T11:00:00Z",
    });
    let ready = |status: &str, reason: &str| {
        json!({
            "type": "Ready", "status": status, "reason": reason, "message": format!("it is {reason}"),
            "lastTransitionTime": "2026-11-29T12:34:56Z", "lastHeartbeatTime": "2026-11-29T12:34:56Z",
        })
    };
    let alone = |status: &str| {
        let mut condition = ours.clone();
        condition["status"] = status.into();
        condition
    };
    let kept = json!({"Ready": ready("True", "Kept")});
    // what is reported (null: the conditions are left out), and status and reason that a renewal brings back
    for (what, report, expected) in [
        ("a whole report", ready("True", "Rebooted"), Some(("True", Some("Rebooted")))),
        ("a report that it is not", ready("False", "Broken"), Some(("False", Some("Broken")))),
        ("the status alone, as before", alone("True"), Some(("True", Some("Kept")))),
        ("the status alone, another", alone("False"), Some(("False", None))),
        ("what was read, written back", ours.clone(), Some(("True", Some("Kept")))),
        ("Unknown for a reason of its own", ready("Unknown", "Mine"), Some(("Unknown", Some("Mine")))),
        ("no conditions at all", Value::Null, Some(("True", Some("Kept")))),
    ] {
        let old = lost(&ours, &kept);
        let mut new = old.clone();
        new["metadata"]["labels"] = json!({"x": "y"});
        new["metadata"]["annotations"] = json!({"mine": "too"});
        let other = json!({"type": "NetworkUnavailable", "status": "True"});
        new["status"] = if report.is_null() { json!({}) } else { json!({"conditions": [report, other]}) };
        node_lifecycle::hold(&old, &mut new);
        let shown = conditions::get(&new, "Ready").expect(what);
        for field in ["status", "reason", "message", "lastTransitionTime"] {
            assert_eq!(shown[field], ours[field], "{what}: {field}");
        }
        if !report.is_null() {
            assert_eq!(shown["lastHeartbeatTime"], report["lastHeartbeatTime"], "{what}");
            assert_eq!(condition(&new, "NetworkUnavailable").as_deref(), Some("True"), "{what}: not ours");
        }
        assert_eq!(
            (&new["metadata"]["labels"]["x"], &new["metadata"]["annotations"]["mine"]),
            (&json!("y"), &json!("too"))
        );
        let memory = new["metadata"]["annotations"][OUTAGE].as_str().expect(what);
        let memory: Value = serde_json::from_str(memory).expect(what);
        assert_eq!(
            (&memory["unknownSince"], &memory["renewTime"]),
            (&json!("2026-11-29T12:00:00.000000Z"), &json!("r"))
        );
        let (status, reason) = expected.expect(what);
        let waits = &memory["reported"]["Ready"];
        assert_eq!((waits["status"].as_str(), waits["reason"].as_str()), (Some(status), reason), "{what}");
        assert_eq!(
            waits["message"].as_str(),
            reason.map(|reason| format!("it is {reason}")).as_deref(),
            "{what}"
        );
    }
}

#[test]
fn without_an_outage_every_report_stands() {
    let old = board("a");
    let mut new = old.clone();
    new["status"]["conditions"][1]["status"] = "False".into();
    let wanted = new.clone();
    node_lifecycle::hold(&old, &mut new);
    assert_eq!(new, wanted);
}

#[test]
fn ghost_02_the_first_report_of_a_node_that_never_had_a_kubelet_waits_too() {
    let mut world = World::new();
    world.put("nodes", json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}));
    run(&mut world, 20.0);
    world.report("a", |status| {
        status["conditions"] = board("a")["status"]["conditions"].clone();
    });
    run(&mut world, 1.0);
    assert!(is_unknown(&world.node("a")), "no lease was ever renewed");
    world.renew("a", Some(15));
    run(&mut world, 1.0);
    let node = world.node("a");
    let ready = conditions::get(&node, "Ready").expect("Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("True"), &json!("KubeletReady")));
    assert_eq!(condition(&node, "MemoryPressure").as_deref(), Some("False"));
    assert_eq!(conditions::get(&node, "DiskPressure"), None, "never reported");
    assert_eq!((told(&world), taints(&node).len()), ((1, 1), 0));
}

#[test]
fn node_28_a_ready_that_got_in_by_another_way_goes_back_and_n_goes_on() {
    let mut world = silent(20.0);
    let begun = world.history[0].0;
    let unknown = world.first("nodes", "a", begun, is_unknown).expect("an outage");
    let written = world.now.wall;
    world.change("nodes", "", "a", |node| {
        node["status"]["conditions"] = board("a")["status"]["conditions"].clone();
    });
    run(&mut world, 1.0);
    let again = world.first("nodes", "a", written, is_unknown).expect("the same outage");
    within("back to Unknown", between(written, again), s(0.0), s(0.5));
    let ready = conditions::get(&world.node("a"), "Ready").cloned().expect("Ready");
    assert_eq!(
        (&ready["reason"], &ready["lastTransitionTime"]),
        (&json!("NodeStatusUnknown"), &time::stamp(unknown).into())
    );
    run(&mut world, 20.0);
    let no_execute = world.first("nodes", "a", begun, is_tainted("NoExecute")).expect("a taint");
    // an instant that is no longer this process's own is taken to be 20 ms later than it says
    within("NODE-28", between(unknown, no_execute), s(15.0), s(15.52));
    assert_eq!(told(&world), (1, 0));
    world.renew("a", Some(15));
    run(&mut world, 1.0);
    assert_eq!(condition(&world.node("a"), "Ready").as_deref(), Some("True"));
    assert_eq!(told(&world), (1, 1));
}

#[test]
fn an_outage_outlives_its_annotation_and_its_taints() {
    let mut world = silent(20.0);
    world.change("nodes", "", "a", |node| {
        node["metadata"]["annotations"] = json!({});
        node["spec"]["taints"] = json!([]);
    });
    run(&mut world, 1.0);
    assert_eq!(
        (told(&world).0, taints(&world.node("a"))),
        (1, vec!["NoSchedule".to_owned()]),
        "no second one"
    );
    world.report("a", |status| status["conditions"] = board("a")["status"]["conditions"].clone());
    assert!(is_unknown(&world.node("a")), "the annotation is back");

    world.change("nodes", "", "a", |node| {
        node["metadata"]["annotations"] = json!({});
        node["spec"]["taints"] = json!([]);
    });
    world.renew("a", Some(15));
    run(&mut world, 1.0);
    let versions = world.history.len();
    run(&mut world, 5.0);
    assert_eq!(world.history.len(), versions, "nothing is known to bring back, and nothing is left to write");
    world.report("a", |status| status["conditions"] = board("a")["status"]["conditions"].clone());
    assert_eq!(condition(&world.node("a"), "Ready").as_deref(), Some("True"));
}

#[test]
fn node_11_a_ready_node_with_old_taints_has_one_full_lease_after_a_restart() {
    for annotated in [true, false] {
        let mut world = silent(40.0);
        world.change("nodes", "", "a", |node| {
            node["status"]["conditions"] = board("a")["status"]["conditions"].clone();
            if !annotated {
                node["metadata"]["annotations"] = json!({});
            }
        });
        world.restart(s(100.0));
        let serving = world.now.wall;
        run(&mut world, 40.0);
        let unknown = world.first("nodes", "a", serving, is_unknown).expect("an outage");
        within("NODE-11", between(serving, unknown), s(15.0), s(15.5));
    }
}

#[test]
fn node_09_and_11_a_renewal_counts_though_the_server_ended_before_it_looked() {
    for silence in [20.0, 40.0] {
        let mut world = silent(silence);
        world.renew("a", Some(15));
        world.report("a", |status| status["conditions"] = board("a")["status"]["conditions"].clone());
        assert!(is_unknown(&world.node("a")), "until the next check");
        world.restart(s(100.0));
        let serving = world.now.wall;
        world.tick();
        let node = world.node("a");
        assert_eq!((condition(&node, "Ready").as_deref(), taints(&node).len()), (Some("True"), 0));
        assert_eq!((told(&world), world.told("Evicted").len()), ((1, 1), 0));
        run(&mut world, 40.0);
        let unknown = world.first("nodes", "a", serving, is_unknown).expect("the next outage");
        within("NODE-11", between(serving, unknown), s(15.0), s(15.5));
        assert_eq!(told(&world), (2, 1));
    }
}
