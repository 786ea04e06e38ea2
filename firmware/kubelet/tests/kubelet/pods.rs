//! The lives of pods: KLET-02 to KLET-05, KLET-07, KLET-08, NODE-18, NODE-24.

use serde_json::{Value, json};

use crate::api::{Fault, failure, world_millis};
use crate::world::{World, pod, pod_with};

fn terminated(world: &World, name: &str) -> (i64, String) {
    let state = &world.container(name)["state"]["terminated"];
    (state["exitCode"].as_i64().unwrap_or(-1), state["reason"].as_str().unwrap_or("").to_string())
}

fn waiting(world: &World, name: &str) -> String {
    world.container(name)["state"]["waiting"]["reason"].as_str().unwrap_or("").to_string()
}

#[test]
fn a_pod_is_pending_then_running() {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "pause", "8Ki"));
    let took = world.run_until(2000, |world| world.phase("p") == "Running");
    assert!(took < 50, "{took} ms");
    let patches: Vec<&Value> = world.api.seen("PATCH", "/pods/p/status").map(|r| &r.body["status"]).collect();
    assert_eq!(patches.len(), 2);
    assert_eq!(patches[0]["phase"], "Pending");
    assert_eq!(patches[0]["containerStatuses"][0]["state"]["waiting"]["reason"], "ContainerCreating");
    // The second carries what changed.
    assert!(patches[1]["startTime"].is_null() && patches[1]["podIP"].is_null(), "{}", patches[1]);
    insta::with_settings!({sort_maps => true, filters => [("rigor://[0-9a-f]{16}-1", "ID")]}, {
        insta::assert_yaml_snapshot!(world.status("p"), @r#"
        conditions:
          - lastTransitionTime: "2027-01-15T08:00:00Z"
            status: "True"
            type: PodScheduled
          - lastTransitionTime: "2027-01-15T08:00:00Z"
            status: "True"
            type: Initialized
          - lastTransitionTime: "2027-01-15T08:00:00Z"
            status: "True"
            type: Ready
          - lastTransitionTime: "2027-01-15T08:00:00Z"
            status: "True"
            type: ContainersReady
        containerStatuses:
          - containerID: "ID"
            image: rigor.dev/builtin
            imageID: ""
            lastState: {}
            name: c
            ready: true
            restartCount: 0
            started: true
            state:
              running:
                startedAt: "2027-01-15T08:00:00Z"
        hostIP: 10.0.2.15
        hostIPs:
          - ip: 10.0.2.15
        phase: Running
        podIP: 10.0.2.15
        podIPs:
          - ip: 10.0.2.15
        startTime: "2027-01-15T08:00:00Z"
        "#);
    });
    assert!(world.said("pod default/p container c started"));
}

#[test]
fn a_pod_that_no_scheduler_placed_is_scheduled_all_the_same() {
    let mut world = World::ready();
    let mut unscheduled = pod("p", "pause", "8Ki");
    unscheduled["status"] = json!({"phase": "Pending"});
    world.api.put_pod(unscheduled);
    world.run(1000);
    assert_eq!(World::condition(world.status("p"), "PodScheduled")["status"], "True");
}

#[test]
fn every_workload_ends_as_its_policy_says() {
    let check = |workload: &str, policy: &str, after: u64, phase: &str, code: i64| {
        let mut world = World::ready();
        let container =
            json!({"args": [workload], "resources": {"limits": {"memory": "8Ki", "esp32.io/gpio": "1"}}});
        world.api.put_pod(pod_with("p", container, json!({"restartPolicy": policy})));
        world.run(after);
        assert_eq!((world.phase("p"), terminated(&world, "p").0), (phase, code), "{workload} {policy}");
        let ended = phase != "Running";
        assert_eq!(world.kubelet.reserved_bytes() == 0, ended, "{workload} {policy}");
        assert_eq!(world.allocatable("esp32.io/gpio") == 6, ended, "{workload} {policy}");
        if ended {
            let ready = World::condition(world.status("p"), "Ready");
            assert_eq!(ready["status"], "False");
            assert_eq!(ready["reason"], if phase == "Succeeded" { "PodCompleted" } else { "PodFailed" });
        }
    };
    check("pause", "Always", 60_000, "Running", -1);
    check("exit:0", "Never", 1000, "Succeeded", 0);
    check("exit:0", "OnFailure", 1000, "Succeeded", 0);
    check("exit:7", "Never", 1000, "Failed", 7);
    check("crash", "Never", 1000, "Failed", 134);
    check("exit:3:after=5s", "Never", 4900, "Running", -1);
    check("exit:3:after=5s", "Never", 6000, "Failed", 3);
    check("exit:0:after=500ms", "OnFailure", 1500, "Succeeded", 0);
}

#[test]
fn a_crash_loop_backs_off_as_kubernetes_does() {
    let mut world = World::ready();
    let claims =
        json!({"args": ["crash"], "resources": {"requests": {"memory": "8Ki", "esp32.io/gpio-2": "1"}}});
    world.api.put_pod(pod_with("p", claims, json!({})));
    world.run(5000);
    let start = world.now;
    assert_eq!((world.phase("p"), waiting(&world, "p").as_str()), ("Running", "CrashLoopBackOff"));
    assert_eq!(world.container("p")["restartCount"], 1);
    assert_eq!(world.container("p")["lastState"]["terminated"]["exitCode"], 134);
    // While it waits it holds no memory (SCHED-24), but its pin stays its own.
    assert_eq!((world.kubelet.reserved_bytes(), world.allocatable("esp32.io/gpio")), (0, 5));
    world.run_until(6000, |world| world.container("p")["restartCount"] == 2);
    world.run_until(21_000, |world| world.container("p")["restartCount"] == 3);
    let took = world.run_until(41_000, |world| world.container("p")["restartCount"] == 4);
    assert!(took > 39_000, "{took}");
    assert!(world.now - start > 60_000);
    let back_off = world.api.events.values().find(|e| e["reason"] == "BackOff").unwrap();
    assert_eq!((&back_off["type"], &back_off["involvedObject"]["name"]), (&json!("Warning"), &json!("p")));
    assert!(back_off["count"].as_u64().unwrap() >= 2, "{back_off}");
}

#[test]
fn on_failure_runs_until_it_succeeds_elsewhere_in_the_pod() {
    let mut world = World::ready();
    let second = json!([{"name": "c", "image": "rigor.dev/builtin", "args": ["exit:0:after=30s"]},
        {"name": "d", "image": "rigor.dev/crash"}]);
    world.api.put_pod(pod_with("p", json!({}), json!({"restartPolicy": "OnFailure", "containers": second})));
    world.run(35_000);
    assert_eq!(world.phase("p"), "Running");
    let statuses = &world.status("p")["containerStatuses"];
    assert_eq!(statuses[0]["state"]["terminated"]["exitCode"], 0);
    assert!(statuses[1]["restartCount"].as_u64().unwrap() >= 2);
}

#[test]
fn init_containers_run_first_and_one_by_one() {
    let mut world = World::ready();
    let init = json!([{"name": "i", "image": "rigor.dev/builtin", "args": ["exit:0:after=2s"]},
        {"name": "j", "image": "rigor.dev/builtin", "args": ["exit:0:after=1s"]}]);
    world.api.put_pod(pod_with("p", json!({}), json!({"initContainers": init})));
    world.run(1000);
    assert_eq!((world.phase("p"), waiting(&world, "p").as_str()), ("Pending", "PodInitializing"));
    assert_eq!(World::condition(world.status("p"), "Initialized")["status"], "False");
    assert!(world.status("p")["initContainerStatuses"][0]["state"]["running"].is_object());
    assert!(world.status("p")["initContainerStatuses"][1]["state"]["waiting"].is_object());
    world.run(2500);
    assert_eq!(world.phase("p"), "Running");

    let failing = json!([{"name": "i", "image": "rigor.dev/builtin", "args": ["exit:1"]}]);
    let spec = json!({"initContainers": failing, "restartPolicy": "Never"});
    world.api.put_pod(pod_with("q", json!({}), spec));
    world.run(1000);
    assert_eq!(world.phase("q"), "Failed");
    assert!(!world.said("pod default/q container c started"));
}

#[test]
fn what_cannot_start_says_why() {
    let check = |container: Value, reason: &str| {
        let mut world = World::ready();
        world.api.put_pod(pod_with("p", container.clone(), json!({})));
        world.run(500);
        let first = waiting(&world, "p");
        world.run(2000);
        assert_eq!(format!("{first} {}", waiting(&world, "p")), reason, "{container}");
        assert_eq!((world.phase("p"), world.kubelet.reserved_bytes()), ("Pending", 0));
        assert!(world.api.events.values().any(|e| e["reason"] == "Failed"));
    };
    check(json!({"image": "nginx:1.27"}), "ErrImagePull ImagePullBackOff");
    check(json!({"args": ["dance"]}), "CreateContainerConfigError CreateContainerConfigError");
}

/// KLET-03: the pod fails with a reason, and nothing else happens.
#[test]
fn the_firewall_refuses_pins() {
    let check = |resource: &str, reason: &str, message: &str| {
        let mut world = World::ready();
        let holder = json!({"resources": {"requests": {"esp32.io/gpio-2": "1", "memory": "8Ki"}}});
        world.api.put_pod(pod_with("holder", holder, json!({})));
        world.run(500);
        let container = json!({"resources": {"requests": {resource: "1", "memory": "8Ki"}}});
        world.api.put_pod(pod_with("p", container, json!({})));
        world.run(500);
        let status = world.status("p");
        assert_eq!((world.phase("p"), &status["reason"]), ("Failed", &json!(reason)), "{resource}");
        assert!(status["message"].as_str().unwrap().contains(message), "{status}");
        assert!(status["containerStatuses"].is_null());
        assert_eq!((world.phase("holder"), world.kubelet.reserved_bytes()), ("Running", 8192));
        assert_eq!(world.allocatable("esp32.io/gpio"), 5);
        // The pin is free again as soon as its holder is gone.
        world.api.delete_gracefully("holder");
        world.run(500);
        let again = json!({"resources": {"requests": {"esp32.io/gpio-2": "1"}}});
        world.api.put_pod(pod_with("again", again, json!({})));
        world.run(500);
        assert_eq!(world.phase("again"), "Running");
    };
    check("esp32.io/gpio-2", "PinAlreadyClaimed", "claimed by pod default/holder");
    check("hardware.kube32.io/gpio-2", "PinAlreadyClaimed", "hardware.kube32.io/gpio-2");
    check("esp32.io/gpio-11", "ReservedPin", "esp32.io/gpio-11");
    check("hardware.kube32.io/gpio-99", "UnknownPin", "hardware.kube32.io/gpio-99");
    check("hardware.kube32.io/laser", "UnknownPin", "hardware.kube32.io/laser");
}

/// KLET-07, SCHED-15: exactly what is free fits; a byte more does not.
#[test]
fn memory_that_is_not_there_is_refused() {
    let mut world = World::ready();
    world.api.put_pod(pod("big", "pause", "204801"));
    world.run(500);
    assert_eq!((world.phase("big"), &world.status("big")["reason"]), ("Failed", &json!("OutOfMemory")));
    world.api.put_pod(pod("all", "pause", "204800"));
    world.run(500);
    assert_eq!((world.phase("all"), world.allocatable("memory")), ("Running", 0));
    world.api.put_pod(pod("more", "pause", "1"));
    world.api.put_pod(pod("huge", "pause", "9999G"));
    world.run(500);
    assert_eq!(
        (world.phase("more"), world.phase("huge"), world.phase("all")),
        ("Failed", "Failed", "Running")
    );
}

#[test]
fn what_waits_to_restart_keeps_its_promise_of_memory() {
    let mut world = World::ready();
    world.api.put_pod(pod("loop", "crash", "150Ki"));
    world.run(3000);
    assert_eq!(waiting(&world, "loop"), "CrashLoopBackOff");
    world.api.put_pod(pod("p", "pause", "60Ki"));
    world.run(500);
    assert_eq!(world.status("p")["reason"], "OutOfMemory");
    world.run(15_000);
    assert!(world.container("loop")["restartCount"].as_u64().unwrap() >= 2);
}

#[test]
fn more_pods_than_a_board_takes_are_refused_and_the_rest_runs() {
    let mut world = World::ready();
    for n in 0..100 {
        world.api.put_pod(pod(&format!("p{n:02}"), "pause", "1"));
    }
    world.run(30_000);
    let phases: Vec<&str> = world.api.pods.values().map(|p| p["status"]["phase"].as_str().unwrap()).collect();
    assert_eq!(phases.iter().filter(|p| **p == "Running").count(), 32);
    assert_eq!(phases.iter().filter(|p| **p == "Failed").count(), 68);
    assert_eq!(world.status("p99")["reason"], "OutOfpods");
}

/// KLET-04: stopped, pins free, told, and only then removed.
#[test]
fn a_deleted_pod_stops_and_then_goes() {
    let mut world = World::ready();
    let claims = json!({"resources": {"requests": {"memory": "8Ki", "esp32.io/gpio-2": "1"}}});
    world.api.put_pod(pod_with("p", claims, json!({})));
    world.run(1000);
    world.api.delete_gracefully("p");
    let took = world.run_until(2000, |world| !world.api.pods.contains_key("p"));
    assert!(took < 100, "{took} ms");
    let writes: Vec<_> = world.api.requests.iter().filter(|r| r.path.contains("/pods/p")).collect();
    let (last, before) = (writes[writes.len() - 1], writes[writes.len() - 2]);
    assert_eq!((last.method.as_str(), last.status), ("DELETE", 200));
    assert_eq!(before.body["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 143);
    assert_eq!(before.body["status"]["phase"], "Failed");
    world.run(300);
    assert_eq!((world.kubelet.reserved_bytes(), world.allocatable("esp32.io/gpio")), (0, 6));
    assert!(world.api.events.values().any(|e| e["reason"] == "Killing"));
    assert_eq!(world.api.seen("DELETE", "/pods/p").count(), 1);
}

#[test]
fn a_finished_pod_that_is_deleted_goes() {
    let mut world = World::ready();
    world.api.put_pod(pod_with("p", json!({"args": ["exit:0"]}), json!({"restartPolicy": "Never"})));
    world.run(1000);
    assert_eq!(world.phase("p"), "Succeeded");
    world.api.delete_gracefully("p");
    world.run(1000);
    assert!(!world.api.pods.contains_key("p"));
    assert_eq!(world.api.seen("DELETE", "/pods/p").count(), 1);
}

#[test]
fn a_finalizer_keeps_the_object_and_nothing_else() {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run(1000);
    let mut deletes = 0;
    world.api.rule = Some(Box::new(move |request| {
        deletes += usize::from(request.method == "DELETE");
        assert!(deletes < 3, "asked for removal again and again");
        (request.method == "DELETE").then(|| Fault::Status(200, json!({})))
    }));
    world.api.delete_gracefully("p");
    world.run(1000);
    world.api.edit_pod("p", |pod| pod["metadata"]["deletionGracePeriodSeconds"] = json!(0));
    world.run(60_000);
    assert_eq!(world.kubelet.reserved_bytes(), 0);
    world.api.remove_pod("p");
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run(1000);
    assert_eq!((world.phase("p"), world.kubelet.reserved_bytes()), ("Running", 8192));
}

#[test]
fn a_removal_that_fails_is_asked_for_again() {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run(1000);
    let mut left = 3;
    world.api.rule = Some(Box::new(move |request| {
        if request.method != "DELETE" || left == 0 {
            return None;
        }
        left -= 1;
        Some(Fault::Status(500, failure(500).1))
    }));
    world.api.delete_gracefully("p");
    world.run(6000);
    assert!(!world.api.pods.contains_key("p"));
}

#[test]
fn a_pod_removed_by_force_stops() {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run(1000);
    world.api.remove_pod("p");
    world.run(1000);
    assert_eq!(world.kubelet.reserved_bytes(), 0);
    // Another of the same name is another pod.
    let mut other = pod("p", "pause", "4Ki");
    other["metadata"]["uid"] = json!("other");
    world.api.put_pod(other);
    world.run(1000);
    assert_eq!((world.phase("p"), world.kubelet.reserved_bytes()), ("Running", 4096));
}

/// NODE-24, NODE-18: a pod that was moved away is stopped without a word; moved back, it starts anew.
#[test]
fn a_pod_that_was_moved_stops_here() {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run(1000);
    let writes = world.api.seen("PATCH", "/pods/").count();
    let evict = |pod: &mut Value| {
        pod["spec"]["nodeName"] = json!("b");
        pod["status"] = json!({"phase": "Pending", "reason": "Evicted", "message": "moved",
            "conditions": [{"type": "DisruptionTarget", "status": "True"}]});
    };
    world.api.edit_pod("p", evict);
    world.run(1000);
    assert_eq!((world.kubelet.reserved_bytes(), world.allocatable("memory")), (0, 204_800));
    assert_eq!(world.api.seen("PATCH", "/pods/").count(), writes, "the board wrote to a pod of another");
    assert_eq!(world.api.seen("DELETE", "/pods/").count(), 0);
    world.api.edit_pod("p", |pod| pod["spec"]["nodeName"] = json!("a"));
    world.run(1000);
    assert_eq!((world.phase("p"), &world.container("p")["restartCount"]), ("Running", &json!(0)));
    // What the eviction said is gone once it runs; the controllers' condition is theirs.
    assert!(world.status("p")["reason"].is_null() && world.status("p")["message"].is_null());
    assert_eq!(World::condition(world.status("p"), "DisruptionTarget")["status"], "True");
}

/// NODE-24: back after a link cut in which its pods were moved.
#[test]
fn a_board_that_was_away_drops_what_was_moved() {
    let mut world = World::ready();
    for name in ["moved", "stays"] {
        world.api.put_pod(pod(name, "pause", "8Ki"));
    }
    world.run(1000);
    world.link_up = false;
    world.run(400_000);
    assert_eq!(world.kubelet.reserved_bytes(), 16_384, "without contact everything goes on");
    world.api.edit_pod("moved", |pod| pod["spec"]["nodeName"] = json!("b"));
    world.link_up = true;
    let from = world.now;
    world.run_until(10_000, |world| world.kubelet.reserved_bytes() == 8192);
    world.run(20_000);
    assert_eq!(world.container("stays")["restartCount"], 0);
    let bad = world.api.requests.iter().filter(|r| r.at > from && r.path.contains("/pods/moved"));
    assert_eq!(bad.count(), 0);
}

/// The same within the life of one watch, which after a short cut stands but is deaf.
#[test]
fn a_short_cut_is_enough_to_ask_anew() {
    let mut world = World::ready();
    world.watches_end = false;
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run(1000);
    world.link_up = false;
    world.api.edit_pod("p", |pod| pod["spec"]["nodeName"] = json!("b"));
    world.run(12_000);
    world.link_up = true;
    world.run_until(8000, |world| world.kubelet.reserved_bytes() == 0);
}

/// A watch that is slower than the answers shows the past, and the past changes nothing.
#[test]
fn a_slow_watch_does_not_confuse() {
    let mut world = World::ready();
    world.watch_delay = 70;
    world.api.put_pod(pod_with("p", json!({"args": ["exit:0"]}), json!({"restartPolicy": "Never"})));
    world.api.put_pod(pod("q", "pause", "8Ki"));
    world.run(2000);
    assert_eq!((world.phase("p"), world.phase("q")), ("Succeeded", "Running"));
    assert_eq!(world.api.seen("PATCH", "/pods/p/status").count(), 2);
    assert_eq!(world.api.seen("PATCH", "/pods/q/status").count(), 2);
    world.api.delete_gracefully("p");
    world.api.delete_gracefully("q");
    world.run(2000);
    assert!(world.api.pods.is_empty());
    assert_eq!(world.api.seen("DELETE", "/pods/").count(), 2);
    assert_eq!(world.console.iter().filter(|(_, line)| line.ends_with("container c started")).count(), 2);
}

/// KLET-02: Pending with ContainerCreating has been seen before anything runs.
#[test]
fn nothing_starts_before_its_pending_status_is_taken() {
    let mut world = World::ready();
    world.api.rule =
        Some(Box::new(|request| request.path.ends_with("/p/status").then_some(Fault::Slow(300))));
    world.api.put_pod(pod("p", "pause", "8Ki"));
    let took = world.run_until(2000, |world| world.said("pod default/p container c started"));
    assert!((300..400).contains(&took), "{took}");
}

/// What ran before the power went comes first when there is not room for all.
#[test]
fn after_a_power_cycle_what_ran_before_comes_first() {
    let mut world = World::ready();
    world.api.put_pod(pod("z", "pause", "150Ki"));
    world.run(1000);
    world.api.rule = Some(Box::new(|_| Some(Fault::Ignored)));
    let mut late = pod("b", "pause", "150Ki");
    late["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    world.deafen_watch();
    world.api.put_pod(late);
    world.api.rule = None;
    world.power_cycle(1000);
    world.run(2000);
    assert_eq!((world.phase("z"), world.phase("b")), ("Running", "Failed"));
}

/// KLET-08: a refused status write is how a board without a watch learns it.
#[test]
fn a_refused_status_write_drops_the_copy() {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "exit:0:after=20s", "8Ki"));
    world.run(1000);
    world.deafen_watch();
    world.api.edit_pod("p", |pod| pod["spec"]["nodeName"] = json!("b"));
    world.run(21_000);
    assert_eq!(world.api.seen("PATCH", "/pods/p/status").last().unwrap().status, 403);
    assert!(world.said("pod default/p dropped: its status was refused: 403"));
    let writes = world.api.requests.len();
    world.run(60_000);
    assert!(!world.api.requests[writes..].iter().any(|r| r.path.contains("/pods/p")));
    assert_eq!(world.kubelet.reserved_bytes(), 0);
}

/// KLET-05: after a power cycle what is still bound runs again, counted.
#[test]
fn a_power_cycle_restarts_what_is_bound() {
    let mut world = World::ready();
    let claims = json!({"resources": {"requests": {"memory": "8Ki", "esp32.io/gpio-2": "1"}}});
    world.api.put_pod(pod_with("p", claims, json!({})));
    world.api.put_pod(pod_with("done", json!({"args": ["exit:0"]}), json!({"restartPolicy": "Never"})));
    world.api.put_pod(pod("gone", "pause", "8Ki"));
    world.run(2000);
    let before = world.container("p").clone();
    let start = world.status("p")["startTime"].clone();
    world.power_cycle(3000);
    world.api.delete_gracefully("gone");
    let took = world.run_until(2000, |world| world.container("p")["restartCount"] == 1);
    assert!(took < 200, "{took} ms");
    world.run(1000);
    let after = world.container("p");
    assert_eq!((world.phase("p"), &after["ready"]), ("Running", &json!(true)));
    assert_ne!(after["containerID"], before["containerID"]);
    let last = &after["lastState"]["terminated"];
    assert_eq!(
        (&last["containerID"], &last["exitCode"], &last["reason"]),
        (&before["containerID"], &json!(255), &json!("BoardReset"))
    );
    assert_eq!(last["startedAt"], before["state"]["running"]["startedAt"]);
    assert!(world_millis(&after["state"]["running"]["startedAt"]) >= 4000);
    assert_eq!(world.status("p")["startTime"], start);
    assert_eq!((world.phase("done"), world.allocatable("esp32.io/gpio")), ("Succeeded", 5));
    assert!(!world.api.pods.contains_key("gone"));
    world.power_cycle(100);
    world.run(1000);
    assert_eq!(world.container("p")["restartCount"], 2);
}

#[test]
fn a_returning_board_says_ready_only_with_its_pods_counted() {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "pause", "64Ki"));
    world.run(2000);
    world.power_cycle(1000);
    let from = world.now;
    world.run(1000);
    for report in world.api.seen("PATCH", "/nodes/a/status").filter(|r| r.at >= from) {
        assert_eq!(report.body["status"]["allocatable"]["memory"], (204_800 - 65_536).to_string());
    }
}

/// NODE-27: the control plane said Ready=False while it thought the board dead.
#[test]
fn ready_is_told_again_after_recovery() {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run(1000);
    let started = world.container("p").clone();
    world.link_up = false;
    world.run(40_000);
    world.api.edit_pod("p", |pod| {
        for condition in pod["status"]["conditions"].as_array_mut().unwrap() {
            if condition["type"] == "Ready" {
                condition["status"] = json!("False");
                condition["lastTransitionTime"] = json!("2027-01-15T08:00:30Z");
            }
        }
    });
    world.link_up = true;
    world.run_until(10_000, |world| World::condition(world.status("p"), "Ready")["status"] == "True");
    let since = world_millis(&World::condition(world.status("p"), "Ready")["lastTransitionTime"]);
    assert!(since >= 41_000, "the time did not move with the status: {since}");
    // NODE-10: it is the same run of the same container.
    assert_eq!(world.container("p"), &started);
    let writes = world.api.seen("PATCH", "/pods/p/status").count();
    world.run(60_000);
    assert_eq!(world.api.seen("PATCH", "/pods/p/status").count(), writes, "nothing changed, nothing is told");
}

fn since(world: &World, kind: &str) -> i64 {
    world_millis(&World::condition(world.status("p"), kind)["lastTransitionTime"])
}

/// The control plane says that a pod of a dead board is not Ready.
fn say_unready(world: &mut World, stamp: &str) {
    world.api.edit_pod("p", |pod| {
        let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
        let ready = conditions.iter_mut().find(|c| c["type"] == "Ready").unwrap();
        (ready["status"], ready["lastTransitionTime"]) = (json!("False"), json!(stamp));
    });
}

/// The board starts from the conditions the API shows: what is as it was keeps its time.
#[test]
fn change_times_outlive_a_power_cycle() {
    let mut world = World::ready();
    let init = json!([{"name": "i", "image": "rigor.dev/builtin", "args": ["exit:0:after=2s"]}]);
    world.api.put_pod(pod_with("p", json!({}), json!({"initContainers": init})));
    world.run(5000);
    let initialized = since(&world, "Initialized");
    assert!((2000..4000).contains(&initialized), "{initialized}");
    world.power_cycle(3000);
    world.run(2000);
    assert_eq!(world.container("p")["restartCount"], 1);
    assert_eq!(since(&world, "Initialized"), initialized);
    // The containers did stop.
    for kind in ["Ready", "ContainersReady"] {
        assert!(since(&world, kind) >= 7000, "{kind}");
    }
}

/// While the board was silent the control plane said not Ready; what it says of containers stands.
#[test]
fn change_times_outlive_an_outage() {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run(1000);
    let before = since(&world, "ContainersReady");
    world.link_up = false;
    world.run(20_000);
    say_unready(&mut world, "2027-01-15T08:00:20Z");
    world.link_up = true;
    world.run(10_000);
    assert_eq!(World::condition(world.status("p"), "Ready")["status"], "True");
    assert!(since(&world, "Ready") >= 21_000);
    assert_eq!(since(&world, "ContainersReady"), before);
}

/// Board and control plane come to the same conclusion while they do not hear of each other: the first
/// word stands. What the board shows was read first, for the watch is no faster than the board's own word.
#[test]
fn what_the_control_plane_said_first_stands() {
    let mut world = World::ready();
    world.watch_delay = 3000;
    world.api.put_pod(pod_with(
        "p",
        json!({"args": ["exit:1:after=15s"]}),
        json!({"restartPolicy": "Never"}),
    ));
    world.run(5000);
    assert_eq!(world.phase("p"), "Running");
    world.link_up = false;
    world.run(20_000);
    say_unready(&mut world, "2027-01-15T08:00:09Z");
    world.link_up = true;
    world.run_until(10_000, |world| world.phase("p") == "Failed");
    assert_eq!(since(&world, "Ready"), 9000);
    assert!(since(&world, "ContainersReady") >= 15_000);
}

/// A board that is deleted from while it was thought dead says its last word before it lets go.
#[test]
fn a_deleted_pod_keeps_its_change_times() {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run(1000);
    world.link_up = false;
    world.run(20_000);
    say_unready(&mut world, "2027-01-15T08:00:20Z");
    world.api.delete_gracefully("p");
    world.link_up = true;
    world.run_until(10_000, |world| !world.api.pods.contains_key("p"));
    let mut shown = world.api.history.iter().map(|(_, line)| &line["object"]["status"]);
    let last = shown.rfind(|status| status["phase"] == "Failed").unwrap();
    let ready = World::condition(last, "Ready");
    assert_eq!((&ready["status"], world_millis(&ready["lastTransitionTime"])), (&json!("False"), 20_000));
}

/// A patch may have been taken although its answer got lost: what the API shows decides, not what was sent.
#[test]
fn a_lost_answer_moves_no_change_time() {
    let check = |lost: fn() -> Fault, moved: bool| {
        let mut world = World::ready();
        let mut lose = true;
        world.api.rule = Some(Box::new(move |request| {
            let ready = World::condition(&request.body["status"], "Ready");
            (request.method == "PATCH" && ready["status"] == "True" && std::mem::take(&mut lose)).then(lost)
        }));
        let workload = json!({"args": ["exit:1:after=2s"]});
        world.api.put_pod(pod_with("p", workload, json!({"restartPolicy": "Never"})));
        world.run_until(1000, |world| world.said("pod default/p container c started"));
        world.watch_delay = 60_000;
        world.run_until(20_000, |world| world.phase("p") == "Failed");
        assert_eq!(since(&world, "Ready") > 1000, moved, "{:#?}", world.status("p"));
    };
    check(|| Fault::Lost, true);
    check(|| Fault::Ignored, false);
}

/// A renewal pushes a patch aside that the server has taken, before its answer is there.
#[test]
fn a_patch_that_was_pushed_aside_moves_no_change_time() {
    let check = |workload: &str, contradict: bool, watch_delay: u64, phase: &str| {
        let mut world = World::ready();
        world.run(2000);
        let mut slow = true;
        world.api.rule = Some(Box::new(move |request| {
            let ready = World::condition(&request.body["status"], "Ready");
            let slow = request.method == "PATCH" && ready["status"] == "True" && std::mem::take(&mut slow);
            slow.then_some(Fault::Slow(3900))
        }));
        let workload = json!({"args": [workload]});
        world.api.put_pod(pod_with("p", workload, json!({"restartPolicy": "Never"})));
        world.run_until(1000, |world| world.said("pod default/p container c started"));
        world.watch_delay = watch_delay;
        world.run(1000);
        assert_eq!(
            (since(&world, "Ready"), World::condition(world.status("p"), "Ready")["status"].as_str()),
            (2000, Some("True"))
        );
        if contradict {
            say_unready(&mut world, "2027-01-15T08:00:04Z");
        }
        world.run(5000);
        assert_eq!(world.phase("p"), phase);
        since(&world, "Ready")
    };
    // Nothing new: it is said again as it was.
    assert_eq!(check("pause", false, 60_000, "Running"), 2000);
    // It ended meanwhile, or the control plane said otherwise: that is later.
    assert!(check("exit:1:after=2s", false, 60_000, "Failed") >= 4000);
    assert!(check("pause", true, 0, "Running") >= 4000);
}

/// NODE-18: a pod that was taken away and given back shows nothing of its former life.
#[test]
fn a_pod_that_was_evicted_and_comes_back_is_told_anew() {
    let check = |oldest: bool| {
        let mut world = World::ready();
        world.api.put_pod(pod("p", "pause", "8Ki"));
        world.run(1000);
        world.link_up = false;
        world.run(20_000);
        let evicted = json!({"phase": "Pending", "reason": "Evicted", "message": "its board is dead", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Evicted", "lastTransitionTime": "2027-01-15T08:00:20Z"},
            {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByTaintManager", "lastTransitionTime": "2027-01-15T08:00:20Z"}]});
        world.api.edit_pod("p", |pod| (pod["spec"]["nodeName"], pod["status"]) = (Value::Null, evicted));
        world.api.edit_pod("p", |pod| {
            pod["spec"]["nodeName"] = json!("a");
            pod["status"]["conditions"][0] =
                json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": "2027-01-15T08:00:21Z"});
        });
        if oldest {
            world.api.oldest = world.api.version;
        }
        world.link_up = true;
        world.run(10_000);
        let status = world.status("p");
        assert_eq!(
            (world.phase("p"), &status["reason"], &status["message"]),
            ("Running", &Value::Null, &Value::Null)
        );
        for kind in ["Initialized", "Ready", "ContainersReady", "PodScheduled"] {
            assert_eq!(World::condition(status, kind)["status"], "True", "{kind}");
            assert!(since(&world, kind) >= 21_000, "{kind}: {status:#?}");
        }
        assert_eq!(since(&world, "PodScheduled"), 21_000);
        assert_eq!(World::condition(status, "DisruptionTarget")["status"], "True");
    };
    check(false);
    check(true);
}

/// What the control plane says while a status of the board is on its way is answered all the same.
#[test]
fn what_was_said_meanwhile_is_answered() {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "exit:1:after=5s", "8Ki"));
    world.run(1000);
    world.api.rule =
        Some(Box::new(|request| request.path.ends_with("/p/status").then_some(Fault::Slow(200))));
    let told = |world: &World| world.api.seen("PATCH", "/pods/p/status").count();
    let count = told(&world);
    world.run_until(10_000, |world| told(world) > count);
    world.api.rule = None;
    world.api.edit_pod("p", |pod| {
        pod["status"]["conditions"][1] =
            json!({"type": "Initialized", "status": "Unknown", "lastTransitionTime": "2027-01-15T08:00:05Z"});
    });
    world.run(2000);
    let initialized = World::condition(world.status("p"), "Initialized");
    assert_eq!(initialized["status"], "True", "{initialized}");
}

/// KLET-06: a thousand pods come and go, and nothing of them stays.
#[test]
fn a_thousand_pods_leave_nothing_behind() {
    let mut world = World::ready();
    for n in 0..1000 {
        let name = format!("p{n}");
        let workload = ["pause", "exit:0", "crash", "exit:1:after=50ms"][n % 4];
        let container =
            json!({"args": [workload], "resources": {"requests": {"memory": "32Ki", "esp32.io/gpio": "1"}}});
        world.api.put_pod(pod_with(&name, container, json!({"restartPolicy": (["Always", "Never"][n % 2])})));
        world.run(150);
        assert_ne!(world.phase(&name), "Pending", "{:#?}", world.status(&name));
        world.api.delete_gracefully(&name);
        world.run_until(2000, |world| !world.api.pods.contains_key(&name));
    }
    world.run(1000);
    assert_eq!(world.kubelet.reserved_bytes(), 0);
    assert_eq!((world.allocatable("memory"), world.allocatable("esp32.io/gpio")), (204_800, 6));
    let shown = format!("{:?}", world.kubelet);
    assert!(!shown.contains("PodWorker"), "{shown}");
}
