//! One pass: which nodes lack a pod, which pods are too many, which give way to new ones.

use serde_json::Value;

use super::place::Place;
use super::roster::Roster;
use super::{rollout, status, template};
use crate::controllers::children::{self, Children, Owner};
use crate::decision::{Decision, EventKind};
use crate::json;
use crate::pod::{self, Phase};
use crate::snapshot::{Key, Snapshot};
use crate::time::Now;

/// One pass over one DaemonSet. Asks to be looked at again at once when it made or deleted pods, since its status
/// follows from what stands then, and at the instants at which a pod becomes available.
#[must_use]
pub fn decide(snapshot: &Snapshot, key: &Key, now: &Now) -> Decision {
    decide_with(&mut Roster::default(), snapshot, key, now)
}

/// As [`decide`], with what the last pass over the same DaemonSet kept: its cost follows what changed since then.
#[must_use]
pub fn decide_with(roster: &mut Roster, snapshot: &Snapshot, key: &Key, now: &Now) -> Decision {
    let Some(daemon_set) = snapshot.at("daemonsets", key) else {
        return Decision::nothing("the daemon set is gone");
    };
    if json::is_terminating(daemon_set) {
        return Decision::nothing("the daemon set is being deleted");
    }
    let Some(kept) = roster.look(snapshot, daemon_set, now) else {
        return Decision::nothing("its selector cannot be read");
    };
    let owner = Owner {
        object: daemon_set,
        api_version: "apps/v1",
        kind: "DaemonSet",
        component: "daemonset-controller",
    };
    let mut children = Children::new(owner, snapshot, now);
    // The status comes first: a pass that looked at an old version of the DaemonSet fails there, and touches no pod.
    children.writes.extend(status::write(daemon_set, &kept.figures));
    let status_writes = children.writes.len();
    children.writes.extend(pods_at(snapshot, &kept.released).map(|pod| children::release(pod, daemon_set)));
    for pod in pods_at(snapshot, &kept.strays) {
        // Where a node is gone, nobody is left to end its pod.
        let nobody = pod::node(pod).is_some_and(|node| snapshot.get("nodes", "", node).is_none());
        let ended = json::int(pod, &["metadata", "deletionGracePeriodSeconds"]) == Some(0);
        if nobody && !(pod::is_terminating(pod) && ended) {
            children.delete(pod, Some(0));
        } else if !pod::is_terminating(pod) {
            children.delete(pod, None);
        }
    }
    for (host, place) in kept.untended() {
        tend(&mut children, snapshot, place, || template::pod(&owner, &kept.basis.hash, host));
    }
    for pod in pods_at(snapshot, &rollout::giving_way(daemon_set, kept)) {
        children.delete(pod, None);
    }
    let at_once = children.writes.len() > status_writes;
    Decision {
        because: format!("{} nodes are to have a pod", kept.figures.desired),
        look_again: if at_once { Some(now.mono) } else { kept.next_available() },
        writes: children.writes,
        events: children.events,
    }
}

fn pods_at<'a>(
    snapshot: &'a Snapshot,
    keys: impl IntoIterator<Item = &'a Key>,
) -> impl Iterator<Item = &'a Value> {
    keys.into_iter().filter_map(|key| snapshot.at("pods", key)).map(AsRef::as_ref)
}

/// Gives a node the one pod that it is to have, or takes away what is too much. Nothing is made while an old pod is
/// still leaving.
fn tend(children: &mut Children<'_>, snapshot: &Snapshot, place: &Place, pod: impl FnOnce() -> Value) {
    if place.is_wanted && place.pods.is_empty() {
        children.make(pod());
        return;
    }
    let mut stands = !place.is_wanted;
    for daemon in place.pods.iter().filter(|daemon| daemon.is_live) {
        let Some(pod) = snapshot.at("pods", &daemon.key) else { continue };
        match daemon.phase {
            Phase::Failed | Phase::Succeeded if place.is_wanted => ended(children, place, pod),
            _ if stands => children.delete(pod, None),
            _ => stands = true,
        }
    }
}

/// A daemon never ends: one that did is deleted, and the next pass makes another.
fn ended(children: &mut Children<'_>, place: &Place, pod: &Value) {
    let place = format!("{}/{} on node {}", json::namespace(pod), json::name(pod), place.node);
    if Phase::of(pod) == Phase::Failed {
        let message = format!("Found failed daemon pod {place}, will try to kill it");
        children.tell(EventKind::Warning, "FailedDaemonPod", message);
    } else {
        let message = format!("Found succeeded daemon pod {place}, will try to delete it");
        children.tell(EventKind::Normal, "SucceededDaemonPod", message);
    }
    children.delete(pod, None);
}
