//! Requests that arrive after they were given up, writes of others in between, and answers that all take their time: what
//! was said last stands, and everything is said in the end (KLET-06).

use serde_json::{Value, json};

use crate::api::{Api, Fault, Request};
use crate::world::{World, config, pod_with};

/// The first write to this path for which `wanted` is true, which the server has not seen yet.
fn held(world: &mut World, path: &'static str, wanted: fn(&Value) -> bool) {
    let mut hold = true;
    world.api.rule = Some(Box::new(move |request| {
        let held =
            request.method == "PATCH" && request.path.ends_with(path) && wanted(&request.body["status"]);
        (held && std::mem::take(&mut hold)).then_some(Fault::Ignored)
    }));
}

/// The request that was held back.
fn late(world: &World) -> Request {
    world
        .api
        .requests
        .iter()
        .find(|request| request.status == 0)
        .expect("a request without an answer")
        .clone()
}

#[test]
fn an_old_status_of_a_pod_that_arrives_late_is_refused() {
    let mut world = World::ready();
    held(&mut world, "/pods/p/status", |status| World::condition(status, "Ready")["status"] == "True");
    world.api.put_pod(pod_with("p", json!({"args": ["exit:1:after=2s"]}), json!({"restartPolicy": "Never"})));
    world.run_until(20_000, |world| world.phase("p") == "Failed");
    let (before, late) = (world.pod("p").clone(), late(&world));
    assert_eq!(world.api.act(&late).0, 409);
    assert_eq!(*world.pod("p"), before);
}

#[test]
fn an_old_report_of_the_node_that_arrives_late_is_refused() {
    let mut world = World::ready();
    held(&mut world, "/nodes/a/status", |_| true);
    world.run_until(60_000, |world| world.api.requests.iter().any(|request| request.status == 0));
    let late = late(&world);
    world.run_until(60_000, |world| {
        world.api.seen("PATCH", "/nodes/a/status").any(|report| report.at > late.at && report.status == 200)
    });
    let before = world.api.nodes["a"].clone();
    assert_eq!(world.api.act(&late).0, 409);
    assert_eq!(world.api.nodes["a"], before);
}

/// Someone else writes where the board does not see it: what it has to say is said at once all the same.
#[test]
fn what_others_write_meanwhile_delays_nothing() {
    let mut world = World::ready();
    world.api.put_pod(pod_with("p", json!({"args": ["exit:0:after=5s"]}), json!({"restartPolicy": "Never"})));
    world.run_until(1000, |world| world.phase("p") == "Running");
    world.run(500);
    world.watch_delay = 60_000;
    world.api.edit_pod("p", |pod| pod["metadata"]["labels"] = json!({"by": "another"}));
    let node = world.api.nodes.get_mut("a").expect("the node");
    node["metadata"]["resourceVersion"] = json!("999999");
    world.run_until(6000, |world| world.phase("p") == "Succeeded");
    let (label, waited) = (&world.pod("p")["metadata"]["labels"]["by"], world.now);
    assert_eq!(*label, json!("another"));
    world.run_until(1000, |world| {
        world
            .api
            .seen("PATCH", "/nodes/a/status")
            .any(|report| report.at + 500 > waited && report.status == 200)
    });
    assert!(!world.said("not taken"), "{:#?}", world.console);
    assert!(world.api.requests.iter().any(|request| request.status == 409));
}

/// Each answer takes longer than a renewal waits, and renewals are due all the time.
#[test]
fn on_a_slow_link_pods_are_told_of_all_the_same() {
    let lease = json!({"lease": {"durationSeconds": 4, "renewMillis": 1000}});
    let mut world = World::with(config(lease), Api::new("a"));
    world.run_until(5000, |world| world.said("kubelet ready node=a"));
    world.api.rule =
        Some(Box::new(|request| (!request.path.contains("watch=1")).then_some(Fault::Slow(800))));
    world.api.put_pod(pod_with("p", json!({"args": ["exit:0:after=5s"]}), json!({"restartPolicy": "Never"})));
    let from = world.now;
    world.run_until(30_000, |world| world.phase("p") == "Succeeded");
    world.run(30_000);
    let renewed: Vec<u64> = std::iter::once(from)
        .chain(world.api.seen("PATCH", "/leases/a").map(|renewal| renewal.at).filter(|at| *at >= from))
        .collect();
    let longest = renewed.windows(2).map(|pair| pair[1] - pair[0]).max().expect("renewals");
    assert!(longest < 4000, "{longest} ms without a renewal");
}

/// Each answer takes a third of a period and so does opening a connection, and there is always something to say.
#[test]
fn renewals_keep_their_period_on_a_link_that_is_slow() {
    let mut world = World::ready();
    world.latency = 800;
    for n in 0..8 {
        world.api.put_pod(pod_with(&format!("p{n}"), json!({"args": ["exit:1:after=1s"]}), json!({})));
    }
    world.run(20_000);
    let from = world.now;
    world.run(300_000);
    let renewed: Vec<u64> =
        world.api.seen("PATCH", "/leases/a").map(|renewal| renewal.at).filter(|at| *at >= from).collect();
    let periods: Vec<u64> = renewed.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(periods.iter().all(|period| (4000..=6000).contains(period)), "{periods:?}");
    assert!(
        world.api.requests.iter().filter(|request| request.at >= from && request.status == 200).count() > 90
    );
    assert!(
        (0..8).all(|n| world.pod(&format!("p{n}"))["status"]["containerStatuses"][0]["restartCount"] != 0)
    );
}
