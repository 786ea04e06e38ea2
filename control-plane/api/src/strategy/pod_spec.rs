//! Validation of pod specs, for pods and for the templates of workloads, in the order and words of Kubernetes.
//!
//! What the boards have no notion of (host namespaces, security contexts, volume sources in depth) is type-checked
//! by the schema only.

use serde_json::{Value, json};

use super::meta::validate_labels;
use super::names;
use super::resources;
use crate::decode::Dialect;
use crate::json;
use crate::status::Cause;

const POSITIVE: &str = "must be between 1 and 2147483647, inclusive";
pub(super) const PORT: &str = "must be between 1 and 65535, inclusive";
pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Checks a pod spec found at `path`.
pub(super) fn validate(spec: &Value, path: &str, dialect: Dialect, causes: &mut Vec<Cause>) {
    let at = |field: &str| format!("{path}.{field}");
    let volumes = volumes(spec, path, causes);
    containers(spec, path, &volumes, dialect, causes);
    one_of(spec, "restartPolicy", path, &["Always", "OnFailure", "Never"], causes);
    one_of(spec, "dnsPolicy", path, &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], causes);
    if let Some(selector) = json::object(spec, &["nodeSelector"]) {
        validate_labels(selector, &at("nodeSelector"), causes);
    }
    node_affinity(spec, path, causes);
    let mut gates: Vec<&str> = Vec::new();
    for (index, gate) in json::list(spec, &["schedulingGates"]).iter().enumerate() {
        let name = json::text(gate, &["name"]);
        let field = format!("{}[{index}]", at("schedulingGates"));
        for why in names::qualified(name) {
            causes.push(Cause::invalid(format!("{field}.name"), &json!(name), &why));
        }
        if gates.contains(&name) {
            causes.push(Cause::duplicate(field, &json!(name)));
        }
        gates.push(name);
    }
    let checks: [(&str, names::Check); 4] = [
        ("serviceAccountName", names::dns_subdomain),
        ("nodeName", names::dns_subdomain),
        ("hostname", names::dns_label),
        ("subdomain", names::dns_label),
    ];
    for (field, check) in checks {
        let text = json::text(spec, &[field]);
        if !text.is_empty() {
            for why in check(text) {
                causes.push(Cause::invalid(at(field), &json!(text), &why));
            }
        }
    }
    if let Some(seconds) = json::int(spec, &["activeDeadlineSeconds"])
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        causes.push(Cause::invalid(at("activeDeadlineSeconds"), &json!(seconds), POSITIVE));
    }
    tolerations(json::list(spec, &["tolerations"]), &at("tolerations"), causes);
    let class = json::text(spec, &["priorityClassName"]);
    if !class.is_empty() {
        for why in names::dns_subdomain(class) {
            causes.push(Cause::invalid(at("priorityClassName"), &json!(class), &why));
        }
    }
}

/// Checks a field of a fixed set; a missing one is required.
fn one_of(spec: &Value, field: &str, path: &str, known: &[&str], causes: &mut Vec<Cause>) {
    let text = json::text(spec, &[field]);
    if text.is_empty() {
        causes.push(Cause::required(format!("{path}.{field}"), ""));
    } else if !known.contains(&text) {
        causes.push(Cause::not_supported(format!("{path}.{field}"), text, known));
    }
}

/// Checks the volumes and gives their names.
fn volumes<'a>(spec: &'a Value, path: &str, causes: &mut Vec<Cause>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for (index, volume) in json::list(spec, &["volumes"]).iter().enumerate() {
        let field = format!("{path}.volumes[{index}]");
        let name = json::text(volume, &["name"]);
        let sources = volume.as_object().map_or(0, |map| map.keys().filter(|key| *key != "name").count());
        match sources {
            0 => causes.push(Cause::required(&field, "must specify a volume type")),
            1 => {}
            _ => causes.push(Cause::forbidden(&field, "may not specify more than 1 volume type")),
        }
        if name.is_empty() {
            causes.push(Cause::required(format!("{field}.name"), ""));
        } else {
            for why in names::dns_label(name) {
                causes.push(Cause::invalid(format!("{field}.name"), &json!(name), &why));
            }
            if seen.contains(&name) {
                causes.push(Cause::duplicate(format!("{field}.name"), &json!(name)));
            }
        }
        seen.push(name);
    }
    seen
}

fn containers(spec: &Value, path: &str, volumes: &[&str], dialect: Dialect, causes: &mut Vec<Cause>) {
    if json::list(spec, &["containers"]).is_empty() {
        causes.push(Cause::required(format!("{path}.containers"), ""));
    }
    let mut seen: Vec<&str> = Vec::new();
    for list in ["containers", "initContainers"] {
        for (index, container) in json::list(spec, &[list]).iter().enumerate() {
            let field = format!("{path}.{list}[{index}]");
            validate_container(container, &field, volumes, dialect, causes);
            let name = json::text(container, &["name"]);
            if seen.contains(&name) && !name.is_empty() {
                causes.push(Cause::duplicate(format!("{field}.name"), &json!(name)));
            }
            seen.push(name);
        }
    }
}

fn validate_container(
    container: &Value,
    path: &str,
    volumes: &[&str],
    dialect: Dialect,
    causes: &mut Vec<Cause>,
) {
    let name = json::text(container, &["name"]);
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    } else {
        for why in names::dns_label(name) {
            causes.push(Cause::invalid(format!("{path}.name"), &json!(name), &why));
        }
    }
    validate_image(container, path, causes);
    one_of(container, "terminationMessagePolicy", path, &["File", "FallbackToLogsOnError"], causes);
    ports(container, path, causes);
    environment(container, path, causes);
    let mut mounted: Vec<&str> = Vec::new();
    for (index, mount) in json::list(container, &["volumeMounts"]).iter().enumerate() {
        let field = format!("{path}.volumeMounts[{index}]");
        let (name, target) = (json::text(mount, &["name"]), json::text(mount, &["mountPath"]));
        if name.is_empty() {
            causes.push(Cause::required(format!("{field}.name"), ""));
        }
        if !volumes.contains(&name) {
            let message = format!("Not found: {}", crate::status::quote(name));
            causes.push(Cause::new(format!("{field}.name"), crate::status::CauseReason::NotFound, message));
        }
        if target.is_empty() {
            causes.push(Cause::required(format!("{field}.mountPath"), ""));
        }
        if mounted.contains(&target) {
            causes.push(Cause::invalid(format!("{field}.mountPath"), &json!(target), "must be unique"));
        }
        mounted.push(target);
    }
    one_of(container, "imagePullPolicy", path, &["Always", "IfNotPresent", "Never"], causes);
    resources::validate(container, &format!("{path}.resources"), dialect, causes);
}

/// Checks a container's image; an update of a running pod checks this alone.
pub(super) fn validate_image(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    let image = json::text(container, &["image"]);
    if image.is_empty() {
        causes.push(Cause::required(format!("{path}.image"), ""));
    } else if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        causes.push(Cause::invalid(format!("{path}.image"), &json!(image), why));
    }
}

fn ports(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, port) in json::list(container, &["ports"]).iter().enumerate() {
        let field = format!("{path}.ports[{index}]");
        let name = json::text(port, &["name"]);
        if !name.is_empty() {
            for why in names::port_name(name) {
                causes.push(Cause::invalid(format!("{field}.name"), &json!(name), &why));
            }
            if seen.contains(&name) {
                causes.push(Cause::duplicate(format!("{field}.name"), &json!(name)));
            }
            seen.push(name);
        }
        match json::int(port, &["containerPort"]).unwrap_or(0) {
            0 => causes.push(Cause::required(format!("{field}.containerPort"), "")),
            number if !(1..=65535).contains(&number) => {
                causes.push(Cause::invalid(format!("{field}.containerPort"), &json!(number), PORT));
            }
            _ => {}
        }
        if let Some(number) = json::int(port, &["hostPort"])
            && !(1..=65535).contains(&number)
        {
            causes.push(Cause::invalid(format!("{field}.hostPort"), &json!(number), PORT));
        }
        one_of(port, "protocol", &field, &["SCTP", "TCP", "UDP"], causes);
    }
}

fn environment(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (index, variable) in json::list(container, &["env"]).iter().enumerate() {
        let field = format!("{path}.env[{index}]");
        let name = json::text(variable, &["name"]);
        if name.is_empty() {
            causes.push(Cause::required(format!("{field}.name"), ""));
        } else {
            for why in names::env_name(name) {
                causes.push(Cause::invalid(format!("{field}.name"), &json!(name), &why));
            }
        }
        if variable.get("valueFrom").is_some() && !json::text(variable, &["value"]).is_empty() {
            let why = "may not be specified when `value` is not empty";
            causes.push(Cause::invalid(format!("{field}.valueFrom"), &json!(""), why));
        }
    }
}

/// Checks tolerations found at `path`.
pub(super) fn tolerations(list: &[Value], path: &str, causes: &mut Vec<Cause>) {
    for (index, toleration) in list.iter().enumerate() {
        let text = |field: &str| json::text(toleration, &[field]);
        let at = |field: &str| format!("{path}[{index}].{field}");
        let (key, operator, effect) = (text("key"), text("operator"), text("effect"));
        if !key.is_empty() {
            for why in names::qualified(key) {
                causes.push(Cause::invalid(at("key"), &json!(key), &why));
            }
        }
        if key.is_empty() && operator != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes.push(Cause::invalid(at("operator"), &json!(operator), why));
        }
        if toleration.get("tolerationSeconds").is_some() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            causes.push(Cause::invalid(at("effect"), &json!(effect), why));
        }
        match operator {
            "" | "Equal" => {
                let wrong = names::label_value(text("value"));
                if !wrong.is_empty() {
                    causes.push(Cause::invalid(at("operator"), &json!(text("value")), &wrong.join(";")));
                }
            }
            "Exists" if text("value").is_empty() => {}
            "Exists" => {
                let why = "value must be empty when `operator` is 'Exists'";
                causes.push(Cause::invalid(at("operator"), &json!(text("value")), why));
            }
            other => causes.push(Cause::not_supported(at("operator"), other, &["Equal", "Exists"])),
        }
        if !matches!(effect, "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            causes.push(Cause::not_supported(at("effect"), effect, &known));
        }
    }
}

fn node_affinity(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(affinity) = json::at(spec, &["affinity", "nodeAffinity"]) else { return };
    let path = format!("{path}.affinity.nodeAffinity");
    if let Some(required) = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") {
        let path = format!("{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
        let terms = json::list(required, &["nodeSelectorTerms"]);
        if terms.is_empty() {
            causes.push(Cause::required(&path, "must have at least one node selector term"));
        }
        for (index, term) in terms.iter().enumerate() {
            node_selector_term(term, &format!("{path}[{index}]"), causes);
        }
    }
    let preferred = json::list(affinity, &["preferredDuringSchedulingIgnoredDuringExecution"]);
    for (index, one) in preferred.iter().enumerate() {
        let path = format!("{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]");
        let weight = json::int(one, &["weight"]).unwrap_or(0);
        if !(1..=100).contains(&weight) {
            causes.push(Cause::invalid(
                format!("{path}.weight"),
                &json!(weight),
                "must be in the range 1-100",
            ));
        }
        node_selector_term(
            one.get("preference").unwrap_or(&Value::Null),
            &format!("{path}.preference"),
            causes,
        );
    }
}

fn node_selector_term(term: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (index, expression) in json::list(term, &["matchExpressions"]).iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let values = json::list(expression, &["values"]).len();
        let field = format!("{path}.values");
        match json::text(expression, &["operator"]) {
            "In" | "NotIn" if values == 0 => {
                causes.push(Cause::required(field, "must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if values > 0 => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(Cause::forbidden(field, why));
            }
            "Gt" | "Lt" if values != 1 => {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                causes.push(Cause::required(field, why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => {
                let why = "not a valid selector operator";
                causes.push(Cause::invalid(format!("{path}.operator"), &json!(other), why));
            }
        }
        let key = json::text(expression, &["key"]);
        for why in names::qualified(key) {
            causes.push(Cause::invalid(format!("{path}.key"), &json!(key), &why));
        }
    }
}
