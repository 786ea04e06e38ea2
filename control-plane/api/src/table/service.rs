//! Rows of services.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::format::{NONE, age, column, labels, name_column, or};
use super::{Printer, age_column, name};
use crate::json;

pub(super) fn printer() -> Printer {
    Printer {
        columns: vec![
            name_column(),
            column("Type", "string", 0, "How the service is exposed"),
            column("Cluster-IP", "string", 0, "Address of the service inside the cluster"),
            column("External-IP", "string", 0, "Addresses of the service from outside"),
            column("Port(s)", "string", 0, "Ports of the service"),
            age_column(),
            column("Selector", "string", 1, "Labels by which pods are selected"),
        ],
        cells,
    }
}

fn cells(service: &Value, now: Timestamp) -> Vec<Value> {
    let spec = |field: &str| json::text(service, &["spec", field]);
    let first = json::list(service, &["spec", "clusterIPs"]).first().and_then(Value::as_str);
    vec![
        name(service),
        json!(spec("type")),
        json!(or(first.unwrap_or_else(|| spec("clusterIP")), NONE)),
        json!(external(service)),
        json!(ports(service)),
        age(service, now),
        json!(labels(service.pointer("/spec/selector"))),
    ]
}

fn external(service: &Value) -> String {
    let list = |path: &[&str], field: Option<&str>| {
        let texts: Vec<&str> = json::list(service, path)
            .iter()
            .filter_map(|one| match field {
                Some(field) => one.get(field).and_then(Value::as_str),
                None => one.as_str(),
            })
            .collect();
        texts.join(",")
    };
    let addresses = list(&["spec", "externalIPs"], None);
    match json::text(service, &["spec", "type"]) {
        "ExternalName" => json::text(service, &["spec", "externalName"]).to_owned(),
        "LoadBalancer" => {
            let given = list(&["status", "loadBalancer", "ingress"], Some("ip"));
            let all: Vec<String> = [given, addresses].into_iter().filter(|text| !text.is_empty()).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        _ => or(&addresses, NONE).to_owned(),
    }
}

fn ports(service: &Value) -> String {
    let ports: Vec<String> = json::list(service, &["spec", "ports"])
        .iter()
        .map(|port| {
            let number = json::int(port, &["port"]).unwrap_or(0);
            let protocol = json::text(port, &["protocol"]);
            match json::int(port, &["nodePort"]).unwrap_or(0) {
                0 => format!("{number}/{protocol}"),
                node => format!("{number}:{node}/{protocol}"),
            }
        })
        .collect();
    or(&ports.join(","), NONE).to_owned()
}
