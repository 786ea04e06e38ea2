//! BIND-01 … BIND-13: the binding subresource.

use futures_util::FutureExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::rig::{PODS, Rig, condition, foreign};

fn binding(pod: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": "default"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    })
}

fn with_pod(name: &str) -> Rig {
    let rig = Rig::new();
    rig.create(PODS, &foreign(name));
    rig
}

fn path(pod: &str) -> String {
    format!("{PODS}/{pod}/binding")
}

#[test]
fn bind_01_a_binding_assigns_the_node_and_nothing_else() {
    let rig = with_pod("p");
    let before = rig.pod("p");
    let answer = rig.call("POST", &path("p"), &binding("p", "node-a")).expect(201);
    assert_eq!(
        answer,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
    );
    let after = rig.pod("p");
    assert_eq!(after["spec"]["nodeName"], "node-a");
    assert_eq!(condition(&after, "PodScheduled"), "True");
    let mut spec = after["spec"].clone();
    spec.as_object_mut().unwrap().remove("nodeName");
    assert_eq!(spec, before["spec"]);
}

#[test]
fn bind_02_a_second_binding_is_a_conflict_that_changes_nothing() {
    let rig = with_pod("p");
    rig.create(&path("p"), &binding("p", "node-a"));
    let before = rig.pod("p");
    for node in ["node-b", "node-a"] {
        let answer = rig.call("POST", &path("p"), &binding("p", node));
        assert_eq!(answer.body["reason"], "Conflict");
        let words = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"node-a\"";
        assert_eq!(answer.refused(409), words);
    }
    assert_eq!(rig.pod("p"), before);
}

#[test]
fn bind_05_the_node_need_not_exist() {
    let rig = with_pod("p");
    rig.create(&path("p"), &binding("p", "no-such-node"));
    assert_eq!(rig.pod("p")["spec"]["nodeName"], "no-such-node");
}

#[test]
fn bind_06_what_cannot_be_bound_is_refused() {
    let rig = with_pod("p");
    let refused = |path: &str, body: &Value, status: u16, words: &str| {
        let message = rig.call("POST", path, body).refused(status);
        assert!(message.contains(words), "{message}");
    };
    refused(&path("absent"), &binding("absent", "n"), 404, "pods \"absent\" not found");
    let elsewhere = "/api/v1/namespaces/absentns/pods/absent/binding";
    let mut body = binding("absent", "n");
    body["metadata"].as_object_mut().unwrap().remove("namespace");
    refused(elsewhere, &body, 404, "namespaces \"absentns\" not found");
    refused(&path("p"), &binding("other", "n"), 400, "name in URL does not match name in Binding object");
    let mut body = binding("p", "n");
    body["metadata"]["namespace"] = json!("other");
    refused(&path("p"), &body, 400, "namespace");
    let mut body = binding("p", "n");
    body["target"] = json!({"kind": "Node"});
    refused(&path("p"), &body, 422, "target.name");
    body["target"] = json!({"kind": "Pod", "name": "x"});
    refused(&path("p"), &body, 422, "target.kind");
    assert_eq!(rig.pod("p")["spec"]["nodeName"], Value::Null);

    let mut held = foreign("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    rig.create(PODS, &held);
    rig.delete(&format!("{PODS}/held"));
    refused(
        &path("held"),
        &binding("held", "n"),
        409,
        "pod held is being deleted, cannot be assigned to a host",
    );
}

#[test]
fn bind_07_the_old_collection_does_the_same() {
    let rig = with_pod("p");
    let old = "/api/v1/namespaces/default/bindings";
    rig.create(old, &binding("p", "node-a"));
    assert_eq!(rig.pod("p")["spec"]["nodeName"], "node-a");
    let message = rig.call("POST", old, &binding("p", "node-b")).refused(409);
    assert!(message.contains("already assigned"), "{message}");
    assert_eq!(rig.call("POST", old, &binding("absent", "n")).status, 404);
    assert_eq!(rig.call("GET", old, &Value::Null).status, 405);
    assert_eq!(rig.call("GET", &path("p"), &Value::Null).status, 405);
}

#[test]
fn bind_08_of_many_bindings_one_wins() {
    let rig = with_pod("p");
    let router = rig.plane.router();
    let statuses: Vec<u16> = (0..20)
        .map(|n| {
            let request = http::Request::post(path("p"))
                .header("authorization", "Bearer admin-token")
                .body(axum::body::Body::from(binding("p", &format!("n{n}")).to_string()))
                .unwrap();
            router.clone().oneshot(request).now_or_never().unwrap().unwrap().status().as_u16()
        })
        .collect();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1);
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 19);
    assert_eq!(rig.pod("p")["spec"]["nodeName"], "n0");
}

#[test]
fn bind_09_uid_and_version_are_preconditions() {
    let rig = with_pod("p");
    let pod = rig.pod("p");
    let with = |field: &str, value: &Value| {
        let mut body = binding("p", "node-a");
        body["metadata"][field] = value.clone();
        rig.call("POST", &path("p"), &body)
    };
    let message = with("uid", &json!("00000000-0000-0000-0000-000000000000")).refused(409);
    assert!(message.contains("Precondition failed: UID in precondition"), "{message}");
    let message = with("resourceVersion", &json!("1")).refused(409);
    assert!(message.contains("Precondition failed: ResourceVersion in precondition: 1"), "{message}");
    with("uid", &pod["metadata"]["uid"]).expect(201);
}

#[test]
fn bind_10_a_node_name_is_not_written_directly() {
    let rig = with_pod("p");
    let assign =
        |pod: &str| rig.call("PATCH", &format!("{PODS}/{pod}"), &json!({"spec": {"nodeName": "node-z"}}));
    let message = assign("p").refused(422);
    assert!(message.contains("pod updates may not change fields other than"), "{message}");
    let mut replaced = rig.pod("p");
    replaced["spec"]["nodeName"] = json!("node-z");
    assert_eq!(rig.call("PUT", &format!("{PODS}/p"), &replaced).status, 422);
    rig.create(&path("p"), &binding("p", "node-a"));
    assert_eq!(assign("p").status, 422);
    assert_eq!(rig.pod("p")["spec"]["nodeName"], "node-a");
}

#[test]
fn bind_11_a_dry_run_binds_nothing() {
    let rig = with_pod("p");
    let before = rig.pod("p");
    rig.create(&format!("{}?dryRun=All", path("p")), &binding("p", "node-a"));
    assert_eq!(rig.pod("p"), before);
}

#[test]
fn bind_12_annotations_are_merged_and_labels_ignored() {
    let rig = Rig::new();
    let mut pod = foreign("p");
    pod["metadata"]["annotations"] = json!({"kept": "1", "changed": "1"});
    rig.create(PODS, &pod);
    let mut body = binding("p", "node-a");
    body["metadata"]["annotations"] = json!({"changed": "2", "new": "3"});
    body["metadata"]["labels"] = json!({"l": "m"});
    rig.create(&path("p"), &body);
    let metadata = &rig.pod("p")["metadata"];
    assert_eq!(metadata["annotations"], json!({"kept": "1", "changed": "2", "new": "3"}));
    assert_eq!(metadata["labels"], Value::Null);
}

#[test]
fn bind_13_a_gated_pod_is_not_bound() {
    let rig = Rig::new();
    let mut pod = foreign("p");
    pod["spec"]["schedulingGates"] = json!([{"name": "example.com/gate"}]);
    rig.create(PODS, &pod);
    let message = rig.call("POST", &path("p"), &binding("p", "node-a")).refused(409);
    assert!(message.ends_with("pod p has non-empty .spec.schedulingGates"), "{message}");
}
