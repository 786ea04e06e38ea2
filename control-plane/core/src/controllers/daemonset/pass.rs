//! One pass: which nodes lack a pod, which pods are too many, which give way to new ones.

use serde_json::Value;

use super::places::{Place, Places};
use super::{rollout, status, template};
use crate::controllers::children::{self, Children, Owner};
use crate::controllers::deployment;
use crate::decision::{Decision, EventKind};
use crate::json;
use crate::pod::{self, Phase};
use crate::selectors::LabelSelector;
use crate::snapshot::{Key, Snapshot};
use crate::time::Now;

/// One pass over one DaemonSet. Asks to be looked at again at once when it made or deleted pods, since its status
/// follows from what stands then, and at the instants at which a pod becomes available.
#[must_use]
pub fn decide(snapshot: &Snapshot, key: &Key, now: &Now) -> Decision {
    let Some(daemon_set) = snapshot.at("daemonsets", key) else {
        return Decision::nothing("the daemon set is gone");
    };
    if json::is_terminating(daemon_set) {
        return Decision::nothing("the daemon set is being deleted");
    }
    let selector = json::get(daemon_set, &["spec", "selector"]).unwrap_or(&Value::Null);
    let Ok(selector) = LabelSelector::from_object(selector) else {
        return Decision::nothing("its selector cannot be read");
    };
    let hash =
        deployment::template_hash(json::get(daemon_set, &["spec", "template"]).unwrap_or(&Value::Null));
    let places = Places::of(snapshot, daemon_set, &selector, &hash, now);
    let owner = Owner {
        object: daemon_set,
        api_version: "apps/v1",
        kind: "DaemonSet",
        component: "daemonset-controller",
    };
    let mut children = Children::new(owner, snapshot, now);
    // The status comes first: a pass that looked at an old version of the DaemonSet fails there, and touches no pod.
    children.writes.extend(status::write(daemon_set, &places));
    let status_writes = children.writes.len();
    children.writes.extend(places.released.iter().map(|pod| children::release(pod, daemon_set)));
    for pod in &places.strays {
        // Where a node is gone, nobody is left to end its pod.
        let nobody = pod::node(pod).is_some_and(|node| snapshot.get("nodes", "", node).is_none());
        let ended = json::int(pod, &["metadata", "deletionGracePeriodSeconds"]) == Some(0);
        if nobody && !(pod::is_terminating(pod) && ended) {
            children.delete(pod, Some(0));
        } else if !pod::is_terminating(pod) {
            children.delete(pod, None);
        }
    }
    for (host, place) in &places.by_host {
        tend(&mut children, place, || template::pod(&owner, &hash, host));
    }
    for pod in rollout::giving_way(daemon_set, &places) {
        children.delete(pod, None);
    }
    let available_in =
        places.by_host.values().flat_map(|place| &place.pods).filter_map(|it| it.available_in).min();
    let at_once = children.writes.len() > status_writes;
    Decision {
        because: format!("{} nodes are to have a pod", places.wanted().count()),
        look_again: if at_once { Some(now.mono) } else { available_in.map(|span| now.mono + span) },
        writes: children.writes,
        events: children.events,
    }
}

/// Gives a node the one pod that it is to have, or takes away what is too much. Nothing is made while an old pod is
/// still leaving.
fn tend(children: &mut Children<'_>, place: &Place<'_>, pod: impl FnOnce() -> Value) {
    if place.is_wanted && place.pods.is_empty() {
        children.make(pod());
        return;
    }
    let mut stands = !place.is_wanted;
    for daemon in place.pods.iter().filter(|daemon| daemon.is_live()) {
        match daemon.phase() {
            Phase::Failed | Phase::Succeeded if place.is_wanted => ended(children, place, daemon.pod),
            _ if stands => children.delete(daemon.pod, None),
            _ => stands = true,
        }
    }
}

/// A daemon never ends: one that did is deleted, and the next pass makes another.
fn ended(children: &mut Children<'_>, place: &Place<'_>, pod: &Value) {
    let place = format!("{}/{} on node {}", json::namespace(pod), json::name(pod), json::name(place.node));
    if Phase::of(pod) == Phase::Failed {
        let message = format!("Found failed daemon pod {place}, will try to kill it");
        children.tell(EventKind::Warning, "FailedDaemonPod", message);
    } else {
        let message = format!("Found succeeded daemon pod {place}, will try to delete it");
        children.tell(EventKind::Normal, "SucceededDaemonPod", message);
    }
    children.delete(pod, None);
}
