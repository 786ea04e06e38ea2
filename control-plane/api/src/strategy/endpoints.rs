//! Endpoints and endpoint slices: defaults, checks, and what an update may not change.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::meta;
use super::names;
use super::pod_spec::PORT;
use crate::json::{self, set_default};
use crate::kinds::Kind;
use crate::status::{Cause, CauseReason};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
/// Addresses of an endpoint and ports of a slice.
const MAX_SMALL: usize = 100;
const MAX_ENDPOINTS: usize = 1000;
const MAX_TOPOLOGY: usize = 16;
const MAX_ZONES: usize = 8;

/// Fills in protocols, and in slices the names of ports.
pub(super) fn defaults(kind: &Kind, object: &mut Value) {
    let of = |value: &mut Value, named: bool| {
        for port in value.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            let port = json::object_mut(port, &[]);
            set_default(port, "protocol", "TCP");
            if named {
                set_default(port, "name", "");
            }
        }
    };
    if kind.resource == "endpointslices" {
        of(object, true);
    } else {
        for subset in object.get_mut("subsets").and_then(Value::as_array_mut).into_iter().flatten() {
            of(subset, false);
        }
    }
}

/// Checks Endpoints; their metadata is checked by the caller.
pub(super) fn validate(object: &Value, causes: &mut Vec<Cause>) {
    for (index, subset) in json::list(object, &["subsets"]).iter().enumerate() {
        let path = format!("subsets[{index}]");
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| json::list(subset, &[list]).is_empty()) {
            causes.push(Cause::required(&path, "must specify `addresses` or `notReadyAddresses`"));
        }
        for list in lists {
            for (index, address) in json::list(subset, &[list]).iter().enumerate() {
                validate_address(address, &format!("{path}.{list}[{index}]"), causes);
            }
        }
        let ports = json::list(subset, &["ports"]);
        for (index, port) in ports.iter().enumerate() {
            validate_port(port, ports.len() > 1, &format!("{path}.ports[{index}]"), causes);
        }
    }
}

fn validate_address(address: &Value, path: &str, causes: &mut Vec<Cause>) {
    let before = causes.len();
    let text = |field: &str| json::text(address, &[field]);
    let ip = text("ip");
    if ip.parse::<IpAddr>().is_err() {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        causes.push(Cause::invalid(format!("{path}.ip"), &json!(ip), why));
    }
    let checks: [(&str, names::Check); 2] =
        [("hostname", names::dns_label), ("nodeName", names::dns_subdomain)];
    for (field, check) in checks {
        if !text(field).is_empty() {
            for why in check(text(field)) {
                causes.push(Cause::invalid(format!("{path}.{field}"), &json!(text(field)), &why));
            }
        }
    }
    if causes.len() == before {
        special_address(ip, &format!("{path}.ip"), causes);
    }
}

/// Refuses addresses that no client can mean: this machine, any machine, this link.
fn special_address(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let mut refuse = |why: &str| causes.push(Cause::invalid(field, &json!(text), why));
    let Ok(ip) = text.parse::<IpAddr>() else {
        refuse("must be a valid IP address");
        return;
    };
    if ip.is_unspecified() {
        refuse(&format!("may not be unspecified ({text})"));
    }
    if ip.is_loopback() {
        refuse("may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (link_local, multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    if link_local {
        refuse("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if multicast {
        refuse("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

fn validate_port(port: &Value, named: bool, path: &str, causes: &mut Vec<Cause>) {
    let name = json::text(port, &["name"]);
    if named && name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    } else if !name.is_empty() {
        for why in names::dns_label(name) {
            causes.push(Cause::invalid(format!("{path}.name"), &json!(name), &why));
        }
    }
    let number = json::int(port, &["port"]).unwrap_or(0);
    if !(1..=65535).contains(&number) {
        causes.push(Cause::invalid(format!("{path}.port"), &json!(number), PORT));
    }
    validate_protocol(port, path, causes);
}

/// A protocol that is known, and an application protocol that has a proper name.
fn validate_protocol(port: &Value, path: &str, causes: &mut Vec<Cause>) {
    let protocol = json::text(port, &["protocol"]);
    if !PROTOCOLS.contains(&protocol) {
        causes.push(Cause::not_supported(format!("{path}.protocol"), protocol, PROTOCOLS));
    }
    if let Some(Value::String(name)) = port.get("appProtocol") {
        for why in names::qualified(name) {
            causes.push(Cause::invalid(format!("{path}.appProtocol"), &json!(name), &why));
        }
    }
}

fn too_many(field: String, count: usize, limit: usize) -> Cause {
    let message = format!("Too many: {count}: must have at most {limit} items");
    Cause::new(field, CauseReason::TooMany, message)
}

/// Checks an endpoint slice; its metadata is checked by the caller.
pub(super) fn validate_slice(object: &Value, causes: &mut Vec<Cause>) {
    let kind = json::text(object, &["addressType"]);
    match kind {
        "IPv4" | "IPv6" | "FQDN" => {}
        "" => causes.push(Cause::required("addressType", "")),
        other => causes.push(Cause::not_supported("addressType", other, &["FQDN", "IPv4", "IPv6"])),
    }
    let endpoints = json::list(object, &["endpoints"]);
    if endpoints.len() > MAX_ENDPOINTS {
        causes.push(too_many("endpoints".to_owned(), endpoints.len(), MAX_ENDPOINTS));
    } else {
        for (index, endpoint) in endpoints.iter().enumerate() {
            validate_endpoint(endpoint, kind, &format!("endpoints[{index}]"), causes);
        }
    }
    let ports = json::list(object, &["ports"]);
    if ports.len() > MAX_SMALL {
        causes.push(too_many("ports".to_owned(), ports.len(), MAX_SMALL));
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("ports[{index}]");
        let name = json::text(port, &["name"]);
        if !name.is_empty() {
            for why in names::dns_label(name) {
                causes.push(Cause::invalid(format!("{path}.name"), &json!(name), &why));
            }
        }
        if seen.contains(&name) {
            causes.push(Cause::duplicate(format!("{path}.name"), &json!(name)));
        }
        seen.push(name);
        validate_protocol(port, &path, causes);
    }
}

fn validate_endpoint(endpoint: &Value, kind: &str, path: &str, causes: &mut Vec<Cause>) {
    let addresses = json::list(endpoint, &["addresses"]);
    if addresses.is_empty() {
        causes.push(Cause::required(format!("{path}.addresses"), "must contain at least 1 address"));
    } else if addresses.len() > MAX_SMALL {
        causes.push(too_many(format!("{path}.addresses"), addresses.len(), MAX_SMALL));
    }
    for (index, address) in addresses.iter().enumerate() {
        let field = format!("{path}.addresses[{index}]");
        let text = address.as_str().unwrap_or_default();
        let ip = text.parse::<IpAddr>().ok();
        match kind {
            "IPv4" | "IPv6" => {
                let fits = ip.is_some_and(|ip| ip.is_ipv4() == (kind == "IPv4"));
                if !fits {
                    causes.push(Cause::invalid(&field, address, &format!("must be a valid {kind} address")));
                }
                special_address(text, &field, causes);
            }
            "FQDN" => fully_qualified(text, &field, causes),
            _ => {}
        }
    }
    if let Some(node) = endpoint.get("nodeName").and_then(Value::as_str) {
        for why in names::dns_subdomain(node) {
            causes.push(Cause::invalid(format!("{path}.nodeName"), &json!(node), &why));
        }
    }
    if let Some(topology) = json::object(endpoint, &["deprecatedTopology"]) {
        let field = format!("{path}.deprecatedTopology");
        if topology.len() > MAX_TOPOLOGY {
            causes.push(too_many(field.clone(), topology.len(), MAX_TOPOLOGY));
        }
        meta::validate_labels(topology, &field, causes);
    }
    if let Some(name) = endpoint.get("hostname").and_then(Value::as_str) {
        for why in names::dns_label(name) {
            causes.push(Cause::invalid(format!("{path}.hostname"), &json!(name), &why));
        }
    }
    let zones = json::list(endpoint, &["hints", "forZones"]);
    if zones.len() > MAX_ZONES {
        causes.push(too_many(format!("{path}.hints.forZones"), zones.len(), MAX_ZONES));
    }
}

fn fully_qualified(text: &str, field: &str, causes: &mut Vec<Cause>) {
    if text.is_empty() {
        causes.push(Cause::required(field, ""));
        return;
    }
    for why in names::dns_subdomain(text) {
        causes.push(Cause::invalid(field, &json!(text), &why));
    }
    if text.split('.').count() < 2 {
        let why = "should be a domain with at least two segments separated by dots";
        causes.push(Cause::invalid(field, &json!(text), why));
    }
}

/// A slice keeps the type of its addresses.
pub(super) fn validate_slice_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if old.get("addressType") != new.get("addressType") {
        let shown = new.get("addressType").unwrap_or(&Value::Null);
        causes.push(Cause::invalid("addressType", shown, "field is immutable"));
    }
}
