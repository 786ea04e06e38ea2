//! The one thread that writes: whatever waits goes into one transaction, and is seen and answered when that is durable.
//!
//! redb takes no writes after one failed, so the file is then opened again. What it holds tells whether the failed batch is in
//! it; where it is, it is taken in, though its clients were told of a failure: they know no more than that it may have happened.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::Database;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::file::{File, commit};
use crate::store::table::{Table, at_revision};
use crate::store::{Change, Effect, Entry, Expect, Key, Signal, StoreError};

/// Most writes that share one transaction.
const BATCH: usize = 256;

/// What the writer is asked for.
pub enum Request {
    /// To write.
    Write(Write),
    /// To see whether the file can be written, where that failed before.
    Look,
}

/// A write that waits.
pub struct Write {
    /// Of what.
    pub key: Key,
    /// What to put there; nothing deletes.
    pub object: Option<Value>,
    /// What must be so.
    pub expect: Expect,
    /// For whom it is done.
    pub answer: oneshot::Sender<Result<Entry, StoreError>>,
    /// Its share of the room in the queue.
    pub room: OwnedSemaphorePermit,
}

/// What reads see, and what the writer says of itself.
#[derive(Debug)]
pub struct Shared {
    table: Mutex<Table>,
    /// Raised after each batch.
    pub signal: Arc<Signal>,
    trouble: Mutex<Option<String>>,
    /// Transactions since the store was opened.
    pub commits: AtomicU64,
    /// Writes in them.
    pub committed_writes: AtomicU64,
}

impl Shared {
    /// Everything that was acknowledged.
    pub fn new(table: Table) -> Self {
        Self {
            table: Mutex::new(table),
            signal: Arc::default(),
            trouble: Mutex::default(),
            commits: AtomicU64::default(),
            committed_writes: AtomicU64::default(),
        }
    }

    /// The objects and their history.
    pub fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the last write failed, unless one succeeded since.
    pub fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The owner of the file.
pub struct Writer {
    /// How to open it again.
    pub file: File,
    /// Nothing after a failure, until it is open again.
    pub database: Option<Database>,
    /// Where everyone looks.
    pub shared: Arc<Shared>,
    /// The batch that failed, of which only the file can say whether it is there.
    pub unsettled: Vec<Change>,
}

impl Writer {
    /// Serves requests until the store is dropped.
    pub fn serve(mut self, incoming: &Receiver<Request>) {
        while let Ok(first) = incoming.recv() {
            let mut batch = Vec::new();
            let mut next = Some(first);
            while let Some(request) = next {
                match request {
                    Request::Write(write) => batch.push(write),
                    Request::Look => {}
                }
                next = if batch.len() < BATCH { incoming.try_recv().ok() } else { None };
            }
            self.write_batch(batch);
        }
    }

    fn write_batch(&mut self, batch: Vec<Write>) {
        if let Err(reason) = self.open_again() {
            for write in batch {
                // A client that went away needs no answer, here and below.
                drop(write.answer.send(Err(StoreError::Unavailable(reason.clone()))));
            }
            return;
        }
        let (changes, accepted) = prepare(&self.shared, batch);
        if changes.is_empty() && self.shared.trouble().is_none() {
            return;
        }
        let outcome = self.commit(changes);
        for (answer, entry) in accepted {
            let outcome = outcome.clone().map(|()| entry);
            drop(answer.send(outcome.map_err(StoreError::Unavailable)));
        }
    }

    fn commit(&mut self, changes: Vec<Change>) -> Result<(), String> {
        let Some(database) = &self.database else { return Err("its file is not open".into()) };
        let revision = changes.last().map_or_else(|| self.shared.table().revision(), |last| last.revision);
        let committed = commit(database, &changes, revision);
        match &committed {
            Ok(()) => {
                self.shared.commits.fetch_add(1, Ordering::Relaxed);
                self.shared.committed_writes.fetch_add(changes.len() as u64, Ordering::Relaxed);
                self.take_in(changes);
                self.shared.trouble().take();
            }
            Err(reason) => {
                tracing::error!(%reason, "writes cannot be stored");
                self.shared.trouble().replace(reason.clone());
                self.database = None;
                self.unsettled = changes;
                // Those who read what became of their write find it settled, where it can be.
                drop(self.open_again());
            }
        }
        committed
    }

    fn take_in(&self, changes: Vec<Change>) {
        let mut table = self.shared.table();
        let before = table.revision();
        changes.into_iter().for_each(|change| table.apply(change));
        if table.revision() > before {
            table.wake(&self.shared.signal, before);
        }
    }

    /// Opens the file where it is not open, and settles what became of the batch that failed.
    fn open_again(&mut self) -> Result<(), String> {
        if self.database.is_some() {
            return Ok(());
        }
        let opened = self.file.open().map_err(|error| error.to_string()).and_then(|(database, found)| {
            let known = self.shared.table().revision();
            let written = self.unsettled.last().map(|last| last.revision);
            match found {
                found if found == known => Ok((database, false)),
                found if Some(found) == written => Ok((database, true)),
                found => Err(format!(
                    "{} stands at revision {found} instead of {known}: it was damaged, or written by someone else",
                    self.file.path().display()
                )),
            }
        });
        match opened {
            Ok((database, arrived)) => {
                let unsettled = std::mem::take(&mut self.unsettled);
                if arrived {
                    self.take_in(unsettled);
                }
                tracing::info!(arrived, "the store was opened again");
                self.database = Some(database);
                Ok(())
            }
            Err(reason) => {
                tracing::error!(%reason, "the store cannot be opened again");
                self.shared.trouble().replace(reason.clone());
                Err(reason)
            }
        }
    }
}

type Accepted = (oneshot::Sender<Result<Entry, StoreError>>, Entry);

/// Checks preconditions in order, and answers those that do not hold.
fn prepare(shared: &Shared, batch: Vec<Write>) -> (Vec<Change>, Vec<Accepted>) {
    let mut revision = shared.table().revision();
    // What the writes of this batch made of the objects they touched; nobody else sees it yet.
    let mut ahead: BTreeMap<Key, Option<Entry>> = BTreeMap::new();
    let mut changes = Vec::new();
    let mut accepted = Vec::new();
    for Write { key, object, expect, answer, room } in batch {
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
        drop(room);
        let (object, gone) = match base {
            Ok(base) => base,
            Err(error) => {
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
    (changes, accepted)
}
