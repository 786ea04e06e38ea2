//! The file: opening it with everything checked, reading it, and committing batches to it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, StorageError, TableDefinition,
    TableError,
};
use serde_json::Value;

use super::medium::{Careful, Unsynced};
use crate::store::{Change, Effect, Entry, Key};

const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
const REVISION: &str = "revision";
const FORMAT: &str = "format";
/// What this version writes; a file of another format is refused.
const CURRENT_FORMAT: u64 = 1;
/// Bytes of the file that redb keeps in memory. Objects are read from the table; only its own pages pass through here.
const CACHE: usize = 4 * 1024 * 1024;

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

/// What a store's bytes lie on. It is opened anew after it failed.
pub type Medium = Box<dyn Fn() -> io::Result<Box<dyn StorageBackend>> + Send>;

/// The file at `path`, made readable by its owner only: it holds Secrets.
pub fn on_disk(path: PathBuf) -> Medium {
    Box::new(move || {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        let backend = FileBackend::new(file).map_err(|error| match error {
            DatabaseError::Storage(StorageError::Io(error)) => error,
            other => io::Error::other(other.to_string()),
        })?;
        Ok(Box::new(backend))
    })
}

/// A store file and how to get at it.
pub struct File {
    path: PathBuf,
    medium: Medium,
    unsynced: Unsynced,
}

impl File {
    /// A file that errors call `path`.
    pub fn new(path: PathBuf, medium: Medium) -> Self {
        Self { path, medium, unsynced: Unsynced::default() }
    }

    /// Opens the database and verifies its checksums; a new one is given its format and first revision. Also answers the
    /// revision at which it stands.
    ///
    /// # Errors
    /// [`OpenError`] with a remedy in its message.
    pub fn open(&self) -> Result<(Database, u64), OpenError> {
        // The check of the whole file finds what is damaged; should that trip an assertion inside redb, it is no crash either.
        guarded(|| self.opened()).unwrap_or_else(|| Err(self.corrupt("its pages contradict each other")))
    }

    fn opened(&self) -> Result<(Database, u64), OpenError> {
        let medium = (self.medium)().map_err(|error| self.io(&error))?;
        let careful = Careful::new(medium, Arc::clone(&self.unsynced)).map_err(|error| self.io(&error))?;
        // Without the check redb trusts a file that was closed in order, and panics where bytes of it were changed since.
        let mut builder = Database::builder();
        let opened = builder.set_check_integrity_on_open(true).set_cache_size(CACHE);
        let database = opened.create_with_backend(careful).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => OpenError::Locked { path: self.path.clone() },
            DatabaseError::Storage(StorageError::Corrupted(reason)) => self.corrupt(&reason),
            DatabaseError::Storage(StorageError::Io(error)) if error.kind() != io::ErrorKind::InvalidData => {
                self.io(&error)
            }
            other => self.corrupt(&other.to_string()),
        })?;
        let revision = self.revision(&database)?;
        Ok((database, revision))
    }

    fn revision(&self, database: &Database) -> Result<u64, OpenError> {
        let transaction = database.begin_read().map_err(|error| self.corrupt(&error.to_string()))?;
        let facts = match transaction.open_table(FACTS) {
            Ok(facts) => facts,
            Err(TableError::TableDoesNotExist(_)) => {
                initialise(database).map_err(|error| self.io(&io::Error::other(error.to_string())))?;
                return Ok(1);
            }
            Err(error) => return Err(self.corrupt(&error.to_string())),
        };
        let fact = |name: &str| -> Result<u64, OpenError> {
            let value = facts.get(name).map_err(|error| self.corrupt(&error.to_string()))?;
            value.map(|value| value.value()).ok_or_else(|| self.corrupt(&format!("it lacks its {name}")))
        };
        let found = fact(FORMAT)?;
        if found != CURRENT_FORMAT {
            return Err(OpenError::Format { path: self.path.clone(), found });
        }
        fact(REVISION)
    }

    /// All objects of a database that stands at `revision`.
    ///
    /// # Errors
    /// [`OpenError::Corrupt`].
    pub fn objects(&self, database: &Database, revision: u64) -> Result<BTreeMap<Key, Entry>, OpenError> {
        let read = guarded(|| self.read(database, revision));
        read.unwrap_or_else(|| Err(self.corrupt("its pages contradict each other")))
    }

    fn read(&self, database: &Database, revision: u64) -> Result<BTreeMap<Key, Entry>, OpenError> {
        let corrupt = |error: &dyn std::fmt::Display| self.corrupt(&error.to_string());
        let transaction = database.begin_read().map_err(|error| corrupt(&error))?;
        let stored = transaction.open_table(OBJECTS).map_err(|error| corrupt(&error))?;
        let mut objects = BTreeMap::new();
        for row in stored.iter().map_err(|error| corrupt(&error))? {
            let (name, bytes) = row.map_err(|error| corrupt(&error))?;
            let bad = |what: &str| self.corrupt(&format!("entry `{}` {what}", name.value()));
            let key = key_of(name.value()).ok_or_else(|| bad("is not an object's address"))?;
            let object: Value = serde_json::from_slice(bytes.value()).map_err(|_| bad("is not JSON"))?;
            let at = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
            let at = at.and_then(|at| at.parse().ok()).ok_or_else(|| bad("has no resourceVersion"))?;
            if at > revision {
                return Err(bad("is newer than the store"));
            }
            objects.insert(key, Entry::new(at, Arc::new(object)));
        }
        Ok(objects)
    }

    fn corrupt(&self, reason: &str) -> OpenError {
        OpenError::Corrupt { path: self.path.clone(), reason: reason.into() }
    }

    fn io(&self, error: &io::Error) -> OpenError {
        OpenError::Io { path: self.path.clone(), reason: error.to_string() }
    }

    /// What errors call the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// `work`'s result, or nothing where it panicked.
fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

fn path_of(key: &Key) -> String {
    format!("{}/{}/{}", key.resource, key.namespace, key.name)
}

fn key_of(path: &str) -> Option<Key> {
    let mut parts = path.splitn(3, '/');
    Some(Key::new(parts.next()?, parts.next()?, parts.next()?))
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

/// Makes a batch durable: redb syncs the file before this returns. Without changes it shows whether the file can be written.
///
/// # Errors
/// In words for people. The database takes no more writes then: it is to be opened again.
pub fn commit(database: &Database, changes: &[Change], revision: u64) -> Result<(), String> {
    match guarded(|| write(database, changes, revision)) {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => Err(in_words(&error)),
        None => Err("its pages contradict each other".into()),
    }
}

fn write(database: &Database, changes: &[Change], revision: u64) -> Result<(), redb::Error> {
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

fn in_words(error: &redb::Error) -> String {
    match error {
        redb::Error::Io(error)
            if matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
            ) =>
        {
            format!(
                "the disk is full ({error}); make room in the data directory: reads go on meanwhile, and writes as soon as there is room"
            )
        }
        other => other.to_string(),
    }
}
