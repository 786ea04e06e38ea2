//! Endpoints and EndpointSlices through the API: read, listed and watched as if somebody wrote them; written by nobody.

mod histories;
mod reading;
mod switch;
mod watching;

use serde_json::{Value, json};

use crate::rig::{PODS, Rig, foreign};

pub const SERVICES: &str = "/api/v1/namespaces/default/services";
pub const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
pub const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/// A service of the pods that have the label `app` of its name.
pub fn service(name: &str) -> Value {
    let ports = json!([{"name": "http", "port": 80, "targetPort": 8080}]);
    json!({"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": ports}})
}

/// A pod of the service `app`.
pub fn member(name: &str, app: &str) -> Value {
    let mut pod = foreign(name);
    pod["metadata"]["labels"] = json!({"app": app});
    pod
}

/// Has a pod run at an address, and be ready or not.
#[track_caller]
pub fn run(rig: &Rig, name: &str, ip: &str, ready: bool) -> Value {
    let ready = json!({"type": "Ready", "status": if ready { "True" } else { "False" }});
    let status = json!({"status": {"phase": "Running", "podIP": ip, "conditions": [ready]}});
    rig.patch(&format!("{PODS}/{name}/status"), &status)
}

/// `ready | others` of Endpoints, as addresses.
pub fn addresses(endpoints: &Value) -> String {
    let of = |field: &str| {
        let subsets = endpoints["subsets"].as_array().cloned().unwrap_or_default();
        let lists = subsets.iter().filter_map(|subset| subset[field].as_array().cloned());
        let ips = lists.flatten().map(|address| address["ip"].as_str().unwrap_or("?").to_owned());
        ips.collect::<Vec<_>>().join(",")
    };
    format!("{} | {}", of("addresses"), of("notReadyAddresses"))
}

/// `address` of each endpoint of a slice that is ready.
pub fn ready(slice: &Value) -> Vec<String> {
    let endpoints = slice["endpoints"].as_array().cloned().unwrap_or_default();
    let ready = endpoints.iter().filter(|endpoint| endpoint["conditions"]["ready"] == true);
    ready.map(|endpoint| endpoint["addresses"][0].as_str().unwrap_or("?").to_owned()).collect()
}

/// The slices of a service.
pub fn slices(rig: &Rig, service: &str) -> Vec<Value> {
    rig.list(&format!("{SLICES}?labelSelector=kubernetes.io%2Fservice-name%3D{service}"))
}

pub fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}
