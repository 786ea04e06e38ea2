//! KLET-08 and node authorisation: what a board's identity may read and write, and that it is no more.

use serde_json::{Value, json};

use crate::client::Client;
use crate::plane::{Plane, lease, node, pod_for_nobody};

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const EVENTS: &str = "/api/v1/namespaces/default/events";

/// Two boards with tokens, and one pod on each.
struct Boards {
    plane: Plane,
    a: Client,
    _dir: tempfile::TempDir,
}

impl Boards {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tokens = dir.path().join("tokens.csv");
        std::fs::write(&tokens, "token-a,system:node:a,,system:nodes\ntoken-b,system:node:b,,system:nodes\n")
            .unwrap();
        let flags = [
            "--store",
            "memory",
            "--controllers=*,-node-lifecycle",
            "--token-auth-file",
            tokens.to_str().unwrap(),
        ];
        let plane = Plane::tls(dir.path(), &flags);
        let a = plane.admin.with(&plane.admin.credentials().bearer("token-a"));
        Self { plane, a, _dir: dir }
    }

    /// Both nodes, by the administrator.
    fn with_nodes() -> Self {
        let boards = Self::start();
        node(&boards.plane.admin, "a");
        node(&boards.plane.admin, "b");
        boards
    }

    /// A pod on a node that names configuration in the parts of its spec given.
    #[track_caller]
    fn pod(&self, name: &str, node: &str, change: impl Fn(&mut Value)) -> Value {
        let mut pod = pod_for_nobody(name);
        pod["spec"]["nodeName"] = json!(node);
        change(&mut pod["spec"]);
        self.plane.admin.post(PODS, &pod).is(201)
    }

    #[track_caller]
    fn secret(&self, name: &str) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"k": "v"}});
        self.plane.admin.post(SECRETS, &secret).is(201);
    }

    #[track_caller]
    fn map(&self, name: &str) {
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}});
        self.plane.admin.post(MAPS, &map).is(201);
    }
}

/// A board reads the ConfigMaps and Secrets that its own pods name, wherever they name them, as long as they are there.
#[test]
fn a_board_reads_the_configuration_of_its_own_pods_only() {
    let boards = Boards::with_nodes();
    let a = &boards.a;
    let places: [(&str, Value); 6] = [
        (
            "volume",
            json!({"volumes": [{"name": "v", "secret": {"secretName": "S"}}, {"name": "w", "configMap": {"name": "M"}}]}),
        ),
        (
            "projected",
            json!({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "S"}}, {"configMap": {"name": "M"}}]}}]}),
        ),
        (
            "envfrom",
            json!({"containers": [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "S"}}, {"configMapRef": {"name": "M"}}]}]}),
        ),
        (
            "env",
            json!({"containers": [{"name": "c", "image": "i", "env": [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "S", "key": "k"}}},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "M", "key": "k"}}}]}]}),
        ),
        (
            "init",
            json!({"initContainers": [{"name": "i", "image": "i", "envFrom": [{"secretRef": {"name": "S"}}, {"configMapRef": {"name": "M"}}]}]}),
        ),
        (
            "second",
            json!({"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i", "envFrom": [{"secretRef": {"name": "S"}}, {"configMapRef": {"name": "M"}}]}]}),
        ),
    ];
    for (place, spec) in places {
        let (secret, map) = (format!("{place}-secret"), format!("{place}-map"));
        boards.secret(&secret);
        boards.map(&map);
        let paths = [format!("{SECRETS}/{secret}"), format!("{MAPS}/{map}")];
        let spec = spec
            .to_string()
            .replace("\"S\"", &format!("\"{secret}\""))
            .replace("\"M\"", &format!("\"{map}\""));
        let spec: Value = serde_json::from_str(&spec).unwrap();
        for path in &paths {
            a.get(path).forbidden(&["User \"system:node:a\" cannot get resource"]);
        }
        // Named by a pod of the other board, it is still none of this one's business.
        boards.pod(&format!("{place}-b"), "b", |pod| {
            pod.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone())
        });
        for path in &paths {
            a.get(path).forbidden(&["User \"system:node:a\" cannot get resource"]);
        }
        boards.pod(&format!("{place}-a"), "a", |pod| {
            pod.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone())
        });
        for path in &paths {
            let read = a.get(path).is(200);
            assert!(read["data"]["k"] == "v" || read["data"]["k"] == "dg==", "{place}: {read}");
            let (collection, name) = path.rsplit_once('/').unwrap();
            let own = format!("{collection}?fieldSelector=metadata.name%3D{name}");
            assert_eq!(a.get(&own).is(200)["items"].as_array().unwrap().len(), 1, "{own}");
            assert_eq!(a.watch(&own, 1).filter(|event| event["type"] == "ADDED").count(), 1, "{own}");
        }
        // Without the pod the right is gone.
        boards.plane.admin.delete(&format!("{PODS}/{place}-a?gracePeriodSeconds=0")).is(200);
        for path in &paths {
            a.get(path).forbidden(&["User \"system:node:a\" cannot get resource"]);
        }
    }
}

/// A pull secret is named as well; names count in the pod's namespace only; collections and writes are out.
#[test]
fn a_board_reads_no_collections_and_writes_no_configuration() {
    let boards = Boards::with_nodes();
    let (a, admin) = (&boards.a, &boards.plane.admin);
    boards.secret("pull");
    boards.map("map");
    let kube_system = "/api/v1/namespaces/kube-system/secrets";
    admin
        .post(kube_system, &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"}}))
        .is(201);
    boards.pod("p", "a", |spec| {
        spec["imagePullSecrets"] = json!([{"name": "pull"}]);
        spec["volumes"] = json!([{"name": "w", "configMap": {"name": "map"}}]);
    });
    a.get(&format!("{SECRETS}/pull")).is(200);
    a.get(&format!("{kube_system}/pull")).forbidden(&[]);
    for collection in [SECRETS, MAPS, "/api/v1/secrets", "/api/v1/configmaps"] {
        a.get(collection).forbidden(&["cannot list resource"]);
        let watch = a.get(&format!("{collection}?watch=true&timeoutSeconds=1"));
        watch.forbidden(&["cannot watch resource"]);
    }
    let two = format!("{SECRETS}?fieldSelector=metadata.name%21%3Dpull");
    a.get(&two).forbidden(&["cannot list resource"]);
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}, "data": {"k": "w"}});
    a.put(&format!("{MAPS}/map"), &map).forbidden(&["cannot update"]);
    a.merge(&format!("{SECRETS}/pull"), &json!({"data": {}})).forbidden(&["cannot patch"]);
    a.delete(&format!("{MAPS}/map")).forbidden(&["cannot delete"]);
    a.post(MAPS, &map).forbidden(&["cannot create"]);
    assert_eq!(admin.get(&format!("{MAPS}/map")).is(200)["data"]["k"], "v");
}

/// KLET-08: its own Node.
#[test]
fn a_board_writes_its_own_node_only() {
    let boards = Boards::start();
    let (a, admin) = (&boards.a, &boards.plane.admin);
    let named = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/arch": "riscv32imc", "rigor.dev/board": "host", "esp32.io/rev": "3"}}})
    };
    a.post("/api/v1/nodes", &named("b")).forbidden(&[]);
    a.post("/api/v1/nodes", &named("a")).is(201);
    node(admin, "b");
    let status = json!({"status": {"capacity": {"memory": "1Mi"}, "conditions": [{"type": "Ready", "status": "True"}]}});
    for send in [Client::merge, Client::strategic] {
        send(a, "/api/v1/nodes/a/status", &status).is(200);
        send(a, "/api/v1/nodes/b/status", &status).forbidden(&[]);
    }
    let mut own = a.get("/api/v1/nodes/a").is(200);
    own["status"]["capacity"]["memory"] = json!("2Mi");
    a.put("/api/v1/nodes/a/status", &own).is(200);
    let other = admin.get("/api/v1/nodes/b").is(200);
    a.put("/api/v1/nodes/b/status", &other).forbidden(&[]);
    a.put("/api/v1/nodes/b", &other).forbidden(&[]);
    a.merge("/api/v1/nodes/b", &json!({"metadata": {"labels": {"x": "y"}}})).forbidden(&[]);
    a.merge("/api/v1/nodes/a", &json!({"metadata": {"annotations": {"x": "y"}}})).is(200);
    a.delete("/api/v1/nodes/b").forbidden(&["cannot delete"]);
    a.delete("/api/v1/nodes/a").forbidden(&["cannot delete"]);
    assert_eq!(admin.get("/api/v1/nodes/b").is(200), other);
}

/// NodeRestriction: labels that steer others' pods to it, and taints, are not the board's to set.
#[test]
fn a_board_neither_relabels_itself_into_trust_nor_lifts_its_taints() {
    let boards = Boards::start();
    let (a, admin) = (&boards.a, &boards.plane.admin);
    let named = |key: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {key: "x"}}});
    for label in [
        "node-restriction.kubernetes.io/tenant",
        "node-role.kubernetes.io/master",
        "other.kubernetes.io/x",
        "x.k8s.io/y",
    ] {
        a.post("/api/v1/nodes", &named(label))
            .forbidden(&["is not allowed to set the following labels", label]);
    }
    node(admin, "a");
    let taints = json!({"spec": {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]}});
    let labels =
        json!({"metadata": {"labels": {"node-restriction.kubernetes.io/tenant": "red", "free": "1"}}});
    admin.merge("/api/v1/nodes/a", &taints).is(200);
    admin.merge("/api/v1/nodes/a", &labels).is(200);
    let label = |key: &str, value: Value| json!({"metadata": {"labels": {key: value}}});
    for (key, value) in [
        ("node-restriction.kubernetes.io/tenant", json!("blue")),
        ("node-restriction.kubernetes.io/tenant", Value::Null),
        ("node-restriction.kubernetes.io/other", json!("x")),
        ("x.node-restriction.kubernetes.io/other", json!("x")),
        ("node-role.kubernetes.io/control-plane", json!("")),
    ] {
        a.merge("/api/v1/nodes/a", &label(key, value)).forbidden(&["is not allowed to modify labels", key]);
    }
    a.merge("/api/v1/nodes/a", &label("free", json!("2"))).is(200);
    a.merge("/api/v1/nodes/a", &label("node.kubernetes.io/instance-type", json!("esp32c3"))).is(200);
    a.merge("/api/v1/nodes/a", &label("topology.kubernetes.io/zone", json!("bench"))).is(200);
    let lifted = json!({"spec": {"taints": []}});
    let word = ["is not allowed to modify taints"];
    a.merge("/api/v1/nodes/a", &lifted).forbidden(&word);
    a.merge("/api/v1/nodes/a", &json!({"spec": {"taints": null}})).forbidden(&word);
    let added = json!({"spec": {"taints": [{"key": "mine", "effect": "NoExecute"}]}});
    a.strategic("/api/v1/nodes/a", &added).forbidden(&word);
    // The status subresource is no way round: it takes neither.
    let status = "/api/v1/nodes/a/status";
    let blue = label("node-restriction.kubernetes.io/tenant", json!("blue"));
    a.merge(status, &blue)
        .forbidden(&["is not allowed to modify labels: node-restriction.kubernetes.io/tenant"]);
    a.strategic(status, &lifted).forbidden(&word);
    let mut own = a.get("/api/v1/nodes/a").is(200);
    a.put(status, &own).is(200);
    own["metadata"]["labels"]["node-restriction.kubernetes.io/tenant"] = json!("blue");
    a.put(status, &own).forbidden(&["is not allowed to modify labels"]);
    own["spec"]["taints"] = json!([]);
    a.put(status, &own).forbidden(&word);
    let read = admin.get("/api/v1/nodes/a").is(200);
    assert_eq!(read["spec"]["taints"], taints["spec"]["taints"]);
    assert_eq!(read["metadata"]["labels"]["node-restriction.kubernetes.io/tenant"], "red");
    assert_eq!(read["metadata"]["labels"]["free"], "2");
}

/// KLET-08: its own Lease.
#[test]
fn a_board_writes_its_own_lease_only() {
    let boards = Boards::start();
    let (a, admin) = (&boards.a, &boards.plane.admin);
    a.post(LEASES, &lease("b")).forbidden(&[]);
    let mut own = a.post(LEASES, &lease("a")).is(201);
    own["spec"]["renewTime"] = json!("2026-01-01T00:00:05.000000Z");
    a.put(&format!("{LEASES}/a"), &own).is(200);
    a.merge(&format!("{LEASES}/a"), &json!({"spec": {"leaseDurationSeconds": 15}})).is(200);
    a.get(&format!("{LEASES}/a")).is(200);
    let other = admin.post(LEASES, &lease("b")).is(201);
    a.put(&format!("{LEASES}/b"), &other).forbidden(&[]);
    a.merge(&format!("{LEASES}/b"), &json!({"spec": {"leaseDurationSeconds": 1}})).forbidden(&[]);
    a.delete(&format!("{LEASES}/b")).forbidden(&[]);
    let mut elsewhere = lease("a");
    elsewhere["metadata"]["namespace"] = json!("default");
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    a.post(path, &elsewhere).forbidden(&[]);
    let manager = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let mut leader = lease("a");
    leader["metadata"]["namespace"] = json!("kube-system");
    a.post(manager, &leader).forbidden(&[]);
    assert_eq!(admin.get(&format!("{LEASES}/b")).is(200), other);
}

/// KLET-08: the status of the pods bound to it, until they are moved elsewhere.
#[test]
fn a_board_writes_the_status_of_its_own_pods_only() {
    let boards = Boards::with_nodes();
    let (a, admin) = (&boards.a, &boards.plane.admin);
    boards.pod("mine", "a", |_| ());
    boards.pod("yours", "b", |_| ());
    admin.post(PODS, &pod_for_nobody("nobodys")).is(201);
    let running = json!({"status": {"phase": "Running", "podIP": "10.0.0.7"}});
    for send in [Client::merge, Client::strategic] {
        assert_eq!(send(a, &format!("{PODS}/mine/status"), &running).is(200)["status"]["phase"], "Running");
        for other in ["yours", "nobodys"] {
            send(a, &format!("{PODS}/{other}/status"), &running).forbidden(&[]);
        }
    }
    let mine = a.get(&format!("{PODS}/mine")).is(200);
    a.put(&format!("{PODS}/mine/status"), &mine).is(200);
    let yours = admin.get(&format!("{PODS}/yours")).is(200);
    a.put(&format!("{PODS}/yours/status"), &yours).forbidden(&[]);
    assert_eq!(yours["status"]["phase"], "Pending");

    // Everything else about pods is others' to write.
    a.merge(&format!("{PODS}/mine"), &json!({"metadata": {"labels": {"x": "y"}}}))
        .forbidden(&["cannot patch"]);
    let bind = crate::plane::binding("nobodys", "a");
    a.post(&format!("{PODS}/nobodys/binding"), &bind).forbidden(&["cannot create"]);
    let mut stolen = pod_for_nobody("stolen");
    stolen["spec"]["nodeName"] = json!("a");
    stolen["spec"]["volumes"] = json!([{"name": "v", "secret": {"secretName": "any"}}]);
    a.post(PODS, &stolen).forbidden(&[]);
    a.delete(&format!("{PODS}/yours")).forbidden(&[]);
    a.delete(&format!("{PODS}/nobodys")).forbidden(&[]);
    a.delete(PODS).forbidden(&["cannot deletecollection"]);
    // Its own pod, once someone deleted it and it has stopped.
    admin.delete(&format!("{PODS}/mine?gracePeriodSeconds=30")).is(200);
    a.delete(&format!("{PODS}/mine?gracePeriodSeconds=0")).is(200);
    admin.get(&format!("{PODS}/mine")).refused(404, "NotFound", &[]);

    // Moved elsewhere (same name, other board): the board has to drop its copy.
    boards.pod("mine", "b", |_| ());
    a.merge(&format!("{PODS}/mine/status"), &running).forbidden(&[]);
}

/// A board sees its pods and its node, creates events, and nothing more.
#[test]
fn a_board_lists_its_pods_and_creates_events() {
    let boards = Boards::with_nodes();
    let (a, admin) = (&boards.a, &boards.plane.admin);
    boards.pod("mine", "a", |_| ());
    boards.pod("yours", "b", |_| ());
    let own = "/api/v1/pods?fieldSelector=spec.nodeName%3Da";
    let names: Vec<Value> = a.get(own).is(200)["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pod| pod["metadata"]["name"].clone())
        .collect();
    assert_eq!(names, ["mine"]);
    assert_eq!(a.watch(own, 1).filter(|event| event["type"] == "ADDED").count(), 1);
    a.get("/api/v1/nodes/a").is(200);
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "mine.1", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "mine"},
        "reason": "Started", "message": "Started container c", "type": "Normal", "source": {"component": "kubelet", "host": "a"}});
    a.post(EVENTS, &event).is(201);
    a.strategic(&format!("{EVENTS}/mine.1"), &json!({"count": 2})).is(200);
    a.get(EVENTS).forbidden(&["cannot list resource \"events\""]);
    a.delete(&format!("{EVENTS}/mine.1")).forbidden(&["cannot delete resource \"events\""]);
    assert_eq!(admin.get(&format!("{EVENTS}/mine.1")).is(200)["count"], 2);
    for path in [
        "/apis/apps/v1/deployments",
        "/apis/batch/v1/jobs",
        "/api/v1/serviceaccounts",
        "/api/v1/namespaces",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/metrics",
    ] {
        a.get(path).forbidden(&["User \"system:node:a\" cannot"]);
    }
    let token = "/api/v1/namespaces/default/serviceaccounts/default/token";
    // A service account that none of its pods runs as, and no pod named.
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let code = a.post(token, &request).code;
    assert!([403, 405].contains(&code), "{code}");
}

/// A member of system:nodes without a node's name has no node's rights.
#[test]
fn a_nameless_member_of_the_nodes_group_has_no_rights() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, "odd,somebody,,system:nodes\nalmost,system:node:a,,\n").unwrap();
    let flags = ["--store", "memory", "--token-auth-file", tokens.to_str().unwrap()];
    let plane = Plane::tls(dir.path(), &flags);
    node(&plane.admin, "a");
    for token in ["odd", "almost"] {
        let client = plane.admin.with(&plane.admin.credentials().bearer(token));
        let status = json!({"status": {"capacity": {"memory": "1Mi"}}});
        client.merge("/api/v1/nodes/a/status", &status).forbidden(&["cannot patch"]);
        client.get("/api/v1/pods?fieldSelector=spec.nodeName%3Da").forbidden(&["cannot list"]);
    }
}
