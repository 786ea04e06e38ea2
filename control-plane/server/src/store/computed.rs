//! Endpoints and EndpointSlices as if they were stored: computed from the services and pods of a store at each of its revisions
//! (EP-01, EP-05).
//!
//! The view follows the store's history. Each change of a service or pod is one step, whose outcome is compared with what was
//! there; what differs becomes a change of the computed object at the very revision of its cause. So lists, exact versions,
//! watches and bookmarks are those of the store, and control planes on one etcd tell of the same changes. Nothing here waits
//! for a timer or is written anywhere.
//!
//! Where the API itself is found stays stored: `default/kubernetes` of both kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use control_plane_core::controllers::endpoints::{EndpointsConfig, Index, RESOURCES, SOURCES};
use control_plane_core::{Key as Place, Object};
use serde_json::{Value, json};

use super::forward::forward;
use super::table::{Table, at_revision};
use super::{
    Answer, Change, Effect, Entry, Expect, Key, Listener, Listing, Scope, Signal, Store, StoreError, Turn,
};

/// So often everything is read anew where the store moves on while it is read.
const ATTEMPTS: usize = 8;

/// Whether objects of this resource are computed.
pub fn is_computed(resource: &str) -> bool {
    RESOURCES.contains(&resource)
}

/// Namespace and name of what is stored all the same: where the API itself is found (EP-01).
pub const EXEMPT: (&str, &str) = ("default", "kubernetes");

/// Whether this object of a computed resource is stored all the same.
pub fn is_exempt(namespace: &str, name: &str) -> bool {
    (namespace, name) == EXEMPT
}

/// The store as those see it who read Endpoints and EndpointSlices. It has no other objects.
pub struct ComputedEndpoints {
    store: Arc<dyn Store>,
    history: usize,
    config: EndpointsConfig,
    state: Mutex<State>,
}

struct State {
    config: EndpointsConfig,
    index: Index,
    /// The computed objects and their history.
    table: Table,
    /// What was computed for each service.
    published: BTreeMap<Place, BTreeSet<Key>>,
    /// Changes of the store up to this revision are in.
    cursor: u64,
}

impl State {
    /// What there is to compute at `revision`. Objects that `earlier` has in the same form keep their versions.
    fn new(
        config: EndpointsConfig,
        index: Index,
        stored: Vec<(Key, Entry)>,
        revision: u64,
        history: usize,
        earlier: Option<&Table>,
    ) -> Self {
        let mut objects: BTreeMap<Key, Entry> =
            stored.into_iter().filter(|(key, _)| is_exempt(&key.namespace, &key.name)).collect();
        let mut published: BTreeMap<Place, BTreeSet<Key>> = BTreeMap::new();
        for service in index.services() {
            let keys = published.entry(service.clone()).or_default();
            for (key, object) in computed(&index, service, config) {
                let old = earlier.and_then(|table| table.get(&key));
                let entry = match old {
                    Some(old) if numbered(&object, old, old.revision) == *old.object => old.clone(),
                    _ => {
                        let object = json_with_generation(object, revision);
                        Entry::new(revision, Arc::new(at_revision(object, revision)))
                    }
                };
                keys.insert(key.clone());
                objects.insert(key, entry);
            }
        }
        Self { config, index, table: Table::new(revision, objects, history), published, cursor: revision }
    }

    /// Takes in one change of the store.
    fn take(&mut self, change: &Change) {
        let Key { resource, namespace, name } = &change.key;
        if is_computed(resource) {
            if is_exempt(namespace, name) {
                self.table.apply(change.clone());
            }
            return;
        }
        if !SOURCES.contains(&resource.as_str()) {
            return;
        }
        let place = Place::new(namespace.as_str(), name.as_str());
        let object = match &change.effect {
            Effect::Put(entry) => Some(Object::clone(&entry.object)),
            Effect::Deleted(_) => None,
        };
        if resource == "services" {
            self.index.observe_service(&place, object);
            self.publish(&place, change.revision);
        } else {
            for service in self.index.observe_pod(&place, object) {
                self.publish(&service, change.revision);
            }
        }
    }

    /// Brings the objects of a service up to date, as a change at `revision`.
    fn publish(&mut self, service: &Place, revision: u64) {
        let objects = computed(&self.index, service, self.config);
        let keys: BTreeSet<Key> = objects.iter().map(|(key, _)| key.clone()).collect();
        let before = match keys.is_empty() {
            true => self.published.remove(service),
            false => self.published.insert(service.clone(), keys.clone()),
        };
        for (key, object) in objects {
            let previous = self.table.get(&key).cloned();
            let object = match &previous {
                Some(old) if numbered(&object, old, old.revision) == *old.object => continue,
                Some(old) => numbered(&object, old, revision),
                None => at_revision(json_with_generation(object, revision), revision),
            };
            let effect = Effect::Put(Entry::new(revision, Arc::new(object)));
            self.table.apply(Change { revision, key, previous, effect });
        }
        for key in before.unwrap_or_default().difference(&keys) {
            let Some(previous) = self.table.get(key).cloned() else { continue };
            let last = at_revision((*previous.object).clone(), revision);
            let effect = Effect::Deleted(Entry::new(revision, Arc::new(last)));
            self.table.apply(Change { revision, key: key.clone(), previous: Some(previous), effect });
        }
    }
}

/// What is computed for a service, under the keys that it would be stored at. What is stored is never computed over.
fn computed(index: &Index, service: &Place, config: EndpointsConfig) -> Vec<(Key, Value)> {
    let keyed = index.compute(service, config).into_iter().map(|(resource, object)| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        (Key::new(resource, &service.namespace, name), object)
    });
    keyed.filter(|(key, _)| !is_exempt(&key.namespace, &key.name)).collect()
}

/// Only slices have a generation, as in Kubernetes. It is the revision at which it began.
fn json_with_generation(mut object: Value, generation: u64) -> Value {
    if object["kind"] == "EndpointSlice" {
        object["metadata"]["generation"] = json!(generation);
    }
    object
}

/// The computed object as the successor of `old`: its generation goes on while only metadata changes.
fn numbered(object: &Value, old: &Entry, revision: u64) -> Value {
    let same =
        ["addressType", "endpoints", "ports"].iter().all(|field| object.get(field) == old.object.get(field));
    let generation = old.object["metadata"]["generation"].as_u64().filter(|_| same).unwrap_or(revision);
    at_revision(json_with_generation(object.clone(), generation), revision)
}

impl ComputedEndpoints {
    /// The view of a store. It begins as far back as the store's history does, so that whoever watches can go on over a restart
    /// where the store's own watches can.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn open(
        store: Arc<dyn Store>,
        config: EndpointsConfig,
        history: usize,
    ) -> Result<Self, StoreError> {
        let oldest = match store.changes(0) {
            Err(StoreError::Compacted { oldest, .. }) => oldest,
            Ok(_) | Err(_) => store.revision(),
        };
        let state = load(store.as_ref(), config, history, oldest, None).await?;
        Ok(Self { store, history, config, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what the store's history holds.
    fn follow(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut state = self.state();
        // Revisions at which nothing of ours was written count as seen too.
        let reached = self.store.revision();
        for change in self.store.changes(state.cursor)? {
            state.take(&change);
            state.cursor = change.revision;
        }
        state.cursor = state.cursor.max(reached);
        let cursor = state.cursor;
        state.table.advance(cursor);
        Ok(state)
    }

    /// Takes in everything up to now, anew where the history does not reach back to the last time.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn settle(&self) -> Result<(), StoreError> {
        match self.follow() {
            Ok(_) => return Ok(()),
            Err(StoreError::Compacted { .. }) => {}
            Err(error) => return Err(error),
        }
        let earlier = {
            let state = self.state();
            state.table.current()
        };
        let oldest = self.store.revision();
        let loaded = load(self.store.as_ref(), self.config, self.history, oldest, Some(&earlier)).await?;
        let mut state = self.state();
        // Somebody else may have been quicker.
        if loaded.cursor > state.cursor {
            *state = loaded;
        }
        drop(state);
        self.follow().map(|_| ())
    }

    async fn get_now(&self, key: &Key) -> Result<Option<Entry>, StoreError> {
        self.store.catch_up().await?;
        self.settle().await?;
        Ok(self.state().table.get(key).cloned())
    }

    async fn list_at(&self, scope: Scope<'_>, at: Option<u64>) -> Result<Listing, StoreError> {
        if at.is_none() {
            self.store.catch_up().await?;
        }
        self.settle().await?;
        self.state().table.list(scope, at)
    }
}

/// Everything as it was at `revision`, or later where the store no longer knows.
async fn load(
    store: &dyn Store,
    config: EndpointsConfig,
    history: usize,
    mut revision: u64,
    earlier: Option<&Table>,
) -> Result<State, StoreError> {
    for _ in 0..ATTEMPTS {
        match load_at(store, config, history, revision, earlier).await {
            Err(StoreError::Compacted { .. }) => revision = store.revision(),
            loaded => return loaded,
        }
    }
    Err(StoreError::Unavailable("it moves on faster than it can be read".into()))
}

async fn load_at(
    store: &dyn Store,
    config: EndpointsConfig,
    history: usize,
    revision: u64,
    earlier: Option<&Table>,
) -> Result<State, StoreError> {
    let mut index = Index::default();
    let everywhere = |resource: &'static str| Scope { resource, namespace: None };
    for resource in SOURCES {
        for (key, entry) in store.list(everywhere(resource), Some(revision)).await?.entries {
            let place = Place::new(key.namespace, key.name);
            match resource {
                "services" => index.observe_service(&place, Some(entry.object)),
                _ => drop(index.observe_pod(&place, Some(entry.object))),
            }
        }
    }
    let mut stored = Vec::new();
    for resource in RESOURCES {
        stored.extend(store.list(everywhere(resource), Some(revision)).await?.entries);
    }
    Ok(State::new(config, index, stored, revision, history, earlier))
}

/// What a reader of the two kinds calls for. Writes go to the store itself; only the exempt objects ever make any.
impl Store for ComputedEndpoints {
    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Entry>> {
        Box::pin(self.get_now(key))
    }

    fn list<'a>(&'a self, scope: Scope<'a>, at: Option<u64>) -> Answer<'a, Listing> {
        Box::pin(self.list_at(scope, at))
    }

    fn put(&self, key: Key, object: Value, expect: Expect) -> Answer<'_, Entry> {
        self.store.put(key, object, expect)
    }

    fn delete(&self, key: Key, revision: u64) -> Answer<'_, Entry> {
        self.store.delete(key, revision)
    }

    fn put_in_turn(&self, key: Key, object: Value, expect: Expect, turn: Turn) -> Answer<'_, Entry> {
        self.store.put_in_turn(key, object, expect, turn)
    }

    fn changes(&self, after: u64) -> Result<Vec<Arc<Change>>, StoreError> {
        match self.follow() {
            Ok(state) => state.table.changes(after),
            // Nobody looked for longer than the history is: whoever watches has to list again.
            Err(StoreError::Compacted { oldest, .. }) => Err(StoreError::Compacted { asked: after, oldest }),
            Err(error) => Err(error),
        }
    }

    fn listen(&self, resource: &str) -> Listener {
        let [pods, services] = SOURCES;
        self.store.signal().listen_to(&[resource, pods, services])
    }

    forward!();
}
