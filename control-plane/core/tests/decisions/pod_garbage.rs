//! Pods that nobody takes away.

use control_plane_core::Write;
use control_plane_core::controllers::pod_garbage::{self, PodGarbageConfig};
use serde_json::{Value, json};

use crate::world::{World, node, pod, s};

fn finished(name: &str, phase: &str, created: &str) -> Value {
    let mut pod = pod(name, json!({}));
    pod["metadata"]["creationTimestamp"] = created.into();
    pod["status"] = json!({"phase": phase});
    pod
}

fn removed(world: &World, threshold: usize) -> Vec<(String, Option<i64>)> {
    let decision = pod_garbage::decide(&world.snapshot, PodGarbageConfig { threshold }, &world.now);
    let names = decision.writes.iter().map(|write| match write {
        Write::Delete { name, grace_seconds, .. } => (name.clone(), *grace_seconds),
        other => panic!("{other:?}"),
    });
    names.collect()
}

#[test]
fn finished_pods_beyond_the_threshold_go_the_oldest_first() {
    let mut world = World::new();
    for (name, phase, created) in [
        ("young", "Succeeded", "2026-11-29T11:00:03Z"),
        ("old", "Failed", "2026-11-29T11:00:01Z"),
        ("middle", "Succeeded", "2026-11-29T11:00:02Z"),
        ("running", "Running", "2026-11-29T11:00:00Z"),
    ] {
        world.put("pods", finished(name, phase, created));
    }
    let names = |threshold: usize| -> Vec<String> {
        removed(&world, threshold).into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(3), [""; 0]);
    assert_eq!(names(2), ["old"]);
    assert_eq!(names(1), ["old", "middle"]);
    assert_eq!(names(0), [""; 0], "no threshold");
    let mut evicted = finished("evicted", "Failed", "2026-11-29T11:00:04Z");
    evicted["status"]["reason"] = "Evicted".into();
    world.put("pods", evicted);
    assert_eq!(removed(&world, 3), [("evicted".to_owned(), None)]);
}

#[test]
fn bind_05_a_pod_on_a_node_that_is_not_there_stays_until_someone_deletes_it() {
    let mut world = World::new();
    world.register(node("here", json!({"memory": "1Gi"})));
    for (name, place) in [("ghost", "nowhere"), ("held", "here"), ("going", "nowhere"), ("slow", "here")] {
        let mut pod = pod(name, json!({}));
        pod["spec"]["nodeName"] = place.into();
        if matches!(name, "going" | "slow") {
            // deleted 25 s ago with 30 s of grace
            pod["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:05Z".into();
            pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        }
        world.put("pods", pod);
    }
    assert_eq!(removed(&world, 10), []);
    world.pass(s(5.7));
    assert_eq!(removed(&world, 10), [], "its grace may not be over");
    world.pass(s(0.1));
    assert_eq!(removed(&world, 10), [("going".to_owned(), Some(0))]);
    world.pass(s(1e6));
    assert_eq!(removed(&world, 10).len(), 1, "the one whose node exists is its node's");
    world.change("pods", "default", "going", |pod| pod["metadata"]["deletionGracePeriodSeconds"] = 0.into());
    assert_eq!(removed(&world, 10), [], "only finalizers keep it");
}
