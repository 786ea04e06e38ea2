//! Services: defaults, checks, and what an update may not change.

use serde_json::{Value, json};

use super::pod_spec::PORT;
use super::{Identity, meta, names};
use crate::json::{self, set_default};
use crate::status::{Cause, CauseReason, quote};

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
