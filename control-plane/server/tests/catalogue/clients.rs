//! The kubectl commands whose requests and exit codes were recorded against Kubernetes 1.32, in the recorded order, over
//! TLS with the administrator's kubeconfig. The table of all of them is printed; one that ends otherwise fails the test.

use serde_json::json;

use crate::kubectl::Kubectl;
use crate::plane::{Plane, node, pod, pod_for_nobody};

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: rigor.dev/pause, ports: [{containerPort: 80}]}
";
const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {a: '1'}\n";

/// So many seconds a watch goes on at most: what it waits for comes when it comes, on whatever machine.
const PATIENCE: u32 = 240;

/// A command (arguments separated by blanks), its recorded exit code, and words of what it says.
type Row = (&'static str, i32, &'static [&'static str]);

const BEFORE_SERVER_SIDE_APPLY: [Row; 5] = [
    ("version", 0, &["Client Version:", "Server Version: v1.32"]),
    (
        "api-resources",
        0,
        &[
            "NAME",
            "SHORTNAMES",
            "APIVERSION",
            "NAMESPACED",
            "KIND",
            "deployments",
            "deploy",
            "apps/v1",
            "leases",
            "events.k8s.io/v1",
        ],
    ),
    ("apply -f d.yaml", 0, &["deployment.apps/web created"]),
    ("apply -f d2.yaml", 0, &["deployment.apps/web configured"]),
    ("diff -f d3.yaml", 1, &["-  replicas: 3", "+  replicas: 4"]),
];
const SERVER_SIDE_APPLY: &str = "apply --server-side -f cm.yaml";
const AFTER_SERVER_SIDE_APPLY: [Row; 31] = [
    ("get pods", 0, &["NAME", "READY", "STATUS", "RESTARTS", "AGE", "web-", "0/1", "Pending"]),
    (
        "get pods -o wide -A",
        0,
        &["NAMESPACE", "NODE", "NOMINATED NODE", "READINESS GATES", "default", "hollow-0"],
    ),
    (
        "get deploy web -o yaml",
        0,
        &["kind: Deployment", "replicas: 3", "kubectl.kubernetes.io/last-applied-configuration"],
    ),
    (
        "describe node hollow-0",
        0,
        &[
            "Name:",
            "hollow-0",
            "Allocatable:",
            "HolderIdentity:",
            "Non-terminated Pods:",
            "web-",
            "Allocated resources:",
        ],
    ),
    (
        "describe pod a",
        0,
        &[
            "Name:",
            "Status:",
            "Pending",
            "Containers:",
            "Tolerations:",
            "node.kubernetes.io/not-ready:NoExecute op=Exists for 300s",
        ],
    ),
    (
        "describe deploy web",
        0,
        &[
            "Replicas:",
            "3 desired",
            "StrategyType:",
            "Pod Template:",
            "Conditions:",
            "MinimumReplicasUnavailable",
        ],
    ),
    (
        "get events --field-selector involvedObject.name=big",
        0,
        &["LAST SEEN", "Warning", "FailedScheduling", "pod/big", "Insufficient memory"],
    ),
    ("events", 0, &["FailedScheduling", "Scheduled", "Successfully assigned default/web-"]),
    ("scale deploy web --replicas=1", 0, &["deployment.apps/web scaled"]),
    (
        "rollout status deploy/web --timeout=6s",
        1,
        &["Waiting for deployment", "timed out waiting for the condition"],
    ),
    ("rollout restart deploy/web", 0, &["deployment.apps/web restarted"]),
    ("rollout history deploy/web", 0, &["deployment.apps/web"]),
    (
        "wait --for=condition=Available deploy/web --timeout=2s",
        1,
        &["timed out waiting for the condition on deployments/web"],
    ),
    ("label node hollow-0 a=b", 0, &["node/hollow-0 labeled"]),
    ("taint node hollow-0 k=v:NoSchedule", 0, &["node/hollow-0 tainted"]),
    ("cordon hollow-1", 0, &["node/hollow-1 cordoned"]),
    (
        "drain hollow-1 --force --ignore-daemonsets",
        0,
        &["node/hollow-1 already cordoned", "node/hollow-1 drained"],
    ),
    ("explain pod.spec.containers", 0, &["KIND:", "Pod", "FIELD: containers", "image", "<string>"]),
    ("auth can-i create pods", 0, &["yes"]),
    ("auth whoami", 0, &["ATTRIBUTE", "Username", "Groups", "system:masters", "system:authenticated"]),
    ("create serviceaccount x", 0, &["serviceaccount/x created"]),
    ("create token x", 0, &["eyJ"]),
    ("logs a", 0, &[]),
    ("top nodes", 1, &["Metrics API not available"]),
    ("delete pod a --wait=false", 0, &["pod \"a\" deleted"]),
    ("delete deploy web", 0, &["deployment.apps \"web\" deleted"]),
    ("run t --image=pause --dry-run=server -o yaml", 0, &["kind: Pod", "name: t", "uid:", "phase: Pending"]),
    ("get --raw /readyz", 0, &["ok"]),
    (
        "patch cm cm --type=json -p [{\"op\":\"add\",\"path\":\"/data/b\",\"value\":\"2\"}]",
        0,
        &["configmap/cm patched"],
    ),
    ("replace -f cm.yaml", 0, &["configmap/cm replaced"]),
    ("get all", 0, &["NAME", "pod/big", "service/kubernetes"]),
];

/// A control plane with what the recorded cluster had: a node with room, one without, a pod for nobody, one too big.
fn prepared() -> Option<(tempfile::TempDir, Plane, Kubectl)> {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--reconcile-interval", "1s"]);
    let kubectl = Kubectl::new(dir.path(), plane.kubeconfig("admin"))?;
    node(&plane.admin, "hollow-0");
    let bare = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "hollow-1"}});
    plane.admin.post("/api/v1/nodes", &bare).is(201);
    let pods = "/api/v1/namespaces/default/pods";
    plane.admin.post(pods, &pod_for_nobody("a")).is(201);
    let mut big = pod("big");
    big["spec"]["containers"][0]["resources"] = json!({"requests": {"memory": "1Gi"}});
    plane.admin.post(pods, &big).is(201);
    kubectl.write("d.yaml", DEPLOYMENT);
    kubectl.write("d2.yaml", &DEPLOYMENT.replace("replicas: 2", "replicas: 3"));
    kubectl.write("d3.yaml", &DEPLOYMENT.replace("replicas: 2", "replicas: 4"));
    kubectl.write("cm.yaml", CONFIG_MAP);
    Some((dir, plane, kubectl))
}

/// Runs a row, prints its line of the table, and says what is wrong with it.
fn check(kubectl: &Kubectl, (command, recorded, words): &Row) -> Option<String> {
    let arguments: Vec<&str> = command.split(' ').collect();
    let (code, said) = kubectl.run(&arguments);
    let got = code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
    let missing: Vec<&&str> = words.iter().filter(|word| !said.contains(**word)).collect();
    println!(
        "| kubectl {command} | {recorded} | {got} |{}",
        if missing.is_empty() { "" } else { " words missing |" }
    );
    let right = code == Some(*recorded) && missing.is_empty();
    (!right).then(|| format!("kubectl {command}: {got} instead of {recorded}, without {missing:?}:\n{said}"))
}

/// Every recorded command ends as recorded and says the same things.
#[test]
fn recorded_kubectl_commands_end_as_recorded() {
    let Some((_dir, plane, kubectl)) = prepared() else { return };
    println!("| command | recorded exit | got |\n| --- | --- | --- |");
    let mut wrong: Vec<String> =
        BEFORE_SERVER_SIDE_APPLY.iter().filter_map(|row| check(&kubectl, row)).collect();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    plane.admin.until(deployments, PATIENCE, |web| web["status"]["replicas"] == 3);
    // What the rows below show of pods and events comes when it comes.
    let (mut scheduled, mut refused) = (std::collections::BTreeSet::new(), false);
    let mut events = plane.admin.watch("/api/v1/namespaces/default/events", PATIENCE);
    while scheduled.len() < 3 || !refused {
        let event = events.next().expect("three pods are scheduled and one is refused")["object"].clone();
        match event["reason"].as_str() {
            Some("Scheduled") => drop(scheduled.insert(event["involvedObject"]["name"].to_string())),
            Some("FailedScheduling") => refused |= event["involvedObject"]["name"] == "big",
            _ => {}
        }
    }

    // Server-side apply may be missing; then it has to say so.
    let (code, said) = kubectl.run(&SERVER_SIDE_APPLY.split(' ').collect::<Vec<_>>());
    println!("| kubectl {SERVER_SIDE_APPLY} | 0 | {} |", code.unwrap());
    let told = match code {
        Some(0) => said.contains("configmap/cm serverside-applied"),
        _ => said.to_lowercase().contains("server-side apply not available"),
    };
    if !told {
        wrong.push(format!("kubectl {SERVER_SIDE_APPLY}: {said}"));
    }
    if code != Some(0) {
        kubectl.ok(&["create", "-f", "cm.yaml"], &["configmap/cm created"]);
    }
    wrong.extend(AFTER_SERVER_SIDE_APPLY.iter().filter_map(|row| check(&kubectl, row)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
