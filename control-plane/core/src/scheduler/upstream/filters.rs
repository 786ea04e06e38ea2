//! Cordons, names, taints, host ports and resources.

use crate::pod;
use crate::scheduler::ports::HostPort;
use crate::scheduler::profile::{Candidate, Reason};
use crate::tolerations::{self, Effect, Taint};

use super::resources;

/// A cordon, unless the pod tolerates its taint (SCHED-10).
pub(super) fn unschedulable(candidate: &Candidate<'_>, reasons: &mut Vec<Reason>) {
    if candidate.facts.unschedulable && !is_tolerated(candidate, &cordon()) {
        reasons.push("node(s) were unschedulable".into());
    }
}

fn cordon() -> Taint {
    Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        value: String::new(),
        effect: Effect::NoSchedule,
        time_added: None,
    }
}

fn is_tolerated(candidate: &Candidate<'_>, taint: &Taint) -> bool {
    candidate.wanted().tolerations.iter().any(|toleration| tolerations::tolerates(toleration, taint))
}

pub(super) fn other_node_named(candidate: &Candidate<'_>, reasons: &mut Vec<Reason>) {
    if candidate.wanted().node_name.is_some_and(|name| name != candidate.name()) {
        reasons.push("node(s) didn't match the requested node name".into());
    }
}

/// The first taint that keeps the pod away is named (SCHED-34, SCHED-51).
pub(super) fn untolerated(candidate: &Candidate<'_>, reasons: &mut Vec<Reason>) {
    if !candidate.facts.tainted {
        return;
    }
    let taints = candidate.node().map_or(&[][..], |node| &node.taints);
    let hard = taints.iter().filter(|taint| taint.effect != Effect::PreferNoSchedule);
    if let Some(Taint { key, value, .. }) = hard.into_iter().find(|taint| !is_tolerated(candidate, taint)) {
        reasons.push(format!("node(s) had untolerated taint {{{key}: {value}}}").into());
    }
}

pub(super) fn ports_taken(candidate: &Candidate<'_>, reasons: &mut Vec<Reason>) {
    let wanted = HostPort::all_of(candidate.wanted().pod);
    if wanted.is_empty() {
        return;
    }
    let collides = |taken: &HostPort| wanted.iter().any(|port| port.collides_with(taken));
    let others = candidate.snapshot.pods_on(candidate.name()).filter(|(_, pod)| {
        !pod::Phase::of(pod).is_finished()
            && crate::json::uid(pod) != crate::json::uid(candidate.wanted().pod)
    });
    let there = others.flat_map(|(_, pod)| HostPort::all_of(pod)).any(|taken| collides(&taken));
    if there || candidate.assumed.ports_on(candidate.name()).any(collides) {
        reasons.push("node(s) didn't have free ports for the requested pod ports".into());
    }
}

/// Every short resource of a node is listed (SCHED-51).
pub(super) fn too_little_left(candidate: &Candidate<'_>, reasons: &mut Vec<Reason>) {
    if candidate.has_room {
        return;
    }
    if candidate.is_short_of(resources::PODS) {
        reasons.push("Too many pods".into());
    }
    for (resource, _) in candidate.wanted().request.iter().filter(|(name, _)| resources::is_counted(name)) {
        candidate.tell_if_short(resource, reasons);
    }
}
