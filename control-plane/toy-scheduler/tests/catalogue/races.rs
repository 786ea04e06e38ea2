//! EXT-10, and BIND-02 and BIND-08 in a crowd: several who bind the same pods at the same time.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use k8s_openapi::serde_json::{Value, json};

use crate::cluster::{Cluster, PODS, Toy, becomes, node_of};

const TOY: &str = "toy-scheduler";

/// So many requests are under way at once; each has a connection of its own.
const AT_ONCE: usize = 12;

/// Makes many pods, several at once.
async fn create(cluster: &Cluster, names: &[String], requests: &Value) {
    let made = names.iter().map(|name| cluster.pod(name, TOY, requests.clone()));
    stream::iter(made).buffer_unordered(AT_ONCE).for_each(|_| async {}).await;
}

/// How many of its lines say that a pod was bound, and that one was not because it was another's.
fn tally(toy: &Toy) -> (usize, usize) {
    (
        toy.lines(&[" bound to ", "default/"]).iter().filter(|line| !line.contains("not bound")).count(),
        toy.lines(&["not bound", "409"]).len(),
    )
}

/// EXT-10: each pod is bound once; who comes second logs the 409 and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn ext_10_two_copies_race_over_a_hundred_pods() {
    let cluster = Cluster::start(&["--controllers=*,-scheduler"]).await;
    for name in ["a", "b", "c"] {
        cluster.node(name, json!({"cpu": "1000", "memory": "100Gi"}), json!({})).await;
    }
    let (mut one, mut two) = (cluster.toy("one", &[]).await, cluster.toy("two", &[]).await);
    let mut made = 0;
    // As a rule they meet in the first round; where they do not, there is another.
    for round in 0..10 {
        let names: Vec<String> = (0..100).map(|n| format!("p-{round}-{n}")).collect();
        create(&cluster, &names, &json!({"cpu": "10m", "memory": "1Mi"})).await;
        made += names.len();
        let all = |pods: &BTreeMap<String, Value>| pods.values().all(|pod| node_of(pod).is_some());
        cluster.until(PODS, "all have a node", all).await;
        becomes("the audit log tells of all bindings", || cluster.bindings(201).len() >= made).await;
        if !cluster.bindings(409).is_empty() {
            break;
        }
    }
    // Both go on: each of them places a pod while the other is held.
    for (held, name) in [(&two, "by-one"), (&one, "by-two")] {
        held.signal("STOP");
        cluster.pod(name, TOY, json!({})).await;
        cluster.bound(name).await;
        held.signal("CONT");
    }
    assert!(one.runs() && two.runs());
    made += 2;
    becomes("the audit log tells of each pod's binding", || cluster.bindings(201).len() >= made).await;
    let mut bound = cluster.bindings(201);
    bound.sort();
    assert_eq!(bound, cluster.list(PODS).await.into_keys().collect::<Vec<_>>(), "each pod once, no other");
    assert!(!cluster.bindings(409).is_empty(), "they never met");
    // Each of them logs what came of its bindings, the lost ones too.
    becomes("the logs tell of all bindings", || {
        let ((first, first_lost), (second, second_lost)) = (tally(&one), tally(&two));
        first + second == made && first_lost + second_lost == cluster.bindings(409).len()
    })
    .await;
    // Who lost says nothing of it in events: the pod was scheduled.
    assert_eq!(cluster.told("FailedScheduling").await, BTreeMap::new());
    let told = cluster.told("Scheduled").await;
    assert!(told.values().all(|&times| times == 1), "{told:?}");
}

/// BIND-02, BIND-08, EXT-03, EXT-10: toy-scheduler and Bindings by hand over the same pods, which go to a node that
/// toy-scheduler does not use. Each pod is bound once, the other gets 409, and no node of toy-scheduler's is over-committed.
#[tokio::test(flavor = "multi_thread")]
async fn bind_08_toy_scheduler_and_bindings_by_hand_race_over_hundreds_of_pods() {
    const PODS_MADE: usize = 300;
    let cluster = Cluster::start(&["--controllers=*,-scheduler"]).await;
    // Room for 160 of the pods: 40 by cpu on two, 40 by memory on two.
    for (name, cpu, memory) in
        [("a", "4", "64Gi"), ("b", "4", "64Gi"), ("c", "64", "4000Mi"), ("d", "64", "4000Mi")]
    {
        cluster.node(name, json!({"cpu": cpu, "memory": memory}), json!({})).await;
    }
    // Nothing fits here, so only a hand puts pods here.
    cluster.node("by-hand", json!({}), json!({})).await;
    let mut toy = cluster.toy("toy", &[]).await;
    let names: Vec<String> = (0..PODS_MADE).map(|n| format!("p-{n}")).collect();
    let race = names.iter().enumerate().map(|(n, name)| {
        let cluster = &cluster;
        async move {
            cluster.pod(name, TOY, json!({"cpu": "100m", "memory": "100Mi"})).await;
            // Every other pod: by two hands.
            let hands = if n % 2 == 0 { 2 } else { 0 };
            join_all((0..hands).map(|_| cluster.bind(name, "by-hand"))).await
        }
    });
    let answers: Vec<_> = stream::iter(race).buffered(AT_ONCE).collect().await;
    cluster.decided(&names).await;
    assert!(toy.runs());
    let pods = cluster.list(PODS).await;
    let elsewhere = |pod: &&Value| node_of(pod).is_some_and(|node| node != "by-hand");
    let by_toy = pods.values().filter(elsewhere).count();
    becomes("the audit log tells of all that toy-scheduler bound", || cluster.bindings(201).len() >= by_toy)
        .await;
    let bound_by_toy = cluster.bindings(201);
    let mut lost_by_hand = 0;
    for (name, answers) in names.iter().zip(&answers) {
        let by_hand = answers.iter().filter(|answer| answer.is_ok()).count();
        let by_toy = bound_by_toy.iter().filter(|bound| *bound == name).count();
        assert!(by_hand + by_toy <= 1, "{name}: {by_hand} by hand, {by_toy} by toy-scheduler");
        let node = node_of(&pods[name]);
        assert_eq!(node.is_some(), by_hand + by_toy == 1, "{name}: {node:?}");
        assert_eq!(node.as_deref() == Some("by-hand"), by_hand == 1, "{name}: {node:?}");
        for (code, message) in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            lost_by_hand += 1;
            assert_eq!(*code, 409, "{name}: {message}");
            let on = node.as_deref().unwrap();
            let expected = format!(
                "Operation cannot be fulfilled on pods/binding \"{name}\": pod {name} is already assigned to node \"{on}\""
            );
            assert_eq!(*message, expected);
        }
    }
    // Of two hands on one pod one loses at least.
    assert!(lost_by_hand >= PODS_MADE / 2, "{lost_by_hand}");
    for (node, room) in [("a", 40), ("b", 40), ("c", 40), ("d", 40)] {
        let there = pods.values().filter(|pod| node_of(pod).as_deref() == Some(node)).count();
        assert!(there <= room, "{node} has {there} pods and room for {room}");
    }
    // Who found no room was told so once; who is on a node was not.
    let told = cluster.told("FailedScheduling").await;
    assert!(told.values().all(|&times| times == 1), "{told:?}");
    for bound in &bound_by_toy {
        assert!(
            !told.contains_key(bound),
            "{bound} was bound by toy-scheduler and told that it does not fit"
        );
    }
}
