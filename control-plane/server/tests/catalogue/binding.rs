//! BIND: the binding subresource as a client of the API sees it. (BIND-03 needs a board: a scenario shows it.)

use serde_json::{Value, json};

use crate::client::Client;
use crate::kubectl::Kubectl;
use crate::plane::{Plane, binding, node, pod_for_nobody};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A control plane with two nodes; the pods of these tests are for no scheduler.
fn start() -> (tempfile::TempDir, Plane) {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::plain(dir.path(), &["--store", "memory"]);
    node(&plane.admin, "node-a");
    node(&plane.admin, "node-b");
    (dir, plane)
}

#[track_caller]
fn create(admin: &Client, name: &str) -> Value {
    admin.post(PODS, &pod_for_nobody(name)).is(201)
}

#[track_caller]
fn bind(admin: &Client, name: &str, binding: &Value) -> crate::client::Answer {
    admin.post(&format!("{PODS}/{name}/binding"), binding)
}

#[track_caller]
fn read(admin: &Client, name: &str) -> Value {
    admin.get(&format!("{PODS}/{name}")).is(200)
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    pod["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Nothing of an unbound pod changed.
#[track_caller]
fn unbound(admin: &Client, before: &Value) {
    let after = read(admin, before["metadata"]["name"].as_str().unwrap());
    assert_eq!(&after, before);
    assert_eq!(after["spec"].get("nodeName"), None, "{after}");
}

/// BIND-01
#[test]
fn a_binding_assigns_and_changes_nothing_else_in_spec() {
    let (_dir, plane) = start();
    let before = create(&plane.admin, "p");
    let status = bind(&plane.admin, "p", &binding("p", "node-a")).is(201);
    assert_eq!(
        status,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
    );
    let after = read(&plane.admin, "p");
    let mut expected = before["spec"].clone();
    expected["nodeName"] = json!("node-a");
    assert_eq!(after["spec"], expected);
    assert_eq!(condition(&after, "PodScheduled").unwrap()["status"], "True", "{after}");
    assert_eq!(after["status"]["phase"], "Pending");
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

/// BIND-02
#[test]
fn a_second_binding_conflicts_and_changes_nothing() {
    let (_dir, plane) = start();
    create(&plane.admin, "p");
    bind(&plane.admin, "p", &binding("p", "node-a")).is(201);
    let before = read(&plane.admin, "p");
    for node in ["node-a", "node-b"] {
        let refused = bind(&plane.admin, "p", &binding("p", node)).refused(409, "Conflict", &[]);
        let message = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"node-a\"";
        assert_eq!(refused["message"], message);
        assert_eq!(refused["details"], json!({"name": "p", "kind": "pods/binding"}));
        assert_eq!(read(&plane.admin, "p"), before);
    }
}

/// BIND-04
#[test]
fn kubectl_binds_by_a_raw_post() {
    let (dir, plane) = start();
    let Some(kubectl) = Kubectl::new(dir.path(), plane.kubeconfig("admin")) else { return };
    create(&plane.admin, "p");
    kubectl.write("binding.json", &binding("p", "node-a").to_string());
    let bind = ["create", "--raw", "/api/v1/namespaces/default/pods/p/binding", "-f", "binding.json"];
    kubectl.ok(&bind, &["\"status\":\"Success\""]);
    kubectl.ok(&["get", "pod", "p", "-o", "jsonpath={.spec.nodeName}"], &["node-a"]);
    kubectl.ends(1, &bind, &["pod p is already assigned to node \"node-a\""]);
    kubectl.ok(&["get", "pods", "-o", "wide"], &["node-a", "Pending"]);
}

/// BIND-05
#[test]
fn a_node_that_does_not_exist_is_bound_to() {
    let (_dir, plane) = start();
    create(&plane.admin, "p");
    bind(&plane.admin, "p", &binding("p", "no-such-node")).is(201);
    assert_eq!(read(&plane.admin, "p")["spec"]["nodeName"], "no-such-node");
}

/// BIND-06
#[test]
fn bindings_that_cannot_be_are_refused_and_change_nothing() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    bind(admin, "absent", &binding("absent", "node-a")).refused(
        404,
        "NotFound",
        &["pods \"absent\" not found"],
    );
    admin.post("/api/v1/namespaces/absentns/pods/absent/binding", &binding("absent", "node-a")).refused(
        404,
        "NotFound",
        &["namespaces \"absentns\" not found"],
    );

    let pod = create(admin, "p");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = binding("p", "node-a");
        change(&mut body);
        body
    };
    let mismatch = "name in URL does not match name in Binding object";
    let other = with(&|body| body["metadata"]["name"] = json!("other"));
    bind(admin, "p", &other).refused(400, "BadRequest", &[mismatch]);
    let nameless = with(&|body| body["metadata"] = json!({}));
    bind(admin, "p", &nameless).refused(400, "BadRequest", &[mismatch]);
    let elsewhere = with(&|body| body["metadata"]["namespace"] = json!("kube-system"));
    bind(admin, "p", &elsewhere).refused(400, "BadRequest", &["namespace"]);
    unbound(admin, &pod);

    for (target, word) in [
        (json!(null), "target.name: Required value"),
        (json!({"kind": "Node"}), "target.name: Required value"),
        (json!({"kind": "Node", "name": ""}), "target.name: Required value"),
        (json!({"kind": "Pod", "name": "x"}), "target.kind: Unsupported value: \"Pod\""),
        (json!({"kind": "node", "name": "node-a"}), "target.kind: Unsupported value: \"node\""),
    ] {
        let body = with(&|body| body["target"] = target.clone());
        let answer = bind(admin, "p", &body);
        assert_eq!(answer.code, 422, "{body}: {}", answer.text());
        assert!(answer.text().contains(&word.replace('"', "\\\"")), "{body}: {}", answer.text());
        unbound(admin, &pod);
    }
    let kindless = with(&|body| body["target"] = json!({"name": "node-a"}));
    bind(admin, "p", &kindless).is(201);
}

/// BIND-06: a terminating pod
#[test]
fn a_terminating_pod_is_not_bound() {
    let (_dir, plane) = start();
    let mut held = pod_for_nobody("p");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    plane.admin.post(PODS, &held).is(201);
    plane.admin.delete(&format!("{PODS}/p")).is(200);
    bind(&plane.admin, "p", &binding("p", "node-a")).refused(
        409,
        "Conflict",
        &["Operation cannot be fulfilled on pods/binding \"p\": pod p is being deleted, cannot be assigned to a host"],
    );
    assert_eq!(read(&plane.admin, "p")["spec"].get("nodeName"), None);
}

/// BIND-07
#[test]
fn the_old_collection_does_the_same() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    create(admin, "p");
    let path = "/api/v1/namespaces/default/bindings";
    admin.post(path, &binding("p", "node-a")).is(201);
    assert_eq!(read(admin, "p")["spec"]["nodeName"], "node-a");
    admin.post(path, &binding("p", "node-b")).refused(
        409,
        "Conflict",
        &["already assigned to node \"node-a\""],
    );
    admin.post(path, &binding("absent", "node-b")).refused(404, "NotFound", &["pods \"absent\" not found"]);
}

/// BIND-08
#[test]
fn of_many_bindings_at_once_one_wins() {
    let (_dir, plane) = start();
    for round in 0..5 {
        let name = format!("p{round}");
        create(&plane.admin, &name);
        let codes: Vec<u16> = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..16)
                .map(|n| {
                    let (admin, name) = (plane.admin.clone(), name.clone());
                    let node = if n % 2 == 0 { "node-a" } else { "node-b" };
                    scope.spawn(move || bind(&admin, &name, &binding(&name, node)).code)
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        assert_eq!(codes.iter().filter(|&&code| code == 201).count(), 1, "{codes:?}");
        assert_eq!(codes.iter().filter(|&&code| code == 409).count(), 15, "{codes:?}");
    }
}

/// BIND-09
#[test]
fn uid_and_version_are_preconditions() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    let first = create(admin, "p");
    let pod = admin.merge(&format!("{PODS}/p"), &json!({"metadata": {"labels": {"a": "b"}}})).is(200);
    let with = |key: &str, value: &Value| {
        let mut body = binding("p", "node-a");
        body["metadata"][key] = value.clone();
        body
    };
    let stranger = json!("00000000-0000-0000-0000-000000000000");
    bind(admin, "p", &with("uid", &stranger)).refused(409, "Conflict", &["Precondition failed: UID"]);
    let stale = &first["metadata"]["resourceVersion"];
    bind(admin, "p", &with("resourceVersion", stale)).refused(
        409,
        "Conflict",
        &["Precondition failed: ResourceVersion"],
    );
    unbound(admin, &pod);
    let mut exact = with("uid", &pod["metadata"]["uid"]);
    exact["metadata"]["resourceVersion"] = pod["metadata"]["resourceVersion"].clone();
    bind(admin, "p", &exact).is(201);
}

/// BIND-10
#[test]
fn only_a_binding_assigns() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    create(admin, "free");
    create(admin, "bound");
    bind(admin, "bound", &binding("bound", "node-a")).is(201);
    for name in ["free", "bound"] {
        let before = read(admin, name);
        let path = format!("{PODS}/{name}");
        let patch = json!({"spec": {"nodeName": "node-b"}});
        let refused =
            admin.merge(&path, &patch).refused(422, "Invalid", &["may not change fields other than"]);
        assert_eq!(refused["details"]["causes"][0]["field"], "spec", "{refused}");
        admin.strategic(&path, &patch).refused(422, "Invalid", &[]);
        let operation = json!([{"op": "add", "path": "/spec/nodeName", "value": "node-b"}]);
        admin.send("PATCH", &path, "application/json-patch+json", operation.to_string()).refused(
            422,
            "Invalid",
            &[],
        );
        let mut whole = before.clone();
        whole["spec"]["nodeName"] = json!("node-b");
        admin.put(&path, &whole).refused(422, "Invalid", &[]);
        let mut without = before.clone();
        without["spec"].as_object_mut().unwrap().remove("nodeName");
        let code = admin.put(&path, &without).code;
        assert_eq!(code, if name == "bound" { 422 } else { 200 });
        assert_eq!(read(admin, name)["spec"], before["spec"]);
    }
}

/// BIND-11
#[test]
fn a_dry_run_binds_nothing() {
    let (_dir, plane) = start();
    let before = create(&plane.admin, "p");
    let path = format!("{PODS}/p/binding?dryRun=All");
    assert_eq!(plane.admin.post(&path, &binding("p", "node-a")).is(201)["status"], "Success");
    unbound(&plane.admin, &before);
}

/// BIND-12
#[test]
fn annotations_are_merged_and_labels_ignored() {
    let (_dir, plane) = start();
    let mut pod = pod_for_nobody("p");
    pod["metadata"]["annotations"] = json!({"kept": "k", "changed": "old"});
    pod["metadata"]["labels"] = json!({"own": "l"});
    plane.admin.post(PODS, &pod).is(201);
    let mut body = binding("p", "node-a");
    body["metadata"]["annotations"] = json!({"changed": "new", "added": "a"});
    body["metadata"]["labels"] = json!({"foreign": "l"});
    bind(&plane.admin, "p", &body).is(201);
    let after = read(&plane.admin, "p");
    assert_eq!(after["metadata"]["annotations"], json!({"kept": "k", "changed": "new", "added": "a"}));
    assert_eq!(after["metadata"]["labels"], json!({"own": "l"}));
}

/// BIND-13
#[test]
fn a_gated_pod_is_not_bound() {
    let (_dir, plane) = start();
    let mut pod = pod_for_nobody("p");
    pod["spec"]["schedulingGates"] = json!([{"name": "example.com/gate"}]);
    let before = plane.admin.post(PODS, &pod).is(201);
    assert_eq!(condition(&before, "PodScheduled").unwrap()["reason"], "SchedulingGated", "{before}");
    bind(&plane.admin, "p", &binding("p", "node-a")).refused(
        409,
        "Conflict",
        &["Operation cannot be fulfilled on pods/binding \"p\": pod p has non-empty .spec.schedulingGates"],
    );
    unbound(&plane.admin, &before);
    plane.admin.merge(&format!("{PODS}/p"), &json!({"spec": {"schedulingGates": null}})).is(200);
    bind(&plane.admin, "p", &binding("p", "node-a")).is(201);
}
