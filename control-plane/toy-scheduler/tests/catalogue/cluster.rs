//! A control plane and schedulers as processes, and an administrator who sends JSON and waits for what a watch shows.
//! It knows of nothing that it judges.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::serde_json::{Value, from_str, json, to_vec};
use kube::Client;
use kube::api::{GetParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::Request;

use crate::binaries::control_plane;

/// Longer than anything here takes, on a slow and busy machine neither.
pub const LONG: Duration = Duration::from_secs(240);
/// The pods of the namespace that everything here is in.
pub const PODS: &str = "/api/v1/namespaces/default/pods";
/// Its events.
pub const EVENTS: &str = "/api/v1/namespaces/default/events";
/// Its Deployments.
pub const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A scheduler that has seen what there is; what it says goes to a file.
pub struct Toy {
    process: Ended,
    log: PathBuf,
}

impl Toy {
    /// All that it said so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// The lines so far that hold every one of `words`.
    pub fn lines(&self, words: &[&str]) -> Vec<String> {
        let said = self.said();
        let holds = |line: &&str| words.iter().all(|word| line.contains(word));
        said.lines().filter(holds).map(str::to_owned).collect()
    }

    /// Waits for a line that holds every one of `words`.
    pub async fn says(&self, words: &[&str]) -> String {
        let what = format!("a line with {words:?}");
        becomes(&what, || !self.lines(words).is_empty()).await;
        self.lines(words).remove(0)
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.process.0.try_wait().unwrap().is_none()
    }

    /// Stops the process, or lets it go on: `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        let id = self.process.0.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }
}

impl Drop for Toy {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("toy-scheduler said:\n{}", self.said());
        }
    }
}

/// A control plane that serves.
pub struct Cluster {
    dir: tempfile::TempDir,
    _plane: Ended,
    // Held open: who writes to a closed pipe fails.
    _output: BufReader<ChildStdout>,
    client: Client,
}

impl Cluster {
    /// Starts a control plane that keeps nothing and audits everything.
    pub async fn start(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(control_plane());
        command.args(["--listen", "127.0.0.1:0", "--store", "memory", "--data-dir"]).arg(dir.path());
        command.arg("--audit-log-path").arg(dir.path().join("audit.log")).args(flags);
        let log = File::create(dir.path().join("plane.log")).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let plane = Ended(child);
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let said = || fs::read_to_string(dir.path().join("plane.log")).unwrap();
        assert!(line.contains("serving on https://127.0.0.1:"), "{line:?} {}", said());
        let admin = Kubeconfig::read_from(dir.path().join("kubeconfig/admin.kubeconfig")).unwrap();
        let config = Config::from_custom_kubeconfig(admin, &KubeConfigOptions::default()).await.unwrap();
        Self { _plane: plane, _output: output, client: Client::try_from(config).unwrap(), dir }
    }

    /// Where its files are.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The kubeconfig that it made for the administrator, or for a scheduler.
    pub fn kubeconfig(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("kubeconfig/{name}.kubeconfig"))
    }

    /// A toy-scheduler with kube-scheduler's identity and these flags, which is ready.
    pub async fn toy(&self, name: &str, flags: &[&str]) -> Toy {
        let log = self.dir.path().join(format!("{name}.log"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_toy-scheduler"));
        command.arg("--kubeconfig").arg(self.kubeconfig("scheduler")).args(flags);
        let said = File::create(&log).unwrap();
        command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said);
        let toy = Toy { process: Ended(command.spawn().unwrap()), log };
        toy.says(&["ready"]).await;
        toy
    }

    /// Creates an object in a collection.
    pub async fn create(&self, path: &str, object: &Value) -> Value {
        let request = Request::new(path).create(&PostParams::default(), to_vec(object).unwrap());
        answered(self.client.request(request.unwrap()).await).unwrap()
    }

    /// POSTs a Binding by hand; a refusal is its code and its message.
    pub async fn bind(&self, pod: &str, node: &str) -> Result<Value, (u16, String)> {
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
        let data = to_vec(&binding).unwrap();
        let request = Request::new(PODS).create_subresource("binding", pod, &PostParams::default(), data);
        answered(self.client.request(request.unwrap()).await)
    }

    /// Changes an object by a merge patch.
    pub async fn merge(&self, path: &str, name: &str, patch: &Value) -> Value {
        let request = Request::new(path).patch(name, &PatchParams::default(), &Patch::Merge(patch));
        answered(self.client.request(request.unwrap()).await).unwrap()
    }

    /// Changes an object's status by a merge patch.
    pub async fn merge_status(&self, path: &str, name: &str, status: &Value) -> Value {
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(json!({"status": status})));
        let request = Request::new(path).patch_subresource("status", name, &parameters, &patch);
        answered(self.client.request(request.unwrap()).await).unwrap()
    }

    /// Reads an object.
    pub async fn get(&self, path: &str, name: &str) -> Value {
        let request = Request::new(path).get(name, &GetParams::default());
        answered(self.client.request(request.unwrap()).await).unwrap()
    }

    /// The objects of a collection by name, and the version of the list.
    async fn listed(&self, path: &str) -> (BTreeMap<String, Value>, String) {
        let request = Request::new(path).list(&ListParams::default());
        let list = answered(self.client.request(request.unwrap()).await).unwrap();
        let items = list["items"].as_array().unwrap().iter();
        let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        (items.map(|object| (name(object), object.clone())).collect(), version)
    }

    /// The objects of a collection by name.
    pub async fn list(&self, path: &str) -> BTreeMap<String, Value> {
        self.listed(path).await.0
    }

    /// Waits until the objects of a collection are as wanted: a list, then its watch. `None` where `limit` is over.
    pub async fn within(
        &self,
        limit: Duration,
        path: &str,
        wanted: impl Fn(&BTreeMap<String, Value>) -> bool,
    ) -> Option<BTreeMap<String, Value>> {
        let wait = async {
            loop {
                let (mut objects, version) = self.listed(path).await;
                let request = Request::new(path).watch(&WatchParams::default(), &version).unwrap();
                let events = self.client.request_events::<Value>(request).await.unwrap();
                let mut events = Box::pin(events);
                loop {
                    if wanted(&objects) {
                        return objects;
                    }
                    match events.next().await {
                        Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                            objects.insert(name(&object), object);
                        }
                        Some(Ok(WatchEvent::Deleted(object))) => drop(objects.remove(&name(&object))),
                        Some(Ok(WatchEvent::Bookmark(_))) => {}
                        Some(Ok(WatchEvent::Error(_)) | Err(_)) | None => break,
                    }
                }
            }
        };
        tokio::time::timeout(limit, wait).await.ok()
    }

    /// The same, where it has to become so.
    pub async fn until(
        &self,
        path: &str,
        what: &str,
        wanted: impl Fn(&BTreeMap<String, Value>) -> bool,
    ) -> BTreeMap<String, Value> {
        if let Some(objects) = self.within(LONG, path, wanted).await {
            return objects;
        }
        panic!("not within {LONG:?}: {what}; there is {:#?}", self.list(path).await);
    }

    /// A node with these figures, and a spec if need be.
    pub async fn node(&self, name: &str, allocatable: Value, spec: Value) {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec,
            "status": {"allocatable": allocatable}});
        self.create("/api/v1/nodes", &node).await;
    }

    /// A pod for this scheduler.
    pub async fn pod(&self, name: &str, scheduler: &str, requests: Value) -> Value {
        self.create(PODS, &pod(name, scheduler, requests)).await
    }

    /// Waits until a pod has a node, which is the result.
    pub async fn bound(&self, pod: &str) -> String {
        let there = |pods: &BTreeMap<String, Value>| pods.get(pod).is_some_and(|pod| node_of(pod).is_some());
        let pods = self.until(PODS, &format!("{pod} has a node"), there).await;
        node_of(&pods[pod]).unwrap()
    }

    /// Waits until each of these pods has a node or was told that it fits nowhere.
    pub async fn decided(&self, names: &[String]) {
        let look = async {
            loop {
                let (pods, told) = (self.list(PODS).await, self.told("FailedScheduling").await);
                let open = |name: &&String| node_of(&pods[*name]).is_none() && !told.contains_key(*name);
                if !names.iter().any(|name| open(&name)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        assert!(tokio::time::timeout(LONG, look).await.is_ok(), "not all decided in {LONG:?}");
    }

    /// Makes pods of these requests until one gets `node`: then their scheduler has seen what makes room there. (Nodes and
    /// pods are told by watches of their own, so that a pod may come to it before the node that was made earlier.)
    pub async fn lands(&self, prefix: &str, scheduler: &str, node: &str, requests: Value) {
        for n in 0..200 {
            let name = format!("{prefix}-{n}");
            self.pod(&name, scheduler, requests.clone()).await;
            self.decided(std::slice::from_ref(&name)).await;
            match node_of(&self.get(PODS, &name).await) {
                Some(on) if on == node => return,
                Some(on) => panic!("{name} went to {on}, not to {node}"),
                None => {}
            }
        }
        panic!("{node} has room, and no pod goes there");
    }

    /// Waits until a pod has an event of this reason, which is the result.
    pub async fn event(&self, pod: &str, reason: &str) -> Value {
        let find = |events: &BTreeMap<String, Value>| {
            events.values().find(|event| is_of(event, pod, reason)).cloned()
        };
        let what = format!("{reason} of {pod}");
        find(&self.until(EVENTS, &what, |events| find(events).is_some()).await).unwrap()
    }

    /// How often each pod was told this reason: an event that was counted up is as many.
    pub async fn told(&self, reason: &str) -> BTreeMap<String, u64> {
        let mut told = BTreeMap::new();
        for event in self.list(EVENTS).await.values().filter(|event| event["reason"] == reason) {
            let pod = event["involvedObject"]["name"].as_str().unwrap().to_owned();
            *told.entry(pod).or_default() += event["count"].as_u64().unwrap_or(1);
        }
        told
    }

    /// What the scheduler's identity asked for and was answered in full: verb, resource (`pods/binding`), name, code.
    pub fn asked(&self) -> Vec<(String, String, String, u64)> {
        let log = fs::read_to_string(self.dir.path().join("audit.log")).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let events = log.lines().filter_map(|line| from_str::<Value>(line).ok());
        let own = events.filter(|event| {
            event["user"]["username"] == "system:kube-scheduler" && event["stage"] == "ResponseComplete"
        });
        own.map(|event| {
            let object = &event["objectRef"];
            let resource = match object["subresource"].as_str() {
                Some(subresource) => format!("{}/{subresource}", text(&object["resource"])),
                None => text(&object["resource"]),
            };
            let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
            (text(&event["verb"]), resource, text(&object["name"]), code)
        })
        .collect()
    }

    /// Of these, the bindings that were answered with `code`, by pod.
    pub fn bindings(&self, code: u64) -> Vec<String> {
        let asked = self.asked().into_iter();
        let posted = asked.filter(|(verb, resource, _, answer)| {
            verb == "create" && resource == "pods/binding" && *answer == code
        });
        posted.map(|(_, _, pod, _)| pod).collect()
    }
}

/// Looks at a file's or a process's state again and again until it is as wanted.
pub async fn becomes(what: &str, wanted: impl Fn() -> bool) {
    let look = async {
        while !wanted() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(LONG, look).await.is_ok(), "not within {LONG:?}: {what}");
}

/// The object, or the code and the message of a refusal.
fn answered(answer: Result<Value, kube::Error>) -> Result<Value, (u16, String)> {
    answer.map_err(|error| match error {
        kube::Error::Api(status) => (status.code, status.message),
        other => panic!("no answer: {other:?}"),
    })
}

/// A pod of one container for this scheduler.
pub fn pod(name: &str, scheduler: &str, requests: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod_spec(scheduler, requests)})
}

fn pod_spec(scheduler: &str, requests: Value) -> Value {
    json!({"schedulerName": scheduler,
        "containers": [{"name": "c", "image": "rigor.dev/pause", "resources": {"requests": requests}}]})
}

/// A Deployment whose pods are for this scheduler.
pub fn deployment(name: &str, scheduler: &str, replicas: u32, requests: Value) -> Value {
    let labels = json!({"app": name});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec(scheduler, requests)}}})
}

/// The name of an object.
pub fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

/// The node that a pod is on.
pub fn node_of(pod: &Value) -> Option<String> {
    pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()).map(str::to_owned)
}

/// Whether an event is about this pod and for this reason.
pub fn is_of(event: &Value, pod: &str, reason: &str) -> bool {
    event["reason"] == reason
        && event["involvedObject"]["kind"] == "Pod"
        && event["involvedObject"]["name"] == pod
}
