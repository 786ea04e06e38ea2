//! The profile of the small control plane for ESP32 boards (SCHED-06 to SCHED-42).
//!
//! It knows memory, PSRAM, pins and buses and nothing else: taints, affinities, spreading, cpu, single-pin claims
//! and `hardware.kube32.io/*` do not influence it (SCHED-30 to SCHED-33). What a board reports is what is free on
//! it, so a pod is subtracted only until a report covers it (SCHED-22 to SCHED-27).

use std::collections::BTreeSet;

use serde_json::Value;

use super::amounts::Amounts;
use super::profile::{Candidate, Filter, Profile, Rate, Reason, ScorePlugin, Wanted};
use crate::json;
use crate::pod::{self, Phase};
use crate::quantity::Quantity;

/// The profile of the small control plane.
pub static KUBE32: Profile = Profile {
    name: "kube32",
    component: "default-scheduler",
    request,
    offer,
    outstanding,
    filters: &[
        Filter { name: "NodeReady", reasons: not_taking_pods, applies: |_| true, depends_on_pods: false },
        Filter {
            name: "NodeName",
            reasons: other_node_named,
            applies: |wanted| wanted.node_name.is_some(),
            depends_on_pods: false,
        },
        Filter {
            name: "NodeSelector",
            reasons: selector_differs,
            applies: |wanted| wanted.selector.is_some_and(|selector| !selector.is_empty()),
            depends_on_pods: false,
        },
        Filter {
            name: "Memory",
            reasons: |it, told| short_of(it, &[MEMORY], told),
            applies: |wanted| asks_for(wanted, &[MEMORY]),
            depends_on_pods: true,
        },
        Filter {
            name: "Psram",
            reasons: |it, told| short_of(it, &[PSRAM], told),
            applies: |wanted| asks_for(wanted, &[PSRAM]),
            depends_on_pods: true,
        },
        Filter {
            name: "PinsAndBuses",
            reasons: |it, told| short_of(it, &COUNTED, told),
            applies: |wanted| asks_for(wanted, &COUNTED),
            depends_on_pods: true,
        },
    ],
    scores: &[
        ScorePlugin { name: "MemoryLeft", weight: 1, rate: Rate::Share(|it| it.share_left(MEMORY)) },
        ScorePlugin { name: "GpioLeft", weight: 1, rate: Rate::Share(|it| it.share_left(GPIO)) },
    ],
    tells_preemption: false,
};

const MEMORY: &str = "memory";
const PSRAM: &str = "esp32.io/psram";
const PSRAM_ALIAS: &str = "esp.io/psram";
const GPIO: &str = "esp32.io/gpio";
const I2C: &str = "esp32.io/i2c";
const UART: &str = "esp32.io/uart";
/// Pins and buses (SCHED-17).
const COUNTED: [&str; 6] = [GPIO, I2C, UART, "esp32.io/adc", "esp32.io/rmt-tx", "esp32.io/rmt-rx"];
/// Names before the number of a single bus, and the count that it is taken from (SCHED-18).
const NAMED_BUSES: [(&str, &str); 2] = [("esp32.io/i2c-bus-", I2C), ("esp32.io/uart-", UART)];

/// Memory of a pod that declares none anywhere: 16 KiB (SCHED-14).
const UNDECLARED_MEMORY: i64 = 16 * 1024;

fn not_taking_pods(candidate: &Candidate<'_>, reasons: &mut Vec<Reason>) {
    if candidate.facts.unschedulable {
        reasons.push("node(s) were unschedulable".into());
    } else if !candidate.facts.ready {
        reasons.push("node(s) were not ready".into());
    }
}

fn other_node_named(candidate: &Candidate<'_>, reasons: &mut Vec<Reason>) {
    if candidate.wanted().node_name.is_some_and(|name| name != candidate.name()) {
        reasons.push("node(s) didn't match spec.nodeName".into());
    }
}

fn selector_differs(candidate: &Candidate<'_>, reasons: &mut Vec<Reason>) {
    let mut wanted = candidate.wanted().selector.into_iter().flatten();
    let node = candidate.node();
    if !wanted.all(|(key, value)| node.and_then(|node| node.label(key)) == Some(value)) {
        reasons.push("node(s) didn't match Pod's node affinity/selector".into());
    }
}

fn asks_for(wanted: &Wanted<'_>, resources: &[&str]) -> bool {
    resources.iter().any(|resource| wanted.request.get(resource) > 0)
}

fn short_of(candidate: &Candidate<'_>, resources: &[&'static str], reasons: &mut Vec<Reason>) {
    for resource in resources {
        candidate.tell_if_short(resource, reasons);
    }
}

/// What a pod asks for: the containers together, or the largest init container where that is more (SCHED-14).
fn request(pod: &Value) -> Amounts {
    let containers = json::list(pod, &["spec", "containers"]);
    let init_containers = json::list(pod, &["spec", "initContainers"]);
    let mut asked = together(containers);
    for container in init_containers {
        asked.raise_to(&together(std::slice::from_ref(container)));
    }
    if !containers.iter().chain(init_containers).any(|c| declared(c, MEMORY).is_some()) {
        asked.add(MEMORY, Quantity::units(UNDECLARED_MEMORY));
    }
    asked
}

/// What these containers ask for, run side by side. A named bus counts once, whoever names it.
fn together(containers: &[Value]) -> Amounts {
    let mut asked = Amounts::default();
    let mut buses = BTreeSet::new();
    for container in containers {
        for resource in [MEMORY, PSRAM].into_iter().chain(COUNTED) {
            asked.add(resource, declared(container, resource).unwrap_or(Quantity::ZERO));
        }
        asked.add(PSRAM, declared(container, PSRAM_ALIAS).unwrap_or(Quantity::ZERO));
        for list in ["requests", "limits"] {
            let resources = json::get(container, &["resources", list]).and_then(Value::as_object);
            buses.extend(resources.into_iter().flatten().filter_map(|(name, _)| named_bus(name, container)));
        }
    }
    for (_, count) in buses {
        asked.add(count, Quantity::units(1));
    }
    asked
}

/// The bus that this resource names and the count that it is taken from, if the container asks for any of it.
fn named_bus<'a>(resource: &'a str, container: &Value) -> Option<(&'a str, &'static str)> {
    let (_, count) = NAMED_BUSES.iter().find(|(prefix, _)| {
        resource.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    })?;
    declared(container, resource).filter(|quantity| !quantity.is_zero()).map(|_| (resource, *count))
}

/// The request of a container, or its limit where it has no request; never less than nothing.
fn declared(container: &Value, resource: &str) -> Option<Quantity> {
    let of = |list| json::get(container, &["resources", list, resource]);
    of("requests").or_else(|| of("limits")).map(|value| Quantity::kube32_json(value).max(Quantity::ZERO))
}

/// What a node offers: its allocatable, or its capacity where it reports no allocatable (SCHED-21).
fn offer(node: &Value) -> Amounts {
    let figures = |name| json::get(node, &["status", name]).and_then(Value::as_object);
    let reported = figures("allocatable").filter(|map| !map.is_empty()).or_else(|| figures("capacity"));
    let mut offered = Amounts::default();
    let Some(reported) = reported else { return offered };
    for resource in [MEMORY, PSRAM].into_iter().chain(COUNTED) {
        let alias = if resource == PSRAM { PSRAM_ALIAS } else { resource };
        if let Some(value) = reported.get(resource).or_else(|| reported.get(alias)) {
            offered.add(resource, Quantity::kube32_json(value));
        }
    }
    offered
}

/// Finished pods hold nothing (SCHED-27). Of the others those are subtracted that have not started (SCHED-23), that
/// wait to restart (SCHED-24) and that changed after the board's last report (SCHED-25).
fn outstanding(pod: &Value, covered: u64) -> bool {
    match Phase::of(pod) {
        Phase::Succeeded | Phase::Failed => false,
        Phase::Pending | Phase::Unknown => true,
        Phase::Running => {
            let version = json::resource_version(pod).and_then(|version| version.parse::<u64>().ok());
            pod::has_waiting_container(pod) || version.is_none_or(|version| version > covered)
        }
    }
}
