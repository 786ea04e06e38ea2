//! Trials on a control plane that somebody else runs: played by the reference control plane with TLS and roles, with
//! processes as the boards that are there already. What matters most is what a trial leaves behind: nothing.

use rigor_model::{Capability, Constant, Constants, Rig};
use rigor_rigs::binaries::{Artifact, find};
use rigor_rigs::clock::Clock;
use rigor_rigs::external::Cluster;
use rigor_rigs::process::{Input, Listener, Process, Stream};
use rigor_rigs::{ApiAnswer, ApiRequest, World};
use rigor_trace::{Fact, Micros};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The token of the plane's owner, who looks at it without the harness.
const OWNER: &str = "owner-token";

#[derive(Debug, Default)]
struct Heard(Mutex<String>);

impl Listener for Heard {
    fn line(&self, _: Stream, text: &str) {
        let mut heard = self.0.lock().unwrap();
        heard.push_str(text);
        heard.push('\n');
    }
    fn exited(&self, _: i32, _: bool) {}
}

/// Somebody's cluster.
struct Plane {
    boards: Vec<Process>,
    server: Process,
    plain: String,
    dir: tempfile::TempDir,
}

impl Plane {
    fn start(flags: &[&str], boards: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut tokens = format!(
            "{OWNER},owner,,system:masters\nweak-token,weak,,\nplain-token,plain,,\ndocumented-token,documented,,\n"
        );
        for board in boards {
            tokens.push_str(&format!("{board}-token,system:node:{board},,system:nodes\n"));
        }
        std::fs::write(dir.path().join("tokens.csv"), tokens).unwrap();
        let mut command = Command::new(find(Artifact::ControlPlane).unwrap());
        command
            .args(["--listen", "127.0.0.1:0", "--plain-http-listen", "127.0.0.1:0", "--store", "memory"])
            .args([
                "--node-monitor-period",
                "500ms",
                "--reconcile-interval",
                "1s",
                "--not-ready-timeout",
                "1s",
            ])
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .arg("--token-auth-file")
            .arg(dir.path().join("tokens.csv"))
            .arg("--admin-kubeconfig")
            .arg(dir.path().join("admin.kubeconfig"))
            .args(flags);
        let heard = Arc::new(Heard::default());
        let server = Process::start(command, Input::Nothing, heard.clone()).unwrap();
        let plain = until("the control plane serves", || {
            let heard = heard.0.lock().unwrap();
            let line = heard.lines().find_map(|line| line.split_once("plain HTTP on http://"))?;
            Some(line.1.trim().to_owned())
        });
        let mut plane = Self { boards: Vec::new(), server, plain, dir };
        for board in boards {
            let config = json!({
                "nodeName": board, "server": format!("http://{}", plane.plain), "token": format!("{board}-token"),
                "board": {"name": "host", "arch": "riscv32imc"}, "capabilities": {"gpio": [0, 1]},
            });
            let path = plane.file(&format!("{board}.json"));
            std::fs::write(&path, config.to_string()).unwrap();
            let mut command = Command::new(find(Artifact::KubeletHost).unwrap());
            command.arg("--config").arg(path);
            plane.boards.push(Process::start(command, Input::Nothing, Arc::new(Heard::default())).unwrap());
            until("the board is Ready", || {
                let node = plane.get(&format!("/api/v1/nodes/{board}"));
                let conditions = node["status"]["conditions"].as_array()?.clone();
                conditions.iter().find(|one| one["type"] == "Ready" && one["status"] == "True").map(drop)
            });
        }
        plane
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Asks as the owner, over a socket of its own.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut socket = TcpStream::connect(&self.plain).unwrap();
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {OWNER}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let (head, rest) = text.split_once("\r\n\r\n").unwrap();
        if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            return serde_json::from_str(rest).unwrap_or_default();
        }
        let (mut whole, mut rest) = (String::new(), rest);
        while let Some((size, more)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).unwrap();
            whole.push_str(&more[..size]);
            rest = more[size..].trim_start_matches("\r\n");
        }
        serde_json::from_str(&whole).unwrap_or_default()
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, None)
    }

    fn make(&self, path: &str, object: Value) {
        let made = self.ask("POST", path, Some(&object));
        assert!(made["kind"] != "Status", "{path}: {made}");
    }

    /// What an owner has: a workload, settings, secrets, roles, nodes that nobody reports.
    fn populate(&self) {
        self.make(
            "/api/v1/namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        );
        until("the namespace takes pods", || {
            (self.get("/api/v1/namespaces/shop/serviceaccounts/default")["kind"] == "ServiceAccount")
                .then_some(())
        });
        let shop = |plural: &str| format!("/api/v1/namespaces/shop/{plural}");
        self.make(&shop("configmaps"), json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prices"}, "data": {"a": "1"}}));
        self.make(
            &shop("secrets"),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "till"}}),
        );
        self.make(&shop("services"), json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}));
        self.make(&shop("pods"), json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"nodeName": "ghost", "containers": [{"name": "main", "image": "x"}]}}));
        self.make("/api/v1/nodes", json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost", "labels": {"of": "shop"}}}));
        self.make("/apis/rbac.authorization.k8s.io/v1/clusterroles", json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "clerk"}, "rules": []}));
        until("nobody reports the ghost any more", || {
            let taints = self.get("/api/v1/nodes/ghost")["spec"]["taints"].as_array()?.clone();
            taints.iter().any(|taint| taint["effect"] == "NoExecute").then_some(())
        });
    }

    /// Every object of every resource with its resourceVersion; of what changes by itself (nodes report, leases are renewed,
    /// endpoints are computed) what a writer would change.
    fn everything(&self) -> BTreeMap<String, String> {
        let mut groups = vec!["/api/v1".to_owned()];
        for group in self.get("/apis")["groups"].as_array().unwrap() {
            groups.push(format!("/apis/{}", group["preferredVersion"]["groupVersion"].as_str().unwrap()));
        }
        let mut all = BTreeMap::new();
        for group in groups {
            for resource in self.get(&group)["resources"].as_array().unwrap() {
                let name = resource["name"].as_str().unwrap();
                let listed = resource["verbs"].as_array().unwrap().iter().any(|verb| verb == "list");
                if name.contains('/') || !listed {
                    continue;
                }
                for item in self.get(&format!("{group}/{name}"))["items"].as_array().into_iter().flatten() {
                    let metadata = &item["metadata"];
                    let own = match name {
                        "nodes" => {
                            format!("{} {} {}", metadata["labels"], metadata["annotations"], item["spec"])
                        }
                        "leases" => format!("{} {}", metadata["uid"], metadata["labels"]),
                        "endpoints" | "endpointslices" => metadata["labels"].to_string(),
                        _ => format!("{} {}", metadata["uid"], metadata["resourceVersion"]),
                    };
                    let key = format!("{group}/{name} {}/{}", metadata["namespace"], metadata["name"]);
                    all.insert(key, own);
                }
            }
        }
        assert!(all.len() > 30, "a populated cluster: {all:?}");
        all
    }

    fn rig_with(&self, spec: &str) -> Rig {
        let source = format!(
            "apiVersion: rigor.dev/v1alpha1\nkind: Rig\nmetadata: {{name: theirs}}\nspec:\n  kind: external\n{spec}"
        );
        Rig::parse("theirs.yaml", &source).unwrap_or_else(|mistakes| panic!("{mistakes:#}"))
    }

    fn rig(&self, boards: &str) -> Rig {
        self.rig_with(&format!(
            "  kubeconfig: {}\n  boards: {{{boards}}}\n  constants: {{{TIMES}}}\n",
            self.file("admin.kubeconfig").display()
        ))
    }

    /// A kubeconfig for another user.
    fn kubeconfig(&self, name: &str, user: &str) -> PathBuf {
        let server = std::fs::read_to_string(self.file("admin.kubeconfig")).unwrap();
        let server = server.split("https://").nth(1).unwrap();
        let server: String =
            server.chars().take_while(|c| !c.is_whitespace() && !"\"',}".contains(*c)).collect();
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: k, cluster: {{server: \"https://{server}\", insecure-skip-tls-verify: true}}}}]\nusers: [{{name: u, user: {user}}}]\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
        );
        let path = self.file(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

const TIMES: &str = "leaseDuration: 15s, renewInterval: 5s, noExecuteDelay: 15s, checkPeriod: 500ms, retryPeriod: 1s, controllerPeriod: 1s, slack: 500ms";

/// Waits for a value.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let clock = Clock::start();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(clock.now() < Micros(90_000_000), "{what}: not within 90 s");
        Clock::sleep(Duration::from_millis(20));
    }
}

fn open(cluster: &Cluster, boards: &[&str]) -> Box<dyn World> {
    let boards: Vec<String> = boards.iter().map(|board| (*board).to_owned()).collect();
    let mut world =
        cluster.open(&cluster.rig().constants, &boards).unwrap_or_else(|error| panic!("{}", error.whole()));
    world.record(Fact::TrialStarted {
        scenario: "s".into(),
        rig: "theirs".into(),
        case: None,
        seed: 1,
        wall: None,
        constants: Constants::default(),
        faults: rigor_model::FaultLevel::default(),
    });
    world
}

fn send(world: &mut dyn World, method: &str, path: &str, body: Value) -> ApiAnswer {
    let mut request = ApiRequest::new(method, path, Some(&body).filter(|body| !body.is_null()));
    if method == "PATCH" {
        request = request.header("content-type", "application/merge-patch+json");
    }
    world.request(request)
}

/// What scenarios do, and what none may.
fn act(world: &mut dyn World) {
    let own = format!("/api/v1/namespaces/{}", world.history().namespace());
    assert!(own.contains("/rigor-"), "{own}");
    let kitchen = world.history().node_of("a").to_owned();
    let pod = |name: &str, node: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "main", "image": "rigor.dev/pause"}]}});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "n1", "namespace": "kube-node-lease"}, "spec": {"holderIdentity": "n1", "leaseDurationSeconds": 2, "renewTime": "2026-01-01T00:00:00.000000Z"}});
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"memory": "1Mi"}}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"k": "v"}}, "template": {"metadata": {"labels": {"k": "v"}}, "spec": {"containers": [{"name": "main", "image": "rigor.dev/pause"}]}}}});
    let (_, namespace) = own.rsplit_once('/').unwrap();
    for (method, path, body, expected) in [
        ("POST", "/api/v1/nodes".to_owned(), node, 201),
        ("POST", leases.to_owned(), lease, 201),
        ("PATCH", "/api/v1/nodes/n1/status".to_owned(), ready, 200),
        ("POST", format!("{own}/pods"), pod("far", "n1"), 201),
        ("POST", format!("{own}/pods"), pod("near", &kitchen), 201),
        ("POST", format!("/apis/apps/v1/namespaces/{namespace}/deployments"), deployment, 201),
        (
            "PATCH",
            format!("/api/v1/nodes/{kitchen}"),
            json!({"metadata": {"labels": {"rigor": "was-here"}}, "spec": {"unschedulable": true}}),
            200,
        ),
        // None of these leaves the harness.
        ("POST", "/api/v1/namespaces/shop/pods".to_owned(), pod("intruder", "n1"), 0),
        ("PATCH", "/api/v1/namespaces/shop/configmaps/prices".to_owned(), json!({"data": {"a": "2"}}), 0),
        ("DELETE", "/api/v1/namespaces/shop".to_owned(), Value::Null, 0),
        ("PATCH", "/api/v1/nodes/ghost".to_owned(), json!({"metadata": {"labels": {"of": "rigor"}}}), 0),
        (
            "POST",
            "/api/v1/nodes".to_owned(),
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost"}}),
            0,
        ),
        ("DELETE", "/api/v1/nodes".to_owned(), Value::Null, 0),
        ("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/clerk".to_owned(), Value::Null, 0),
        ("GET", "/api/v1/namespaces/shop/configmaps/prices".to_owned(), Value::Null, 200),
    ] {
        let answer = send(world, method, &path, body);
        assert_eq!(answer.status, expected, "{method} {path}: {answer:?}");
    }
    // The node's lease is long over: its controller writes taints and events about it.
    until("the node is Unknown, and the board runs its pod", || {
        world.wait(world.now() + Duration::from_millis(100));
        let seen = |kind: &str, wanted: &dyn Fn(&Value) -> bool| {
            world.history().records().iter().any(|record| {
                matches!(&record.fact, Fact::Object { object, .. } if object["kind"] == kind && wanted(object))
            })
        };
        let event = seen("Event", &|event| event["involvedObject"]["name"] == "n1");
        let running =
            seen("Pod", &|pod| pod["metadata"]["name"] == "near" && pod["status"]["phase"] == "Running");
        (event && running).then_some(())
    });
}

fn same(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    let gone: Vec<_> = before.iter().filter(|(key, _)| !after.contains_key(*key)).collect();
    let new: Vec<_> = after.iter().filter(|(key, _)| !before.contains_key(*key)).collect();
    let changed: Vec<_> =
        before.iter().filter(|(key, value)| after.get(*key).is_some_and(|now| now != *value)).collect();
    assert!(
        gone.is_empty() && new.is_empty() && changed.is_empty(),
        "gone {gone:?}\nnew {new:?}\nchanged {changed:?}"
    );
}

#[test]
fn a_trial_leaves_nothing_and_touches_nothing_whether_it_ends_or_panics() {
    let plane = Plane::start(&[], &["kitchen"]);
    plane.populate();
    let before = plane.everything();
    let cluster =
        Cluster::connect(&plane.rig("a: kitchen")).unwrap_or_else(|error| panic!("{}", error.whole()));
    let mut world = open(&cluster, &["a"]);
    act(world.as_mut());
    let foreign = world.history().records().iter().any(|record| {
        matches!(&record.fact, Fact::Object { object, .. } if object["metadata"]["namespace"] == "shop" || object["metadata"]["name"] == "ghost")
    });
    assert!(!foreign, "nothing of the owner's is recorded");
    world.close();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut world = open(&cluster, &["a"]);
        act(world.as_mut());
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    drop(cluster);
    same(&before, &plane.everything());
}

/// The harness of the tests below: a trial that waits for its end.
#[test]
#[ignore = "the harness that is interrupted, started by the tests below"]
fn interrupted_harness() {
    let source = std::fs::read_to_string(std::env::var("RIGOR_TEST_RIG").unwrap()).unwrap();
    let cluster = Cluster::connect(&Rig::parse("rig.yaml", &source).unwrap()).unwrap();
    let mut world = open(&cluster, &["a"]);
    act(world.as_mut());
    println!("in the midst of it");
    loop {
        world.wait(world.now() + Duration::from_secs(1));
    }
}

fn interrupted(plane: &Plane, end: impl FnOnce(&mut std::process::Child)) -> Option<i32> {
    let rig = plane.file("rig.yaml");
    let text = format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Rig\nmetadata: {{name: theirs}}\nspec:\n  kind: external\n  kubeconfig: {}\n  boards: {{a: kitchen}}\n  constants: {{{TIMES}}}\n",
        plane.file("admin.kubeconfig").display()
    );
    std::fs::write(&rig, text).unwrap();
    let mut harness = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "interrupted_harness", "--ignored", "--nocapture"])
        .env("RIGOR_TEST_RIG", &rig)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(harness.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("in the midst of it")), "the harness ended early");
    assert!(plane.get("/api/v1/nodes/n1")["kind"] == "Node");
    end(&mut harness);
    harness.wait().unwrap().code()
}

#[test]
fn a_run_that_is_interrupted_leaves_nothing() {
    let plane = Plane::start(&[], &["kitchen"]);
    plane.populate();
    let before = plane.everything();
    let code = interrupted(&plane, |harness| {
        let pid = rustix::process::Pid::from_child(harness);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    });
    assert_eq!(code, Some(143));
    same(&before, &plane.everything());
}

#[test]
fn what_a_killed_run_left_is_found_by_its_label() {
    let plane = Plane::start(&[], &["kitchen"]);
    plane.populate();
    let before = plane.everything();
    interrupted(&plane, |harness| harness.kill().unwrap());
    let left = plane.everything();
    assert!(left.len() > before.len());
    let cluster = Cluster::connect(&plane.rig("")).unwrap();
    let removed = cluster.clean().unwrap();
    for wanted in ["node n1", "changes of the Node kitchen"] {
        assert!(removed.iter().any(|what| what == wanted), "{removed:?}");
    }
    assert!(removed.iter().any(|what| what.starts_with("namespace rigor-")), "{removed:?}");
    assert_eq!(cluster.clean().unwrap(), Vec::<String>::new());
    drop(cluster);
    same(&before, &plane.everything());
}

#[test]
fn trials_of_two_runs_take_turns() {
    let plane = Plane::start(&[], &[]);
    let rig = plane.rig("");
    let (one, two) = (Cluster::connect(&rig).unwrap(), Cluster::connect(&rig).unwrap());
    let world = open(&one, &[]);
    let first = world.history().namespace().to_owned();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let world = open(&two, &[]);
            let trials = plane.get("/api/v1/namespaces?labelSelector=rigor.dev/trial")["items"]
                .as_array()
                .unwrap()
                .len();
            (world.history().namespace().to_owned(), trials)
        });
        let holder = until("the second waits", || {
            let lease =
                plane.get("/apis/coordination.k8s.io/v1/namespaces/rigor-lock/leases/rigor.dev-cluster");
            lease["spec"]["holderIdentity"].as_str().map(str::to_owned)
        });
        assert!(holder.starts_with("rigor@"), "{holder}");
        // Four looks of whoever waits later the lock is where it was, and so is the trial that it protects.
        let clock = Clock::start();
        while clock.now() < Micros(2_000_000) {
            let lease =
                plane.get("/apis/coordination.k8s.io/v1/namespaces/rigor-lock/leases/rigor.dev-cluster");
            assert_eq!(lease["spec"]["holderIdentity"], *holder, "the second took over");
            assert_eq!(plane.get(&format!("/api/v1/namespaces/{first}"))["kind"], "Namespace");
            Clock::sleep(Duration::from_millis(20));
        }
        world.close();
        drop(one);
        let (second, trials) = second.join().unwrap();
        assert_ne!(first, second);
        assert_eq!(trials, 1, "one trial at a time");
    });
    drop(two);
    assert_eq!(plane.get("/api/v1/namespaces/rigor-lock")["kind"], "Status", "the lock is gone as well");
}

#[test]
fn a_cluster_is_asked_for_its_constants_and_contradicted() {
    let plane = Plane::start(&["--eviction-timeout", "20s"], &["kitchen"]);
    let rig = plane.rig_with(&format!(
        "  kubeconfig: {}\n  boards: {{a: kitchen}}\n  constants: {{renewInterval: 5s, noExecuteDelay: 15s, checkPeriod: 500ms, retryPeriod: 1s, controllerPeriod: 1s, slack: 500ms}}\n",
        plane.file("admin.kubeconfig").display()
    ));
    let before = plane.everything();
    let asked = Cluster::connect(&rig).unwrap().rig().clone();
    assert_eq!(asked.constants.get(Constant::TolerationSeconds), Duration::from_secs(20));
    assert_eq!(asked.constants.get(Constant::LeaseDuration), Duration::from_secs(15));
    same(&before, &plane.everything());
    let told = |constant: Constant, value: u64, nodes: &[(&str, &str)]| {
        let mut rig = rig.clone();
        rig.constants.set(constant, Duration::from_secs(value));
        let external = rig.external.as_mut().unwrap();
        external.probed.remove(&constant);
        external.nodes =
            nodes.iter().map(|(letter, node)| ((*letter).to_owned(), (*node).to_owned())).collect();
        Cluster::connect(&rig).unwrap_err().what
    };
    assert_eq!(
        told(Constant::TolerationSeconds, 300, &[]),
        "the rig file says that tolerationSeconds is 5m, and its admission says 20s"
    );
    assert_eq!(
        told(Constant::LeaseDuration, 40, &[("a", "kitchen")]),
        "the rig file says that leaseDuration is 40s, and its boards' leases say 15s"
    );
    assert_eq!(
        told(Constant::LeaseDuration, 40, &[("a", "cellar")]),
        "the cluster has no Node cellar, which the rig file calls board a"
    );
}

fn binding(name: &str, role: &str, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

#[test]
fn a_user_who_may_not_is_told_what() {
    let plane = Plane::start(&[], &[]);
    let rig = |name: &str, user: &str| {
        let path = plane.kubeconfig(name, user);
        plane.rig_with(&format!("  kubeconfig: {}\n  constants: {{{TIMES}}}\n", path.display()))
    };
    let weak = Cluster::connect(&rig("weak", "{token: weak-token}")).unwrap_err();
    assert!(
        weak.what.starts_with("the kubeconfig's user may not: create namespaces; get namespaces;"),
        "{}",
        weak.what
    );
    assert!(!weak.transient);
    let nobody = Cluster::connect(&rig("nobody", "{token: nobody-knows}")).unwrap_err();
    assert!(nobody.what.contains("does not answer as it should: 401"), "{}", nobody.what);
    // All but nodes: trials run, but none that plays nodes.
    let any = json!(["*"]);
    plane.make("/apis/rbac.authorization.k8s.io/v1/clusterroles", json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "no-nodes"}, "rules": [
        {"apiGroups": ["", "apps", "batch", "discovery.k8s.io", "coordination.k8s.io"], "verbs": any, "resources": ["namespaces", "pods", "pods/binding", "pods/status", "events", "configmaps", "endpoints", "secrets", "serviceaccounts", "services", "daemonsets", "deployments", "deployments/scale", "replicasets", "jobs", "endpointslices", "leases"]},
        {"apiGroups": [""], "verbs": ["get", "list", "watch"], "resources": ["nodes"]},
    ]}));
    plane.make(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        binding("no-nodes", "no-nodes", "plain"),
    );
    // The token comes from a program this time.
    let plugin = plane.file("plugin");
    std::fs::write(&plugin, "#!/bin/sh\necho \"{\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\",\\\"kind\\\":\\\"ExecCredential\\\",\\\"status\\\":{\\\"token\\\":\\\"$WHO-token\\\"}}\"\n").unwrap();
    std::fs::set_permissions(&plugin, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let user = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {}, env: [{{name: WHO, value: plain}}]}}}}",
        plugin.display()
    );
    let plain = Cluster::connect(&rig("plain", &user)).unwrap_or_else(|error| panic!("{}", error.whole()));
    assert!(!plain.rig().capabilities.contains(&Capability::PlayedNodes));
    // And an administrator who acts as that user is no more than that user.
    let acting = Cluster::connect(&rig("acting", &format!("{{token: {OWNER}, as: plain}}"))).unwrap();
    assert!(!acting.rig().capabilities.contains(&Capability::PlayedNodes));
    // What the documentation says is enough is enough, and without the rule for nodes none are played.
    let page = include_str!("../../../docs/external.md");
    let role = page.split("```yaml\n").nth(2).and_then(|rest| rest.split("```").next()).unwrap();
    let role: Value = serde_saphyr::from_str(role).unwrap();
    plane.make("/apis/rbac.authorization.k8s.io/v1/clusterroles", role);
    plane.make(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        binding("rigor", "rigor", "documented"),
    );
    let documented = Cluster::connect(&rig("documented", "{token: documented-token}"));
    let documented = documented.unwrap_or_else(|error| panic!("{}", error.whole()));
    assert!(documented.rig().capabilities.contains(&Capability::PlayedNodes));
    let owner = Cluster::connect(&rig("owner", &format!("{{token: {OWNER}}}"))).unwrap();
    assert!(owner.rig().capabilities.contains(&Capability::PlayedNodes));
    drop(open(&plain, &[]));
}

#[test]
fn a_cluster_that_dies_in_the_midst_of_a_trial_is_the_rigs_failure() {
    let plane = Plane::start(&[], &[]);
    let cluster = Cluster::connect(&plane.rig("")).unwrap();
    let mut world = open(&cluster, &[]);
    plane.server.kill();
    let answer = send(world.as_mut(), "GET", "/api/v1/nodes", Value::Null);
    assert_eq!(answer.status, 0);
    assert!(answer.error.is_some());
    until("the streams are lost", || {
        world.wait(world.now() + Duration::from_millis(100));
        world.history().records().iter().any(|record| matches!(record.fact, Fact::Gap { .. })).then_some(())
    });
    world.close();
    assert!(Path::new(&plane.file("tokens.csv")).exists());
}
