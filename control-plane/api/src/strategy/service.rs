//! Services: defaults, checks, and what an update may not change.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::pod_spec::PORT;
use super::{Identity, go, meta, names};
use crate::json::{self, set_default};
use crate::kinds::Kind;
use crate::status::{ApiError, Cause, CauseReason, quote};

/// Fills in a new service.
pub(super) fn create(object: &mut Value, identity: &Identity<'_>) {
    defaults(object);
    let external = json::text(object, &["spec", "type"]) == "ExternalName";
    let spec = json::object_mut(object, &["spec"]);
    if !external {
        if let Some(address) = identity.cluster_ip {
            set_default(spec, "clusterIP", address);
        }
        if let Some(address) = spec.get("clusterIP").cloned() {
            set_default(spec, "clusterIPs", json!([address]));
        }
    }
    object["status"] = json!({"loadBalancer": {}});
}

/// Fills in what a service leaves open, new or changed.
pub(super) fn defaults(object: &mut Value) {
    let spec = json::object_mut(object, &["spec"]);
    set_default(spec, "sessionAffinity", "None");
    set_default(spec, "type", "ClusterIP");
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if spec["sessionAffinity"] == "ClientIP" {
        set_default(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10_800}}));
    }
    if kind != "ExternalName" {
        set_default(spec, "internalTrafficPolicy", "Cluster");
        set_default(spec, "ipFamilies", json!(["IPv4"]));
        set_default(spec, "ipFamilyPolicy", "SingleStack");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        set_default(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set_default(spec, "allocateLoadBalancerNodePorts", true);
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let number = port.get("port").cloned().unwrap_or(json!(0));
        let port = json::object_mut(port, &[]);
        set_default(port, "protocol", "TCP");
        let unset = port.get("targetPort").is_none_or(|target| target == 0 || target == "");
        if unset {
            port.insert("targetPort".to_owned(), number);
        }
    }
}

/// Fills in an updated service from what it was: addresses stay, and so do ports of nodes that it still needs.
pub(super) fn default_update(old: &Value, new: &mut Value) {
    defaults(new);
    let external = json::text(new, &["spec", "type"]) == "ExternalName";
    let keeps_ports = uses_node_ports(old);
    let needs_ports = uses_node_ports(new);
    let spec = json::object_mut(new, &["spec"]);
    for field in ["clusterIP", "clusterIPs"] {
        if let Some(value) = json::at(old, &["spec", field]).filter(|_| !external) {
            set_default(spec, field, value.clone());
        }
    }
    if !keeps_ports {
        return;
    }
    let before = json::list(old, &["spec", "ports"]);
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let same =
            before.iter().find(|was| was["port"] == port["port"] && was["protocol"] == port["protocol"]);
        let had = same.and_then(|was| json::int(was, &["nodePort"])).unwrap_or(0);
        let has = json::int(port, &["nodePort"]).unwrap_or(0);
        let port = json::object_mut(port, &[]);
        if needs_ports && has == 0 && had != 0 {
            port.insert("nodePort".to_owned(), json!(had));
        } else if !needs_ports && has == had {
            port.remove("nodePort");
        }
    }
}

/// Whether nodes pass traffic on to the service at ports of their own.
fn uses_node_ports(service: &Value) -> bool {
    matches!(json::text(service, &["spec", "type"]), "NodePort" | "LoadBalancer")
}

/// Ports of nodes, and the network that services have their addresses in.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;
const NETWORK: [u8; 2] = [10, 96];

/// Gives a service the ports of nodes that it needs, and holds the address and ports that it asks for against those of
/// the other services. `old` is what it was.
///
/// Errors: 422 for an address or port that is out of range or taken.
pub fn allocate<'a>(
    kind: &Kind,
    service: &mut Value,
    old: Option<&Value>,
    all: impl Iterator<Item = &'a Value>,
) -> Result<(), ApiError> {
    let place = |service: &Value| {
        ["namespace", "name"].map(|field| json::text(service, &["metadata", field]).to_owned())
    };
    // One of the same name is this one, or will refuse it by its name.
    let own = place(service);
    let others: Vec<&Value> = all.filter(|other| place(other) != own).collect();
    let mut causes = Vec::new();
    check_address(service, old, &others, &mut causes);
    if uses_node_ports(service)
        && service.pointer("/spec/allocateLoadBalancerNodePorts") != Some(&json!(false))
    {
        let ports = |service: &Value| -> Vec<i64> {
            let ports = json::list(service, &["spec", "ports"]).iter();
            ports.filter_map(|port| json::int(port, &["nodePort"])).filter(|port| *port != 0).collect()
        };
        let taken: BTreeSet<i64> = others.iter().flat_map(|other| ports(other)).collect();
        let mut own: BTreeSet<i64> = ports(service).into_iter().collect();
        let list = json::object_mut(service, &["spec"]).get_mut("ports").and_then(Value::as_array_mut);
        for (index, port) in list.into_iter().flatten().enumerate() {
            let field = format!("spec.ports[{index}].nodePort");
            match json::int(port, &["nodePort"]).unwrap_or(0) {
                0 => match NODE_PORTS.clone().find(|free| !taken.contains(free) && !own.contains(free)) {
                    Some(free) => {
                        own.insert(free);
                        json::object_mut(port, &[]).insert("nodePort".to_owned(), json!(free));
                    }
                    None => return Err(ApiError::internal("failed to allocate a nodePort: range is full")),
                },
                asked if !NODE_PORTS.contains(&asked) => {
                    let why =
                        "provided port is not in the valid range. The range of valid ports is 30000-32767";
                    causes.push(Cause::invalid(field, &json!(asked), why));
                }
                asked if taken.contains(&asked) => {
                    causes.push(Cause::invalid(field, &json!(asked), "provided port is already allocated"));
                }
                _ => {}
            }
        }
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(kind, json::text(service, &["metadata", "name"]), causes))
}

fn check_address(service: &Value, old: Option<&Value>, others: &[&Value], causes: &mut Vec<Cause>) {
    let of = |service: &Value| json::text(service, &["spec", "clusterIP"]).to_owned();
    let address = of(service);
    if matches!(address.as_str(), "" | "None") || old.map(of).as_ref() == Some(&address) {
        return;
    }
    let inside = address.parse::<Ipv4Addr>().is_ok_and(|ip| ip.octets()[..2] == NETWORK);
    let why = if !inside {
        let range = "The range of valid IPs is 10.96.0.0/16";
        format!(
            "failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. {range}"
        )
    } else if others.iter().any(|other| of(other) == address) {
        format!("failed to allocate IP {address}: provided IP is already allocated")
    } else {
        return;
    };
    causes.push(Cause::invalid_text("spec.clusterIPs", &go::strings(&[json!(address)]), &why));
}

/// Checks a service; its metadata is checked by the caller.
pub(super) fn validate(object: &Value, causes: &mut Vec<Cause>) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let kind = json::text(spec, &["type"]);
    let ports = json::list(spec, &["ports"]);
    let headless = json::text(spec, &["clusterIP"]) == "None";
    if ports.is_empty() && kind != "ExternalName" && !headless {
        causes.push(Cause::required("spec.ports", ""));
    }
    if kind == "ExternalName" {
        let name = json::text(spec, &["externalName"]);
        if name.is_empty() {
            causes.push(Cause::required("spec.externalName", ""));
        } else {
            for why in names::dns_subdomain(name) {
                causes.push(Cause::invalid("spec.externalName", &json!(name), &why));
            }
        }
    }
    let mut named: Vec<&str> = Vec::new();
    let mut open: Vec<(i64, &str)> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = json::text(port, &["name"]);
        if name.is_empty() && ports.len() > 1 {
            causes.push(Cause::required(format!("{path}.name"), ""));
        } else if !name.is_empty() {
            for why in names::dns_label(name) {
                causes.push(Cause::invalid(format!("{path}.name"), &json!(name), &why));
            }
            if named.contains(&name) {
                causes.push(Cause::duplicate(format!("{path}.name"), &json!(name)));
            }
            named.push(name);
        }
        let number = json::int(port, &["port"]).unwrap_or(0);
        if !(1..=65535).contains(&number) {
            causes.push(Cause::invalid(format!("{path}.port"), &json!(number), PORT));
        }
        let protocol = json::text(port, &["protocol"]);
        if !matches!(protocol, "SCTP" | "TCP" | "UDP") {
            causes.push(Cause::not_supported(format!("{path}.protocol"), protocol, &["SCTP", "TCP", "UDP"]));
        }
        if kind == "ClusterIP" && json::int(port, &["nodePort"]).is_some_and(|port| port != 0) {
            let why = "may not be used when `type` is 'ClusterIP'";
            causes.push(Cause::forbidden(format!("{path}.nodePort"), why));
        }
        match port.get("targetPort") {
            Some(Value::String(text)) => {
                for why in names::port_name(text) {
                    causes.push(Cause::invalid(format!("{path}.targetPort"), &json!(text), &why));
                }
            }
            Some(target) if !(1..=65535).contains(&target.as_i64().unwrap_or(0)) => {
                causes.push(Cause::invalid(format!("{path}.targetPort"), target, PORT));
            }
            Some(_) | None => {}
        }
        if open.contains(&(number, protocol)) {
            let shown = format!(
                "core.ServicePort{{Name:\"\", Protocol:{}, AppProtocol:(*string)(nil), Port:{number}, \
                 TargetPort:intstr.IntOrString{{Type:0, IntVal:0, StrVal:\"\"}}, NodePort:0}}",
                quote(protocol)
            );
            causes.push(Cause::new(&path, CauseReason::Duplicate, format!("Duplicate value: {shown}")));
        }
        open.push((number, protocol));
    }
    if let Some(selector) = json::object(spec, &["selector"]) {
        meta::validate_labels(selector, "spec.selector", causes);
    }
    let affinity = json::text(spec, &["sessionAffinity"]);
    if !matches!(affinity, "ClientIP" | "None") {
        causes.push(Cause::not_supported("spec.sessionAffinity", affinity, &["ClientIP", "None"]));
    }
    if !matches!(kind, "ClusterIP" | "ExternalName" | "LoadBalancer" | "NodePort") {
        let known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
        causes.push(Cause::not_supported("spec.type", kind, &known));
    }
}
