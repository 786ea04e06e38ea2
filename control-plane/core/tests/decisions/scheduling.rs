//! SCHED: filters, quantities, accounting, scores, messages, and that nothing over-commits.

use control_plane_core::scheduler::{self, Assumed, KUBE32, Verdict, schedule};
use control_plane_core::{Decision, Key, Snapshot};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, condition, node, pod, s};

/// Something that happens to a world.
type Act<'a> = &'a dyn Fn(&mut World);

/// Where a pod goes, or why nowhere.
pub fn verdict(world: &World, pod: &Value) -> String {
    match schedule(&KUBE32, pod, &world.snapshot, &Assumed::default()) {
        Verdict::Bind { node, .. } => node,
        Verdict::Unschedulable { message, .. } => message,
    }
}

#[track_caller]
fn check(nodes: &[Value], pod: &Value, expected: &str) {
    let mut world = World::new();
    for node in nodes {
        world.register(node.clone());
    }
    assert_eq!(verdict(&world, pod), expected, "{pod}");
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    *object.pointer_mut(pointer).expect("a place") = value;
    object
}

fn spec(mut pod: Value, field: &str, value: Value) -> Value {
    pod["spec"][field] = value;
    pod
}

pub fn board(name: &str) -> Value {
    node(name, json!({"memory": "100Ki", "esp32.io/gpio": "10", "esp32.io/psram": "1Mi"}))
}

fn not_ready(name: &str, status: &str) -> Value {
    with(board(name), "/status/conditions/0/status", status.into())
}

pub fn memory(amount: &str) -> Value {
    json!({"requests": {"memory": amount}})
}

#[test]
fn sched_01_a_pod_is_bound_inside_its_create_request() {
    let mut world = World::new();
    world.register(board("a"));
    world.create_pod(pod("p", memory("1Ki")));
    let stored = world.pod("p");
    assert_eq!(stored["spec"]["nodeName"], "a");
    assert_eq!(condition(&stored, "PodScheduled").as_deref(), Some("True"));
    let versions = world.history.iter().filter(|(_, resource, ..)| *resource == "pods").count();
    assert_eq!(versions, 1, "one write");
}

#[test]
fn sched_02_and_55_a_change_rescues_a_pending_pod() {
    let changes: [(&str, Act<'_>); 4] = [
        ("a new node", &|world| world.register(node("b", json!({"memory": "100Ki", "esp32.io/gpio": "1"})))),
        ("a freed resource", &|world| world.remove("pods", &Key::new("default", "filler"))),
        ("an uncordon", &|world| world.change("nodes", "", "c", |node| node["spec"] = json!({}))),
        ("a changed label", &|world| {
            world.change("nodes", "", "d", |node| node["metadata"]["labels"]["disk"] = "ssd".into())
        }),
    ];
    for (what, change) in changes {
        let mut world = World::new();
        let selector = json!({"disk": "ssd"});
        world.register(with(board("a"), "/metadata/labels", selector.clone()));
        world.create_pod(spec(pod("filler", memory("100Ki")), "nodeSelector", selector.clone()));
        world.register(with(
            with(board("c"), "/metadata/labels", selector.clone()),
            "/spec",
            json!({"unschedulable": true}),
        ));
        world.register(board("d"));
        let mut waiting = spec(pod("p", memory("60Ki")), "nodeSelector", selector.clone());
        if what == "a new node" {
            waiting["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "b"});
        }
        world.create_pod(waiting);
        world.retry_pending();
        assert!(world.pod("p")["spec"]["nodeName"].is_null(), "{what}: fits too early");
        change(&mut world);
        world.retry_pending();
        assert!(world.pod("p")["spec"]["nodeName"].is_string(), "{what} does not help");
        assert_eq!(condition(&world.pod("p"), "PodScheduled").as_deref(), Some("True"));
    }
}

#[test]
fn sched_03_and_53_each_attempt_asks_for_the_next_one_period_later_and_repeats_its_event() {
    let mut world = World::new();
    world.create_pod(pod("p", json!({})));
    let key = Key::new("default", "p");
    let mut records = vec![world.told("FailedScheduling")[0].event.clone()];
    for _ in 0..3 {
        world.pass(s(1.0));
        let decision =
            scheduler::decide(&world.snapshot, &world.scheduler, &Assumed::default(), &key, &world.now);
        assert_eq!(decision.look_again, Some(world.now.mono + s(1.0)));
        assert!(decision.writes.is_empty(), "nothing changed, so nothing is written: {:?}", decision.writes);
        records.extend(decision.events);
    }
    assert!(records.len() == 4 && records.iter().all(|record| *record == records[0]), "{records:?}");
}

#[test]
fn sched_04_and_05_pods_that_are_not_the_schedulers_are_left_alone() {
    let ours = pod("p", json!({}));
    let cases = [
        ("bound", spec(ours.clone(), "nodeName", "absent".into())),
        ("another scheduler's", spec(ours.clone(), "schedulerName", "toy-scheduler".into())),
        ("gated", spec(ours.clone(), "schedulingGates", json!([{"name": "example.com/gate"}]))),
        ("finished", {
            let mut it = ours.clone();
            it["status"] = json!({"phase": "Failed"});
            it
        }),
        ("going", {
            let mut it = ours.clone();
            it["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into();
            it
        }),
    ];
    for (what, theirs) in cases {
        let mut world = World::new();
        world.register(board("a"));
        let placed = scheduler::place(
            &world.scheduler,
            theirs.clone(),
            &world.snapshot,
            &Assumed::default(),
            &world.now,
        );
        assert_eq!((placed.pod, placed.events.len(), placed.look_again), (theirs.clone(), 0, None), "{what}");
        world.put("pods", theirs);
        assert!(scheduler::pending(&world.snapshot, &world.scheduler).is_empty(), "{what}");
        let key = Key::new("default", "p");
        let decision =
            scheduler::decide(&world.snapshot, &world.scheduler, &Assumed::default(), &key, &world.now);
        assert!(decision.is_idle() && decision.look_again.is_none(), "{what}");
    }
    let mut world = World::new();
    world.put("pods", spec(ours, "schedulerName", Value::Null));
    assert_eq!(
        scheduler::pending(&world.snapshot, &world.scheduler).len(),
        1,
        "the built-in one is the default"
    );
}

#[test]
fn sched_06_a_node_is_counted_under_the_first_filter_that_it_fails() {
    let greedy = json!({"requests": {"memory": "1Mi", "esp32.io/psram": "2Mi", "esp32.io/gpio": "11"}});
    let all = spec(
        spec(pod("p", greedy.clone()), "nodeSelector", json!({"disk": "ssd"})),
        "nodeName",
        "other".into(),
    );
    let less = |fields: &[&str]| {
        let mut pod = all.clone();
        for field in fields {
            match *field {
                "memory" | "esp32.io/psram" => {
                    pod["spec"]["containers"][0]["resources"]["requests"][field] = "1".into();
                }
                _ => pod["spec"][field] = Value::Null,
            }
        }
        pod
    };
    let cordoned = with(not_ready("a", "False"), "/spec", json!({"unschedulable": true}));
    let one = |reason: &str| format!("0/1 nodes are available: 1 {reason}.");
    check(&[cordoned], &all, &one("node(s) were unschedulable"));
    check(&[not_ready("a", "False")], &all, &one("node(s) were not ready"));
    check(&[board("a")], &all, &one("node(s) didn't match spec.nodeName"));
    check(&[board("a")], &less(&["nodeName"]), &one("node(s) didn't match Pod's node affinity/selector"));
    check(&[board("a")], &less(&["nodeName", "nodeSelector"]), &one("Insufficient memory"));
    check(&[board("a")], &less(&["nodeName", "nodeSelector", "memory"]), &one("Insufficient esp32.io/psram"));
    let last = less(&["nodeName", "nodeSelector", "memory", "esp32.io/psram"]);
    check(&[board("a")], &last, &one("Insufficient esp32.io/gpio"));
    let names: Vec<_> = KUBE32.filters.iter().map(|filter| filter.name).collect();
    assert_eq!(names, ["NodeReady", "NodeName", "NodeSelector", "Memory", "Psram", "PinsAndBuses"]);
}

#[test]
fn sched_10_to_12_cordoned_and_not_ready_nodes_take_no_pod() {
    let cordoned = with(board("a"), "/spec", json!({"unschedulable": true}));
    let uncordoned = with(board("a"), "/spec", json!({"unschedulable": false}));
    let without_status = with(board("a"), "/status", Value::Null);
    let without_ready =
        with(board("a"), "/status/conditions", json!([{"type": "DiskPressure", "status": "False"}]));
    let refused = "0/1 nodes are available: 1 node(s) were not ready.";
    for (node, expected) in [
        (cordoned, "0/1 nodes are available: 1 node(s) were unschedulable."),
        (uncordoned, "a"),
        (without_status, refused),
        (without_ready, refused),
        (not_ready("a", "False"), refused),
        (not_ready("a", "Unknown"), refused),
        (board("a"), "a"),
    ] {
        check(&[node], &pod("p", json!({})), expected);
    }
}

#[test]
fn sched_13_every_label_of_the_selector_has_to_be_on_the_node() {
    let labelled = with(board("a"), "/metadata/labels", json!({"disk": "ssd", "zone": "z"}));
    let refused = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
    for (selector, expected) in [
        (json!({}), "a"),
        (json!({"disk": "ssd"}), "a"),
        (json!({"disk": "ssd", "zone": "z"}), "a"),
        (json!({"disk": "hdd"}), refused),
        (json!({"disk": "ssd", "row": "1"}), refused),
        (json!({"disk": ""}), refused),
    ] {
        check(
            std::slice::from_ref(&labelled),
            &spec(pod("p", json!({})), "nodeSelector", selector),
            expected,
        );
    }
}

#[test]
fn sched_14_memory_asked_is_requests_then_limits_then_16_ki() {
    let container = |resources: Value| json!({"name": "c", "resources": resources});
    let limit = |amount: &str| json!({"limits": {"memory": amount}});
    for (containers, init_containers, bytes) in [
        (vec![json!({})], vec![], 16384),
        (vec![json!({}), json!({})], vec![json!({})], 16384),
        (vec![memory("10Ki")], vec![], 10240),
        (vec![limit("10Ki")], vec![], 10240),
        (vec![json!({"requests": {"memory": "1Ki"}, "limits": {"memory": "10Ki"}})], vec![], 1024),
        (vec![memory("10Ki"), limit("5Ki"), json!({})], vec![], 15360),
        (vec![memory("10Ki"), memory("5Ki")], vec![memory("12Ki"), memory("14Ki")], 15360),
        (vec![memory("10Ki")], vec![memory("12Ki"), limit("14Ki")], 14336),
        (vec![json!({})], vec![memory("2Ki")], 2048),
        (vec![memory("0")], vec![], 0),
        (vec![memory("1Ti")], vec![], 0),
        (vec![memory("-5")], vec![], 0),
        (vec![json!({"requests": {"memory": 4096}})], vec![], 4096),
    ] {
        let mut pod = pod("p", json!({}));
        pod["spec"]["containers"] = containers.into_iter().map(container).collect();
        pod["spec"]["initContainers"] = init_containers.into_iter().map(container).collect();
        let asked = (KUBE32.request)(&pod).get("memory");
        assert_eq!(asked, bytes * 1_000_000_000, "{}", pod["spec"]);
    }
}

#[test]
fn sched_15_exactly_the_free_amount_fits_and_one_more_does_not() {
    for (resource, free, more) in [
        ("memory", "102400", "102401"),
        ("memory", "100Ki", "102400001m"),
        ("memory", "0", "100.001Ki"),
        ("esp32.io/gpio", "10", "11"),
        ("esp32.io/psram", "1Mi", "1048577"),
    ] {
        let ask = |amount: &str| pod("p", json!({"requests": {"memory": "0", resource: amount}}));
        check(&[board("a")], &ask(free), "a");
        check(&[board("a")], &ask(more), &format!("0/1 nodes are available: 1 Insufficient {resource}."));
    }
}

#[test]
fn sched_16_psram_and_its_alias_count_together() {
    let board = |resource: &str| node("a", json!({"memory": "1Mi", resource: "100"}));
    let short = "0/1 nodes are available: 1 Insufficient esp32.io/psram.";
    for (requests, expected) in [
        (json!({"esp32.io/psram": "100"}), "a"),
        (json!({"esp.io/psram": "100"}), "a"),
        (json!({"esp.io/psram": "101"}), short),
        (json!({"esp32.io/psram": "60", "esp.io/psram": "40"}), "a"),
        (json!({"esp32.io/psram": "60", "esp.io/psram": "41"}), short),
    ] {
        for reported in ["esp32.io/psram", "esp.io/psram"] {
            check(&[board(reported)], &pod("p", json!({"requests": requests})), expected);
        }
    }
    check(
        &[node("a", json!({"memory": "1Mi"}))],
        &pod("p", json!({"limits": {"esp32.io/psram": "1"}})),
        short,
    );
}

#[test]
fn sched_17_pins_and_buses_are_counted() {
    for resource in ["gpio", "i2c", "uart", "adc", "rmt-tx", "rmt-rx"].map(|name| format!("esp32.io/{name}"))
    {
        let board = node("a", json!({"memory": "1Mi", resource.clone(): "2"}));
        let short = format!("0/1 nodes are available: 1 Insufficient {resource}.");
        for list in ["requests", "limits"] {
            let ask = |n: &str| pod("p", json!({list: {resource.clone(): n}}));
            check(std::slice::from_ref(&board), &ask("2"), "a");
            check(std::slice::from_ref(&board), &ask("3"), &short);
            check(&[node("a", json!({"memory": "1Mi"}))], &ask("1"), &short);
        }
    }
}

#[test]
fn sched_18_a_named_bus_takes_one_of_the_count() {
    let board = [node("a", json!({"memory": "1Mi", "esp32.io/i2c": "2", "esp32.io/uart": "1"}))];
    let i2c = "0/1 nodes are available: 1 Insufficient esp32.io/i2c.";
    let uart = "0/1 nodes are available: 1 Insufficient esp32.io/uart.";
    for (limits, expected) in [
        (json!({"esp32.io/i2c-bus-0": "1", "esp32.io/i2c-bus-7": "1"}), "a"),
        (json!({"esp32.io/i2c-bus-0": "1", "esp32.io/i2c": "1"}), "a"),
        (json!({"esp32.io/i2c-bus-0": "1", "esp32.io/i2c": "2"}), i2c),
        (json!({"esp32.io/i2c-bus-0": "1", "esp32.io/i2c-bus-1": "1", "esp32.io/i2c-bus-12": "1"}), i2c),
        (json!({"esp32.io/uart-1": "1"}), "a"),
        (json!({"esp32.io/uart-1": "1", "esp32.io/uart": "1"}), uart),
        (json!({"esp32.io/uart-1": "1", "esp32.io/uart-2": "1"}), uart),
        (json!({"esp32.io/uart-1": "1", "esp32.io/uart-2": "0"}), "a"),
        (json!({"esp32.io/uart-x": "1", "esp32.io/uart-": "1", "esp32.io/i2c-0": "9"}), "a"),
    ] {
        check(&board, &pod("p", json!({"limits": limits})), expected);
    }
    let mut twice = pod("p", json!({"limits": {"esp32.io/uart-1": "1"}}));
    let container = twice["spec"]["containers"][0].clone();
    twice["spec"]["containers"] = json!([container, container]);
    check(&board, &twice, "a");
}

#[test]
fn sched_20_a_quantity_with_another_suffix_blocks_nothing() {
    for amount in ["1Ti", "1e9", "lots", "9E"] {
        check(
            &[board("a")],
            &pod("p", json!({"requests": {"memory": amount, "esp32.io/gpio": amount}})),
            "a",
        );
    }
    let odd = node("a", json!({"memory": "1Ti"}));
    check(&[odd], &pod("p", json!({})), "0/1 nodes are available: 1 Insufficient memory.");
}

#[test]
fn sched_21_capacity_stands_in_for_a_missing_allocatable() {
    let mut board = node("a", Value::Null);
    board["status"]["capacity"] = json!({"memory": "100Ki"});
    check(&[board.clone()], &pod("p", memory("100Ki")), "a");
    board["status"]["allocatable"] = json!({"memory": "50Ki"});
    check(&[board], &pod("p", memory("100Ki")), "0/1 nodes are available: 1 Insufficient memory.");
}

#[test]
fn sched_22_to_27_what_is_subtracted() {
    let full = "0/1 nodes are available: 1 Insufficient memory.";
    let waiting = json!([{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
    let cases: [(&str, Act<'_>, &str); 9] = [
        ("SCHED-23: bound but pending", &|world| world.report("a", |_| {}), full),
        (
            "SCHED-22: running and covered",
            &|world| {
                world.start("p");
                world.report("a", |_| {})
            },
            "a",
        ),
        (
            "SCHED-25: changed after the report",
            &|world| {
                world.report("a", |_| {});
                world.start("p")
            },
            full,
        ),
        (
            "SCHED-25: labelled after the report",
            &|world| {
                world.start("p");
                world.report("a", |_| {});
                world.change("pods", "default", "p", |pod| pod["metadata"]["labels"] = json!({"a": "b"}));
            },
            full,
        ),
        (
            "SCHED-24: waiting to restart",
            &|world| {
                world.start("p");
                world.change("pods", "default", "p", |pod| {
                    pod["status"]["containerStatuses"] = waiting.clone()
                });
                world.report("a", |_| {});
            },
            full,
        ),
        (
            "SCHED-26: a cordon and its end are no report",
            &|world| {
                world.start("p");
                world.change("nodes", "", "a", |node| node["spec"] = json!({"unschedulable": true}));
                world.change("nodes", "", "a", |node| node["spec"] = json!({}));
            },
            full,
        ),
        (
            "SCHED-26: after the next report it is covered",
            &|world| {
                world.start("p");
                world.change("nodes", "", "a", |node| node["metadata"]["labels"]["x"] = "y".into());
                world.report("a", |_| {});
            },
            "a",
        ),
        (
            "SCHED-27: succeeded",
            &|world| {
                world.change("pods", "default", "p", |pod| pod["status"]["phase"] = "Succeeded".into());
            },
            "a",
        ),
        (
            "SCHED-27: failed",
            &|world| {
                world.change("pods", "default", "p", |pod| pod["status"]["phase"] = "Failed".into());
            },
            "a",
        ),
    ];
    for (what, act, expected) in cases {
        let mut world = World::new();
        world.register(board("a"));
        world.create_pod(pod("p", memory("60Ki")));
        act(&mut world);
        assert_eq!(verdict(&world, &pod("q", memory("60Ki"))), expected, "{what}");
    }
}

#[test]
fn sched_22_a_report_that_changes_nothing_covers_what_was_before_it() {
    let mut world = World::new();
    world.register(board("a"));
    world.create_pod(pod("p", memory("60Ki")));
    world.start("p");
    let version = world.pod("p")["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse().ok());
    world.snapshot.status_reported("a", version.expect("a version"));
    assert_eq!(verdict(&world, &pod("q", memory("60Ki"))), "a");
}

#[test]
fn sched_30_to_33_what_does_not_influence_the_choice() {
    let plain = [board("a"), board("b")];
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}]}}});
    for claimed in [
        pod("p", json!({"limits": {"hardware.kube32.io/gpio-4": "1", "hardware.kube32.io/led": "9"}})),
        pod("p", json!({"limits": {"esp32.io/gpio-4": "1", "esp32.io/gpio-99": "99"}})),
        pod("p", json!({"limits": {"cpu": "100", "ephemeral-storage": "1G", "example.com/foo": "1"}})),
        spec(pod("p", json!({})), "affinity", affinity),
        spec(
            pod("p", json!({})),
            "topologySpreadConstraints",
            json!([{"maxSkew": 1, "topologyKey": "zone"}]),
        ),
    ] {
        check(&plain, &claimed, "a");
    }
    let taint = json!({"taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]});
    check(&[with(board("a"), "/spec", taint), board("b")], &pod("p", json!({})), "a");
}

#[test]
fn sched_40_to_42_the_highest_exact_mean_wins_and_ties_go_by_name() {
    let board =
        |name: &str, memory: &str, gpio: &str| node(name, json!({"memory": memory, "esp32.io/gpio": gpio}));
    let ask = pod("p", json!({"requests": {"memory": "10", "esp32.io/gpio": "1"}}));
    for (nodes, expected) in [
        // more of it free, as a share
        (vec![board("a", "20", "10"), board("b", "30", "10")], "b"),
        (vec![board("a", "30", "4"), board("b", "30", "5")], "b"),
        // 1/2 + 9/10 against 2/3 + 3/4: 84 against 85 sixtieths
        (vec![board("a", "20", "10"), board("b", "30", "4")], "b"),
        // equal: bytewise by name
        (vec![board("b", "30", "10"), board("a", "30", "10")], "a"),
        (vec![board("a10", "30", "10"), board("a2", "30", "10"), board("B", "30", "10")], "B"),
        // figures beyond what a float or a rounded percentage tells apart
        (vec![board("a", "1000000000000000", "10"), board("b", "1000000000000001", "10")], "b"),
    ] {
        check(&nodes, &ask, expected);
    }
    let without_pins = node("a", json!({"memory": "100"}));
    let some_memory = pod("p", memory("10"));
    check(std::slice::from_ref(&without_pins), &some_memory, "a");
    check(&[without_pins, board("b", "12", "1")], &some_memory, "b");
    check(&[node("a", json!({}))], &pod("p", memory("0")), "a");
}

#[test]
fn sched_40_only_what_no_report_covers_lowers_a_score() {
    let mut world = World::new();
    world.register(board("a"));
    world.register(board("b"));
    world.create_pod(pod("one", memory("10Ki")));
    world.create_pod(pod("two", memory("10Ki")));
    world.create_pod(pod("three", memory("10Ki")));
    let places = ["one", "two", "three"].map(|name| world.pod(name)["spec"]["nodeName"].clone());
    assert_eq!(places, ["a", "b", "a"]);
}

#[test]
fn sched_50_to_54_conditions_and_events() {
    let mut world = World::new();
    world.create_pod(pod("p", json!({})));
    let waiting = world.pod("p");
    let scheduled = control_plane_core::conditions::get(&waiting, "PodScheduled").expect("a condition");
    let stamp = scheduled["lastTransitionTime"].clone();
    assert_eq!(
        *scheduled,
        json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "no nodes available to schedule pods", "lastTransitionTime": "2026-11-29T12:00:00Z",
        })
    );
    world.pass(s(5.0));
    world.register(with(board("a"), "/spec", json!({"unschedulable": true})));
    world.retry_pending();
    let waiting = world.pod("p");
    let scheduled = control_plane_core::conditions::get(&waiting, "PodScheduled").expect("a condition");
    assert_eq!(scheduled["message"], "0/1 nodes are available: 1 node(s) were unschedulable.");
    assert_eq!(scheduled["lastTransitionTime"], stamp, "moves only with the status");
    world.change("nodes", "", "a", |node| node["spec"] = json!({}));
    world.retry_pending();
    let told: Vec<_> = world.told.iter().map(|told| &told.event).collect();
    let told: Vec<_> = told
        .iter()
        .map(|e| (e.kind.as_str(), e.reason, e.message.as_str(), e.component, e.regarding.name.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("Warning", "FailedScheduling", "no nodes available to schedule pods", "default-scheduler", "p"),
            (
                "Warning",
                "FailedScheduling",
                "0/1 nodes are available: 1 node(s) were unschedulable.",
                "default-scheduler",
                "p"
            ),
            ("Normal", "Scheduled", "Successfully assigned default/p to a", "default-scheduler", "p"),
        ]
    );
    assert!(world.told.iter().all(|told| told.event.regarding.uid == world.pod("p")["metadata"]["uid"]));
}

#[test]
fn sched_51_counted_reasons_are_sorted_as_strings() {
    let cordoned = |name: &str| with(board(name), "/spec", json!({"unschedulable": true}));
    let labelled = |name: &str| with(board(name), "/metadata/labels", json!({"disk": "ssd"}));
    let selective = |resources| spec(pod("p", resources), "nodeSelector", json!({"disk": "ssd"}));
    check(
        &[cordoned("a"), board("b"), labelled("c"), not_ready("d", "False")],
        &selective(memory("1Mi")),
        "0/4 nodes are available: 1 Insufficient memory, 1 node(s) didn't match Pod's node affinity/selector, \
         1 node(s) were not ready, 1 node(s) were unschedulable.",
    );
    check(
        &[cordoned("a"), cordoned("b"), board("c")],
        &pod("p", memory("1Mi")),
        "0/3 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable.",
    );
    let many: Vec<_> =
        (0..10).map(|i| cordoned(&format!("c{i}"))).chain([board("n1"), board("n2")]).collect();
    check(
        &many,
        &pod("p", memory("1Mi")),
        "0/12 nodes are available: 10 node(s) were unschedulable, 2 Insufficient memory.",
    );
    check(
        &[board("a"), board("b")],
        &pod("p", json!({"limits": {"esp32.io/adc": "1", "esp32.io/gpio": "11", "esp32.io/uart-1": "1"}})),
        "0/2 nodes are available: 2 Insufficient esp32.io/adc, 2 Insufficient esp32.io/gpio, \
         2 Insufficient esp32.io/uart.",
    );
}

#[test]
fn bind_01_binding_changes_the_node_name_and_the_condition_and_nothing_else() {
    let world = World::new();
    let mut before = pod("p", memory("1Ki"));
    before["status"] = json!({
        "phase": "Pending", "reason": "Evicted", "message": "why", "qosClass": "BestEffort",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no", "lastProbeTime": null},
            {"type": "DisruptionTarget", "status": "True"},
        ],
    });
    let after = scheduler::bound(&before, "a", &world.now);
    let mut expected = before;
    expected["spec"]["nodeName"] = "a".into();
    expected["status"] = json!({
        "phase": "Pending", "qosClass": "BestEffort",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-11-29T12:00:00Z"},
            {"type": "DisruptionTarget", "status": "True"},
        ],
    });
    assert_eq!(after, expected);
}

/// One step of an interleaving.
#[derive(Debug, Clone)]
enum Step {
    Create { memory: u16, gpio: u8 },
    Start(usize),
    Report(usize),
    Cordon(usize),
    Label(usize),
    Finish(usize),
    Delete(usize),
    Retry,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1_u16..60, 0_u8..4).prop_map(|(memory, gpio)| Step::Create { memory, gpio }),
        2 => (0_usize..200).prop_map(Step::Start),
        2 => (0_usize..3).prop_map(Step::Report),
        1 => (0_usize..3).prop_map(Step::Cordon),
        1 => (0_usize..200).prop_map(Step::Label),
        1 => (0_usize..200).prop_map(Step::Finish),
        1 => (0_usize..200).prop_map(Step::Delete),
        2 => Just(Step::Retry),
    ];
    prop::collection::vec(step, 1..200)
}

/// What the board itself knows: pods that it runs hold memory and pins.
fn held(world: &World, node: &str) -> (i64, i64) {
    let mut held = (0, 0);
    for (_, pod) in world.snapshot.pods_on(node).filter(|(_, pod)| pod["status"]["phase"] == "Running") {
        let requests = &pod["spec"]["containers"][0]["resources"]["requests"];
        held.0 += requests["memory"].as_i64().expect("a figure");
        held.1 += requests["esp32.io/gpio"].as_i64().expect("a figure");
    }
    held
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn sched_56_no_interleaving_over_commits(steps in steps()) {
        const BOARDS: [&str; 3] = ["a", "b", "c"];
        let total = (200_i64, 8_i64);
        let mut world = World::new();
        for name in BOARDS {
            world.register(node(name, json!({"memory": total.0, "esp32.io/gpio": total.1})));
        }
        let mut names: Vec<String> = Vec::new();
        for step in steps {
            let existing = |world: &World, index: usize| {
                let name = names.get(index % names.len().max(1))?;
                world.get("pods", "default", name).map(|pod| (name.clone(), pod))
            };
            match step {
                Step::Create { memory, gpio } => {
                    let name = format!("p{}", names.len());
                    let requests = json!({"requests": {"memory": memory, "esp32.io/gpio": gpio}});
                    world.create_pod(pod(&name, requests));
                    names.push(name);
                }
                Step::Start(index) => if let Some((name, pod)) = existing(&world, index)
                    && pod["spec"]["nodeName"].is_string() && pod["status"]["phase"].is_null()
                {
                    world.start(&name);
                },
                Step::Report(index) => {
                    let name = BOARDS[index];
                    let held = held(&world, name);
                    world.report(name, |status| {
                        status["allocatable"] = json!({"memory": total.0 - held.0, "esp32.io/gpio": total.1 - held.1});
                    });
                }
                Step::Cordon(index) => world.change("nodes", "", BOARDS[index], |node| {
                    let cordoned = node["spec"]["unschedulable"] == true;
                    node["spec"] = json!({"unschedulable": !cordoned});
                }),
                Step::Label(index) => if let Some((name, _)) = existing(&world, index) {
                    world.change("pods", "default", &name, |pod| pod["metadata"]["labels"] = json!({"x": "y"}));
                },
                Step::Finish(index) => if let Some((name, pod)) = existing(&world, index)
                    && pod["status"]["phase"] == "Running"
                {
                    world.change("pods", "default", &name, |pod| pod["status"]["phase"] = "Succeeded".into());
                },
                Step::Delete(index) => if let Some((name, _)) = existing(&world, index) {
                    world.remove("pods", &Key::new("default", name));
                },
                Step::Retry => world.retry_pending(),
            }
            // On no board is more bound than it has, whatever it has reported so far.
            for name in BOARDS {
                let mut bound = (0, 0);
                for (_, pod) in world.snapshot.pods_on(name).filter(|(_, pod)| pod["status"]["phase"] != "Succeeded") {
                    let requests = &pod["spec"]["containers"][0]["resources"]["requests"];
                    bound.0 += requests["memory"].as_i64().expect("a figure");
                    bound.1 += requests["esp32.io/gpio"].as_i64().expect("a figure");
                }
                prop_assert!(bound.0 <= total.0 && bound.1 <= total.1, "{name} holds {bound:?} of {total:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn sched_56_concurrent_creates_see_each_other_through_assumed_bindings(
        asks in prop::collection::vec(1_i64..40, 200), order in any::<u64>(),
    ) {
        let mut world = World::new();
        for name in ["a", "b"] {
            world.register(node(name, json!({"memory": 500})));
        }
        // All decisions are made over one old snapshot; the writes arrive later, some before the last decision.
        let mut assumed = Assumed::default();
        let mut arrived = world.snapshot.clone();
        let mut refused = false;
        let mut on: std::collections::BTreeMap<String, i64> = std::collections::BTreeMap::new();
        for (index, ask) in asks.iter().enumerate() {
            let mut pod = pod(&format!("p{index:03}"), json!({"requests": {"memory": ask}}));
            pod["metadata"]["uid"] = index.to_string().into();
            let verdict = schedule(&KUBE32, &pod, &arrived, &assumed);
            refused |= matches!(verdict, Verdict::Unschedulable { .. });
            if let Verdict::Bind { node, .. } = verdict {
                assumed.assume(&world.scheduler, &pod, &node);
                *on.entry(node.clone()).or_default() += ask;
                if order.rotate_left(u32::try_from(index % 64).unwrap_or(0)) % 2 == 0 {
                    let bound = scheduler::bound(&pod, &node, &world.now);
                    arrived.apply("pods", Key::of(&bound), Some(bound.into()));
                    if order % 3 == 0 {
                        assumed.forget(&Key::of(&pod), pod["metadata"]["uid"].as_str().unwrap_or_default());
                    }
                }
            }
        }
        prop_assert!(on.values().all(|taken| *taken <= 500), "{on:?}");
        prop_assert!(!refused || on.values().all(|taken| *taken > 460), "what fits was refused: {on:?}");
    }
}

#[test]
fn a_decision_about_nothing_is_nothing() {
    let world = World::new();
    let key = Key::new("default", "absent");
    let decision =
        scheduler::decide(&Snapshot::default(), &world.scheduler, &Assumed::default(), &key, &world.now);
    assert_eq!(decision, Decision::nothing("the pod is gone"));
}
