//! One node, or several that share a hostname, and the pods of a DaemonSet that are there.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::REVISION_HASH;
use super::basis::Basis;
use crate::controllers::children;
use crate::pod::{self, Phase};
use crate::snapshot::{Key, Snapshot};
use crate::time::Now;
use crate::{conditions, json};

/// A pod of the DaemonSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Daemon {
    pub(super) key: Key,
    /// Not on its way out.
    pub(super) is_live: bool,
    pub(super) phase: Phase,
    /// Made from the present template.
    pub(super) is_current: bool,
    pub(super) is_ready: bool,
    /// Ready for at least `minReadySeconds`.
    pub(super) is_available: bool,
    /// The instant at which it becomes available if it stays ready.
    pub(super) available_at: Option<Duration>,
    /// That instant moves: it is not known yet since when the pod is ready.
    pub(super) is_uncertain: bool,
    age: (bool, String),
}

impl Daemon {
    fn of(snapshot: &Snapshot, basis: &Basis, key: &Key, pod: &Value, now: &Now) -> Self {
        let min_ready = basis.min_ready;
        let ready_for = children::ready_for(snapshot, key, pod, min_ready, now);
        let left = ready_for.map(|span| min_ready.saturating_sub(span)).filter(|span| !span.is_zero());
        let created = json::text(pod, &["metadata", "creationTimestamp"]).unwrap_or_default();
        Self {
            key: key.clone(),
            is_live: !pod::is_terminating(pod),
            phase: Phase::of(pod),
            is_current: json::text(pod, &["metadata", "labels", REVISION_HASH]) == Some(&basis.hash),
            is_ready: ready_for.is_some(),
            is_available: ready_for.is_some_and(|span| span >= min_ready),
            available_at: left.map(|left| now.mono + left),
            is_uncertain: left.is_some_and(|left| left == min_ready),
            age: (pod::node(pod).is_none(), created.to_owned()),
        }
    }
}

/// One hostname, with the pods that are on it or meant for it: bound before unbound, old before young.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The name of the node that stands for all that share the hostname: one that is wanted, if there is any.
    pub(super) node: String,
    /// The template's node selector matches the node.
    pub(super) is_wanted: bool,
    /// The node is known to be lost: what is written for it does not reach it.
    is_lost: bool,
    is_cordoned: bool,
    pub(super) pods: Vec<Daemon>,
}

impl Place {
    /// The place with this hostname as it is now, where `pods` are; nothing where no node has the name.
    pub(super) fn of(
        snapshot: &Snapshot,
        basis: &Basis,
        host: &str,
        pods: Option<&BTreeSet<Key>>,
        now: &Now,
    ) -> Option<Self> {
        let mut nodes = snapshot.nodes_of_host(host);
        let first = nodes.next()?;
        let wanted = if basis.wants(first) { Some(first) } else { nodes.find(|node| basis.wants(node)) };
        let node = wanted.unwrap_or(first);
        let found = pods.into_iter().flatten().filter_map(|key| Some((key, snapshot.at("pods", key)?)));
        let mut pods: Vec<Daemon> =
            found.map(|(key, pod)| Daemon::of(snapshot, basis, key, pod, now)).collect();
        pods.sort_by(|a, b| (&a.age, &a.key).cmp(&(&b.age, &b.key)));
        Some(Self {
            node: json::name(node).to_owned(),
            is_wanted: wanted.is_some(),
            is_lost: conditions::status(node, "Ready") == Some("Unknown"),
            is_cordoned: json::is_true(node, &["spec", "unschedulable"]),
            pods,
        })
    }

    /// Whether there is a pod to make or to take away, the old ones of a rollout aside.
    pub(super) fn needs_tending(&self) -> bool {
        let live = || self.pods.iter().filter(|daemon| daemon.is_live);
        if self.is_wanted {
            self.pods.is_empty() || live().count() > 1 || live().any(|daemon| daemon.phase.is_finished())
        } else {
            live().next().is_some()
        }
    }

    /// The one pod that stays here.
    pub(super) fn standing(&self) -> Option<&Daemon> {
        self.pods.iter().find(|daemon| daemon.is_live && !daemon.phase.is_finished())
    }

    /// How early the old pod here gives way to a new one, lowest first, where it can be told to: those that do not work come
    /// first; those on nodes that would not take the next one come last.
    pub(super) fn turn(&self) -> Option<(bool, bool)> {
        let old = self.standing().filter(|daemon| self.is_wanted && !self.is_lost && !daemon.is_current)?;
        Some((old.is_available, self.is_cordoned))
    }

    /// What it adds to the figures.
    pub(super) fn figures(&self) -> Figures {
        if !self.is_wanted {
            let misscheduled = u64::from(!self.pods.is_empty());
            return Figures { misscheduled, ..Figures::default() };
        }
        let away = match self.standing() {
            Some(daemon) if daemon.is_current => !daemon.is_available,
            Some(_) => self.is_lost,
            None => true,
        };
        let first = |is: fn(&Daemon) -> bool| u64::from(self.pods.first().is_some_and(is));
        Figures {
            desired: 1,
            current: first(|_| true),
            misscheduled: 0,
            ready: first(|daemon| daemon.is_ready),
            available: first(|daemon| daemon.is_available),
            updated: first(|daemon| daemon.is_current),
            away: u64::from(away),
        }
    }
}

/// Numbers of places. On each its first pod counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// Nodes that are to have a pod.
    pub(super) desired: u64,
    /// Those of them that have one.
    pub(super) current: u64,
    /// Nodes that have one and are to have none.
    pub(super) misscheduled: u64,
    pub(super) ready: u64,
    pub(super) available: u64,
    /// Those whose pod is of the present template.
    pub(super) updated: u64,
    /// Those without a working pod, or with one that cannot be replaced: they count against `maxUnavailable`.
    pub(super) away: u64,
}

impl Figures {
    /// Both together; `combine` adds or takes away.
    pub(super) fn with(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            desired: combine(self.desired, other.desired),
            current: combine(self.current, other.current),
            misscheduled: combine(self.misscheduled, other.misscheduled),
            ready: combine(self.ready, other.ready),
            available: combine(self.available, other.available),
            updated: combine(self.updated, other.updated),
            away: combine(self.away, other.away),
        }
    }
}
