//! Two control planes as processes on one etcd, all well.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::etcd::Etcd;
use crate::http::{call, get, watch};
use crate::support::{Process, command};

pub const PODS: &str = "/api/v1/namespaces/default/pods";
pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/control-plane";
/// Times of election short enough for a test, and long enough that a leader keeps its lease on a busy machine.
pub const SHORT: [&str; 3] = [
    "--leader-elect-lease-duration=8s",
    "--leader-elect-renew-deadline=7s",
    "--leader-elect-retry-period=500ms",
];

/// A control plane, with the directory that goes with it.
pub struct Plane {
    pub process: Process,
    pub url: String,
    _dir: tempfile::TempDir,
}

/// Starts a control plane on an etcd. Nodes keep without a board for the time of a test.
pub fn plane(etcd: &Etcd, flags: &[&str]) -> Plane {
    judging_plane(etcd, &[&["--not-ready-timeout=300s"], flags].concat())
}

/// As [`plane`], with no time in which nodes keep but what the flags say.
pub fn judging_plane(etcd: &Etcd, flags: &[&str]) -> Plane {
    let dir = tempfile::tempdir().unwrap();
    let mut start = command(dir.path());
    start.args(["--no-auth", "--store", "etcd", "--etcd-servers", &etcd.url()]);
    start.args(flags);
    let process = Process::start(start);
    Plane { url: process.url.clone(), process, _dir: dir }
}

pub fn signal(plane: &Plane, name: &str) {
    let sent =
        Command::new("kill").args([&format!("-{name}"), &plane.process.child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// A node that offers so many places of 10Ki.
pub fn join(url: &str, name: &str, places: usize) {
    call(url, "POST", "/api/v1/nodes", &json!({"metadata": {"name": name}}), 201);
    let offers = json!({"memory": format!("{}Ki", places * 10), "pods": "1000"});
    let ready = json!({"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"allocatable": offers, "capacity": offers, "conditions": [ready]}});
    call(url, "PATCH", &format!("/api/v1/nodes/{name}/status"), &status, 200);
}

/// A pod's spec that needs one place.
pub fn spec() -> Value {
    let resources = json!({"requests": {"memory": "10Ki"}});
    json!({"containers": [{"name": "c", "image": "rigor.dev/pause", "resources": resources}]})
}

pub fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": spec()})
}

/// Reads a path again whenever something under `follow` changes, until `holds`.
#[track_caller]
pub fn until(url: &str, path: &str, follow: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let list = get(url, follow);
    let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut shown = get(url, path);
    let joint = if follow.contains('?') { '&' } else { '?' };
    let mut events =
        watch(url, &format!("{follow}{joint}watch=1&resourceVersion={version}&timeoutSeconds=240"));
    while !holds(&shown) {
        assert!(events.next().is_some(), "{path} never became so: {shown}");
        shown = get(url, path);
    }
    shown
}

pub fn bound(list: &Value) -> usize {
    list["items"].as_array().unwrap().iter().filter(|pod| pod["spec"]["nodeName"].is_string()).count()
}

#[test]
fn ghost_06_etcd_shows_the_decision_where_kubernetes_keeps_it() {
    let Some(etcd) = Etcd::start() else { return };
    let one = plane(&etcd, &[]);
    join(&one.url, "board-1", 5);
    let mut unbound = pod("by-hand");
    unbound["spec"]["schedulerName"] = json!("nobody");
    call(&one.url, "POST", PODS, &unbound, 201);
    let binding = json!({"metadata": {"name": "by-hand"}, "target": {"kind": "Node", "name": "board-1"}});
    call(&one.url, "POST", &format!("{PODS}/by-hand/binding"), &binding, 201);
    call(&one.url, "POST", PODS, &pod("scheduled"), 201);
    for name in ["by-hand", "scheduled"] {
        let key = format!("/registry/pods/default/{name}");
        let stored: Value =
            serde_json::from_str(&etcd.etcdctl(&["get", &key, "--print-value-only"])).unwrap();
        assert_eq!(stored["spec"]["nodeName"], "board-1", "{stored}");
        assert_eq!((&stored["kind"], &stored["apiVersion"]), (&json!("Pod"), &json!("v1")));
        assert_eq!(stored["metadata"]["resourceVersion"], Value::Null, "{stored}");
        let key: Value = serde_json::from_str(&etcd.etcdctl(&["get", &key, "-w", "json"])).unwrap();
        let shown = get(&one.url, &format!("{PODS}/{name}"));
        assert_eq!(shown["metadata"]["resourceVersion"], key["kvs"][0]["mod_revision"].to_string());
    }
    let keys = etcd.etcdctl(&["get", "/registry/", "--prefix", "--keys-only"]);
    for key in [
        "/registry/minions/board-1",
        "/registry/namespaces/default",
        "/registry/serviceaccounts/default/default",
        "/registry/leases/kube-system/control-plane",
    ] {
        assert!(keys.lines().any(|line| line == key), "{key} in {keys}");
    }
}

#[test]
fn sched_56_two_control_planes_book_no_place_and_no_address_twice() {
    const PLACES: usize = 12;
    let Some(etcd) = Etcd::start() else { return };
    let planes = [plane(&etcd, &SHORT), plane(&etcd, &SHORT)];
    join(&planes[1].url, "board-1", PLACES);
    // Together they ask for twice of what there is, at the same time.
    std::thread::scope(|scope| {
        for (n, plane) in planes.iter().enumerate() {
            scope.spawn(move || {
                for m in 0..PLACES {
                    call(&plane.url, "POST", PODS, &pod(&format!("p-{n}-{m}")), 201);
                    let service =
                        json!({"metadata": {"generateName": "s-"}, "spec": {"ports": [{"port": 80}]}});
                    call(&plane.url, "POST", "/api/v1/namespaces/default/services", &service, 201);
                }
            });
        }
    });
    let pods = until(&planes[0].url, PODS, PODS, |list| bound(list) == PLACES);
    assert_eq!(pods["items"].as_array().unwrap().len(), 2 * PLACES);
    let services = get(&planes[1].url, "/api/v1/namespaces/default/services");
    let made = |service: &&Value| service["metadata"]["name"].as_str().unwrap().starts_with("s-");
    let services: Vec<&Value> = services["items"].as_array().unwrap().iter().filter(made).collect();
    let addresses: BTreeSet<&str> =
        services.iter().map(|service| service["spec"]["clusterIP"].as_str().unwrap()).collect();
    assert_eq!((services.len(), addresses.len()), (2 * PLACES, 2 * PLACES));
    let uids = pods["items"].as_array().unwrap().iter().chain(services.iter().copied());
    let uids: BTreeSet<&str> = uids.map(|object| object["metadata"]["uid"].as_str().unwrap()).collect();
    assert_eq!(uids.len(), 4 * PLACES);
    // A place that becomes free is given away once, by whoever leads; also when the other one is asked.
    let name = |bound: bool| {
        let is = |pod: &&Value| pod["spec"]["nodeName"].is_string() == bound;
        pods["items"].as_array().unwrap().iter().find(is).unwrap()["metadata"]["name"].as_str().unwrap()
    };
    let path = format!("{PODS}/{}", name(true));
    call(&planes[1].url, "DELETE", &path, &json!({"gracePeriodSeconds": 0}), 200);
    let pods = until(&planes[1].url, PODS, PODS, |list| bound(list) == PLACES);
    assert_eq!(pods["items"].as_array().unwrap().len(), 2 * PLACES - 1);
}
