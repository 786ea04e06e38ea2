//! The snapshot itself: objects by key, and what is kept as they change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::boards::Boards;
use super::events::Events;
use super::indexes::Indexes;
use super::instants::{Instants, Mark};
use super::leases::{LEASE_NAMESPACE, Leases};
use super::references::References;
use super::touches::{Touch, Touches};
use super::{Key, Object};
use crate::json;
use crate::ownership::Ownership;
use crate::reports;
use crate::scheduler::Ledger;
use crate::time::Now;

/// Objects and instants. Cheap to clone: objects are shared.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    objects: BTreeMap<&'static str, BTreeMap<Key, Object>>,
    indexes: Indexes,
    ownership: Ownership,
    references: References,
    boards: Boards,
    leases: Leases,
    instants: Instants,
    events: Events,
    touches: Touches,
    /// What schedulers read, kept as it changes.
    pub(super) ledgers: Vec<Ledger>,
}

impl Snapshot {
    /// An empty snapshot of a store that may take so long from a decision to the write's acceptance.
    #[must_use]
    pub fn of_store_with_latency(write_latency: Duration) -> Self {
        Self { instants: Instants::of_store_with_latency(write_latency), ..Self::default() }
    }

    /// The object, if it exists. `namespace` is empty for cluster-scoped resources.
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<&Object> {
        self.at(resource, &Key::new(namespace, name))
    }

    /// The object under `key`, if it exists.
    #[must_use]
    pub fn at(&self, resource: &str, key: &Key) -> Option<&Object> {
        self.objects.get(resource)?.get(key)
    }

    /// All objects of a resource (by its plural name) in the order of their keys.
    pub fn list(&self, resource: &str) -> impl Iterator<Item = (&Key, &Object)> + use<'_> {
        self.objects.get(resource).into_iter().flatten()
    }

    /// The objects of a resource in one namespace, in the order of their names.
    pub fn list_in<'a>(
        &'a self,
        resource: &str,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
        let from = Key::new(namespace, "");
        self.objects
            .get(resource)
            .into_iter()
            .flat_map(move |objects| objects.range(from.clone()..))
            .take_while(move |(key, _)| key.namespace == namespace)
    }

    /// The plural names of the resources that hold any object.
    pub fn resources(&self) -> impl Iterator<Item = &'static str> + use<'_> {
        self.objects.iter().filter(|(_, objects)| !objects.is_empty()).map(|(resource, _)| *resource)
    }

    /// Where the object with this uid is, if it still exists.
    #[must_use]
    pub fn find_uid(&self, uid: &str) -> Option<&(&'static str, Key)> {
        self.indexes.uid(uid)
    }

    /// The pods whose `spec.nodeName` is `node`, in the order of their keys.
    pub fn pods_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
        let pods = self.objects.get("pods");
        self.indexes.bound_to(node).filter_map(move |key| pods.and_then(|pods| pods.get_key_value(key)))
    }

    /// The pods that wait for a node which the scheduler of this name is to find, oldest first, with their times of creation.
    pub fn waiting_for(&self, scheduler: &str) -> impl Iterator<Item = &(String, Key)> + use<'_> {
        self.indexes.waiting_for(scheduler)
    }

    /// Which pods belong to which workload, and which workloads something has happened to.
    #[must_use]
    pub fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// Who names whom as an owner.
    pub(crate) fn references(&self) -> &References {
        &self.references
    }

    /// The pods whose controller has this uid, in the order of their keys.
    pub fn pods_of<'a>(&'a self, uid: &str) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
        let pods = self.objects.get("pods");
        self.ownership.pods_of(uid).filter_map(move |key| pods.and_then(|pods| pods.get_key_value(key)))
    }

    /// The nodes that have this hostname, in the order of their names.
    pub(crate) fn nodes_of_host<'a>(&'a self, host: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.indexes.of_host(host).filter_map(|name| self.get("nodes", "", name))
    }

    /// The number of the newest change that can matter to a DaemonSet.
    pub(crate) fn touched(&self) -> u64 {
        self.touches.number()
    }

    /// The changes after that number which can matter to a DaemonSet; nothing where they are not all remembered.
    pub(crate) fn touches_after(&self, number: u64) -> Option<impl Iterator<Item = &Touch> + use<'_>> {
        self.touches.after(number)
    }

    /// Another number whenever other pods wait.
    #[must_use]
    pub fn waiting_version(&self) -> u64 {
        self.indexes.waiting_version()
    }

    /// The nodes on which something changed, since this was last asked, that may help a waiting pod: the node itself, a pod that
    /// left it or holds less, or what its report covers (SCHED-55).
    #[must_use]
    pub fn take_stirred(&mut self) -> BTreeSet<String> {
        self.boards.take_stirred()
    }

    /// Puts an object in its place, or takes it away, without any bookkeeping of instants: for tests and read-only copies.
    pub fn apply(&mut self, resource: &'static str, key: Key, object: Option<Object>) {
        let objects = self.objects.entry(resource).or_default();
        let (old, new) = (objects.get(&key), object.as_ref());
        self.ownership.note(resource, &key, old.map(AsRef::as_ref), object.as_deref());
        self.boards.note(resource, &key, old, new);
        self.indexes.note(resource, &key, old, new);
        self.references.note(resource, &key, old, new);
        self.touches.note(resource, &key, old, new);
        match object {
            Some(object) => objects.insert(key.clone(), object),
            None => objects.remove(&key),
        };
        self.enter(resource, &key);
    }

    /// Takes in an object that was in the store when the process started. Each node has one full lease from here
    /// on (NODE-11); stamps are older than this instant, so their true instants stay unknown. What a node's last report covers
    /// stands in the node (SCHED-22).
    pub fn restore(&mut self, resource: &'static str, key: Key, object: Object, now: &Now) {
        if resource == "nodes" {
            self.leases.grant(&key.name, now.mono);
            self.instants.restore_node(&key.name, &object, now);
            self.status_reported(&key.name, reports::covered(&object));
        } else if is_node_lease(resource, &key) {
            self.leases.note_duration(&key, &object);
        } else if resource == "events" {
            self.events.restore(&key, &object, now);
        }
        self.apply(resource, key, Some(object));
    }

    /// Takes in an accepted write (`None`: the object was removed) at the instant it was accepted.
    pub fn observe(&mut self, resource: &'static str, key: Key, object: Option<Object>, now: &Now) {
        let old = self.at(resource, &key).cloned();
        if resource == "nodes" {
            self.observe_node(&key.name, old.as_deref(), object.as_deref(), now);
        } else if is_node_lease(resource, &key) {
            self.leases.observe(&key, old.as_deref(), object.as_deref(), now.mono);
        } else if resource == "events" {
            self.events.observe(&key, object.as_deref(), now);
        } else {
            self.instants.observe(resource, &key, old.as_ref(), object.as_ref(), now);
        }
        self.apply(resource, key, object);
    }

    /// Notes that a status write of this node was accepted when the store stood at `resource_version` (of the
    /// write itself, or of the store where the write changed nothing). Only writes that report figures count: those
    /// of the node or of whoever plays it, creation with a status included; never the control plane's own, never
    /// labels, taints or cordons (SCHED-22, SCHED-25, SCHED-26).
    pub fn status_reported(&mut self, node: &str, resource_version: u64) {
        if self.boards.report(node, resource_version) {
            self.enter_covered(node);
        }
    }

    /// The resourceVersion up to which the node's last report covers what happened on it; 0 when it has not
    /// reported (then every pod on it is subtracted).
    #[must_use]
    pub fn status_covered(&self, node: &str) -> u64 {
        self.boards.covered(node)
    }

    /// The instant that the node's lease is counted from: its last renewal, or the beginning of its period of
    /// grace (NODE-11, NODE-26).
    #[must_use]
    pub fn lease_counted_from(&self, node: &str) -> Option<Duration> {
        self.leases.counted_from(node)
    }

    /// Whether [`Snapshot::lease_counted_from`] is a renewal that this process accepted for this very Node object.
    /// Only that proves life; a period of grace does not.
    #[must_use]
    pub fn lease_was_renewed(&self, node: &str) -> bool {
        self.leases.was_renewed(node)
    }

    /// The nodes that show signs of an outage, or of one that is not cleared away yet, in the order of their names.
    pub fn marked_nodes(&self) -> impl Iterator<Item = &str> + use<'_> {
        self.boards.marked()
    }

    /// The nodes whose leases are not fresh: run out, where `duration` holds for one that says none, or in a period of grace.
    pub fn nodes_without_fresh_lease(
        &self,
        duration: Duration,
        now: Duration,
    ) -> impl Iterator<Item = &str> + use<'_> {
        self.leases.without_fresh(duration, now)
    }

    /// `leaseDurationSeconds` of the node's lease as last seen (a deleted lease keeps it), if it ever had one.
    #[must_use]
    pub fn lease_duration(&self, node: &str) -> Option<Duration> {
        self.leases.duration(node)
    }

    /// The Events whose last write was accepted at least `age` ago, in the order of their keys. Of those that were in the store
    /// when the process started their own stamps tell.
    pub fn events_older_than(&self, age: Duration, now: &Now) -> impl Iterator<Item = &Key> + use<'_> {
        self.events.older_than(age, now.mono)
    }

    /// How long ago the write was accepted that put `stamp` there; never more than the truth, so that a delay
    /// counted from it never ends early.
    ///
    /// Exact where this process saw that write. Otherwise (after a restart) `exact`, the instant that a controller
    /// kept beside the stamp, where it is the same second; otherwise the stamp is taken for the end of its second.
    #[must_use]
    pub fn since(
        &self,
        mark: &Mark,
        stamp: Option<Timestamp>,
        exact: Option<Timestamp>,
        now: &Now,
    ) -> Option<Duration> {
        self.instants.since(mark, stamp, exact, now)
    }

    fn observe_node(&mut self, name: &str, old: Option<&Value>, new: Option<&Value>, now: &Now) {
        let same_node = matches!((old, new), (Some(old), Some(new)) if json::uid(old) == json::uid(new));
        if !same_node {
            self.leases.forget(name);
            self.boards.forget_reports(name);
            self.enter_covered(name);
        }
        if new.is_some() && !same_node {
            self.leases.grant(name, now.mono);
        }
        self.instants.observe_node(name, old.filter(|_| same_node), new, now);
    }
}

fn is_node_lease(resource: &str, key: &Key) -> bool {
    resource == "leases" && key.namespace == LEASE_NAMESPACE
}
