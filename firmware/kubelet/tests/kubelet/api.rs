//! An API server as far as a kubelet sees one: bytes in, bytes out, no sockets and no clock. It keeps
//! nodes, leases, pods and events as JSON, and does what it is told to go wrong.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::world::World;

/// Where the server's clock stands at the world's zero, in seconds since 1970.
pub const WALL_ZERO: i64 = 1_800_000_000;

/// A request as the server read it, and how it was answered.
#[derive(Clone, Debug)]
pub struct Request {
    pub at: u64,
    pub method: String,
    pub path: String,
    pub body: Value,
    pub content: String,
    /// 0 when it was not answered.
    pub status: u16,
}

/// How a request goes wrong.
pub enum Fault {
    /// Nothing is done and this status answered.
    Status(u16, Value),
    /// These bytes are the answer, whatever they are.
    Raw(Vec<u8>),
    /// It is done and the answer lost.
    Lost,
    /// It is never seen.
    Ignored,
    /// It is done and answered so many milliseconds later.
    Slow(u64),
}

/// What the server sends.
pub enum Reply {
    Answer { bytes: Vec<u8>, delay: u64 },
    Watch { head: Vec<u8>, from: u64, until: u64 },
    Nothing,
}

type Rule = Box<dyn FnMut(&Request) -> Option<Fault>>;

pub struct Api {
    pub version: u64,
    pub oldest: u64,
    pub nodes: BTreeMap<String, Value>,
    pub leases: BTreeMap<String, Value>,
    pub pods: BTreeMap<String, Value>,
    pub events: BTreeMap<String, Value>,
    pub requests: Vec<Request>,
    /// What the watch of the board shows: version and line.
    pub history: Vec<(u64, Value)>,
    pub rule: Option<Rule>,
    /// What is answered and what the watch shows is larger than a board can hold.
    pub swollen: bool,
    node: String,
}

impl Api {
    pub fn new(node: &str) -> Api {
        Api {
            version: 100,
            oldest: 0,
            nodes: BTreeMap::new(),
            leases: BTreeMap::new(),
            pods: BTreeMap::new(),
            events: BTreeMap::new(),
            requests: Vec::new(),
            history: Vec::new(),
            rule: None,
            swollen: false,
            node: node.into(),
        }
    }

    /// Reads one request off the front of `buffer`, if a whole one is there.
    pub fn take(&mut self, buffer: &mut Vec<u8>, at: u64) -> Option<Reply> {
        let head_end = buffer.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
        let head = String::from_utf8(buffer[..head_end].to_vec()).unwrap();
        let header = |name: &str| {
            head.lines()
                .find_map(|l| l.strip_prefix(name)?.strip_prefix(": "))
                .unwrap_or_default()
                .to_string()
        };
        let length: usize = header("Content-Length").parse().unwrap_or(0);
        if buffer.len() < head_end + length {
            return None;
        }
        assert_eq!(header("Authorization"), "Bearer secret");
        let body = buffer[head_end..head_end + length].to_vec();
        buffer.drain(..head_end + length);
        let mut words = head.split(' ');
        let request = Request {
            at,
            method: words.next().unwrap().into(),
            path: words.next().unwrap().into(),
            body: if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() },
            content: header("Content-Type"),
            status: 0,
        };
        Some(self.serve(request))
    }

    fn serve(&mut self, mut request: Request) -> Reply {
        let fault = self.rule.as_mut().and_then(|rule| rule(&request));
        let date = http_date(request.at);
        let swollen = self.swollen;
        let answer = |status: u16, body: &Value, delay| {
            let body = swell(body, swollen).to_string();
            let length = body.len();
            let text = format!(
                "HTTP/1.1 {status} X\r\nDate: {date}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            Reply::Answer { bytes: text.into_bytes(), delay }
        };
        let reply = match fault {
            Some(Fault::Status(status, body)) => {
                request.status = status;
                answer(status, &body, 0)
            }
            Some(Fault::Raw(bytes)) => Reply::Answer { bytes, delay: 0 },
            Some(Fault::Ignored) => Reply::Nothing,
            Some(Fault::Lost) => {
                let _lost = self.act(&request);
                Reply::Nothing
            }
            Some(Fault::Slow(delay)) => {
                let (status, body) = self.act(&request);
                request.status = status;
                answer(status, &body, delay)
            }
            None if request.path.contains("watch=1") => {
                let parameter = |name: &str| {
                    let query = request.path.split_once('?').unwrap().1;
                    query
                        .split('&')
                        .find_map(|p| p.strip_prefix(name)?.strip_prefix('='))
                        .unwrap()
                        .to_string()
                };
                assert!(request.path.contains(&format!("fieldSelector=spec.nodeName%3D{}", self.node)));
                let from: u64 = parameter("resourceVersion").parse().unwrap();
                let seconds: u64 = parameter("timeoutSeconds").parse().unwrap();
                request.status = 200;
                let head = format!("HTTP/1.1 200 OK\r\nDate: {date}\r\nTransfer-Encoding: chunked\r\n\r\n");
                Reply::Watch { head: head.into_bytes(), from, until: request.at + seconds * 1000 }
            }
            None => {
                let (status, body) = self.act(&request);
                request.status = status;
                answer(status, &body, 0)
            }
        };
        self.requests.push(request);
        reply
    }

    /// Does what a request asks for.
    pub fn act(&mut self, request: &Request) -> (u16, Value) {
        let path = request.path.split('?').next().unwrap();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("POST", ["api", "v1", "nodes"]) => create(&mut self.version, &mut self.nodes, &request.body),
            ("GET", ["api", "v1", "nodes", name]) => found(&self.nodes, name),
            ("PATCH", ["api", "v1", "nodes", name]) => {
                assert_eq!(request.content, "application/merge-patch+json");
                patch(&mut self.version, &mut self.nodes, name, &request.body)
            }
            ("PATCH", ["api", "v1", "nodes", name, "status"]) => {
                assert_eq!(request.content, "application/strategic-merge-patch+json");
                patch(&mut self.version, &mut self.nodes, name, &request.body)
            }
            ("POST", ["apis", "coordination.k8s.io", "v1", "namespaces", "kube-node-lease", "leases"]) => {
                create(&mut self.version, &mut self.leases, &request.body)
            }
            (
                "PATCH",
                ["apis", "coordination.k8s.io", "v1", "namespaces", "kube-node-lease", "leases", name],
            ) => {
                assert_eq!(request.content, "application/merge-patch+json");
                patch(&mut self.version, &mut self.leases, name, &request.body)
            }
            ("GET", ["api", "v1", "pods"]) => {
                let mine = |pod: &&Value| pod["spec"]["nodeName"] == self.node.as_str();
                let items: Vec<&Value> = self.pods.values().filter(mine).collect();
                let metadata = json!({"resourceVersion": self.version.to_string()});
                (200, json!({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}))
            }
            ("GET", ["api", "v1", "namespaces", _, "pods", name]) => match self.pods.get(*name) {
                Some(pod) if pod["spec"]["nodeName"] != self.node.as_str() => failure(403),
                _ => found(&self.pods, name),
            },
            ("PATCH", ["api", "v1", "namespaces", _, "pods", name, "status"]) => {
                assert_eq!(request.content, "application/strategic-merge-patch+json");
                self.patch_pod_status(name, &request.body)
            }
            ("DELETE", ["api", "v1", "namespaces", _, "pods", name]) => {
                let Some(pod) = self.pods.get(*name) else { return failure(404) };
                assert_eq!(request.body["gracePeriodSeconds"], 0);
                if pod["metadata"]["uid"] != request.body["preconditions"]["uid"] {
                    return failure(409);
                }
                if pod["metadata"]["deletionTimestamp"].is_null() {
                    return failure(403);
                }
                let pod = pod.clone();
                self.remove_pod(name);
                (200, pod)
            }
            ("POST", ["api", "v1", "namespaces", _, "events"]) => {
                create(&mut self.version, &mut self.events, &request.body)
            }
            ("PATCH", ["api", "v1", "namespaces", _, "events", name]) => {
                patch(&mut self.version, &mut self.events, name, &request.body)
            }
            (method, _) => panic!("the kubelet asked for {method} {path}"),
        }
    }

    fn patch_pod_status(&mut self, name: &str, body: &Value) -> (u16, Value) {
        let Some(pod) = self.pods.get(name) else { return failure(404) };
        if pod["spec"]["nodeName"] != self.node.as_str() {
            return failure(403);
        }
        if pod["metadata"]["uid"] != body["metadata"]["uid"] || is_stale(pod, body) {
            return failure(409);
        }
        let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["metadata", "status"]);
        let mut changed = pod.clone();
        merge(&mut changed, body);
        check_transitions(&pod["status"], &body["status"], &changed["status"]);
        if changed != *pod {
            self.put_pod(changed);
        }
        (200, self.pods[name].clone())
    }

    /// Writes a pod, as its creator, a scheduler or a controller would; the watch shows it.
    pub fn put_pod(&mut self, mut pod: Value) {
        self.version += 1;
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let name = pod["metadata"]["name"].as_str().unwrap().to_string();
        let was_mine = self.pods.get(&name).is_some_and(|old| old["spec"]["nodeName"] == self.node.as_str());
        let is_mine = pod["spec"]["nodeName"] == self.node.as_str();
        let kind = match (was_mine, is_mine) {
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
            (false, false) => None,
        };
        if let Some(kind) = kind {
            self.history.push((self.version, json!({"type": kind, "object": pod})));
        }
        self.pods.insert(name, pod);
    }

    /// Changes a pod in place.
    pub fn edit_pod(&mut self, name: &str, edit: impl FnOnce(&mut Value)) {
        let mut pod = self.pods[name].clone();
        edit(&mut pod);
        self.put_pod(pod);
    }

    pub fn remove_pod(&mut self, name: &str) {
        self.version += 1;
        let mut pod = self.pods.remove(name).unwrap();
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if pod["spec"]["nodeName"] == self.node.as_str() {
            self.history.push((self.version, json!({"type": "DELETED", "object": pod})));
        }
    }

    /// Marks a pod for graceful deletion, as DELETE by a user does.
    pub fn delete_gracefully(&mut self, name: &str) {
        self.edit_pod(name, |pod| {
            pod["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        });
    }

    /// Requests whose method and path match.
    pub fn seen<'a>(&'a self, method: &'a str, part: &'a str) -> impl Iterator<Item = &'a Request> {
        self.requests.iter().filter(move |r| r.method == method && r.path.contains(part))
    }
}

/// The object as it is, or, if `swollen`, larger than a board can hold; a list has larger items.
pub fn swell(object: &Value, swollen: bool) -> Value {
    let mut object = object.clone();
    if swollen {
        let padding = || json!("x".repeat(100_000));
        match object["items"].as_array_mut() {
            Some(items) if !items.is_empty() => items.iter_mut().for_each(|item| item["x"] = padding()),
            Some(_) | None => object["x"] = padding(),
        }
    }
    object
}

/// The Date header of an instant of the world.
pub fn http_date(at: u64) -> String {
    let wall = jiff::Timestamp::from_second(WALL_ZERO + (at / 1000) as i64).unwrap();
    wall.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Milliseconds of the world that a time of the API stands for.
pub fn world_millis(time: &Value) -> i64 {
    let wall: jiff::Timestamp = time.as_str().unwrap().parse().unwrap();
    wall.as_millisecond() - WALL_ZERO * 1000
}

pub fn failure(code: u16) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "code": code, "message": format!("no: {code}")}))
}

/// A condition's lastTransitionTime moves if its status does, and with nothing else.
fn check_transitions(before: &Value, body: &Value, after: &Value) {
    for new in after["conditions"].as_array().into_iter().flatten() {
        let kind = new["type"].as_str().unwrap();
        let old = World::condition(before, kind);
        if old["status"] == new["status"] {
            assert_eq!(new["lastTransitionTime"], old["lastTransitionTime"], "{new}");
        } else {
            let written = World::condition(body, kind);
            assert!(written["lastTransitionTime"].is_string(), "{old} -> {new}: {body}");
        }
    }
}

fn found(objects: &BTreeMap<String, Value>, name: &str) -> (u16, Value) {
    objects.get(name).map_or_else(|| failure(404), |object| (200, object.clone()))
}

fn create(version: &mut u64, objects: &mut BTreeMap<String, Value>, body: &Value) -> (u16, Value) {
    let name = body["metadata"]["name"].as_str().unwrap().to_string();
    if objects.contains_key(&name) {
        return failure(409);
    }
    *version += 1;
    let mut object = body.clone();
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    object["metadata"]["uid"] = json!(format!("uid-of-{name}"));
    objects.insert(name, object.clone());
    (201, object)
}

fn patch(version: &mut u64, objects: &mut BTreeMap<String, Value>, name: &str, body: &Value) -> (u16, Value) {
    let Some(object) = objects.get_mut(name) else { return failure(404) };
    if is_stale(object, body) {
        return failure(409);
    }
    *version += 1;
    merge(object, body);
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    (200, object.clone())
}

/// Whether a patch was made for another version.
pub fn is_stale(object: &Value, patch: &Value) -> bool {
    let made_for = &patch["metadata"]["resourceVersion"];
    !made_for.is_null() && *made_for != object["metadata"]["resourceVersion"]
}

/// A merge patch; lists that have a merge key in Kubernetes are merged by it.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        let merge_key = match key.as_str() {
            "conditions" | "addresses" => Some("type"),
            "podIPs" | "hostIPs" => Some("ip"),
            _ => None,
        };
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else if let (Some(by), Value::Array(items)) = (merge_key, value) {
            let list = target.as_object_mut().unwrap().entry(key).or_insert_with(|| json!([]));
            let list = list.as_array_mut().unwrap();
            for item in items {
                if item["$patch"] == "delete" {
                    list.retain(|old| old[by] != item[by]);
                } else if let Some(old) = list.iter_mut().find(|old| old[by] == item[by]) {
                    merge(old, item);
                } else {
                    let mut fresh = json!({});
                    merge(&mut fresh, item);
                    list.push(fresh);
                }
            }
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}
