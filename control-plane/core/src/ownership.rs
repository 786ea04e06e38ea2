//! Indexes of the snapshot for controllers that make pods: whose pods are whose, and who has anything to look at.
//!
//! A pass over thousands of idle workloads must cost next to nothing, so each change stirs the workloads that it can
//! matter to: the workload itself, and the controllers of a pod before and after the change. A pass looks again only at
//! what was stirred since it last found nothing to do.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::pod::{self, Phase};
use crate::snapshot::Key;
use crate::{conditions, json};

/// The resources whose objects make pods.
const WORKLOADS: [&str; 3] = ["daemonsets", "deployments", "jobs"];

/// Pods by controller and by what is special about them, and the numbers of the changes that stirred each workload.
#[derive(Debug, Clone, Default)]
pub struct Ownership {
    /// By the controller's uid.
    pods: BTreeMap<String, BTreeSet<Key>>,
    finalized: BTreeSet<Key>,
    finished: BTreeSet<Key>,
    terminating: BTreeSet<Key>,
    changes: u64,
    stirred: BTreeMap<String, u64>,
    nodes_stirred: u64,
}

impl Ownership {
    /// The keys of the pods whose controller has this uid.
    pub(crate) fn pods_of(&self, uid: &str) -> impl Iterator<Item = &Key> + use<'_> {
        self.pods.get(uid).into_iter().flatten()
    }

    /// The keys of the pods that have any finalizer.
    pub fn finalized(&self) -> impl Iterator<Item = &Key> + use<'_> {
        self.finalized.iter()
    }

    /// The keys of the pods that have come to their end and are not being deleted.
    pub fn finished(&self) -> impl ExactSizeIterator<Item = &Key> + use<'_> {
        self.finished.iter()
    }

    /// The keys of the pods that are being deleted.
    pub fn terminating(&self) -> impl Iterator<Item = &Key> + use<'_> {
        self.terminating.iter()
    }

    /// The number of the last change of the workload with this uid, or of a pod that it controlled before or after.
    #[must_use]
    pub fn stirred(&self, uid: &str) -> u64 {
        self.stirred.get(uid).copied().unwrap_or(0)
    }

    /// The number of the last change that can matter to what belongs on every node: a node came, went, changed its
    /// labels, or was lost or found. Heartbeats and figures do not count.
    #[must_use]
    pub fn nodes_stirred(&self) -> u64 {
        self.nodes_stirred
    }

    /// The number of changes until now.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Takes in that `old` became `new`.
    pub(crate) fn note(&mut self, resource: &str, key: &Key, old: Option<&Value>, new: Option<&Value>) {
        self.changes += 1;
        match resource {
            "pods" => self.note_pod(key, old, new),
            "nodes" if shape(old) != shape(new) => self.nodes_stirred = self.changes,
            resource if WORKLOADS.contains(&resource) => {
                if let Some(old) = old {
                    self.stirred.remove(json::uid(old));
                }
                if let Some(new) = new {
                    self.stirred.insert(json::uid(new).to_owned(), self.changes);
                }
            }
            _ => {}
        }
    }

    fn note_pod(&mut self, key: &Key, old: Option<&Value>, new: Option<&Value>) {
        let owner = |pod: &Value| controller_uid(pod).map(str::to_owned);
        let (before, after) = (old.and_then(owner), new.and_then(owner));
        if before != after {
            if let Some(before) = &before
                && let Some(keys) = self.pods.get_mut(before)
            {
                keys.remove(key);
                if keys.is_empty() {
                    self.pods.remove(before);
                }
            }
            if let Some(after) = &after {
                self.pods.entry(after.clone()).or_default().insert(key.clone());
            }
        }
        for uid in [before, after].into_iter().flatten() {
            // One that is not there yet is stirred by its own coming.
            if let Some(number) = self.stirred.get_mut(&uid) {
                *number = self.changes;
            }
        }
        let is_finalized = |pod: &Value| !json::list(pod, &["metadata", "finalizers"]).is_empty();
        let is_finished = |pod: &Value| Phase::of(pod).is_finished() && !pod::is_terminating(pod);
        keep(&mut self.finalized, key, new.is_some_and(is_finalized));
        keep(&mut self.finished, key, new.is_some_and(is_finished));
        keep(&mut self.terminating, key, new.is_some_and(pod::is_terminating));
    }
}

/// Has `key` in `keys`, or not.
fn keep(keys: &mut BTreeSet<Key>, key: &Key, wanted: bool) {
    match (keys.contains(key), wanted) {
        (false, true) => drop(keys.insert(key.clone())),
        (true, false) => drop(keys.remove(key)),
        (true, true) | (false, false) => {}
    }
}

/// The uid of the object's controller.
fn controller_uid(object: &Value) -> Option<&str> {
    pod::controller(object).and_then(|owner| json::text(owner, &["uid"])).filter(|uid| !uid.is_empty())
}

/// What of a node decides which pods belong on it.
fn shape(node: Option<&Value>) -> Option<(&str, Option<&Value>, Option<&str>)> {
    let node = node?;
    Some((json::uid(node), json::get(node, &["metadata", "labels"]), conditions::status(node, "Ready")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Snapshot;
    use serde_json::json;
    use std::sync::Arc;

    fn put(snapshot: &mut Snapshot, resource: &'static str, name: &str, more: &Value) {
        let mut object = json!({"metadata": {"name": name, "namespace": "n", "uid": name}});
        for (field, value) in more.as_object().expect("an object") {
            object["metadata"][field] = value.clone();
        }
        snapshot.apply(resource, Key::new("n", name), Some(Arc::new(object)));
    }

    fn owned(uid: &str) -> Value {
        json!({"ownerReferences": [{"uid": "another"}, {"uid": uid, "controller": true}]})
    }

    fn names(snapshot: &Snapshot, uid: &str) -> Vec<String> {
        snapshot.pods_of(uid).map(|(key, _)| key.name.clone()).collect()
    }

    #[test]
    fn pods_are_found_by_their_controller() {
        let mut snapshot = Snapshot::default();
        for (name, owner) in [("a", "one"), ("b", "two"), ("c", "one")] {
            put(&mut snapshot, "pods", name, &owned(owner));
        }
        put(&mut snapshot, "pods", "free", &json!({"ownerReferences": [{"uid": "one"}]}));
        assert_eq!(
            (names(&snapshot, "one"), names(&snapshot, "two")),
            (vec!["a".into(), "c".into()], vec!["b".into()])
        );
        put(&mut snapshot, "pods", "a", &owned("two"));
        put(&mut snapshot, "pods", "c", &json!({}));
        snapshot.apply("pods", Key::new("n", "b"), None);
        assert_eq!((names(&snapshot, "one"), names(&snapshot, "two")), (vec![], vec!["a".into()]));
    }

    #[test]
    fn a_change_stirs_those_that_it_matters_to() {
        let mut snapshot = Snapshot::default();
        let check = |snapshot: &Snapshot, expected: [u64; 3]| {
            let it = snapshot.ownership();
            assert_eq!([it.stirred("one"), it.stirred("two"), it.nodes_stirred()], expected);
        };
        put(&mut snapshot, "jobs", "one", &json!({}));
        put(&mut snapshot, "daemonsets", "two", &json!({}));
        check(&snapshot, [1, 2, 0]);
        put(&mut snapshot, "pods", "a", &owned("one"));
        check(&snapshot, [3, 2, 0]);
        put(&mut snapshot, "pods", "a", &owned("two"));
        check(&snapshot, [4, 4, 0]);
        put(&mut snapshot, "pods", "b", &json!({}));
        put(&mut snapshot, "configmaps", "one", &json!({}));
        check(&snapshot, [4, 4, 0]);
        put(&mut snapshot, "nodes", "x", &json!({}));
        check(&snapshot, [4, 4, 7]);
        put(&mut snapshot, "nodes", "x", &json!({"annotations": {"beat": "1"}}));
        check(&snapshot, [4, 4, 7]);
        put(&mut snapshot, "nodes", "x", &json!({"labels": {"role": "agent"}}));
        check(&snapshot, [4, 4, 9]);
        snapshot.apply("nodes", Key::new("n", "x"), None);
        snapshot.apply("pods", Key::new("n", "a"), None);
        snapshot.apply("jobs", Key::new("n", "one"), None);
        check(&snapshot, [0, 11, 10]);
        assert_eq!(snapshot.ownership().changes(), 12);
    }

    #[test]
    fn pods_that_have_ended_and_pods_that_go_are_known() {
        let mut snapshot = Snapshot::default();
        let mut put = |phase: &str, going: bool| {
            let mut pod = json!({"metadata": {"name": "a", "namespace": "n"}, "status": {"phase": phase}});
            if going {
                pod["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into();
            }
            snapshot.apply("pods", Key::new("n", "a"), Some(Arc::new(pod)));
            (snapshot.ownership().finished().len(), snapshot.ownership().terminating().count())
        };
        assert_eq!(put("Running", false), (0, 0));
        assert_eq!(put("Running", true), (0, 1));
        assert_eq!(put("Failed", false), (1, 0));
        assert_eq!(put("Succeeded", true), (0, 1));
        snapshot.apply("pods", Key::new("n", "a"), None);
        assert_eq!(snapshot.ownership().terminating().count(), 0);
    }

    #[test]
    fn pods_with_finalizers_are_known() {
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, "pods", "a", &json!({"finalizers": ["example.com/f"]}));
        put(&mut snapshot, "pods", "b", &json!({}));
        assert_eq!(snapshot.ownership().finalized().collect::<Vec<_>>(), [&Key::new("n", "a")]);
        put(&mut snapshot, "pods", "a", &json!({"finalizers": []}));
        assert_eq!(snapshot.ownership().finalized().count(), 0);
    }
}
