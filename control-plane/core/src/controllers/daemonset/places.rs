//! Where a DaemonSet's pods are and should be.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::REVISION_HASH;
use super::template::HOSTNAME;
use crate::controllers::children;
use crate::pod::{self, Phase};
use crate::selectors::LabelSelector;
use crate::snapshot::{Key, Object, Snapshot};
use crate::time::Now;
use crate::{conditions, json};

/// A pod of the DaemonSet.
#[derive(Debug, Clone)]
pub(super) struct Daemon<'a> {
    pub(super) pod: &'a Object,
    /// Made from the present template.
    pub(super) is_current: bool,
    pub(super) is_ready: bool,
    /// Ready for at least `minReadySeconds`.
    pub(super) is_available: bool,
    /// When it becomes available if it stays ready.
    pub(super) available_in: Option<Duration>,
}

impl Daemon<'_> {
    /// Not on its way out.
    pub(super) fn is_live(&self) -> bool {
        !pod::is_terminating(self.pod)
    }

    pub(super) fn phase(&self) -> Phase {
        Phase::of(self.pod)
    }
}

/// One node, with the pods that are on it or meant for it: bound before unbound, old before young.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) node: &'a Value,
    /// The template's node selector matches the node.
    pub(super) is_wanted: bool,
    /// The node is known to be lost: what is written for it does not reach it.
    pub(super) is_lost: bool,
    pub(super) pods: Vec<Daemon<'a>>,
}

/// The places by hostname, and pods that are on none of them or are to be let go of.
pub(super) struct Places<'a> {
    pub(super) by_host: BTreeMap<&'a str, Place<'a>>,
    pub(super) strays: Vec<&'a Object>,
    /// Pods that the selector does not match any more.
    pub(super) released: Vec<&'a Object>,
}

impl<'a> Places<'a> {
    pub(super) fn of(
        snapshot: &'a Snapshot,
        daemon_set: &'a Value,
        selector: &LabelSelector,
        hash: &str,
        now: &Now,
    ) -> Self {
        let wants = Wants::of(daemon_set);
        let mut by_host: BTreeMap<&str, Place<'_>> = BTreeMap::new();
        for (_, node) in snapshot.list("nodes") {
            let is_wanted = wants.node(node);
            let is_lost = conditions::status(node, "Ready") == Some("Unknown");
            // Of nodes that share a hostname one that is wanted stands for all.
            let place =
                by_host.entry(host(node)).or_insert(Place { node, is_wanted, is_lost, pods: Vec::new() });
            if is_wanted && !place.is_wanted {
                (place.node, place.is_wanted, place.is_lost) = (node, is_wanted, is_lost);
            }
        }
        let (mut strays, mut released) = (Vec::new(), Vec::new());
        let (namespace, min_ready) = (json::namespace(daemon_set), children::min_ready(daemon_set));
        for (key, pod) in
            snapshot.pods_of(json::uid(daemon_set)).filter(|(key, _)| key.namespace == namespace)
        {
            if !selector.matches_object(pod) {
                released.push(pod);
                continue;
            }
            match target(snapshot, pod).and_then(|host| by_host.get_mut(host)) {
                Some(place) => place.pods.push(daemon(snapshot, key, pod, hash, min_ready, now)),
                None => strays.push(pod),
            }
        }
        for place in by_host.values_mut() {
            place.pods.sort_by(|a, b| age(a.pod).cmp(&age(b.pod)));
        }
        Self { by_host, strays, released }
    }

    /// The places that are to have a pod.
    pub(super) fn wanted(&self) -> impl Iterator<Item = (&'a str, &Place<'a>)> {
        self.by_host.iter().filter(|(_, place)| place.is_wanted).map(|(host, place)| (*host, place))
    }
}

/// Bound before unbound, then old before young.
fn age(pod: &Value) -> (bool, &str, &str) {
    let created = json::text(pod, &["metadata", "creationTimestamp"]).unwrap_or_default();
    (pod::node(pod).is_none(), created, json::name(pod))
}

fn daemon<'a>(
    snapshot: &Snapshot,
    key: &Key,
    pod: &'a Object,
    hash: &str,
    min_ready: Duration,
    now: &Now,
) -> Daemon<'a> {
    let ready_for = children::ready_for(snapshot, key, pod, min_ready, now);
    Daemon {
        pod,
        is_current: json::text(pod, &["metadata", "labels", REVISION_HASH]) == Some(hash),
        is_ready: ready_for.is_some(),
        is_available: ready_for.is_some_and(|span| span >= min_ready),
        available_in: ready_for.map(|span| min_ready.saturating_sub(span)).filter(|span| !span.is_zero()),
    }
}

/// What a node is placed by: its hostname label, or its name while it has none.
pub(super) fn host(node: &Value) -> &str {
    let label = json::text(node, &["metadata", "labels", HOSTNAME]).filter(|label| !label.is_empty());
    label.unwrap_or_else(|| json::name(node))
}

/// The place that a pod is on, or is meant for while it is unbound; none where its node is gone.
fn target<'a>(snapshot: &'a Snapshot, pod: &'a Value) -> Option<&'a str> {
    match pod::node(pod) {
        Some(node) => snapshot.get("nodes", "", node).map(|node| host(node)),
        None => json::text(pod, &["spec", "nodeSelector", HOSTNAME]),
    }
}

/// What the template asks of a node.
struct Wants<'a> {
    selector: Option<&'a Map<String, Value>>,
    name: Option<&'a str>,
}

impl<'a> Wants<'a> {
    fn of(daemon_set: &'a Value) -> Self {
        let field = |name| json::get(daemon_set, &["spec", "template", "spec", name]);
        Self {
            selector: field("nodeSelector").and_then(Value::as_object),
            name: field("nodeName").and_then(Value::as_str).filter(|name| !name.is_empty()),
        }
    }

    fn node(&self, node: &Value) -> bool {
        let has = |(label, value): (&String, &Value)| {
            json::get(node, &["metadata", "labels", label]) == Some(value)
        };
        self.name.is_none_or(|name| name == json::name(node))
            && self.selector.is_none_or(|selector| selector.iter().all(has))
    }
}
