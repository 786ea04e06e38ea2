//! Roles and bindings as objects that decide what is allowed (GHOST-05), and what boards reach by their pods (KLET-08).

use std::time::Duration;

use control_plane::Store;
use serde_json::{Value, json};

use crate::rig::{PODS, Rig, board, pod};

const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

fn role(name: &str, verbs: &[&str], resource: &str) -> Value {
    json!({"metadata": {"name": name}, "rules": [{"verbs": verbs, "apiGroups": [""], "resources": [resource]}]})
}

fn binding(name: &str, role: (&str, &str), user: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

fn status(rig: &Rig, token: &str, method: &str, path: &str) -> u16 {
    rig.call_as(token, method, path, &Value::Null).status
}

#[test]
fn ghost_05_a_binding_takes_effect_at_once_and_where_it_is() {
    let rig = Rig::new();
    rig.create("/api/v1/namespaces", &json!({"metadata": {"name": "other"}}));
    assert_eq!(status(&rig, "nobody-token", "GET", SECRETS), 403);
    rig.create(&format!("{GROUP}/clusterroles"), &role("reader", &["get", "list"], "secrets"));
    let bindings = format!("{GROUP}/namespaces/default/rolebindings");
    rig.create(&bindings, &binding("b", ("ClusterRole", "reader"), "nobody"));
    assert_eq!(status(&rig, "nobody-token", "GET", SECRETS), 200);
    assert_eq!(status(&rig, "nobody-token", "GET", "/api/v1/namespaces/other/secrets"), 403);
    assert_eq!(status(&rig, "nobody-token", "GET", "/api/v1/secrets"), 403);
    assert_eq!(rig.call_as("nobody-token", "POST", SECRETS, &json!({"metadata": {"name": "s"}})).status, 403);
    rig.patch(&format!("{GROUP}/clusterroles/reader"), &role("reader", &["create"], "secrets"));
    assert_eq!(status(&rig, "nobody-token", "GET", SECRETS), 403);
    rig.call_as("nobody-token", "POST", SECRETS, &json!({"metadata": {"name": "s"}})).expect(201);
    rig.delete(&format!("{bindings}/b"));
    assert_eq!(rig.call_as("nobody-token", "POST", SECRETS, &json!({"metadata": {"name": "t"}})).status, 403);
    // A binding to a role that is not there names it.
    rig.create(&bindings, &binding("lost", ("Role", "lost"), "nobody"));
    let message = rig.call_as("nobody-token", "GET", SECRETS, &Value::Null).refused(403);
    assert!(
        message.ends_with(
            "in the namespace \"default\": RBAC: role.rbac.authorization.k8s.io \"lost\" not found"
        ),
        "{message}"
    );
}

#[test]
fn ghost_05_the_scheduler_may_do_what_its_role_says_and_no_more() {
    let rig = Rig::new();
    let check = |method: &str, path: &str, allowed: bool| {
        let status = status(&rig, "scheduler-token", method, path);
        assert_eq!(status != 403, allowed, "{method} {path}: {status}");
    };
    check("GET", "/api/v1/pods", true);
    check("GET", "/api/v1/nodes", true);
    check("GET", "/apis/storage.k8s.io/v1/csinodes", true);
    check("POST", "/api/v1/namespaces/default/pods/p/binding", true);
    check("POST", "/api/v1/namespaces/default/bindings", true);
    check("POST", "/apis/events.k8s.io/v1/namespaces/default/events", true);
    check("PATCH", "/api/v1/namespaces/default/pods/p/status", true);
    check("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler", true);
    check("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", true);
    check("GET", "/apis", true);
    check("PATCH", "/api/v1/namespaces/default/pods/p", false);
    check("POST", PODS, false);
    check("PUT", "/api/v1/nodes/a", false);
    check("GET", SECRETS, false);
    check("GET", CONFIGMAPS, false);
    check("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/other", false);
    check("GET", "/metrics", false);
    check("GET", &format!("{GROUP}/clusterroles"), false);
}

#[test]
fn the_default_roles_are_there_and_come_back_with_what_was_taken_from_them() {
    let mut rig = Rig::new();
    let admin = rig.get(&format!("{GROUP}/clusterroles/cluster-admin"));
    assert_eq!(admin["metadata"]["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults");
    assert_eq!(admin["rules"][0]["verbs"], json!(["*"]));
    let (viewer, basic) = (
        format!("{GROUP}/clusterrolebindings/system:public-info-viewer"),
        format!("{GROUP}/clusterroles/system:basic-user"),
    );
    let revision = |rig: &Rig| rig.get(&basic)["metadata"]["resourceVersion"].clone();
    let first = revision(&rig);
    rig.restart();
    assert_eq!(revision(&rig), first, "nothing is missing, so nothing is written");
    rig.delete(&viewer);
    rig.patch(&basic, &json!({"rules": []}));
    assert_eq!(status(&rig, "", "GET", "/version"), 403);
    rig.restart();
    assert_eq!(status(&rig, "", "GET", "/version"), 200);
    assert_eq!(rig.get(&basic)["rules"].as_array().unwrap().len(), 2);
    let off = json!({"metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}, "rules": []});
    rig.patch(&basic, &off);
    rig.restart();
    assert_eq!(rig.get(&basic)["rules"].as_array().map_or(0, Vec::len), 0);
}

#[test]
fn nobody_grants_what_they_do_not_hold() {
    let rig = Rig::new();
    // This user may write roles and bindings, and read pods.
    let rules = json!([
        {"verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"], "resourceNames": []},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
    ]);
    let mut own = json!({"metadata": {"name": "own"}, "rules": rules});
    own["rules"][0]["verbs"] = json!(["create", "update", "patch", "get", "delete"]);
    rig.create(&format!("{GROUP}/clusterroles"), &own);
    rig.create(&format!("{GROUP}/clusterrolebindings"), &binding("own", ("ClusterRole", "own"), "nobody"));
    let as_nobody = |method: &str, path: &str, body: &Value| rig.call_as("nobody-token", method, path, body);
    let roles = format!("{GROUP}/namespaces/default/roles");
    as_nobody("POST", &roles, &role("fine", &["get"], "pods")).expect(201);
    let message = as_nobody("POST", &roles, &role("more", &["get", "delete"], "pods")).refused(403);
    let words = "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"nobody\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}";
    assert_eq!(message, words);
    let wider = role("fine", &["*"], "pods");
    assert_eq!(as_nobody("PATCH", &format!("{roles}/fine"), &wider).status, 403);
    let bindings = format!("{GROUP}/clusterrolebindings");
    let message =
        as_nobody("POST", &bindings, &binding("b", ("ClusterRole", "cluster-admin"), "nobody")).refused(403);
    assert!(message.contains("is attempting to grant RBAC permissions not currently held"), "{message}");
    let message = as_nobody("POST", &bindings, &binding("b", ("ClusterRole", "gone"), "nobody")).refused(404);
    assert_eq!(message, "clusterrole.rbac.authorization.k8s.io \"gone\" not found");
    let labelled = json!({"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}});
    rig.create(&format!("{GROUP}/clusterroles"), &role("strong", &["*"], "secrets"));
    assert_eq!(as_nobody("PATCH", &format!("{GROUP}/clusterroles/strong"), &labelled).status, 403);
    let mut aggregating = role("agg", &["get"], "pods");
    aggregating["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let message = as_nobody("POST", &format!("{GROUP}/clusterroles"), &aggregating).refused(403);
    assert!(message.contains("must have cluster-admin privileges to use an aggregationRule"), "{message}");
    // With the verbs for it they may.
    own["rules"][0]["verbs"] = json!(["*"]);
    rig.patch(&format!("{GROUP}/clusterroles/own"), &own);
    as_nobody("POST", &roles, &role("more", &["get", "delete"], "pods")).expect(201);
    as_nobody("POST", &bindings, &binding("b", ("ClusterRole", "strong"), "nobody")).expect(201);
}

#[test]
fn an_update_that_would_make_an_object_asks_for_that_too() {
    let rig = Rig::new();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let mut updater = role("updater", &["update"], "leases");
    updater["rules"][0]["apiGroups"] = json!(["coordination.k8s.io"]);
    rig.create(&format!("{GROUP}/clusterroles"), &updater);
    rig.create(&format!("{GROUP}/clusterrolebindings"), &binding("u", ("ClusterRole", "updater"), "nobody"));
    let lease = json!({"metadata": {"name": "l", "namespace": "default"}});
    let message = rig.call_as("nobody-token", "PUT", &format!("{leases}/l"), &lease).refused(403);
    assert!(message.contains("cannot create resource \"leases\""), "{message}");
    rig.create(leases, &lease);
    rig.call_as("nobody-token", "PUT", &format!("{leases}/l"), &lease).expect(200);
}

#[test]
fn klet_08_a_board_reads_what_its_pods_name() {
    let rig = Rig::new();
    rig.join("a", &board());
    for (path, name) in [(SECRETS, "s"), (SECRETS, "other"), (CONFIGMAPS, "c"), (CONFIGMAPS, "other")] {
        rig.create(path, &json!({"metadata": {"name": name}}));
    }
    let get = |token: &str, path: &str| status(&rig, token, "GET", path);
    assert_eq!(get("a-token", &format!("{SECRETS}/s")), 403);
    let mut naming = pod("p", &json!({}));
    naming["spec"]["containers"][0]["envFrom"] =
        json!([{"secretRef": {"name": "s"}}, {"configMapRef": {"name": "c"}}]);
    rig.create(PODS, &naming);
    assert_eq!(rig.pod("p")["spec"]["nodeName"], "a");
    assert_eq!(get("a-token", &format!("{SECRETS}/s")), 200);
    assert_eq!(get("a-token", &format!("{CONFIGMAPS}/c")), 200);
    assert_eq!(get("a-token", &format!("{CONFIGMAPS}?fieldSelector=metadata.name%3Dc")), 200);
    let message = rig.call_as("a-token", "GET", &format!("{SECRETS}/other"), &Value::Null).refused(403);
    let words = "secrets \"other\" is forbidden: User \"system:node:a\" cannot get resource \"secrets\" in API group \"\" in the namespace \"default\": no relationship found between node 'a' and this object";
    assert_eq!(message, words);
    assert_eq!(get("a-token", &format!("{CONFIGMAPS}/other")), 403);
    assert_eq!(get("b-token", &format!("{SECRETS}/s")), 403, "the pod is on another board");
    assert_eq!(get("a-token", SECRETS), 403);
    assert_eq!(rig.call_as("a-token", "PATCH", &format!("{SECRETS}/s"), &json!({})).status, 403);
    rig.delete(&format!("{PODS}/p?gracePeriodSeconds=0"));
    assert_eq!(get("a-token", &format!("{SECRETS}/s")), 403, "the pod is gone");
}

#[test]
fn questions_about_permissions_are_answered() {
    let rig = Rig::new();
    let ask = |token: &str, kind: &str, spec: Value| {
        rig.call_as(token, "POST", &format!("/apis/authorization.k8s.io/v1/{kind}"), &json!({"spec": spec}))
    };
    let pods = json!({"verb": "list", "resource": "pods", "namespace": "default"});
    let about = |user: &str| json!({"user": user, "resourceAttributes": pods});
    let allowed =
        ask("admin-token", "subjectaccessreviews", about("system:kube-scheduler")).expect(201)["status"]
            .clone();
    assert_eq!(allowed["allowed"], true);
    assert_eq!(
        allowed["reason"],
        r#"RBAC: allowed by ClusterRoleBinding "system:kube-scheduler" of ClusterRole "system:kube-scheduler" to User "system:kube-scheduler""#
    );
    let refused = ask("admin-token", "subjectaccessreviews", about("nobody")).expect(201)["status"].clone();
    assert_eq!(refused, json!({"allowed": false}));
    ask("nobody-token", "subjectaccessreviews", about("nobody")).refused(403);
    ask("", "selfsubjectaccessreviews", json!({"resourceAttributes": pods})).refused(403);
    let path = json!({"nonResourceAttributes": {"verb": "get", "path": "/version"}});
    assert_eq!(ask("nobody-token", "selfsubjectaccessreviews", path).expect(201)["status"]["allowed"], true);
    assert!(
        ask("nobody-token", "selfsubjectaccessreviews", json!({})).refused(422).contains("exactly one of")
    );
    assert!(
        ask("admin-token", "subjectaccessreviews", json!({"resourceAttributes": pods}))
            .refused(422)
            .contains("at least one of user or group")
    );
    let board = json!({"user": "system:node:a", "groups": ["system:nodes"], "resourceAttributes": {"verb": "get", "resource": "nodes", "name": "b"}});
    let status = ask("admin-token", "subjectaccessreviews", board).expect(201)["status"].clone();
    assert_eq!(
        status,
        json!({"allowed": false, "reason": "node 'a' cannot read 'b', only its own Node object"})
    );
    let local = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
    let local = |spec: Value| rig.call("POST", local, &json!({"spec": spec}));
    assert_eq!(local(about("system:kube-scheduler")).expect(201)["status"]["allowed"], true);
    let elsewhere =
        json!({"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "other"}});
    assert_eq!(
        local(elsewhere).refused(400),
        "spec.resourceAttributes.namespace must match namespace: default"
    );
    let rules =
        ask("nobody-token", "selfsubjectrulesreviews", json!({"namespace": "default"})).expect(201)["status"]
            .clone();
    assert_eq!(rules["incomplete"], false);
    assert!(
        rules["resourceRules"]
            .as_array()
            .unwrap()
            .iter()
            .any(|rule| rule["resources"] == json!(["selfsubjectreviews"])),
        "{rules}"
    );
    assert!(
        rules["nonResourceRules"]
            .as_array()
            .unwrap()
            .iter()
            .any(|rule| rule["nonResourceURLs"][0] == "/healthz"),
        "{rules}"
    );
    let rules =
        ask("a-token", "selfsubjectrulesreviews", json!({"namespace": "default"})).expect(201)["status"]
            .clone();
    assert_eq!(rules["incomplete"], true);
}

/// As Kubernetes' controller does: the rules are there to be read, through roles that aggregate from roles that aggregate.
#[test]
fn aggregated_rules_are_written_into_their_role() {
    let rig = Rig::new();
    let roles = format!("{GROUP}/clusterroles");
    let selecting = |name: &str, label: &str, labels: Value| {
        json!({
            "metadata": {"name": name, "labels": labels}, "rules": [],
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]},
        })
    };
    // The defaults are so from the start.
    let opened = rig.store.revision();
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.store.revision(), opened);
    rig.create(&roles, &selecting("all", "to-all", json!({})));
    rig.create(&roles, &selecting("some", "to-some", json!({"to-all": "true"})));
    rig.pass(Duration::from_secs(1));
    let rules = |name: &str| rig.get(&format!("{roles}/{name}"))["rules"].clone();
    assert_eq!((rules("all"), rules("some")), (Value::Null, Value::Null));
    let mut reader = role("reader", &["get"], "secrets");
    reader["metadata"]["labels"] = json!({"to-some": "true"});
    rig.create(&roles, &reader);
    rig.pass(Duration::from_secs(1));
    assert_eq!((rules("all"), rules("some")), (reader["rules"].clone(), reader["rules"].clone()));
    // What someone writes there instead does not stay, nor do the rules of a role that is gone.
    rig.patch(&format!("{roles}/some"), &json!({"rules": role("x", &["*"], "*")["rules"]}));
    rig.pass(Duration::from_secs(1));
    assert_eq!(rules("some"), reader["rules"]);
    rig.delete(&format!("{roles}/reader"));
    rig.pass(Duration::from_secs(1));
    assert_eq!((rules("all"), rules("some")), (Value::Null, Value::Null));
}

#[test]
fn aggregation_is_left_to_another_where_it_is_switched_off() {
    let rig = Rig::with(|config| config.controllers = "*,-clusterrole-aggregation".parse().unwrap());
    let roles = format!("{GROUP}/clusterroles");
    let selector = json!({"clusterRoleSelectors": [{"matchLabels": {"to-sum": "true"}}]});
    let sum = json!({"metadata": {"name": "sum"}, "aggregationRule": selector, "rules": []});
    rig.create(&roles, &sum);
    let mut reader = role("reader", &["get"], "secrets");
    reader["metadata"]["labels"] = json!({"to-sum": "true"});
    rig.create(&roles, &reader);
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.get(&format!("{roles}/sum"))["rules"], Value::Null);
}
