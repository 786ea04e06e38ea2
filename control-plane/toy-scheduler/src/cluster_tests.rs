use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::serde_json::{Value, from_value, json};
use kube::runtime::watcher::Event;

use super::Cluster;

fn pod(uid: &str, spec: &Value) -> Pod {
    let name = uid.trim_end_matches('\'');
    let mut spec = spec.clone();
    spec["containers"] = json!([{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1k"}}}]);
    from_value(json!({"metadata": {"name": name, "namespace": "ns", "uid": uid}, "spec": spec})).unwrap()
}

fn waiting(uid: &str) -> Pod {
    pod(uid, &json!({"schedulerName": "toy"}))
}

fn bound(uid: &str, node: &str) -> Pod {
    pod(uid, &json!({"schedulerName": "toy", "nodeName": node}))
}

fn list<T>(mut take: impl FnMut(Event<T>), objects: Vec<T>) {
    take(Event::Init);
    objects.into_iter().for_each(|object| take(Event::InitApply(object)));
    take(Event::InitDone);
}

fn node(name: &str, cpu: &str) -> Node {
    from_value(json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "memory": "9k"}}}))
        .unwrap()
}

/// With nodes a and b, of 4 and 2 processors.
fn cluster(pods: Vec<Pod>) -> Cluster {
    let mut cluster = Cluster::new("toy");
    list(|event| cluster.apply_node(event), vec![node("b", "2"), node("a", "4")]);
    list(|event| cluster.apply_pod(event), pods);
    cluster
}

fn take(cluster: &mut Cluster) -> Vec<String> {
    std::iter::from_fn(|| cluster.take_waiting().map(|(pod, _)| pod.uid)).collect()
}

fn free(cluster: &Cluster) -> Vec<(&str, i128)> {
    cluster.rooms().iter().map(|room| (room.node, room.free.cpu / 1_000_000_000)).collect()
}

#[test]
fn only_pods_that_name_it_and_have_no_node_wait() {
    let other = pod("other", &json!({"schedulerName": "default-scheduler"}));
    let unnamed = pod("unnamed", &json!({}));
    let empty = pod("empty", &json!({"schedulerName": "toy", "nodeName": ""}));
    let mut cluster = cluster(vec![other, unnamed, bound("bound", "a"), empty, waiting("p")]);
    assert_eq!(take(&mut cluster), ["empty", "p"]);
}

#[test]
fn the_oldest_pod_comes_first_and_then_the_first_by_name() {
    let at = |uid: &str, time: &str| {
        let mut pod = waiting(uid);
        pod.metadata.creation_timestamp = Some(from_value(json!(time)).unwrap());
        pod
    };
    let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
    let mut cluster = cluster(vec![at("a", new), at("c", old), at("b", old)]);
    assert_eq!(take(&mut cluster), ["b", "c", "a"]);
}

#[test]
fn nothing_waits_before_both_lists_are_complete() {
    let mut cluster = Cluster::new("toy");
    cluster.apply_pod(Event::Init);
    cluster.apply_pod(Event::InitApply(waiting("p")));
    assert!(!cluster.waits());
    cluster.apply_pod(Event::InitDone);
    assert!(!cluster.waits() && take(&mut cluster).is_empty(), "a pod must not meet a cluster without nodes");
    list(|event| cluster.apply_node(event), vec![]);
    assert!(cluster.waits());
    assert_eq!(take(&mut cluster), ["p"]);
    assert!(!cluster.waits());
}

#[test]
fn nothing_waits_after_a_break_before_both_are_listed_again() {
    let mut cluster = cluster(vec![waiting("p")]);
    cluster.forget_lists();
    assert!(!cluster.waits() && take(&mut cluster).is_empty());
    list(|event| cluster.apply_pod(event), vec![waiting("p")]);
    assert!(!cluster.waits());
    list(|event| cluster.apply_node(event), vec![node("c", "1")]);
    assert_eq!(take(&mut cluster), ["p"]);
    assert_eq!(free(&cluster), [("c", 1)]);
}

#[test]
fn a_pod_is_looked_at_once_whatever_is_said_of_it_later() {
    let mut cluster = cluster(vec![waiting("p")]);
    assert_eq!(take(&mut cluster), ["p"]);
    cluster.apply_pod(Event::Apply(waiting("p")));
    assert!(take(&mut cluster).is_empty());
    list(|event| cluster.apply_pod(event), vec![waiting("p"), waiting("q")]);
    assert_eq!(take(&mut cluster), ["q"]);
}

#[test]
fn a_new_pod_of_an_old_name_is_looked_at() {
    let mut cluster = cluster(vec![waiting("p")]);
    assert_eq!(take(&mut cluster), ["p"]);
    cluster.apply_pod(Event::Delete(waiting("p")));
    cluster.apply_pod(Event::Apply(waiting("p'")));
    assert_eq!(take(&mut cluster), ["p'"]);
    list(|event| cluster.apply_pod(event), vec![waiting("p''")]);
    assert_eq!(take(&mut cluster), ["p''"]);
}

#[test]
fn rooms_are_what_pods_on_a_node_leave_whoever_put_them_there() {
    let mut finished = bound("finished", "b");
    finished.status = Some(from_value(json!({"phase": "Succeeded"})).unwrap());
    let other = pod("other", &json!({"schedulerName": "x", "nodeName": "a"}));
    let mut cluster = cluster(vec![bound("p", "a"), other, finished, bound("lost", "gone"), waiting("w")]);
    assert_eq!(free(&cluster), [("a", 2), ("b", 2)]);
    cluster.apply_node(Event::Apply(node("a", "8")));
    cluster.apply_node(Event::Delete(node("b", "2")));
    assert_eq!(free(&cluster), [("a", 6)]);
}

#[test]
fn a_placement_counts_until_the_watch_says_where_the_pod_is() {
    let mut cluster = cluster(vec![waiting("p")]);
    let (p, _) = cluster.take_waiting().unwrap();
    cluster.assume(&p, Some("a"));
    assert_eq!(free(&cluster), [("a", 3), ("b", 2)]);
    cluster.apply_pod(Event::Apply(waiting("p")));
    list(|event| cluster.apply_pod(event), vec![waiting("p")]);
    assert_eq!(free(&cluster), [("a", 3), ("b", 2)], "the watch does not know it yet");
    cluster.apply_pod(Event::Apply(bound("p", "b")));
    assert_eq!(free(&cluster), [("a", 4), ("b", 1)]);
    cluster.apply_pod(Event::Delete(bound("p", "b")));
    assert_eq!(free(&cluster), [("a", 4), ("b", 2)]);
}

#[test]
fn a_placement_that_failed_no_longer_counts() {
    let mut cluster = cluster(vec![waiting("p")]);
    let (p, _) = cluster.take_waiting().unwrap();
    cluster.assume(&p, Some("a"));
    cluster.assume(&p, None);
    assert_eq!(free(&cluster), [("a", 4), ("b", 2)]);
    assert!(!cluster.waits());
}
