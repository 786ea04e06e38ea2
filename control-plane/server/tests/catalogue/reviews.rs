//! GHOST-05: reviews of one's own rights, RBAC objects that take effect at once, and service accounts' tokens.

use serde_json::{Value, json};

use crate::client::Client;
use crate::kubectl::Kubectl;
use crate::plane::Plane;

fn start() -> (tempfile::TempDir, Plane) {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "redb"]);
    (dir, plane)
}

#[track_caller]
fn allowed(client: &Client, attributes: &Value) -> bool {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": attributes});
    let made = client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).is(201);
    assert_eq!(made["kind"], "SelfSubjectAccessReview");
    assert_eq!(&made["spec"], attributes);
    made["status"]["allowed"].as_bool().unwrap()
}

fn on(verb: &str, group: &str, resource: &str, namespace: &str) -> Value {
    let mut attributes = json!({"verb": verb, "resource": resource});
    for (key, value) in [("group", group), ("namespace", namespace)] {
        if !value.is_empty() {
            attributes[key] = json!(value);
        }
    }
    json!({"resourceAttributes": attributes})
}

/// SelfSubjectAccessReview answers what a request would be answered.
#[test]
fn reviews_of_ones_own_rights_say_what_requests_meet() {
    let (dir, plane) = start();
    let scheduler = plane.client("scheduler");
    for (attributes, expected) in [
        (on("list", "", "pods", ""), true),
        (on("list", "", "pods", "default"), true),
        (on("create", "", "pods", "default"), false),
        (on("create", "events.k8s.io", "events", "default"), true),
        (on("list", "", "secrets", ""), false),
        (on("get", "apps", "replicasets", "default"), true),
        (on("list", "apps", "deployments", "default"), false),
        (on("*", "*", "*", ""), false),
        (json!({"nonResourceAttributes": {"verb": "get", "path": "/version"}}), true),
        (json!({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}), false),
        (
            json!({"resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "binding", "namespace": "x"}}),
            true,
        ),
        (
            json!({"resourceAttributes": {"verb": "get", "group": "coordination.k8s.io", "resource": "leases", "namespace": "kube-system", "name": "kube-scheduler"}}),
            true,
        ),
        (
            json!({"resourceAttributes": {"verb": "delete", "group": "coordination.k8s.io", "resource": "leases", "namespace": "kube-system", "name": "kube-scheduler"}}),
            false,
        ),
    ] {
        assert_eq!(allowed(&scheduler, &attributes), expected, "{attributes}");
        assert!(allowed(&plane.admin, &attributes), "{attributes}");
    }
    // Neither or both is no question.
    let both = json!({"resourceAttributes": {"verb": "get", "resource": "pods"}, "nonResourceAttributes": {"verb": "get", "path": "/"}});
    for spec in [json!({}), both] {
        let review =
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec});
        plane.admin.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).refused(
            422,
            "Invalid",
            &[],
        );
    }
    let Some(kubectl) = Kubectl::new(dir.path(), plane.kubeconfig("admin")) else { return };
    kubectl.ok(&["auth", "can-i", "create", "pods"], &["yes"]);
    kubectl.ok(&["auth", "can-i", "*", "*"], &["yes"]);
    kubectl.ok(&["auth", "whoami"], &["kubernetes-admin", "system:masters", "system:authenticated"]);
}
