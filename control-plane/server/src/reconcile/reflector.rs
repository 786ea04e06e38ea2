//! The store as core's snapshot: everything that decisions read, brought up to date before each of them.
//!
//! Handlers refresh it right after each write, so an instant that the snapshot keeps (a lease's renewal, a stamp) is the
//! instant of acceptance (NODE-03, NODE-11).

use control_plane_api::kinds;
use control_plane_core::{Key, Now, Snapshot};

use crate::store::{Effect, Scope, Store, StoreError};

/// Follows the store.
#[derive(Debug, Default)]
pub struct Reflector {
    snapshot: Snapshot,
    cursor: u64,
}

impl Reflector {
    /// Takes in all that is stored: each node has one full lease from `now` (NODE-11).
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn load(store: &dyn Store, now: &Now) -> Result<Self, StoreError> {
        // Whatever is written while the lists are read comes again as a change, which does no harm.
        let cursor = store.revision();
        let mut snapshot = Snapshot::default();
        for resource in resources() {
            let listing = store.list(Scope { resource, namespace: None }, None).await?;
            for (key, entry) in listing.entries {
                snapshot.restore(resource, Key::new(key.namespace, key.name), entry.object, now);
            }
        }
        Ok(Self { snapshot, cursor })
    }

    /// Takes in the writes since the last time.
    ///
    /// # Errors
    /// When more happened than the history holds; then [`Self::load`] anew.
    pub fn refresh(&mut self, store: &dyn Store, now: &Now) -> Result<(), StoreError> {
        for change in store.changes(self.cursor)? {
            self.cursor = change.revision;
            let Some(kind) = kinds::by_resource(&change.key.resource) else { continue };
            let object = match change.effect {
                Effect::Put(object) => Some(object),
                Effect::Deleted(_) => None,
            };
            let key = Key::new(change.key.namespace, change.key.name);
            self.snapshot.observe(kind.resource, key, object, now);
        }
        Ok(())
    }

    /// The objects, as of the last refresh.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
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

/// The resources that are stored, each once.
fn resources() -> Vec<&'static str> {
    let mut resources: Vec<&'static str> =
        kinds::all().iter().filter(|kind| kind.is_stored()).map(|kind| kind.resource).collect();
    resources.sort_unstable();
    resources.dedup();
    resources
}
