//! The objects and their history as a plain synchronous structure, which both stores stand on.
//!
//! Never does I/O and never waits. Revisions rise with each write and are never reused; where others write to the same medium
//! they have gaps.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Change, Effect, Entry, Expect, Key, Listing, Scope, Signal, StoreError};

/// About so many bytes of objects are remembered at most, however few the changes that made them.
const HISTORY_BYTES: usize = 64 * 1024 * 1024;

/// Objects, the current revision, and the last writes.
#[derive(Debug)]
pub(super) struct Table {
    objects: BTreeMap<Key, Entry>,
    revision: u64,
    history: VecDeque<Arc<Change>>,
    /// About how many bytes each remembered change takes, and all together.
    sizes: VecDeque<usize>,
    remembered_bytes: usize,
    capacity: usize,
    /// The oldest revision whose successors are all in the history.
    oldest: u64,
    /// The revision at which all followers were last woken, whatever they follow.
    woken: u64,
}

impl Table {
    /// A table that stands at `revision` with these objects and no history yet.
    pub fn new(revision: u64, objects: BTreeMap<Key, Entry>, capacity: usize) -> Self {
        Self {
            objects,
            revision,
            history: VecDeque::new(),
            sizes: VecDeque::new(),
            remembered_bytes: 0,
            capacity: capacity.max(1),
            oldest: revision,
            woken: revision,
        }
    }

    /// The same objects at the same revision, without a history.
    pub fn fork(&self) -> Self {
        Self::new(self.revision, self.objects.clone(), self.capacity)
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many changes are remembered.
    pub fn remembered(&self) -> u64 {
        self.history.len() as u64
    }

    /// The same objects, without the history.
    pub fn current(&self) -> Self {
        Self::new(self.revision, self.objects.clone(), self.capacity)
    }

    pub fn get(&self, key: &Key) -> Option<&Entry> {
        self.objects.get(key)
    }

    /// Wakes who follows the resources that were written since `before`; and everyone from time to time, so that no cursor
    /// falls out of the history only because nothing of its resource happened.
    pub fn wake(&mut self, signal: &Signal, before: u64) {
        let oldest = self.oldest;
        if self.woken <= oldest + (self.revision - oldest) / 2 {
            self.woken = self.revision;
            signal.raise();
        } else {
            let written = self.history.iter().rev().take_while(|change| change.revision > before);
            signal.raise_for(written.map(|change| change.key.resource.as_str()));
        }
    }

    pub fn changes(&self, after: u64) -> Result<Vec<Arc<Change>>, StoreError> {
        if after < self.oldest {
            return Err(StoreError::Compacted { asked: after, oldest: self.oldest });
        }
        let seen = self.history.partition_point(|change| change.revision <= after);
        Ok(self.history.range(seen..).cloned().collect())
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
            if revision < self.oldest {
                return Err(StoreError::Compacted { asked: revision, oldest: self.oldest });
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

    /// Takes in one write, which must not be older than those before.
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
        let (Effect::Put(entry) | Effect::Deleted(entry)) = &change.effect;
        let size = weight(&entry.object);
        self.sizes.push_back(size);
        self.remembered_bytes += size;
        self.history.push_back(Arc::new(change));
        while self.history.len() > self.capacity
            || self.remembered_bytes > HISTORY_BYTES && self.history.len() > 1
        {
            self.forget();
        }
    }

    /// Everything up to `revision` is in.
    pub fn advance(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
    }

    /// Forgets the oldest revision of the history, with all that was written at it.
    fn forget(&mut self) {
        let Some(first) = self.history.front().map(|first| first.revision) else { return };
        self.oldest = first;
        while self.history.front().is_some_and(|next| next.revision == first) {
            self.history.pop_front();
            self.remembered_bytes -= self.sizes.pop_front().unwrap_or_default();
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn put(table: &mut Table, revision: u64, name: &str) {
        let key = Key::new("pods", "default", name);
        let previous = table.get(&key).cloned();
        let object = Arc::new(at_revision(json!({}), revision));
        table.apply(Change { revision, key, previous, effect: Effect::Put(Entry::new(revision, object)) });
    }

    fn revisions(table: &Table, after: u64) -> Result<Vec<u64>, u64> {
        match table.changes(after) {
            Ok(changes) => Ok(changes.iter().map(|change| change.revision).collect()),
            Err(StoreError::Compacted { oldest, .. }) => Err(oldest),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_history_with_gaps_is_asked_by_revision_and_never_cut_inside_one() {
        let mut table = Table::new(10, BTreeMap::new(), 3);
        put(&mut table, 15, "a");
        put(&mut table, 20, "a");
        put(&mut table, 20, "b");
        let check = |table: &Table, after: u64, expected: Result<Vec<u64>, u64>| {
            assert_eq!(revisions(table, after), expected, "{after}");
        };
        check(&table, 9, Err(10));
        check(&table, 12, Ok(vec![15, 20, 20]));
        check(&table, 17, Ok(vec![20, 20]));
        put(&mut table, 31, "c");
        check(&table, 14, Err(15));
        check(&table, 15, Ok(vec![20, 20, 31]));
        put(&mut table, 32, "c");
        check(&table, 19, Err(20));
        check(&table, 25, Ok(vec![31, 32]));
        let listed = table.list(Scope { resource: "pods", namespace: None }, Some(30)).unwrap();
        let names: Vec<&str> = listed.entries.iter().map(|(key, _)| key.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
