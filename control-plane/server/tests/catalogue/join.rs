//! The join step for new boards: a bootstrap token buys one thing, a token of the board's own; either can be taken away.

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::kubectl::Kubectl;
use crate::plane::{Plane, lease, node, pod_for_nobody};

const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const BOOTSTRAP: &str = "abcdef.0123456789abcdef";

fn start() -> (tempfile::TempDir, Plane) {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, "token-old,system:node:old,,system:nodes\n").unwrap();
    let flags = ["--store", "redb", "--token-auth-file", tokens.to_str().unwrap()];
    let plane = Plane::tls(dir.path(), &flags);
    (dir, plane)
}

/// A bootstrap token as an administrator makes it, with some of its fields changed.
#[track_caller]
fn bootstrap(admin: &Client, changes: &[(&str, Value)]) {
    let mut data = json!({"token-id": "abcdef", "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true", "expiration": "2099-01-01T00:00:00Z"});
    for (key, value) in changes {
        data[key] = value.clone();
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": "bootstrap-token-abcdef"}, "stringData": data});
    admin.post(SECRETS, &secret).is(201);
}

fn bearer(admin: &Client, token: &str) -> Client {
    admin.with(&admin.credentials().bearer(token))
}

/// Asks for a board's own token.
fn join(newcomer: &Client, name: &str) -> Answer {
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
    newcomer.post(&format!("/api/v1/nodes/{name}/token"), &request)
}

#[track_caller]
fn joined(admin: &Client, name: &str) -> Client {
    let answer = join(&bearer(admin, BOOTSTRAP), name).is(201);
    bearer(admin, answer["status"]["token"].as_str().unwrap())
}

/// From the bootstrap token to a board that registers and reports; it outlives a kill; revoked, it is 401.
#[test]
fn a_board_joins_and_is_revoked() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    bootstrap(admin, &[]);
    let board = joined(admin, "fresh");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = board.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).is(201);
    assert_eq!(who["status"]["userInfo"]["username"], "system:node:fresh");
    assert!(
        who["status"]["userInfo"]["groups"].as_array().unwrap().contains(&json!("system:nodes")),
        "{who}"
    );
    let own = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "fresh"}});
    board.post("/api/v1/nodes", &own).is(201);
    board.post("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", &lease("fresh")).is(201);
    let other = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other"}});
    board.post("/api/v1/nodes", &other).forbidden(&[]);
    board.get(SECRETS).forbidden(&[]);
    board.get(&format!("{SECRETS}/bootstrap-token-abcdef")).forbidden(&[]);

    // What is kept is no token.
    let kept = admin.get(SECRETS).text();
    let token = board.credentials().token.clone().unwrap();
    assert!(!kept.contains(&token), "the token itself is stored");
    let plane = plane.kill_and_start();
    let board = bearer(&plane.admin, &token);
    board.get("/api/v1/nodes/fresh").is(200);
    // The bootstrap token's end is not the board's.
    plane.admin.delete(&format!("{SECRETS}/bootstrap-token-abcdef")).is(200);
    bearer(&plane.admin, BOOTSTRAP).get("/version").refused(401, "Unauthorized", &[]);
    board.get("/api/v1/nodes/fresh").is(200);
    plane.admin.delete(&format!("{SECRETS}/board-token-fresh")).is(200);
    board.get("/api/v1/nodes/fresh").refused(401, "Unauthorized", &[]);
    board.get("/version").refused(401, "Unauthorized", &[]);
}

/// A bootstrap token buys nothing else.
#[test]
fn a_bootstrap_token_is_good_for_joining_only() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    node(admin, "a");
    bootstrap(admin, &[]);
    let newcomer = bearer(admin, BOOTSTRAP);
    for path in [
        "/api/v1/nodes",
        "/api/v1/nodes/a",
        "/api/v1/pods",
        SECRETS,
        "/api/v1/configmaps",
        "/metrics",
        "/api/v1/namespaces/kube-system/secrets/bootstrap-token-abcdef",
    ] {
        newcomer.get(path).forbidden(&[]);
    }
    let own = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}});
    newcomer.post("/api/v1/nodes", &own).forbidden(&[]);
    newcomer.post("/api/v1/namespaces/default/pods", &pod_for_nobody("p")).forbidden(&[]);
    newcomer.merge("/api/v1/nodes/a/status", &json!({"status": {}})).forbidden(&[]);
    // Nor can others, boards among them, hand out boards' tokens.
    for other in [plane.client("scheduler"), bearer(admin, "token-old")] {
        join(&other, "b").forbidden(&[]);
    }
    join(&admin.with(&admin.credentials().anonymous()), "b").forbidden(&[]);
}

/// Nobody joins under a name that is taken.
#[test]
fn a_taken_name_is_refused() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    bootstrap(admin, &[]);
    let first = joined(admin, "fresh");
    let newcomer = bearer(admin, BOOTSTRAP);
    join(&newcomer, "fresh").refused(409, "Conflict", &[]);
    join(&newcomer, "old").refused(409, "Conflict", &[]);
    first.get("/version").is(200);
    for bad in ["UPPER", "a_b", "-", "x%2Fy"] {
        let code = join(&newcomer, bad).code;
        assert!([400, 404, 422].contains(&code), "{bad}: {code}");
    }
    // Of many at once one has the name.
    let codes: Vec<u16> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..8).map(|_| scope.spawn(|| join(&newcomer, "raced").code)).collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    assert_eq!(codes.iter().filter(|&&code| code == 201).count(), 1, "{codes:?}");
    // After the revocation the name is free, and the old token stays dead.
    admin.delete(&format!("{SECRETS}/board-token-fresh")).is(200);
    joined(admin, "fresh").get("/version").is(200);
    first.get("/version").refused(401, "Unauthorized", &[]);
}

/// Tokens that are not, no longer, or not for this.
#[test]
fn bootstrap_tokens_that_do_not_hold_are_unauthorized() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    bearer(admin, BOOTSTRAP).get("/version").refused(401, "Unauthorized", &[]);
    let remove = || admin.delete(&format!("{SECRETS}/bootstrap-token-abcdef")).is(200);
    for (key, value) in [
        ("expiration", json!("2020-01-01T00:00:00Z")),
        ("expiration", json!("tomorrow")),
        ("usage-bootstrap-authentication", json!("false")),
        ("usage-bootstrap-authentication", Value::Null),
        ("token-secret", json!("fedcba9876543210")),
        ("token-id", json!("fedcba")),
    ] {
        bootstrap(admin, &[(key, value.clone())]);
        let answer = join(&bearer(admin, BOOTSTRAP), "b");
        assert_eq!(answer.code, 401, "{key}: {value}: {}", answer.text());
        remove();
    }
    // Of another type, or in another namespace, a Secret is no bootstrap token.
    bootstrap(admin, &[]);
    let genuine = admin.get(&format!("{SECRETS}/bootstrap-token-abcdef")).is(200);
    remove();
    for (namespace, kind) in [("kube-system", "Opaque"), ("default", "bootstrap.kubernetes.io/token")] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": kind,
            "metadata": {"name": "bootstrap-token-abcdef"}, "data": genuine["data"]});
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        admin.post(&path, &secret).is(201);
        assert_eq!(join(&bearer(admin, BOOTSTRAP), "b").code, 401, "{namespace} {kind}");
        admin.delete(&format!("{path}/bootstrap-token-abcdef")).is(200);
    }
    for token in [
        "abcdef.0123456789abcdee",
        "abcdef.",
        "abcdef",
        "ABCDEF.0123456789abcdef",
        "abcdef.0123456789abcdef0",
    ] {
        bootstrap(admin, &[]);
        bearer(admin, token).get("/version").refused(401, "Unauthorized", &[]);
        remove();
    }
}

/// The commands of the documentation: the token made with kubectl, the certificate made with openssl's shortest recipe
/// from the authority that the control plane made.
#[test]
fn the_documented_commands_work() {
    let (dir, plane) = start();
    let Some(kubectl) = Kubectl::new(dir.path(), plane.kubeconfig("admin")) else { return };
    let made = "-n kube-system create secret generic bootstrap-token-abcdef --type=bootstrap.kubernetes.io/token \
        --from-literal=token-id=abcdef --from-literal=token-secret=0123456789abcdef \
        --from-literal=usage-bootstrap-authentication=true --from-literal=expiration=2099-01-01T00:00:00Z";
    kubectl.ok(&made.split_whitespace().collect::<Vec<_>>(), &["created"]);
    joined(&plane.admin, "a").get("/version").is(200);
    kubectl.ok(&["-n", "kube-system", "delete", "secret", "board-token-a"], &["deleted"]);
    kubectl.ok(&["auth", "whoami", "--as", "jane", "--as-group", "ops"], &["jane", "ops"]);
    kubectl.ends(1, &["get", "secrets", "--as", "jane"], &["User \"jane\" cannot list"]);
    if !crate::kubectl::have("openssl", &["version"]) {
        return;
    }
    for recipe in [
        "genrsa -out scheduler.key 2048",
        "req -new -key scheduler.key -subj /CN=system:kube-scheduler -out scheduler.csr",
        "x509 -req -in scheduler.csr -CA pki/ca.crt -CAkey pki/ca.key -CAcreateserial -days 365 -out scheduler.crt",
    ] {
        let mut openssl = std::process::Command::new("openssl");
        let output = openssl.args(recipe.split(' ')).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "openssl {recipe}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let nobody =
        ["--kubeconfig", "/dev/null", "--server", &plane.url, "--certificate-authority", "pki/ca.crt"];
    let scheduler = ["--client-certificate", "scheduler.crt", "--client-key", "scheduler.key"];
    kubectl.ok(&[&nobody[..], &scheduler, &["auth", "whoami"]].concat(), &["system:kube-scheduler"]);
    kubectl.ok(&[&nobody[..], &scheduler, &["get", "pods", "-A"]].concat(), &["No resources found"]);
    kubectl.ends(
        1,
        &[&nobody[..], &scheduler, &["get", "secrets"]].concat(),
        &["User \"system:kube-scheduler\" cannot list"],
    );
}

/// Nor under the name of a board that has a certificate.
#[test]
fn a_name_with_a_certificate_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory", "--node-kubeconfigs", "certified"]);
    let certified = plane.client("node-certified");
    let own = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "certified"}});
    certified.post("/api/v1/nodes", &own).is(201);
    bootstrap(&plane.admin, &[]);
    join(&bearer(&plane.admin, BOOTSTRAP), "certified").refused(409, "Conflict", &["certificate"]);
    drop(plane);
    // The certificate still holds when its flag is gone.
    let plane = Plane::tls(dir.path(), &["--store", "memory"]);
    bootstrap(&plane.admin, &[]);
    join(&bearer(&plane.admin, BOOTSTRAP), "certified").refused(409, "Conflict", &["certificate"]);
    join(&plane.admin, "certified").is(201);
}

/// Nor under the name of a Node, which an administrator may give a token.
#[test]
fn a_name_with_a_node_is_refused() {
    let (_dir, plane) = start();
    let admin = &plane.admin;
    node(admin, "known");
    bootstrap(admin, &[]);
    join(&bearer(admin, BOOTSTRAP), "known").refused(409, "Conflict", &["exists already"]);
    join(admin, "known").is(201);
}
