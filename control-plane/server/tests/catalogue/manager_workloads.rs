//! GHOST-07's other half: what the single controllers of kube-controller-manager 1.32 write for a workload, replayed in
//! their order and their media types with the built-in controllers off. (Its binary is not run here.)

use std::collections::BTreeMap;

use k8s_pb::api::apps::v1::{
    ControllerRevision, DaemonSet, DaemonSetStatus, Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec,
    ReplicaSetStatus,
};
use k8s_pb::api::batch::v1::{Job, JobCondition, JobStatus, UncountedTerminatedPods};
use k8s_pb::api::core::v1::{Container, Namespace, ObjectReference, PodSpec, PodTemplateSpec};
use k8s_pb::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_pb::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference, Time};
use k8s_pb::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::manager_requests::{known, start, write};
use crate::plane::{node, pod_for_nobody};
use crate::protobuf::{self, ACCEPT};

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// What the garbage collector's metadata client takes.
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn owner(object: &Value, api_version: &str, kind: &str) -> OwnerReference {
    OwnerReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(kind.to_owned()),
        name: text(&object["metadata"]["name"]),
        uid: text(&object["metadata"]["uid"]),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn template() -> PodTemplateSpec {
    let container = Container {
        name: Some("c".to_owned()),
        image: Some("rigor.dev/pause".to_owned()),
        ..Container::default()
    };
    let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    PodTemplateSpec {
        metadata: Some(ObjectMeta { labels, ..protobuf::meta("", "") }),
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
    }
}

/// A pod with a controller, as the administrator makes it.
fn owned(name: &str, owner: &Value, api_version: &str, kind: &str) -> Value {
    let mut pod = pod_for_nobody(name);
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": api_version, "kind": kind, "controller": true,
        "blockOwnerDeletion": true, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]);
    pod
}

/// A DELETE as client-go sends it: options in a JSON body.
#[track_caller]
fn delete(client: &Client, path: &str, uid: &Value, propagation: &str) -> Answer {
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid},
        "propagationPolicy": propagation});
    let headers = [("content-type", "application/json"), ("accept", ACCEPT)];
    client.exchange("DELETE", path, &headers, options.to_string())
}

/// Before anything else: health, discovery, a node by a version of its cache. (The last by a single controller, whose
/// account may; its common identity may not.)
#[test]
fn what_the_controller_manager_asks_first_is_answered() {
    let (_dir, plane) = start("*");
    node(&plane.admin, "hollow-1");
    let manager = plane.client("controller-manager");
    assert_eq!(manager.get("/healthz").is(200), Value::Null);
    let discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
    for path in ["/api", "/apis"] {
        let all = manager.exchange("GET", path, &[("accept", discovery)], "").is(200);
        assert_eq!(all["kind"], "APIGroupDiscoveryList", "{path}: {all}");
    }
    let read =
        plane.admin.exchange("GET", "/api/v1/nodes/hollow-1?resourceVersion=0", &[("accept", ACCEPT)], "");
    assert_eq!(read.code, 200, "{}", read.text());
}

/// The deployment and the replicaset controller: a ReplicaSet, its pods, two statuses; of two writers of one version one
/// gets 409; surplus is deleted.
#[test]
fn a_deployment_as_the_controller_manager_runs_it() {
    let (_dir, plane) = start("*,-deployment,-scheduler,-garbage");
    let admin = &plane.admin;
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "rigor.dev/pause"}]}}}});
    let web = admin.post(DEPLOYMENTS, &web).is(201);

    let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    let mut metadata = protobuf::meta("default", "web-758d58495");
    metadata.labels.clone_from(&labels);
    metadata.owner_references = vec![owner(&web, "apps/v1", "Deployment")];
    let selector = LabelSelector { match_labels: labels, ..LabelSelector::default() };
    let spec = ReplicaSetSpec {
        replicas: Some(2),
        selector: Some(selector),
        template: Some(template()),
        ..ReplicaSetSpec::default()
    };
    let set = ReplicaSet { metadata: Some(metadata), spec: Some(spec), status: None };
    let set = write(admin, "POST", SETS, protobuf::body("apps/v1", "ReplicaSet", &set), 201);
    assert_eq!(set["spec"]["template"]["spec"]["containers"][0]["image"], "rigor.dev/pause");
    assert_eq!(set["metadata"]["ownerReferences"][0]["uid"], web["metadata"]["uid"]);
    assert_eq!(set["metadata"]["generation"], 1);
    let read = admin.exchange("GET", &format!("{SETS}/web-758d58495"), &[("accept", ACCEPT)], "");
    assert_eq!(read.code, 200);

    for name in ["web-758d58495-a", "web-758d58495-b"] {
        admin.post(PODS, &owned(name, &set, "apps/v1", "ReplicaSet")).is(201);
    }
    let status = ReplicaSetStatus {
        replicas: Some(2),
        fully_labeled_replicas: Some(2),
        observed_generation: Some(1),
        ..ReplicaSetStatus::default()
    };
    let body = ReplicaSet { metadata: Some(known(&set)), spec: None, status: Some(status) };
    let body = protobuf::body("apps/v1", "ReplicaSet", &body);
    let path = format!("{SETS}/web-758d58495/status");
    let put = write(admin, "PUT", &path, body.clone(), 200);
    assert_eq!(put["status"]["replicas"], 2);
    assert_eq!(put["spec"], set["spec"], "the spec of a status write is not taken");
    write(admin, "PUT", &path, body, 409);

    let status = |ready: i32| DeploymentStatus {
        observed_generation: Some(1),
        replicas: Some(2),
        ready_replicas: Some(ready),
        ..DeploymentStatus::default()
    };
    let put = |version: &Value, ready: i32, code: u16| {
        let deployment =
            Deployment { metadata: Some(known(version)), spec: None, status: Some(status(ready)) };
        let body = protobuf::body("apps/v1", "Deployment", &deployment);
        write(admin, "PUT", &format!("{DEPLOYMENTS}/web/status"), body, code)
    };
    let second = put(&web, 1, 200);
    let refused = put(&web, 2, 409);
    assert_eq!(refused["reason"], "Conflict", "{refused}");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("\"web\": the object has been modified"), "{message}");
    assert_eq!(admin.get(&format!("{DEPLOYMENTS}/web")).is(200)["status"]["readyReplicas"], 1);
    put(&second, 2, 200);

    // Scaled down: the pod by its uid, and only that one.
    let pod = admin.get(&format!("{PODS}/web-758d58495-b")).is(200);
    let path = format!("{PODS}/web-758d58495-b");
    let refused = delete(admin, &path, &json!("00000000-0000-0000-0000-000000000000"), "Background");
    assert_eq!(refused.code, 409, "{}", refused.text());
    assert_eq!(admin.get(&path).is(200), pod);
    assert_eq!(delete(admin, &path, &pod["metadata"]["uid"], "Background").code, 200);
    admin.get(&path).refused(404, "NotFound", &[]);
    // The Deployment went: so does its ReplicaSet, and its pods after it.
    let answer = delete(admin, &format!("{SETS}/web-758d58495"), &set["metadata"]["uid"], "Background");
    assert_eq!(answer.code, 200, "{}", answer.text());
    admin.get(&format!("{SETS}/web-758d58495")).refused(404, "NotFound", &[]);
}

/// The garbage collector: metadata alone, deletion by uid, an owner taken out by a patch.
#[test]
fn garbage_as_the_controller_manager_collects_it() {
    let (_dir, plane) = start("*,-deployment,-scheduler,-garbage");
    let admin = &plane.admin;
    let gone = json!({"metadata": {"name": "gone", "uid": "40c9d8f4-80df-4e08-a3c8-de3638646f05"}});
    let pod = admin.post(PODS, &owned("orphan", &gone, "apps/v1", "ReplicaSet")).is(201);
    let path = format!("{PODS}/orphan");
    let read = admin.exchange("GET", &path, &[("accept", METADATA)], "");
    assert_eq!(read.code, 200, "{}", read.text());
    let answered = read.headers["content-type"].to_str().unwrap();
    assert!(answered.contains("as=PartialObjectMetadata") || answered == "application/json", "{answered}");
    let json_alone = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let partial = admin.exchange("GET", &path, &[("accept", json_alone)], "").is(200);
    assert_eq!(partial["kind"], "PartialObjectMetadata", "{partial}");
    assert_eq!(partial["metadata"], pod["metadata"]);
    assert_eq!(partial.get("spec"), None);
    // The owner that is not there.
    admin.get(&format!("{SETS}/gone")).refused(404, "NotFound", &["replicasets.apps \"gone\" not found"]);

    // One of two owners is gone: its reference is taken out, the other stays.
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stays"}});
    let stays = admin.post("/api/v1/namespaces/default/configmaps", &map).is(201);
    let mut both = owned("both", &gone, "apps/v1", "ReplicaSet");
    let reference =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "stays", "uid": stays["metadata"]["uid"]});
    both["metadata"]["ownerReferences"].as_array_mut().unwrap().push(reference.clone());
    let both = admin.post(PODS, &both).is(201);
    let patch = json!({"metadata": {"uid": both["metadata"]["uid"],
        "ownerReferences": [{"$patch": "delete", "uid": gone["metadata"]["uid"]}]}});
    let patched = admin.send("PATCH", &format!("{PODS}/both"), STRATEGIC, patch.to_string()).is(200);
    assert_eq!(patched["metadata"]["ownerReferences"], json!([reference]));
    // A patch that names another uid is for an object of before.
    let mut stale = patch;
    stale["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    let refused = admin.send("PATCH", &format!("{PODS}/both"), STRATEGIC, stale.to_string());
    assert!([409, 422].contains(&refused.code), "{}", refused.text());

    let answer = delete(admin, &path, &pod["metadata"]["uid"], "Background");
    assert_eq!(answer.code, 200, "{}", answer.text());
    admin.get(&path).refused(404, "NotFound", &[]);
}

/// The job controller: a finalizer that is taken out of a pod, uncounted pods, the conditions.
#[test]
fn a_job_as_the_controller_manager_runs_it() {
    let (_dir, plane) = start("*,-job,-scheduler,-garbage");
    let admin = &plane.admin;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "rigor.dev/pause"}]}}}});
    let job = admin.post(jobs, &job).is(201);
    let mut pod = owned("j-x7k2f", &job, "batch/v1", "Job");
    pod["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]);
    let pod = admin.post(PODS, &pod).is(201);

    let time = Some(Time { seconds: Some(1_764_417_600), nanos: Some(0) });
    let put = |version: &Value, status: JobStatus| {
        let job = Job { metadata: Some(known(version)), spec: None, status: Some(status) };
        write(admin, "PUT", &format!("{jobs}/j/status"), protobuf::body("batch/v1", "Job", &job), 200)
    };
    let started = JobStatus {
        start_time: time,
        active: Some(1),
        ready: Some(0),
        terminating: Some(0),
        uncounted_terminated_pods: Some(UncountedTerminatedPods::default()),
        ..JobStatus::default()
    };
    let first = put(&job, started.clone());
    let expected = json!({"active": 1, "ready": 0, "startTime": "2025-11-29T12:00:00Z", "terminating": 0,
        "uncountedTerminatedPods": {}});
    assert_eq!(first["status"], expected);

    let succeeded = json!({"status": {"phase": "Succeeded"}});
    admin.merge(&format!("{PODS}/j-x7k2f/status"), &succeeded).is(200);
    let uid = text(&pod["metadata"]["uid"]).unwrap();
    let uncounted = UncountedTerminatedPods { succeeded: vec![uid.clone()], failed: Vec::new() };
    let second = put(
        &first,
        JobStatus { active: Some(0), uncounted_terminated_pods: Some(uncounted), ..started.clone() },
    );
    assert_eq!(second["status"]["uncountedTerminatedPods"], json!({"succeeded": [uid]}));
    let patch =
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["batch.kubernetes.io/job-tracking"]}});
    let patched = admin.send("PATCH", &format!("{PODS}/j-x7k2f"), STRATEGIC, patch.to_string()).is(200);
    assert_eq!(patched["metadata"].get("finalizers"), None, "{patched}");

    let condition = |kind: &str| JobCondition {
        r#type: Some(kind.to_owned()),
        status: Some("True".to_owned()),
        last_probe_time: time,
        last_transition_time: time,
        reason: Some("CompletionsReached".to_owned()),
        message: Some("Reached expected number of succeeded pods".to_owned()),
    };
    let done = put(
        &second,
        JobStatus {
            active: Some(0),
            succeeded: Some(1),
            completion_time: time,
            conditions: vec![condition("SuccessCriteriaMet"), condition("Complete")],
            ..started.clone()
        },
    );
    assert_eq!(done["status"]["succeeded"], 1);
    assert_eq!(done["status"]["completionTime"], "2025-11-29T12:00:00Z");
    assert_eq!(done["status"]["conditions"][1]["type"], "Complete");
}

/// The endpointslice controller, with the built-in computation off.
#[test]
fn slices_as_the_controller_manager_writes_them() {
    let (_dir, plane) = start("*,-endpoints,-scheduler,-garbage");
    let admin = &plane.admin;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]}});
    let service = admin.post("/api/v1/namespaces/default/services", &service).is(201);
    let mut metadata = protobuf::meta("default", "");
    metadata.generate_name = Some("web-".to_owned());
    metadata.labels = BTreeMap::from([("kubernetes.io/service-name".to_owned(), "web".to_owned())]);
    metadata.owner_references = vec![owner(&service, "v1", "Service")];
    let endpoint = |ready: bool| Endpoint {
        addresses: vec!["10.0.0.7".to_owned()],
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(ready),
            terminating: Some(false),
        }),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".to_owned()),
            namespace: Some("default".to_owned()),
            name: Some("web-a".to_owned()),
            ..ObjectReference::default()
        }),
        node_name: Some("hollow-1".to_owned()),
        ..Endpoint::default()
    };
    let port = EndpointPort {
        name: Some("http".to_owned()),
        protocol: Some("TCP".to_owned()),
        port: Some(80),
        ..EndpointPort::default()
    };
    let mut slice = EndpointSlice {
        metadata: Some(metadata),
        address_type: Some("IPv4".to_owned()),
        endpoints: vec![endpoint(false)],
        ports: vec![port],
    };
    let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let body = |slice: &EndpointSlice| protobuf::body("discovery.k8s.io/v1", "EndpointSlice", slice);
    let made = write(admin, "POST", path, body(&slice), 201);
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-") && name.len() == 9, "{made}");
    assert_eq!(
        made["endpoints"][0]["conditions"],
        json!({"ready": false, "serving": false, "terminating": false})
    );
    assert_eq!(made["endpoints"][0]["targetRef"]["name"], "web-a");
    let labels = slice.metadata.take().unwrap().labels;
    slice.metadata = Some(ObjectMeta { labels, ..known(&made) });
    slice.endpoints = vec![endpoint(true)];
    let put = write(admin, "PUT", &format!("{path}/{name}"), body(&slice), 200);
    assert_eq!(put["endpoints"][0]["conditions"]["ready"], true);
    assert_eq!(put["metadata"]["generation"], 2, "{put}");
    write(admin, "PUT", &format!("{path}/{name}"), body(&slice), 409);
    let query = format!("{path}?labelSelector=kubernetes.io%2Fservice-name%3Dweb");
    assert_eq!(admin.get(&query).is(200)["items"].as_array().unwrap().len(), 1);
}

/// The daemonset controller: a revision of any content, a pod that names its node by affinity, the status.
#[test]
fn a_daemonset_as_the_controller_manager_runs_it() {
    let (_dir, plane) = start("*,-daemonset,-scheduler,-garbage");
    let admin = &plane.admin;
    let path = "/apis/apps/v1/namespaces/default/daemonsets";
    let set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"app": "d"}}, "template": {"metadata": {"labels": {"app": "d"}},
        "spec": {"containers": [{"name": "c", "image": "rigor.dev/pause"}]}}}});
    let set = admin.post(path, &set).is(201);
    let mut metadata = protobuf::meta("default", "d-5d69f7c9b4");
    metadata.labels = BTreeMap::from([("controller-revision-hash".to_owned(), "5d69f7c9b4".to_owned())]);
    metadata.owner_references = vec![owner(&set, "apps/v1", "DaemonSet")];
    let data = json!({"spec": {"template": {"$patch": "replace", "spec": set["spec"]["template"]["spec"]}}});
    let revision = ControllerRevision {
        metadata: Some(metadata),
        data: Some(RawExtension { raw: Some(data.to_string().into_bytes()) }),
        revision: Some(1),
    };
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let body = protobuf::body("apps/v1", "ControllerRevision", &revision);
    let made = write(admin, "POST", revisions, body, 201);
    assert_eq!(made["data"], data);
    assert_eq!(made["revision"], 1);

    let mut pod = owned("d-x7k2f", &set, "apps/v1", "DaemonSet");
    let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["hollow-1"]}]});
    let required = json!({"nodeSelectorTerms": [term]});
    pod["spec"]["affinity"] =
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    let pod = admin.post(PODS, &pod).is(201);
    assert_eq!(
        pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"],
        required
    );
    let status = DaemonSetStatus {
        current_number_scheduled: Some(1),
        desired_number_scheduled: Some(1),
        number_misscheduled: Some(0),
        number_ready: Some(0),
        updated_number_scheduled: Some(1),
        number_unavailable: Some(1),
        observed_generation: Some(1),
        ..DaemonSetStatus::default()
    };
    let body = DaemonSet { metadata: Some(known(&set)), spec: None, status: Some(status) };
    let put =
        write(admin, "PUT", &format!("{path}/d/status"), protobuf::body("apps/v1", "DaemonSet", &body), 200);
    let expected = json!({"currentNumberScheduled": 1, "desiredNumberScheduled": 1, "numberMisscheduled": 0,
        "numberReady": 0, "numberUnavailable": 1, "observedGeneration": 1, "updatedNumberScheduled": 1});
    assert_eq!(put["status"], expected);
    assert_eq!(put["spec"], set["spec"]);
}

/// The namespace controller: what it lists and deletes in one that goes, and how it lets it go.
#[test]
fn a_namespace_as_the_controller_manager_empties_it() {
    let (_dir, plane) = start("*,-namespace,-serviceaccount");
    let admin = &plane.admin;
    let path = "/api/v1/namespaces/temp";
    let temp = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "temp"}});
    admin.post("/api/v1/namespaces", &temp).is(201);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    admin.post(&format!("{path}/configmaps"), &map).is(201);
    let going = admin.delete(path).is(200);
    assert_eq!(going["status"]["phase"], "Terminating", "{going}");
    assert_eq!(going["spec"]["finalizers"], json!(["kubernetes"]));
    admin.post(&format!("{path}/configmaps"), &map).refused(403, "Forbidden", &["being terminated"]);

    // Each kind of the namespace: deleted as a collection, listed by its metadata alone.
    let listed = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    for resource in ["configmaps", "pods", "secrets", "services", "serviceaccounts", "events"] {
        let collection = format!("{path}/{resource}");
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        let answer = admin.send("DELETE", &collection, "application/json", options.to_string());
        assert!([200, 405].contains(&answer.code), "{resource}: {}", answer.text());
        let list = admin.exchange("GET", &collection, &[("accept", listed)], "").is(200);
        assert_eq!(list["kind"], "PartialObjectMetadataList", "{resource}: {list}");
        assert_eq!(list["items"], json!([]), "{resource}");
    }
    let read = admin.get(path).is(200);
    let namespace = Namespace { metadata: Some(known(&read)), spec: None, status: None };
    let body = protobuf::body("v1", "Namespace", &namespace);
    write(admin, "PUT", &format!("{path}/finalize"), body, 200);
    admin.get(path).refused(404, "NotFound", &["namespaces \"temp\" not found"]);
}
