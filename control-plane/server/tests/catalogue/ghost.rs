//! GHOST-03, GHOST-08: the upstream profile and a machine that does not exist. (Others of the family: bookkeeping.rs.)

use serde_json::{Value, json};

use crate::client::Client;
use crate::plane::{Plane, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";
/// So many seconds a watch goes on at most: what it waits for comes when it comes, on whatever machine.
const PATIENCE: u32 = 240;

fn brave(name: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    pod
}

fn start(flags: &[&str]) -> (tempfile::TempDir, Plane) {
    let dir = tempfile::tempdir().unwrap();
    let flags = [&["--store", "memory", "--default-scheduler-profile", "upstream"], flags].concat();
    let plane = Plane::tls(dir.path(), &flags);
    let ghost = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost"}});
    plane.admin.post(NODES, &ghost).is(201);
    (dir, plane)
}

fn condition(pod: &Value) -> &Value {
    let all = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|one| one["type"] == "PodScheduled").unwrap_or(&Value::Null)
}

/// Speaks for the ghost.
#[track_caller]
fn places(admin: &Client, pods: &str) {
    let status = json!({"status": {"allocatable": {"pods": pods}}});
    admin.merge(&format!("{NODES}/ghost/status"), &status).is(200);
}

#[track_caller]
fn bound(admin: &Client, name: &str) -> Value {
    admin
        .until(PODS, PATIENCE, |pod| pod["metadata"]["name"] == name && pod["spec"].get("nodeName").is_some())
}

#[track_caller]
fn refused(admin: &Client, name: &str) -> String {
    let told = |pod: &Value| pod["metadata"]["name"] == name && condition(pod)["status"] == "False";
    let pod = admin.until(PODS, PATIENCE, told);
    assert_eq!(pod["spec"].get("nodeName"), None, "{pod}");
    assert_eq!(condition(&pod)["reason"], "Unschedulable", "{pod}");
    condition(&pod)["message"].as_str().unwrap().to_owned()
}

/// GHOST-08: it takes no pod; nor where it says that it takes none.
#[test]
fn ghost_08_a_ghost_without_places_is_refused() {
    let (_dir, plane) = start(&[]);
    let sentence = "0/1 nodes are available: 1 Too many pods.";
    plane.admin.post(PODS, &brave("one")).is(201);
    let message = refused(&plane.admin, "one");
    assert!(message.starts_with(sentence), "{message}");
    let events = "/api/v1/namespaces/default/events";
    let event = plane.admin.until(events, PATIENCE, |event| event["reason"] == "FailedScheduling");
    assert_eq!(event["involvedObject"]["name"], "one");
    assert!(event["message"].as_str().unwrap().starts_with(sentence), "{event}");

    places(&plane.admin, "0");
    let room = json!({"status": {"capacity": {"pods": "9"}, "allocatable": {"cpu": "64", "memory": "64Gi"}}});
    plane.admin.merge(&format!("{NODES}/ghost/status"), &room).is(200);
    plane.admin.post(PODS, &brave("two")).is(201);
    let message = refused(&plane.admin, "two");
    assert!(message.starts_with(sentence), "{message}");
}

/// GHOST-03: nodeName, PodScheduled, and Pending for ever: nobody runs it.
#[test]
fn ghost_03_a_ghost_with_a_place_gets_a_pod() {
    let (_dir, plane) = start(&[]);
    let admin = &plane.admin;
    places(admin, "1");
    admin.post(PODS, &brave("first")).is(201);
    let pod = bound(admin, "first");
    assert_eq!(pod["spec"]["nodeName"], "ghost");
    let pod = admin.until(PODS, PATIENCE, |pod| condition(pod)["status"] == "True");
    assert_eq!(pod["status"]["phase"], "Pending", "{pod}");
    // The one place is taken.
    admin.post(PODS, &brave("second")).is(201);
    let message = refused(admin, "second");
    assert!(message.starts_with("0/1 nodes are available: 1 Too many pods."), "{message}");
    // A place more, and it is rescued.
    places(admin, "2");
    assert_eq!(bound(admin, "second")["spec"]["nodeName"], "ghost");
    for name in ["first", "second"] {
        let pod = admin.get(&format!("{PODS}/{name}")).is(200);
        assert_eq!(pod["status"]["phase"], "Pending", "{pod}");
        assert_eq!(pod["status"].get("startTime"), None, "{pod}");
    }
}

/// GHOST-03: "that tolerates everything". The lifecycle controller taints a ghost; who does not tolerate that is refused.
#[test]
fn ghost_03_a_pod_that_tolerates_nothing_is_refused_by_a_tainted_ghost() {
    let (_dir, plane) = start(&["--node-monitor-period", "500ms", "--not-ready-timeout", "1s"]);
    let admin = &plane.admin;
    places(admin, "9");
    let tainted = |node: &Value| node["spec"]["taints"].as_array().is_some_and(|taints| !taints.is_empty());
    let node = admin.until(NODES, PATIENCE, tainted);
    let key = node["spec"]["taints"][0]["key"].as_str().unwrap();
    admin.post(PODS, &pod("timid")).is(201);
    let message = refused(admin, "timid");
    let sentence = format!("0/1 nodes are available: 1 node(s) had untolerated taint {{{key}: }}.");
    assert!(message.starts_with(&sentence), "{message}");
    admin.post(PODS, &brave("brave")).is(201);
    assert_eq!(bound(admin, "brave")["spec"]["nodeName"], "ghost");
}
