//! GHOST-06: with the etcd store a decision can be read from etcd itself, under Kubernetes' key.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::kubectl::have;
use crate::plane::{Plane, binding, node, pod, pod_for_nobody};

/// Elections in seconds, not in Kubernetes' quarter of a minute.
const ELECT: &[&str] = &[
    "--no-auth",
    "--leader-elect",
    "--leader-elect-lease-duration",
    "3s",
    "--leader-elect-renew-deadline",
    "2s",
    "--leader-elect-retry-period",
    "500ms",
];
const PODS: &str = "/api/v1/namespaces/default/pods";

/// An etcd of one member; killed when dropped.
struct Etcd {
    child: Child,
    url: String,
}

impl Etcd {
    /// Starts it; nothing where it is not installed.
    fn start(dir: &Path) -> Option<Self> {
        if !have("etcd", &["--version"]) || !have("etcdctl", &["version"]) {
            return None;
        }
        let free = || format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
        let (url, peer) = (free(), free());
        let log = std::fs::File::create(dir.join("etcd.log")).unwrap();
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(dir.join("etcd"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let etcd = Self { child, url };
        // Each attempt waits by itself until etcd answers or its time is over.
        let healthy =
            (0..20).any(|_| etcd.ctl(&["endpoint", "health", "--command-timeout=2s", "--dial-timeout=2s"]).0);
        assert!(healthy, "{}", std::fs::read_to_string(dir.join("etcd.log")).unwrap());
        Some(etcd)
    }

    fn ctl(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &self.url])
            .args(arguments)
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn keys(&self, prefix: &str) -> Vec<String> {
        let said = self.ctl(&["get", prefix, "--prefix", "--keys-only"]).1;
        said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    fn flags(&self) -> [&str; 4] {
        ["--store", "etcd", "--etcd-servers", &self.url]
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// GHOST-06
#[test]
fn etcdctl_shows_where_a_pod_went() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(dir.path()) else { return };
    let plane = Plane::plain(dir.path(), &etcd.flags());
    node(&plane.admin, "board-by-hand");
    plane.admin.post(PODS, &pod_for_nobody("byhand")).is(201);
    let key = "/registry/pods/default/byhand";
    let before = etcd.ctl(&["get", key]).1;
    assert!(before.starts_with(key), "{before:?}");
    assert!(!before.contains("board-by-hand"), "{before}");
    plane.admin.post(&format!("{PODS}/byhand/binding"), &binding("byhand", "board-by-hand")).is(201);
    let after = etcd.ctl(&["get", key]).1;
    assert!(after.contains("board-by-hand"), "{after}");
    // The built-in scheduler's decision as well, and it outlives the control plane.
    plane.admin.post(PODS, &pod("built-in")).is(201);
    let key = "/registry/pods/default/built-in";
    assert!(etcd.ctl(&["get", key]).1.contains("board-by-hand"));
    let plane = plane.kill_and_start();
    for name in ["byhand", "built-in"] {
        let read = plane.admin.get(&format!("{PODS}/{name}")).is(200);
        assert_eq!(read["spec"]["nodeName"], "board-by-hand");
    }
    plane.admin.delete(&format!("{PODS}/built-in?gracePeriodSeconds=0")).is(200);
    assert_eq!(etcd.ctl(&["get", key]).1, "");
}

/// GHOST-06: the keys are those of Kubernetes.
#[test]
fn keys_are_laid_out_as_kubernetes_does() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(dir.path()) else { return };
    let plane = Plane::plain(dir.path(), &etcd.flags());
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
        assert_eq!(etcd.keys(key), [key], "of {:?}", etcd.keys("/registry/"));
    }
}

/// Two control planes on one etcd: what one acknowledged the other shows, its watches see it, and of bindings sent to both
/// at once one wins. Killing one leaves the other serving everything.
#[test]
fn two_control_planes_are_one_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(dir.path()) else { return };
    let flags = [&etcd.flags()[..], ELECT].concat();
    let [one, two] = ["one", "two"].map(|name| {
        let data = dir.path().join(name);
        std::fs::create_dir(&data).unwrap();
        Plane::plain(&data, &flags)
    });
    node(&one.admin, "node-a");
    node(&two.admin, "node-b");
    let start = two.admin.get(PODS).is(200)["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut watch = two.admin.watch(&format!("{PODS}?resourceVersion={start}"), 60);
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
    let Some(etcd) = Etcd::start(dir.path()) else { return };
    let flags = [&etcd.flags()[..], ELECT].concat();
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
    planes[1].admin.until(deployments, 40, |web| web["status"]["replicas"] == 5);
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
        planes[0].admin.until(deployments, 60, |web| web["status"]["replicas"] == 6 + killed);
        assert_eq!(planes[0].admin.get(pods).is(200)["items"].as_array().unwrap().len(), 6 + killed);
        std::fs::create_dir(&data).unwrap();
        planes.push(Plane::plain(&data, &flags));
    }
}
