//! A control plane over the memory store with a clock that only tests move.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use axum::body::Body;
use control_plane::auth::Credentials;
use control_plane::auth::accounts::{Issuer, Keys};
use control_plane::config::Config;
use control_plane::{Clock, ControlPlane, MemoryStore};
use futures_util::FutureExt;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

/// The issuer of service accounts' tokens.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
static KEY: LazyLock<String> = LazyLock::new(|| rcgen::KeyPair::generate().unwrap().serialize_pem());

pub const ADMIN: &str = "admin-token";
/// C, R, N and W of the tests' control planes.
pub const CHECK: Duration = Duration::from_millis(500);
pub const RETRY: Duration = Duration::from_secs(1);
pub const NO_EXECUTE: Duration = Duration::from_secs(15);
pub const PASS: Duration = Duration::from_secs(1);
/// L of the tests' leases.
pub const LEASE: Duration = Duration::from_secs(15);

pub struct ManualClock(Mutex<Duration>);

impl Clock for ManualClock {
    fn mono(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    fn wall(&self) -> jiff::Timestamp {
        "2026-01-01T00:00:00.25Z".parse::<jiff::Timestamp>().unwrap() + self.mono()
    }
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Value,
    pub text: String,
}

impl Answer {
    /// The body of a success of this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.body
    }

    /// The message of a refusal of this status.
    #[track_caller]
    pub fn refused(self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text);
        self.body["message"].as_str().unwrap_or_default().to_owned()
    }
}

pub struct Rig {
    pub clock: Arc<ManualClock>,
    pub store: Arc<MemoryStore>,
    pub config: Config,
    pub plane: ControlPlane,
    tokens: tempfile::NamedTempFile,
}

impl Rig {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Config)) -> Self {
        let tokens = tempfile::NamedTempFile::new().unwrap();
        let boards = ["a", "b", "c"].map(|name| format!("{name}-token,system:node:{name},,system:nodes\n"));
        let others = "admin-token,admin,admin-uid,system:masters\nnobody-token,nobody,,\nscheduler-token,system:kube-scheduler,,\n";
        std::fs::write(tokens.path(), format!("{others}{}", boards.concat())).unwrap();
        let mut config = Config {
            plain_http: true,
            token_auth_file: Some(tokens.path().to_owned()),
            reconcile_interval: RETRY,
            node_monitor_period: CHECK,
            not_ready_timeout: NO_EXECUTE,
            ..Config::default()
        };
        change(&mut config);
        let clock = Arc::new(ManualClock(Mutex::default()));
        let store = Arc::new(MemoryStore::with_history(config.watch_history));
        let plane = open(&config, &store, &clock);
        Self { clock, store, config, plane, tokens }
    }

    /// Ends the control plane and starts it again on the same objects.
    pub fn restart(&mut self) {
        self.restart_after(Duration::ZERO);
    }

    /// As [`Self::restart`], with nobody serving for so long.
    pub fn restart_after(&mut self, down: Duration) {
        *self.clock.0.lock().unwrap() += down;
        assert!(self.tokens.path().exists());
        self.plane = open(&self.config, &self.store, &self.clock);
    }

    /// Lets time go by without anyone doing what is due.
    pub fn advance(&self, time: Duration) {
        *self.clock.0.lock().unwrap() += time;
    }

    pub fn now(&self) -> Duration {
        self.clock.mono()
    }

    /// Lets `time` pass, with everything that is due at its instant.
    pub fn pass(&self, time: Duration) {
        let until = self.now() + time;
        loop {
            let due = self.plane.reconcile().now_or_never().expect("reconcile must not wait");
            let due = due.expect("something is always due").max(self.now());
            if due > until {
                break;
            }
            *self.clock.0.lock().unwrap() = due;
        }
        *self.clock.0.lock().unwrap() = until;
        self.plane.reconcile().now_or_never().expect("reconcile must not wait");
    }

    /// Lets time pass until `condition` holds, in small steps; answers how long it took.
    #[track_caller]
    pub fn until(&self, limit: Duration, condition: impl Fn(&Self) -> bool) -> Duration {
        let start = self.now();
        while !condition(self) {
            assert!(self.now() - start <= limit, "not within {limit:?}");
            self.pass(Duration::from_millis(50));
        }
        self.now() - start
    }

    pub fn send(&self, token: &str, request: http::request::Builder, body: Body) -> http::Response<Body> {
        let mut request = request.body(body).unwrap();
        if !token.is_empty() {
            request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        let response = self.plane.router().oneshot(request).now_or_never().expect("a handler must not wait");
        let response = response.unwrap();
        self.plane.reconcile().now_or_never().expect("reconcile must not wait");
        response
    }

    pub fn ask(&self, token: &str, request: http::request::Builder, body: Body) -> Answer {
        let (head, body) = self.send(token, request, body).into_parts();
        let bytes = body.collect().now_or_never().expect("a body must not wait").unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { status: head.status.as_u16(), headers: head.headers, body, text }
    }

    pub fn call_as(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", media);
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        self.ask(token, request, body)
    }

    pub fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.call_as(ADMIN, method, path, body)
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.call("GET", path, &Value::Null).expect(200)
    }

    #[track_caller]
    pub fn create(&self, path: &str, body: &Value) -> Value {
        self.call("POST", path, body).expect(201)
    }

    #[track_caller]
    pub fn patch(&self, path: &str, body: &Value) -> Value {
        self.call("PATCH", path, body).expect(200)
    }

    #[track_caller]
    pub fn delete(&self, path: &str) -> Value {
        self.call("DELETE", path, &Value::Null).expect(200)
    }

    pub fn pod(&self, name: &str) -> Value {
        self.get(&format!("{PODS}/{name}"))
    }

    pub fn node(&self, name: &str) -> Value {
        self.get(&format!("/api/v1/nodes/{name}"))
    }

    /// The objects at a path.
    pub fn list(&self, path: &str) -> Vec<Value> {
        self.get(path)["items"].as_array().unwrap().clone()
    }

    /// The events about an object with this reason.
    pub fn events(&self, name: &str, reason: &str) -> Vec<Value> {
        self.list(&format!("/api/v1/events?fieldSelector=involvedObject.name%3D{name}%2Creason%3D{reason}"))
    }

    /// Plays a board: its node with a status, and its lease.
    #[track_caller]
    pub fn join(&self, name: &str, allocatable: &Value) {
        let labels = json!({"kubernetes.io/hostname": name});
        self.create("/api/v1/nodes", &json!({"metadata": {"name": name, "labels": labels}}));
        self.report(name, allocatable);
        self.create(LEASES, &lease(name, &self.stamp()));
    }

    /// The board's status write.
    #[track_caller]
    pub fn report(&self, name: &str, allocatable: &Value) {
        let path = format!("/api/v1/nodes/{name}/status");
        let token = format!("{name}-token");
        let ready = json!({
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "ready",
            "lastHeartbeatTime": self.stamp(),
            "lastTransitionTime": self.stamp(),
        });
        let status =
            json!({"status": {"allocatable": allocatable, "capacity": allocatable, "conditions": [ready]}});
        self.call_as(&token, "PATCH", &path, &status).expect(200);
    }

    /// The board's lease renewal.
    #[track_caller]
    pub fn renew(&self, name: &str) {
        let stamp = format!("{}", self.clock.wall().strftime("%Y-%m-%dT%H:%M:%S.%6fZ"));
        let body = json!({"spec": {"renewTime": stamp}});
        self.call_as(&format!("{name}-token"), "PATCH", &format!("{LEASES}/{name}"), &body).expect(200);
    }

    /// Lets time pass while these boards renew every 5 s.
    #[track_caller]
    pub fn pass_alive(&self, time: Duration, boards: &[&str]) {
        let until = self.now() + time;
        while self.now() < until {
            boards.iter().for_each(|board| self.renew(board));
            self.pass((until - self.now()).min(Duration::from_secs(5)));
        }
    }

    /// The board says that a pod runs.
    #[track_caller]
    pub fn run(&self, node: &str, pod: &str) {
        let stamp = self.stamp();
        let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": stamp});
        let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
        let status = json!({"status": {
            "phase": "Running",
            "podIP": "10.0.0.7",
            "hostIP": "10.0.0.7",
            "startTime": stamp,
            "conditions": conditions,
            "containerStatuses": [{
                "name": "c", "ready": true, "restartCount": 0, "image": "rigor.dev/pause", "imageID": "",
                "containerID": "rigor://1", "started": true, "state": {"running": {"startedAt": stamp}},
            }],
        }});
        let path = format!("{PODS}/{pod}/status");
        self.call_as(&format!("{node}-token"), "PATCH", &path, &status).expect(200);
    }

    pub fn stamp(&self) -> String {
        self.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

fn open(config: &Config, store: &Arc<MemoryStore>, clock: &Arc<ManualClock>) -> ControlPlane {
    let issuer = Issuer::new(ISSUER, Keys::of_private(&KEY).unwrap()).for_audiences(&config.api_audiences);
    let credentials = Credentials { issuer: Some(issuer), ..Credentials::repeatable(1) };
    let opened = ControlPlane::open_with(config.clone(), store.clone(), clock.clone(), 1, credentials);
    opened.now_or_never().expect("open must not wait over the memory store").unwrap()
}

pub const PODS: &str = "/api/v1/namespaces/default/pods";
pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
pub const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

pub fn lease(name: &str, stamp: &str) -> Value {
    let stamp = stamp.replace('Z', ".000000Z");
    json!({
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE.as_secs(), "renewTime": stamp},
    })
}

/// What a board of the tests offers.
pub fn board() -> Value {
    json!({"memory": "200Ki", "esp32.io/gpio": "10", "esp32.io/i2c": "1", "pods": "20"})
}

/// A pod with one container.
pub fn pod(name: &str, requests: &Value) -> Value {
    let container = json!({"name": "c", "image": "rigor.dev/pause", "resources": {"requests": requests}});
    json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
}

/// A pod that no scheduler here looks at.
pub fn foreign(name: &str) -> Value {
    let mut pod = pod(name, &json!({}));
    pod["spec"]["schedulerName"] = json!("nobody-at-all");
    pod
}

/// The status of a condition; empty when there is none.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let conditions = object["status"]["conditions"].as_array().map_or(&[] as &[Value], Vec::as_slice);
    conditions
        .iter()
        .find(|one| one["type"] == kind)
        .and_then(|one| one["status"].as_str())
        .unwrap_or_default()
}

/// `EFFECT` of each unreachable taint of a node.
pub fn unreachable(node: &Value) -> Vec<&str> {
    let taints = node["spec"]["taints"].as_array().map_or(&[] as &[Value], Vec::as_slice);
    let own = taints.iter().filter(|taint| taint["key"] == "node.kubernetes.io/unreachable");
    own.filter_map(|taint| taint["effect"].as_str()).collect()
}
