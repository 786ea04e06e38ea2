//! GHOST-05, KLET-08: ways round the authoriser that are none: odd spellings of paths, old paths, other people's names in
//! headers, parts of an object that a subresource does not own.

use serde_json::{Value, json};

use crate::client::Client;
use crate::plane::{Plane, binding, node, pod_for_nobody};

const PODS: &str = "/api/v1/namespaces/default/pods";
const MARK: &str = "bWFyazpvZjp0aGU6c2VjcmV0";

fn start() -> (tempfile::TempDir, Plane, Vec<Client>) {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, "token-a,system:node:a,,system:nodes\nnobody-token,nobody,,\n").unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory", "--token-auth-file", tokens.to_str().unwrap()]);
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": MARK}});
    plane.admin.post("/api/v1/namespaces/default/secrets", &secret).is(201);
    node(&plane.admin, "a");
    node(&plane.admin, "b");
    let bearer = |token: &str| plane.admin.with(&plane.admin.credentials().bearer(token));
    let anonymous = plane.admin.with(&plane.admin.credentials().anonymous());
    let clients = vec![plane.client("scheduler"), bearer("token-a"), bearer("nobody-token"), anonymous];
    (dir, plane, clients)
}

/// However the path is spelt, a secret stays one.
#[test]
fn spellings_of_a_path_do_not_get_round_the_authoriser() {
    let (_dir, plane, clients) = start();
    let tables = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let paths = [
        "/api/v1/secrets",
        "/api/v1/secrets/",
        "//api/v1/secrets",
        "/api//v1/secrets",
        "/api/v1//secrets",
        "/api/v1/./secrets",
        "/api/v1/pods/../secrets",
        "/api/v1/pods/%2e%2e/secrets",
        "/api/v1/namespaces/default/%73ecrets",
        "/api/v1/namespaces/default/secrets/s",
        "/api/v1/namespaces/default/secrets/%73",
        "/api/v1/namespaces/default/pods/../secrets/s",
        "/api/v1/namespaces/default%2Fsecrets/s",
        "/api/v1/namespaces/default/secrets%2Fs",
        "/api/v1/namespaces/default/SECRETS/s",
        "/api/v1/watch/secrets?timeoutSeconds=1",
        "/api/v1/watch/namespaces/default/secrets/s?timeoutSeconds=1",
        "/api/v1/secrets?watch=true&timeoutSeconds=1",
        "/api/v1/secrets?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Ds%2Cmetadata.name%3Dx",
        "/api/v1/namespaces/default/secrets/s/status",
        "/version/../api/v1/secrets",
        "/healthz/%2e%2e/api/v1/secrets",
        "/api/v1/secrets?resource=pods&verb=get",
    ];
    for client in &clients {
        for path in paths {
            for headers in [&[][..], &tables[..]] {
                let answer = client.exchange("GET", path, headers, "");
                assert!(!answer.text().contains(MARK), "{path}: {}", answer.text());
                assert!(answer.code >= 300, "{path}: {} {}", answer.code, answer.text());
            }
        }
        for (header, value) in [
            ("x-http-method-override", "GET"),
            ("x-original-url", "/api/v1/secrets"),
            ("x-rewrite-url", "/api/v1/secrets"),
            ("x-remote-user", "boss"),
            ("x-remote-group", "system:masters"),
            ("x-forwarded-user", "boss"),
        ] {
            let answer = client.exchange("GET", "/api/v1/secrets", &[(header, value)], "");
            assert_eq!(answer.code, 403, "{header}: {}", answer.text());
        }
    }
    assert!(plane.admin.get("/api/v1/namespaces/default/secrets/s").text().contains(MARK));
}

/// Impersonation headers are honoured with the right to, or refused; they are never passed over.
#[test]
fn impersonation_is_never_ignored() {
    let (_dir, plane, clients) = start();
    let boss = [("impersonate-user", "boss"), ("impersonate-group", "system:masters")];
    for client in &clients {
        let answer = client.exchange("GET", "/api/v1/secrets", &boss, "");
        assert!(!answer.text().contains(MARK), "{}", answer.text());
        assert!([400, 401, 403].contains(&answer.code), "{} {}", answer.code, answer.text());
        // Not even for what it may do itself: it would be done in another's name.
        let answer = client.exchange("GET", "/api/v1/nodes/a", &boss, "");
        assert!([400, 401, 403].contains(&answer.code), "{} {}", answer.code, answer.text());
    }
    // The administrator as nobody has nobody's rights.
    let nobody = [("impersonate-user", "nobody")];
    let answer = plane.admin.exchange("GET", "/api/v1/secrets", &nobody, "");
    assert!(!answer.text().contains(MARK), "--as was ignored: {}", answer.text());
    assert!([400, 403, 501].contains(&answer.code), "{} {}", answer.code, answer.text());
}

/// A subresource changes its own part of the object only.
#[test]
fn subresources_do_not_reach_the_rest_of_an_object() {
    let (_dir, plane, clients) = start();
    let (admin, scheduler, a) = (&plane.admin, &clients[0], &clients[1]);
    let mut pod = admin.post(PODS, &pod_for_nobody("p")).is(201);
    pod["spec"]["nodeName"] = json!("a");
    pod["spec"]["containers"][0]["image"] = json!("evil");
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "40c9d8f4-80df-4e08-a3c8-de3638646f05"});
    pod["metadata"]["ownerReferences"] = json!([owner]);
    pod["status"]["phase"] = json!("Running");
    let code = scheduler.put(&format!("{PODS}/p/status"), &pod).code;
    assert!([200, 403, 422].contains(&code), "{code}");
    let merge = json!({"spec": {"nodeName": "a", "containers": [{"name": "c", "image": "evil"}]}, "status": {"message": "m"}});
    scheduler.merge(&format!("{PODS}/p/status"), &merge);
    let read = admin.get(&format!("{PODS}/p")).is(200);
    assert_eq!(read["spec"].get("nodeName"), None, "{read}");
    assert_eq!(read["spec"]["containers"][0]["image"], "rigor.dev/pause");
    assert_eq!(read["metadata"].get("ownerReferences"), None, "{read}");

    admin.post(&format!("{PODS}/p/binding"), &binding("p", "a")).is(201);
    let move_away = json!({"spec": {"nodeName": "b", "serviceAccountName": "boss",
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "status": {"phase": "Running"}});
    for send in [Client::merge, Client::strategic] {
        send(a, &format!("{PODS}/p/status"), &move_away);
    }
    let before = admin.get(&format!("{PODS}/p")).is(200);
    assert_eq!(before["spec"]["nodeName"], "a");
    assert_eq!(before["spec"]["serviceAccountName"], "default");
    assert_eq!(before["spec"].get("volumes"), None, "a board named a secret in a pod: {before}");
    a.get("/api/v1/namespaces/default/secrets/s").forbidden(&[]);

    for (client, path) in [
        (scheduler, format!("{PODS}/p/eviction")),
        (a, format!("{PODS}/p/ephemeralcontainers")),
        (scheduler, "/api/v1/namespaces/default/serviceaccounts/default/token".to_owned()),
        (a, "/api/v1/namespaces/kube-system/serviceaccounts/default/token".to_owned()),
        (scheduler, "/api/v1/nodes/a/status".to_owned()),
    ] {
        let code = client.post(&path, &json!({"metadata": {"name": "p"}})).code;
        assert!([403, 404, 405].contains(&code), "{path}: {code}");
    }
    // What is not there is not made by an update either.
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "c", "namespace": "kube-node-lease"}, "spec": {}});
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/c";
    a.put(path, &lease).forbidden(&[]);
    let code = a.strategic(path, &json!({"spec": {"holderIdentity": "a"}})).code;
    assert!([403, 404].contains(&code), "{code}");
    admin.get(path).refused(404, "NotFound", &[]);
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "kube-system"}});
    admin.post("/api/v1/namespaces/default/configmaps", &body).refused(400, "BadRequest", &["namespace"]);
}

/// A board does not move its pods into others' selections by their labels.
#[test]
fn boards_do_not_relabel_their_pods() {
    let (_dir, plane, clients) = start();
    let mut pod = pod_for_nobody("p");
    pod["spec"]["nodeName"] = json!("a");
    pod["metadata"]["labels"] = json!({"app": "x"});
    plane.admin.post(PODS, &pod).is(201);
    let path = format!("{PODS}/p/status");
    let relabel = json!({"metadata": {"labels": {"app": "bank"}}, "status": {"phase": "Running"}});
    for send in [Client::merge, Client::strategic] {
        send(&clients[1], &path, &relabel).forbidden(&["cannot update labels through pod status"]);
    }
    let read = plane.admin.get(&format!("{PODS}/p")).is(200);
    assert_eq!(
        (&read["metadata"]["labels"], &read["status"]["phase"]),
        (&json!({"app": "x"}), &json!("Pending"))
    );
}

/// A review says of each of these what the request itself is told.
#[test]
fn reviews_and_requests_agree() {
    let (_dir, _plane, clients) = start();
    let asked: [(&str, &str, &str, &str, &str); 10] = [
        ("list", "", "pods", "", "/api/v1/pods"),
        ("list", "", "secrets", "", "/api/v1/secrets"),
        ("list", "", "secrets", "default", "/api/v1/namespaces/default/secrets"),
        ("list", "", "nodes", "", "/api/v1/nodes"),
        ("list", "", "services", "", "/api/v1/services"),
        ("list", "apps", "replicasets", "", "/apis/apps/v1/replicasets"),
        ("list", "apps", "deployments", "", "/apis/apps/v1/deployments"),
        ("list", "coordination.k8s.io", "leases", "", "/apis/coordination.k8s.io/v1/leases"),
        ("list", "", "events", "default", "/api/v1/namespaces/default/events"),
        ("list", "", "configmaps", "", "/api/v1/configmaps"),
    ];
    for client in &clients[..3] {
        for (verb, group, resource, namespace, path) in asked {
            let attributes =
                json!({"verb": verb, "group": group, "resource": resource, "namespace": namespace});
            let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes}});
            let path_of_reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
            let answer: Value = client.post(path_of_reviews, &review).is(201);
            let code = client.get(path).code;
            assert_eq!(answer["status"]["allowed"], json!(code == 200), "{path}: {code} {answer}");
        }
        for path in ["/version", "/metrics", "/api", "/apis/apps/v1", "/healthz", "/openapi/v3"] {
            let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"nonResourceAttributes": {"verb": "get", "path": path}}});
            let answer =
                client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).is(201);
            let code = client.get(path).code;
            assert_eq!(answer["status"]["allowed"], json!(code == 200), "{path}: {code} {answer}");
        }
    }
}
