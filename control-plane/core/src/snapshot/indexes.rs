//! Where objects are found by something other than their keys: by uid, by the node that they are bound to, by the scheduler
//! that is to find them one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Key, Object};
use crate::controllers::daemonset;
use crate::{json, pod};

/// Keys of objects by what they say.
#[derive(Debug, Clone, Default)]
pub(super) struct Indexes {
    by_uid: BTreeMap<String, (&'static str, Key)>,
    /// The pods of each node, by `spec.nodeName`.
    by_node: BTreeMap<String, BTreeSet<Key>>,
    /// Those that wait for a node, by the scheduler that is to find it, with their times of creation.
    waiting: BTreeMap<String, BTreeSet<(String, Key)>>,
    waiting_version: u64,
    /// The nodes of each hostname.
    by_host: BTreeMap<String, BTreeSet<String>>,
}

impl Indexes {
    /// Where the object with this uid is.
    pub(super) fn uid(&self, uid: &str) -> Option<&(&'static str, Key)> {
        self.by_uid.get(uid)
    }

    /// The keys of the pods whose `spec.nodeName` is `node`.
    pub(super) fn bound_to(&self, node: &str) -> impl Iterator<Item = &Key> + use<'_> {
        self.by_node.get(node).into_iter().flatten()
    }

    /// The pods that this scheduler is to place, oldest first, with their times of creation.
    pub(super) fn waiting_for(&self, scheduler: &str) -> impl Iterator<Item = &(String, Key)> + use<'_> {
        self.waiting.get(scheduler).into_iter().flatten()
    }

    /// Another number whenever other pods wait.
    pub(super) fn waiting_version(&self) -> u64 {
        self.waiting_version
    }

    /// The names of the nodes that have this hostname.
    pub(super) fn of_host(&self, host: &str) -> impl Iterator<Item = &str> + use<'_> {
        self.by_host.get(host).into_iter().flatten().map(String::as_str)
    }

    /// Takes in that `old` became `new`.
    pub(super) fn note(
        &mut self,
        resource: &'static str,
        key: &Key,
        old: Option<&Object>,
        new: Option<&Object>,
    ) {
        if resource == "pods" {
            let (old, new) = (old.map(AsRef::as_ref), new.map(AsRef::as_ref));
            self.note_node(key, old, new);
            self.note_waiting(key, old, new);
        } else if resource == "nodes" {
            self.note_host(&key.name, old.map(AsRef::as_ref), new.map(AsRef::as_ref));
        }
        if let Some(old) = old {
            self.by_uid.remove(json::uid(old));
        }
        if let Some(new) = new.filter(|new| !json::uid(new).is_empty()) {
            self.by_uid.insert(json::uid(new).to_owned(), (resource, key.clone()));
        }
    }

    fn note_waiting(&mut self, key: &Key, old: Option<&Value>, new: Option<&Value>) {
        let place = |pod: &Value| {
            let created = json::text(pod, &["metadata", "creationTimestamp"]).unwrap_or_default();
            (pod::scheduler_name(pod).to_owned(), (created.to_owned(), key.clone()))
        };
        let waits = |pod: &&Value| pod::waits_for_node(pod);
        let old = old.filter(waits).map(place);
        let new = new.filter(waits).map(place);
        if old == new {
            return;
        }
        self.waiting_version += 1;
        if let Some((scheduler, place)) = old
            && let Some(waiting) = self.waiting.get_mut(&scheduler)
        {
            waiting.remove(&place);
            if waiting.is_empty() {
                self.waiting.remove(&scheduler);
            }
        }
        if let Some((scheduler, place)) = new {
            self.waiting.entry(scheduler).or_default().insert(place);
        }
    }

    fn note_host(&mut self, name: &str, old: Option<&Value>, new: Option<&Value>) {
        let (old, new) = (old.map(daemonset::host), new.map(daemonset::host));
        if old == new {
            return;
        }
        if let Some(old) = old
            && let Some(names) = self.by_host.get_mut(old)
        {
            names.remove(name);
            if names.is_empty() {
                self.by_host.remove(old);
            }
        }
        if let Some(new) = new {
            self.by_host.entry(new.to_owned()).or_default().insert(name.to_owned());
        }
    }

    fn note_node(&mut self, key: &Key, old: Option<&Value>, new: Option<&Value>) {
        let node = |pod: &Value| json::text(pod, &["spec", "nodeName"]).unwrap_or_default().to_owned();
        let (old, new) = (old.map(node), new.map(node));
        if old == new {
            return;
        }
        if let Some(old) = old
            && let Some(keys) = self.by_node.get_mut(&old)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_node.remove(&old);
            }
        }
        if let Some(new) = new.filter(|new| !new.is_empty()) {
            self.by_node.entry(new).or_default().insert(key.clone());
        }
    }
}
