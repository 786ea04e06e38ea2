//! The requests that kube-controller-manager 1.32 makes: its caches by streaming lists, its writes in protobuf. With the
//! built-in controllers off, so that they are its own. (Its binary is not run here: requests were replayed.)

use std::collections::BTreeMap;

use k8s_pb::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStatus};
use k8s_pb::api::core::v1::{
    Container, EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Event, EventSource, ObjectReference,
    Pod, PodSpec,
};
use k8s_pb::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde_json::{Value, json};

use crate::client::Client;
use crate::plane::{Plane, node};
use crate::protobuf::{self, ACCEPT, TYPE};

/// What it watches by streaming lists.
const WATCHED: [&str; 45] = [
    "/api/v1/configmaps",
    "/api/v1/endpoints",
    "/api/v1/limitranges",
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/api/v1/pods",
    "/api/v1/podtemplates",
    "/api/v1/replicationcontrollers",
    "/api/v1/resourcequotas",
    "/api/v1/secrets",
    "/api/v1/serviceaccounts",
    "/api/v1/services",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/apis/apps/v1/controllerrevisions",
    "/apis/apps/v1/daemonsets",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/autoscaling/v2/horizontalpodautoscalers",
    "/apis/batch/v1/cronjobs",
    "/apis/batch/v1/jobs",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/networking.k8s.io/v1/ingressclasses",
    "/apis/networking.k8s.io/v1/ingresses",
    "/apis/networking.k8s.io/v1/networkpolicies",
    "/apis/node.k8s.io/v1/runtimeclasses",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csinodes",
];

pub fn start(controllers: &str) -> (tempfile::TempDir, Plane) {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory", &format!("--controllers={controllers}")]);
    (dir, plane)
}

/// Each kind's streaming list ends with the bookmark that says so, of the right kind.
#[test]
fn every_kind_that_the_controller_manager_watches_streams() {
    let (_dir, plane) = start("*");
    let manager = plane.client("controller-manager");
    let more = ["csistoragecapacities", "storageclasses", "volumeattachments"];
    let more = more.map(|resource| format!("/apis/storage.k8s.io/v1/{resource}"));
    for path in WATCHED.into_iter().chain(more.iter().map(String::as_str)) {
        let query = format!(
            "{path}?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeout=5m&timeoutSeconds=300&watch=true"
        );
        let mut watch = manager.watch_as(&query, &[("accept", "application/json")]);
        let end = watch.find(|event| event["type"] != "ADDED").unwrap_or_else(|| panic!("{path}: ended"));
        assert_eq!(end["type"], "BOOKMARK", "{path}: {end}");
        let object = &end["object"];
        assert_eq!(object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true", "{path}: {end}");
        assert!(object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > 0, "{end}");
        assert!(object["kind"].is_string() && object["apiVersion"].is_string(), "{path}: {end}");
    }
}

#[track_caller]
pub fn write(client: &Client, method: &str, path: &str, body: Vec<u8>, code: u16) -> Value {
    client.exchange(method, path, &[("content-type", TYPE), ("accept", "application/json")], body).is(code)
}

/// Metadata of an object that it read: JSON answers are fine for it.
pub fn known(object: &Value) -> ObjectMeta {
    let text = |key: &str| object["metadata"][key].as_str().map(str::to_owned);
    ObjectMeta {
        name: text("name"),
        namespace: text("namespace"),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        ..protobuf::meta("", "")
    }
}

/// Pods, endpoints and events written in protobuf are what a reader of JSON sees. (The admin writes: the roles of the
/// single controllers are service accounts' in Kubernetes.)
#[test]
fn protobuf_bodies_of_pods_endpoints_and_events_are_stored_as_objects() {
    let (_dir, plane) = start("*,-endpoints,-scheduler,-garbage");
    let admin = &plane.admin;
    let mut metadata = protobuf::meta("default", "");
    metadata.generate_name = Some("web-758d58495-".to_owned());
    metadata.labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    metadata.owner_references = vec![OwnerReference {
        api_version: Some("apps/v1".to_owned()),
        kind: Some("ReplicaSet".to_owned()),
        name: Some("web-758d58495".to_owned()),
        uid: Some("40c9d8f4-80df-4e08-a3c8-de3638646f05".to_owned()),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }];
    let container = Container {
        name: Some("c".to_owned()),
        image: Some("rigor.dev/pause".to_owned()),
        args: vec!["pause".to_owned()],
        ..Container::default()
    };
    let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
    let pod = Pod { metadata: Some(metadata), spec: Some(spec), status: None };
    let pods = "/api/v1/namespaces/default/pods";
    let made = write(admin, "POST", pods, protobuf::body("v1", "Pod", &pod), 201);
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-758d58495-") && name.len() > 14, "{made}");
    assert_eq!(made["spec"]["containers"][0]["args"], json!(["pause"]));
    assert_eq!(made["spec"]["restartPolicy"], "Always");
    assert_eq!(made["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(admin.get(&format!("{pods}/{name}")).is(200), made);

    let port = EndpointPort { port: Some(80), protocol: Some("TCP".to_owned()), ..EndpointPort::default() };
    let address = EndpointAddress { ip: Some("10.0.0.7".to_owned()), ..EndpointAddress::default() };
    let subset = EndpointSubset { addresses: vec![address], ports: vec![port], ..EndpointSubset::default() };
    let mut endpoints = Endpoints { metadata: Some(protobuf::meta("default", "web")), subsets: vec![subset] };
    let path = "/api/v1/namespaces/default/endpoints";
    let made = write(admin, "POST", path, protobuf::body("v1", "Endpoints", &endpoints), 201);
    assert_eq!(made["subsets"][0]["addresses"][0]["ip"], "10.0.0.7");
    endpoints.metadata = Some(known(&made));
    endpoints.subsets[0].addresses[0].ip = Some("10.0.0.8".to_owned());
    let body = protobuf::body("v1", "Endpoints", &endpoints);
    let put = write(admin, "PUT", &format!("{path}/web"), body.clone(), 200);
    assert_eq!(put["subsets"][0]["addresses"][0]["ip"], "10.0.0.8");
    // The version that it read is a precondition in protobuf as well.
    write(admin, "PUT", &format!("{path}/web"), body, 409);

    let event = Event {
        metadata: Some(protobuf::meta("default", "web.1")),
        involved_object: Some(ObjectReference {
            kind: Some("ReplicaSet".to_owned()),
            namespace: Some("default".to_owned()),
            name: Some("web-758d58495".to_owned()),
            ..ObjectReference::default()
        }),
        reason: Some("SuccessfulCreate".to_owned()),
        message: Some("Created pod".to_owned()),
        source: Some(EventSource {
            component: Some("replicaset-controller".to_owned()),
            host: Some(String::new()),
        }),
        first_timestamp: Some(Time { seconds: Some(1_764_417_600), nanos: Some(0) }),
        last_timestamp: Some(Time { seconds: Some(1_764_417_600), nanos: Some(0) }),
        count: Some(1),
        r#type: Some("Normal".to_owned()),
        ..Event::default()
    };
    let path = "/api/v1/namespaces/default/events";
    let made = write(admin, "POST", path, protobuf::body("v1", "Event", &event), 201);
    assert_eq!(made["firstTimestamp"], "2025-11-29T12:00:00Z");
    assert_eq!(made["eventTime"], Value::Null);
    assert_eq!(made["count"], 1);
}

/// The status of a Deployment, and the taint of a node by a strategic patch.
#[test]
fn status_in_protobuf_and_taints_by_patch() {
    let (_dir, plane) = start("*,-deployment,-node-lifecycle");
    let admin = &plane.admin;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "rigor.dev/pause"}]}}}});
    let made = admin.post(path, &web).is(201);
    let status = DeploymentStatus {
        observed_generation: Some(1),
        replicas: Some(4),
        ready_replicas: Some(0),
        ..DeploymentStatus::default()
    };
    let spec = DeploymentSpec { replicas: Some(9), ..DeploymentSpec::default() };
    let deployment = Deployment { metadata: Some(known(&made)), spec: Some(spec), status: Some(status) };
    let body = protobuf::body("apps/v1", "Deployment", &deployment);
    let put = write(admin, "PUT", &format!("{path}/web/status"), body, 200);
    assert_eq!(put["status"], json!({"observedGeneration": 1, "replicas": 4}), "{put}");
    assert_eq!(put["spec"]["replicas"], 4, "the spec of a status write is not taken");
    assert_eq!(put["metadata"]["generation"], 1);

    node(admin, "hollow-1");
    let manager = plane.client("controller-manager");
    let taint = json!({"spec": {"taints": [{"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready", "timeAdded": "2026-11-29T12:00:49Z"}]}});
    let headers = [("content-type", "application/strategic-merge-patch+json"), ("accept", ACCEPT)];
    assert_eq!(admin.exchange("PATCH", "/api/v1/nodes/hollow-1", &headers, taint.to_string()).code, 200);
    let read = admin.get("/api/v1/nodes/hollow-1").is(200);
    assert_eq!(read["spec"]["taints"][0]["key"], "node.kubernetes.io/not-ready");
    // It asks for what may be missing.
    let absent =
        "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking";
    assert!([200, 404].contains(&manager.get(absent).code));
}
