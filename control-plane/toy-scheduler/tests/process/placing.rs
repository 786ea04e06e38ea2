//! Which pods are looked at, where they go, and what is said of it (EXT-01, EXT-03 … EXT-07, EXT-09).

use std::process::Command;

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::serde_json::json;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};

use crate::world::{LONG, World, node_of};

/// EXT-01.
#[tokio::test]
async fn it_places_the_pods_that_name_it_and_no_others() {
    let world = World::start(&["--controllers=*,-scheduler"]).await;
    world.node("n", json!({"cpu": "4", "memory": "1Gi"})).await;
    world.pod_of("default-scheduler", "another", json!({})).await;
    world.pod("early", json!({})).await;
    let _toy = world.toy(&[]);
    world.pod_of("toy", "mine", json!({})).await;
    world.pod("late", json!({})).await;
    assert_eq!((world.bound("early").await, world.bound("late").await), ("n".into(), "n".into()));
    let _other = world.toy(&["--scheduler-name", "toy"]);
    assert_eq!(world.bound("mine").await, "n");
    world.until::<Event>(LONG, "3 told", |events| events.len() == 3).await;
    let another = world.api::<Pod>().get("another").await.unwrap();
    assert_eq!(node_of(&another), None);
    let scheduled = world.events("Scheduled").await;
    assert_eq!(scheduled.keys().collect::<Vec<_>>(), ["early", "late", "mine"]);
}

/// EXT-03, EXT-04.
#[tokio::test]
async fn it_counts_cpu_and_memory_and_takes_the_node_with_most_memory_free() {
    let world = World::start(&[]).await;
    world.node("roomy", json!({"memory": "4Gi"})).await;
    world.node("a", json!({"cpu": "1500m", "memory": "2Gi"})).await;
    world.node("b", json!({"cpu": "1", "memory": "2Gi"})).await;
    let _toy = world.toy(&[]);
    // The roomy node reports no cpu, so nothing that asks for some fits there.
    world.pod("p1", json!({"cpu": "1", "memory": "512Mi"})).await;
    assert_eq!(world.bound("p1").await, "a");
    world.pod("p2", json!({"cpu": "500m", "memory": "1Gi"})).await;
    assert_eq!(world.bound("p2").await, "b");
    world.pod("p3", json!({"cpu": "600m"})).await;
    assert_eq!(world.refused("p3").await, "0/3 nodes are available: 3 Insufficient cpu.");
    world.pod("p4", json!({"memory": "5Gi"})).await;
    assert_eq!(world.refused("p4").await, "0/3 nodes are available: 3 Insufficient memory.");
    world.pod("p5", json!({"memory": "4Gi"})).await;
    assert_eq!(world.bound("p5").await, "roomy");
    world.pod("p6", json!({"cpu": "500m"})).await;
    assert_eq!(world.bound("p6").await, "a");
}

/// EXT-05: as a person sees it. Skipped, with the reason printed, where there is no kubectl.
#[tokio::test]
async fn kubectl_describes_what_it_did() {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        println!("skipped: kubectl is not on PATH");
        return;
    }
    let world = World::start(&[]).await;
    world.node("n", json!({"cpu": "1", "memory": "1Gi"})).await;
    let toy = world.toy(&[]);
    world.pod("fits", json!({"cpu": "1"})).await;
    world.pod("too-big", json!({"cpu": "2"})).await;
    world.refused("too-big").await;
    let describe = |name: &str| {
        let admin = world.file("kubeconfig/admin.kubeconfig");
        let described = Command::new("kubectl")
            .env("HOME", world.file("home"))
            .arg("--kubeconfig")
            .arg(admin)
            .args(["describe", "pod", name])
            .output()
            .unwrap();
        String::from_utf8(described.stdout).unwrap()
    };
    let fits = describe("fits");
    let line = fits.lines().find(|line| line.contains(" Scheduled ")).unwrap_or_else(|| panic!("{fits}"));
    assert!(line.contains("Normal") && line.contains("toy-scheduler"), "{line}");
    assert!(line.ends_with("Successfully assigned default/fits to n"), "{line}");
    let big = describe("too-big");
    let line = big.lines().find(|line| line.contains("FailedScheduling")).unwrap_or_else(|| panic!("{big}"));
    assert!(line.contains("Warning") && line.contains("toy-scheduler"), "{line}");
    assert!(line.ends_with("0/1 nodes are available: 1 Insufficient cpu."), "{line}");
    let said = toy.end();
    let of = |pod: &str| said.iter().filter(|line| line.contains(pod)).count();
    assert_eq!((of("default/fits"), of("default/too-big")), (1, 1), "one line a decision: {said:#?}");
}

/// EXT-06.
#[tokio::test]
async fn a_pod_that_did_not_fit_is_not_looked_at_again_when_room_appears() {
    let world = World::start(&[]).await;
    world.node("n", json!({"cpu": "2", "memory": "1Gi"})).await;
    let toy = world.toy(&[]);
    world.pod("first", json!({"cpu": "2"})).await;
    world.bound("first").await;
    world.pod("stuck", json!({"cpu": "1"})).await;
    world.refused("stuck").await;
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    world.api::<Pod>().delete("first", &at_once).await.unwrap();
    world.node("m", json!({"cpu": "8", "memory": "1Gi"})).await;
    let more = Patch::Merge(json!({"metadata": {"labels": {"touched": "yes"}}}));
    world.api::<Pod>().patch("stuck", &PatchParams::default(), &more).await.unwrap();
    // What comes after everything that could have woken it.
    world.pod("next", json!({"cpu": "8"})).await;
    assert_eq!(world.bound("next").await, "m");
    world.until::<Event>(LONG, "Scheduled of next", |events| events.len() == 3).await;
    let stuck = world.api::<Pod>().get("stuck").await.unwrap();
    assert_eq!(node_of(&stuck), None);
    assert_eq!(world.events("FailedScheduling").await.get("stuck"), Some(&1));
    assert_eq!(toy.end().iter().filter(|line| line.contains("default/stuck")).count(), 1);
}

/// EXT-07.
#[tokio::test]
async fn a_dry_run_says_what_it_would_bind_and_binds_nothing() {
    let world = World::start(&[]).await;
    world.node("n", json!({"cpu": "2", "memory": "1Gi"})).await;
    let mut toy = world.toy(&["--dry-run"]);
    world.pod("p1", json!({"cpu": "1"})).await;
    let said = toy.says("default/p1");
    assert!(said.contains("would be bound to n"), "{said}");
    world.pod("p2", json!({"cpu": "1"})).await;
    assert!(toy.says("default/p2").contains("would be bound to n"));
    // What would have been bound takes its room.
    world.pod("p3", json!({"cpu": "1"})).await;
    assert_eq!(world.refused("p3").await, "0/1 nodes are available: 1 Insufficient cpu.");
    let pods = world.api::<Pod>().list(&Default::default()).await.unwrap();
    assert!(pods.iter().all(|pod| node_of(pod).is_none()));
    assert!(world.events("Scheduled").await.is_empty());
    toy.end();
    assert!(world.audited("create", "pods", "binding").is_empty());
}

/// EXT-09, and EXT-03's "by nothing else".
#[tokio::test]
async fn neither_taints_nor_selectors_nor_an_unready_node_stop_it() {
    let world = World::start(&[]).await;
    let taint =
        json!({"unschedulable": true, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]});
    world.node_with("tainted", json!({"cpu": "2", "memory": "1Gi"}), taint).await;
    let node = Api::<Node>::all(world.client.clone()).get("tainted").await.unwrap();
    assert!(node.spec.unwrap().taints.unwrap().iter().any(|taint| taint.key == "k"));
    let _toy = world.toy(&[]);
    world.pod("p", json!({"cpu": "2"})).await;
    assert_eq!(world.bound("p").await, "tainted");
}
