//! A control plane and schedulers as processes, and an administrator who makes nodes and pods and waits for what he watches.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::serde_json::{Value, from_value, json};
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Config, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::binaries::control_plane;
use crate::port::HeldPort;

/// Far longer than anything here takes, however busy the machine.
pub const LONG: Duration = Duration::from_secs(120);

/// A process that ends with the test.
pub struct Ended(pub Child);

impl Ended {
    /// Sends it a signal.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.0.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A toy-scheduler.
pub struct Toy {
    /// The process.
    pub process: Ended,
    lines: Receiver<String>,
    /// What it said that was read so far.
    pub said: Vec<String>,
}

impl Toy {
    /// The next line that contains `words`.
    pub fn says(&mut self, words: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(LONG);
            let line = line.unwrap_or_else(|_| panic!("no {words:?} in {:#?}", self.said));
            self.said.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
    }

    /// Everything that it said up to its end, which is asked for.
    pub fn end(mut self) -> Vec<String> {
        self.process.signal("TERM");
        assert_eq!(self.process.0.wait().unwrap().code(), Some(0));
        self.said.extend(self.lines.iter());
        self.said
    }
}

/// A control plane, and who watches it.
pub struct World {
    dir: tempfile::TempDir,
    flags: Vec<String>,
    port: HeldPort,
    /// The process.
    pub plane: Option<Ended>,
    /// The administrator's.
    pub client: Client,
    /// What all schedulers said, which is printed when a test fails.
    said: Arc<Mutex<Vec<String>>>,
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("toy-scheduler said:\n{}", self.said.lock().unwrap().join("\n"));
        }
    }
}

impl World {
    /// Starts a control plane with these flags besides.
    pub async fn start(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let audit = dir.path().join("audit.log");
        flags.extend(["--audit-log-path".to_owned(), audit.to_str().unwrap().to_owned()]);
        let port = HeldPort::any();
        let plane = serve(dir.path(), &flags, &port);
        let admin = Kubeconfig::read_from(dir.path().join("kubeconfig/admin.kubeconfig")).unwrap();
        let config = Config::from_custom_kubeconfig(admin, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        Self { flags, port, plane: Some(plane), client, said: Arc::default(), dir }
    }

    /// Cuts the control plane's life short.
    pub fn kill(&mut self) {
        self.plane.take().unwrap().signal("KILL");
    }

    /// Starts it again on its address.
    pub fn start_again(&mut self) {
        self.plane = Some(serve(self.dir.path(), &self.flags, &self.port));
    }

    /// A file that the control plane made.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A toy-scheduler under kube-scheduler's identity that has seen everything.
    pub fn toy(&self, flags: &[&str]) -> Toy {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toy-scheduler"));
        command.arg("--kubeconfig").arg(self.file("kubeconfig/scheduler.kubeconfig")).args(flags);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (told, lines) = channel();
        let output = BufReader::new(child.stderr.take().unwrap());
        let said = Arc::clone(&self.said);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                said.lock().unwrap().push(line.clone());
                drop(told.send(line));
            }
        });
        let mut toy = Toy { process: Ended(child), lines, said: Vec::new() };
        toy.says("ready: ");
        toy
    }

    /// Makes a node that has `allocatable`.
    pub async fn node(&self, name: &str, allocatable: Value) {
        self.node_with(name, allocatable, json!({})).await;
    }

    /// The same with a spec.
    pub async fn node_with(&self, name: &str, allocatable: Value, spec: Value) {
        let node = json!({"metadata": {"name": name}, "spec": spec, "status": {"allocatable": allocatable}});
        let node: Node = from_value(node).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &node).await.unwrap();
    }

    /// The pods, events or others of namespace default.
    pub fn api<K: Resource<Scope = NamespaceResourceScope>>(&self) -> Api<K>
    where
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Makes a pod that names `scheduler` and requests `requests`.
    pub async fn pod_of(&self, scheduler: &str, name: &str, requests: Value) {
        let pod = json!({"metadata": {"name": name}, "spec": pod_spec(scheduler, &requests)});
        self.api().create(&PostParams::default(), &from_value::<Pod>(pod).unwrap()).await.unwrap();
    }

    /// Makes a pod that names toy-scheduler.
    pub async fn pod(&self, name: &str, requests: Value) {
        self.pod_of("toy-scheduler", name, requests).await;
    }

    /// Makes a Deployment `web` whose pods name toy-scheduler.
    pub async fn deployment(&self, replicas: u32, requests: Value) {
        let labels = json!({"app": "web"});
        let deployment = json!({"metadata": {"name": "web"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec("toy-scheduler", &requests)}}});
        let deployment: Deployment = from_value(deployment).unwrap();
        self.api().create(&PostParams::default(), &deployment).await.unwrap();
    }

    /// Scales it.
    pub async fn scale(&self, replicas: u32) {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.api::<Deployment>().patch("web", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits until what there is in namespace default satisfies `done`.
    pub async fn until<K>(&self, limit: Duration, what: &str, done: impl Fn(&[K]) -> bool) -> Vec<K>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + 'static,
        K::DynamicType: Default,
    {
        let seen = self.within(limit, done).await;
        seen.unwrap_or_else(|there| panic!("not within {limit:?}: {what}; there is {there:?}"))
    }

    /// What there is in namespace default as soon as it satisfies `done`, or the names of what is there after `limit`.
    pub async fn within<K>(&self, limit: Duration, done: impl Fn(&[K]) -> bool) -> Result<Vec<K>, Vec<String>>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + 'static,
        K::DynamicType: Default,
    {
        let mut seen = BTreeMap::new();
        let work = async {
            let mut events = watcher(self.api::<K>(), watcher::Config::default()).boxed();
            let mut listed = false;
            while let Some(event) = events.next().await {
                match event.unwrap() {
                    watcher::Event::Init => seen.clear(),
                    watcher::Event::InitDone => listed = true,
                    watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                        seen.insert(object.name_any(), object);
                    }
                    watcher::Event::Delete(object) => drop(seen.remove(&object.name_any())),
                }
                let now: Vec<K> = seen.values().cloned().collect();
                if listed && done(&now) {
                    return Some(now);
                }
            }
            None
        };
        let done = tokio::time::timeout(limit, work).await;
        done.ok().flatten().ok_or_else(|| seen.into_keys().collect())
    }

    /// Waits until this pod is on a node, which is the result.
    pub async fn bound(&self, name: &str) -> String {
        let find = |pods: &[Pod]| pods.iter().find(|pod| pod.name_any() == name).and_then(node_of);
        let pods = self.until(LONG, &format!("{name} bound"), |pods| find(pods).is_some()).await;
        find(&pods).unwrap()
    }

    /// Waits until this pod has a FailedScheduling, whose message is the result.
    pub async fn refused(&self, name: &str) -> String {
        let find = |events: &[Event]| {
            let mut events = events.iter();
            let of = |event: &&Event| {
                event.reason.as_deref() == Some("FailedScheduling")
                    && event.involved_object.name.as_deref() == Some(name)
            };
            events.find(of).and_then(|event| event.message.clone())
        };
        let events = self.until(LONG, &format!("{name} refused"), |events| find(events).is_some()).await;
        find(&events).unwrap()
    }

    /// How many events of this reason each pod has, by the pod's name; an event that was counted up counts as often.
    pub async fn events(&self, reason: &str) -> BTreeMap<String, i32> {
        let mut counts = BTreeMap::new();
        for event in self.api::<Event>().list(&Default::default()).await.unwrap() {
            if event.reason.as_deref() == Some(reason) {
                let name = event.involved_object.name.unwrap_or_default();
                *counts.entry(name).or_default() += event.count.unwrap_or(1);
            }
        }
        counts
    }

    /// As [`Self::audited`], once there are so many: an answer waits for its line, but not for ever.
    pub fn audited_at_least(&self, count: usize, verb: &str, resource: &str, sub: &str) -> Vec<Value> {
        loop {
            let audited = self.audited(verb, resource, sub);
            if audited.len() >= count {
                return audited;
            }
            std::thread::yield_now();
        }
    }

    /// What the scheduler's identity asked and was answered, from the audit log.
    pub fn audited(&self, verb: &str, resource: &str, subresource: &str) -> Vec<Value> {
        let log = fs::read_to_string(self.file("audit.log")).unwrap();
        let lines = log.lines().filter_map(|line| k8s_openapi::serde_json::from_str::<Value>(line).ok());
        lines
            .filter(|event| {
                event["user"]["username"] == "system:kube-scheduler"
                    && event["stage"] == "ResponseComplete"
                    && event["verb"] == verb
                    && event["objectRef"]["resource"] == resource
                    && event["objectRef"]["subresource"].as_str().unwrap_or_default() == subresource
            })
            .collect()
    }
}

fn serve(dir: &std::path::Path, flags: &[String], port: &HeldPort) -> Ended {
    let mut command = Command::new(control_plane());
    let address = format!("127.0.0.1:{}", port.number());
    command.args(["--listen", &address, "--data-dir"]).arg(dir).args(flags);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let plane = Ended(child);
    assert!(line.starts_with("control-plane: serving on "), "{line:?}");
    plane
}

fn pod_spec(scheduler: &str, requests: &Value) -> Value {
    json!({"schedulerName": scheduler,
        "containers": [{"name": "c", "image": "rigor.dev/pause", "resources": {"requests": requests}}]})
}

/// The node that the pod is on.
pub fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
}
