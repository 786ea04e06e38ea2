//! The store that outlives the process: one redb file, synced before a write is acknowledged.
//!
//! Reads come from memory. One thread of its own does all writing, so no async thread ever blocks: it takes whatever writes
//! wait, checks their preconditions in order, commits them in one transaction, and only then lets anyone see them. The history
//! starts empty after a restart; the revision goes on where it stood.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::future::ready;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use redb::backends::FileBackend;
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition, TableError,
};
use serde_json::Value;
use tokio::sync::oneshot;

use super::table::{Table, at_revision};
use super::{Answer, Change, Effect, Entry, Expect, Figures, Key, Listing, Scope, Signal, Store, StoreError};

const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
const REVISION: &str = "revision";
const FORMAT: &str = "format";
/// What this version writes; a file of another format is refused.
const CURRENT_FORMAT: u64 = 1;
/// Most writes that share one transaction.
const BATCH: usize = 256;

/// Why a store file cannot be opened; each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the file open.
    #[error(
        "{path} is in use by another process: end that control plane, or give this one another --data-dir"
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a store, or was damaged.
    #[error(
        "{path} is not a usable store ({reason}): restore it from a copy, or move it away to start with an empty one"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file was written by another version.
    #[error(
        "{path} has store format {found}, and this version reads format {CURRENT_FORMAT}: use the version that wrote it"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The format found.
        found: u64,
    },
    /// The file cannot be read or written.
    #[error("{path} cannot be opened ({reason}): check that the directory exists, is writable, and has room")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

struct Request {
    key: Key,
    object: Option<Value>,
    expect: Expect,
    answer: oneshot::Sender<Result<Entry, StoreError>>,
}

#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    signal: Arc<Signal>,
    commits: AtomicU64,
    committed_writes: AtomicU64,
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Objects in a redb file.
#[derive(Debug)]
pub struct RedbStore {
    shared: Arc<Shared>,
    requests: Option<Sender<Request>>,
    writer: Option<JoinHandle<()>>,
}

impl RedbStore {
    /// Opens the file, or makes it, readable by its owner only: it holds Secrets. Blocks while it is read and its checksums
    /// are verified.
    ///
    /// # Errors
    /// [`OpenError`] with a remedy in its message.
    pub fn open(path: &Path, history: usize) -> Result<Self, OpenError> {
        // The check of the whole file finds what is damaged; should that trip an assertion inside redb, it is no crash either.
        let opened = catch_unwind(AssertUnwindSafe(|| load(path)));
        let (database, revision, objects) = opened.unwrap_or_else(|_| {
            Err(OpenError::Corrupt { path: path.into(), reason: "its pages contradict each other".into() })
        })?;
        let table = Mutex::new(Table::new(revision, objects, history));
        let shared = Arc::new(Shared {
            table,
            signal: Arc::default(),
            commits: AtomicU64::default(),
            committed_writes: AtomicU64::default(),
        });
        let (requests, incoming) = channel();
        let seen = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || write_all(&database, &seen, &incoming))
            .map_err(|error| OpenError::Io { path: path.into(), reason: error.to_string() })?;
        Ok(Self { shared, requests: Some(requests), writer: Some(writer) })
    }

    fn request(&self, key: Key, object: Option<Value>, expect: Expect) -> Answer<'_, Entry> {
        let (answer, answered) = oneshot::channel();
        let request = Request { key, object, expect, answer };
        let sent = self.requests.as_ref().is_some_and(|requests| requests.send(request).is_ok());
        Box::pin(async move {
            let ended = || StoreError::Unavailable("its writer has ended".into());
            if !sent {
                return Err(ended());
            }
            answered.await.unwrap_or_else(|_| Err(ended()))
        })
    }
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(writer) = self.writer.take() {
            // It panics only where redb does; the file is consistent either way.
            drop(writer.join());
        }
    }
}

impl Store for RedbStore {
    /// An fsync on a disk that others keep busy; 190 ms were seen.
    fn latency(&self) -> Duration {
        Duration::from_millis(230)
    }

    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Entry>> {
        Box::pin(ready(Ok(self.shared.table().get(key).cloned())))
    }

    fn list<'a>(&'a self, scope: Scope<'a>, at: Option<u64>) -> Answer<'a, Listing> {
        Box::pin(ready(self.shared.table().list(scope, at)))
    }

    fn put(&self, key: Key, object: Value, expect: Expect) -> Answer<'_, Entry> {
        self.request(key, Some(object), expect)
    }

    fn delete(&self, key: Key, revision: u64) -> Answer<'_, Entry> {
        self.request(key, None, Expect::Revision(revision))
    }

    fn revision(&self) -> u64 {
        self.shared.table().revision()
    }

    fn changes(&self, after: u64) -> Result<Vec<Arc<Change>>, StoreError> {
        self.shared.table().changes(after)
    }

    fn signal(&self) -> &Arc<Signal> {
        &self.shared.signal
    }

    fn figures(&self) -> Figures {
        Figures {
            history: self.shared.table().remembered(),
            commits: self.shared.commits.load(Ordering::Relaxed),
            committed_writes: self.shared.committed_writes.load(Ordering::Relaxed),
        }
    }
}

fn path_of(key: &Key) -> String {
    format!("{}/{}/{}", key.resource, key.namespace, key.name)
}

fn key_of(path: &str) -> Option<Key> {
    let mut parts = path.splitn(3, '/');
    Some(Key::new(parts.next()?, parts.next()?, parts.next()?))
}

type Loaded = (Database, u64, BTreeMap<Key, Entry>);

fn load(path: &Path) -> Result<Loaded, OpenError> {
    let corrupt = |reason: String| OpenError::Corrupt { path: path.into(), reason };
    let io = |reason: String| OpenError::Io { path: path.into(), reason };
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(|error| io(error.to_string()))?;
    // Without the check redb trusts a file that was closed in order, and panics where bytes of it were changed since.
    let opened = FileBackend::new(file)
        .and_then(|file| Database::builder().set_check_integrity_on_open(true).create_with_backend(file));
    let database = opened.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => OpenError::Locked { path: path.into() },
        DatabaseError::Storage(StorageError::Corrupted(reason)) => corrupt(reason),
        DatabaseError::Storage(StorageError::Io(error))
            if error.kind() != std::io::ErrorKind::InvalidData =>
        {
            io(error.to_string())
        }
        other => corrupt(other.to_string()),
    })?;
    let transaction = database.begin_read().map_err(|error| corrupt(error.to_string()))?;
    let facts = match transaction.open_table(FACTS) {
        Ok(facts) => facts,
        Err(TableError::TableDoesNotExist(_)) => {
            initialise(&database).map_err(|error| io(error.to_string()))?;
            return Ok((database, 1, BTreeMap::new()));
        }
        Err(error) => return Err(corrupt(error.to_string())),
    };
    let fact = |name: &str| -> Result<u64, OpenError> {
        let value = facts.get(name).map_err(|error| corrupt(error.to_string()))?;
        value.map(|value| value.value()).ok_or_else(|| corrupt(format!("it lacks its {name}")))
    };
    let found = fact(FORMAT)?;
    if found != CURRENT_FORMAT {
        return Err(OpenError::Format { path: path.into(), found });
    }
    let revision = fact(REVISION)?;
    let stored = transaction.open_table(OBJECTS).map_err(|error| corrupt(error.to_string()))?;
    let mut objects = BTreeMap::new();
    for row in stored.iter().map_err(|error| corrupt(error.to_string()))? {
        let (name, bytes) = row.map_err(|error| corrupt(error.to_string()))?;
        let bad = |what: &str| corrupt(format!("entry `{}` {what}", name.value()));
        let key = key_of(name.value()).ok_or_else(|| bad("is not an object's address"))?;
        let object: Value = serde_json::from_slice(bytes.value()).map_err(|_| bad("is not JSON"))?;
        let at = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let at = at.and_then(|at| at.parse().ok()).ok_or_else(|| bad("has no resourceVersion"))?;
        if at > revision {
            return Err(bad("is newer than the store"));
        }
        objects.insert(key, Entry::new(at, Arc::new(object)));
    }
    drop(facts);
    drop(stored);
    drop(transaction);
    Ok((database, revision, objects))
}

fn initialise(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut facts = transaction.open_table(FACTS)?;
        facts.insert(FORMAT, CURRENT_FORMAT)?;
        facts.insert(REVISION, 1)?;
        transaction.open_table(OBJECTS)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Serves requests until the store is dropped.
fn write_all(database: &Database, shared: &Shared, incoming: &Receiver<Request>) {
    while let Ok(first) = incoming.recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Ok(next) = incoming.try_recv()
        {
            batch.push(next);
        }
        write_batch(database, shared, batch);
    }
}

fn write_batch(database: &Database, shared: &Shared, batch: Vec<Request>) {
    let mut revision = shared.table().revision();
    // What the writes of this batch made of the objects they touched; nobody else sees it yet.
    let mut ahead: BTreeMap<Key, Option<Entry>> = BTreeMap::new();
    let mut changes = Vec::new();
    let mut accepted = Vec::new();
    for Request { key, object, expect, answer } in batch {
        let previous = match ahead.get(&key) {
            Some(entry) => entry.clone(),
            None => shared.table().get(&key).cloned(),
        };
        let base = match (Table::check(previous.as_ref(), expect), object, &previous) {
            (Err(error), _, _) => Err(error),
            (Ok(()), Some(object), _) => Ok((object, false)),
            (Ok(()), None, Some(previous)) => Ok(((*previous.object).clone(), true)),
            (Ok(()), None, None) => Err(StoreError::Conflict { found: None }),
        };
        let (object, gone) = match base {
            Ok(base) => base,
            Err(error) => {
                // A client that went away needs no answer, here and below.
                drop(answer.send(Err(error)));
                continue;
            }
        };
        revision += 1;
        let entry = Entry::new(revision, Arc::new(at_revision(object, revision)));
        ahead.insert(key.clone(), (!gone).then(|| entry.clone()));
        let effect = if gone { Effect::Deleted(entry.clone()) } else { Effect::Put(entry.clone()) };
        changes.push(Change { revision, key, previous, effect });
        accepted.push((answer, entry));
    }
    if changes.is_empty() {
        return;
    }
    let outcome = commit(database, &changes, revision);
    if outcome.is_ok() {
        shared.commits.fetch_add(1, Ordering::Relaxed);
        shared.committed_writes.fetch_add(changes.len() as u64, Ordering::Relaxed);
        let mut table = shared.table();
        changes.into_iter().for_each(|change| table.apply(change));
    }
    shared.signal.raise();
    for (answer, entry) in accepted {
        let outcome = outcome.as_ref().map(|()| entry);
        drop(answer.send(outcome.map_err(|error| StoreError::Unavailable(error.to_string()))));
    }
}

/// Makes a batch durable: redb syncs the file before `commit` returns.
fn commit(database: &Database, changes: &[Change], revision: u64) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for change in changes {
            let path = path_of(&change.key);
            match &change.effect {
                Effect::Put(entry) => {
                    objects.insert(path.as_str(), entry.text().as_ref())?;
                }
                Effect::Deleted(_) => {
                    objects.remove(path.as_str())?;
                }
            }
        }
        transaction.open_table(FACTS)?.insert(REVISION, revision)?;
    }
    transaction.commit()?;
    Ok(())
}
