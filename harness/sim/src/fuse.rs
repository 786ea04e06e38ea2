//! Death in the middle of a step: a store whose writes burn a fuse.
//!
//! Everything of the server is polled once, so a write that never completes is where its process ends: what was written until then
//! stays, and of all that would have followed nothing happens. With the fuse blown, nothing else is written either, also not by
//! what the process did side by side.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use control_plane::MemoryStore;
use control_plane::store::{
    Answer, Change, Entry, Expect, Figures, Key, Listing, Scope, Signal, Store, StoreError, Turn,
};
use serde_json::Value;

/// Nothing burns.
const UNLIT: u64 = u64::MAX;

/// Ends a process after so many writes.
#[derive(Debug)]
pub(crate) struct Fuse(AtomicU64);

impl Default for Fuse {
    fn default() -> Self {
        Self(AtomicU64::new(UNLIT))
    }
}

impl Fuse {
    /// It blows with the write of this number from now on, from 1.
    pub(crate) fn arm(&self, writes: u64) {
        self.0.store(writes, Ordering::SeqCst);
    }

    /// It does not burn any more.
    pub(crate) fn disarm(&self) {
        self.0.store(UNLIT, Ordering::SeqCst);
    }

    /// Whether the process that burnt it is dead.
    pub(crate) fn is_blown(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }

    /// Completes while the process lives.
    pub(crate) async fn lives(&self) {
        if self.is_blown() {
            pending::<()>().await;
        }
    }

    /// Something was written. Completes if the process lives to hear of it.
    pub(crate) async fn burn(&self) {
        let burnt = |left| if left == UNLIT || left == 0 { None } else { Some(left - 1) };
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, burnt);
        self.lives().await;
    }
}

/// A store in memory that outlives the process, and whose writes burn a fuse.
#[derive(Debug, Default)]
pub(crate) struct MortalStore {
    store: MemoryStore,
    fuse: Arc<Fuse>,
}

impl MortalStore {
    /// What its writes burn.
    pub(crate) fn fuse(&self) -> &Arc<Fuse> {
        &self.fuse
    }

    /// What a write comes to. The store underneath writes when it is asked, not when its answer is awaited.
    async fn written<'a>(&'a self, write: impl FnOnce() -> Answer<'a, Entry>) -> Result<Entry, StoreError> {
        self.fuse.lives().await;
        let written = write().await;
        if written.is_ok() {
            self.fuse.burn().await;
        }
        written
    }
}

impl Store for MortalStore {
    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Entry>> {
        self.store.get(key)
    }

    fn list<'a>(&'a self, scope: Scope<'a>, at: Option<u64>) -> Answer<'a, Listing> {
        self.store.list(scope, at)
    }

    fn put(&self, key: Key, object: Value, expect: Expect) -> Answer<'_, Entry> {
        Box::pin(self.written(move || self.store.put(key, object, expect)))
    }

    fn delete(&self, key: Key, revision: u64) -> Answer<'_, Entry> {
        Box::pin(self.written(move || self.store.delete(key, revision)))
    }

    fn put_in_turn(&self, key: Key, object: Value, expect: Expect, turn: Turn) -> Answer<'_, Entry> {
        Box::pin(self.written(move || self.store.put_in_turn(key, object, expect, turn)))
    }

    fn changes(&self, after: u64) -> Result<Vec<Arc<Change>>, StoreError> {
        self.store.changes(after)
    }

    fn revision(&self) -> u64 {
        self.store.revision()
    }

    fn catch_up(&self) -> Answer<'_, u64> {
        self.store.catch_up()
    }

    fn turn(&self, topic: &'static str) -> Turn {
        self.store.turn(topic)
    }

    fn signal(&self) -> &Arc<Signal> {
        self.store.signal()
    }

    fn latency(&self) -> Duration {
        self.store.latency()
    }

    fn figures(&self) -> Figures {
        self.store.figures()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use serde_json::json;

    use super::*;

    fn put(store: &MortalStore, name: &str) -> Option<bool> {
        let key = Key::new("pods", "default", name);
        store
            .put(key, json!({"metadata": {"name": name}}), Expect::Absent)
            .now_or_never()
            .map(|it| it.is_ok())
    }

    fn names(store: &MortalStore) -> Vec<String> {
        let listing =
            store.list(Scope { resource: "pods", namespace: None }, None).now_or_never().unwrap().unwrap();
        listing.entries.iter().map(|(key, _)| key.name.clone()).collect()
    }

    #[test]
    fn the_last_write_is_made_but_not_heard_of_and_none_follows() {
        let store = MortalStore::default();
        assert_eq!(put(&store, "a"), Some(true));
        store.fuse().arm(2);
        assert_eq!(
            (put(&store, "b"), put(&store, "b")),
            (Some(true), Some(false)),
            "what is refused is no write"
        );
        assert!(!store.fuse().is_blown());
        let both = join_all(["c", "d"].map(async |name| put(&store, name)));
        assert_eq!(both.now_or_never(), Some(vec![None, None]), "nor by what runs beside it");
        assert!(store.fuse().is_blown());
        assert_eq!(names(&store), ["a", "b", "c"]);
        store.fuse().disarm();
        assert_eq!((put(&store, "d"), put(&store, "e")), (Some(true), Some(true)));
    }
}
