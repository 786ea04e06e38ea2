//! GHOST-06: with the etcd store a decision can be read from etcd itself, under Kubernetes' key.

#[path = "../support/etcd.rs"]
mod server;

use serde_json::json;

use self::server::Etcd;
use crate::plane::{Plane, binding, node, pod, pod_for_nobody};

/// Elections in seconds, not in Kubernetes' quarter of a minute; not so few that a busy machine loses its leader.
const ELECT: &[&str] = &[
    "--no-auth",
    "--leader-elect",
    "--leader-elect-lease-duration",
    "8s",
    "--leader-elect-renew-deadline",
    "7s",
    "--leader-elect-retry-period",
    "500ms",
];
/// So many seconds a watch goes on at most: what it waits for comes when it comes, on whatever machine.
const PATIENCE: u32 = 240;
const PODS: &str = "/api/v1/namespaces/default/pods";

/// The flags of a control plane on an etcd.
fn on(url: &str) -> [&str; 4] {
    ["--store", "etcd", "--etcd-servers", url]
}

fn keys(etcd: &Etcd, prefix: &str) -> Vec<String> {
    let said = etcd.etcdctl(&["get", prefix, "--prefix", "--keys-only"]);
    said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// GHOST-06
#[test]
fn etcdctl_shows_where_a_pod_went() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::open(Vec::new()) else { return };
    let plane = Plane::plain(dir.path(), &on(&etcd.url()));
    node(&plane.admin, "board-by-hand");
    plane.admin.post(PODS, &pod_for_nobody("byhand")).is(201);
    let key = "/registry/pods/default/byhand";
    let before = etcd.etcdctl(&["get", key]);
    assert!(before.starts_with(key), "{before:?}");
    assert!(!before.contains("board-by-hand"), "{before}");
    plane.admin.post(&format!("{PODS}/byhand/binding"), &binding("byhand", "board-by-hand")).is(201);
    let after = etcd.etcdctl(&["get", key]);
    assert!(after.contains("board-by-hand"), "{after}");
    // The built-in scheduler's decision as well, and it outlives the control plane.
    plane.admin.post(PODS, &pod("built-in")).is(201);
    let key = "/registry/pods/default/built-in";
    assert!(etcd.etcdctl(&["get", key]).contains("board-by-hand"));
    let plane = plane.kill_and_start();
    for name in ["byhand", "built-in"] {
        let read = plane.admin.get(&format!("{PODS}/{name}")).is(200);
        assert_eq!(read["spec"]["nodeName"], "board-by-hand");
    }
    plane.admin.delete(&format!("{PODS}/built-in?gracePeriodSeconds=0")).is(200);
    assert_eq!(etcd.etcdctl(&["get", key]), "");
}

/// GHOST-06: the keys are those of Kubernetes.
#[test]
fn keys_are_laid_out_as_kubernetes_does() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::open(Vec::new()) else { return };
    let plane = Plane::plain(dir.path(), &on(&etcd.url()));
    let admin = &plane.admin;
    node(admin, "n");
    let named =
        |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}});
    admin.post("/api/v1/namespaces/default/configmaps", &named("v1", "ConfigMap")).is(201);
    admin.post("/api/v1/namespaces/default/secrets", &named("v1", "Secret")).is(201);
    let mut deployment = named("apps/v1", "Deployment");
    deployment["spec"] = json!({"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "rigor.dev/pause"}]}}});
    admin.post("/apis/apps/v1/namespaces/default/deployments", &deployment).is(201);
    let mut service = named("v1", "Service");
    service["spec"] = json!({"ports": [{"port": 80}]});
    admin.post("/api/v1/namespaces/default/services", &service).is(201);
    for key in [
        "/registry/minions/n",
        "/registry/leases/kube-node-lease/n",
        "/registry/namespaces/default",
        "/registry/configmaps/default/x",
        "/registry/secrets/default/x",
        "/registry/serviceaccounts/default/default",
        "/registry/deployments/default/x",
        "/registry/services/specs/default/x",
    ] {
        assert_eq!(keys(&etcd, key), [key], "of {:?}", keys(&etcd, "/registry/"));
    }
}

/// Two control planes on one etcd: what one acknowledged the other shows, its watches see it, and of bindings sent to both
/// at once one wins. Killing one leaves the other serving everything.
#[test]
fn two_control_planes_are_one_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::open(Vec::new()) else { return };
    let url = etcd.url();
    let flags = [&on(&url)[..], ELECT].concat();
    let [one, two] = ["one", "two"].map(|name| {
        let data = dir.path().join(name);
        std::fs::create_dir(&data).unwrap();
        Plane::plain(&data, &flags)
    });
    node(&one.admin, "node-a");
    node(&two.admin, "node-b");
    let start = two.admin.get(PODS).is(200)["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut watch = two.admin.watch(&format!("{PODS}?resourceVersion={start}"), PATIENCE);
    for round in 0..10 {
        let name = format!("p{round}");
        let made = one.admin.post(PODS, &pod_for_nobody(&name)).is(201);
        assert_eq!(
            two.admin.get(&format!("{PODS}/{name}")).is(200)["metadata"]["uid"],
            made["metadata"]["uid"]
        );
        let seen = watch.find(|event| event["object"]["metadata"]["name"] == name.as_str()).unwrap();
        assert_eq!(seen["type"], "ADDED");
        let codes: Vec<u16> = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..8)
                .map(|n| {
                    let (admin, node) =
                        if n % 2 == 0 { (&one.admin, "node-a") } else { (&two.admin, "node-b") };
                    let path = format!("{PODS}/{name}/binding");
                    let body = binding(&name, node);
                    scope.spawn(move || admin.post(&path, &body).code)
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        assert_eq!(codes.iter().filter(|&&code| code == 201).count(), 1, "{codes:?}");
        assert_eq!(codes.iter().filter(|&&code| code == 409).count(), 7, "{codes:?}");
        let where_to =
            |plane: &Plane| plane.admin.get(&format!("{PODS}/{name}")).is(200)["spec"]["nodeName"].clone();
        assert_eq!(where_to(&one), where_to(&two));
    }
    drop(one);
    for round in 0..10 {
        two.admin.get(&format!("{PODS}/p{round}")).is(200);
    }
    two.admin.post(PODS, &pod_for_nobody("after")).is(201);
}

/// Controllers run once: with both up, a Deployment has its pods and no more; with the leader killed, the other takes over.
#[test]
fn controllers_run_once_and_move_when_their_leader_dies() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::open(Vec::new()) else { return };
    let url = etcd.url();
    let flags = [&on(&url)[..], ELECT].concat();
    let mut planes: Vec<Plane> = ["one", "two"]
        .map(|name| {
            let data = dir.path().join(name);
            std::fs::create_dir(&data).unwrap();
            Plane::plain(&data, &flags)
        })
        .into();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "rigor.dev/pause"}]}}}});
    planes[1].admin.post(deployments, &web).is(201);
    planes[1].admin.until(deployments, PATIENCE, |web| web["status"]["replicas"] == 5);
    // Whoever leads, a pass more makes no pod more.
    let pods = "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb";
    planes[0].admin.watch(pods, 4).for_each(drop);
    assert_eq!(planes[0].admin.get(pods).is(200)["items"].as_array().unwrap().len(), 5);
    for killed in 0..2 {
        // The leader may be either: each is killed in turn, and what is left has to do the work.
        let dead = planes.remove(0);
        let data = dir.path().join(format!("next-{killed}"));
        drop(dead);
        let scale = json!({"spec": {"replicas": 6 + killed}});
        planes[0].admin.merge(&format!("{deployments}/web"), &scale).is(200);
        planes[0].admin.until(deployments, PATIENCE, |web| web["status"]["replicas"] == 6 + killed);
        assert_eq!(planes[0].admin.get(pods).is(200)["items"].as_array().unwrap().len(), 6 + killed);
        std::fs::create_dir(&data).unwrap();
        planes.push(Plane::plain(&data, &flags));
    }
}
