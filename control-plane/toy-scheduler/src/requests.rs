//! What a node has and what a pod asks for, of CPU and memory (EXT-03). Figures that are missing are 0.

use std::collections::BTreeMap;
use std::ops::Add;

use k8s_openapi::api::core::v1::{Container, Node, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::decide::Resources;
use crate::quantity::nanos;

type List = BTreeMap<String, Quantity>;

impl Add for Resources {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, memory: self.memory + other.memory }
    }
}

impl Resources {
    fn max(self, other: Self) -> Self {
        Self { cpu: self.cpu.max(other.cpu), memory: self.memory.max(other.memory) }
    }
}

fn read(list: Option<&List>) -> Resources {
    let amount = |name| list.and_then(|list| nanos(&list.get(name)?.0)).unwrap_or_default();
    Resources { cpu: amount("cpu"), memory: amount("memory") }
}

/// `status.allocatable`.
pub fn allocatable(node: &Node) -> Resources {
    read(node.status.as_ref().and_then(|status| status.allocatable.as_ref()))
}

fn of(container: &Container) -> Resources {
    read(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()))
}

/// The most that the pod needs at any one time, as Kubernetes counts: its containers run together; before them its init
/// containers run one after the other, of which those that restart always (sidecars) go on running; its overhead is
/// added.
pub fn requested(spec: &PodSpec) -> Resources {
    let (mut sidecars, mut most) = (Resources::default(), Resources::default());
    for init in spec.init_containers.iter().flatten() {
        if init.restart_policy.as_deref() == Some("Always") {
            sidecars = sidecars + of(init);
            most = most.max(sidecars);
        } else {
            most = most.max(sidecars + of(init));
        }
    }
    let together = spec.containers.iter().map(of).fold(sidecars, Add::add);
    most.max(together) + read(spec.overhead.as_ref())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, PodSpec};
    use k8s_openapi::serde_json::{Value, from_value, json};

    use super::{allocatable, requested};

    const UNIT: i128 = 1_000_000_000;

    fn check(spec: Value, cpu_millis: i128, bytes: i128) {
        let spec: PodSpec = from_value(spec).unwrap();
        let request = requested(&spec);
        assert_eq!((request.cpu, request.memory), (cpu_millis * UNIT / 1000, bytes * UNIT), "{spec:?}");
    }

    fn container(cpu: &str, memory: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": "64"}}})
    }

    fn sidecar(cpu: &str, memory: &str) -> Value {
        let mut sidecar = container(cpu, memory);
        sidecar["restartPolicy"] = json!("Always");
        sidecar
    }

    #[test]
    fn a_pod_asks_for_the_most_it_needs_at_any_one_time() {
        check(json!({"containers": [{"name": "c"}]}), 0, 0);
        check(json!({"containers": [container("100m", "1Ki"), container("0.2", "1k")]}), 300, 2024);
        check(
            json!({"containers": [container("100m", "1k")], "overhead": {"cpu": "5m", "memory": "7"}}),
            105,
            1007,
        );
        let init = json!([container("1", "1"), container("250m", "9k")]);
        check(json!({"initContainers": init, "containers": [container("300m", "2k")]}), 1000, 9000);
        let init = json!([sidecar("1", "1k"), container("2", "1k"), sidecar("1", "1k")]);
        check(json!({"initContainers": init, "containers": [container("500m", "5k")]}), 3000, 7000);
        let init = json!([container("2", "1k"), sidecar("1", "1k")]);
        check(json!({"initContainers": init, "containers": [container("500m", "5k")]}), 2000, 6000);
    }

    #[test]
    fn a_node_has_what_it_reports_and_nothing_else() {
        let check = |status: Value, cpu, memory| {
            let node: Node = from_value(json!({"metadata": {}, "status": status})).unwrap();
            let has = allocatable(&node);
            assert_eq!((has.cpu, has.memory), (cpu * UNIT, memory * UNIT), "{node:?}");
        };
        check(json!({"allocatable": {"cpu": "2", "memory": "1Ki", "pods": "9"}}), 2, 1024);
        check(json!({"allocatable": {"memory": "200Ki"}, "capacity": {"cpu": "4"}}), 0, 204_800);
        check(json!({"allocatable": {"cpu": "two"}}), 0, 0);
        check(json!({}), 0, 0);
    }
}
