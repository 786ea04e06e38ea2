//! EXT-02, EXT-08: many pods.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::serde_json::{Value, json};

use crate::cluster::{Cluster, DEPLOYMENTS, PODS, becomes, deployment, node_of};

const TOY: &str = "toy-scheduler";

/// EXT-02: ten pods or a hundred: the lists are those of its start.
#[tokio::test(flavor = "multi_thread")]
async fn ext_02_lists_do_not_grow_with_the_pods_placed() {
    let cluster = Cluster::start(&["--controllers=*,-scheduler"]).await;
    cluster.node("a", json!({"cpu": "100", "memory": "100Gi"}), json!({})).await;
    cluster.node("b", json!({"cpu": "100", "memory": "100Gi"}), json!({})).await;
    let _toy = cluster.toy("toy", &[]).await;
    let place = async |from: usize, to: usize| {
        for n in from..to {
            cluster.pod(&format!("p-{n}"), TOY, json!({"cpu": "10m", "memory": "1Mi"})).await;
        }
        cluster.until(PODS, "all have a node", |pods| pods.values().all(|pod| node_of(pod).is_some())).await;
        becomes("the audit log tells of all bindings", || cluster.bindings(201).len() == to).await;
        let asked = cluster.asked();
        let count = |verb: &str| asked.iter().filter(|(asked, _, _, _)| asked == verb).count();
        (count("list"), count("get"))
    };
    let ten = place(0, 10).await;
    let hundred = place(10, 110).await;
    assert_eq!(ten, hundred, "lists and single reads after 10 and after 110 pods");
    let watched: Vec<_> = cluster.asked().into_iter().filter(|(verb, ..)| verb == "watch").collect();
    assert!(watched.len() < 6, "{watched:?}");
}

/// EXT-08: four within two seconds; of forty, sixteen fit and each other one is told so once.
#[tokio::test(flavor = "multi_thread")]
async fn ext_08_four_replicas_are_placed_and_of_forty_each_that_does_not_fit_is_told_once() {
    let cluster = Cluster::start(&["--controllers=*,-node-lifecycle"]).await;
    for name in ["a", "b", "c", "d"] {
        cluster.node(name, json!({"cpu": "2", "memory": "4Gi"}), json!({})).await;
    }
    let toy = cluster.toy("toy", &[]).await;
    // The bound is for a machine that is not busy with something else: one of ten times has to keep it.
    let mut kept = false;
    for attempt in 0..10 {
        let name = format!("quick-{attempt}");
        cluster.create(DEPLOYMENTS, &deployment(&name, TOY, 4, json!({"memory": "1Mi"}))).await;
        let placed = |pods: &BTreeMap<String, Value>| {
            pods.iter().filter(|(pod, spec)| pod.starts_with(&name) && node_of(spec).is_some()).count() == 4
        };
        kept = cluster.within(Duration::from_secs(2), PODS, placed).await.is_some();
        if kept {
            break;
        }
        cluster.until(PODS, "four are placed, late", placed).await;
    }
    assert!(kept, "four replicas were never placed within 2 s");

    cluster.create(DEPLOYMENTS, &deployment("web", TOY, 4, json!({"cpu": "500m", "memory": "256Mi"}))).await;
    let web = |pods: &BTreeMap<String, Value>| {
        let web: Vec<_> = pods.iter().filter(|(pod, _)| pod.starts_with("web-")).collect();
        (web.len(), web.iter().filter(|(_, pod)| node_of(pod).is_some()).count())
    };
    cluster.until(PODS, "four are placed", |pods| web(pods) == (4, 4)).await;
    cluster.merge(DEPLOYMENTS, "web", &json!({"spec": {"replicas": 40}})).await;
    cluster.until(PODS, "sixteen of forty are placed", |pods| web(pods) == (40, 16)).await;
    // A pod that comes last is looked at last.
    cluster.pod("last", TOY, json!({})).await;
    cluster.bound("last").await;
    toy.says(&["default/last"]).await;

    let pods = cluster.list(PODS).await;
    let left: Vec<_> = pods.iter().filter(|(_, pod)| node_of(pod).is_none()).map(|(name, _)| name).collect();
    assert_eq!(left.len(), 24, "{left:?}");
    for name in &left {
        cluster.event(name, "FailedScheduling").await;
    }
    let told = cluster.told("FailedScheduling").await;
    assert_eq!(told.keys().collect::<Vec<_>>(), left);
    assert!(told.values().all(|&times| times == 1), "{told:?}");
    for node in ["a", "b", "c", "d"] {
        let web = pods.iter().filter(|(name, _)| name.starts_with("web-"));
        assert_eq!(web.filter(|(_, pod)| node_of(pod).as_deref() == Some(node)).count(), 4, "{node}");
    }
}
