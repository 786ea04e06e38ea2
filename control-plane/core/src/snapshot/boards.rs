//! What is known of nodes besides their objects: which show signs of an outage, what their reports cover, and where something
//! happened that may help a waiting pod.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Key, Object};
use crate::controllers::node_lifecycle;
use crate::pod;

/// Facts about nodes by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Boards {
    /// Those that show signs of an outage.
    marked: BTreeSet<String>,
    /// Those on which something changed that may help a waiting pod.
    stirred: BTreeSet<String>,
    covered: BTreeMap<String, u64>,
}

impl Boards {
    /// Those that show signs of an outage, in the order of their names.
    pub(super) fn marked(&self) -> impl Iterator<Item = &str> + use<'_> {
        self.marked.iter().map(String::as_str)
    }

    /// Those on which something changed, since this was last asked, that may help a waiting pod.
    pub(super) fn take_stirred(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.stirred)
    }

    /// The resourceVersion that the last report of `node` covers; 0 without any.
    pub(super) fn covered(&self, node: &str) -> u64 {
        self.covered.get(node).copied().unwrap_or(0)
    }

    /// Takes in a report; tells whether it covers more than the last one.
    pub(super) fn report(&mut self, node: &str, resource_version: u64) -> bool {
        let covered = self.covered.entry(node.to_owned()).or_default();
        if *covered >= resource_version {
            return false;
        }
        *covered = resource_version;
        self.stirred.insert(node.to_owned());
        true
    }

    /// Forgets the reports of a node that is gone or made anew.
    pub(super) fn forget_reports(&mut self, node: &str) {
        self.covered.remove(node);
    }

    /// Takes in that `old` became `new`.
    pub(super) fn note(&mut self, resource: &str, key: &Key, old: Option<&Object>, new: Option<&Object>) {
        match resource {
            "pods" => self.note_pod(old, new),
            "nodes" => {
                self.stirred.insert(key.name.clone());
                if new.is_some_and(|node| node_lifecycle::is_marked(node)) {
                    self.marked.insert(key.name.clone());
                } else {
                    self.marked.remove(&key.name);
                }
            }
            _ => {}
        }
    }

    /// A pod that was bound and changes may hold less from now on. One that is bound just now takes.
    fn note_pod(&mut self, old: Option<&Object>, new: Option<&Object>) {
        let Some((old, node)) = old.and_then(|old| Some((old, pod::node(old)?))) else {
            return;
        };
        let held = |pod: &Value| (pod::Phase::of(pod), pod::has_waiting_container(pod));
        let same = new.is_some_and(|new| pod::node(new) == Some(node) && held(old) == held(new));
        if !same {
            self.stirred.insert(node.to_owned());
        }
    }
}
