//! Any store, with its writes timed and its failures noted where health checks see them.

use std::sync::Arc;

use prometheus::Histogram;
use serde_json::Value;

use super::forward::forward;
use super::{Answer, Change, Entry, Expect, Key, Listing, Scope, Signal, Store, StoreError, Turn};
use crate::clock::Clock;
use crate::observe::{Metrics, Vitals};

/// A store under observation. Reads pass through untouched.
pub struct ObservedStore {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    vitals: Arc<Vitals>,
    puts: Histogram,
    deletions: Histogram,
}

impl ObservedStore {
    /// Observes `store`.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
        vitals: Arc<Vitals>,
    ) -> Self {
        let (puts, deletions) = (metrics.store_operation("put"), metrics.store_operation("delete"));
        Self { store, clock, metrics, vitals, puts, deletions }
    }

    async fn timed(&self, histogram: &Histogram, write: Answer<'_, Entry>) -> Result<Entry, StoreError> {
        let began = self.clock.mono();
        let written = write.await;
        match &written {
            Ok(_) => {
                histogram.observe(self.clock.mono().saturating_sub(began).as_secs_f64());
                self.vitals.store_works();
            }
            Err(StoreError::Unavailable(why) | StoreError::Uncertain(why)) => {
                self.metrics.store_failures.inc();
                self.vitals.store_failed(why);
            }
            // Lost preconditions say nothing of the medium.
            Err(
                StoreError::Exists
                | StoreError::Conflict { .. }
                | StoreError::Compacted { .. }
                | StoreError::Deposed,
            ) => {}
        }
        written
    }
}

impl Store for ObservedStore {
    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Entry>> {
        self.store.get(key)
    }

    fn list<'a>(&'a self, scope: Scope<'a>, at: Option<u64>) -> Answer<'a, Listing> {
        self.store.list(scope, at)
    }

    fn put(&self, key: Key, object: Value, expect: Expect) -> Answer<'_, Entry> {
        Box::pin(self.timed(&self.puts, self.store.put(key, object, expect)))
    }

    fn delete(&self, key: Key, revision: u64) -> Answer<'_, Entry> {
        Box::pin(self.timed(&self.deletions, self.store.delete(key, revision)))
    }

    fn put_in_turn(&self, key: Key, object: Value, expect: Expect, turn: Turn) -> Answer<'_, Entry> {
        Box::pin(self.timed(&self.puts, self.store.put_in_turn(key, object, expect, turn)))
    }

    fn changes(&self, after: u64) -> Result<Vec<Arc<Change>>, StoreError> {
        self.store.changes(after)
    }

    forward!();
}
