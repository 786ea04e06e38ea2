//! Resource names and amounts of containers and nodes.
//!
//! The kube32 dialect takes amounts that are no quantities (SCHED-20), and extended resources that are requested
//! without a limit; otherwise the rules are Kubernetes'.

use control_plane_core::quantity::Quantity;
use serde_json::{Value, json};

use super::names;
use super::pod_spec::NOT_NEGATIVE;
use crate::decode::Dialect;
use crate::json;
use crate::status::Cause;

/// Checks the `resources` of a container.
pub(super) fn validate(container: &Value, path: &str, dialect: Dialect, causes: &mut Vec<Cause>) {
    let limits = json::object(container, &["resources", "limits"]);
    for (name, amount) in limits.into_iter().flatten() {
        let field = format!("{path}.limits[{name}]");
        validate_name(name, &field, causes);
        validate_amount(name, amount, &field, dialect, causes);
    }
    for (name, amount) in json::object(container, &["resources", "requests"]).into_iter().flatten() {
        let field = format!("{path}.requests[{name}]");
        validate_name(name, &field, causes);
        validate_amount(name, amount, &field, dialect, causes);
        let bound_by_limit = !is_native(name) && dialect == Dialect::Kubernetes;
        match limits.and_then(|limits| limits.get(name)) {
            None if bound_by_limit => {
                let why = "Limit must be set for non overcommitable resources";
                causes.push(Cause::required(format!("{path}.limits"), why));
            }
            None => {}
            Some(limit) => {
                let (Some(asked), Some(bound)) = (parse(amount), parse(limit)) else { continue };
                let limit = limit.as_str().unwrap_or_default();
                let field = format!("{path}.requests");
                if bound_by_limit && asked != bound {
                    let why = format!("must be equal to {name} limit of {limit}");
                    causes.push(Cause::invalid(field, amount, &why));
                } else if asked > bound {
                    let why = format!("must be less than or equal to {name} limit of {limit}");
                    causes.push(Cause::invalid(field, amount, &why));
                }
            }
        }
    }
}

/// Checks one list of amounts of a node's status.
pub(super) fn validate_list(list: &Value, path: &str, dialect: Dialect, causes: &mut Vec<Cause>) {
    for (name, amount) in list.as_object().into_iter().flatten() {
        let field = format!("{path}.{name}");
        for why in names::qualified(name) {
            causes.push(Cause::invalid_text(&field, name, &why));
        }
        validate_amount(name, amount, &field, dialect, causes);
    }
}

fn parse(amount: &Value) -> Option<Quantity> {
    Quantity::parse(amount.as_str().unwrap_or_default()).ok()
}

/// Kubernetes' own resources; everything else is an extended resource.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_standard_container_resource(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-")
}

fn is_standard_resource(name: &str) -> bool {
    is_standard_container_resource(name)
        || name.starts_with("requests.")
        || name.starts_with("limits.")
        || matches!(
            name,
            "storage"
                | "pods"
                | "services"
                | "replicationcontrollers"
                | "resourcequotas"
                | "secrets"
                | "configmaps"
                | "persistentvolumeclaims"
                | "services.nodeports"
                | "services.loadbalancers"
        )
}

fn validate_name(name: &str, field: &str, causes: &mut Vec<Cause>) {
    for why in names::qualified(name) {
        causes.push(Cause::invalid_text(field, name, &why));
    }
    if !name.contains('/') {
        if !is_standard_resource(name) {
            causes.push(Cause::invalid_text(
                field,
                name,
                "must be a standard resource type or fully qualified",
            ));
        }
        if !is_standard_container_resource(name) {
            causes.push(Cause::invalid_text(field, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && name.starts_with("requests.") {
        causes.push(Cause::invalid_text(field, name, "doesn't follow extended resource name standard"));
    }
}

fn validate_amount(name: &str, amount: &Value, field: &str, dialect: Dialect, causes: &mut Vec<Cause>) {
    let Some(quantity) = parse(amount) else { return };
    if quantity.is_negative() {
        causes.push(Cause::invalid(field, amount, NOT_NEGATIVE));
    }
    if (!is_native(name) || name == "pods") && !quantity.is_whole() && dialect == Dialect::Kubernetes {
        causes.push(Cause::invalid_text(field, &go_quantity(amount), "must be an integer"));
    }
}

/// An amount as Go prints the struct, which is what Kubernetes shows in this one message.
fn go_quantity(amount: &Value) -> String {
    let text = amount.as_str().unwrap_or_default();
    let number = text.trim_end_matches(|ch: char| ch.is_ascii_alphabetic());
    let suffix = &text[number.len()..];
    let scale = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        _ => 0,
    };
    let (mut value, mut scale) = (number.parse::<i64>().unwrap_or_default(), scale);
    while value != 0 && value % 10 == 0 {
        value /= 10;
        scale += 1;
    }
    let text = json!(text);
    format!(
        "resource.Quantity{{i:resource.int64Amount{{value:{value}, scale:{scale}}}, \
         d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, s:{text}, Format:\"DecimalSI\"}}"
    )
}
