//! GHOST-07: the requests that an unmodified kube-scheduler 1.32 makes, replayed in its order with its bodies, against
//! the control plane with the built-in scheduler off. (Its binary is not run here: requests were replayed.)

use k8s_pb::api::core::v1::{Binding, ObjectReference};
use k8s_pb::api::events::v1::Event;
use k8s_pb::apimachinery::pkg::apis::meta::v1::Status;
use serde_json::{Value, json};

use crate::client::Client;
use crate::kubectl::Kubectl;
use crate::plane::{Plane, node, pod};
use crate::protobuf::{self, ACCEPT, TYPE};

const PODS: &str = "/api/v1/namespaces/default/pods";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const UNFINISHED: &str = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";
/// What it lists, then watches.
const LISTED: [&str; 15] = [
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/api/v1/pods",
    "/api/v1/replicationcontrollers",
    "/api/v1/services",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/volumeattachments",
];

fn selector(path: &str) -> String {
    if path == "/api/v1/pods" { format!("{UNFINISHED}&") } else { String::new() }
}

/// Lists with the scheduler's headers; JSON is one of the answers it takes. The list's items and version.
#[track_caller]
fn list(scheduler: &Client, path: &str) -> (Vec<Value>, String) {
    let query = format!("{path}?{}limit=500&resourceVersion=0", selector(path));
    let list = scheduler.exchange("GET", &query, &[("accept", "application/json")], "").is(200);
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_else(|| panic!("{path}: {list}"));
    let items = list["items"].as_array().cloned().unwrap_or_default();
    (items, version.to_owned())
}

/// The event that kube-scheduler's recorder posts.
fn event(name: &str, pod: &Value, kind: &str, reason: &str, action: &str, note: &str) -> Event {
    Event {
        metadata: Some(protobuf::meta("default", name)),
        event_time: Some(protobuf::micro_time(1_764_417_600, 123_456_000)),
        reporting_controller: Some("default-scheduler".to_owned()),
        reporting_instance: Some("default-scheduler-host".to_owned()),
        action: Some(action.to_owned()),
        reason: Some(reason.to_owned()),
        regarding: Some(ObjectReference {
            kind: Some("Pod".to_owned()),
            namespace: Some("default".to_owned()),
            name: pod["metadata"]["name"].as_str().map(str::to_owned),
            uid: pod["metadata"]["uid"].as_str().map(str::to_owned),
            api_version: Some("v1".to_owned()),
            resource_version: pod["metadata"]["resourceVersion"].as_str().map(str::to_owned),
            field_path: Some(String::new()),
        }),
        note: Some(note.to_owned()),
        r#type: Some(kind.to_owned()),
        ..Event::default()
    }
}

#[track_caller]
fn post_event(scheduler: &Client, event: &Event) -> Value {
    let body = protobuf::body("events.k8s.io/v1", "Event", event);
    // The recorder reads JSON here, so that the answer can be looked at.
    let headers = [("content-type", TYPE), ("accept", "application/json")];
    scheduler.exchange("POST", EVENTS, &headers, body).is(201)
}

/// Binds as kube-scheduler does: a protobuf body, a protobuf or JSON answer.
#[track_caller]
fn bind(scheduler: &Client, pod: &Value, node: &str) {
    let name = pod["metadata"]["name"].as_str().unwrap();
    let mut metadata = protobuf::meta("default", name);
    metadata.uid = pod["metadata"]["uid"].as_str().map(str::to_owned);
    let empty = || Some(String::new());
    let target = ObjectReference {
        kind: Some("Node".to_owned()),
        namespace: empty(),
        name: Some(node.to_owned()),
        uid: empty(),
        api_version: empty(),
        resource_version: empty(),
        field_path: empty(),
    };
    let body = protobuf::body("v1", "Binding", &Binding { metadata: Some(metadata), target: Some(target) });
    let path = format!("{PODS}/{name}/binding");
    let answer = scheduler.exchange("POST", &path, &[("content-type", TYPE), ("accept", ACCEPT)], body);
    assert_eq!(answer.code, 201, "{}", answer.text());
    let answered = answer.headers["content-type"].to_str().unwrap();
    if answered == TYPE {
        let (kind, status) = protobuf::read::<Status>(&answer.body);
        assert_eq!((kind.as_str(), status.status.as_deref()), ("Status", Some("Success")));
    } else {
        assert_eq!(answered, "application/json");
        assert_eq!(answer.is(201)["status"], "Success");
    }
}

/// GHOST-07
#[test]
fn the_requests_of_kube_scheduler_bind_pods() {
    println!("kube-scheduler: its recorded requests are replayed; its binary is not run");
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory", "--controllers=*,-scheduler"]);
    let scheduler = plane.client("scheduler");
    node(&plane.admin, "hollow-0");
    for name in ["web-a", "web-b"] {
        plane.admin.post(PODS, &pod(name)).is(201);
    }

    // Its caches: a list of each kind, then a watch from the list's version.
    let mut before = Vec::new();
    let mut watches = Vec::new();
    for path in LISTED {
        let (items, version) = list(&scheduler, path);
        let query = format!(
            "{path}?allowWatchBookmarks=true&{}resourceVersion={version}&timeout=9m27s&timeoutSeconds=567&watch=true",
            selector(path)
        );
        let watch = scheduler.watch_as(&query, &[("accept", "application/json")]);
        if path == "/api/v1/pods" {
            before = items;
            watches.insert(0, watch);
        } else {
            watches.push(watch);
        }
    }
    scheduler.exchange("GET", "/apis/events.k8s.io/v1", &[("accept", "application/json, */*")], "").is(200);
    assert_eq!(before.iter().filter(|pod| pod["spec"].get("nodeName").is_none()).count(), 2, "{before:?}");

    // A pod that comes later is seen by the watch.
    plane.admin.post(PODS, &pod("late")).is(201);
    plane.admin.post(PODS, &pod("big")).is(201);
    let mut seen = |name: &str, wanted: &dyn Fn(&Value) -> bool| {
        let found =
            watches[0].find(|event| event["object"]["metadata"]["name"] == name && wanted(&event["object"]));
        found.unwrap_or_else(|| panic!("the watch ended before {name}"))
    };
    let late = seen("late", &|pod| pod["spec"].get("nodeName").is_none())["object"].clone();
    let big = seen("big", &|_| true)["object"].clone();

    for pod in before.iter().chain([&late]) {
        bind(&scheduler, pod, "hollow-0");
        let name = pod["metadata"]["name"].as_str().unwrap();
        let note = format!("Successfully assigned default/{name} to hollow-0");
        post_event(
            &scheduler,
            &event(&format!("{name}.18ec825"), pod, "Normal", "Scheduled", "Binding", &note),
        );
        let change = seen(name, &|pod| pod["spec"]["nodeName"] == "hollow-0");
        assert_eq!(change["type"], "MODIFIED");
    }

    // One that does not fit: its condition by a strategic patch, its event, the event's next series.
    let message = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    let status = json!({"status": {"$setElementOrder/conditions": [{"type": "PodScheduled"}], "conditions": [
        {"lastProbeTime": null, "lastTransitionTime": "2026-11-29T12:00:49Z", "message": message,
         "reason": "Unschedulable", "status": "False", "type": "PodScheduled"}]}});
    let accept = [("content-type", "application/strategic-merge-patch+json"), ("accept", ACCEPT)];
    let path = format!("{PODS}/big/status");
    assert_eq!(scheduler.exchange("PATCH", &path, &accept, status.to_string()).code, 200);
    let told = event("big.18ec825", &big, "Warning", "FailedScheduling", "Scheduling", message);
    post_event(&scheduler, &told);
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-11-29T12:01:49.000000Z"}});
    let path = format!("{EVENTS}/big.18ec825");
    assert_eq!(scheduler.exchange("PATCH", &path, &accept, series.to_string()).code, 200);
    seen("big", &|pod| pod["status"]["conditions"][0]["reason"] == "Unschedulable");

    check_outcome(&plane.admin, message);
    let Some(kubectl) = Kubectl::new(dir.path(), plane.kubeconfig("admin")) else { return };
    kubectl
        .ok(&["describe", "pod", "late"], &["Successfully assigned default/late to hollow-0", "Scheduled"]);
    kubectl.ok(&["describe", "pod", "big"], &["FailedScheduling", "1 Insufficient cpu", "default-scheduler"]);
    kubectl.ok(&["get", "pods", "-o", "wide"], &["hollow-0"]);
}

/// What other clients see of it, in both groups of events.
fn check_outcome(admin: &Client, message: &str) {
    for name in ["web-a", "web-b", "late"] {
        let pod = admin.get(&format!("{PODS}/{name}")).is(200);
        assert_eq!(pod["spec"]["nodeName"], "hollow-0");
        assert_eq!(pod["status"]["conditions"][0]["type"], "PodScheduled");
        assert_eq!(pod["status"]["conditions"][0]["status"], "True");
    }
    let pod = admin.get(&format!("{PODS}/big")).is(200);
    assert_eq!(pod["spec"].get("nodeName"), None);
    assert_eq!(pod["status"]["conditions"][0]["message"], message);

    let new = admin.get(&format!("{EVENTS}/big.18ec825")).is(200);
    assert_eq!(new["apiVersion"], "events.k8s.io/v1");
    assert_eq!(new["note"], message);
    assert_eq!(new["regarding"]["name"], "big");
    assert_eq!(new["series"]["count"], 2);
    assert_eq!(new["eventTime"], "2025-11-29T12:00:00.123456Z");
    let old = admin.get("/api/v1/namespaces/default/events/big.18ec825").is(200);
    assert_eq!(old["apiVersion"], "v1");
    assert_eq!(old["message"], message);
    assert_eq!(old["involvedObject"], new["regarding"]);
    assert_eq!(old["reportingComponent"], "default-scheduler");
    assert_eq!(old["reportingInstance"], "default-scheduler-host");
    assert_eq!(old["metadata"]["uid"], new["metadata"]["uid"]);
    let selected = "/api/v1/events?fieldSelector=reason%3DScheduled%2Ctype%21%3DWarning";
    assert_eq!(admin.get(selected).is(200)["items"].as_array().unwrap().len(), 3);
}
