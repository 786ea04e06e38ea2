//! What servers and links do to a board (KLET-06): silence, restarts, errors, garbage, oversize, loss, and
//! a server that answers slowly, wrongly or twice. Each time the board comes back by itself, in bounded time,
//! with the same containers running.

use kubelet::Input;
use serde_json::{Value, json};

use crate::api::{Api, Fault, failure, world_millis};
use crate::world::{World, config, pod, pod_with};

/// A board with a running pod, and that pod's container.
fn running() -> (World, Value) {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run(1000);
    let container = world.container("p").clone();
    assert_eq!(container["ready"], true);
    (world, container)
}

/// The board is well: it renews, its watch works, and the pod never stopped.
fn check_recovered(mut world: World, container: &Value) {
    let from = world.now;
    assert_eq!(world.container("p"), container);
    world.api.put_pod(pod("probe", "pause", "8Ki"));
    world.run_until(40_000, |world| world.phase("probe") == "Running");
    world.run(12_000);
    assert!(world.api.seen("PATCH", "/leases/a").any(|r| r.at > from && r.status == 200));
    assert!(world.api.seen("PATCH", "/nodes/a/status").any(|r| r.at > from && r.status == 200));
    let before = world.kubelet.reserved_bytes();
    world.api.delete_gracefully("p");
    world.run_until(2000, |world| !world.api.pods.contains_key("p"));
    assert_eq!(world.kubelet.reserved_bytes(), before - 8192);
}

#[test]
fn ten_minutes_of_silence() {
    let (mut world, container) = running();
    world.link_up = false;
    world.run(600_000);
    let lines = world.console.len();
    world.link_up = true;
    let took = world.run_until(8000, |world| world.api.requests.last().unwrap().at > 601_000);
    assert!(took <= 6500, "{took} ms to the first contact");
    // The first word is the lease.
    let first = world.api.requests.iter().find(|r| r.at > 601_000).unwrap();
    assert!(first.path.contains("/leases/a"), "{first:?}");
    world.run(2000);
    assert_eq!(World::condition(&world.api.nodes["a"]["status"], "Ready")["status"], "True");
    assert!(lines < 20, "the console was flooded: {lines} lines");
    check_recovered(world, &container);
}

/// NODE-09: while the board was silent the control plane said Unknown; the change of time moves with the status.
#[test]
fn an_unknown_node_says_ready_again_with_a_new_change_time() {
    let (mut world, container) = running();
    world.link_up = false;
    world.run(40_000);
    let since = "2027-01-15T08:00:20Z";
    world.api.nodes.get_mut("a").unwrap()["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown", "lastTransitionTime": since},
               {"type": "DiskPressure", "status": "False", "lastTransitionTime": "2027-01-15T08:00:00Z"}]);
    world.link_up = true;
    world.run(10_000);
    let status = &world.api.nodes["a"]["status"];
    let ready = World::condition(status, "Ready");
    assert_eq!(ready["status"], "True");
    assert!(world_millis(&ready["lastTransitionTime"]) >= 41_000);
    assert_eq!(World::condition(status, "DiskPressure")["lastTransitionTime"], "2027-01-15T08:00:00Z");
    let moved = ready["lastTransitionTime"].clone();
    world.run(60_000);
    let ready = World::condition(&world.api.nodes["a"]["status"], "Ready");
    assert_eq!(ready["lastTransitionTime"], moved);
    assert!(world_millis(&ready["lastHeartbeatTime"]) > 100_000);
    check_recovered(world, &container);
}

/// A board that stood still (its own clock, too) learns from the server's that its lease ran out.
#[test]
fn a_lapse_by_the_servers_clock_is_noticed() {
    let (mut world, container) = running();
    let reads = world.api.seen("GET", "/nodes/a").count();
    let old = "2027-01-15T07:59:00Z";
    world.api.nodes.get_mut("a").unwrap()["status"]["conditions"] =
        json!([{"type": "Ready", "status": "Unknown", "lastTransitionTime": old}]);
    world.api.rule = Some(Box::new(|request| {
        // The server's clock is twenty seconds ahead from now on.
        request.path.contains("/leases/a").then(|| {
            let date = crate::api::http_date(request.at + 20_000);
            let text = format!("HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: 2\r\n\r\n{{}}");
            Fault::Raw(text.into_bytes())
        })
    }));
    world.run(6000);
    assert_eq!(world.api.seen("GET", "/nodes/a").count(), reads + 1);
    let ready = World::condition(&world.api.nodes["a"]["status"], "Ready");
    assert!(ready["status"] == "True" && ready["lastTransitionTime"] != old, "{ready}");
    world.api.rule = None;
    check_recovered(world, &container);
}

#[test]
fn a_server_that_restarts() {
    let (mut world, container) = running();
    world.stop_server();
    world.run(20_000);
    world.server_up = true;
    world.api.history.clear();
    world.api.oldest = world.api.version + 1;
    world.api.version += 1;
    let from = world.now;
    world.run_until(5000, |world| world.api.requests.last().unwrap().at >= from);
    check_recovered(world, &container);
}

#[test]
fn a_server_that_forgot_everything() {
    let (mut world, _) = running();
    world.stop_server();
    world.run(3000);
    world.api = Api::new("a");
    world.server_up = true;
    world.run(15_000);
    assert_eq!(world.kubelet.reserved_bytes(), 0, "a pod that does not exist runs");
    assert_eq!(World::condition(&world.api.nodes["a"]["status"], "Ready")["status"], "True");
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run(1000);
    assert_eq!(world.phase("p"), "Running");
}

#[test]
fn connections_that_are_dropped() {
    let (mut world, container) = running();
    for _ in 0..20 {
        world.close_connections();
        world.run(700);
    }
    assert_eq!(
        world.api.seen("GET", "/api/v1/pods?fieldSelector").count(),
        1,
        "a dropped watch is resumed, not listed"
    );
    check_recovered(world, &container);
}

#[test]
fn a_watch_that_is_too_old_is_listed_anew() {
    let (mut world, container) = running();
    world.deafen_watch();
    world.api.put_pod(pod("q", "pause", "8Ki"));
    world.api.oldest = world.api.version;
    world.close_connections();
    world.run(2000);
    assert_eq!(world.phase("q"), "Running");
    assert!(world.said("watch: error 410"));
    check_recovered(world, &container);
}

#[test]
fn a_watch_refused_as_too_old_is_listed_anew() {
    let (mut world, container) = running();
    let mut refuse = true;
    world.api.rule = Some(Box::new(move |request| {
        let hit = request.path.contains("watch=1") && std::mem::take(&mut refuse);
        hit.then(|| Fault::Status(410, failure(410).1))
    }));
    world.close_connections();
    world.run(3000);
    assert_eq!(world.api.seen("GET", "/api/v1/pods?fieldSelector").count(), 2);
    check_recovered(world, &container);
}

/// A watch that neither speaks nor ends is replaced within timeoutSeconds and a little.
#[test]
fn a_deaf_watch_is_replaced() {
    let (mut world, container) = running();
    world.watches_end = false;
    world.deafen_watch();
    world.api.put_pod(pod("q", "pause", "8Ki"));
    let took = world.run_until(40_000, |world| world.phase("q") == "Running");
    assert!(took > 10_000, "{took}");
    check_recovered(world, &container);
}

#[test]
fn garbage_on_the_watch_is_put_right_by_a_list() {
    let check = |bytes: &[u8], said: &str| {
        let (mut world, container) = running();
        world.inject_watch(bytes);
        world.run(3000);
        assert!(world.said(said), "{:?}", world.console);
        check_recovered(world, &container);
    };
    check(b"garbage\n", "watch: a line is garbage");
    check(b"{\"type\":\"ADDED\",\"object\":{\"spec\":7}}\n", "watch: a line is garbage");
    check(b"{\"type\":\"NEWS\",\"object\":{}}\n", "watch: a line is garbage");
    check(b"{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"oops\"}}\n", "watch: error 500 oops");
    check(&[vec![b'x'; 100_000], b"\n".to_vec()].concat(), "watch: a line is oversized, skipped");
    check(
        b"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"a b\\r\\n\"}}}\n",
        "started",
    );
}

/// An oversized pod is left alone, and so is everybody else's.
#[test]
fn an_oversized_pod_harms_no_other() {
    let (mut world, container) = running();
    let mut huge = pod("huge", "pause", "8Ki");
    huge["metadata"]["annotations"] = json!({"x": "y".repeat(50_000)});
    world.api.put_pod(huge);
    world.run(2000);
    assert!(world.said("watch: a line is oversized, skipped"));
    world.api.oldest = world.api.version;
    world.deafen_watch();
    world.close_connections();
    world.run(3000);
    assert!(world.said("list of pods: an item is oversized, skipped") || world.phase("huge").is_empty());
    assert_eq!(world.phase("huge"), "Pending");
    check_recovered(world, &container);
}

/// A pod that grows too large to be looked at goes on running: an incomplete list proves no absence.
#[test]
fn a_pod_that_became_oversized_goes_on() {
    let (mut world, container) = running();
    world.api.edit_pod("p", |pod| pod["metadata"]["annotations"] = json!({"x": "y".repeat(50_000)}));
    world.run(100);
    world.api.oldest = world.api.version;
    world.close_connections();
    world.run(3000);
    assert!(world.said("list of pods: an item is oversized, skipped"));
    assert_eq!(world.kubelet.reserved_bytes(), 8192);
    world.api.edit_pod("p", |pod| pod["metadata"]["annotations"] = json!({}));
    check_recovered(world, &container);
}

/// For a while every answer and every line of the watch is oversized. What they said is learnt afterwards, also where a later
/// line that can be read has moved the watch past it.
#[test]
fn what_was_said_in_oversized_answers_is_learnt_later() {
    let (mut world, container) = running();
    world.api.put_pod(pod("leaving", "pause", "8Ki"));
    world.run(1000);
    assert_eq!(world.phase("leaving"), "Running");
    world.api.swollen = true;
    world.api.put_pod(pod("late", "pause", "8Ki"));
    world.api.delete_gracefully("leaving");
    world.run(60_000);
    let lease = world.api.seen("PATCH", "/leases/a").last().unwrap();
    assert!(lease.at + 6000 > world.now && lease.status == 200, "{lease:?}");
    assert_eq!(world.phase("late"), "Pending");
    world.api.swollen = false;
    world.api.put_pod(pod("later", "pause", "8Ki"));
    world.run_until(45_000, |world| {
        world.phase("late") == "Running" && !world.api.pods.contains_key("leaving")
    });
    assert_eq!(world.phase("later"), "Running");
    check_recovered(world, &container);
}

/// A pod stays too large to be looked at: it is looked for again and again, not all the time.
#[test]
fn an_oversized_pod_is_looked_for_with_patience() {
    let (mut world, container) = running();
    let mut huge = pod("huge", "pause", "8Ki");
    huge["metadata"]["annotations"] = json!({"x": "y".repeat(50_000)});
    world.api.put_pod(huge);
    let lists = |world: &World| world.api.seen("GET", "/pods?fieldSelector").count();
    let before = lists(&world);
    world.run(600_000);
    let made = lists(&world) - before;
    assert!((5..=40).contains(&made), "{made} lists in ten minutes");
    check_recovered(world, &container);
}

/// Someone else wrote the node, and how it looks now cannot be read: no time of a change moves without a change.
#[test]
fn a_node_that_cannot_be_read_is_taken_for_what_it_was() {
    let (mut world, container) = running();
    world.run(5000);
    let before = since(&world);
    world.api.swollen = true;
    let node = world.api.nodes.get_mut("a").unwrap();
    node["spec"] = json!({"unschedulable": true});
    node["metadata"]["resourceVersion"] = json!("90");
    let reads = world.api.seen("GET", "/nodes/a").count();
    world.run(30_000);
    assert!(world.api.seen("GET", "/nodes/a").count() > reads);
    assert_eq!(since(&world), before);
    world.api.swollen = false;
    world.run(30_000);
    assert_eq!(since(&world), before);
    check_recovered(world, &container);
}

/// When the conditions of the board's Node changed last, as the API shows it.
fn since(world: &World) -> Vec<Value> {
    let conditions = world.api.nodes["a"]["status"]["conditions"].as_array().unwrap();
    conditions.iter().map(|c| c["lastTransitionTime"].clone()).collect()
}

/// What a Node shows is read however large it is because of what nobody looks at: a board that was away tells nothing as new.
#[test]
fn a_swollen_node_is_read_all_the_same() {
    for restarts in [false, true] {
        let (mut world, _) = running();
        world.run(5000);
        let before = since(&world);
        world.api.swollen = true;
        if restarts {
            world.power_cycle(1000);
        } else {
            world.link_up = false;
            world.run(15_000);
            world.link_up = true;
        }
        let from = world.now;
        world.run(20_000);
        assert!(world.api.seen("PATCH", "/nodes/a/status").any(|r| r.at > from && r.status == 200));
        assert_eq!(since(&world), before, "restarts: {restarts}");
    }
}

/// A board that was away and cannot read its Node does not guess what it shows: it renews, and reports when it knows.
#[test]
fn a_node_that_is_garbage_is_not_guessed_at() {
    let (mut world, container) = running();
    world.run(5000);
    let before = since(&world);
    world.link_up = false;
    world.run(15_000);
    world.api.rule = Some(Box::new(|request| {
        let garbage = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ngarbage";
        (request.method == "GET" && request.path.ends_with("/nodes/a")).then(|| Fault::Raw(garbage.to_vec()))
    }));
    world.link_up = true;
    let from = world.now;
    world.run(30_000);
    let reads = world.api.seen("GET", "/nodes/a").filter(|r| r.at > from).count();
    assert!((3..20).contains(&reads), "{reads} reads in 30 s");
    assert!(world.said("node cannot be read"));
    assert!(world.api.seen("PATCH", "/leases/a").any(|r| r.at > from + 20_000 && r.status == 200));
    world.api.rule = None;
    world.run(15_000);
    assert_eq!(since(&world), before);
    check_recovered(world, &container);
}

/// The server was away for a moment in which the board had nothing to ask for, and has nothing now.
#[test]
fn a_pod_bound_after_a_restart_of_the_server_does_not_wait_for_the_next_renewal() {
    let mut world = World::ready();
    let renewals = |world: &World| world.api.seen("PATCH", "/leases/a").count();
    let before = renewals(&world);
    world.run_until(10_000, |world| renewals(world) > before);
    world.run(500);
    world.stop_server();
    world.run(200);
    world.server_up = true;
    assert!(world.said("api server lost"), "{:#?}", world.console);
    let renewed = renewals(&world);
    world.run(500);
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run_until(1000, |world| world.phase("p") == "Running");
    assert_eq!(renewals(&world), renewed, "no renewal was due yet");
}

/// A pod ended while the board was away, and its node-lifecycle controller had called it not ready meanwhile. What the pod
/// shows cannot be read for a while: no time of a change moves without a change, and its end is told.
#[test]
fn a_pod_that_cannot_be_read_is_not_guessed_at() {
    let check = |swollen: bool| {
        let mut world = World::ready();
        let ends = json!({"args": ["exit:0:after=10s"]});
        world.api.put_pod(pod_with("p", ends, json!({"restartPolicy": "Never"})));
        world.run_until(5000, |world| world.phase("p") == "Running");
        world.run(1000);
        world.link_up = false;
        world.run(5000);
        let since = json!("2027-01-15T08:00:07Z");
        world.api.edit_pod("p", |pod| {
            for condition in pod["status"]["conditions"].as_array_mut().unwrap() {
                if condition["type"] == "Ready" {
                    (condition["status"], condition["lastTransitionTime"]) = (json!("False"), since.clone());
                }
            }
        });
        world.run(15_000);
        world.api.swollen = swollen;
        world.api.rule = Some(Box::new(move |request| {
            let garbage = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ngarbage";
            let hit = !swollen && request.method == "GET" && request.path.contains("/pods");
            (hit && !request.path.contains("watch=1")).then(|| Fault::Raw(garbage.to_vec()))
        }));
        world.link_up = true;
        let from = world.now;
        world.run(30_000);
        let reads = world.api.seen("GET", "/pods/p").filter(|r| r.at > from).count();
        assert!((1..20).contains(&reads), "{reads} reads in 30 s");
        if swollen {
            assert_eq!(world.phase("p"), "Succeeded");
        } else {
            assert!(world.said("p cannot be read"), "{:#?}", world.console);
        }
        world.api.rule = None;
        world.api.swollen = false;
        world.run(15_000);
        assert_eq!(world.phase("p"), "Succeeded");
        assert_eq!(World::condition(world.status("p"), "Ready")["lastTransitionTime"], since);
    };
    check(false);
    check(true);
}

/// The server was set back to an earlier state: versions start over, and the pods are the same.
#[test]
fn versions_that_start_over() {
    let (mut world, container) = running();
    world.api.version = 10;
    world.api.history.clear();
    world.api.edit_pod("p", |_| {});
    world.inject_watch(b"{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"gone\"}}\n");
    world.run(2000);
    check_recovered(world, &container);
}

#[test]
fn answers_that_are_no_answers() {
    let check = |answer: &[u8]| {
        let (mut world, container) = running();
        let (answer, mut left) = (answer.to_vec(), 30);
        world.api.rule = Some(Box::new(move |_| {
            left -= 1;
            (left > 0).then(|| Fault::Raw(answer.clone()))
        }));
        world.run(60_000);
        world.api.rule = None;
        world.run(12_000);
        check_recovered(world, &container);
    };
    check(b"\x00\xff\x00garbage\r\n\r\n");
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n");
    check(&[b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; 10_000], b"\r\n\r\n".to_vec()].concat());
    check(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n");
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    check(b"HTTP/1.1 500 Oops\r\nContent-Length: 7\r\n\r\ngarbage");
    check(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 7\r\n\r\ngarbage");
    let oversized =
        [b"HTTP/1.1 500 X\r\nContent-Length: 300000\r\n\r\n".to_vec(), vec![b'{'; 300_000]].concat();
    check(&oversized);
}

#[test]
fn errors_are_tried_again_with_patience() {
    let check = |status: u16| {
        let (mut world, container) = running();
        world.api.put_pod(pod("q", "pause", "8Ki"));
        world.api.rule = Some(Box::new(move |_| Some(Fault::Status(status, failure(status).1))));
        let before = world.api.requests.len();
        world.run(30_000);
        let made = world.api.requests.len() - before;
        assert!(made < 150, "{made} requests in 30 s against a server that says {status}");
        world.api.rule = None;
        world.run(11_000);
        assert_eq!(world.phase("q"), "Running");
        check_recovered(world, &container);
    };
    check(500);
    check(503);
    check(429);
    check(401);
}

#[test]
fn answers_that_get_lost_change_nothing() {
    let (mut world, container) = running();
    let mut count = 0;
    world.api.rule = Some(Box::new(move |request| {
        count += 1;
        (count % 3 == 0 && !request.path.contains("watch")).then_some(Fault::Lost)
    }));
    world.api.put_pod(pod_with("q", json!({"args": ["exit:0:after=3s"]}), json!({"restartPolicy": "Never"})));
    world.run(120_000);
    world.api.rule = None;
    world.run(5000);
    assert_eq!((world.phase("q"), &world.container("q")["restartCount"]), ("Succeeded", &json!(0)));
    assert_eq!(
        world.console.iter().filter(|(_, line)| line == "pod default/q container c started").count(),
        1
    );
    check_recovered(world, &container);
}

#[test]
fn a_server_that_hears_and_says_nothing() {
    let (mut world, container) = running();
    world.api.rule = Some(Box::new(|_| Some(Fault::Ignored)));
    let before = world.api.requests.len();
    world.run(60_000);
    let made = world.api.requests.len() - before;
    assert!((10..60).contains(&made), "{made} requests in a minute");
    world.api.rule = None;
    world.run(8000);
    check_recovered(world, &container);
}

#[test]
fn a_pod_is_started_though_nobody_takes_its_status() {
    let (mut world, container) = running();
    world.api.rule = Some(Box::new(|request| {
        request.path.ends_with("/pods/q/status").then(|| Fault::Status(500, failure(500).1))
    }));
    world.api.put_pod(pod("q", "pause", "8Ki"));
    world.run_until(2000, |world| world.said("pod default/q container c started"));
    world.api.rule = None;
    world.run(12_000);
    assert_eq!(world.phase("q"), "Running");
    check_recovered(world, &container);
}

#[test]
fn a_list_that_breaks_off_drops_nothing() {
    let (mut world, container) = running();
    let body = r#"{"metadata":{"resourceVersion":"200"},"items":[],"items":[[["#;
    let broken = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut left = 3;
    world.api.rule = Some(Box::new(move |request| {
        let hit = request.path.contains("/pods?fieldSelector") && left > 0;
        left -= i32::from(hit);
        hit.then(|| Fault::Raw(broken.clone().into_bytes()))
    }));
    world.inject_watch(b"garbage\n");
    world.run(15_000);
    assert!(world.said("list of pods: the answer is garbage"));
    check_recovered(world, &container);
}

#[test]
fn bytes_in_small_pieces_are_the_same_bytes() {
    for slice in [1, 7] {
        let mut world = World::with(config(json!({})), Api::new("a"));
        world.slice = slice;
        world.run(300);
        world.api.put_pod(pod("p", "pause", "8Ki"));
        world.run(1000);
        let container = world.container("p").clone();
        assert_eq!(container["ready"], true);
        check_recovered(world, &container);
    }
}

#[test]
fn a_network_that_comes_and_goes() {
    let (mut world, container) = running();
    for _ in 0..50 {
        world.input(Input::NetworkDown);
        world.run(37);
        world.input(Input::NetworkUp { address: [10, 0, 2, 15] });
        world.run(53);
    }
    check_recovered(world, &container);
}

#[test]
fn a_day_of_steady_running_is_quiet() {
    let (mut world, container) = running();
    let (lines, from) = (world.console.len(), world.now);
    world.run(24 * 3_600_000);
    assert_eq!(world.console.len(), lines, "{:?}", &world.console[lines..]);
    let leases = world.api.seen("PATCH", "/leases/a").filter(|r| r.at > from).count();
    assert!((17_000..=17_600).contains(&leases), "{leases} renewals");
    check_recovered(world, &container);
}
