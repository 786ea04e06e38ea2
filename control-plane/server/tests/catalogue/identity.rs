//! GHOST-05: who may do what, by certificates minted by hand, by tokens, and by nothing at all.

use serde_json::{Value, json};

use crate::client::{Client, Credentials};
use crate::kubectl::Kubectl;
use crate::minting::{Authority, CLIENT, EC, EC_PKCS8, RSA, RSA_TRADITIONAL, SERVER};
use crate::plane::{Plane, binding, node, pod_for_nobody};

const PODS: &str = "/api/v1/namespaces/default/pods";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// A control plane whose certificates are all minted by hand.
struct ByHand {
    plane: Plane,
    authority: Authority,
    dir: tempfile::TempDir,
}

impl ByHand {
    fn start(server_key: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new(&dir.path().join("pki"), "by-hand")?;
        authority.mint("server", server_key, "/CN=control-plane", SERVER, 30);
        let tokens = dir.path().join("tokens.csv");
        std::fs::write(&tokens, "nobody-token,nobody,,\nboss-token,boss,,\"system:masters\"\n").unwrap();
        let path = |name: &str| authority.path(name).to_str().unwrap().to_owned();
        let flags = [
            "--store",
            "memory",
            "--tls-cert-file",
            &path("server.pem"),
            "--tls-private-key-file",
            &path("server.key"),
            "--client-ca-file",
            &path("ca.pem"),
            "--token-auth-file",
            tokens.to_str().unwrap(),
        ];
        let plane = Plane::tls_signed_by(dir.path(), &flags, &authority.pem());
        Some(Self { plane, authority, dir })
    }

    /// The server as seen by someone with the server's authority and nothing else.
    fn stranger(&self) -> Credentials {
        Credentials { ca: self.authority.pem(), ..Credentials::default() }
    }

    /// A kubeconfig that knows the server and nobody.
    fn nobodys_kubeconfig(&self) -> std::path::PathBuf {
        let path = self.dir.path().join("nobody.kubeconfig");
        let cluster =
            json!({"server": self.plane.url, "certificate-authority": self.authority.path("ca.pem")});
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}], "users": [],
            "contexts": [{"name": "c", "context": {"cluster": "c"}}]});
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    fn as_certificate(&self, pem: Vec<u8>) -> Client {
        Client::new(&self.plane.url, &self.stranger().certificate(pem))
    }
}

/// Who the server takes a client for.
#[track_caller]
fn whoami(client: &Client) -> Value {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).is(201)["status"]["userInfo"]
        .clone()
}

fn event(pod: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{pod}.1"), "namespace": "default"},
           "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": pod},
           "reason": "Scheduled", "message": "by hand", "type": "Normal",
           "source": {"component": "default-scheduler"}})
}

/// GHOST-05: the certificate's name is the user, its organisations are the groups; all usual kinds of keys are taken.
#[test]
fn certificates_minted_by_hand_are_users() {
    let Some(by_hand) = ByHand::start(EC_PKCS8) else { return };
    for (file, key) in [("pkcs8", RSA), ("pkcs1", RSA_TRADITIONAL), ("sec1", EC), ("ec-pkcs8", EC_PKCS8)] {
        let pem = by_hand.authority.mint(file, key, "/CN=jane/O=dev/O=ops", CLIENT, 30);
        let jane = whoami(&by_hand.as_certificate(pem));
        assert_eq!(jane["username"], "jane", "{file}: {jane}");
        assert_eq!(jane["groups"], json!(["dev", "ops", "system:authenticated"]), "{file}: {jane}");
    }
    // As the shortest recipe leaves it: version 1, without a word about its use. Not every client presents such a one.
    by_hand.authority.mint("plain", RSA, "/CN=jane/O=dev/O=ops", "", 30);
    let Some(kubectl) = Kubectl::new(by_hand.dir.path(), by_hand.nobodys_kubeconfig()) else { return };
    let file = |flag: &str, name: &str| format!("--{flag}={}", by_hand.authority.path(name).display());
    let flags = [file("client-certificate", "plain.pem"), file("client-key", "plain.key")];
    kubectl.ok(&[&flags[0], &flags[1], "auth", "whoami"], &["jane", "dev", "ops"]);
}

/// GHOST-05: the user's own server certificate, with a key in each usual form, serves kubectl.
#[test]
fn the_users_own_server_certificate_serves() {
    for key in [RSA, RSA_TRADITIONAL, EC] {
        let Some(by_hand) = ByHand::start(key) else { return };
        by_hand.plane.admin.get("/api/v1/nodes").is(200);
        let Some(kubectl) = Kubectl::new(by_hand.dir.path(), by_hand.plane.kubeconfig("admin")) else {
            return;
        };
        let authority = by_hand.authority.path("ca.pem");
        let flag = format!("--certificate-authority={}", authority.display());
        kubectl.ok(&[&flag, "auth", "whoami"], &["system:masters"]);
    }
}

/// GHOST-05: what kube-scheduler may do.
#[test]
fn the_schedulers_certificate_may_do_what_its_role_says() {
    let Some(by_hand) = ByHand::start(EC_PKCS8) else { return };
    let admin = &by_hand.plane.admin;
    let scheduler = by_hand.as_certificate(
        by_hand.authority.client("scheduler", "/CN=system:kube-scheduler/O=system:kube-scheduler"),
    );
    node(admin, "n");
    admin.post(PODS, &pod_for_nobody("p")).is(201);
    admin.post(PODS, &pod_for_nobody("q")).is(201);

    for path in [
        "/api/v1/pods",
        PODS,
        &format!("{PODS}/p"),
        "/api/v1/nodes",
        "/api/v1/nodes/n",
        "/api/v1/namespaces",
        "/api/v1/services",
        "/api/v1/replicationcontrollers",
        "/api/v1/persistentvolumeclaims",
        "/api/v1/persistentvolumes",
        "/apis/apps/v1/replicasets",
        "/apis/apps/v1/statefulsets",
        "/apis/policy/v1/poddisruptionbudgets",
        "/apis/storage.k8s.io/v1/csinodes",
        "/apis/storage.k8s.io/v1/storageclasses",
        "/api",
        "/apis",
        "/version",
        "/healthz",
    ] {
        scheduler.get(path).is(200);
    }
    assert_eq!(scheduler.watch("/api/v1/pods", 1).filter(|event| event["type"] == "ADDED").count(), 2);
    assert_eq!(scheduler.watch("/api/v1/nodes", 1).filter(|event| event["type"] == "ADDED").count(), 1);

    scheduler.post(&format!("{PODS}/p/binding"), &binding("p", "n")).is(201);
    scheduler.post("/api/v1/namespaces/default/bindings", &binding("q", "n")).is(201);
    scheduler.post("/api/v1/namespaces/default/events", &event("p")).is(201);
    let count = json!({"count": 2});
    scheduler.strategic("/api/v1/namespaces/default/events/p.1", &count).is(200);
    let gone = json!({"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}});
    scheduler.strategic(&format!("{PODS}/p/status"), &gone).is(200);
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"}, "spec": {"holderIdentity": "x"}});
    let mut lease = scheduler.post(LEASES, &lease).is(201);
    lease["spec"]["holderIdentity"] = json!("y");
    scheduler.put(&format!("{LEASES}/kube-scheduler"), &lease).is(200);
    scheduler.delete(&format!("{PODS}/q?gracePeriodSeconds=0")).is(200);
}

/// GHOST-05: what its role lacks is 403, in Kubernetes' words, and changes nothing.
#[test]
fn the_schedulers_certificate_may_do_nothing_else() {
    let Some(by_hand) = ByHand::start(EC_PKCS8) else { return };
    let admin = &by_hand.plane.admin;
    let scheduler =
        by_hand.as_certificate(by_hand.authority.client("scheduler", "/CN=system:kube-scheduler"));
    node(admin, "n");
    admin.post(PODS, &pod_for_nobody("p")).is(201);
    let versions = || {
        [
            "/api/v1/pods",
            "/api/v1/nodes",
            "/api/v1/configmaps",
            "/api/v1/secrets",
            "/apis/apps/v1/deployments",
        ]
        .map(|path| admin.get(path).is(200)["items"].clone())
    };
    let before = versions();

    let refused = scheduler.post(PODS, &pod_for_nobody("x"));
    refused.forbidden(&[
        "pods is forbidden: User \"system:kube-scheduler\" cannot create resource \"pods\" in API group \"\" in the namespace \"default\"",
    ]);
    let change = json!({"metadata": {"labels": {"a": "b"}}});
    scheduler.merge(&format!("{PODS}/p"), &change).forbidden(&[
        "pods \"p\" is forbidden: User \"system:kube-scheduler\" cannot patch resource \"pods\" in API group \"\" in the namespace \"default\"",
    ]);
    scheduler.merge("/api/v1/nodes/n", &change).forbidden(&[
        "nodes \"n\" is forbidden: User \"system:kube-scheduler\" cannot patch resource \"nodes\" in API group \"\" at the cluster scope",
    ]);
    scheduler.merge("/api/v1/nodes/n/status", &change).forbidden(&["cannot patch resource \"nodes/status\""]);
    scheduler.delete("/api/v1/nodes/n").forbidden(&["cannot delete resource \"nodes\""]);
    scheduler.delete(PODS).forbidden(&["cannot deletecollection resource \"pods\""]);
    scheduler
        .put(&format!("{PODS}/p"), &admin.get(&format!("{PODS}/p")).is(200))
        .forbidden(&["cannot update"]);
    let named =
        |kind: &str, version: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}});
    scheduler.post("/api/v1/nodes", &named("Node", "v1")).forbidden(&["cannot create resource \"nodes\""]);
    scheduler.post("/api/v1/namespaces", &named("Namespace", "v1")).forbidden(&["at the cluster scope"]);
    for path in [
        "/api/v1/secrets",
        "/api/v1/namespaces/default/secrets",
        "/api/v1/namespaces/default/secrets/x",
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/kube-system/configmaps/other",
        "/api/v1/namespaces/default/events",
        "/api/v1/serviceaccounts",
        "/apis/apps/v1/deployments",
        "/apis/apps/v1/daemonsets",
        "/apis/batch/v1/jobs",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n",
        "/api/v1/namespaces/default/pods/p/log",
        "/metrics",
    ] {
        scheduler.get(path).forbidden(&["User \"system:kube-scheduler\" cannot"]);
    }
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    scheduler.post(deployments, &named("Deployment", "apps/v1")).forbidden(&["in API group \"apps\""]);
    let account = "/api/v1/namespaces/default/serviceaccounts/default/token";
    scheduler.post(account, &named("TokenRequest", "authentication.k8s.io/v1")).forbidden(&["cannot create"]);
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    scheduler.post(roles, &named("ClusterRoleBinding", "rbac.authorization.k8s.io/v1")).forbidden(&[]);
    assert_eq!(versions(), before);
}

/// GHOST-05: a certificate of another authority, of nobody's, or out of its time is 401, and so is an unknown token.
#[test]
fn unknown_certificates_and_tokens_are_unauthorized() {
    let Some(by_hand) = ByHand::start(EC_PKCS8) else { return };
    let other = Authority::new(&by_hand.dir.path().join("other"), "by-hand").unwrap();
    let subject = "/CN=system:kube-scheduler/O=system:masters";
    let expired = by_hand.authority.mint("expired", EC, subject, CLIENT, -1);
    let for_servers = by_hand.authority.mint("server-use", EC, subject, "extendedKeyUsage=serverAuth\n", 30);
    let nobody = Authority::new(&by_hand.dir.path().join("self"), "system:masters").unwrap();
    let mut own = std::fs::read(nobody.path("ca.key")).unwrap();
    own.extend(nobody.pem());
    for (why, pem) in [
        ("another authority of the same name", other.client("scheduler", subject)),
        ("signed by itself", own),
        ("expired", expired),
        ("for servers", for_servers),
    ] {
        let client = by_hand.as_certificate(pem);
        let status = client.get("/api/v1/pods").refused(401, "Unauthorized", &["Unauthorized"]);
        assert_eq!(status["message"], "Unauthorized", "{why}");
        client.get("/healthz").refused(401, "Unauthorized", &[]);
    }
    for token in
        ["wrong", "nobody-toke", "nobody-token2", "NOBODY-TOKEN", "a.b.c", "eyJhbGciOiJub25lIn0.e30."]
    {
        let client = Client::new(&by_hand.plane.url, &by_hand.stranger().bearer(token));
        client.get("/api/v1/pods").refused(401, "Unauthorized", &["Unauthorized"]);
    }
    for scheme in ["Basic Ym9zczpib3Nz", "Bearer", "Bearer ", "bearer\tboss-token", "Token boss-token"] {
        let client = Client::new(&by_hand.plane.url, &by_hand.stranger());
        let answer = client.exchange("GET", "/api/v1/pods", &[("authorization", scheme)], "");
        assert!([401, 403].contains(&answer.code), "{scheme:?}: {} {}", answer.code, answer.text());
    }
}

/// GHOST-05: nobody in particular, and somebody without a role.
#[test]
fn anonymous_and_powerless_users_are_forbidden() {
    let Some(by_hand) = ByHand::start(EC_PKCS8) else { return };
    let anonymous = Client::new(&by_hand.plane.url, &by_hand.stranger());
    anonymous.get("/api/v1/pods").forbidden(&[
        "pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
    ]);
    for open in ["/version", "/healthz", "/livez", "/readyz"] {
        anonymous.get(open).is(200);
    }
    for closed in ["/metrics", "/api", "/apis/apps/v1", "/openapi/v3", "/"] {
        anonymous.get(closed).forbidden(&["User \"system:anonymous\" cannot get path"]);
    }
    let nobody = Client::new(&by_hand.plane.url, &by_hand.stranger().bearer("nobody-token"));
    assert_eq!(whoami(&nobody)["username"], "nobody");
    nobody.get(PODS).forbidden(&[
        "pods is forbidden: User \"nobody\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"",
    ]);
    nobody.get("/api/v1").is(200);
    nobody.get("/metrics").forbidden(&["User \"nobody\" cannot get path \"/metrics\""]);
}

/// GHOST-05: system:masters may do everything, by certificate and by token.
#[test]
fn masters_may_do_everything() {
    let Some(by_hand) = ByHand::start(EC_PKCS8) else { return };
    let certificate = by_hand.as_certificate(by_hand.authority.client("boss", "/CN=boss/O=system:masters"));
    let token = Client::new(&by_hand.plane.url, &by_hand.stranger().bearer("boss-token"));
    for (n, boss) in [certificate, token].into_iter().enumerate() {
        let who = whoami(&boss);
        assert_eq!(who["username"], "boss");
        assert!(who["groups"].as_array().unwrap().contains(&json!("system:masters")), "{who}");
        let name = format!("x{n}");
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        boss.post("/api/v1/namespaces/kube-system/secrets", &secret).is(201);
        boss.get("/api/v1/secrets").is(200);
        node(&boss, &name);
        boss.post(PODS, &pod_for_nobody(&name)).is(201);
        boss.post(&format!("{PODS}/{name}/binding"), &binding(&name, &name)).is(201);
        boss.get("/metrics").is(200);
        boss.get("/apis/rbac.authorization.k8s.io/v1/clusterroles").is(200);
        boss.delete(&format!("/api/v1/nodes/{name}")).is(200);
    }
}

/// GHOST-05: the kubeconfigs that the control plane writes are those identities.
#[test]
fn written_kubeconfigs_are_the_identities_they_name() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory"]);
    for (file, user) in
        [("scheduler", "system:kube-scheduler"), ("controller-manager", "system:kube-controller-manager")]
    {
        let client = plane.client(file);
        assert_eq!(whoami(&client)["username"], user);
        client.get("/api/v1/pods").is(200);
        client.post(PODS, &pod_for_nobody("x")).forbidden(&[&format!("User \"{user}\" cannot create")]);
    }
    let Some(kubectl) = Kubectl::new(dir.path(), plane.kubeconfig("scheduler")) else { return };
    kubectl.ok(&["auth", "whoami"], &["system:kube-scheduler"]);
    kubectl.ends(1, &["auth", "can-i", "create", "pods"], &["no"]);
    kubectl.ends(1, &["get", "secrets"], &["Forbidden", "User \"system:kube-scheduler\" cannot list"]);
}

/// GHOST-05: kubectl asks for subresources as well.
#[test]
fn kubectl_is_told_that_the_scheduler_may_bind() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory"]);
    let Some(kubectl) = Kubectl::new(dir.path(), plane.kubeconfig("scheduler")) else { return };
    kubectl.ok(&["auth", "can-i", "create", "pods", "--subresource=binding"], &["yes"]);
}
