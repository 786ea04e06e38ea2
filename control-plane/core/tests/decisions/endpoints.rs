//! Endpoints and slices of a service and its pods: what Kubernetes 1.32 answered, and what its rules say beyond that.

use std::sync::Arc;

use control_plane_core::Key;
use control_plane_core::controllers::endpoints::{EndpointsConfig, Index, MANAGER, compute};
use proptest::prelude::*;
use serde_json::{Value, json};

const KUBE32: EndpointsConfig = EndpointsConfig { slices_keep_terminating: false };
const KUBERNETES: EndpointsConfig = EndpointsConfig { slices_keep_terminating: true };

fn service(name: &str, spec: Value) -> Value {
    let mut service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": "sv",
            "uid": format!("uid-of-{name}"),
            "creationTimestamp": "2026-11-29T12:08:55Z",
        },
        "spec": {"clusterIP": "10.96.49.250", "type": "ClusterIP", "ipFamilies": ["IPv4"], "selector": {"app": "web"}},
    });
    for (field, value) in spec.as_object().expect("an object") {
        service["spec"][field] = value.clone();
    }
    service
}

/// The service of the recordings.
fn web() -> Value {
    let ports = json!([{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}]);
    let mut web = service("web", json!({"ports": ports}));
    web["metadata"]["labels"] = json!({"app": "web"});
    web
}

/// A pod of the recordings: `w<n>` on `hollow-<n>`.
fn pod(n: usize, ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    let ip = format!("10.244.9.{}", n + 1);
    json!({
        "metadata": {"name": format!("w{n}"), "namespace": "sv", "uid": format!("uid-{n}"), "labels": {"app": "web"}},
        "spec": {"nodeName": format!("hollow-{n}"), "containers": [{"name": "c", "image": "busybox"}]},
        "status": {
            "phase": "Running",
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": status}],
        },
    })
}

fn terminating(mut pod: Value) -> Value {
    pod["metadata"]["deletionTimestamp"] = "2026-11-29T12:09:09Z".into();
    pod
}

fn with_port(mut pod: Value, name: &str, number: u16) -> Value {
    pod["spec"]["containers"][0]["ports"] =
        json!([{"name": name, "containerPort": number, "protocol": "TCP"}]);
    pod
}

fn at(mut pod: Value, pointer: &str, value: Value) -> Value {
    *pod.pointer_mut(pointer).expect("such a place") = value;
    pod
}

fn all(service: &Value, pods: &[Value], config: EndpointsConfig) -> (Value, Vec<Value>) {
    let computed = compute(service, pods, config);
    let of = |resource: &str| {
        let objects = computed.iter().filter(|(of, _)| *of == resource);
        objects.map(|(_, object)| object.clone()).collect::<Vec<_>>()
    };
    let endpoints = of("endpoints");
    assert_eq!(endpoints.len(), 1, "one Endpoints a service");
    (endpoints[0].clone(), of("endpointslices"))
}

fn target(n: usize) -> Value {
    json!({"kind": "Pod", "namespace": "sv", "name": format!("w{n}"), "uid": format!("uid-{n}")})
}

fn address(n: usize) -> Value {
    json!({"ip": format!("10.244.9.{}", n + 1), "nodeName": format!("hollow-{n}"), "targetRef": target(n)})
}

fn endpoint(n: usize, [ready, serving, terminating]: [bool; 3]) -> Value {
    json!({
        "addresses": [format!("10.244.9.{}", n + 1)],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "nodeName": format!("hollow-{n}"),
        "targetRef": target(n),
    })
}

const READY: [bool; 3] = [true, true, false];
const OTHER: [bool; 3] = [false, false, false];

/// `ready/others` of each subset, as names of pods, with the ports' numbers.
fn subsets(endpoints: &Value) -> Vec<String> {
    let names = |subset: &Value, field: &str| {
        let addresses = subset[field].as_array().cloned().unwrap_or_default();
        let names = addresses.iter().map(|it| it["targetRef"]["name"].as_str().unwrap_or("?").to_owned());
        names.collect::<Vec<_>>().join(",")
    };
    let all = endpoints["subsets"].as_array().cloned().unwrap_or_default();
    all.iter()
        .map(|subset| {
            let (ready, others) = (names(subset, "addresses"), names(subset, "notReadyAddresses"));
            format!("{ready}/{others} {}", numbers(subset))
        })
        .collect()
}

fn numbers(holder: &Value) -> String {
    let ports = holder["ports"].as_array().cloned().unwrap_or_default();
    let numbers =
        ports.iter().map(|port| format!("{}:{}", port["name"].as_str().unwrap_or("-"), port["port"]));
    numbers.collect::<Vec<_>>().join(",")
}

/// The pods of each slice with its ports.
fn contents(slices: &[Value]) -> Vec<String> {
    let one = |slice: &Value| {
        let endpoints = slice["endpoints"].as_array().cloned().unwrap_or_default();
        let names = endpoints.iter().map(|it| it["targetRef"]["name"].as_str().unwrap_or("?").to_owned());
        format!("{} {}", names.collect::<Vec<_>>().join(","), numbers(slice))
    };
    slices.iter().map(one).collect()
}

#[test]
fn ep_04_ready_pods_and_others_stand_as_recorded() {
    let (endpoints, slices) = all(&web(), &[pod(0, true), pod(1, true), pod(2, false)], KUBE32);
    let ports = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
    let subset =
        json!({"addresses": [address(0), address(1)], "notReadyAddresses": [address(2)], "ports": ports});
    let uid = endpoints["metadata"]["uid"].clone();
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": "web",
            "namespace": "sv",
            "uid": uid,
            "creationTimestamp": "2026-11-29T12:08:55Z",
            "labels": {"app": "web"},
        },
        "subsets": [subset],
    });
    assert_eq!(endpoints, expected);
    let (name, uid) = (slices[0]["metadata"]["name"].clone(), slices[0]["metadata"]["uid"].clone());
    let labels = json!({
        "app": "web",
        "endpointslice.kubernetes.io/managed-by": MANAGER,
        "kubernetes.io/service-name": "web",
    });
    let owner = json!({
        "apiVersion": "v1", "kind": "Service", "name": "web", "uid": "uid-of-web",
        "controller": true, "blockOwnerDeletion": true,
    });
    let expected = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "generateName": "web-",
            "namespace": "sv",
            "uid": uid,
            "creationTimestamp": "2026-11-29T12:08:55Z",
            "labels": labels,
            "ownerReferences": [owner],
        },
        "addressType": "IPv4",
        "endpoints": [endpoint(0, READY), endpoint(1, READY), endpoint(2, OTHER)],
        "ports": ports,
    });
    assert_eq!(slices, [expected]);
    assert!(name.as_str().is_some_and(|name| name.starts_with("web-") && name.len() == 9), "{name}");
}

#[test]
fn ep_01_without_pods_the_objects_are_empty_as_recorded() {
    let (endpoints, slices) = all(&web(), &[], KUBE32);
    assert_eq!(endpoints.get("subsets"), None);
    assert_eq!(slices.len(), 1);
    assert_eq!((&slices[0]["endpoints"], &slices[0]["ports"]), (&Value::Null, &Value::Null));
    let (_, later) = all(&web(), &[pod(0, true)], KUBE32);
    for field in ["name", "uid"] {
        assert_eq!(
            slices[0]["metadata"][field], later[0]["metadata"][field],
            "the slice stays the same object"
        );
    }
}

#[test]
fn ep_02_only_pods_with_an_address_that_neither_go_nor_have_ended_are_selected() {
    let table = [
        ("running", pod(0, true), true),
        ("without an address", at(pod(0, true), "/status/podIP", "".into()), false),
        ("pending with an address", at(pod(0, false), "/status/phase", "Pending".into()), true),
        ("succeeded", at(pod(0, false), "/status/phase", "Succeeded".into()), false),
        ("failed", at(pod(0, false), "/status/phase", "Failed".into()), false),
        ("terminating", terminating(pod(0, true)), false),
    ];
    for (what, pod, selected) in table {
        let (endpoints, slices) = all(&web(), &[pod], KUBE32);
        assert_eq!(subsets(&endpoints).len(), usize::from(selected), "{what}");
        assert_eq!(slices[0]["endpoints"].as_array().map_or(0, Vec::len), usize::from(selected), "{what}");
    }
}

#[test]
fn ep_02_kubernetes_slices_keep_pods_that_are_terminating_as_recorded() {
    let pods = [terminating(pod(0, true)), pod(1, false), pod(2, true), terminating(pod(3, false))];
    let (endpoints, slices) = all(&web(), &pods, KUBERNETES);
    assert_eq!(subsets(&endpoints), ["w2/w1 http:8080"]);
    let kept = [
        endpoint(0, [false, true, true]),
        endpoint(1, OTHER),
        endpoint(2, READY),
        endpoint(3, [false, false, true]),
    ];
    assert_eq!(slices[0]["endpoints"], Value::from(kept.to_vec()));
}

#[test]
fn ep_02_services_that_select_nothing_have_none() {
    let none = |spec: Value| compute(&service("s", spec), &[pod(0, true)], KUBE32).is_empty();
    assert!(none(json!({"selector": null})));
    assert!(none(json!({"selector": {}})));
    assert!(none(json!({"type": "ExternalName", "clusterIP": "", "externalName": "example.com"})));
    assert!(!none(json!({})));
}

#[test]
fn ep_03_named_ports_are_resolved_pod_by_pod() {
    let ports = json!([{"protocol": "TCP", "port": 80, "targetPort": "www"}]);
    let service = service("named", json!({"ports": ports}));
    let pods = [
        with_port(pod(0, true), "www", 8080),
        with_port(pod(1, true), "www", 9090),
        with_port(pod(2, false), "www", 8080),
        with_port(pod(3, true), "other", 8080),
    ];
    let (endpoints, slices) = all(&service, &pods, KUBE32);
    assert_eq!(subsets(&endpoints), ["w0/w2 -:8080", "w1/ -:9090"]);
    // A pod that has no such port is in a slice without ports, as recorded of a headless service.
    assert_eq!(contents(&slices), ["w3 ", "w0,w2 :8080", "w1 :9090"]);
    assert_eq!(slices[0]["ports"], Value::Null);
    let names: std::collections::BTreeSet<_> =
        slices.iter().map(|slice| slice["metadata"]["name"].to_string()).collect();
    assert_eq!(names.len(), 3, "each slice is an object of its own");
}

#[test]
fn ep_03_names_count_with_their_protocol_also_in_containers_that_stay_beside() {
    let port = |name: &str, number: u16, protocol: &str| json!({"name": name, "containerPort": number, "protocol": protocol});
    let mut pod = pod(0, true);
    pod["spec"]["containers"][0]["ports"] = json!([port("dns", 1053, "UDP"), port("dns", 53, "TCP")]);
    pod["spec"]["initContainers"] = json!([
        {"name": "first", "ports": [port("side", 1, "TCP")]},
        {"name": "beside", "restartPolicy": "Always", "ports": [port("side", 15000, "TCP")]},
    ]);
    let ports = json!([
        {"name": "tcp", "protocol": "TCP", "port": 53, "targetPort": "dns"},
        {"name": "udp", "protocol": "UDP", "port": 53, "targetPort": "dns"},
        {"name": "mesh", "protocol": "TCP", "port": 1, "targetPort": "side", "appProtocol": "kubernetes.io/h2c"},
        {"name": "none", "protocol": "SCTP", "port": 2, "targetPort": "dns"},
    ]);
    let (endpoints, slices) = all(&service("s", json!({"ports": ports})), &[pod], KUBE32);
    assert_eq!(subsets(&endpoints), ["w0/ tcp:53,udp:1053,mesh:15000"]);
    assert_eq!(contents(&slices), ["w0 tcp:53,udp:1053,mesh:15000"]);
    let mesh = json!({"name": "mesh", "port": 15000, "protocol": "TCP", "appProtocol": "kubernetes.io/h2c"});
    assert_eq!((&endpoints["subsets"][0]["ports"][2], &slices[0]["ports"][2]), (&mesh, &mesh));
}

#[test]
fn ep_03_ports_share_a_subset_where_they_lead_to_the_same_addresses() {
    let ports = json!([
        {"name": "fixed", "protocol": "TCP", "port": 80, "targetPort": 8000},
        {"name": "named", "protocol": "TCP", "port": 81, "targetPort": "www"},
        {"name": "own", "protocol": "TCP", "port": 82},
    ]);
    let service = service("s", json!({"ports": ports}));
    let pods = [with_port(pod(0, true), "www", 1), with_port(pod(1, false), "www", 2)];
    let (endpoints, slices) = all(&service, &pods, KUBE32);
    assert_eq!(subsets(&endpoints), ["w0/w1 fixed:8000,own:82", "w0/ named:1", "/w1 named:2"]);
    assert_eq!(contents(&slices), ["w0 fixed:8000,named:1,own:82", "w1 fixed:8000,named:2,own:82"]);
}

#[test]
fn ep_04_a_pod_that_does_not_run_is_not_ready() {
    for phase in ["Pending", "Unknown"] {
        let pods = [at(pod(0, true), "/status/phase", phase.into())];
        let (endpoints, slices) = all(&web(), &pods, KUBE32);
        assert_eq!(subsets(&endpoints), ["/w0 http:8080"], "{phase}");
        assert_eq!(slices[0]["endpoints"], json!([endpoint(0, OTHER)]), "{phase}");
    }
}

#[test]
fn not_ready_addresses_can_be_published_as_ready() {
    let mut web = web();
    web["spec"]["publishNotReadyAddresses"] = true.into();
    let (endpoints, slices) = all(&web, &[pod(0, false), pod(1, true), terminating(pod(2, true))], KUBE32);
    assert_eq!(subsets(&endpoints), ["w0,w1/ http:8080"]);
    assert_eq!(slices[0]["endpoints"], json!([endpoint(0, [true, false, false]), endpoint(1, READY)]));
}

#[test]
fn headless_services_say_so_and_may_have_no_ports() {
    let named = json!([{"protocol": "TCP", "port": 80, "targetPort": "named"}]);
    let headless = service("hl", json!({"clusterIP": "None", "ports": named}));
    let (endpoints, slices) = all(&headless, &[pod(1, false), pod(2, true)], KUBE32);
    // As recorded: nobody has a port of that name.
    assert_eq!(endpoints.get("subsets"), None);
    assert_eq!(endpoints["metadata"]["labels"], json!({"service.kubernetes.io/headless": ""}));
    assert_eq!(slices[0]["metadata"]["labels"]["service.kubernetes.io/headless"], "");
    assert_eq!(slices[0]["endpoints"], json!([endpoint(1, OTHER), endpoint(2, READY)]));
    assert_eq!(slices[0]["ports"], Value::Null);
    let bare = service("hl", json!({"clusterIP": "None"}));
    let (endpoints, slices) = all(&bare, &[pod(1, false), pod(2, true)], KUBE32);
    assert_eq!(subsets(&endpoints), ["w2/w1 "]);
    assert_eq!(endpoints["subsets"][0].get("ports"), None);
    assert_eq!(contents(&slices), ["w1,w2 "]);
    let (endpoints, _) = all(&bare, &[], KUBE32);
    assert_eq!(endpoints.get("subsets"), None);
}

#[test]
fn a_label_of_the_service_does_not_make_it_headless() {
    let mut web = web();
    web["metadata"]["labels"]["service.kubernetes.io/headless"] = "".into();
    web["metadata"]["labels"]["kubernetes.io/service-name"] = "another".into();
    let (endpoints, slices) = all(&web, &[], KUBE32);
    assert_eq!(endpoints["metadata"]["labels"].get("service.kubernetes.io/headless"), None);
    assert_eq!(slices[0]["metadata"]["labels"].get("service.kubernetes.io/headless"), None);
    assert_eq!(slices[0]["metadata"]["labels"]["kubernetes.io/service-name"], "web");
}

#[test]
fn a_pod_has_its_hostname_where_its_subdomain_is_the_service() {
    let mut pod = pod(0, true);
    pod["spec"]["hostname"] = "first".into();
    for (subdomain, hostname) in [("web", json!("first")), ("other", Value::Null)] {
        pod["spec"]["subdomain"] = subdomain.into();
        let (endpoints, slices) = all(&web(), &[pod.clone()], KUBE32);
        assert_eq!(endpoints["subsets"][0]["addresses"][0]["hostname"], hostname, "{subdomain}");
        assert_eq!(slices[0]["endpoints"][0]["hostname"], hostname, "{subdomain}");
    }
}

#[test]
fn each_family_of_addresses_has_slices_of_its_own() {
    let mut web = web();
    web["spec"]["ipFamilies"] = json!(["IPv6", "IPv4"]);
    let both = json!([{"ip": "10.244.9.1"}, {"ip": "2001:db8::1"}]);
    let pods = [at(pod(0, true), "/status/podIPs", both), pod(1, true)];
    let (endpoints, slices) = all(&web, &pods, KUBE32);
    assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], "2001:db8::1");
    assert_eq!(subsets(&endpoints), ["w0/ http:8080"]);
    let types: Vec<_> = slices.iter().map(|slice| slice["addressType"].as_str().unwrap_or("?")).collect();
    assert_eq!(types, ["IPv6", "IPv4"]);
    assert_eq!(contents(&slices), ["w0 http:8080", "w0,w1 http:8080"]);
}

#[test]
fn many_pods_fill_several_slices_and_endpoints_say_what_they_leave_out() {
    let many: Vec<Value> = (0..1002)
        .map(|n| {
            let ip = format!("10.1.{}.{}", n / 200, n % 200);
            let mut pod = pod(n, n % 2 == 0);
            pod["metadata"]["name"] = format!("p{n:04}").into();
            pod["status"]["podIP"] = ip.clone().into();
            pod["status"]["podIPs"] = json!([{"ip": ip}]);
            pod
        })
        .collect();
    let (endpoints, slices) = all(&web(), &many, KUBE32);
    let sizes: Vec<usize> =
        slices.iter().map(|slice| slice["endpoints"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(sizes, [100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 2]);
    let count = |field: &str| endpoints["subsets"][0][field].as_array().map_or(0, Vec::len);
    assert_eq!((count("addresses"), count("notReadyAddresses")), (501, 499));
    assert_eq!(endpoints["metadata"]["annotations"]["endpoints.kubernetes.io/over-capacity"], "truncated");
    let (endpoints, _) = all(&web(), &many[..1000], KUBE32);
    assert_eq!(endpoints["metadata"].get("annotations"), None);
}

/// A step of a history: which object, whether it is there, and a choice of what it is like.
#[derive(Debug, Clone)]
enum Step {
    Pod(usize, usize, Option<(usize, bool)>),
    Service(usize, usize, Option<usize>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2_usize, 0..4_usize, proptest::option::of((0..3_usize, any::<bool>())))
            .prop_map(|(space, n, pod)| Step::Pod(space, n, pod)),
        1 => (0..2_usize, 0..3_usize, proptest::option::of(0..3_usize))
            .prop_map(|(space, n, service)| Step::Service(space, n, service)),
    ]
}

fn in_space(mut object: Value, space: usize, label: usize) -> Value {
    object["metadata"]["namespace"] = format!("ns{space}").into();
    match object.get("kind") {
        Some(_) => object["spec"]["selector"] = json!({"app": label.to_string()}),
        None => object["metadata"]["labels"] = json!({"app": label.to_string()}),
    }
    object
}

proptest! {
    /// What the index says after any history is what a look at everything says; and nothing that it does not name has changed.
    #[test]
    fn the_index_knows_what_a_change_concerns(steps in proptest::collection::vec(step(), 1..40)) {
        let mut index = Index::default();
        let (mut pods, mut services) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
        let mut published: std::collections::BTreeMap<Key, Vec<(&str, Value)>> = std::collections::BTreeMap::new();
        for step in steps {
            match step {
                Step::Pod(space, n, pod) => {
                    let key = Key::new(format!("ns{space}"), format!("w{n}"));
                    let object = pod.map(|(label, ready)| Arc::new(in_space(self::pod(n, ready), space, label)));
                    let concerned = index.observe_pod(&key, object.clone());
                    match object {
                        Some(object) => pods.insert(key, object),
                        None => pods.remove(&key),
                    };
                    for key in concerned {
                        published.insert(key.clone(), index.compute(&key, KUBE32));
                    }
                }
                Step::Service(space, n, label) => {
                    let key = Key::new(format!("ns{space}"), format!("s{n}"));
                    let object = label.map(|label| Arc::new(in_space(service(&key.name, json!({})), space, label)));
                    index.observe_service(&key, object.clone());
                    match object {
                        Some(object) => services.insert(key.clone(), object),
                        None => services.remove(&key),
                    };
                    published.insert(key.clone(), index.compute(&key, KUBE32));
                }
            }
            for (key, published) in &published {
                let expected = services.get(key).map_or(Vec::new(), |service| {
                    let wanted = &service["spec"]["selector"]["app"];
                    let own = pods.iter().filter(|(pod, object)| {
                        pod.namespace == key.namespace && object["metadata"]["labels"]["app"] == *wanted
                    });
                    compute(service, own.map(|(_, object)| object.as_ref()), KUBE32)
                });
                prop_assert_eq!(published, &expected);
            }
        }
    }
}
