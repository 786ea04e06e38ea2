//! Addresses of services and the ports of nodes that they get.

use serde_json::{Value, json};

use super::allocate_for_service;
use super::tests::{changed, create, kind, refused, update};
use crate::decode::Dialect;
use crate::status::ApiError;

fn service(spec: Value) -> Value {
    let port = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    create("services", changed(&port, json!({"spec": spec}))).unwrap()
}

fn allocated(mut service: Value, old: Option<&Value>, others: &[Value]) -> Result<Value, ApiError> {
    service["metadata"]["name"] = json!("s");
    allocate_for_service(kind("services"), &mut service, old, others.iter())?;
    Ok(service)
}

fn port(service: &Value) -> i64 {
    service["spec"]["ports"][0]["nodePort"].as_i64().unwrap_or(0)
}

#[test]
fn node_ports_are_given_kept_and_taken_away() {
    let first = allocated(service(json!({"type": "NodePort"})), None, &[]).unwrap();
    assert_eq!(port(&first), 30_000);
    let other = changed(&first, json!({"metadata": {"name": "other"}}));
    let balanced = json!({"type": "LoadBalancer", "clusterIP": "10.96.0.8"});
    assert_eq!(port(&allocated(service(balanced), None, &[other]).unwrap()), 30_001);
    let open = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false});
    assert_eq!(port(&allocated(service(open), None, &[]).unwrap()), 0);
    assert_eq!(port(&allocated(service(json!({})), None, &[]).unwrap()), 0);

    let renamed = json!({"spec": {"ports": [{"port": 80, "targetPort": 8080}]}});
    assert_eq!(port(&update("services", &first, renamed).unwrap()), 30_000);
    let inside =
        update("services", &first, json!({"spec": {"type": "ClusterIP", "externalTrafficPolicy": null}}));
    assert_eq!(port(&inside.unwrap()), 0);
    let two = json!({"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}});
    let two = allocated(update("services", &first, two).unwrap(), Some(&first), &[]).unwrap();
    assert_eq!((port(&two), &two["spec"]["ports"][1]["nodePort"]), (30_000, &json!(30_001)));
}

#[test]
fn addresses_and_ports_that_cannot_be_had_are_refused() {
    let other = changed(
        &allocated(service(json!({"type": "NodePort"})), None, &[]).unwrap(),
        json!({"metadata": {"name": "o"}}),
    );
    let refuse = |spec: Value, causes: &str| {
        let error = allocated(service(spec), None, std::slice::from_ref(&other)).unwrap_err();
        assert_eq!((error.code, error.message), (422, format!("Service \"s\" is invalid: {causes}")));
    };
    refuse(
        json!({"clusterIP": "10.0.0.1"}),
        "spec.clusterIPs: Invalid value: []string{\"10.0.0.1\"}: failed to allocate IP 10.0.0.1: the provided IP (10.0.0.1) is \
         not in the valid range. The range of valid IPs is 10.96.0.0/16",
    );
    refuse(
        json!({"clusterIP": "10.96.0.9"}),
        "spec.clusterIPs: Invalid value: []string{\"10.96.0.9\"}: failed to allocate IP 10.96.0.9: provided IP is already \
         allocated",
    );
    let own = |port: i64| json!({"type": "NodePort", "clusterIP": "10.96.0.8", "ports": [{"port": 80, "nodePort": port}]});
    refuse(own(30_000), "spec.ports[0].nodePort: Invalid value: 30000: provided port is already allocated");
    refuse(
        own(80),
        "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is \
         30000-32767",
    );
    assert!(allocated(service(json!({"clusterIP": "None"})), None, std::slice::from_ref(&other)).is_ok());
    let same = service(json!({"clusterIP": "10.96.0.9"}));
    assert!(allocated(same.clone(), Some(&same), std::slice::from_ref(&other)).is_ok());
    // The store refuses a second one of the same name, in its own words.
    assert!(allocated(same.clone(), None, &[same]).is_ok());
    let body = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "nodePort": 30_000}]}});
    let message = "Service \"s\" is invalid: spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'";
    refused(Dialect::Kube32, "services", body, 422, message);
}
