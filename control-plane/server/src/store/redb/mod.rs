//! The store that outlives the process: a journal that is synced before a write is acknowledged, and redb behind it.
//!
//! Reads come from memory. One thread of its own does all writing, so no async thread ever blocks: it takes whatever writes
//! wait, checks their preconditions in order, appends them to the journal as one record, and only then lets anyone see them.
//! Another thread folds the journal into redb. The history starts empty after a restart; the revision goes on where it stood.

mod errors;
mod fold;
mod journal;
mod medium;
mod tables;
mod writer;

use std::future::ready;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use redb::Database;
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

use self::errors::Names;
pub use self::errors::OpenError;
use self::fold::Folding;
pub use self::journal::Sizes;
use self::journal::{FIRST, Found, Generation, Journal};
use self::medium::Directory;
pub use self::medium::{Medium, Part};
use self::tables::{Place, State, Tables};
use self::writer::{Request, Shared, Write, Writer};
use super::table::{Table, weight};
use super::{Answer, Change, Entry, Expect, Figures, Key, Listing, Scope, Signal, Store, StoreError, Turn};

/// Bytes of objects that may wait to be written; whoever comes then waits for room.
const WAITING: u32 = 64 * 1024 * 1024;

/// Objects in a redb file and its journal.
#[derive(Debug)]
pub struct RedbStore {
    shared: Arc<Shared>,
    /// Nothing once the store is being dropped.
    requests: Mutex<Option<Sender<Request>>>,
    room: Arc<Semaphore>,
    writer: Option<JoinHandle<()>>,
}

impl RedbStore {
    /// Opens the file and the journal beside it, or makes them, readable by their owner only: they hold Secrets. Blocks while
    /// they are read and their checksums are verified.
    ///
    /// # Errors
    /// [`OpenError`] with a remedy in its message.
    pub fn open(path: &Path, history: usize) -> Result<Self, OpenError> {
        Self::open_over(path, history, Arc::new(Directory::new(path.into())), Sizes::default())
    }

    /// As [`Self::open`], over another medium than files, which errors call `path`, and with a journal of other sizes.
    ///
    /// # Errors
    /// [`OpenError`] with a remedy in its message.
    pub fn open_over(
        path: &Path,
        history: usize,
        medium: Arc<dyn Medium>,
        sizes: Sizes,
    ) -> Result<Self, OpenError> {
        let names = Names::new(path.into());
        let Opened { tables, database, place, journal, sealed } = open(&names, medium, sizes)?;
        let mut objects = tables.objects(&database, place.revision)?;
        for generation in sealed.iter().chain([journal.current()]) {
            let part = generation.part();
            tables::overlay(&mut objects, generation).map_err(|bad| names.corrupt(part, &bad))?;
        }
        let revision = journal.current().revision;
        let shared = Arc::new(Shared::new(Table::new(revision, objects, history)));
        let no_thread = |error: std::io::Error| names.io(Part::Store, &error);
        let folding = Folding::start(tables, database, place).map_err(no_thread)?;
        let writer = Writer::new(journal, sealed, folding, Arc::clone(&shared));
        let (requests, incoming) = channel();
        let writer = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || writer.serve(&incoming))
            .map_err(no_thread)?;
        let room = Arc::new(Semaphore::new(WAITING as usize));
        Ok(Self { shared, requests: Mutex::new(Some(requests)), room, writer: Some(writer) })
    }

    fn send(&self, request: Request) -> Result<(), StoreError> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = requests.as_ref().is_some_and(|requests| requests.send(request).is_ok());
        if sent { Ok(()) } else { Err(ended()) }
    }

    async fn request(&self, key: Key, object: Option<Value>, expect: Expect) -> Result<Entry, StoreError> {
        let share = object.as_ref().map_or(0, weight).min(WAITING as usize);
        let share = u32::try_from(share).unwrap_or(WAITING);
        let room = Arc::clone(&self.room).acquire_many_owned(share).await.map_err(|_| ended())?;
        let (answer, answered) = oneshot::channel();
        self.send(Request::Write(Write { key, object, expect, answer, room }))?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// A store whose files are open.
struct Opened {
    tables: Tables,
    database: Database,
    place: Place,
    journal: Journal,
    sealed: Option<Generation>,
}

fn open(names: &Names, medium: Arc<dyn Medium>, sizes: Sizes) -> Result<Opened, OpenError> {
    let tables = Tables::new(names.clone(), Arc::clone(&medium));
    let there = tables.open()?;
    let is_new = there.is_none();
    let (database, state) = there.map_or_else(|| tables.begin(), Ok)?;
    let revision = match state {
        State::WithJournal(place) => {
            let Found { journal, sealed } = journal::find(medium.as_ref(), names, sizes, place)?;
            return Ok(Opened { tables, database, place, journal, sealed });
        }
        State::WithoutJournal(revision) => revision,
    };
    // The journal is there before the store says that it has one, and before a new store has its name: a start that is killed
    // in between finds all as it was.
    let place = Place { store: fastrand::u64(..), revision, generation: FIRST };
    let journal = journal::make(medium.as_ref(), names, sizes, place)?;
    let failed = |error: std::io::Error| names.io(Part::Store, &error);
    tables::adopt(&database, place).map_err(|error| failed(std::io::Error::other(error)))?;
    if is_new {
        medium.publish().map_err(failed)?;
    }
    Ok(Opened { tables, database, place, journal, sealed: None })
}

fn ended() -> StoreError {
    StoreError::Unavailable("its writer has ended".into())
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).take();
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
        Box::pin(self.request(key, Some(object), expect))
    }

    fn delete(&self, key: Key, revision: u64) -> Answer<'_, Entry> {
        Box::pin(self.request(key, None, Expect::Revision(revision)))
    }

    fn revision(&self) -> u64 {
        self.shared.table().revision()
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

    fn health(&self) -> Result<(), String> {
        let trouble = self.shared.trouble().clone();
        match trouble {
            None => Ok(()),
            Some(reason) => {
                // Nobody may write any more; so whoever asks makes the writer look again.
                drop(self.send(Request::Look));
                Err(reason)
            }
        }
    }
}
