//! The store as core's snapshot: everything that decisions read, brought up to date before each of them.
//!
//! Handlers refresh it right after each write, so an instant that the snapshot keeps (a lease's renewal, a stamp) is the
//! instant of acceptance (NODE-03, NODE-11).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use control_plane_api::kinds;
use control_plane_core::scheduler::SchedulerConfig;
use control_plane_core::{Key, Now, Object, Snapshot, reports};
use serde_json::Value;

use crate::auth::rbac;
use crate::store::{Change, Effect, Scope, Store, StoreError};

/// What a store holds at some revision or later.
#[derive(Debug)]
pub struct Everything {
    cursor: u64,
    objects: Vec<(&'static str, BTreeMap<Key, Object>)>,
}

/// Follows the store.
#[derive(Clone, Debug, Default)]
pub struct Reflector {
    snapshot: Snapshot,
    cursor: u64,
    /// Raised by each change of a role or binding.
    policy: u64,
    /// The last change from which something may follow for service accounts, garbage or namespaces.
    consequential: u64,
}

impl Reflector {
    /// Takes in all that is stored: each node has one full lease from `now` (NODE-11).
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn load(store: &dyn Store, now: &Now) -> Result<Self, StoreError> {
        // Whatever is written while the lists are read comes again as a change, which does no harm.
        let cursor = store.revision();
        let mut snapshot = Snapshot::of_store_with_latency(store.latency());
        for resource in resources() {
            let listing = store.list(Scope { resource, namespace: None }, None).await?;
            for (key, entry) in listing.entries {
                snapshot.restore(resource, Key::new(key.namespace, key.name), entry.object, now);
            }
        }
        Ok(Self { snapshot, cursor, policy: 0, consequential: cursor })
    }

    /// All that is stored, to catch up with when the history does not reach back far enough.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn everything(store: &dyn Store) -> Result<Everything, StoreError> {
        let cursor = store.revision();
        let mut objects = Vec::new();
        for resource in resources() {
            let listing = store.list(Scope { resource, namespace: None }, None).await?;
            let entries = listing.entries.into_iter();
            objects.push((
                resource,
                entries.map(|(key, entry)| (Key::new(key.namespace, key.name), entry.object)).collect(),
            ));
        }
        Ok(Everything { cursor, objects })
    }

    /// Catches up with all that is stored: what differs was written just now, as far as anyone can tell.
    pub fn catch_up(&mut self, everything: Everything, now: &Now) {
        if everything.cursor <= self.cursor {
            return;
        }
        self.cursor = everything.cursor;
        self.policy += 1;
        self.consequential = everything.cursor;
        for (resource, objects) in everything.objects {
            let gone =
                self.snapshot.list(resource).map(|(key, _)| key).filter(|key| !objects.contains_key(*key));
            for key in gone.cloned().collect::<Vec<_>>() {
                self.snapshot.observe(resource, key, None, now);
            }
            for (key, object) in objects {
                if self.snapshot.at(resource, &key) != Some(&object) {
                    let report = (resource == "nodes").then(|| (key.name.clone(), reports::covered(&object)));
                    self.snapshot.observe(resource, key, Some(object), now);
                    if let Some((name, covered)) = report {
                        self.snapshot.status_reported(&name, covered);
                    }
                }
            }
        }
    }

    /// Takes in the writes since the last time.
    ///
    /// # Errors
    /// When more happened than the history holds; then [`Self::catch_up`].
    pub fn refresh(&mut self, store: &dyn Store, now: &Now) -> Result<(), StoreError> {
        // Revisions at which nothing of ours was written count as seen too.
        let reached = store.revision();
        for change in store.changes(self.cursor)? {
            self.cursor = change.revision;
            if self.is_consequential(&change) {
                self.consequential = change.revision;
            }
            let Some(kind) = kinds::by_resource(&change.key.resource) else { continue };
            if rbac::RESOURCES.contains(&kind.resource) {
                self.policy += 1;
            }
            let object = match &change.effect {
                Effect::Put(entry) => Some(Arc::clone(&entry.object)),
                Effect::Deleted(_) => None,
            };
            let key = Key::new(change.key.namespace.as_str(), change.key.name.as_str());
            let report = kind.resource == "nodes"
                && is_report(self.snapshot.at("nodes", &key).map(AsRef::as_ref), object.as_deref());
            let name = report.then(|| key.name.clone());
            self.snapshot.observe(kind.resource, key, object, now);
            if let Some(name) = name {
                self.snapshot.status_reported(&name, change.revision);
            }
        }
        self.cursor = self.cursor.max(reached);
        Ok(())
    }

    /// Whether something may follow from a change for controllers that look at everything: not from the many that alter
    /// neither what exists, nor what belongs to what, nor what is going.
    fn is_consequential(&self, change: &Change) -> bool {
        if matches!(change.key.resource.as_str(), "namespaces" | "serviceaccounts") {
            return true;
        }
        let Effect::Put(entry) = &change.effect else { return true };
        match &change.previous {
            Some(previous) => ties(&previous.object) != ties(&entry.object),
            None => {
                let [_, owners, finalizers, going] = ties(&entry.object);
                let namespace = self.snapshot.get("namespaces", "", &change.key.namespace);
                let open = |namespace: &Object| namespace["metadata"]["deletionTimestamp"].is_null();
                let has_home = change.key.namespace.is_empty() || namespace.is_some_and(open);
                owners.is_some() || finalizers.is_some() || going.is_some() || !has_home
            }
        }
    }

    /// The revision of the last change that [`Self::is_consequential`].
    pub fn consequential(&self) -> u64 {
        self.consequential
    }

    /// The objects, as of the last refresh.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Keeps what these schedulers read.
    pub fn keep_ledgers(&mut self, config: &SchedulerConfig) {
        for profile in config.distinct_profiles() {
            self.snapshot.keep_ledger(profile);
        }
    }

    /// The nodes on which something changed that may help a waiting pod (SCHED-55).
    pub fn take_stirred(&mut self) -> BTreeSet<String> {
        self.snapshot.take_stirred()
    }

    /// Another number after each change of a role or binding.
    pub fn policy_version(&self) -> u64 {
        self.policy
    }

    /// The revision up to which changes are in.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Notes an accepted report of a node's figures (SCHED-22, SCHED-25).
    pub fn status_reported(&mut self, node: &str, revision: u64) {
        self.snapshot.status_reported(node, revision);
    }
}

/// What an object is, what it belongs to, and what keeps it or lets it go.
fn ties(object: &Value) -> [Option<&Value>; 4] {
    ["uid", "ownerReferences", "finalizers", "deletionTimestamp"].map(|field| object["metadata"].get(field))
}

/// Whether a node's status was written by the board itself, which also another control plane on the same store may have
/// accepted (SCHED-22). The controllers' own writes change nothing there but what the conditions say, and since when. A report
/// that repeats the last one is known by the annotation that it takes away, or by changing nothing at all.
fn is_report(old: Option<&Value>, new: Option<&Value>) -> bool {
    let figures = |node: &Value| {
        let mut status = node["status"].clone();
        if let Some(conditions) = status["conditions"].as_array_mut() {
            let beats: Vec<Value> =
                conditions.iter_mut().map(|condition| condition["lastHeartbeatTime"].take()).collect();
            conditions.clear();
            conditions.extend(beats.into_iter().filter(|beat| !beat.is_null()));
        }
        status
    };
    match (old, new) {
        (Some(old), Some(new)) if reports::is_kept(old) && !reports::is_kept(new) => true,
        (Some(old), Some(new)) if old["status"] != new["status"] => figures(old) != figures(new),
        (Some(old), Some(new)) => repeats(old, new),
        (None, _) | (_, None) => false,
    }
}

/// Whether two versions of an object differ in nothing but their version.
fn repeats(old: &Value, new: &Value) -> bool {
    let metadata = |object: &Value| {
        let mut metadata = object["metadata"].clone();
        metadata["resourceVersion"].take();
        metadata
    };
    ["spec", "status"].iter().all(|part| old[part] == new[part]) && metadata(old) == metadata(new)
}

/// The resources that are stored, each once.
fn resources() -> Vec<&'static str> {
    let mut resources: Vec<&'static str> =
        kinds::all().iter().filter(|kind| kind.is_stored()).map(|kind| kind.resource).collect();
    resources.sort_unstable();
    resources.dedup();
    resources
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Expect, MemoryStore};
    use futures_util::FutureExt;
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn a_reflector_that_fell_behind_catches_up_and_keeps_its_instants() {
        let store = MemoryStore::with_history(2);
        let at = |seconds: u64| Now {
            mono: Duration::from_secs(seconds),
            wall: jiff::Timestamp::UNIX_EPOCH + Duration::from_secs(seconds),
        };
        let put = |resource: &str, namespace: &str, name: &str, renewed: u64| {
            let key = crate::store::Key::new(resource, namespace, name);
            let found = store.get(&key).now_or_never().unwrap().unwrap();
            let expect = found.map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
            let metadata = json!({"name": name, "namespace": namespace, "uid": name});
            let object = json!({"metadata": metadata, "spec": {"renewTime": format!("1970-01-01T00:00:{renewed:02}Z")}});
            store.put(key, object, expect).now_or_never().unwrap().unwrap();
        };
        let mut reflector = Reflector::load(&store, &at(0)).now_or_never().unwrap().unwrap();
        put("nodes", "", "a", 0);
        reflector.refresh(&store, &at(1)).unwrap();
        put("leases", "kube-node-lease", "a", 2);
        reflector.refresh(&store, &at(2)).unwrap();
        for second in 3..9 {
            put("configmaps", "default", &second.to_string(), second);
        }
        assert!(matches!(reflector.refresh(&store, &at(9)), Err(StoreError::Compacted { .. })));
        let everything = Reflector::everything(&store).now_or_never().unwrap().unwrap();
        reflector.catch_up(everything, &at(9));
        assert_eq!(reflector.refresh(&store, &at(9)), Ok(()));
        assert_eq!(reflector.snapshot().list("configmaps").count(), 6);
        assert_eq!(reflector.snapshot().lease_counted_from("a"), Some(Duration::from_secs(2)));
    }

    /// What a board reported through another control plane on the same store counts here; what controllers wrote does not.
    #[test]
    fn sched_22_a_report_is_known_by_what_it_changes() {
        let store = MemoryStore::new();
        let key = || crate::store::Key::new("nodes", "", "a");
        let node = |memory: &str, ready: &str, beat: &str| {
            let condition = json!({"type": "Ready", "status": ready, "lastHeartbeatTime": beat});
            json!({"metadata": {"name": "a", "uid": "a"}, "spec": {"cordons": ready}, "status": {
                "allocatable": {"memory": memory}, "conditions": [condition],
            }})
        };
        let now = Now { mono: Duration::ZERO, wall: jiff::Timestamp::UNIX_EPOCH };
        let mut reflector = Reflector::load(&store, &now).now_or_never().unwrap().unwrap();
        let mut put = |object: Value| {
            let found = store.get(&key()).now_or_never().unwrap().unwrap();
            let expect = found.map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
            let written = store.put(key(), object, expect).now_or_never().unwrap().unwrap();
            reflector.refresh(&store, &now).unwrap();
            (written.revision, reflector.snapshot().status_covered("a"))
        };
        put(node("1Ki", "True", "00:01"));
        let (first, covered) = put(node("1Ki", "True", "00:02"));
        assert_eq!(covered, first, "a board's heartbeat");
        let (_, covered) = put(node("1Ki", "Unknown", "00:02"));
        assert_eq!(covered, first, "the controller's judgement");
        let (second, covered) = put(node("2Ki", "Unknown", "00:02"));
        assert_eq!(covered, second, "a board's figures");
        let (third, covered) = put(node("2Ki", "Unknown", "00:02"));
        assert_eq!(covered, third, "a board's figures again");
        let mut kept = node("2Ki", "Unknown", "00:02");
        kept["metadata"]["annotations"] = json!({reports::ANNOTATION: third.to_string()});
        let (_, covered) = put(kept.clone());
        assert_eq!(covered, third, "somebody's label");
        let (fourth, covered) = put(node("2Ki", "Unknown", "00:02"));
        assert_eq!(covered, fourth, "a board's figures once more");
        put(kept.clone());
        let (fifth, covered) = put(node("2Ki", "True", "00:02"));
        assert_eq!(covered, fifth, "a board's figures once more, and a condition without a heartbeat");
        put(kept);
        let restarted = Reflector::load(&store, &now).now_or_never().unwrap().unwrap();
        assert_eq!(restarted.snapshot().status_covered("a"), third, "as the node says");
        let mut behind = Reflector::default();
        behind.catch_up(Reflector::everything(&store).now_or_never().unwrap().unwrap(), &now);
        assert_eq!(behind.snapshot().status_covered("a"), third, "as the node says");
    }

    #[test]
    fn only_what_exists_belongs_or_goes_is_consequential() {
        let store = MemoryStore::new();
        let now = Now { mono: Duration::ZERO, wall: jiff::Timestamp::UNIX_EPOCH };
        let mut reflector = Reflector::load(&store, &now).now_or_never().unwrap().unwrap();
        let mut follows = |resource: &str, namespace: &str, name: &str, object: Option<Value>| {
            let key = crate::store::Key::new(resource, namespace, name);
            let found = store.get(&key).now_or_never().unwrap().unwrap();
            let expect = found.as_ref().map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
            let written = match (object, found) {
                (Some(object), _) => store.put(key, object, expect).now_or_never().unwrap(),
                (None, found) => store.delete(key, found.unwrap().revision).now_or_never().unwrap(),
            };
            reflector.refresh(&store, &now).unwrap();
            reflector.consequential() == written.unwrap().revision
        };
        let object = |name: &str, more: Value| {
            let mut metadata = json!({"name": name, "uid": name});
            metadata.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
            Some(json!({"metadata": metadata}))
        };
        let going = json!({"deletionTimestamp": "1970-01-01T00:00:00Z"});
        assert!(follows("namespaces", "", "open", object("open", json!({}))));
        assert!(follows("namespaces", "", "going", object("going", going.clone())));
        assert!(!follows("leases", "open", "a", object("a", json!({}))));
        assert!(!follows("leases", "open", "a", object("a", json!({"labels": {"x": "y"}}))));
        assert!(!follows("nodes", "", "a", object("a", json!({}))));
        assert!(follows("leases", "going", "a", object("a", json!({}))));
        assert!(follows("leases", "nowhere", "a", object("a", json!({}))));
        assert!(follows(
            "pods",
            "open",
            "owned",
            object("owned", json!({"ownerReferences": [{"uid": "x"}]}))
        ));
        assert!(follows("pods", "open", "owned", object("owned", json!({}))));
        assert!(follows("pods", "open", "owned", object("owned", json!({"finalizers": ["orphan"]}))));
        assert!(follows("pods", "open", "owned", object("owned", going)));
        assert!(follows("leases", "open", "a", None));
        assert!(follows("serviceaccounts", "open", "default", object("default", json!({}))));
    }
}
