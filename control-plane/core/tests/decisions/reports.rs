//! What a board's last report covers, over restarts of the server (SCHED-22, SCHED-25, SCHED-26).

use serde_json::json;

use crate::lifecycle::run;
use crate::scheduling::{board, memory, verdict};
use crate::world::{World, condition, pod, s};

/// What happens after a pod started.
type Act<'a> = &'a dyn Fn(&mut World);

#[test]
fn sched_22_25_and_26_a_restarted_server_knows_what_the_last_report_covers() {
    let touch = |world: &mut World| {
        world.change("pods", "default", "p", |pod| pod["metadata"]["labels"] = json!({"x": "y"}));
    };
    let label = |world: &mut World| {
        world.change("nodes", "", "a", |node| node["metadata"]["labels"]["x"] = "y".into());
    };
    let full = "0/1 nodes are available: 1 Insufficient memory.";
    let cases: [(&str, Act<'_>, &str); 5] = [
        ("SCHED-22: covered", &|world| world.report("a", |_| {}), "a"),
        ("SCHED-25: it runs, and the last report is older", &|_| {}, full),
        (
            "SCHED-25: modified after the report",
            &|world| {
                world.report("a", |_| {});
                touch(world);
            },
            full,
        ),
        (
            "SCHED-22: covered, and the node was written by others since",
            &|world| {
                world.report("a", |_| {});
                label(world);
                world.change("nodes", "", "a", |node| node["spec"] = json!({"unschedulable": true}));
                world.change("nodes", "", "a", |node| node["spec"] = json!({}));
            },
            "a",
        ),
        (
            "SCHED-26: a label is no report",
            &|world| {
                world.report("a", |_| {});
                touch(world);
                label(world);
            },
            full,
        ),
    ];
    for (what, act, expected) in cases {
        let mut world = World::new();
        world.register(board("a"));
        world.create_pod(pod("p", memory("60Ki")));
        world.start("p");
        act(&mut world);
        for restarts in 0..3 {
            assert_eq!(verdict(&world, &pod("q", memory("60Ki"))), expected, "{what}, {restarts} restarts");
            world.restart(s(1.0));
        }
        world.report("a", |_| {});
        assert_eq!(verdict(&world, &pod("q", memory("60Ki"))), "a", "{what}, and a report");
    }
}

#[test]
fn sched_22_an_outage_does_not_change_what_the_last_report_covers() {
    let mut world = World::new();
    world.register(board("a"));
    world.create_pod(pod("p", memory("60Ki")));
    world.start("p");
    world.report("a", |_| {});
    world.create_pod(pod("later", memory("20Ki")));
    world.start("later");
    let rooms = |world: &World| ["80Ki", "81Ki"].map(|wanted| verdict(world, &pod("q", memory(wanted))));
    let after_the_report = rooms(&world);
    assert!(after_the_report[0] == "a" && after_the_report[1] != "a", "{after_the_report:?}");
    run(&mut world, 20.0);
    assert_eq!(condition(&world.node("a"), "Ready").as_deref(), Some("Unknown"));
    world.renew("a", Some(15));
    run(&mut world, 1.0);
    assert_eq!(condition(&world.node("a"), "Ready").as_deref(), Some("True"));
    // Both pods were written since: they were called unready. No write of the node by the controller covers that.
    let before = rooms(&world);
    assert_ne!(before[0], "a");
    world.restart(s(1.0));
    assert_eq!(rooms(&world), before);
}
