//! kubectl against the running binary. Skipped, with the reason printed, where there is no kubectl.

#[path = "support/kubectl.rs"]
mod kubectl;
mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use kubectl::Kubectl;
use support::{Process, command};

struct Cluster {
    kubectl: Kubectl,
    process: Process,
    _dir: tempfile::TempDir,
}

/// So long is waited for what must come. It guards against a hang; no correct answer takes so long, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[expect(clippy::disallowed_methods, reason = "bounds how long a process that hangs is waited for")]
fn now() -> Instant {
    Instant::now()
}

impl Cluster {
    /// A control plane with a board `a` that is played by status writes; nothing where there is no kubectl.
    fn start() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let kubectl = Kubectl::new(dir.path(), dir.path().join("kubeconfig/admin.kubeconfig"))?;
        let mut start = command(dir.path());
        start.args(["--store", "memory", "--reconcile-interval", "1s"]);
        let cluster = Self { process: Process::start(start), kubectl, _dir: dir };
        cluster.write("node.yaml", NODE);
        cluster.ok(&["create", "-f", "node.yaml"]);
        cluster.ok(&["patch", "node", "a", "--subresource=status", "--type=merge", "-p", READY]);
        cluster.write("lease.yaml", LEASE);
        cluster.ok(&["create", "-f", "lease.yaml"]);
        Some(cluster)
    }

    fn write(&self, name: &str, content: &str) {
        self.kubectl.write(name, content);
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        self.kubectl.ok(arguments, &[])
    }

    #[track_caller]
    fn says(&self, arguments: &[&str], words: &[&str]) {
        self.kubectl.ok(arguments, words);
    }

    /// As [`Self::says`], for what controllers bring about or record later than what was waited for before.
    #[track_caller]
    fn comes_to_say(&self, arguments: &[&str], words: &[&str]) {
        self.until(arguments, |said| words.iter().all(|word| said.contains(word)));
    }

    #[track_caller]
    fn fails(&self, arguments: &[&str], words: &[&str]) {
        self.kubectl.ends(1, arguments, words);
    }

    /// Asks kubectl again and again until what it says is as it must be, and gives that; fails after [`PATIENCE`].
    ///
    /// For what controllers do later: `kubectl wait` ends at once where it finds no object yet.
    #[track_caller]
    fn until(&self, arguments: &[&str], holds: impl Fn(&str) -> bool) -> String {
        let asked = now();
        loop {
            let said = self.ok(arguments);
            if holds(&said) {
                return said;
            }
            assert!(
                asked.elapsed() < PATIENCE,
                "kubectl {arguments:?} says after {PATIENCE:?} still:\n{said}"
            );
        }
    }

    /// The names of so many pods, as `pod/NAME`, as soon as they are there and bound to the board; those of `before` not counted.
    #[track_caller]
    fn bound_pods(&self, selector: &str, count: usize, before: &[String]) -> Vec<String> {
        let shown = r#"jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{"\n"}{end}"#;
        let bound = |said: &str| -> Vec<String> {
            let names = said.lines().filter_map(|line| line.strip_suffix(" a"));
            names.map(|name| format!("pod/{name}")).filter(|name| !before.contains(name)).collect()
        };
        let arguments = ["get", "pods", "-l", selector, "-o", shown];
        bound(&self.until(&arguments, |said| bound(said).len() == count))
    }

    /// The board says that these pods run.
    #[track_caller]
    fn run_pods(&self, names: &[String]) {
        for name in names {
            self.ok(&["patch", name, "--subresource=status", "--type=merge", "-p", RUNNING]);
        }
    }
}

const NODE: &str =
    r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"board": "test"}}}"#;
const READY: &str = r#"{"status": {"allocatable": {"memory": "200Ki", "esp32.io/gpio": "8"},
    "capacity": {"memory": "200Ki", "esp32.io/gpio": "8"},
    "nodeInfo": {"kubeletVersion": "v0.1.0"},
    "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ok"}]}}"#;
// A long lease: the board of this test does not renew.
const LEASE: &str = r#"{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
    "metadata": {"name": "a", "namespace": "kube-node-lease"},
    "spec": {"holderIdentity": "a", "leaseDurationSeconds": 3600, "renewTime": "2026-01-01T00:00:00.000000Z"}}"#;
const RUNNING: &str = r#"{"status": {"phase": "Running", "podIP": "10.0.0.7", "conditions":
    [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}, {"type": "PodScheduled", "status": "True"}],
    "containerStatuses": [{"name": "c", "image": "rigor.dev/pause", "imageID": "", "ready": true, "restartCount": 0,
    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}}"#;
const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: p}}
spec:
  containers:
  - name: c
    image: rigor.dev/pause
    resources: {requests: {memory: 32Ki, esp32.io/gpio: "1"}, limits: {esp32.io/gpio: "1"}}
"#;
const DEPLOYMENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: rigor.dev/pause}]
"#;

const DAEMONSET: &str = r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: c, image: rigor.dev/pause}]
"#;

#[test]
fn daemon_sets_roll_out() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.ok(&["label", "node", "a", "kubernetes.io/hostname=a"]);
    cluster.write("agent.yaml", DAEMONSET);
    cluster.says(&["apply", "-f", "agent.yaml"], &["daemonset.apps/agent created"]);
    let placed = "--for=jsonpath={.status.currentNumberScheduled}=1";
    cluster.says(&["wait", placed, "ds/agent", "--timeout=60s"], &["condition met"]);
    let old = cluster.bound_pods("app=agent", 1, &[]);
    cluster.run_pods(&old);
    cluster.says(&["rollout", "status", "ds/agent", "--timeout=60s"], &["successfully rolled out"]);
    cluster.says(
        &["get", "ds", "-o", "wide"],
        &["DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "NODE SELECTOR", "app=agent"],
    );
    cluster.comes_to_say(
        &["describe", "ds", "agent"],
        &[
            "Number of Nodes Misscheduled: 0",
            "1 Running / 0 Waiting",
            "Created pod: agent-",
            "daemonset-controller",
        ],
    );
    cluster.ok(&["rollout", "restart", "ds/agent"]);
    cluster.ok(&["delete", &old[0], "--grace-period=0", "--force"]);
    // The status may still tell of the pod that is gone, so that the new pod itself is waited for.
    let new = cluster.bound_pods("app=agent", 1, &old);
    cluster.run_pods(&new);
    cluster.says(&["rollout", "status", "ds/agent", "--timeout=60s"], &["successfully rolled out"]);
    cluster.ok(&["wait", "--for=jsonpath={.status.updatedNumberScheduled}=1", "ds/agent", "--timeout=60s"]);
    assert_eq!(cluster.ok(&["get", "pods", "-l", "app=agent", "-o", "name"]).trim(), new[0]);
}

#[test]
fn jobs_complete_and_take_their_pods_along() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.says(&["create", "job", "once", "--image=rigor.dev/pause"], &["job.batch/once created"]);
    cluster.ok(&["wait", "--for=jsonpath={.status.active}=1", "job/once", "--timeout=60s"]);
    cluster.fails(&["wait", "--for=condition=complete", "job/once", "--timeout=1s"], &["timed out"]);
    let pod = &cluster.bound_pods("job-name=once", 1, &[])[0];
    let succeeded = r#"{"status": {"phase": "Succeeded"}}"#;
    cluster.ok(&["patch", pod, "--subresource=status", "--type=merge", "-p", succeeded]);
    cluster.says(&["wait", "--for=condition=complete", "job/once", "--timeout=60s"], &["condition met"]);
    cluster.says(&["get", "job"], &["STATUS", "COMPLETIONS", "DURATION", "Complete", "1/1"]);
    cluster.comes_to_say(
        &["describe", "job", "once"],
        &[
            "0 Active (0 Ready) / 1 Succeeded / 0 Failed",
            "Created pod: once-",
            "Job completed",
            "job-controller",
        ],
    );
    cluster.says(&["delete", "job", "once"], &["deleted"]);
    cluster.ok(&["wait", "--for=delete", pod, "--timeout=60s"]);
}

#[test]
fn nodes_and_pods_are_shown_described_and_deleted() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.write("pod.yaml", POD);
    cluster.says(&["config", "view"], &[cluster.process.url.trim_start_matches("http://")]);
    cluster.says(&["version"], &["Server Version: v1.32"]);
    cluster.says(&["api-resources"], &["deployments", "configmaps", "leases"]);
    cluster.says(&["apply", "-f", "pod.yaml"], &["pod/p created"]);
    cluster.says(&["apply", "-f", "pod.yaml"], &["pod/p unchanged"]);
    cluster.says(&["get", "nodes"], &["NAME", "STATUS", "a ", "Ready"]);
    cluster.says(&["get", "pods", "-o", "wide"], &["NAME", "NODE", "p ", "Pending"]);
    cluster.run_pods(&cluster.bound_pods("app=p", 1, &[]));
    cluster.says(&["get", "pods", "-A"], &["default", "1/1", "Running"]);
    cluster.says(&["get", "pod", "p", "-o", "yaml"], &["nodeName: a", "serviceAccountName: default"]);
    cluster.says(&["get", "pod", "p", "-o", "jsonpath={.spec.nodeName}"], &["a"]);
    cluster.comes_to_say(
        &["describe", "pod", "p"],
        &["Node:", "Successfully assigned default/p to a", "Events:"],
    );
    cluster
        .says(&["describe", "node", "a"], &["Allocatable:", "esp32.io/gpio", "HolderIdentity:", "default"]);
    cluster.says(&["get", "lease", "-n", "kube-node-lease"], &["HOLDER", "a "]);
    cluster.comes_to_say(&["events"], &["Scheduled"]);
    cluster.says(&["get", "events", "--field-selector", "involvedObject.name=p"], &["Scheduled", "pod/p"]);
    cluster.says(&["wait", "--for=condition=Ready", "pod/p", "--timeout=60s"], &["condition met"]);
    cluster.says(&["label", "pod", "p", "x=y"], &["labeled"]);
    cluster.says(&["delete", "pod", "p", "--grace-period=0", "--force"], &["force deleted"]);
    cluster.fails(&["get", "pod", "p"], &["NotFound", "pods \"p\" not found"]);
}

#[test]
fn a_pod_is_bound_by_hand() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.write(
        "pod.yaml",
        &POD.replace("spec:\n  containers", "spec:\n  schedulerName: by-hand\n  containers"),
    );
    cluster.ok(&["apply", "-f", "pod.yaml"]);
    let binding =
        r#"{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Node","name":"a"}}"#;
    cluster.write("binding.json", binding);
    let bind = ["create", "--raw", "/api/v1/namespaces/default/pods/p/binding", "-f", "binding.json"];
    cluster.says(&bind, &["Success"]);
    cluster.fails(&bind, &["pod p is already assigned to node \"a\""]);
    cluster.says(&["get", "pod", "p", "-o", "jsonpath={.spec.nodeName}"], &["a"]);
}

#[test]
fn a_deployment_is_applied_scaled_rolled_out_and_deleted() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.write("web.yaml", DEPLOYMENT);
    cluster.says(&["apply", "-f", "web.yaml"], &["deployment.apps/web created"]);
    cluster.fails(&["rollout", "status", "deploy/web", "--timeout=3s"], &["timed out"]);
    cluster.run_pods(&cluster.bound_pods("app=web", 2, &[]));
    cluster.says(&["rollout", "status", "deploy/web", "--timeout=60s"], &["successfully rolled out"]);
    cluster.says(&["wait", "--for=condition=Available", "deploy/web", "--timeout=60s"], &["condition met"]);
    cluster.says(&["get", "deploy", "web"], &["2/2"]);
    cluster.says(&["describe", "deploy", "web"], &["Replicas:", "2 desired", "MinimumReplicasAvailable"]);
    cluster.write("web.yaml", &DEPLOYMENT.replace("replicas: 2", "replicas: 3"));
    cluster.says(&["apply", "-f", "web.yaml"], &["deployment.apps/web configured"]);
    cluster.says(&["scale", "deploy", "web", "--replicas=1"], &["scaled"]);
    cluster.says(&["get", "deploy", "web", "-o", "jsonpath={.spec.replicas}"], &["1"]);
    cluster.says(&["rollout", "pause", "deploy/web"], &["paused"]);
    cluster.says(&["rollout", "resume", "deploy/web"], &["resumed"]);
    cluster.says(&["rollout", "restart", "deploy/web"], &["restarted"]);
    cluster.says(&["scale", "deploy", "web", "--replicas=0"], &["scaled"]);
    cluster.says(&["delete", "deploy", "web", "--wait=false"], &["deleted"]);
    cluster.says(&["get", "all"], &[]);
}

#[test]
fn ep_05_endpoints_are_shown_described_waited_for_and_followed() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.write("pod.yaml", POD);
    cluster.ok(&["apply", "-f", "pod.yaml"]);
    cluster.says(&["expose", "pod", "p", "--port=80", "--target-port=8080"], &["service/p exposed"]);
    cluster.says(&["get", "endpoints", "p"], &["ENDPOINTS", "<none>"]);
    let mut follow = cluster.kubectl.command(&["get", "ep", "p", "-w", "--no-headers"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().unwrap();
    let mut rows = BufReader::new(follow.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    assert!(rows.next().is_some_and(|row| row.contains("<none>")));
    cluster.run_pods(&cluster.bound_pods("app=p", 1, &[]));
    assert!(rows.next().is_some_and(|row| row.contains("10.0.0.7:8080")));
    follow.kill().unwrap();
    follow.wait().unwrap();
    let address = "--for=jsonpath={.subsets[0].addresses[0].ip}=10.0.0.7";
    cluster.says(&["wait", address, "endpoints/p", "--timeout=60s"], &["condition met"]);
    cluster.says(
        &["get", "endpoints,endpointslices"],
        &["endpoints/p", "10.0.0.7:8080", "endpointslice.discovery.k8s.io/p-", "IPv4", "8080", "10.0.0.7"],
    );
    cluster.says(&["describe", "service", "p"], &["Selector:", "app=p", "10.0.0.7:8080"]);
    cluster.says(&["describe", "endpoints", "p"], &["Addresses:", "10.0.0.7", "8080"]);
    let slices = ["-l", "kubernetes.io/service-name=p"];
    cluster.says(&[&["describe", "endpointslices"], &slices[..]].concat(), &["Ready:", "true", "Pod/p"]);
    cluster.fails(&["delete", "endpoints", "p"], &["does not allow this method"]);
    cluster.fails(&["label", "endpoints", "p", "a=b"], &["does not allow this method"]);
    cluster.ok(&["delete", "service", "p"]);
    cluster.fails(&["get", "endpoints", "p"], &["not found"]);
}

#[test]
fn mistakes_are_told_in_kubernetes_words() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.write("typo.yaml", &POD.replace("containers:", "containerz:"));
    cluster.fails(&["apply", "-f", "typo.yaml"], &["containerz"]);
    cluster.fails(&["get", "nonsense"], &["the server doesn't have a resource type \"nonsense\""]);
    cluster.write(
        "default.json",
        r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}"#,
    );
    cluster.fails(&["create", "-f", "default.json"], &["namespaces \"default\" already exists"]);
    cluster.fails(&["delete", "namespace", "default"], &["this namespace may not be deleted"]);
    cluster
        .write("foo.json", r#"{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "f"}}"#);
    let unknown =
        ["no matches for kind \"Foo\" in version \"example.com/v1\"", "ensure CRDs are installed first"];
    cluster.fails(&["create", "-f", "foo.json"], &unknown);
    cluster.fails(&["apply", "-f", "foo.json"], &unknown);
}

#[test]
fn nodes_are_cordoned_and_tainted_and_namespaces_come_and_go() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.says(&["cordon", "a"], &["cordoned"]);
    cluster.says(&["get", "node", "a"], &["SchedulingDisabled"]);
    cluster.says(&["uncordon", "a"], &["uncordoned"]);
    cluster.says(&["taint", "node", "a", "k=v:NoSchedule"], &["tainted"]);
    cluster.says(&["taint", "node", "a", "k-"], &["untainted"]);
    cluster.says(&["create", "namespace", "ns"], &["namespace/ns created"]);
    cluster.comes_to_say(&["get", "serviceaccount", "-n", "ns"], &["default"]);
    cluster.write("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {k: v}\n");
    cluster.says(&["apply", "-n", "ns", "-f", "cm.yaml"], &["configmap/cm created"]);
    cluster.says(&["get", "cm", "-n", "ns"], &["cm", "DATA"]);
    cluster.says(&["create", "configmap", "other", "-n", "ns", "--from-literal=a=b"], &["created"]);
    cluster.says(&["get", "configmap", "other", "-n", "ns", "-o", "jsonpath={.data.a}"], &["b"]);
    cluster.says(&["create", "secret", "generic", "s", "-n", "ns", "--from-literal=k=v"], &["created"]);
    cluster.says(&["get", "secret", "s", "-n", "ns", "-o", "jsonpath={.data.k}"], &["dg=="]);
    cluster.says(&["create", "serviceaccount", "robot", "-n", "ns"], &["created"]);
    cluster.says(
        &["create", "deployment", "d", "-n", "ns", "--image=rigor.dev/pause", "--replicas=2"],
        &["created"],
    );
    cluster.says(&["get", "deploy", "d", "-n", "ns", "-o", "jsonpath={.spec.replicas}"], &["2"]);
    cluster.says(&["auth", "whoami"], &["kubernetes-admin", "system:masters"]);
    cluster.says(&["auth", "can-i", "create", "pods"], &["yes"]);
    cluster.says(&["delete", "deploy", "d", "-n", "ns"], &["deleted"]);
    // Nobody makes further pods, and no board ends those that there are.
    cluster.until(&["get", "rs", "-n", "ns", "-o", "name"], str::is_empty);
    cluster.ok(&["delete", "pods", "--all", "-n", "ns", "--grace-period=0", "--force"]);
    cluster.says(&["delete", "namespace", "ns", "--timeout=60s"], &["deleted"]);
    cluster.fails(&["get", "namespace", "ns"], &["not found"]);
}
