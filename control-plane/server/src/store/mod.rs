//! Where objects live: one trait, a store in memory, one in a redb file, and one in etcd that several processes share.
//!
//! Every write takes the next global revision (the resourceVersion that clients see) and lands in a bounded history, which
//! watches and the reflector read with a cursor of their own. A store never interprets an object beyond setting its
//! resourceVersion. A write is acknowledged only when it is as durable as the store makes it.

mod computed;
mod etcd;
mod forward;
mod memory;
mod observed;
mod redb;
mod signal;
mod table;

pub use self::computed::{ComputedEndpoints, EXEMPT, is_computed, is_exempt};
pub use self::etcd::{Compaction, EtcdError, EtcdStore, TlsFiles};
pub use self::memory::MemoryStore;
pub use self::observed::ObservedStore;
pub use self::redb::{Medium, OpenError, Part, RedbStore, Sizes};
pub use self::signal::{Listener, Signal};

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// Changes that a store remembers for watches when nothing else is asked for.
pub const DEFAULT_HISTORY: usize = 8192;

/// The address of one object, ordered as lists are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Plural resource name, such as `pods`.
    pub resource: String,
    /// Namespace, empty for cluster-scoped resources.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl Key {
    /// The address of `name` in `namespace` (empty when cluster-scoped).
    pub fn new(resource: &str, namespace: &str, name: &str) -> Self {
        Self { resource: resource.into(), namespace: namespace.into(), name: name.into() }
    }
}

/// One stored version of an object. Cheap to clone: copies share the object and its text.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Revision of the write that made this version.
    pub revision: u64,
    /// The object; `metadata.resourceVersion` is `revision`.
    pub object: Arc<Value>,
    text: Arc<OnceLock<Bytes>>,
}

impl Entry {
    /// The version of an object that a write at `revision` made.
    pub fn new(revision: u64, object: Arc<Value>) -> Self {
        Self { revision, object, text: Arc::default() }
    }

    /// The object as compact JSON, written once for the store and all who read or watch it.
    pub fn text(&self) -> Bytes {
        self.text.get_or_init(|| self.object.to_string().into()).clone()
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.revision == other.revision && self.object == other.object
    }
}

/// One write, as watches see it.
#[derive(Clone, Debug)]
pub struct Change {
    /// Revision of the write.
    pub revision: u64,
    /// What was written.
    pub key: Key,
    /// The version before, absent for a creation.
    pub previous: Option<Entry>,
    /// What the write did.
    pub effect: Effect,
}

/// What a write left behind.
#[derive(Clone, Debug)]
pub enum Effect {
    /// The object is now this.
    Put(Entry),
    /// The object is gone; its last version, with the resourceVersion of the deletion.
    Deleted(Entry),
}

/// What must be so for a write to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No such object yet.
    Absent,
    /// The object is at this revision.
    Revision(u64),
}

/// A part of the store: one resource, in all namespaces or in one.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// Plural resource name.
    pub resource: &'a str,
    /// Only this namespace.
    pub namespace: Option<&'a str>,
}

/// A claim to be the next to write about a topic: whoever chooses something that must be free among all objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// What is chosen.
    pub topic: &'static str,
    /// How far the topic is known.
    pub number: u64,
}

/// A consistent list.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The revision that the list shows.
    pub revision: u64,
    /// The objects with their keys, in key order.
    pub entries: Vec<(Key, Entry)>,
}

/// What a store tells of itself to whoever measures it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Changes remembered for watches.
    pub history: u64,
    /// Transactions since the store was opened.
    pub commits: u64,
    /// Writes in them: more than one a transaction where writers shared an fsync.
    pub committed_writes: u64,
}

/// Why a store refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// [`Expect::Absent`] did not hold.
    #[error("the object exists already")]
    Exists,
    /// [`Expect::Revision`] did not hold: the object is at another revision, or gone.
    #[error("the object was modified (it is at {found:?})")]
    Conflict {
        /// The revision found, absent when the object is gone.
        found: Option<u64>,
    },
    /// The history does not reach back so far.
    #[error("revision {asked} is no longer in the history, which begins after {oldest}")]
    Compacted {
        /// The revision asked for.
        asked: u64,
        /// The oldest revision that can still be asked for.
        oldest: u64,
    },
    /// The medium failed: what was asked for was not read, or is not known to have been written.
    #[error("the store failed: {0}")]
    Unavailable(String),
    /// The store took the write and its answer was lost: it may have been made, now or a little later. Never tried again
    /// here, so that nothing is made twice; whoever asked has to look.
    #[error("it is not known whether the write was made: {0}")]
    Uncertain(String),
    /// A decision of a control plane that no longer leads; nothing was written.
    #[error("another control plane decides now")]
    Deposed,
}

/// A store's answer, later. Over [`MemoryStore`] it is always ready at once.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What every store can do.
pub trait Store: Send + Sync {
    /// The current version of an object.
    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Entry>>;

    /// All objects of a scope, now or as they were at an earlier revision.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when `at` is too old.
    fn list<'a>(&'a self, scope: Scope<'a>, at: Option<u64>) -> Answer<'a, Listing>;

    /// Writes an object and answers its new version, once it is durable.
    ///
    /// # Errors
    /// [`StoreError::Exists`] and [`StoreError::Conflict`] when `expect` does not hold; then nothing is written.
    fn put(&self, key: Key, object: Value, expect: Expect) -> Answer<'_, Entry>;

    /// Removes an object that is at `revision` and answers its last version.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it is at another revision or gone.
    fn delete(&self, key: Key, revision: u64) -> Answer<'_, Entry>;

    /// The revision of the newest acknowledged write.
    fn revision(&self) -> u64;

    /// Takes in what anyone was acknowledged before this call, other processes on the same store too: from then on
    /// [`Self::revision`] and [`Self::changes`] show it. Answers the revision reached. A store that only this process
    /// writes is always there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when that cannot be found out.
    fn catch_up(&self) -> Answer<'_, u64>;

    /// The turn that comes after all that [`Self::revision`] shows of a topic.
    fn turn(&self, topic: &'static str) -> Turn;

    /// As [`Self::put`], if nobody else wrote in turn about the topic since `turn` was read. Within one process a lock does
    /// that, and this is an ordinary write.
    ///
    /// # Errors
    /// As [`Self::put`]; [`StoreError::Conflict`] also when the turn was somebody else's.
    fn put_in_turn(&self, key: Key, object: Value, expect: Expect, turn: Turn) -> Answer<'_, Entry>;

    /// The writes after a revision, oldest first. Empty when there are none yet.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when the history no longer holds all of them.
    fn changes(&self, after: u64) -> Result<Vec<Arc<Change>>, StoreError>;

    /// Raised after each write.
    fn signal(&self) -> &Arc<Signal>;

    /// Hears of whatever may be a change of this resource.
    fn listen(&self, resource: &str) -> Listener {
        self.signal().listen_to(&[resource])
    }

    /// What a write takes at most, as a rule, until it is acknowledged: a delay that is counted on after a restart
    /// begins so much later than the decision that the write told of (NODE-12, NODE-28).
    fn latency(&self) -> Duration;

    /// What there is to measure.
    fn figures(&self) -> Figures;

    /// Whether writes are stored, as far as the last one tells. After a failure, asking makes the store try again.
    ///
    /// # Errors
    /// Why not, in words for people.
    fn health(&self) -> Result<(), String> {
        Ok(())
    }
}
