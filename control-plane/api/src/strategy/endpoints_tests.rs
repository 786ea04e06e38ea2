//! Endpoints and endpoint slices: what is filled in, every refusal, and what is counted.

use serde_json::{Value, json};

use super::tests::{changed, create, refused, update, update_refused};
use crate::decode::Dialect;

fn invalid(resource: &str, body: Value, causes: &str) {
    let kind = if resource == "endpoints" { "Endpoints" } else { "EndpointSlice.discovery.k8s.io" };
    refused(Dialect::Kube32, resource, body, 422, &format!("{kind} \"web\" is invalid: {causes}"));
}

fn endpoints(subset: Value) -> Value {
    json!({"metadata": {"name": "web"}, "subsets": [subset]})
}

const IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

#[test]
fn endpoints_are_filled_in_and_checked() {
    let addresses = json!([{"ip": "10.1.1.1", "nodeName": "n"}]);
    let made =
        create("endpoints", endpoints(json!({"addresses": addresses, "ports": [{"port": 80}]}))).unwrap();
    assert_eq!(
        made["subsets"],
        json!([{"addresses": addresses, "ports": [{"port": 80, "protocol": "TCP"}]}])
    );
    assert!(made["metadata"].get("generation").is_none());
    assert!(create("endpoints", json!({"metadata": {"name": "web"}})).unwrap().get("subsets").is_none());

    let address = |address: Value| json!({"notReadyAddresses": [address]});
    let port = |ports: Value| json!({"addresses": addresses, "ports": ports});
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
                 end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let here = "subsets[0].notReadyAddresses[0]";
    let cases = [
        (json!({}), "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`".to_owned()),
        (address(json!({"ip": "1.2.3"})), format!("{here}.ip: Invalid value: \"1.2.3\": {IP}")),
        (
            address(json!({"ip": "127.0.0.1"})),
            format!("{here}.ip: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ),
        (
            address(json!({"ip": "0.0.0.0"})),
            format!("{here}.ip: Invalid value: \"0.0.0.0\": may not be unspecified (0.0.0.0)"),
        ),
        (
            address(json!({"ip": "169.254.1.1"})),
            format!(
                "{here}.ip: Invalid value: \"169.254.1.1\": may not be in the link-local range (169.254.0.0/16, fe80::/10)"
            ),
        ),
        (
            address(json!({"ip": "224.0.0.9"})),
            format!(
                "{here}.ip: Invalid value: \"224.0.0.9\": may not be in the link-local multicast range (224.0.0.0/24, \
                 ff02::/10)"
            ),
        ),
        (
            address(json!({"ip": "ff02::1"})),
            format!(
                "{here}.ip: Invalid value: \"ff02::1\": may not be in the link-local multicast range (224.0.0.0/24, \
                 ff02::/10)"
            ),
        ),
        (
            address(json!({"ip": "10.1.1.1", "hostname": "A"})),
            format!("{here}.hostname: Invalid value: \"A\": {label}"),
        ),
        (
            port(json!([{"port": 0}])),
            "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive".to_owned(),
        ),
        (
            port(json!([{"name": "a", "port": 1}, {"port": 2}])),
            "subsets[0].ports[1].name: Required value".to_owned(),
        ),
        (
            port(json!([{"name": "A", "port": 1}])),
            format!("subsets[0].ports[0].name: Invalid value: \"A\": {label}"),
        ),
        (
            port(json!([{"port": 1, "protocol": "ICMP"}])),
            "subsets[0].ports[0].protocol: Unsupported value: \"ICMP\": supported values: \"SCTP\", \"TCP\", \"UDP\""
                .to_owned(),
        ),
    ];
    for (subset, causes) in cases {
        invalid("endpoints", endpoints(subset), &causes);
    }
}

fn slice() -> Value {
    json!({
        "metadata": {"name": "web"},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.1.1"], "conditions": {"ready": true}}],
        "ports": [{"port": 80}],
    })
}

#[test]
fn slices_are_filled_in_and_counted() {
    let made = create("endpointslices", slice()).unwrap();
    assert_eq!(made["ports"], json!([{"name": "", "port": 80, "protocol": "TCP"}]));
    assert_eq!(made["metadata"]["generation"], 1);
    let empty = json!({"metadata": {"name": "web"}, "addressType": "IPv4"});
    let empty = create("endpointslices", empty).unwrap();
    assert_eq!((empty.get("endpoints"), empty.get("ports")), (Some(&Value::Null), Some(&Value::Null)));
    let generation =
        |change: Value| update("endpointslices", &made, change).unwrap()["metadata"]["generation"].clone();
    assert_eq!(generation(json!({"metadata": {"annotations": {"a": "b"}}})), 1);
    assert_eq!(generation(json!({"metadata": {"labels": {"a": "b"}}})), 2);
    assert_eq!(generation(json!({"endpoints": [{"addresses": ["10.1.1.2"]}]})), 2);
    update_refused(
        "endpointslices",
        &made,
        json!({"addressType": "FQDN", "endpoints": [{"addresses": ["a.example"]}]}),
        "EndpointSlice.discovery.k8s.io \"web\" is invalid: addressType: Invalid value: \"FQDN\": field is immutable",
    );
}

#[test]
fn slices_are_checked() {
    let many = |count: usize, one: Value| Value::Array(vec![one; count]);
    let endpoint = |change: Value| json!({"endpoints": [changed(&slice()["endpoints"][0], change)]});
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
                 end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let cases = [
        (json!({"addressType": null}), "addressType: Required value".to_owned()),
        (
            json!({"addressType": "IP"}),
            "addressType: Unsupported value: \"IP\": supported values: \"FQDN\", \"IPv4\", \"IPv6\"".to_owned(),
        ),
        (
            endpoint(json!({"addresses": []})),
            "endpoints[0].addresses: Required value: must contain at least 1 address".to_owned(),
        ),
        (
            endpoint(json!({"addresses": many(101, json!("10.1.1.1"))})),
            "endpoints[0].addresses: Too many: 101: must have at most 100 items".to_owned(),
        ),
        (
            json!({"endpoints": many(1001, json!({"addresses": ["10.1.1.1"]}))}),
            "endpoints: Too many: 1001: must have at most 1000 items".to_owned(),
        ),
        (
            endpoint(json!({"addresses": ["fd00::1"]})),
            "endpoints[0].addresses[0]: Invalid value: \"fd00::1\": must be a valid IPv4 address".to_owned(),
        ),
        (
            endpoint(json!({"addresses": ["x"]})),
            "[endpoints[0].addresses[0]: Invalid value: \"x\": must be a valid IPv4 address, endpoints[0].addresses[0]: \
             Invalid value: \"x\": must be a valid IP address]"
                .to_owned(),
        ),
        (
            json!({"addressType": "FQDN", "endpoints": [{"addresses": ["host"]}]}),
            "endpoints[0].addresses[0]: Invalid value: \"host\": should be a domain with at least two segments separated by \
             dots"
                .to_owned(),
        ),
        (
            endpoint(json!({"hostname": "A"})),
            format!("endpoints[0].hostname: Invalid value: \"A\": {label}"),
        ),
        (
            endpoint(json!({"hints": {"forZones": many(9, json!({"name": "z"}))}})),
            "endpoints[0].hints.forZones: Too many: 9: must have at most 8 items".to_owned(),
        ),
        (json!({"ports": many(101, json!({"port": 1}))}), "ports: Too many: 101: must have at most 100 items".to_owned()),
        (
            json!({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}),
            "ports[1].name: Duplicate value: \"a\"".to_owned(),
        ),
        (json!({"ports": [{"name": "A"}]}), format!("ports[0].name: Invalid value: \"A\": {label}")),
        (
            json!({"ports": [{"protocol": "x"}]}),
            "ports[0].protocol: Unsupported value: \"x\": supported values: \"SCTP\", \"TCP\", \"UDP\"".to_owned(),
        ),
    ];
    for (change, causes) in cases {
        invalid("endpointslices", changed(&slice(), change), &causes);
    }
}
