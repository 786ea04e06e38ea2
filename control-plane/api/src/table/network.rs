//! Rows of Endpoints and endpoint slices.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::format::{NONE, age, column, name_column};
use super::{Printer, age_column, name};
use crate::json;

/// So many addresses or ports are shown; the rest is counted.
const SHOWN: usize = 3;

pub(super) fn endpoints() -> Printer {
    Printer {
        columns: vec![
            name_column(),
            column("Endpoints", "string", 0, "Addresses and ports that are ready"),
            age_column(),
        ],
        cells: |object, now| vec![name(object), json!(ready(object)), age(object, now)],
    }
}

fn ready(object: &Value) -> String {
    let subsets = json::list(object, &["subsets"]);
    if subsets.is_empty() {
        return NONE.to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let ports = json::list(subset, &["ports"]);
        let addresses = json::list(subset, &["addresses"]);
        if ports.is_empty() {
            all.extend(addresses.iter().map(|address| json::text(address, &["ip"]).to_owned()));
        }
        for port in ports {
            let number = json::int(port, &["port"]).unwrap_or(0);
            all.extend(addresses.iter().map(|address| match json::text(address, &["ip"]) {
                ip if ip.contains(':') => format!("[{ip}]:{number}"),
                ip => format!("{ip}:{number}"),
            }));
        }
    }
    shortened(&all)
}

pub(super) fn slices() -> Printer {
    Printer {
        columns: vec![
            name_column(),
            column("AddressType", "string", 0, "What the addresses are"),
            column("Ports", "string", 0, "Ports of every endpoint"),
            column("Endpoints", "string", 0, "Addresses, ready or not"),
            age_column(),
        ],
        cells: slice_cells,
    }
}

fn slice_cells(slice: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<String> = json::list(slice, &["ports"])
        .iter()
        .map(|port| match json::int(port, &["port"]) {
            Some(number) => number.to_string(),
            None => json::text(port, &["name"]).to_owned(),
        })
        .collect();
    let addresses: Vec<String> = json::list(slice, &["endpoints"])
        .iter()
        .flat_map(|endpoint| json::list(endpoint, &["addresses"]))
        .map(|address| address.as_str().unwrap_or_default().to_owned())
        .collect();
    let or_unset = |text: String| if text.is_empty() { "<unset>".to_owned() } else { text };
    vec![
        name(slice),
        json!(json::text(slice, &["addressType"])),
        json!(or_unset(shortened(&ports))),
        json!(or_unset(shortened(&addresses))),
        age(slice, now),
    ]
}

fn shortened(all: &[String]) -> String {
    let shown = all[..all.len().min(SHOWN)].join(",");
    if all.len() > SHOWN { format!("{shown} + {} more...", all.len() - SHOWN) } else { shown }
}
