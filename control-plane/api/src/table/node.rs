//! Rows of nodes (GHOST-02: a node without a Ready condition is listed Unknown).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::format::{NONE, UNKNOWN, age, column, name_column, or};
use super::{Printer, age_column, name};
use crate::json;

pub(super) fn printer() -> Printer {
    Printer {
        columns: vec![
            name_column(),
            column("Status", "string", 0, "Whether the node is ready and takes pods"),
            column("Roles", "string", 0, "Roles from the node's labels"),
            age_column(),
            column("Version", "string", 0, "Version of the node's kubelet"),
            column("Internal-IP", "string", 1, "Address of the node inside the cluster"),
            column("External-IP", "string", 1, "Address of the node from outside"),
            column("OS-Image", "string", 1, "Operating system or firmware of the node"),
            column("Kernel-Version", "string", 1, "Kernel of the node"),
            column("Container-Runtime", "string", 1, "What runs the containers"),
        ],
        cells,
    }
}

fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let ready =
        json::list(node, &["status", "conditions"]).iter().find(|one| json::text(one, &["type"]) == "Ready");
    let mut status = match ready.map(|one| json::text(one, &["status"])) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if json::flag(node, &["spec", "unschedulable"]) {
        status.push_str(",SchedulingDisabled");
    }
    let info = |field: &str| json::text(node, &["status", "nodeInfo", field]);
    vec![
        name(node),
        json!(status),
        json!(roles(node)),
        age(node, now),
        json!(info("kubeletVersion")),
        json!(address(node, "InternalIP")),
        json!(address(node, "ExternalIP")),
        json!(or(info("osImage"), UNKNOWN)),
        json!(or(info("kernelVersion"), UNKNOWN)),
        json!(or(info("containerRuntimeVersion"), UNKNOWN)),
    ]
}

fn roles(node: &Value) -> String {
    let mut roles: Vec<&str> = Vec::new();
    for (key, value) in json::object(node, &["metadata", "labels"]).into_iter().flatten() {
        let role = match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => role,
            None if key == "kubernetes.io/role" => value.as_str().unwrap_or_default(),
            None => "",
        };
        if !role.is_empty() && !roles.contains(&role) {
            roles.push(role);
        }
    }
    roles.sort_unstable();
    if roles.is_empty() { NONE.to_owned() } else { roles.join(",") }
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let addresses = json::list(node, &["status", "addresses"]);
    let found = addresses.iter().find(|one| json::text(one, &["type"]) == kind);
    or(found.map_or("", |one| json::text(one, &["address"])), NONE)
}
