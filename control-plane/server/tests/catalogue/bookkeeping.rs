//! GHOST-01, 02, 04, 09: pods and nodes as entries in a book, with nobody behind them.

use serde_json::json;

use crate::kubectl::Kubectl;
use crate::plane::{Plane, node, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
/// So many seconds a watch goes on at most: what it waits for comes when it comes, on whatever machine.
const PATIENCE: u32 = 240;

/// GHOST-01
#[test]
fn without_a_scheduler_a_pod_stays_pending_and_nothing_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory", "--controllers=*,-scheduler"]);
    node(&plane.admin, "room");
    let created = plane.admin.post(PODS, &pod("p")).is(201);
    let version = created["metadata"]["resourceVersion"].as_str().unwrap();
    // The server's own clock ends the wait: no change of the pod in these seconds, and no event.
    let path = format!("{PODS}?resourceVersion={version}");
    assert_eq!(plane.admin.watch(&path, 5).next(), None);
    let read = plane.admin.get(&format!("{PODS}/p")).is(200);
    assert_eq!(read, created);
    assert_eq!(read["spec"].get("nodeName"), None);
    assert_eq!(read["status"]["phase"], "Pending");
    assert_eq!(plane.admin.get("/api/v1/namespaces/default/events").is(200)["items"], json!([]));
    let Some(kubectl) = Kubectl::new(dir.path(), plane.kubeconfig("admin")) else { return };
    let described = kubectl.ok(&["describe", "pod", "p"], &["Node:", "<none>", "Status:", "Pending"]);
    assert!(described.contains("Events:") && described.trim_end().ends_with("<none>"), "{described}");
}

/// GHOST-02: no lifecycle controller, so nobody gives the Node a Ready condition.
#[test]
fn a_node_made_by_hand_is_listed_unknown_without_roles() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory", "--controllers=*,-node-lifecycle"]);
    let Some(kubectl) = Kubectl::new(dir.path(), plane.kubeconfig("admin")) else { return };
    kubectl.write("ghost.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: ghost}\n");
    kubectl.ok(&["create", "-f", "ghost.yaml"], &["node/ghost created"]);
    plane.admin.watch("/api/v1/nodes?resourceVersion=0", 4).for_each(drop);
    let listed = kubectl.ok(&["get", "nodes", "--no-headers"], &[]);
    let columns: Vec<&str> = listed.split_whitespace().collect();
    assert_eq!(columns[..3], ["ghost", "Unknown", "<none>"], "{listed}");
    kubectl.ok(&["get", "node", "ghost", "-o", "jsonpath={.status.conditions}"], &[""]);
}

/// GHOST-02: with the lifecycle controller it becomes NotReady, and is at no time Ready.
#[test]
fn a_node_made_by_hand_becomes_not_ready_once_the_lifecycle_controller_looked_at_it() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--store", "memory", "--not-ready-timeout", "2s", "--node-monitor-period", "500ms"];
    let plane = Plane::tls(dir.path(), &flags);
    let Some(kubectl) = Kubectl::new(dir.path(), plane.kubeconfig("admin")) else { return };
    let ghost = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost"}});
    let version = plane.admin.post("/api/v1/nodes", &ghost).is(201)["metadata"]["resourceVersion"].clone();
    kubectl.ok(&["get", "nodes", "--no-headers"], &["ghost", "<none>"]);
    let path = format!("/api/v1/nodes?resourceVersion={}", version.as_str().unwrap());
    let mut judged = false;
    for event in plane.admin.watch(&path, 6) {
        let conditions = event["object"]["status"]["conditions"].clone();
        for condition in conditions.as_array().into_iter().flatten().filter(|one| one["type"] == "Ready") {
            assert_ne!(condition["status"], "True", "{event}");
            judged = true;
        }
    }
    if !judged {
        let ready = |node: &serde_json::Value| {
            node["status"]["conditions"].as_array().into_iter().flatten().any(|one| one["type"] == "Ready")
        };
        let judged = plane.admin.until("/api/v1/nodes", PATIENCE, ready);
        assert!(!judged["status"]["conditions"].to_string().contains("\"True\""), "{judged}");
    }
    let listed = kubectl.ok(&["get", "nodes", "--no-headers"], &[]);
    let columns: Vec<&str> = listed.split_whitespace().collect();
    assert_eq!(columns[..3], ["ghost", "NotReady", "<none>"], "{listed}");
}

/// GHOST-04, GHOST-09: refused, a service account made by hand, accepted.
#[test]
fn a_pod_waits_for_its_namespaces_service_account() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory", "--controllers=*,-serviceaccount"]);
    let bare = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bare"}});
    plane.admin.post("/api/v1/namespaces", &bare).is(201);
    for namespace in ["default", "bare"] {
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let message = format!(
            "pods \"p\" is forbidden: error looking up service account {namespace}/default: serviceaccount \"default\" not found"
        );
        let refused = plane.admin.post(&path, &pod("p")).refused(403, "Forbidden", &[]);
        assert_eq!(refused["message"], message);
        assert_eq!(refused["details"], json!({"name": "p", "kind": "pods"}));
        assert_eq!(plane.admin.get(&path).is(200)["items"], json!([]));
    }

    let Some(kubectl) = Kubectl::new(dir.path(), plane.kubeconfig("admin")) else { return };
    kubectl.write("pod.yaml", &pod("p").to_string());
    let apply = ["apply", "-n", "bare", "-f", "pod.yaml"];
    kubectl.ends(1, &apply, &["Forbidden", "error looking up service account bare/default"]);
    kubectl.ok(&["create", "serviceaccount", "default", "-n", "bare"], &["serviceaccount/default created"]);
    kubectl.ok(&apply, &["pod/p created"]);
    kubectl.ok(&["get", "pod", "p", "-n", "bare", "-o", "jsonpath={.spec.serviceAccountName}"], &["default"]);

    // Its own name is kept, and has to be there as well.
    let mut robot = pod("robot");
    robot["spec"]["serviceAccountName"] = json!("robot");
    let words = ["error looking up service account bare/robot: serviceaccount \"robot\" not found"];
    plane.admin.post("/api/v1/namespaces/bare/pods", &robot).refused(403, "Forbidden", &words);
    kubectl.ok(&["create", "serviceaccount", "robot", "-n", "bare"], &["created"]);
    let made = plane.admin.post("/api/v1/namespaces/bare/pods", &robot).is(201);
    assert_eq!(made["spec"]["serviceAccountName"], "robot");
}

/// GHOST-04: the plugin can be switched off as well; then there is nothing to look up.
#[test]
fn without_the_admission_plugin_no_service_account_is_looked_up() {
    let dir = tempfile::tempdir().unwrap();
    let flags =
        ["--store", "memory", "--controllers=*,-serviceaccount", "--disable-admission", "ServiceAccount"];
    let plane = Plane::tls(dir.path(), &flags);
    let made = plane.admin.post(PODS, &pod("p")).is(201);
    assert_eq!(made["spec"].get("serviceAccountName"), None, "{made}");
}

/// GHOST-04: the controller makes one for every namespace, and again where it is deleted.
#[test]
fn a_controller_makes_every_namespaces_service_account() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory"]);
    let fresh = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fresh"}});
    plane.admin.post("/api/v1/namespaces", &fresh).is(201);
    let mut uids = std::collections::BTreeSet::new();
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease", "fresh"] {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        let made = plane.admin.until(&path, PATIENCE, |account| account["metadata"]["name"] == "default");
        assert!(uids.insert(made["metadata"]["uid"].as_str().unwrap().to_owned()));
    }
    let path = "/api/v1/namespaces/fresh/serviceaccounts";
    let first = plane.admin.get(&format!("{path}/default")).is(200)["metadata"]["uid"].clone();
    plane.admin.delete(&format!("{path}/default")).is(200);
    let again = plane.admin.until(path, PATIENCE, |account| account["metadata"]["name"] == "default");
    assert_ne!(again["metadata"]["uid"], first);
    let made = plane.admin.post("/api/v1/namespaces/fresh/pods", &pod("p")).is(201);
    assert_eq!(made["spec"]["serviceAccountName"], "default");
}
