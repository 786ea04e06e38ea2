//! Preparation of objects: defaults, dialects, immutable fields, generation, and who writes what.

use serde_json::{Value, json};

use super::*;
use crate::kinds;
use crate::options::FieldValidation;

pub(super) fn context(dialect: Dialect) -> Context {
    Context { now: "2026-11-29T12:00:50Z".parse().unwrap(), dialect, eviction_seconds: Some(6) }
}

pub(super) fn kind(resource: &str) -> &'static Kind {
    kinds::by_resource(resource).unwrap()
}

pub(super) fn create_in(dialect: Dialect, resource: &str, body: Value) -> Result<Value, ApiError> {
    let kind = kind(resource);
    let namespace = kind.namespaced.then_some("ns");
    let identity = Identity { uid: "u1", name_suffix: "abcde", cluster_ip: Some("10.96.0.9"), classes: &[] };
    let body = body.to_string();
    let decoded = decode::decode(kind.into(), body.as_bytes(), FieldValidation::Strict, dialect)?;
    prepare_create(kind, namespace, decoded.object, &identity, &context(dialect))
}

pub(super) fn create(resource: &str, body: Value) -> Result<Value, ApiError> {
    create_in(Dialect::Kube32, resource, body)
}

/// Expects a create to be refused with that code and message.
pub(super) fn refused(dialect: Dialect, resource: &str, body: Value, code: u16, message: &str) {
    let error = create_in(dialect, resource, body).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (code, message));
}

/// Merges `change` into an object.
pub(super) fn changed(object: &Value, change: Value) -> Value {
    let mut changed = object.clone();
    json_patch::merge(&mut changed, &change);
    changed
}

pub(super) fn update(resource: &str, old: &Value, change: Value) -> Result<Value, ApiError> {
    prepare_update(kind(resource), old, changed(old, change), &context(Dialect::Kube32))
}

/// Expects an update to be refused with a message that begins so.
pub(super) fn update_refused(resource: &str, old: &Value, change: Value, message: &str) {
    let error = update(resource, old, change).unwrap_err();
    assert_eq!(error.code, 422);
    assert!(error.message.starts_with(message), "{}", error.message);
}

fn pod() -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn new_pod() -> Value {
    let mut pod = create("pods", pod()).unwrap();
    pod["metadata"]["resourceVersion"] = json!("7");
    pod
}

fn deployment() -> Value {
    json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
    }})
}

#[test]
fn a_new_pod_is_filled_in() {
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "uid": "u1", "creationTimestamp": "2026-11-29T12:00:50Z"},
        "spec": {
            "containers": [{
                "name": "c", "image": "i", "resources": {}, "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "securityContext": {}, "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 6},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 6},
            ],
        },
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    });
    assert_eq!(create("pods", pod()).unwrap(), expected);
    let told = changed(
        &pod(),
        json!({"status": {"phase": "Running"}, "metadata": {"uid": "mine", "generation": 9}}),
    );
    assert_eq!(create("pods", told).unwrap(), expected);
}

#[test]
fn admission_of_tolerations_can_be_switched_off() {
    let off = Context { eviction_seconds: None, ..context(Dialect::Kube32) };
    let identity = Identity { uid: "u", name_suffix: "", cluster_ip: None, classes: &[] };
    let made = prepare_create(kind("pods"), Some("ns"), pod(), &identity, &off).unwrap();
    assert!(made["spec"].get("tolerations").is_none());
}

#[test]
fn names_are_generated_and_checked() {
    let generated = json!({"metadata": {"name": null, "generateName": "gen-"}});
    assert_eq!(create("pods", changed(&pod(), generated)).unwrap()["metadata"]["name"], "gen-abcde");
    let long = json!({"metadata": {"name": null, "generateName": "a".repeat(70)}});
    let name = create("pods", changed(&pod(), long)).unwrap()["metadata"]["name"].as_str().unwrap().len();
    assert_eq!(name, 63);
    let nameless = changed(&pod(), json!({"metadata": {"name": null}}));
    let message = "Pod \"\" is invalid: metadata.name: Required value: name or generateName is required";
    refused(Dialect::Kube32, "pods", nameless, 422, message);
    let versioned = changed(&pod(), json!({"metadata": {"resourceVersion": "1"}}));
    let message = "resourceVersion should not be set on objects to be created";
    refused(Dialect::Kube32, "pods", versioned, 400, message);
}

#[test]
fn the_dialects_differ_in_quantities_and_extended_resources() {
    let with = |resources: Value| {
        changed(
            &pod(),
            json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}),
        )
    };
    let requests = with(json!({"requests": {"esp32.io/gpio": "2"}}));
    assert!(create_in(Dialect::Kube32, "pods", requests.clone()).is_ok());
    let message = "Pod \"p\" is invalid: spec.containers[0].resources.limits: Required value: Limit must be set for non \
                   overcommitable resources";
    refused(Dialect::Kubernetes, "pods", requests, 422, message);

    let odd = with(json!({"requests": {"memory": "1Foo"}}));
    let made = create_in(Dialect::Kube32, "pods", odd.clone()).unwrap();
    assert_eq!(made["spec"]["containers"][0]["resources"]["requests"]["memory"], "1Foo");
    let error = create_in(Dialect::Kubernetes, "pods", odd).unwrap_err();
    assert_eq!(error.code, 400);

    let fraction = with(json!({"limits": {"example.com/foo": "0.5"}}));
    let error = create_in(Dialect::Kubernetes, "pods", fraction).unwrap_err();
    assert!(error.message.ends_with("must be an integer]") || error.message.contains("must be an integer"));
    let unequal = with(json!({"limits": {"a.io/b": "2"}, "requests": {"a.io/b": "1"}}));
    let message = "Pod \"p\" is invalid: spec.containers[0].resources.requests: Invalid value: \"1\": must be equal to \
                   a.io/b limit of 2";
    refused(Dialect::Kubernetes, "pods", unequal, 422, message);
}

#[test]
fn limits_count_as_requests() {
    let limited = changed(
        &pod(),
        json!({"spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"limits": {"memory": "1Mi", "cpu": "1"}, "requests": {"cpu": "1"}}},
        ]}}),
    );
    let made = create("pods", limited).unwrap();
    let requests = &made["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(*requests, json!({"memory": "1Mi", "cpu": "1"}));
    assert_eq!(made["status"]["qosClass"], "Guaranteed");
}

#[test]
fn service_accounts() {
    let mut bare = pod();
    admit_service_account(&mut bare);
    assert_eq!(bare["spec"]["serviceAccountName"], "default");
    let mut named = changed(&pod(), json!({"spec": {"serviceAccount": "x"}}));
    admit_service_account(&mut named);
    assert_eq!(
        (&named["spec"]["serviceAccountName"], &named["spec"]["serviceAccount"]),
        (&json!("x"), &json!("x"))
    );
    let error = service_account_missing("ns", "default", "p");
    assert_eq!(
        error.message,
        "pods \"p\" is forbidden: error looking up service account ns/default: serviceaccount \"default\" not found"
    );
    assert_eq!(error.code, 403);
}

#[test]
fn a_pod_stays_the_mirror_pod_that_it_is_or_is_not() {
    const FIELD: &str = "Pod \"p\" is invalid: metadata.annotations[kubernetes.io/config.mirror]";
    let annotated =
        |value: Value| json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": value}}});
    let free = changed(&pod(), annotated(json!("x")));
    let nowhere =
        format!("{FIELD}: Invalid value: \"x\": must set spec.nodeName if mirror pod annotation is set");
    refused(Dialect::Kube32, "pods", free.clone(), 422, &nowhere);
    let mirror = create("pods", changed(&free, json!({"spec": {"nodeName": "a"}}))).unwrap();
    let ordinary = create("pods", changed(&pod(), json!({"spec": {"nodeName": "a"}}))).unwrap();
    let other = json!({"metadata": {"annotations": {"other": "y"}}});
    assert!(update("pods", &mirror, other.clone()).is_ok() && update("pods", &ordinary, other).is_ok());

    let added = format!("{FIELD}: Forbidden: may not add mirror pod annotation");
    let lost = format!("{FIELD}: Forbidden: may not remove or update mirror pod annotation");
    for (old, value, message) in
        [(&ordinary, json!("x"), &added), (&mirror, json!("y"), &lost), (&mirror, Value::Null, &lost)]
    {
        update_refused("pods", old, annotated(value.clone()), message);
        // The metadata of a status are stored too.
        let status = changed(old, annotated(value));
        let error = prepare_status_update(kind("pods"), old, status, &context(Dialect::Kube32)).unwrap_err();
        assert_eq!((error.code, &error.message), (422, message));
    }
}

#[test]
fn priorities_come_from_classes() {
    let urgent = changed(&pod(), json!({"spec": {"priorityClassName": "system-node-critical"}}));
    assert_eq!(create("pods", urgent).unwrap()["spec"]["priority"], 2_000_001_000);
    let message = "pods \"p\" is forbidden: no PriorityClass with name x was found";
    refused(
        Dialect::Kube32,
        "pods",
        changed(&pod(), json!({"spec": {"priorityClassName": "x"}})),
        403,
        message,
    );
    let message = "pods \"p\" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority \
                   admission controller computed 0 from the given PriorityClass name";
    refused(Dialect::Kube32, "pods", changed(&pod(), json!({"spec": {"priority": 5}})), 403, message);
}

#[test]
fn little_of_a_pod_can_change() {
    let old = new_pod();
    let image =
        json!({"spec": {"containers": [changed(&old["spec"]["containers"][0], json!({"image": "j"}))]}});
    assert_eq!(update("pods", &old, image).unwrap()["spec"]["containers"][0]["image"], "j");
    let mut tolerations = old["spec"]["tolerations"].as_array().unwrap().clone();
    tolerations[0]["tolerationSeconds"] = json!(1);
    tolerations.push(json!({"key": "x", "operator": "Exists"}));
    assert!(update("pods", &old, json!({"spec": {"tolerations": tolerations}})).is_ok());
    assert!(update("pods", &old, json!({"spec": {"activeDeadlineSeconds": 5}})).is_ok());
    let same =
        update("pods", &old, json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}})).unwrap();
    assert_eq!(same, old);

    let may = "Pod \"p\" is invalid: spec: Forbidden: pod updates may not change fields other than";
    update_refused("pods", &old, json!({"spec": {"nodeName": "node-z"}}), may);
    let bound = changed(&old, json!({"spec": {"nodeName": "node-a"}}));
    update_refused("pods", &bound, json!({"spec": {"nodeName": "node-z"}}), may);
    update_refused("pods", &bound, json!({"spec": {"nodeName": null}}), may);
    update_refused("pods", &old, json!({"spec": {"restartPolicy": "Never"}}), may);
    let fewer = "Pod \"p\" is invalid: spec.tolerations: Forbidden: existing toleration can not be modified";
    let own = changed(&old, json!({"spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}}));
    update_refused(
        "pods",
        &own,
        json!({"spec": {"tolerations": [{"key": "y", "operator": "Exists"}]}}),
        fewer,
    );
    let gates = "Pod \"p\" is invalid: spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new \
                 scheduling gate 'a/b'";
    update_refused("pods", &old, json!({"spec": {"schedulingGates": [{"name": "a/b"}]}}), gates);
}

#[test]
fn the_manifest_a_pod_was_made_from_changes_nothing() {
    let old = new_pod();
    let manifest = changed(&pod(), json!({"apiVersion": "v1", "kind": "Pod"}));
    let replaced = prepare_replacement(kind("pods"), &old, manifest, &context(Dialect::Kube32)).unwrap();
    assert_eq!(replaced, old);
}

#[test]
fn gates_can_be_taken_away() {
    let gated =
        create("pods", changed(&pod(), json!({"spec": {"schedulingGates": [{"name": "a/b"}]}}))).unwrap();
    assert_eq!(gated["status"]["conditions"][0]["reason"], "SchedulingGated");
    let open = update("pods", &gated, json!({"spec": {"schedulingGates": null, "nodeSelector": {"a": "b"}}}))
        .unwrap();
    assert!(open["spec"].get("schedulingGates").is_none());
}

#[test]
fn replacements_must_name_what_they_replace() {
    let old = new_pod();
    let replace = |change: Value| {
        prepare_replacement(kind("pods"), &old, changed(&old, change), &context(Dialect::Kube32)).unwrap_err()
    };
    let cases = [
        (
            json!({"metadata": {"name": "other"}}),
            400,
            "the name of the object (other) does not match the name on the URL (p)",
        ),
        (
            json!({"metadata": {"namespace": "other"}}),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            json!({"metadata": {"resourceVersion": "6"}}),
            409,
            "Operation cannot be fulfilled on pods \"p\": the object has been modified; please apply your changes to the \
             latest version and try again",
        ),
    ];
    for (change, code, message) in cases {
        let error = replace(change);
        assert_eq!((error.code, error.message.as_str()), (code, message));
    }
    assert_eq!(replace(json!({"metadata": {"uid": "u2"}})).code, 409);
}

#[test]
fn object_and_status_are_written_apart() {
    let old = new_pod();
    let update =
        update("pods", &old, json!({"status": {"phase": "Failed"}, "metadata": {"labels": {"a": "b"}}}))
            .unwrap();
    assert_eq!((&update["status"], &update["metadata"]["labels"]), (&old["status"], &json!({"a": "b"})));

    let change = json!({
        "spec": {"nodeName": "zz"}, "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}]},
        "status": {"phase": "Running", "qosClass": null, "podIP": "10.0.0.1"},
    });
    let status =
        prepare_status_update(kind("pods"), &old, changed(&old, change), &context(Dialect::Kube32)).unwrap();
    assert_eq!(status["spec"], old["spec"]);
    assert!(status["metadata"].get("ownerReferences").is_none());
    let expected = json!({"phase": "Running", "qosClass": "BestEffort", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]});
    assert_eq!(status["status"], expected);
    let lease = json!({"metadata": {"name": "l"}});
    let error = prepare_status_update(kind("leases"), &lease, lease.clone(), &context(Dialect::Kube32));
    assert_eq!(error.unwrap_err().code, 404);
}

#[test]
fn a_container_that_ended_for_good_stays_ended() {
    let mut old = new_pod();
    old["spec"]["restartPolicy"] = json!("Never");
    old["status"]["containerStatuses"] = json!([{"name": "c", "state": {"terminated": {"exitCode": 0}}}]);
    let again =
        changed(&old, json!({"status": {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}}));
    let error =
        prepare_status_update(kind("pods"), &old, again.clone(), &context(Dialect::Kube32)).unwrap_err();
    assert_eq!(
        error.message,
        "Pod \"p\" is invalid: status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
    );
    old["spec"]["restartPolicy"] = json!("Always");
    assert!(prepare_status_update(kind("pods"), &old, again, &context(Dialect::Kube32)).is_ok());
}

#[test]
fn generation_follows_the_spec() {
    let old = create("deployments", deployment()).unwrap();
    assert_eq!(old["metadata"]["generation"], 1);
    let generation = |dialect: Dialect, change: Value| {
        let new = changed(&old, change);
        prepare_update(kind("deployments"), &old, new, &context(dialect)).unwrap()["metadata"]["generation"]
            .clone()
    };
    let cases = [
        (json!({"spec": {"replicas": 3}}), 2, 2),
        (json!({"metadata": {"labels": {"a": "b"}}}), 1, 1),
        (json!({"metadata": {"annotations": {"a": "b"}}}), 1, 2),
        (json!({"status": {"replicas": 3}}), 1, 1),
        (json!({"metadata": {"generation": 9}}), 1, 1),
    ];
    for (change, kube32, kubernetes) in cases {
        assert_eq!(generation(Dialect::Kube32, change.clone()), kube32, "{change}");
        assert_eq!(generation(Dialect::Kubernetes, change.clone()), kubernetes, "{change}");
    }
}

#[test]
fn deployments_are_checked() {
    let old = create("deployments", deployment()).unwrap();
    assert_eq!(
        old["spec"]["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}})
    );
    update_refused(
        "deployments",
        &old,
        json!({"spec": {"selector": {"matchLabels": {"app": "d", "x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}}}}),
        "Deployment.apps \"d\" is invalid: spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{\
         \"app\":\"d\", \"x\":\"y\"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable",
    );
    let cases = [
        (
            json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "0%"}}}}),
            "Deployment.apps \"d\" is invalid: spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \
             intstr.IntOrString{Type:0, IntVal:0, StrVal:\"\"}: may not be 0 when `maxSurge` is 0",
        ),
        (
            json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": "many"}}}}),
            "Deployment.apps \"d\" is invalid: spec.strategy.rollingUpdate.maxUnavailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, \
             StrVal:\"many\"}: a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for \
             validation is '[0-9]+%')",
        ),
        (
            json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}}),
            "Deployment.apps \"d\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy \
             `type` is 'Recreate'",
        ),
        (
            json!({"spec": {"progressDeadlineSeconds": 5, "minReadySeconds": 5}}),
            "Deployment.apps \"d\" is invalid: spec.progressDeadlineSeconds: Invalid value: 5: must be greater than \
             minReadySeconds",
        ),
    ];
    for (change, message) in cases {
        refused(Dialect::Kube32, "deployments", changed(&deployment(), change), 422, message);
    }
}

#[test]
fn namespaces_get_their_finalizer_and_lose_it_by_finalize_only() {
    let made = create("namespaces", json!({"metadata": {"name": "ns", "namespace": "x"}})).unwrap();
    assert_eq!(made["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "ns"}));
    assert_eq!(
        (&made["spec"], &made["status"]),
        (&json!({"finalizers": ["kubernetes"]}), &json!({"phase": "Active"}))
    );
    assert!(made["metadata"].get("namespace").is_none());
    let emptied = json!({"spec": {"finalizers": []}});
    assert_eq!(update("namespaces", &made, emptied.clone()).unwrap()["spec"], made["spec"]);
    let finalized =
        prepare_finalize(kind("namespaces"), &made, &changed(&made, emptied), &context(Dialect::Kube32))
            .unwrap();
    assert_eq!(finalized["spec"], json!({}));
}

#[test]
fn nodes_keep_the_status_they_are_created_with() {
    let body = json!({"metadata": {"name": "n"}, "status": {"capacity": {"memory": "200Ki"}}});
    let made = create("nodes", body).unwrap();
    assert_eq!(made["status"]["capacity"], json!({"memory": "200Ki"}));
    assert_eq!(
        update("nodes", &made, json!({"status": {"capacity": null}})).unwrap()["status"],
        made["status"]
    );
    let taint = json!({"key": "k", "effect": "NoSchedule"});
    assert!(update("nodes", &made, json!({"spec": {"taints": [taint], "unschedulable": true}})).is_ok());
    update_refused(
        "nodes",
        &made,
        json!({"spec": {"taints": [taint, taint]}}),
        "Node \"n\" is invalid: spec.taints[1]: Duplicate value: core.Taint{Key:\"k\", Value:\"\", Effect:\"NoSchedule\", \
         TimeAdded:<nil>}: taints must be unique by key and effect pair",
    );
    let cordoned = update("nodes", &made, json!({"spec": {"unschedulable": true}})).unwrap();
    assert!(
        update("nodes", &cordoned, json!({"spec": {"unschedulable": false}})).unwrap()["spec"]
            .get("unschedulable")
            .is_none()
    );
}

#[test]
fn leases_events_and_maps() {
    let lease = json!({"metadata": {"name": "n"}, "spec": {"leaseDurationSeconds": 0}});
    let message = "Lease.coordination.k8s.io \"n\" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater \
                   than 0";
    refused(Dialect::Kube32, "leases", lease, 422, message);
    let lease = json!({"metadata": {"name": "n"}, "spec": {"renewTime": "2026-11-29T12:00:00.1234567Z"}});
    assert_eq!(create("leases", lease).unwrap()["spec"]["renewTime"], "2026-11-29T12:00:00.123456Z");

    let event = |about: &str| json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": about}});
    assert!(create("events", event("ns")).is_ok());
    let message = "Event \"e\" is invalid: involvedObject.namespace: Invalid value: \"other\": does not match event.namespace";
    refused(Dialect::Kube32, "events", event("other"), 422, message);

    let map = create("configmaps", json!({"metadata": {"name": "m"}, "immutable": true, "data": {"a": "b"}}))
        .unwrap();
    update_refused(
        "configmaps",
        &map,
        json!({"data": {"a": "c"}}),
        "ConfigMap \"m\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
    );
    let secret = create("secrets", json!({"metadata": {"name": "s"}, "stringData": {"a": "foo"}})).unwrap();
    assert_eq!((&secret["type"], &secret["data"]), (&json!("Opaque"), &json!({"a": "Zm9v"})));
}

#[test]
fn finalizers_and_owners_are_checked() {
    let with = |meta: Value| changed(&pod(), json!({"metadata": meta}));
    let cases = [
        (
            json!({"finalizers": ["plain"]}),
            "Pod \"p\" is invalid: metadata.finalizers[0]: Invalid value: \"plain\": name is neither a standard finalizer name \
             nor is it fully qualified",
        ),
        (
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": ""}]}),
            "Pod \"p\" is invalid: metadata.ownerReferences.uid: Invalid value: \"\": uid must not be empty",
        ),
        (
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u"}]}),
            "Pod \"p\" is invalid: metadata.ownerReferences: Invalid value: \
             {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"n\",\"uid\":\"u\"}: /v1, Kind=Event is disallowed from \
             being an owner",
        ),
    ];
    for (meta, message) in cases {
        refused(Dialect::Kube32, "pods", with(meta), 422, message);
    }
    let big = with(json!({"annotations": {"a": "x".repeat(300_000)}}));
    let message = "Pod \"p\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes";
    refused(Dialect::Kube32, "pods", big, 422, message);
}

#[test]
fn containers_are_checked_in_depth() {
    let with = |container: Value| {
        let mut whole = json!({"name": "c", "image": "i"});
        json_patch::merge(&mut whole, &container);
        changed(&pod(), json!({"spec": {"containers": [whole]}}))
    };
    let cases = [
        (
            json!({"imagePullPolicy": "Maybe"}),
            "imagePullPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
        ),
        (
            json!({"image": " i"}),
            "image: Invalid value: \" i\": must not have leading or trailing whitespace",
        ),
        (
            json!({"ports": [{"containerPort": 1, "protocol": "X"}]}),
            "ports[0].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        ),
        (json!({"ports": [{}]}), "ports[0].containerPort: Required value"),
        (
            json!({"env": [{"name": "A=B"}]}),
            "env[0].name: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII characters other than '='",
        ),
        (
            json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
            "volumeMounts[0].name: Not found: \"v\"",
        ),
    ];
    for (container, message) in cases {
        let message = format!("Pod \"p\" is invalid: spec.containers[0].{message}");
        refused(Dialect::Kube32, "pods", with(container), 422, &message);
    }
}
