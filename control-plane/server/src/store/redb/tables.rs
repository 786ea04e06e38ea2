//! redb: opening it with everything checked, reading it, and bringing it up to date with the journal.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, StorageError, TableDefinition,
    TableError,
};
use serde_json::Value;

use super::errors::{Names, OpenError, in_words};
use super::journal::{Generation, Latest};
use super::medium::{Careful, Medium, Part, Unsynced};
use crate::store::{Entry, Key};

const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
const FORMAT: &str = "format";
const REVISION: &str = "revision";
const GENERATION: &str = "generation";
const STORE: &str = "store";
/// A store without a journal, which becomes one that has it.
const WITHOUT_JOURNAL: u64 = 1;
/// What this version writes. A version that knows no journal refuses it.
const CURRENT_FORMAT: u64 = 2;
/// Bytes of the file that redb keeps in memory. Objects are read from the table; only its own pages pass through here.
const CACHE: usize = 4 * 1024 * 1024;

/// How far redb's tables are, and where the journal goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The identity that the store and its journal share.
    pub store: u64,
    /// The last write that the tables hold.
    pub revision: u64,
    /// The oldest generation of the journal that they do not hold.
    pub generation: u64,
}

/// What a database says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being made, or was made before there were journals, and stands at this revision.
    WithoutJournal(u64),
    /// It has a journal.
    WithJournal(Place),
}

/// redb's file and how to get at it.
#[derive(Debug)]
pub struct Tables {
    names: Names,
    medium: Arc<dyn Medium>,
    unsynced: Unsynced,
}

impl Tables {
    /// Tables that errors call as `names` says.
    pub fn new(names: Names, medium: Arc<dyn Medium>) -> Self {
        Self { names, medium, unsynced: Unsynced::default() }
    }

    /// Opens the database and verifies its checksums.
    ///
    /// # Errors
    /// [`OpenError`] with a remedy in its message.
    pub fn open(&self) -> Result<Option<(Database, State)>, OpenError> {
        let backend = self.medium.open(Part::Store, false).map_err(|error| self.io(&error))?;
        let Some(backend) = backend else { return Ok(None) };
        if backend.len().map_err(|error| self.io(&error))? == 0 {
            return Err(self.corrupt("it is empty, and a store never is"));
        }
        self.take_up(backend).map(Some)
    }

    /// Begins a database that is not published yet.
    ///
    /// # Errors
    /// [`OpenError`] with a remedy in its message.
    pub fn begin(&self) -> Result<(Database, State), OpenError> {
        let backend = self.medium.open(Part::Fresh, true).map_err(|error| self.io(&error))?;
        let backend = backend.ok_or_else(|| self.io(&io::ErrorKind::NotFound.into()))?;
        self.take_up(backend)
    }

    fn take_up(&self, backend: Box<dyn StorageBackend>) -> Result<(Database, State), OpenError> {
        // The check of the whole file finds what is damaged; should that trip an assertion inside redb, it is no crash either.
        let opened = guarded(|| {
            let careful =
                Careful::new(backend, Arc::clone(&self.unsynced)).map_err(|error| self.io(&error))?;
            let database = self.checked(careful)?;
            let state = self.state(&database)?;
            Ok((database, state))
        });
        opened.unwrap_or_else(|| Err(self.contradictory()))
    }

    fn checked(&self, careful: Careful) -> Result<Database, OpenError> {
        // Without the check redb trusts a file that was closed in order, and panics where bytes of it were changed since.
        let mut builder = Database::builder();
        let opened = builder.set_check_integrity_on_open(true).set_cache_size(CACHE);
        opened.create_with_backend(careful).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => self.names.locked(Part::Store),
            DatabaseError::Storage(StorageError::Corrupted(reason)) => self.corrupt(&reason),
            DatabaseError::Storage(StorageError::Io(error)) if error.kind() != io::ErrorKind::InvalidData => {
                self.io(&error)
            }
            other => self.corrupt(&other.to_string()),
        })
    }

    fn state(&self, database: &Database) -> Result<State, OpenError> {
        let transaction = database.begin_read().map_err(|error| self.corrupt(&error.to_string()))?;
        let facts = match transaction.open_table(FACTS) {
            Ok(facts) => facts,
            Err(TableError::TableDoesNotExist(_)) => return Ok(State::WithoutJournal(1)),
            Err(error) => return Err(self.corrupt(&error.to_string())),
        };
        let fact = |name: &str| -> Result<u64, OpenError> {
            let value = facts.get(name).map_err(|error| self.corrupt(&error.to_string()))?;
            value.map(|value| value.value()).ok_or_else(|| self.corrupt(&format!("it lacks its {name}")))
        };
        let revision = fact(REVISION)?;
        match fact(FORMAT)? {
            WITHOUT_JOURNAL => Ok(State::WithoutJournal(revision)),
            CURRENT_FORMAT => {
                Ok(State::WithJournal(Place { store: fact(STORE)?, revision, generation: fact(GENERATION)? }))
            }
            found => Err(self.names.format(Part::Store, found, CURRENT_FORMAT)),
        }
    }

    /// All objects of a database that stands at a revision.
    ///
    /// # Errors
    /// [`OpenError::Corrupt`].
    pub fn objects(&self, database: &Database, revision: u64) -> Result<BTreeMap<Key, Entry>, OpenError> {
        let read = guarded(|| self.read(database, revision));
        read.unwrap_or_else(|| Err(self.contradictory()))
    }

    fn read(&self, database: &Database, revision: u64) -> Result<BTreeMap<Key, Entry>, OpenError> {
        let corrupt = |error: &dyn std::fmt::Display| self.corrupt(&error.to_string());
        let transaction = database.begin_read().map_err(|error| corrupt(&error))?;
        let stored = transaction.open_table(OBJECTS).map_err(|error| corrupt(&error))?;
        let mut objects = BTreeMap::new();
        for row in stored.iter().map_err(|error| corrupt(&error))? {
            let (name, bytes) = row.map_err(|error| corrupt(&error))?;
            let (key, entry) =
                parse(name.value(), bytes.value(), revision).map_err(|bad| self.corrupt(&bad))?;
            objects.insert(key, entry);
        }
        Ok(objects)
    }

    fn corrupt(&self, reason: &str) -> OpenError {
        self.names.corrupt(Part::Store, reason)
    }

    fn contradictory(&self) -> OpenError {
        self.corrupt("its pages contradict each other")
    }

    fn io(&self, error: &io::Error) -> OpenError {
        self.names.io(Part::Store, error)
    }
}

/// `work`'s result, or nothing where it panicked.
fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Where an object is kept.
pub fn path_of(key: &Key) -> String {
    format!("{}/{}/{}", key.resource, key.namespace, key.name)
}

fn key_of(path: &str) -> Option<Key> {
    let mut parts = path.splitn(3, '/');
    Some(Key::new(parts.next()?, parts.next()?, parts.next()?))
}

fn parse(path: &str, text: &[u8], revision: u64) -> Result<(Key, Entry), String> {
    let bad = |what: &str| format!("entry `{path}` {what}");
    let key = key_of(path).ok_or_else(|| bad("is not an object's address"))?;
    let object: Value = serde_json::from_slice(text).map_err(|_| bad("is not JSON"))?;
    let at = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    let at = at.and_then(|at| at.parse().ok()).ok_or_else(|| bad("has no resourceVersion"))?;
    if at > revision {
        return Err(bad("is newer than the store"));
    }
    Ok((key, Entry::new(at, Arc::new(object))))
}

/// Takes in what a journal made of objects.
///
/// # Errors
/// What is wrong with one.
pub fn overlay(objects: &mut BTreeMap<Key, Entry>, generation: &Generation) -> Result<(), String> {
    for (path, text) in &generation.latest {
        match text {
            Some(text) => {
                let (key, entry) = parse(path, text, generation.revision)?;
                objects.insert(key, entry);
            }
            None => {
                let key = key_of(path).ok_or_else(|| format!("entry `{path}` is not an object's address"))?;
                objects.remove(&key);
            }
        }
    }
    Ok(())
}

/// Gives a database a journal, durably.
///
/// # Errors
/// In words for people.
pub fn adopt(database: &Database, place: Place) -> Result<(), String> {
    commit(database, &Latest::new(), place, true)
}

/// Takes a generation in, durably: redb syncs the file before this returns.
///
/// # Errors
/// In words for people. The database takes no more writes then: it is to be opened again.
pub fn fold(database: &Database, latest: &Latest, place: Place) -> Result<(), String> {
    commit(database, latest, place, false)
}

fn commit(database: &Database, latest: &Latest, place: Place, is_new: bool) -> Result<(), String> {
    match guarded(|| write(database, latest, place, is_new)) {
        Some(Ok(())) => Ok(()),
        Some(Err(redb::Error::Io(error))) => Err(in_words(&error)),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("its pages contradict each other".into()),
    }
}

fn write(database: &Database, latest: &Latest, place: Place, is_new: bool) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for (path, text) in latest {
            match text {
                Some(text) => drop(objects.insert(path.as_str(), text.as_ref())?),
                None => drop(objects.remove(path.as_str())?),
            }
        }
        let mut facts = transaction.open_table(FACTS)?;
        if is_new {
            facts.insert(FORMAT, CURRENT_FORMAT)?;
            facts.insert(STORE, place.store)?;
        }
        facts.insert(REVISION, place.revision)?;
        facts.insert(GENERATION, place.generation)?;
    }
    transaction.commit()?;
    Ok(())
}
