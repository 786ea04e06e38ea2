//! Tokens that are asked for: of service accounts, and of boards that join; and requests that count as someone else's.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::rig::{ADMIN, ISSUER, PODS, Rig, board, pod};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

fn whoami(rig: &Rig, token: &str) -> Result<Value, u16> {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let answer = rig.call_as(token, "POST", path, &json!({}));
    if answer.status == 201 { Ok(answer.body["status"]["userInfo"].clone()) } else { Err(answer.status) }
}

fn account(rig: &Rig, name: &str) -> Value {
    rig.create(ACCOUNTS, &json!({"metadata": {"name": name}}))
}

fn request(rig: &Rig, name: &str, spec: Value) -> crate::rig::Answer {
    rig.call("POST", &format!("{ACCOUNTS}/{name}/token"), &json!({"spec": spec}))
}

fn token(rig: &Rig, name: &str, spec: Value) -> String {
    request(rig, name, spec).expect(201)["status"]["token"].as_str().unwrap().to_owned()
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

#[test]
fn a_service_accounts_token_is_its_account_until_it_ends() {
    let rig = Rig::new();
    let made = account(&rig, "robot");
    let answer = request(&rig, "robot", json!({"expirationSeconds": 600})).expect(201);
    assert_eq!(answer["kind"], "TokenRequest");
    assert_eq!(answer["spec"], json!({"audiences": [ISSUER], "expirationSeconds": 600}));
    assert_eq!(answer["status"]["expirationTimestamp"], "2026-01-01T00:10:00Z");
    let robot = answer["status"]["token"].as_str().unwrap();
    let user = whoami(&rig, robot).unwrap();
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert_eq!(user["uid"], made["metadata"]["uid"]);
    let groups = json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]);
    assert_eq!(user["groups"], groups);
    rig.pass(Duration::from_secs(599));
    assert!(whoami(&rig, robot).is_ok());
    rig.pass(Duration::from_secs(1));
    assert_eq!(whoami(&rig, robot), Err(401));
    // An account that was made anew is another one.
    let old = token(&rig, "robot", json!({}));
    rig.delete(&format!("{ACCOUNTS}/robot"));
    assert_eq!(whoami(&rig, &old), Err(401));
    account(&rig, "robot");
    assert_eq!(whoami(&rig, &old), Err(401));
    // Tokens for others are not for this API; changed ones are nobody's.
    let other = token(&rig, "robot", json!({"audiences": ["vault"]}));
    assert_eq!(whoami(&rig, &other), Err(401));
    let new = token(&rig, "robot", json!({}));
    assert!(whoami(&rig, &new).is_ok());
    assert_eq!(whoami(&rig, &new[..new.len() - 4]), Err(401));
    assert_eq!(whoami(&rig, &format!("{new}AAAA")), Err(401));
}

#[test]
fn this_api_takes_tokens_for_any_of_its_audiences() {
    let own = json!(["https://here", "inside"]);
    let rig = Rig::with(|config| config.api_audiences = serde_json::from_value(own.clone()).unwrap());
    account(&rig, "robot");
    let usual = request(&rig, "robot", json!({})).expect(201);
    assert_eq!(usual["spec"]["audiences"], own);
    assert!(whoami(&rig, usual["status"]["token"].as_str().unwrap()).is_ok());
    let check = |audiences: Value, taken: bool| {
        let token = token(&rig, "robot", json!({"audiences": audiences}));
        assert_eq!(whoami(&rig, &token).is_ok(), taken, "{audiences}");
    };
    check(json!(["inside"]), true);
    check(json!(["vault", "https://here"]), true);
    check(json!(["vault"]), false);
    // The issuer is an audience only where nothing else is said.
    check(json!([ISSUER]), false);
    let review = |token: &str, audiences: Value| {
        let body = json!({"spec": {"token": token, "audiences": audiences}});
        rig.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", &body).expect(201)["status"].clone()
    };
    let both = token(&rig, "robot", json!({"audiences": ["vault", "inside"]}));
    assert_eq!(review(&both, json!([]))["audiences"], json!(["inside"]));
    assert_eq!(review(&both, json!(["vault"]))["audiences"], json!(["vault"]));
    assert_eq!(review(&both, json!([ISSUER]))["authenticated"], Value::Null);
    assert_eq!(review("admin-token", json!([]))["audiences"], own);
}

#[test]
fn what_cannot_be_had_is_refused_in_kubernetes_words() {
    let rig = Rig::new();
    account(&rig, "robot");
    let check = |name: &str, spec: Value, status: u16, words: &str| {
        let message = request(&rig, name, spec).refused(status);
        assert!(message.contains(words), "{message}");
    };
    check("gone", json!({}), 404, "serviceaccounts \"gone\" not found");
    check("robot", json!({"expirationSeconds": 599}), 422, "may not specify a duration less than 10 minutes");
    check("robot", json!({"expirationSeconds": 1_u64 << 33}), 422, "larger than 2^32 seconds");
    let to = |kind: &str, name: &str, uid: &str| json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}});
    check("robot", to("Pod", "gone", ""), 404, "pods \"gone\" not found");
    check("robot", to("Secret", "gone", ""), 404, "secrets \"gone\" not found");
    check("robot", to("ConfigMap", "x", ""), 400, "cannot bind token to object of type /v1, Kind=ConfigMap");
    rig.create(PODS, &pod("p", &json!({})));
    check("robot", to("Pod", "p", ""), 400, "to pod running with different serviceaccount name");
    check(
        "default",
        to("Pod", "p", "other"),
        409,
        "the UID in the bound object reference (other) does not match",
    );
    let path = format!("{ACCOUNTS}/robot/token");
    let message = rig.call_as("nobody-token", "POST", &path, &json!({"spec": {}})).refused(403);
    assert!(message.contains("cannot create resource \"serviceaccounts/token\""), "{message}");
}

#[test]
fn klet_08_a_board_gets_tokens_for_the_accounts_of_its_pods_only() {
    let rig = Rig::new();
    rig.join("a", &board());
    account(&rig, "other");
    let pod = rig.create(PODS, &pod("p", &json!({})));
    assert_eq!(pod["spec"]["nodeName"], "a");
    let ask = |token: &str, account: &str, reference: Value| {
        let body = json!({"spec": {"boundObjectRef": reference}});
        rig.call_as(token, "POST", &format!("{ACCOUNTS}/{account}/token"), &body)
    };
    let own = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod["metadata"]["uid"]});
    let message = ask("a-token", "other", own.clone()).refused(403);
    assert!(message.contains("no relationship found between node 'a' and this object"), "{message}");
    assert_eq!(ask("b-token", "default", own.clone()).status, 403);
    let message = ask("a-token", "default", Value::Null).refused(403);
    assert!(message.contains("node requested token not bound to a pod"), "{message}");
    let mut unnamed = own.clone();
    unnamed["uid"] = json!("");
    assert!(ask("a-token", "default", unnamed).refused(403).contains("without a uid"));
    let token = ask("a-token", "default", own).expect(201)["status"]["token"].as_str().unwrap().to_owned();
    let user = whoami(&rig, &token).unwrap();
    assert_eq!(user["extra"]["authentication.kubernetes.io/pod-name"], json!(["p"]));
    assert_eq!(user["extra"]["authentication.kubernetes.io/node-name"], json!(["a"]));
    rig.delete(&format!("{PODS}/p?gracePeriodSeconds=0"));
    assert_eq!(whoami(&rig, &token), Err(401), "the pod is gone");
}

#[test]
fn a_token_is_reviewed_for_its_audience() {
    let rig = Rig::new();
    account(&rig, "robot");
    let review = |token: &str, audiences: Value| {
        let body = json!({"spec": {"token": token, "audiences": audiences}});
        rig.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", &body).expect(201)["status"].clone()
    };
    let vault = token(&rig, "robot", json!({"audiences": ["vault"]}));
    let status = review(&vault, json!(["vault", "x"]));
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!(["vault"])));
    assert_eq!(status["user"]["username"], "system:serviceaccount:default:robot");
    let status = review(&vault, json!([]));
    assert_eq!(status["authenticated"], Value::Null);
    assert!(status["error"].as_str().unwrap().contains("is invalid for the target audiences"), "{status}");
    assert_eq!(review("admin-token", json!([]))["audiences"], json!([ISSUER]));
    assert_eq!(review("wrong", json!([]))["authenticated"], Value::Null);
    let empty = rig.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", &json!({"spec": {}}));
    assert!(empty.refused(400).contains("token is required"));
    let robot = token(&rig, "robot", json!({}));
    let body = json!({"spec": {"token": robot}});
    assert_eq!(rig.call_as(&robot, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", &body).status, 403);
}

#[test]
fn the_issuer_is_described_to_service_accounts() {
    let rig = Rig::new();
    account(&rig, "robot");
    let robot = token(&rig, "robot", json!({}));
    let get = |token: &str, path: &str| rig.call_as(token, "GET", path, &Value::Null);
    let document = get(&robot, "/.well-known/openid-configuration").expect(200);
    assert_eq!(document["issuer"], ISSUER);
    let keys = get(&robot, "/openid/v1/jwks");
    assert_eq!(keys.headers["content-type"], "application/jwk-set+json");
    assert_eq!(keys.expect(200)["keys"][0]["alg"], "ES256");
    assert_eq!(get("nobody-token", "/openid/v1/jwks").status, 403);
}

fn bootstrap(rig: &Rig) {
    let data = json!({
        "token-id": base64("abcdef"),
        "token-secret": base64("0123456789abcdef"),
        "usage-bootstrap-authentication": base64("true"),
        "expiration": base64("2026-01-01T01:00:00Z"),
    });
    let secret = json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "data": data});
    rig.create("/api/v1/namespaces/kube-system/secrets", &secret);
}

#[test]
fn a_board_joins_with_a_bootstrap_token_and_is_thrown_out_by_deleting_its_own() {
    const BOOTSTRAP: &str = "abcdef.0123456789abcdef";
    let rig = Rig::new();
    assert_eq!(whoami(&rig, BOOTSTRAP), Err(401));
    bootstrap(&rig);
    let user = whoami(&rig, BOOTSTRAP).unwrap();
    assert_eq!(user["username"], "system:bootstrap:abcdef");
    assert_eq!(user["groups"], json!(["system:bootstrappers", "system:authenticated"]));
    assert_eq!(rig.call_as(BOOTSTRAP, "GET", "/api/v1/nodes", &Value::Null).status, 403);
    let join = |token: &str, name: &str| {
        rig.call_as(token, "POST", &format!("/api/v1/nodes/{name}/token"), &json!({"spec": {}}))
    };
    assert_eq!(join("nobody-token", "new").status, 403);
    assert_eq!(join("a-token", "new").status, 403, "a board lets no other in");
    let made = join(BOOTSTRAP, "new").expect(201);
    let own = made["status"]["token"].as_str().unwrap().to_owned();
    assert_eq!(whoami(&rig, &own).unwrap()["username"], "system:node:new");
    rig.call_as(&own, "POST", "/api/v1/nodes", &json!({"metadata": {"name": "new"}})).expect(201);
    assert_eq!(rig.call_as(&own, "POST", "/api/v1/nodes", &json!({"metadata": {"name": "b"}})).status, 403);
    let secret = "/api/v1/namespaces/kube-system/secrets/board-token-new";
    assert!(!rig.call("GET", secret, &Value::Null).text.contains(&own), "only a hash is kept");
    let message = join(BOOTSTRAP, "new").refused(409);
    assert!(message.contains("kube-system/board-token-new"), "{message}");
    assert!(join(BOOTSTRAP, "a").refused(409).contains("token file"));
    assert_eq!(join(BOOTSTRAP, "Bad_Name").status, 422);
    rig.delete(secret);
    assert_eq!(whoami(&rig, &own), Err(401));
    let message = join(BOOTSTRAP, "new").refused(409);
    assert!(message.contains("this node exists already"), "{message}");
    join(ADMIN, "new").expect(201);
    rig.delete(secret);
    rig.delete("/api/v1/nodes/new");
    let again = join(BOOTSTRAP, "new").expect(201)["status"]["token"].as_str().unwrap().to_owned();
    assert!(again != own && whoami(&rig, &own) == Err(401) && whoami(&rig, &again).is_ok());
    rig.pass(Duration::from_secs(3600));
    assert_eq!(whoami(&rig, BOOTSTRAP), Err(401), "it has expired");
    assert!(whoami(&rig, &again).is_ok());
    // `nodes/token` is no part of what Kubernetes' discovery shows.
    assert!(!rig.call("GET", "/api/v1", &Value::Null).text.contains("nodes/token"));
}

#[test]
fn who_may_act_as_others_does() {
    let rig = Rig::new();
    let ask = |token: &str, headers: &[(&str, &str)], path: &str| {
        let mut request = Request::builder().method("GET").uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        rig.ask(token, request, Body::empty())
    };
    let pods = "/api/v1/pods";
    assert_eq!(ask(ADMIN, &[], pods).status, 200);
    let message = ask(ADMIN, &[("Impersonate-User", "bob")], pods).refused(403);
    assert!(message.contains("User \"bob\" cannot list resource \"pods\""), "{message}");
    assert_eq!(ask(ADMIN, &[("Impersonate-User", "system:kube-scheduler")], pods).status, 200);
    let masters = [("Impersonate-User", "bob"), ("Impersonate-Group", "system:masters")];
    assert_eq!(ask(ADMIN, &masters, pods).status, 200);
    let message = ask("nobody-token", &masters, pods).refused(403);
    assert_eq!(
        message,
        "users \"bob\" is forbidden: User \"nobody\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"
    );
    assert_eq!(ask(ADMIN, &[("Impersonate-Group", "system:masters")], pods).status, 400);
    // A name beyond ASCII is a name; what is no text is refused. Neither leaves the request with the caller's own rights.
    let message = ask(ADMIN, &[("Impersonate-User", "jürgen")], pods).refused(403);
    assert!(message.contains("User \"jürgen\" cannot list resource \"pods\""), "{message}");
    for header in ["Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-A"] {
        let mut request = Request::builder().method("GET").uri(pods);
        if header != "Impersonate-User" {
            request = request.header("Impersonate-User", "bob");
        }
        let unreadable = http::HeaderValue::from_bytes(b"a\xFF").unwrap();
        let message = rig.ask(ADMIN, request.header(header, unreadable), Body::empty()).refused(400);
        assert!(message.contains(&header.to_lowercase()) && message.contains("UTF-8"), "{message}");
    }
    assert_eq!(ask(ADMIN, &[("Impersonate-User", "bob"), ("Impersonate-Extra-A%ff", "x")], pods).status, 403);
    // One who is acted as without credentials has only what everybody has.
    let unknown = [("Impersonate-User", "bob"), ("Impersonate-Group", "system:unauthenticated")];
    assert_eq!(ask(ADMIN, &[("Impersonate-User", "bob")], "/apis").status, 200);
    assert_eq!(ask(ADMIN, &unknown, "/apis").status, 403);
    assert_eq!(ask(ADMIN, &unknown, "/version").status, 200);
    // Leave to act as one user is no leave to act as another, or in a group.
    let rule = json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"]});
    let group = "/apis/rbac.authorization.k8s.io/v1";
    rig.create(&format!("{group}/clusterroles"), &json!({"metadata": {"name": "as-bob"}, "rules": [rule]}));
    let binding = json!({
        "metadata": {"name": "as-bob"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "as-bob"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
    });
    rig.create(&format!("{group}/clusterrolebindings"), &binding);
    assert_eq!(ask("nobody-token", &[("Impersonate-User", "bob")], "/apis").status, 200);
    assert_eq!(ask("nobody-token", &[("Impersonate-User", "alice")], "/apis").status, 403);
    assert!(ask("nobody-token", &masters, pods).refused(403).contains("resource \"groups\""));
    let account = [("Impersonate-User", "system:serviceaccount:default:robot")];
    assert!(ask("nobody-token", &account, pods).refused(403).contains("resource \"serviceaccounts\""));
}
