//! EXT-05, EXT-06, EXT-07: what it does about its choice, and what it says.

use k8s_openapi::serde_json::json;

use crate::cluster::{Cluster, EVENTS, PODS, becomes, is_of, node_of, pod};
use crate::kubectl::kubectl;

const TOY: &str = "toy-scheduler";

/// EXT-05: a Binding, Scheduled, FailedScheduling with a reason, as the API and as kubectl show them.
#[tokio::test(flavor = "multi_thread")]
async fn ext_05_it_binds_and_says_so_and_says_why_not() {
    let cluster = Cluster::start(&["--controllers=*,-scheduler"]).await;
    cluster.node("a", json!({"cpu": "1", "memory": "1Gi"}), json!({})).await;
    cluster.node("b", json!({"cpu": "4", "memory": "512Mi"}), json!({})).await;
    let _toy = cluster.toy("toy", &[]).await;
    let made = cluster.pod("fits", TOY, json!({"cpu": "500m", "memory": "512Mi"})).await;
    assert_eq!(cluster.bound("fits").await, "a");
    let bound = cluster.get(PODS, "fits").await;
    let conditions = bound["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|one| one["type"] == "PodScheduled" && one["status"] == "True"), "{bound}");
    assert_eq!(bound["status"]["phase"], "Pending");
    let event = cluster.event("fits", "Scheduled").await;
    assert_eq!(event["type"], "Normal");
    assert_eq!(event["message"], "Successfully assigned default/fits to a");
    assert_eq!(event["involvedObject"]["uid"], made["metadata"]["uid"]);
    assert_eq!(event["source"]["component"], TOY);
    becomes("the audit log tells of the binding", || cluster.bindings(201) == ["fits"]).await;

    let made = cluster.pod("does-not", TOY, json!({"cpu": "2", "memory": "1Gi"})).await;
    let event = cluster.event("does-not", "FailedScheduling").await;
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["message"], "0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.");
    assert_eq!(event["involvedObject"]["uid"], made["metadata"]["uid"]);
    assert_eq!(node_of(&cluster.get(PODS, "does-not").await), None);

    for (pod, words) in [
        ("fits", ["Normal", "Scheduled", TOY, "Successfully assigned default/fits to a"]),
        ("does-not", ["Warning", "FailedScheduling", TOY, "2 Insufficient memory"]),
    ] {
        let Some(said) = kubectl(&cluster, &["describe", "pod", pod]) else { return };
        let (_, events) = said.split_once("Events:").unwrap_or_else(|| panic!("{said}"));
        let line = events.lines().find(|line| line.contains(words[1])).unwrap_or_else(|| panic!("{said}"));
        for word in words {
            assert!(line.contains(word), "{word:?} is not in {line:?}");
        }
    }
}

/// EXT-05: with no node at all there is a reason too.
#[tokio::test(flavor = "multi_thread")]
async fn ext_05_without_any_node_it_says_so() {
    let cluster = Cluster::start(&["--controllers=*,-scheduler"]).await;
    let _toy = cluster.toy("toy", &[]).await;
    cluster.pod("p", TOY, json!({})).await;
    let event = cluster.event("p", "FailedScheduling").await;
    assert_eq!(event["message"], "no nodes available to schedule pods");
}

/// EXT-06: room by a new node, by a bigger node, by a pod that goes; a label of the pod, even. Nothing is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn ext_06_a_pod_that_did_not_fit_is_not_looked_at_again() {
    let cluster = Cluster::start(&["--controllers=*,-scheduler"]).await;
    cluster.node("a", json!({"cpu": "1", "memory": "1Gi"}), json!({})).await;
    let toy = cluster.toy("toy", &[]).await;
    cluster.pod("holder", TOY, json!({"cpu": "1"})).await;
    assert_eq!(cluster.bound("holder").await, "a");
    cluster.pod("waits", TOY, json!({"cpu": "1"})).await;
    cluster.event("waits", "FailedScheduling").await;

    // Each kind of room is seen by it, as pods that come later show.
    cluster.node("b", json!({"cpu": "2", "memory": "1Gi"}), json!({})).await;
    cluster.lands("later-b", TOY, "b", json!({"cpu": "1"})).await;
    let room = json!({"allocatable": {"cpu": "3", "memory": "4Gi"}});
    cluster.merge_status("/api/v1/nodes", "a", &room).await;
    cluster.lands("later-a", TOY, "a", json!({"cpu": "1", "memory": "2Gi"})).await;
    cluster.merge(PODS, "waits", &json!({"metadata": {"labels": {"look": "again"}}})).await;
    cluster.pod("last", TOY, json!({"memory": "1Mi"})).await;
    cluster.bound("last").await;
    cluster.event("last", "Scheduled").await;

    // And nothing in the seconds after that either.
    let moved = cluster
        .within(std::time::Duration::from_secs(4), PODS, |pods| node_of(&pods["waits"]).is_some())
        .await;
    assert!(moved.is_none(), "{moved:?}");
    let told = cluster.told("FailedScheduling").await;
    assert_eq!(told["waits"], 1);
    assert!(told.values().all(|&times| times == 1), "{told:?}");
    let events = cluster.list(EVENTS).await;
    assert_eq!(events.values().filter(|event| is_of(event, "waits", "FailedScheduling")).count(), 1);
    assert_eq!(toy.lines(&["default/waits"]).len(), 1, "{}", toy.said());
    assert!(!cluster.bindings(201).contains(&"waits".to_owned()));
}

/// EXT-07: everything but the Binding, in its words and in what the server saw.
#[tokio::test(flavor = "multi_thread")]
async fn ext_07_a_dry_run_binds_nothing_and_says_what_it_would_have() {
    let cluster = Cluster::start(&["--controllers=*,-scheduler"]).await;
    cluster.node("a", json!({"cpu": "1", "memory": "1Gi"}), json!({})).await;
    cluster.node("b", json!({"cpu": "1", "memory": "2Gi"}), json!({})).await;
    let toy = cluster.toy("toy", &["--dry-run"]).await;
    cluster.pod("small", TOY, json!({"cpu": "100m"})).await;
    let line = toy.says(&["default/small", "would"]).await;
    assert!(line.contains(" b ") || line.ends_with(" b"), "{line}");
    cluster.pod("big", TOY, json!({"memory": "3Gi"})).await;
    let event = cluster.event("big", "FailedScheduling").await;
    assert_eq!(event["message"], "0/2 nodes are available: 2 Insufficient memory.");
    // Its identity as it stands: by hand, as the last thing that the audit log has to tell of.
    let binder = cluster.toy("binder", &["--scheduler-name", "binder"]).await;
    cluster.create(PODS, &pod("bound", "binder", json!({}))).await;
    cluster.bound("bound").await;
    becomes("the audit log tells of the binding", || !cluster.bindings(201).is_empty()).await;
    binder.says(&["default/bound"]).await;
    let posted: Vec<_> = cluster
        .asked()
        .into_iter()
        .filter(|(verb, resource, name, _)| verb == "create" && resource == "pods/binding" && name != "bound")
        .collect();
    assert_eq!(posted, []);
    cluster.event("bound", "Scheduled").await;
    assert_eq!(cluster.told("Scheduled").await.into_keys().collect::<Vec<_>>(), ["bound"]);
    for name in ["small", "big"] {
        assert_eq!(node_of(&cluster.get(PODS, name).await), None);
    }
}
