//! The scheduler, all of it: which node gets a pod (EXT-03, EXT-04). No I/O, no memory of what came before.

use std::collections::BTreeMap;

/// CPU and memory, each in nano-units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Processors.
    pub cpu: i128,
    /// Bytes.
    pub memory: i128,
}

/// A node, and what is left on it: less than nothing where more was put there than it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room<'a> {
    /// The node's name.
    pub node: &'a str,
    /// Allocatable less the requests of the pods on it.
    pub free: Resources,
}

/// What to do with a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Bind it to this node.
    Bind(String),
    /// It fits nowhere; why, as Kubernetes words it.
    NoFit(String),
}

/// Of the rooms that hold `request` the one with the most free memory; of equals, the first by name.
pub fn decide(request: Resources, rooms: &[Room<'_>]) -> Decision {
    let fitting = rooms.iter().filter(|room| missing(request, room.free).next().is_none());
    let best = fitting.max_by(|a, b| a.free.memory.cmp(&b.free.memory).then_with(|| b.node.cmp(a.node)));
    best.map_or_else(|| Decision::NoFit(reason(request, rooms)), |room| Decision::Bind(room.node.to_owned()))
}

/// The resources that `free` has too little of. A pod that asks for nothing of a resource lacks nothing of it.
pub fn missing(request: Resources, free: Resources) -> impl Iterator<Item = &'static str> {
    let table = [("cpu", request.cpu, free.cpu), ("memory", request.memory, free.memory)];
    table.into_iter().filter(|(_, asked, free)| *asked > 0 && asked > free).map(|(name, _, _)| name)
}

fn reason(request: Resources, rooms: &[Room<'_>]) -> String {
    if rooms.is_empty() {
        return "no nodes available to schedule pods".into();
    }
    let mut counts = BTreeMap::<_, usize>::new();
    for name in rooms.iter().flat_map(|room| missing(request, room.free)) {
        *counts.entry(name).or_default() += 1;
    }
    let counts: Vec<_> = counts.iter().map(|(name, count)| format!("{count} Insufficient {name}")).collect();
    format!("0/{} nodes are available: {}.", rooms.len(), counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{Decision, Resources, Room, decide};

    fn check(request: (i128, i128), rooms: &[(&str, i128, i128)], expected: &str) {
        let resources = |cpu, memory| Resources { cpu, memory };
        let rooms: Vec<_> =
            rooms.iter().map(|(node, cpu, memory)| Room { node, free: resources(*cpu, *memory) }).collect();
        let said = match decide(resources(request.0, request.1), &rooms) {
            Decision::Bind(node) => format!("-> {node}"),
            Decision::NoFit(reason) => reason,
        };
        assert_eq!(said, expected, "{request:?} on {rooms:?}");
    }

    #[test]
    fn a_pod_goes_where_most_memory_is_free_among_the_nodes_that_hold_it() {
        check((1, 1), &[("a", 4, 4)], "-> a");
        check((1, 1), &[("a", 4, 4), ("b", 4, 5)], "-> b");
        check((1, 1), &[("a", 4, 4), ("b", 0, 5)], "-> a");
        check((1, 1), &[("b", 1, 4), ("c", 9, 4), ("a", 2, 4)], "-> a");
        check((4, 4), &[("a", 4, 4)], "-> a");
    }

    #[test]
    fn a_pod_that_fits_nowhere_says_what_each_node_lacks() {
        check((1, 1), &[], "no nodes available to schedule pods");
        check((5, 1), &[("a", 4, 4)], "0/1 nodes are available: 1 Insufficient cpu.");
        check((1, 5), &[("a", 4, 4)], "0/1 nodes are available: 1 Insufficient memory.");
        let both = "0/3 nodes are available: 2 Insufficient cpu, 2 Insufficient memory.";
        check((5, 5), &[("a", 4, 4), ("b", 9, 4), ("c", 4, 9)], both);
    }

    #[test]
    fn what_a_pod_does_not_ask_for_is_not_looked_at() {
        check((0, 1), &[("a", 0, 4)], "-> a");
        check((1, 0), &[("a", 4, 0)], "-> a");
        check((0, 0), &[("a", -1, -1)], "-> a");
        check((0, 1), &[("a", 4, -1)], "0/1 nodes are available: 1 Insufficient memory.");
    }
}
