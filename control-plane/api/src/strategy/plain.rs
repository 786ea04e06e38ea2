//! Nodes, namespaces, services, leases, events, config maps, secrets: defaults, validation, immutable fields.

use serde_json::{Value, json};

use super::pod_spec::PORT;
use super::{Context, Identity, meta, names, resources};
use crate::decode::Dialect;
use crate::json::{self, set_default};
use crate::kinds::Kind;
use crate::status::{Cause, quote};

/// Fills in a new object of one of these kinds.
pub(super) fn create(kind: &Kind, object: &mut Value, identity: &Identity<'_>) {
    match kind.resource {
        "namespaces" => {
            let name = json!(json::text(object, &["metadata", "name"]));
            json::object_mut(object, &["metadata", "labels"])
                .insert("kubernetes.io/metadata.name".to_owned(), name);
            let spec = json::object_mut(object, &["spec"]);
            let mut finalizers = match spec.remove("finalizers") {
                Some(Value::Array(list)) => list,
                Some(_) | None => Vec::new(),
            };
            if !finalizers.contains(&json!("kubernetes")) {
                finalizers.push(json!("kubernetes"));
            }
            spec.insert("finalizers".to_owned(), Value::Array(finalizers));
            object["status"] = json!({"phase": "Active"});
        }
        "services" => create_service(object, identity),
        "events" => {
            // Kubernetes keeps no order of these; readers want a namespace beside the name of what it is about.
            json::object_mut(object, &["involvedObject"]);
        }
        "secrets" => {
            secret_data(object);
            set_default(json::object_mut(object, &[]), "type", "Opaque");
        }
        _ => {}
    }
}

/// Fills in an updated object of one of these kinds from what it was.
pub(super) fn default_update(kind: &Kind, old: &Value, new: &mut Value) {
    match kind.resource {
        "namespaces" => {
            // Only the finalize subresource writes these.
            json::object_mut(new, &[]).insert("spec".to_owned(), old["spec"].clone());
            let name = json!(json::text(old, &["metadata", "name"]));
            json::object_mut(new, &["metadata", "labels"])
                .insert("kubernetes.io/metadata.name".to_owned(), name);
        }
        "services" => {
            let external = json::text(new, &["spec", "type"]) == "ExternalName";
            default_service(new);
            let spec = json::object_mut(new, &["spec"]);
            for field in ["clusterIP", "clusterIPs"] {
                if let Some(value) = json::at(old, &["spec", field]).filter(|_| !external) {
                    set_default(spec, field, value.clone());
                }
            }
        }
        "secrets" => {
            secret_data(new);
            if let Some(kind) = old.get("type") {
                set_default(json::object_mut(new, &[]), "type", kind.clone());
            }
        }
        _ => {}
    }
}

/// Text under `stringData` is a way to write `data` without base64.
fn secret_data(object: &mut Value) {
    let Some(Value::Object(texts)) = json::object_mut(object, &[]).remove("stringData") else { return };
    let data = json::object_mut(object, &["data"]);
    for (key, text) in texts {
        data.insert(key, json!(crate::typed::base64(text.as_str().unwrap_or_default().as_bytes())));
    }
}

fn create_service(object: &mut Value, identity: &Identity<'_>) {
    default_service(object);
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

fn default_service(object: &mut Value) {
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

/// Checks an object of one of these kinds; its metadata is checked by the caller.
pub(super) fn validate(kind: &Kind, object: &Value, context: &Context, causes: &mut Vec<Cause>) {
    match kind.resource {
        "nodes" => validate_node(object, context.dialect, causes),
        "services" => validate_service(object, causes),
        "leases" => validate_lease(object, causes),
        "events" => validate_event(object, causes),
        "configmaps" => validate_keys(object, &["data", "binaryData"], causes),
        "secrets" => validate_keys(object, &["data"], causes),
        "namespaces" => {
            for (index, finalizer) in json::list(object, &["spec", "finalizers"]).iter().enumerate() {
                for why in names::qualified(finalizer.as_str().unwrap_or_default()) {
                    causes.push(Cause::invalid(format!("spec.finalizers[{index}]"), finalizer, &why));
                }
            }
        }
        _ => {}
    }
}

/// Checks what an update of one of these kinds may not change.
pub(super) fn validate_update(kind: &Kind, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    match kind.resource {
        "nodes" => {
            for field in ["podCIDR", "providerID"] {
                let (before, after) = (json::text(old, &["spec", field]), json::text(new, &["spec", field]));
                if !before.is_empty() && before != after {
                    let why = format!("node updates may not change {field} except from \"\" to valid");
                    causes.push(Cause::forbidden(format!("spec.{field}"), &why));
                }
            }
        }
        "services" => {
            let address = |object| json::text(object, &["spec", "clusterIP"]).to_owned();
            let (before, after) = (address(old), address(new));
            let external = json::text(new, &["spec", "type"]) == "ExternalName";
            if !before.is_empty() && before != after && !external {
                let shown = format!("[]string{{{}}}", quote(&after));
                causes.push(Cause::invalid_text("spec.clusterIPs[0]", &shown, "may not change once set"));
            }
        }
        "configmaps" | "secrets" => {
            if json::flag(old, &["immutable"]) {
                for field in ["immutable", "data", "binaryData"] {
                    if old.get(field) != new.get(field) {
                        let why = "field is immutable when `immutable` is set";
                        causes.push(Cause::forbidden(field, why));
                    }
                }
            }
            if kind.resource == "secrets" && old.get("type") != new.get("type") {
                let shown = new.get("type").cloned().unwrap_or(Value::Null);
                causes.push(Cause::invalid("type", &shown, "field is immutable"));
            }
        }
        _ => {}
    }
}

/// Checks a write of a node's status.
pub(super) fn validate_node_status(object: &Value, dialect: Dialect, causes: &mut Vec<Cause>) {
    for list in ["capacity", "allocatable"] {
        if let Some(amounts) = json::at(object, &["status", list]) {
            resources::validate_list(amounts, &format!("status.{list}"), dialect, causes);
        }
    }
}

fn validate_node(object: &Value, dialect: Dialect, causes: &mut Vec<Cause>) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, taint) in json::list(object, &["spec", "taints"]).iter().enumerate() {
        let path = format!("spec.taints[{index}]");
        let text = |field: &str| json::text(taint, &[field]);
        let (key, effect) = (text("key"), text("effect"));
        for why in names::qualified(key) {
            causes.push(Cause::invalid(format!("{path}.key"), &json!(key), &why));
        }
        let wrong = names::label_value(text("value"));
        if !wrong.is_empty() {
            causes.push(Cause::invalid(format!("{path}.value"), &json!(text("value")), &wrong.join(";")));
        }
        match effect {
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            "" => causes.push(Cause::required(format!("{path}.effect"), "")),
            other => {
                let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
                causes.push(Cause::not_supported(format!("{path}.effect"), other, &known));
            }
        }
        if seen.contains(&(key, effect)) {
            let shown = format!(
                "core.Taint{{Key:{}, Value:{}, Effect:{}, TimeAdded:<nil>}}",
                quote(key),
                quote(text("value")),
                quote(effect)
            );
            let message = format!("Duplicate value: {shown}: taints must be unique by key and effect pair");
            causes.push(Cause::new(&path, crate::status::CauseReason::Duplicate, message));
        }
        seen.push((key, effect));
    }
    validate_node_status(object, dialect, causes);
}

fn validate_service(object: &Value, causes: &mut Vec<Cause>) {
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
            causes.push(Cause::new(
                &path,
                crate::status::CauseReason::Duplicate,
                format!("Duplicate value: {shown}"),
            ));
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

fn validate_lease(object: &Value, causes: &mut Vec<Cause>) {
    let positive = "must be greater than 0";
    if let Some(seconds) = json::int(object, &["spec", "leaseDurationSeconds"])
        && seconds <= 0
    {
        causes.push(Cause::invalid("spec.leaseDurationSeconds", &json!(seconds), positive));
    }
    if let Some(count) = json::int(object, &["spec", "leaseTransitions"])
        && count < 0
    {
        causes.push(Cause::invalid(
            "spec.leaseTransitions",
            &json!(count),
            "must be greater than or equal to 0",
        ));
    }
}

/// An event lies in the namespace of what it is about; one about something without a namespace lies in `default`.
fn validate_event(object: &Value, causes: &mut Vec<Cause>) {
    let about = json::text(object, &["involvedObject", "namespace"]);
    let namespace = json::text(object, &["metadata", "namespace"]);
    if about.is_empty() {
        if !matches!(namespace, "" | "default") {
            let why = "does not match event.namespace";
            causes.push(Cause::invalid("involvedObject.namespace", &json!(about), why));
        }
    } else if about != namespace {
        causes.push(Cause::invalid(
            "involvedObject.namespace",
            &json!(about),
            "does not match event.namespace",
        ));
    }
}

/// Checks the keys and the size of the data of a config map or secret.
fn validate_keys(object: &Value, fields: &[&str], causes: &mut Vec<Cause>) {
    const MAX_DATA: usize = 1024 * 1024;
    let mut total = 0;
    for field in fields {
        for (key, value) in json::object(object, &[field]).into_iter().flatten() {
            for why in names::config_key(key) {
                causes.push(Cause::invalid(format!("{field}[{key}]"), &json!(key), &why));
            }
            total += value.as_str().map_or(0, str::len);
        }
    }
    if total > MAX_DATA {
        causes.push(Cause::too_long("data", MAX_DATA));
    }
}
