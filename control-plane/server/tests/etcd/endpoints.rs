//! Endpoints that two control planes on one etcd compute, each for itself, from the history that they share.

use serde_json::{Value, json};

use crate::etcd::Etcd;
use crate::http::{call, get, watch};
use crate::planes::{PODS, plane, pod};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}

#[test]
fn ep_01_what_one_control_plane_accepts_the_other_computes_with() {
    let Some(etcd) = Etcd::start() else { return };
    let planes = [plane(&etcd, &[]), plane(&etcd, &[])];
    let [one, other] = &planes;
    let listed = get(&other.url, SLICES);
    let mut slices = watch(&other.url, &format!("{SLICES}?watch=1&resourceVersion={}", version(&listed)));
    let mut endpoints =
        watch(&other.url, &format!("{ENDPOINTS}?watch=1&resourceVersion={}", version(&listed)));
    let service =
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let service = call(&one.url, "POST", SERVICES, &service, 201);
    let mut pod = pod("w0");
    pod["metadata"]["labels"] = json!({"app": "web"});
    call(&one.url, "POST", PODS, &pod, 201);
    let ready = json!({"type": "Ready", "status": "True"});
    let status = json!({"status": {"phase": "Running", "podIP": "10.0.0.7", "conditions": [ready]}});
    let changed = call(&one.url, "PATCH", &format!("{PODS}/w0/status"), &status, 200);
    // At once, by whichever is asked.
    for plane in &planes {
        let shown = get(&plane.url, &format!("{ENDPOINTS}/web"));
        assert_eq!(shown["subsets"][0]["addresses"][0]["ip"], "10.0.0.7");
        assert_eq!(version(&shown), version(&changed));
    }
    assert_eq!(get(&one.url, SLICES)["items"], get(&other.url, SLICES)["items"]);
    for events in [&mut slices as &mut dyn Iterator<Item = Value>, &mut endpoints] {
        let told: Vec<(String, String)> = events
            .take(2)
            .map(|event| (event["type"].as_str().unwrap().to_owned(), version(&event["object"]).to_owned()))
            .collect();
        let of = |kind: &str, cause: &Value| (kind.to_owned(), version(cause).to_owned());
        assert_eq!(told, [of("ADDED", &service), of("MODIFIED", &changed)]);
    }
    call(&one.url, "DELETE", &format!("{SERVICES}/web"), &Value::Null, 200);
    assert_eq!(get(&other.url, ENDPOINTS)["items"], json!([]));
    assert_eq!(slices.next().unwrap()["type"], "DELETED");
    assert!(
        etcd.etcdctl(&["get", "/registry/services/endpoints/", "--prefix", "--keys-only"]).trim().is_empty()
    );
}
