//! The store that forgets at the end of the process. Every answer is ready at once: the simulated rig relies on it.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::table::{Table, at_revision};
use super::{
    Answer, Change, DEFAULT_HISTORY, Effect, Entry, Expect, Figures, Key, Listing, Scope, Signal, Store,
    StoreError, Turn,
};

/// Objects in memory. Keep the handle to serve the same objects again after a simulated restart.
#[derive(Debug)]
pub struct MemoryStore {
    table: Mutex<Table>,
    signal: Arc<Signal>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store with the usual history.
    pub fn new() -> Self {
        Self::with_history(DEFAULT_HISTORY)
    }

    /// An empty store that remembers the last `capacity` writes for watches.
    pub fn with_history(capacity: usize) -> Self {
        Self { table: Mutex::new(Table::new(1, BTreeMap::new(), capacity)), signal: Arc::default() }
    }

    /// A store of its own that begins with what is in this one, without the history.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { table: Mutex::new(self.table().fork()), signal: Arc::default() }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, key: Key, object: Option<Value>, expect: Expect) -> Result<Entry, StoreError> {
        let entry = {
            let mut table = self.table();
            let previous = table.get(&key).cloned();
            Table::check(previous.as_ref(), expect)?;
            let revision = table.revision() + 1;
            let (object, gone) = match (object, &previous) {
                (Some(object), _) => (object, false),
                (None, Some(previous)) => ((*previous.object).clone(), true),
                (None, None) => return Err(StoreError::Conflict { found: None }),
            };
            let entry = Entry::new(revision, Arc::new(at_revision(object, revision)));
            let effect = if gone { Effect::Deleted(entry.clone()) } else { Effect::Put(entry.clone()) };
            table.apply(Change { revision, key, previous, effect });
            table.wake(&self.signal, revision - 1);
            entry
        };
        Ok(entry)
    }
}

impl Store for MemoryStore {
    fn latency(&self) -> Duration {
        Duration::ZERO
    }

    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Entry>> {
        Box::pin(ready(Ok(self.table().get(key).cloned())))
    }

    fn list<'a>(&'a self, scope: Scope<'a>, at: Option<u64>) -> Answer<'a, Listing> {
        Box::pin(ready(self.table().list(scope, at)))
    }

    fn put(&self, key: Key, object: Value, expect: Expect) -> Answer<'_, Entry> {
        Box::pin(ready(self.write(key, Some(object), expect)))
    }

    fn delete(&self, key: Key, revision: u64) -> Answer<'_, Entry> {
        Box::pin(ready(self.write(key, None, Expect::Revision(revision))))
    }

    fn revision(&self) -> u64 {
        self.table().revision()
    }

    fn catch_up(&self) -> Answer<'_, u64> {
        Box::pin(ready(Ok(self.revision())))
    }

    fn turn(&self, topic: &'static str) -> Turn {
        Turn { topic, number: 0 }
    }

    fn put_in_turn(&self, key: Key, object: Value, expect: Expect, _: Turn) -> Answer<'_, Entry> {
        self.put(key, object, expect)
    }

    fn changes(&self, after: u64) -> Result<Vec<Arc<Change>>, StoreError> {
        self.table().changes(after)
    }

    fn signal(&self) -> &Arc<Signal> {
        &self.signal
    }

    fn figures(&self) -> Figures {
        let table = self.table();
        // Every write is a transaction of its own, from revision 1 on.
        let writes = table.revision() - 1;
        Figures { history: table.remembered(), commits: writes, committed_writes: writes }
    }
}
