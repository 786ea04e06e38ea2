//! The objects and their history as a plain synchronous structure, which both stores stand on.
//!
//! Never does I/O and never waits. Revisions rise by one with each write and are never reused.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Change, Effect, Entry, Expect, Key, Listing, Scope, StoreError};

/// Objects, the current revision, and the last writes.
#[derive(Debug)]
pub(super) struct Table {
    objects: BTreeMap<Key, Entry>,
    revision: u64,
    history: VecDeque<Arc<Change>>,
    capacity: usize,
}

impl Table {
    /// A table that stands at `revision` with these objects and no history yet.
    pub fn new(revision: u64, objects: BTreeMap<Key, Entry>, capacity: usize) -> Self {
        Self { objects, revision, history: VecDeque::new(), capacity: capacity.max(1) }
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many changes are remembered.
    pub fn remembered(&self) -> u64 {
        self.history.len() as u64
    }

    pub fn get(&self, key: &Key) -> Option<&Entry> {
        self.objects.get(key)
    }

    /// The oldest revision whose successors are all known.
    fn oldest(&self) -> u64 {
        self.history.front().map_or(self.revision, |change| change.revision - 1)
    }

    pub fn changes(&self, after: u64) -> Result<Vec<Arc<Change>>, StoreError> {
        let oldest = self.oldest();
        if after < oldest {
            return Err(StoreError::Compacted { asked: after, oldest });
        }
        let skip = usize::try_from(after - oldest).unwrap_or(usize::MAX);
        Ok(self.history.iter().skip(skip).cloned().collect())
    }

    pub fn list(&self, scope: Scope<'_>, at: Option<u64>) -> Result<Listing, StoreError> {
        let within = |key: &Key| scope.namespace.is_none_or(|namespace| key.namespace == namespace);
        let from = Key::new(scope.resource, scope.namespace.unwrap_or_default(), "");
        let mut entries: BTreeMap<&Key, &Entry> = self
            .objects
            .range((Bound::Included(from), Bound::Unbounded))
            .take_while(|(key, _)| key.resource == scope.resource && within(key))
            .collect();
        let revision = at.unwrap_or(self.revision);
        if revision < self.revision {
            let oldest = self.oldest();
            if revision < oldest {
                return Err(StoreError::Compacted { asked: revision, oldest });
            }
            for change in self.history.iter().rev().take_while(|change| change.revision > revision) {
                if change.key.resource == scope.resource && within(&change.key) {
                    match &change.previous {
                        Some(previous) => entries.insert(&change.key, previous),
                        None => entries.remove(&change.key),
                    };
                }
            }
        }
        let entries = entries.into_iter().map(|(key, entry)| (key.clone(), entry.clone())).collect();
        Ok(Listing { revision, entries })
    }

    /// Checks a precondition against a version of the object.
    pub fn check(found: Option<&Entry>, expect: Expect) -> Result<(), StoreError> {
        match (expect, found) {
            (Expect::Absent, None) => Ok(()),
            (Expect::Absent, Some(_)) => Err(StoreError::Exists),
            (Expect::Revision(revision), Some(entry)) if entry.revision == revision => Ok(()),
            (Expect::Revision(_), found) => {
                Err(StoreError::Conflict { found: found.map(|entry| entry.revision) })
            }
        }
    }

    /// Takes in one write, which must be the next.
    pub fn apply(&mut self, change: Change) {
        self.revision = change.revision;
        match &change.effect {
            Effect::Put(entry) => {
                self.objects.insert(change.key.clone(), entry.clone());
            }
            Effect::Deleted(_) => {
                self.objects.remove(&change.key);
            }
        }
        if self.history.len() == self.capacity {
            self.history.pop_front();
        }
        self.history.push_back(Arc::new(change));
    }
}

/// About how many bytes a value takes in memory.
pub(super) fn weight(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| size_of::<String>() + name.len() + weight(value)).sum()
            }
        }
}

/// `object` with `metadata.resourceVersion` set to `revision`.
pub(super) fn at_revision(mut object: Value, revision: u64) -> Value {
    if !object.is_object() {
        object = Value::Object(Map::new());
    }
    if let Some(fields) = object.as_object_mut() {
        let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if !metadata.is_object() {
            *metadata = Value::Object(Map::new());
        }
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("resourceVersion".into(), Value::String(revision.to_string()));
        }
    }
    object
}
