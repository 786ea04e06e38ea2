//! Who may do what: tokens, roles, boards (KLET-08, GHOST-04, GHOST-05, GHOST-09).

use control_plane::config::{Admission, Controllers};
use serde_json::{Value, json};

use crate::rig::{ADMIN, LEASES, PODS, Rig, board, lease, pod};

#[test]
fn ghost_05_the_unknown_are_401_and_the_anonymous_and_unprivileged_403() {
    let rig = Rig::new();
    let check = |token: &str, path: &str, status: u16, message: &str| {
        let answer = rig.call_as(token, "GET", path, &Value::Null);
        assert_eq!(
            (answer.status, answer.body["message"].as_str().unwrap_or_default()),
            (status, message),
            "{token} {path}"
        );
    };
    check("wrong", PODS, 401, "Unauthorized");
    let cannot = |user: &str| {
        format!(
            "pods is forbidden: User \"{user}\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\""
        )
    };
    check("", PODS, 403, &cannot("system:anonymous"));
    check("nobody-token", PODS, 403, &cannot("nobody"));
    check(
        "nobody-token",
        "/api/v1/nodes",
        403,
        "nodes is forbidden: User \"nobody\" cannot list resource \"nodes\" in API group \"\" at the cluster scope",
    );
    check("", "/healthz", 200, "");
    check("", "/version", 200, "");
    check("", "/api/v1", 403, "forbidden: User \"system:anonymous\" cannot get path \"/api/v1\"");
    assert_eq!(rig.call_as("wrong", "GET", "/healthz", &Value::Null).status, 401);
    assert_eq!(rig.call_as("scheduler-token", "GET", PODS, &Value::Null).status, 200);
    assert_eq!(rig.call_as("scheduler-token", "POST", PODS, &pod("p", &json!({}))).status, 403);
}

#[test]
fn whoami_tells_the_user_and_its_groups() {
    let rig = Rig::new();
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let user = rig.call_as(ADMIN, "POST", path, &review).expect(201)["status"]["userInfo"].clone();
    let expected = json!({"username": "admin", "uid": "admin-uid", "groups": ["system:masters", "system:authenticated"]});
    assert_eq!(user, expected);
    let access = |token: &str, verb: &str| {
        let attributes = json!({"verb": verb, "resource": "pods", "namespace": "default"});
        let review = json!({"spec": {"resourceAttributes": attributes}});
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        rig.call_as(token, "POST", path, &review).expect(201)["status"]["allowed"].clone()
    };
    assert_eq!(access(ADMIN, "create"), true);
    assert_eq!(access("nobody-token", "create"), false);
    assert_eq!(access("scheduler-token", "list"), true);
}

#[test]
fn klet_08_a_board_writes_its_own_node_and_lease_only() {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.join("b", &board());
    let as_a = |method: &str, path: &str, body: &Value| rig.call_as("a-token", method, path, body);
    let message = as_a("PATCH", "/api/v1/nodes/b/status", &json!({"status": {}})).refused(403);
    assert_eq!(message, "nodes \"b\" is forbidden: node \"a\" is not allowed to modify node \"b\"");
    assert_eq!(as_a("PATCH", "/api/v1/nodes/b", &json!({"metadata": {"labels": {"x": "y"}}})).status, 403);
    assert_eq!(as_a("POST", "/api/v1/nodes", &json!({"metadata": {"name": "c"}})).status, 403);
    assert_eq!(as_a("DELETE", "/api/v1/nodes/a", &Value::Null).status, 403);
    let message = as_a("PATCH", &format!("{LEASES}/b"), &json!({"spec": {"renewTime": null}})).refused(403);
    assert!(
        message.contains("can only access node lease with the same name as the requesting node"),
        "{message}"
    );
    let elsewhere = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let mut own = lease("a", &rig.stamp());
    own["metadata"]["namespace"] = json!("default");
    assert_eq!(as_a("POST", elsewhere, &own).status, 403);
    let message = as_a("GET", "/api/v1/nodes/b", &Value::Null).refused(403);
    assert!(message.ends_with("node 'a' cannot read 'b', only its own Node object"), "{message}");
    assert_eq!(as_a("GET", "/api/v1/nodes/a", &Value::Null).status, 200);
    let label = json!({"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}});
    let message = as_a("PATCH", "/api/v1/nodes/a", &label).refused(403);
    assert!(
        message.contains("is not allowed to modify labels: node-restriction.kubernetes.io/x"),
        "{message}"
    );
    let taint = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    let message = as_a("PATCH", "/api/v1/nodes/a", &taint).refused(403);
    assert!(message.contains("node \"a\" is not allowed to modify taints"), "{message}");
}

#[test]
fn klet_08_a_status_write_for_a_pod_that_moved_is_refused() {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.join("b", &board());
    let mut own = pod("p", &json!({}));
    own["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "b"});
    rig.create(PODS, &own);
    let path = format!("{PODS}/p/status");
    let running = json!({"status": {"phase": "Running"}});
    let message = rig.call_as("a-token", "PATCH", &path, &running).refused(403);
    let words = "node \"a\" can only update pod status for pods with spec.nodeName set to itself";
    assert!(message.contains(words), "{message}");
    assert_eq!(rig.pod("p")["status"]["phase"], "Pending");
    rig.call_as("b-token", "PATCH", &path, &running).expect(200);
    assert_eq!(rig.pod("p")["status"]["phase"], "Running");

    let rig = Rig::with(|config| config.disable_admission = [Admission::NodeRestriction].into());
    rig.join("b", &board());
    rig.create(PODS, &own);
    rig.call_as("a-token", "PATCH", &path, &running).expect(200);
}

#[test]
fn klet_08_a_board_sees_and_removes_only_its_own_pods() {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.create(PODS, &pod("p", &json!({})));
    let get = |token: &str, path: &str| rig.call_as(token, "GET", path, &Value::Null).status;
    assert_eq!(get("a-token", PODS), 403);
    assert_eq!(get("a-token", "/api/v1/pods?fieldSelector=spec.nodeName%3Db"), 403);
    assert_eq!(get("a-token", "/api/v1/pods?fieldSelector=spec.nodeName%3Da"), 200);
    assert_eq!(get("a-token", &format!("{PODS}/p")), 200);
    assert_eq!(get("b-token", &format!("{PODS}/p")), 403);
    assert_eq!(get("a-token", "/api/v1/namespaces/default/secrets"), 403);
    let remove = |token: &str| {
        let path = format!("{PODS}/p?gracePeriodSeconds=0");
        rig.call_as(token, "DELETE", &path, &Value::Null).status
    };
    assert_eq!(remove("a-token"), 403, "it is not being deleted");
    rig.delete(&format!("{PODS}/p"));
    assert_eq!(remove("b-token"), 403);
    assert_eq!(remove("a-token"), 200);
    assert_eq!(rig.call("GET", &format!("{PODS}/p"), &Value::Null).status, 404);
}

#[test]
fn a_board_tells_events() {
    let rig = Rig::new();
    let about = json!({"kind": "Pod", "name": "p", "namespace": "default"});
    let event = json!({"metadata": {"generateName": "p."}, "involvedObject": about, "reason": "Started", "type": "Normal"});
    rig.call_as("a-token", "POST", "/api/v1/namespaces/default/events", &event).expect(201);
}

#[test]
fn ghost_04_and_09_a_pod_needs_the_default_service_account() {
    let without = |controllers: &str| {
        let controllers = controllers.parse::<Controllers>().unwrap();
        Rig::with(|config| config.controllers = controllers)
    };
    let rig = without("*,-serviceaccount");
    let refused = "pods \"p\" is forbidden: error looking up service account default/default: serviceaccount \"default\" not found";
    assert_eq!(rig.call("POST", PODS, &pod("p", &json!({}))).refused(403), refused);
    rig.create("/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "default"}}));
    let made = rig.create(PODS, &pod("p", &json!({})));
    assert_eq!(made["spec"]["serviceAccountName"], "default");

    let rig = without("*");
    rig.create("/api/v1/namespaces", &json!({"metadata": {"name": "fresh"}}));
    rig.create("/api/v1/namespaces/fresh/pods", &pod("p", &json!({})));
    rig.delete("/api/v1/namespaces/fresh/serviceaccounts/default");
    rig.get("/api/v1/namespaces/fresh/serviceaccounts/default");
}

#[test]
fn no_auth_takes_everyone_for_an_administrator() {
    let rig = Rig::with(|config| {
        config.no_auth = true;
        config.token_auth_file = None;
    });
    rig.call_as("", "POST", PODS, &pod("p", &json!({}))).expect(201);
}
