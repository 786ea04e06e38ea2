//! GHOST-05: reviews of one's own rights, RBAC objects that take effect at once, and service accounts' tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::kubectl::Kubectl;
use crate::plane::Plane;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/default/pods";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn start() -> (tempfile::TempDir, Plane) {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, "reader-token,reader,,readers\nclerk-token,clerk,,\n").unwrap();
    let flags = ["--store", "redb", "--token-auth-file", tokens.to_str().unwrap()];
    let plane = Plane::tls(dir.path(), &flags);
    (dir, plane)
}

#[track_caller]
fn account(admin: &Client, name: &str) -> Value {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    admin.post(ACCOUNTS, &account).is(201)
}

fn request(spec: Value) -> Value {
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
}

fn ask(admin: &Client, name: &str, spec: Value) -> Answer {
    admin.post(&format!("{ACCOUNTS}/{name}/token"), &request(spec))
}

/// A client with a static token.
fn bearer(admin: &Client, token: &str) -> Client {
    admin.with(&admin.credentials().bearer(token))
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

/// A role bound to someone counts from the next request on, and no longer once it is unbound.
#[test]
fn roles_take_effect_at_once() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    let reader = bearer(admin, "reader-token");
    let denied = "pods is forbidden: User \"reader\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"";
    reader.get(PODS).forbidden(&[denied]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "get"]},
                  {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one"], "verbs": ["get", "update"]}]});
    let roles = format!("{RBAC}/namespaces/default/roles");
    admin.post(&roles, &role).is(201);
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader-reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}]});
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    admin.post(&bindings, &binding).is(201);
    reader.get(PODS).is(200);
    reader.get("/api/v1/namespaces/kube-system/pods").forbidden(&["in the namespace \"kube-system\""]);
    reader.get("/api/v1/pods").forbidden(&["at the cluster scope"]);
    reader.get(&format!("{PODS}?watch=true&timeoutSeconds=1")).forbidden(&["cannot watch"]);
    reader.get("/api/v1/namespaces/default/configmaps/one").refused(404, "NotFound", &[]);
    reader.get("/api/v1/namespaces/default/configmaps/two").forbidden(&["configmaps \"two\" is forbidden"]);
    reader.delete("/api/v1/namespaces/default/configmaps/one").forbidden(&["cannot delete"]);

    // A binding keeps its role for life; a role may change.
    let other = json!({"roleRef": {"name": "other"}});
    admin.merge(&format!("{bindings}/reader-reads"), &other).refused(422, "Invalid", &["roleRef"]);
    admin
        .merge(
            &format!("{roles}/reader"),
            &json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["watch"]}]}),
        )
        .is(200);
    reader.get(PODS).forbidden(&[denied]);
    assert!(allowed(&reader, &on("watch", "", "pods", "default")));
    admin.delete(&format!("{bindings}/reader-reads")).is(200);
    assert!(!allowed(&reader, &on("watch", "", "pods", "default")));

    // To a group, for all namespaces, by a ClusterRole.
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "listers"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]});
    admin.post(&format!("{RBAC}/clusterroles"), &role).is(201);
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "readers-list"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "listers"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}]});
    admin.post(&format!("{RBAC}/clusterrolebindings"), &binding).is(201);
    reader.get("/api/v1/pods").is(200);
    reader.get("/metrics").is(200);
    let plane = plane.kill_and_start();
    plane.admin.with(reader.credentials()).get("/api/v1/pods").is(200);
}

/// Nobody gives away rights that he has not.
#[test]
fn rights_do_not_grow_by_writing_roles() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    let clerk = bearer(admin, "clerk-token");
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["create", "get", "update", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]);
    let role = |name: &str, rules: &Value| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}, "rules": rules});
    let roles = format!("{RBAC}/namespaces/default/roles");
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let bind = |name: &str, kind: &str, role: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "clerk"}]})
    };
    admin.post(&roles, &role("clerk", &rules)).is(201);
    admin.post(&bindings, &bind("clerk", "Role", "clerk")).is(201);
    let pods = |verb: &str| json!([{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]);
    clerk.post(&roles, &role("same", &pods("list"))).is(201);
    clerk
        .post(&roles, &role("more", &pods("delete")))
        .forbidden(&["attempting to grant RBAC permissions not currently held"]);
    clerk.merge(&format!("{roles}/same"), &json!({"rules": pods("*")})).forbidden(&["not currently held"]);
    clerk.post(&bindings, &bind("same", "Role", "same")).is(201);
    clerk.post(&bindings, &bind("boss", "ClusterRole", "cluster-admin")).forbidden(&["not currently held"]);
    clerk.delete(PODS).forbidden(&["cannot deletecollection"]);
}

/// TokenRequest: who the token is, how long, and that nothing else is taken for one.
#[test]
fn a_service_accounts_token_is_that_service_account() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    let uid = account(admin, "robot")["metadata"]["uid"].clone();
    let made = ask(admin, "robot", json!({"expirationSeconds": 3600})).is(201);
    assert_eq!(made["kind"], "TokenRequest");
    assert_eq!(made["spec"]["expirationSeconds"], 3600);
    assert!(made["status"]["expirationTimestamp"].is_string(), "{made}");
    let token = made["status"]["token"].as_str().unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    assert_eq!(claims["sub"], "system:serviceaccount:default:robot");
    assert_eq!(claims["kubernetes.io"]["namespace"], "default");
    assert_eq!(claims["kubernetes.io"]["serviceaccount"]["uid"], uid);
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);

    let robot = admin.with(&admin.credentials().bearer(token));
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = robot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).is(201)["status"]["userInfo"].clone();
    assert_eq!(who["username"], "system:serviceaccount:default:robot");
    assert_eq!(who["uid"], uid);
    let groups = json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]);
    assert_eq!(who["groups"], groups);

    // One bit of the signature, no signature, another algorithm, another payload under the old signature.
    let mut signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
    signature[0] ^= 1;
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
    let mut boss = claims.clone();
    boss["sub"] = json!("system:serviceaccount:kube-system:boss");
    let boss = URL_SAFE_NO_PAD.encode(boss.to_string());
    for forged in [
        format!("{}.{}.{}", parts[0], parts[1], URL_SAFE_NO_PAD.encode(&signature)),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{none}.{}.", parts[1]),
        format!("{}.{boss}.{}", parts[0], parts[2]),
        format!("{none}.{boss}."),
    ] {
        admin.with(&admin.credentials().bearer(&forged)).get("/version").refused(401, "Unauthorized", &[]);
    }

    ask(admin, "absent", json!({})).refused(404, "NotFound", &["serviceaccounts \"absent\" not found"]);
    ask(admin, "robot", json!({"expirationSeconds": 599})).refused(
        422,
        "Invalid",
        &["may not specify a duration less than 10 minutes"],
    );

    // The token outlives the control plane, and does not outlive its account.
    let plane = plane.kill_and_start();
    let robot = plane.admin.with(robot.credentials());
    robot.get("/version").is(200);
    plane.admin.delete(&format!("{ACCOUNTS}/robot")).is(200);
    robot.get("/version").refused(401, "Unauthorized", &[]);
    // A namesake is someone else.
    account(&plane.admin, "robot");
    robot.get("/version").refused(401, "Unauthorized", &[]);
}

/// A token bound to a pod dies with the pod.
#[test]
fn a_token_bound_to_a_pod_dies_with_it() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    account(admin, "robot");
    let mut pod = crate::plane::pod_for_nobody("p");
    pod["spec"]["serviceAccountName"] = json!("robot");
    let uid = admin.post(PODS, &pod).is(201)["metadata"]["uid"].clone();
    let bound =
        |uid: &Value| json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid}});
    ask(admin, "robot", bound(&json!("00000000-0000-0000-0000-000000000000"))).refused(409, "Conflict", &[]);
    let made = ask(admin, "robot", bound(&uid)).is(201);
    let robot = bearer(admin, made["status"]["token"].as_str().unwrap());
    robot.get("/version").is(200);
    admin.delete(&format!("{PODS}/p?gracePeriodSeconds=0")).is(200);
    robot.get("/version").refused(401, "Unauthorized", &[]);
}

/// A service account is bound by its name, or by its group.
#[test]
fn service_accounts_are_bound_to_roles() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    account(admin, "robot");
    let made = ask(admin, "robot", json!({})).is(201);
    let robot = bearer(admin, made["status"]["token"].as_str().unwrap());
    let denied = "User \"system:serviceaccount:default:robot\" cannot list resource \"pods\"";
    robot.get(PODS).forbidden(&[denied]);
    let by_name = json!({"kind": "ServiceAccount", "name": "robot", "namespace": "default"});
    let by_group = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts:default"});
    let stranger = json!({"kind": "ServiceAccount", "name": "robot", "namespace": "kube-system"});
    let path = format!("{RBAC}/clusterrolebindings");
    for (subject, expected) in [(by_name, 200), (by_group, 200), (stranger, 403)] {
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "robots"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}, "subjects": [subject]});
        admin.post(&path, &binding).is(201);
        assert_eq!(robot.get(PODS).code, expected, "{subject}");
        admin.delete(&format!("{path}/robots")).is(200);
        robot.get(PODS).forbidden(&[denied]);
    }
}
