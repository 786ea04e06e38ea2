//! What pods ask for and nodes offer, as kube-scheduler counts it.

use serde_json::{Map, Value};

use crate::json;
use crate::quantity::Quantity;
use crate::scheduler::amounts::{Amounts, RATED};

/// A slot for a pod is a resource like the others; every pod takes one (GHOST-08).
pub(super) const PODS: &str = "pods";
pub(super) const CPU: &str = "cpu";
pub(super) const MEMORY: &str = "memory";
/// What ratings read: thousandths of cores and bytes, as kube-scheduler counts, of which containers that ask for nothing count
/// for something; and the same without that.
pub(super) const RATED_CPU: &str = "rated/cpu";
pub(super) const RATED_MEMORY: &str = "rated/memory";
pub(super) const ASKED_CPU: &str = "rated/cpu-asked";
pub(super) const ASKED_MEMORY: &str = "rated/memory-asked";

/// Nano-units of a thousandth of a core, and of a byte.
const MILLI: i128 = 1_000_000;
const BYTE: i128 = 1_000_000_000;

/// The resources that nodes are rated by: the names of their figures, the unit, and what kube-scheduler takes a container for
/// that states nothing: 100m of a core and 200 MiB.
const RATED_RESOURCES: [(&str, &str, &str, i128, i128); 2] =
    [(CPU, RATED_CPU, ASKED_CPU, MILLI, 100), (MEMORY, RATED_MEMORY, ASKED_MEMORY, BYTE, 200 * 1024 * 1024)];

/// Whether filters look at a resource of this name, besides the slot for the pod.
pub(super) fn is_counted(resource: &str) -> bool {
    resource != PODS && !resource.starts_with(RATED)
}

/// Whole units, rounded up.
fn units(nanos: i128, unit: i128) -> i128 {
    nanos.div_euclid(unit) + i128::from(nanos.rem_euclid(unit) != 0)
}

/// The containers together and the sidecars among the init containers, or the largest other init container beside the sidecars
/// started before it, where that is more; and the overhead.
pub(super) fn request(pod: &Value) -> Amounts {
    let mut asked = Amounts::default();
    for container in json::list(pod, &["spec", "containers"]) {
        asked.add_all(&of_container(container));
    }
    let mut sidecars = Amounts::default();
    let mut largest = Amounts::default();
    for container in json::list(pod, &["spec", "initContainers"]) {
        let own = of_container(container);
        if json::text(container, &["restartPolicy"]) == Some("Always") {
            sidecars.add_all(&own);
            largest.raise_to(&sidecars);
        } else {
            let mut beside = sidecars.clone();
            beside.add_all(&own);
            largest.raise_to(&beside);
        }
    }
    asked.add_all(&sidecars);
    asked.raise_to(&largest);
    if let Some(overhead) = json::get(pod, &["spec", "overhead"]).and_then(Value::as_object) {
        add_each(&mut asked, overhead);
        for (resource, rated, plain, unit, _) in RATED_RESOURCES {
            let amount = units(overhead.get(resource).map_or(0, |it| read(it).nanos()), unit);
            asked.change(plain.into(), amount);
            asked.change(rated.into(), amount);
        }
    }
    asked.add(PODS, Quantity::units(1));
    asked
}

fn of_container(container: &Value) -> Amounts {
    let mut asked = Amounts::default();
    let list = |name| json::get(container, &["resources", name]).and_then(Value::as_object);
    let requests = list("requests");
    if let Some(requests) = requests {
        add_each(&mut asked, requests);
    }
    // A limit alone is a request too; the API's defaults say the same.
    for (name, value) in list("limits").into_iter().flatten() {
        if !requests.is_some_and(|requests| requests.contains_key(name)) {
            asked.add(name.clone(), read(value));
        }
    }
    for (resource, rated, plain, unit, unstated) in RATED_RESOURCES {
        let stated = [requests, list("limits")].into_iter().flatten().any(|list| list.contains_key(resource));
        let amount = units(asked.get(resource), unit);
        asked.change(plain.into(), amount);
        asked.change(rated.into(), if stated { amount } else { unstated });
    }
    asked
}

/// Allocatable, or capacity where there is no allocatable (SCHED-21).
pub(super) fn offer(node: &Value) -> Amounts {
    let figures = |name| json::get(node, &["status", name]).and_then(Value::as_object);
    let reported = figures("allocatable").filter(|map| !map.is_empty()).or_else(|| figures("capacity"));
    let mut offered = Amounts::default();
    if let Some(reported) = reported {
        add_each(&mut offered, reported);
    }
    for (resource, rated, _, unit, _) in RATED_RESOURCES {
        let amount = units(offered.get(resource), unit);
        offered.change(rated.into(), amount);
    }
    offered
}

fn add_each(amounts: &mut Amounts, list: &Map<String, Value>) {
    for (name, value) in list {
        amounts.add(name.clone(), read(value));
    }
}

/// What cannot be read counts nothing (SCHED-20).
fn read(value: &Value) -> Quantity {
    Quantity::parse_json(value).unwrap_or(Quantity::ZERO)
}
