//! A board whose processor stood still, and its clock with it: it finds out from the server that time has
//! passed, and proves itself alive before it says anything of its pods (NODE-09, NODE-27).

use serde_json::{Value, json};

use crate::api::{Fault, failure};
use crate::world::{World, pod};

/// `lease.durationSeconds` of the board, in milliseconds.
const LEASE: u64 = 15_000;

/// A board with a running pod.
fn running() -> World {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "pause", "8Ki"));
    world.run(3000);
    assert!(is_ready(&world));
    world
}

fn is_ready(world: &World) -> bool {
    World::condition(world.status("p"), "Ready")["status"] == "True"
}

fn is_unknown(world: &World) -> bool {
    World::condition(&world.api.nodes["a"]["status"], "Ready")["status"] == "Unknown"
}

/// When the server took renewals.
fn renewals(world: &World) -> impl Iterator<Item = u64> {
    world.api.requests.iter().filter(|r| r.path.contains("/leases") && r.status < 300).map(|r| r.at)
}

fn set_ready(object: &mut Value, status: &str) {
    let conditions = object["status"]["conditions"].as_array_mut().unwrap();
    let ready = conditions.iter_mut().find(|c| c["type"] == "Ready").unwrap();
    (ready["status"], ready["lastTransitionTime"]) = (json!(status), json!("2027-01-15T08:00:20Z"));
}

/// The control plane looks: a node without a lease is Unknown, and the pods of such a node are not ready.
/// Whether it had to say so of the pod.
fn look(world: &mut World) -> bool {
    let renewed = renewals(world).last().unwrap();
    if world.now > renewed + LEASE && !is_unknown(world) {
        set_ready(world.api.nodes.get_mut("a").unwrap(), "Unknown");
    }
    let contradicts = is_unknown(world) && is_ready(world);
    if contradicts {
        world.api.edit_pod("p", |pod| set_ready(pod, "False"));
    }
    contradicts
}

/// Stands still until the control plane has said so, in the middle of it.
fn hang(world: &mut World, millis: u64) {
    world.hang(LEASE + 1000);
    assert!(look(world), "the lease has not lapsed");
    world.hang(millis);
}

/// The node and its pod are ready again within `most` milliseconds, and said so once, however often the
/// control plane looks.
fn check_returns(mut world: World, most: u64) {
    let from = world.now;
    while is_unknown(&world) || !is_ready(&world) {
        assert!(world.now < from + most, "not back within {most} ms: {:#?}", world.console);
        world.run(1);
        assert!(!look(&mut world), "ready too early: {:#?}", world.api.requests.last());
    }
    for _ in 0..20_000 {
        world.run(1);
        assert!(!look(&mut world), "not ready again: {:#?}", world.api.requests.last());
    }
    assert!(renewals(&world).filter(|at| *at > from).count() < 8);
}

#[test]
fn a_pod_is_ready_again_once() {
    // Wherever it stands between a renewal and a report.
    for phase in [0, 1700, 3400, 5100, 6800, 8500] {
        let mut world = running();
        world.run(phase);
        hang(&mut world, 3000);
        check_returns(world, 100);
    }
}

/// Without a word from the watch the Date of an answer tells.
#[test]
fn a_pod_is_ready_again_once_after_the_watch_was_lost() {
    let mut world = running();
    world.deafen_watch();
    hang(&mut world, 30_000);
    world.close_connections();
    check_returns(world, 2000);
}

/// A status that is due of the pod itself waits, too.
#[test]
fn a_container_that_ends_is_told_after_the_renewal() {
    let mut world = World::ready();
    world.api.put_pod(pod("p", "exit:1:after=4s", "8Ki"));
    world.run(3990);
    assert!(is_ready(&world));
    let told = world.api.seen("PATCH", "/pods/p/status").count();
    hang(&mut world, 1000);
    let from = world.now;
    world.run_until(1000, |world| world.api.seen("PATCH", "/pods/p/status").count() > told);
    let told = world.api.requests.last().unwrap().at;
    assert!(renewals(&world).any(|at| (from..told).contains(&at)));
}

#[test]
fn nothing_is_said_of_pods_before_a_renewal_is_taken() {
    let mut world = running();
    hang(&mut world, 3000);
    world.api.rule = Some(Box::new(|request| {
        request.path.contains("/leases/a").then(|| Fault::Status(500, failure(500).1))
    }));
    for _ in 0..10_000 {
        world.run(1);
        assert!(!look(&mut world), "ready too early: {:#?}", world.api.requests.last());
    }
    world.api.rule = None;
    check_returns(world, 3000);
}

/// A clock that is behind the server's is reason enough to renew; one that is right is not.
#[test]
fn a_clock_that_stood_still_renews() {
    let check = |hung: u64, at_once: bool| {
        let mut world = running();
        // A renewal was taken a moment ago, and a report is the next that is said.
        let count = renewals(&world).count();
        world.run_until(10_000, |world| renewals(world).count() > count);
        world.run(100);
        world.hang(hung);
        world.api.put_pod(pod("q", "pause", "8Ki"));
        let from = world.now;
        world.run(300);
        assert_eq!(world.phase("q"), "Running");
        assert_eq!(renewals(&world).any(|at| at > from), at_once, "after {hung} ms");
        assert!(renewals(&world).filter(|at| *at > from).count() <= 1);
    };
    check(0, false);
    check(900, false);
    check(3500, true);
    check(9000, true);
}
