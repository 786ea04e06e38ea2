//! The control plane goes away and comes back: no pod is lost, none is looked at twice (EXT-06).

use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::serde_json::json;

use crate::world::{LONG, World, node_of};

#[tokio::test]
async fn after_a_restart_of_the_control_plane_new_pods_are_placed_and_old_ones_left_alone() {
    let mut world = World::start(&[]).await;
    world.node("n", json!({"cpu": "2", "memory": "1Gi"})).await;
    let toy = world.toy(&[]);
    world.pod("before", json!({"cpu": "1"})).await;
    world.pod("stuck", json!({"cpu": "2"})).await;
    world.refused("stuck").await;
    world.kill();
    world.start_again();
    world.node("m", json!({"cpu": "4", "memory": "1Gi"})).await;
    world.pod("after", json!({"cpu": "4"})).await;
    assert_eq!(world.bound("after").await, "m");
    world.until::<Event>(LONG, "Scheduled of after", |events| events.len() == 3).await;
    let stuck = world.api::<Pod>().get("stuck").await.unwrap();
    assert_eq!(node_of(&stuck), None);
    assert_eq!(world.events("FailedScheduling").await.get("stuck"), Some(&1));
    let said = toy.end();
    assert_eq!(
        said.iter().filter(|line| line.contains("default/stuck does not fit")).count(),
        1,
        "{said:#?}"
    );
}

/// Its resourceVersions begin anew. A watch that resumed at one of before would miss what came to be below it.
#[tokio::test]
async fn a_control_plane_that_forgot_everything_is_listed_anew() {
    let mut world = World::start(&["--store", "memory"]).await;
    world.node("n", json!({"cpu": "2", "memory": "1Gi"})).await;
    let mut toy = world.toy(&[]);
    world.pod("p", json!({"cpu": "2"})).await;
    world.until::<Event>(LONG, "Scheduled of p", |events| events.len() == 1).await;
    world.kill();
    // Its watches noticed.
    toy.says("trying again");
    world.start_again();
    world.node("m", json!({"cpu": "2", "memory": "1Gi"})).await;
    world.pod("p", json!({"cpu": "2"})).await;
    assert_eq!(world.bound("p").await, "m");
}

/// Bindings whose answers are lost are neither forgotten nor told twice.
#[tokio::test]
async fn a_kill_in_the_middle_of_a_hundred_bindings_loses_none() {
    let mut world = World::start(&[]).await;
    world.node("n", json!({"cpu": "100", "memory": "1Gi"})).await;
    world.deployment(100, json!({"cpu": "1"})).await;
    world.until::<Pod>(LONG, "100 pods", |pods| pods.len() == 100).await;
    let _toy = world.toy(&[]);
    let some = |pods: &[Pod]| pods.iter().filter(|pod| node_of(pod).is_some()).count() >= 10;
    world.until(LONG, "10 placed", some).await;
    world.kill();
    world.start_again();
    world
        .until::<Event>(LONG, "100 told", |events| {
            events.iter().filter(|event| event.reason.as_deref() == Some("Scheduled")).count() == 100
        })
        .await;
    let pods = world.api::<Pod>().list(&Default::default()).await.unwrap();
    assert!(pods.iter().all(|pod| node_of(pod).is_some()));
    let scheduled = world.events("Scheduled").await;
    assert!(scheduled.len() == 100 && scheduled.values().all(|count| *count == 1), "{scheduled:?}");
    assert!(world.events("FailedScheduling").await.is_empty());
}
