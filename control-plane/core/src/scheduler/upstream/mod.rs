//! The profile that chooses as kube-scheduler's default plugins do, for what walkthroughs and foreign pods need of them.
//!
//! Pod affinity, topology spread, volumes, image locality and preemption itself are left out: a pod that asks for them is
//! placed as if it did not. Where several nodes are best, the first by name is taken; kube-scheduler draws lots.

mod affinity;
mod filters;
mod resources;
mod scores;
#[cfg(test)]
mod tests;

use super::ports::HostPort;
use super::profile::{Filter, Profile, Rate, ScorePlugin};
use crate::pod::Phase;

/// The profile of Kubernetes' own scheduler.
pub static UPSTREAM: Profile = Profile {
    name: "upstream",
    component: "default-scheduler",
    request: resources::request,
    offer: resources::offer,
    outstanding: |pod, _| !Phase::of(pod).is_finished(),
    filters: &[
        Filter {
            name: "NodeAffinityNames",
            reasons: affinity::other_names,
            applies: affinity::has_terms,
            depends_on_pods: false,
        },
        Filter {
            name: "NodeUnschedulable",
            reasons: filters::unschedulable,
            applies: |_| true,
            depends_on_pods: false,
        },
        Filter {
            name: "NodeName",
            reasons: filters::other_node_named,
            applies: |wanted| wanted.node_name.is_some(),
            depends_on_pods: false,
        },
        Filter {
            name: "TaintToleration",
            reasons: filters::untolerated,
            applies: |_| true,
            depends_on_pods: false,
        },
        Filter {
            name: "NodeAffinity",
            reasons: affinity::differs,
            applies: |wanted| wanted.selector.is_some() || affinity::has_terms(wanted),
            depends_on_pods: false,
        },
        Filter {
            name: "NodePorts",
            reasons: filters::ports_taken,
            applies: |wanted| !HostPort::all_of(wanted.pod).is_empty(),
            depends_on_pods: true,
        },
        Filter {
            name: "NodeResourcesFit",
            reasons: filters::too_little_left,
            applies: |_| true,
            depends_on_pods: true,
        },
    ],
    scores: &[
        ScorePlugin { name: "LeastAllocated", weight: 1, rate: Rate::Share(scores::least_allocated) },
        ScorePlugin { name: "BalancedAllocation", weight: 1, rate: Rate::Share(scores::balanced_allocation) },
        ScorePlugin { name: "TaintToleration", weight: 3, rate: Rate::Fewest(scores::avoided_taints) },
    ],
    tells_preemption: true,
};
