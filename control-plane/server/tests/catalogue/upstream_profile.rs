//! The built-in scheduler's profile `upstream`: SCHED-34, and the rows that hold for either profile, with the sentences
//! that kube-scheduler 1.32 was recorded to say on three nodes of 4 cpu and 8Gi.

use serde_json::{Value, json};

use crate::client::Client;
use crate::plane::{Plane, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";
/// So many seconds a watch goes on at most: what it waits for comes when it comes, on whatever machine.
const PATIENCE: u32 = 240;
const HELPS_NOT: &str = "Preemption is not helpful for scheduling";
const NO_VICTIMS: &str = "No preemption victims found for incoming pod";

/// A control plane whose pods of `strict` are placed by the upstream profile.
fn start(nodes: &[(&str, Value)]) -> (tempfile::TempDir, Plane) {
    let dir = tempfile::tempdir().unwrap();
    let flags =
        ["--store", "memory", "--scheduler-profile", "strict=upstream", "--controllers=*,-node-lifecycle"];
    let plane = Plane::tls(dir.path(), &flags);
    for (name, spec) in nodes {
        add(&plane.admin, name, spec);
    }
    (dir, plane)
}

#[track_caller]
fn add(admin: &Client, name: &str, spec: &Value) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec});
    admin.post(NODES, &node).is(201);
    let room = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    let ready = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ok"}]);
    let status = json!({"status": {"capacity": room, "allocatable": room, "conditions": ready}});
    admin.merge(&format!("{NODES}/{name}/status"), &status).is(200);
}

/// A pod of `strict` whose spec has these fields besides.
fn strict(name: &str, spec: &Value) -> Value {
    let mut pod = pod(name);
    pod["spec"]["schedulerName"] = json!("strict");
    for (key, value) in spec.as_object().unwrap() {
        match key.as_str() {
            "resources" => pod["spec"]["containers"][0]["resources"] = value.clone(),
            key => pod["spec"][key] = value.clone(),
        }
    }
    pod
}

fn taint(key: &str, value: &str, effect: &str) -> Value {
    json!({"key": key, "value": value, "effect": effect})
}

fn memory() -> Value {
    json!({"resources": {"requests": {"memory": "100Gi"}}})
}

fn scheduled(pod: &Value) -> Value {
    let all = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|one| one["type"] == "PodScheduled").unwrap_or_default()
}

#[track_caller]
fn bound(admin: &Client, name: &str) -> String {
    let on = |pod: &Value| pod["metadata"]["name"] == name && pod["spec"].get("nodeName").is_some();
    let pod = admin.until(PODS, PATIENCE, on);
    assert_eq!(scheduled(&pod)["status"], "True", "{pod}");
    pod["spec"]["nodeName"].as_str().unwrap().to_owned()
}

/// What the pod's condition says once it was refused; its event says the same.
#[track_caller]
fn refused(admin: &Client, name: &str) -> String {
    let told = |pod: &Value| pod["metadata"]["name"] == name && scheduled(pod)["status"] == "False";
    let pod = admin.until(PODS, PATIENCE, told);
    assert_eq!(pod["spec"].get("nodeName"), None, "{pod}");
    assert_eq!(pod["status"]["phase"], "Pending");
    assert_eq!(scheduled(&pod)["reason"], "Unschedulable");
    let events = "/api/v1/namespaces/default/events";
    let of = |event: &Value| event["involvedObject"]["name"] == name && event["reason"] == "FailedScheduling";
    let event = admin.until(events, PATIENCE, of);
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["message"], scheduled(&pod)["message"]);
    event["message"].as_str().unwrap().to_owned()
}

/// Of three nodes with these specs and a pod with this spec, the two sentences about it.
#[track_caller]
fn says(nodes: [Value; 3], spec: &Value, reasons: &str, preemption: &str) {
    let names = ["hollow-0", "hollow-1", "hollow-2"];
    let (_dir, plane) =
        start(&[(names[0], nodes[0].clone()), (names[1], nodes[1].clone()), (names[2], nodes[2].clone())]);
    plane.admin.post(PODS, &strict("p", spec)).is(201);
    let expected =
        format!("0/3 nodes are available: {reasons}. preemption: 0/3 nodes are available: {preemption}.");
    assert_eq!(refused(&plane.admin, "p"), expected, "{spec}");
}

fn same(spec: Value) -> [Value; 3] {
    [spec.clone(), spec.clone(), spec]
}

/// SCHED-34: not tolerated is ruled out; tolerated, or only to be preferred, is not.
#[test]
fn sched_34_a_no_schedule_taint_rules_a_node_out() {
    let gpu = json!({"taints": [taint("dedicated", "gpu", "NoSchedule")]});
    let gone = json!({"taints": [taint("gone", "", "NoExecute")]});
    let (_dir, plane) = start(&[("a", gpu), ("b", gone)]);
    let admin = &plane.admin;
    admin.post(PODS, &strict("plain", &json!({}))).is(201);
    let message = refused(admin, "plain");
    let reasons =
        "1 node(s) had untolerated taint {dedicated: gpu}, 1 node(s) had untolerated taint {gone: }";
    assert!(message.starts_with(&format!("0/2 nodes are available: {reasons}.")), "{message}");

    let check = |name: &str, toleration: Value, node: Option<&str>| {
        admin.post(PODS, &strict(name, &json!({"tolerations": [toleration]}))).is(201);
        match node {
            Some(node) => assert_eq!(bound(admin, name), node, "{name}"),
            None => drop(refused(admin, name)),
        }
    };
    check("by-key", json!({"key": "dedicated", "operator": "Exists"}), Some("a"));
    check("by-value", json!({"key": "dedicated", "operator": "Equal", "value": "gpu"}), Some("a"));
    check("by-effect", json!({"operator": "Exists", "effect": "NoExecute"}), Some("b"));
    check("other-value", json!({"key": "dedicated", "operator": "Equal", "value": "tpu"}), None);
    check("other-effect", json!({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}), None);
    check("other-key", json!({"key": "broken", "operator": "Exists"}), None);

    add(admin, "c", &json!({"taints": [taint("better-not", "", "PreferNoSchedule")]}));
    assert_eq!(bound(admin, "plain"), "c", "a taint that only prefers rules nothing out");
}

/// SCHED-34, SCHED-51: which taint is named, and how often.
#[test]
fn sched_34_taints_are_told_as_kube_scheduler_tells_them() {
    let dedicated = json!({"taints": [taint("dedicated", "gpu", "NoSchedule")]});
    let other = json!({"taints": [taint("other", "", "NoSchedule")]});
    let cordoned = json!({"unschedulable": true});
    let helps_not = format!("3 {HELPS_NOT}");
    says(
        [dedicated.clone(), other.clone(), cordoned.clone()],
        &json!({}),
        "1 node(s) had untolerated taint {dedicated: gpu}, 1 node(s) had untolerated taint {other: }, 1 node(s) were unschedulable",
        &helps_not,
    );
    says(
        [dedicated.clone(), dedicated.clone(), other.clone()],
        &json!({}),
        "1 node(s) had untolerated taint {other: }, 2 node(s) had untolerated taint {dedicated: gpu}",
        &helps_not,
    );
    says(
        [dedicated.clone(), json!({}), json!({})],
        &memory(),
        "1 node(s) had untolerated taint {dedicated: gpu}, 2 Insufficient memory",
        &format!("1 {HELPS_NOT}, 2 {NO_VICTIMS}"),
    );
    // Of several only the first that is not tolerated.
    let many = json!({"taints": [taint("soft", "", "PreferNoSchedule"), taint("first", "", "NoSchedule"), taint("second", "", "NoSchedule")]});
    says(
        [many, dedicated, other],
        &json!({}),
        "1 node(s) had untolerated taint {dedicated: gpu}, 1 node(s) had untolerated taint {first: }, 1 node(s) had untolerated taint {other: }",
        &helps_not,
    );
}

/// SCHED-15, SCHED-50, SCHED-51: every short resource of a node is listed.
#[test]
fn sched_51_every_short_resource_is_told() {
    let none = format!("3 {NO_VICTIMS}");
    let check = |resources: Value, reasons: &str| {
        says(same(json!({})), &json!({"resources": resources}), reasons, &none);
    };
    check(json!({"requests": {"memory": "100Gi"}}), "3 Insufficient memory");
    check(
        json!({"requests": {"cpu": "100", "memory": "100Gi"}}),
        "3 Insufficient cpu, 3 Insufficient memory",
    );
    check(
        json!({"requests": {"memory": "100Gi"}, "limits": {"memory": "100Gi", "example.com/foo": "1"}}),
        "3 Insufficient example.com/foo, 3 Insufficient memory",
    );
    check(json!({"requests": {"ephemeral-storage": "1000Gi"}}), "3 Insufficient ephemeral-storage");
}

/// SCHED-10, SCHED-13, SCHED-51: cordons and selectors, and which of two reasons is told.
#[test]
fn sched_51_the_first_filter_that_fails_is_told() {
    let cordoned = json!({"unschedulable": true});
    let mismatch = "node(s) didn't match Pod's node affinity/selector";
    let selector = json!({"nodeSelector": {"disk": "ssd"}});
    says(same(json!({})), &selector, &format!("3 {mismatch}"), &format!("3 {HELPS_NOT}"));
    says(same(cordoned.clone()), &json!({}), "3 node(s) were unschedulable", &format!("3 {HELPS_NOT}"));
    says(
        [cordoned.clone(), json!({}), json!({})],
        &selector,
        &format!("1 node(s) were unschedulable, 2 {mismatch}"),
        &format!("3 {HELPS_NOT}"),
    );
    says(
        [cordoned, json!({}), json!({})],
        &memory(),
        "1 node(s) were unschedulable, 2 Insufficient memory",
        &format!("1 {HELPS_NOT}, 2 {NO_VICTIMS}"),
    );
    let affinity = |field: &str, key: &str, value: &str| {
        let term = json!({field: [{"key": key, "operator": "In", "values": [value]}]});
        let required = json!({"nodeSelectorTerms": [term]});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
    };
    let zone = affinity("matchExpressions", "zone", "z");
    says(same(json!({})), &zone, &format!("3 {mismatch}"), &format!("3 {HELPS_NOT}"));
    says(
        same(json!({})),
        &affinity("matchFields", "metadata.name", "absent"),
        "3 node(s) didn't satisfy plugin(s) [NodeAffinity]",
        &format!("3 {HELPS_NOT}"),
    );
}

/// SCHED-52, SCHED-54, SCHED-55: no node, then one; and each kind of change that makes room.
#[test]
fn sched_55_whatever_makes_room_rescues_a_pending_pod() {
    let (_dir, plane) = start(&[]);
    let admin = &plane.admin;
    admin.post(PODS, &strict("early", &json!({}))).is(201);
    assert_eq!(refused(admin, "early"), "no nodes available to schedule pods");
    add(admin, "a", &json!({}));
    assert_eq!(bound(admin, "early"), "a");
    let events = "/api/v1/namespaces/default/events";
    let told = |event: &Value| event["involvedObject"]["name"] == "early" && event["reason"] == "Scheduled";
    let event = admin.until(events, PATIENCE, told);
    assert_eq!(event["type"], "Normal");
    assert_eq!(event["message"], "Successfully assigned default/early to a");

    let patch = |body: Value| drop(admin.merge(&format!("{NODES}/a"), &body).is(200));
    let waits = |name: &str, spec: Value| {
        admin.post(PODS, &strict(name, &spec)).is(201);
        refused(admin, name);
    };
    waits("label", json!({"nodeSelector": {"disk": "ssd"}}));
    patch(json!({"metadata": {"labels": {"disk": "ssd"}}}));
    assert_eq!(bound(admin, "label"), "a");
    patch(json!({"spec": {"unschedulable": true}}));
    waits("cordon", json!({}));
    patch(json!({"spec": {"unschedulable": null}}));
    assert_eq!(bound(admin, "cordon"), "a");
    patch(json!({"spec": {"taints": [taint("broken", "fan", "NoSchedule")]}}));
    waits("taint", json!({}));
    patch(json!({"spec": {"taints": null}}));
    assert_eq!(bound(admin, "taint"), "a");
    // All of the cpu is taken, to the unit; a pod goes and the next fits.
    admin.post(PODS, &strict("whole", &json!({"resources": {"requests": {"cpu": "4"}}}))).is(201);
    assert_eq!(bound(admin, "whole"), "a");
    waits("resource", json!({"resources": {"requests": {"cpu": "1m"}}}));
    let now = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
    admin.send("DELETE", &format!("{PODS}/whole"), "application/json", now.to_string()).is(200);
    assert_eq!(bound(admin, "resource"), "a");
}

/// SCHED-04, SCHED-05, SCHED-15, SCHED-19, SCHED-21: whose pods, which figures.
#[test]
fn sched_15_what_is_free_is_given_to_the_unit() {
    let (_dir, plane) = start(&[("a", json!({}))]);
    let admin = &plane.admin;
    let cpu = |amount: &str| json!({"resources": {"requests": {"cpu": amount}}});
    admin.post(PODS, &strict("one", &cpu("2500m"))).is(201);
    assert_eq!(bound(admin, "one"), "a");
    admin.post(PODS, &strict("over", &cpu("1501m"))).is(201);
    assert!(refused(admin, "over").starts_with("0/1 nodes are available: 1 Insufficient cpu."));
    admin.post(PODS, &strict("rest", &cpu("1.5"))).is(201);
    assert_eq!(bound(admin, "rest"), "a");

    // Created with a node it passes no scheduler, full or not; another scheduler's is left alone.
    let mut placed = strict("placed", &cpu("3"));
    placed["spec"]["nodeName"] = json!("a");
    admin.post(PODS, &placed).is(201);
    let mut other = strict("other", &json!({}));
    other["spec"]["schedulerName"] = json!("strict2");
    let made = admin.post(PODS, &other).is(201);
    // A pod that comes later was looked at, and these two were not.
    admin.post(PODS, &strict("later", &cpu("1m"))).is(201);
    refused(admin, "later");
    assert_eq!(admin.get(&format!("{PODS}/other")).is(200), made);
    assert_eq!(scheduled(&made), Value::Null);
    let events = admin.get("/api/v1/namespaces/default/events").is(200);
    let about = |name: &str| {
        events["items"].as_array().unwrap().iter().any(|one| one["involvedObject"]["name"] == name)
    };
    assert!(about("later") && !about("placed") && !about("other"), "{events}");
}
