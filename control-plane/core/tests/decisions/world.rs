//! A store, an apply loop and two clocks in a few lines: what a server does with decisions, on virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use control_plane_core::controllers::garbage::{self, GarbageConfig};
use control_plane_core::controllers::node_lifecycle::{self, LifecycleConfig};
use control_plane_core::controllers::{deployment, namespace, service_account};
use control_plane_core::scheduler::{self, Assumed, KUBE32, SchedulerConfig};
use control_plane_core::{Decision, EventRecord, Key, Now, Snapshot, Write, reports};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Seconds, for readable tests.
pub fn s(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Deletes a pod as someone outside the control plane does.
pub fn delete(pod: &Value, grace_seconds: Option<i64>) -> Decision {
    let text = |field: &str| pod["metadata"][field].as_str().expect(field).to_owned();
    let write = Write::Delete {
        resource: "pods",
        namespace: "default".into(),
        name: text("name"),
        uid: Some(text("uid")),
        resource_version: None,
        grace_seconds,
    };
    Decision { writes: vec![write], ..Decision::nothing("not the control plane's wish") }
}

/// A node as a board registers it: Ready, with these allocatable figures.
pub fn node(name: &str, allocatable: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {
            "allocatable": allocatable,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
                "lastHeartbeatTime": "2026-11-29T11:00:00Z", "lastTransitionTime": "2026-11-29T11:00:00Z",
            }],
        },
    })
}

/// A pod of namespace `default` with one container that has these resources.
pub fn pod(name: &str, resources: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "image": "rigor.dev/pause", "resources": resources}],
        },
    })
}

/// The tolerations that admission gives (NODE-13), with these seconds.
pub fn tolerating(mut pod: Value, seconds: Value) -> Value {
    let mut toleration = json!({
        "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
    });
    if !seconds.is_null() {
        toleration["tolerationSeconds"] = seconds;
    }
    pod["spec"]["tolerations"] = json!([toleration]);
    pod
}

/// What happened, and when on the wall.
#[derive(Debug, Clone)]
pub struct Told {
    pub at: Timestamp,
    pub event: EventRecord,
}

pub struct World {
    pub snapshot: Snapshot,
    pub now: Now,
    /// From a decision to the acceptance of each of its writes.
    pub latency: Duration,
    pub lifecycle: LifecycleConfig,
    pub scheduler: SchedulerConfig,
    pub deployments: deployment::DeploymentConfig,
    pub garbage: GarbageConfig,
    pub told: Vec<Told>,
    /// Every accepted version of every object, with the instant of its acceptance.
    pub history: Vec<(Timestamp, &'static str, Key, Option<Arc<Value>>)>,
    version: u64,
    names: u64,
    look_again: BTreeMap<String, Duration>,
    /// The `tolerationSeconds` that admission gives pods (NODE-13); nothing where there is no admission.
    pub admits: Option<i64>,
    /// The control plane ends after so many more writes of its decisions.
    pub lives: Option<usize>,
}

impl World {
    pub fn new() -> Self {
        let wall = "2026-11-29T12:00:00.25Z".parse().expect("a timestamp");
        let kinds = [("", "Node", "nodes"), ("", "Pod", "pods"), ("apps", "Deployment", "deployments")];
        Self {
            snapshot: Snapshot::default(),
            now: Now { mono: Duration::ZERO, wall },
            latency: Duration::ZERO,
            lifecycle: LifecycleConfig { not_ready_timeout: s(15.0) },
            scheduler: SchedulerConfig::new(&KUBE32, s(1.0)),
            deployments: deployment::DeploymentConfig { period: s(1.0) },
            garbage: GarbageConfig {
                kinds: kinds.map(|(group, kind, resource)| ((group.into(), kind.into()), resource)).into(),
                namespaced: ["pods", "deployments"].into(),
            },
            told: Vec::new(),
            history: Vec::new(),
            version: 0,
            names: 0,
            look_again: BTreeMap::new(),
            admits: None,
            lives: None,
        }
    }

    pub fn pass(&mut self, span: Duration) {
        self.now.mono += span;
        self.now.wall = self.now.wall.checked_add(span).expect("an instant");
    }

    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.snapshot.get(resource, namespace, name).map(|object| Value::clone(object))
    }

    pub fn node(&self, name: &str) -> Value {
        self.get("nodes", "", name).expect("the node")
    }

    pub fn pod(&self, name: &str) -> Value {
        self.get("pods", "default", name).expect("the pod")
    }

    /// Stores `object` as it is, with a uid and a resourceVersion of its own; returns the version.
    pub fn put(&mut self, resource: &'static str, mut object: Value) -> u64 {
        self.version += 1;
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        if let Some(base) = metadata.get("generateName").and_then(Value::as_str).map(str::to_owned)
            && !metadata.contains_key("name")
        {
            self.names += 1;
            metadata.insert("name".into(), format!("{base}{:05}", self.names).into());
        }
        metadata.entry("uid").or_insert_with(|| format!("uid-{}", self.version).into());
        metadata.entry("creationTimestamp").or_insert_with(|| self.now.stamp().into());
        metadata.insert("resourceVersion".into(), self.version.to_string().into());
        let (key, object) = (Key::of(&object), Arc::new(object));
        self.history.push((self.now.wall, resource, key.clone(), Some(object.clone())));
        self.snapshot.observe(resource, key, Some(object), &self.now);
        self.version
    }

    pub fn remove(&mut self, resource: &'static str, key: &Key) {
        self.version += 1;
        self.history.push((self.now.wall, resource, key.clone(), None));
        self.snapshot.observe(resource, key.clone(), None, &self.now);
    }

    pub fn change(
        &mut self,
        resource: &'static str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let mut object = self.get(resource, namespace, name).expect("the object");
        let old = object.clone();
        change(&mut object);
        if resource == "nodes" {
            reports::keep(&old, &mut object);
        }
        self.put(resource, object);
    }

    /// A node's report: a status write that covers everything before it, and ends no outage.
    pub fn report(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let old = self.node(name);
        let mut node = old.clone();
        change(&mut node["status"]);
        node_lifecycle::hold(&old, &mut node);
        reports::reported(&mut node);
        let version = self.put("nodes", node);
        self.snapshot.status_reported(name, version);
    }

    /// Registers a node that reports, and renews its lease for the first time.
    pub fn register(&mut self, node: Value) {
        let name = node["metadata"]["name"].as_str().expect("a name").to_owned();
        let version = self.put("nodes", node);
        self.snapshot.status_reported(&name, version);
        self.renew(&name, Some(15));
    }

    pub fn renew(&mut self, node: &str, seconds: Option<i64>) {
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": node, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": node, "renewTime": control_plane_core::time::micro_stamp(self.now.wall)},
        });
        if let Some(seconds) = seconds {
            lease["spec"]["leaseDurationSeconds"] = seconds.into();
        }
        self.put("leases", lease);
    }

    /// Creates a pod as the create request does; what the scheduler did with it is in the store.
    pub fn create_pod(&mut self, mut pod: Value) {
        self.version += 1;
        pod["metadata"]["uid"] = format!("uid-{}", self.version).into();
        if let Some(seconds) = self.admits {
            admit(&mut pod, seconds);
        }
        let placed = scheduler::place(&self.scheduler, pod, &self.snapshot, &Assumed::default(), &self.now);
        self.put("pods", placed.pod);
        self.tell(placed.events);
    }

    /// A board takes up a pod and says so.
    pub fn start(&mut self, name: &str) {
        let stamp = self.now.stamp();
        self.change("pods", "default", name, |pod| {
            pod["status"]["phase"] = "Running".into();
            pod["status"]["podIP"] = "10.0.0.9".into();
            pod["status"]["hostIP"] = "10.0.0.1".into();
            pod["status"]["startTime"] = stamp.clone().into();
            pod["status"]["containerStatuses"] =
                json!([{"name": "c", "state": {"running": {"startedAt": stamp}}}]);
            let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": stamp});
            if pod["status"]["conditions"].is_null() {
                pod["status"]["conditions"] = json!([]);
            }
            let conditions = pod["status"]["conditions"].as_array_mut().expect("a list");
            conditions.retain(|condition| condition["type"] != "Ready");
            conditions.push(ready);
        });
    }

    fn tell(&mut self, events: Vec<EventRecord>) {
        let at = self.now.wall;
        self.told.extend(events.into_iter().map(|event| Told { at, event }));
    }

    pub fn told(&self, reason: &str) -> Vec<&Told> {
        self.told.iter().filter(|told| told.event.reason == reason).collect()
    }

    /// Performs a decision as the apply loop does; a failed precondition ends it.
    pub fn apply(&mut self, decision: Decision) {
        for write in decision.writes {
            match &mut self.lives {
                Some(0) => return,
                Some(left) => *left -= 1,
                None => {}
            }
            self.pass(self.latency);
            if !self.write(write) {
                return;
            }
        }
        self.tell(decision.events);
    }

    /// Performs the first `count` writes of a decision; then the control plane crashes.
    pub fn apply_some(&mut self, mut decision: Decision, count: usize) {
        decision.writes.truncate(count);
        decision.events.clear();
        self.apply(decision);
    }

    fn write(&mut self, write: Write) -> bool {
        match write {
            Write::Create { resource: "pods", mut object } => {
                self.names += 1;
                if let Some(base) = object["metadata"]["generateName"].as_str()
                    && object["metadata"]["name"].is_null()
                {
                    object["metadata"]["name"] = format!("{base}{:05}", self.names).into();
                }
                self.create_pod(object);
                true
            }
            Write::Create { resource, object } => {
                self.put(resource, object);
                true
            }
            Write::Update { resource, object, .. } | Write::Replace { resource, object } => {
                let Some(stored) = self.snapshot.at(resource, &Key::of(&object)) else { return false };
                if stored["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
                    return false;
                }
                let finalizers =
                    |of: &Value| of["metadata"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
                let waits = resource == "pods" && object["metadata"]["deletionGracePeriodSeconds"] != 0;
                if object["metadata"]["deletionTimestamp"].is_string()
                    && finalizers(stored)
                    && !finalizers(&object)
                    && !waits
                {
                    self.remove(resource, &Key::of(&object));
                } else {
                    self.put(resource, object);
                }
                true
            }
            Write::Delete { resource, namespace, name, uid, grace_seconds, .. } => {
                let Some(mut object) = self.get(resource, &namespace, &name) else { return false };
                if uid.is_some_and(|uid| object["metadata"]["uid"] != uid) {
                    return false;
                }
                let finished = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
                let runs = resource == "pods" && object["spec"]["nodeName"].is_string() && !finished;
                let grace = if runs { grace_seconds.unwrap_or(30) } else { 0 };
                let kept = object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
                if kept || grace > 0 {
                    object["metadata"]["deletionTimestamp"] = self.now.stamp().into();
                    object["metadata"]["deletionGracePeriodSeconds"] = grace.into();
                    self.put(resource, object);
                } else {
                    self.remove(resource, &Key::new(namespace, name));
                }
                true
            }
            Write::Bind { namespace, pod, uid, node, .. } => {
                let Some(object) = self.get("pods", &namespace, &pod) else { return false };
                assert_eq!(object["metadata"]["uid"], uid, "a stale binding");
                self.put("pods", scheduler::bound(&object, &node, &self.now));
                true
            }
            Write::Evict { namespace, name, message, .. } => {
                let Some(object) = self.get("pods", &namespace, &name) else { return false };
                self.put("pods", node_lifecycle::evicted(&object, &message, &self.now));
                true
            }
        }
    }

    /// A check tick: every node, then every pod. `look_again` of the nodes is kept for [`World::run_until`].
    pub fn tick(&mut self) {
        let nodes: Vec<String> = self.snapshot.list("nodes").map(|(key, _)| key.name.clone()).collect();
        for node in nodes {
            // What the server leaves out of its checks has nothing to be done.
            if !node_lifecycle::doubtful(&self.snapshot, &self.lifecycle, &self.now).contains(&node) {
                let decision = node_lifecycle::decide(&self.snapshot, &self.lifecycle, &node, &self.now);
                assert!(decision.is_idle() && decision.look_again.is_none(), "{node}: {decision:?}");
            }
            self.look_at(&node);
        }
        let pods: Vec<Key> = self.snapshot.list("pods").map(|(key, _)| key.clone()).collect();
        for key in pods {
            if !node_lifecycle::endangered(&self.snapshot).contains(&key) {
                let decision = node_lifecycle::decide_pod(&self.snapshot, &self.lifecycle, &key, &self.now);
                assert!(decision.is_idle() && decision.look_again.is_none(), "{key:?}: {decision:?}");
            }
            let decision = node_lifecycle::decide_pod(&self.snapshot, &self.lifecycle, &key, &self.now);
            self.apply(decision);
        }
    }

    fn look_at(&mut self, node: &str) {
        let decision = node_lifecycle::decide(&self.snapshot, &self.lifecycle, node, &self.now);
        match decision.look_again {
            Some(at) => self.look_again.insert(node.to_owned(), at),
            None => self.look_again.remove(node),
        };
        self.apply(decision);
    }

    /// Runs ticks every `period` from the next multiple of it plus `phase` on, and the looks that nodes asked for in
    /// between, until `end` on the monotonic clock.
    pub fn run_until(&mut self, end: Duration, period: Duration, phase: Duration) {
        loop {
            let mut tick = phase;
            while tick <= self.now.mono {
                tick += period;
            }
            let asked = self.look_again.iter().filter(|(_, at)| **at > self.now.mono && **at < tick);
            let asked = asked.min_by_key(|(_, at)| **at).map(|(node, at)| (node.clone(), *at));
            let next = asked.as_ref().map_or(tick, |(_, at)| *at);
            if next > end {
                self.pass(end.saturating_sub(self.now.mono));
                return;
            }
            self.pass(next - self.now.mono);
            match asked {
                Some((node, _)) => self.look_at(&node),
                None => self.tick(),
            }
        }
    }

    /// The control plane ends and, `down` later, starts again over the same store.
    pub fn restart(&mut self, down: Duration) {
        self.pass(down);
        self.now.mono = Duration::ZERO;
        self.look_again.clear();
        let old = std::mem::take(&mut self.snapshot);
        for resource in old.resources() {
            for (key, object) in old.list(resource) {
                self.snapshot.restore(resource, key.clone(), object.clone(), &self.now);
            }
        }
    }

    /// The first instant from `from` on at which an accepted version of the object satisfies `test`.
    pub fn first(
        &self,
        resource: &str,
        name: &str,
        from: Timestamp,
        test: impl Fn(&Value) -> bool,
    ) -> Option<Timestamp> {
        let of_it =
            self.history.iter().filter(|(at, of, key, _)| *of == resource && key.name == name && *at >= from);
        of_it
            .filter_map(|(at, _, _, object)| Some((at, object.as_deref()?)))
            .find(|(_, it)| test(it))
            .map(|(at, _)| *at)
    }

    pub fn retry_pending(&mut self) {
        for key in scheduler::pending(&self.snapshot, &self.scheduler) {
            let decision =
                scheduler::decide(&self.snapshot, &self.scheduler, &Assumed::default(), &key, &self.now);
            self.apply(decision);
        }
    }

    pub fn deploy(&mut self, name: &str) -> Decision {
        let key = Key::new("default", name);
        let decision = deployment::decide(&self.snapshot, &self.deployments, &key, &self.now);
        self.apply(decision.clone());
        decision
    }

    /// A pass over one workload as the server makes it: again and again while the decision asks for that at once.
    pub fn workload(
        &mut self,
        decide: impl Fn(&Snapshot, &Key, &Now) -> Decision,
        name: &str,
    ) -> Vec<Decision> {
        let key = Key::new("default", name);
        let mut decisions = Vec::new();
        loop {
            let decision = decide(&self.snapshot, &key, &self.now);
            self.apply(decision.clone());
            let again = decision.look_again.is_some_and(|at| at <= self.now.mono);
            decisions.push(decision);
            assert!(decisions.len() < 10, "a pass has an end: {decisions:#?}");
            if !again || self.lives == Some(0) {
                return decisions;
            }
        }
    }

    pub fn collect_garbage(&mut self) {
        for (resource, key) in garbage::candidates(&self.snapshot, &self.garbage) {
            let decision = garbage::decide(&self.snapshot, &self.garbage, resource, &key);
            self.apply(decision);
        }
    }

    pub fn tend_namespaces(&mut self) {
        let keys: Vec<Key> = self.snapshot.list("namespaces").map(|(key, _)| key.clone()).collect();
        for key in keys {
            let decision = namespace::decide(&self.snapshot, &key, &self.now);
            self.apply(decision);
            let decision = service_account::decide(&self.snapshot, &key);
            self.apply(decision);
        }
    }
}

/// NODE-13: a pod that does not say how long it stays on an unreachable node is told.
fn admit(pod: &mut Value, seconds: i64) {
    let tolerations = &mut pod["spec"]["tolerations"];
    if tolerations.is_null() {
        *tolerations = json!([]);
    }
    let tolerations = tolerations.as_array_mut().expect("a list");
    let key = "node.kubernetes.io/unreachable";
    if !tolerations.iter().any(|toleration| toleration["key"] == key) {
        tolerations.push(json!({
            "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds,
        }));
    }
}

/// The status of a condition, for short tests.
pub fn condition(object: &Value, kind: &str) -> Option<String> {
    control_plane_core::conditions::status(object, kind).map(str::to_owned)
}

/// Effects of the unreachable taints.
pub fn taints(node: &Value) -> Vec<String> {
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.iter().filter_map(|taint| taint["effect"].as_str().map(str::to_owned)).collect()
}
