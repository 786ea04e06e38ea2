//! The one thread that writes: whatever waits goes into one record of the journal, and is seen and answered when that is durable.
//!
//! A record that failed is settled before anything else is written: another takes its place, so that it is not there, whatever
//! the disk had made of it. Its clients were told of a failure, and find nothing of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::errors::in_words;
use super::fold::Folding;
use super::journal::{AppendError, Generation, Journal};
use super::tables::path_of;
use crate::store::table::{Table, at_revision};
use crate::store::{Change, Effect, Entry, Expect, Key, Signal, StoreError};

/// Most writes that share one record, and most bytes of objects: whoever comes then has the next.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 1 << 20;

/// What the writer is asked for.
pub enum Request {
    /// To write.
    Write(Write),
    /// To see whether the journal can be written, where that failed before.
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
    /// Records since the store was opened.
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

/// A generation that is being folded.
struct Sealed {
    generation: Arc<Generation>,
    /// Nothing while the thread has it; after a failure, how long the journal is to be for the next try.
    again_at: Option<u64>,
}

/// The owner of the journal.
pub struct Writer {
    journal: Journal,
    folding: Folding,
    sealed: Option<Sealed>,
    /// Where everyone looks.
    shared: Arc<Shared>,
}

impl Writer {
    /// A writer that goes on with a journal, while what is before it is folded.
    pub fn new(journal: Journal, sealed: Option<Generation>, folding: Folding, shared: Arc<Shared>) -> Self {
        let mut writer = Self { journal, folding, sealed: None, shared };
        if let Some(generation) = sealed {
            writer.hand_over(Arc::new(generation));
        }
        writer
    }

    /// Serves requests until the store is dropped, and leaves nothing in the journal then, if it can.
    pub fn serve(mut self, incoming: &Receiver<Request>) {
        while let Ok(first) = incoming.recv() {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            let mut next = Some(first);
            while let Some(request) = next {
                match request {
                    Request::Write(write) => {
                        bytes += write.room.num_permits();
                        batch.push(write);
                    }
                    Request::Look => {}
                }
                let more = batch.len() < BATCH && bytes < BATCH_BYTES;
                next = if more { incoming.try_recv().ok() } else { None };
            }
            self.write_batch(batch);
        }
        if let Err(reason) = self.close() {
            tracing::warn!(%reason, "the journal is not folded; the next start reads it");
        }
    }

    fn write_batch(&mut self, batch: Vec<Write>) {
        if let Err(reason) = self.settle() {
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
        let written = self.make_room().and_then(|()| self.append(&changes));
        match &written {
            Ok(()) => {
                self.shared.commits.fetch_add(1, Ordering::Relaxed);
                self.shared.committed_writes.fetch_add(changes.len() as u64, Ordering::Relaxed);
                self.take_in(changes);
                self.shared.trouble().take();
            }
            Err(reason) => {
                tracing::error!(%reason, "writes cannot be stored");
                self.shared.trouble().replace(reason.clone());
                // Those who read what became of their write find it settled, where it can be.
                drop(self.settle());
            }
        }
        written
    }

    fn append(&mut self, changes: &[Change]) -> Result<(), String> {
        let writes: Vec<(String, Option<Bytes>)> = changes.iter().map(operation).collect();
        let mut written = self.journal.append(writes.clone());
        if matches!(written, Err(AppendError::NoRoom(_))) && self.may_rotate() {
            // The other file may have room.
            self.rotate();
            written = self.journal.append(writes);
        }
        written.map_err(|error| match error {
            AppendError::NoRoom(error) | AppendError::InDoubt(error) => in_words(&error),
        })
    }

    /// Puts another record into the place of one that failed.
    fn settle(&mut self) -> Result<(), String> {
        if !self.journal.is_in_doubt() {
            return Ok(());
        }
        self.append(&[]).inspect_err(|reason| {
            tracing::error!(%reason, "what became of a write that failed cannot be settled");
            self.shared.trouble().replace(reason.clone());
        })
    }

    fn take_in(&self, changes: Vec<Change>) {
        let mut table = self.shared.table();
        let before = table.revision();
        changes.into_iter().for_each(|change| table.apply(change));
        if table.revision() > before {
            table.wake(&self.shared.signal, before);
        }
    }

    /// Goes over to the other file where it is time, and waits for that one only where the journal became far too long.
    fn make_room(&mut self) -> Result<(), String> {
        if let Some(outcome) = self.folding.outcome() {
            // Not this write's trouble: the journal holds all that redb could not take.
            drop(self.heed(outcome));
        }
        match &self.sealed {
            None if self.journal.is_due() => self.rotate(),
            Some(Sealed { generation, again_at: Some(at) }) if self.journal.length() >= *at => {
                self.hand_over(Arc::clone(generation));
            }
            _ => {}
        }
        while self.journal.is_full() {
            self.fold_now()?;
            self.rotate();
        }
        Ok(())
    }

    /// A record in doubt must be settled before there are any of the next generation: they would stand on its absence.
    fn may_rotate(&self) -> bool {
        self.sealed.is_none() && self.journal.length() > 0 && !self.journal.is_in_doubt()
    }

    fn rotate(&mut self) {
        let generation = self.journal.rotate();
        self.hand_over(Arc::new(generation));
    }

    fn hand_over(&mut self, generation: Arc<Generation>) {
        self.folding.begin(Arc::clone(&generation));
        self.sealed = Some(Sealed { generation, again_at: None });
    }

    fn heed(&mut self, outcome: Result<(), String>) -> Result<(), String> {
        match &outcome {
            Ok(()) => self.sealed = None,
            Err(reason) => {
                tracing::error!(%reason, "the journal cannot be folded into the store's file");
                if let Some(sealed) = &mut self.sealed {
                    sealed.again_at = Some(self.journal.length() + self.journal.sizes().chunk);
                }
            }
        }
        outcome
    }

    /// Waits until no generation is left to be folded but the one that is written.
    fn fold_now(&mut self) -> Result<(), String> {
        if let Some(Sealed { generation, again_at: Some(_) }) = &self.sealed {
            self.hand_over(Arc::clone(generation));
        }
        if self.sealed.is_none() {
            return Ok(());
        }
        let outcome = self.folding.wait();
        self.heed(outcome)
    }

    fn close(&mut self) -> Result<(), String> {
        self.settle()?;
        // One that failed long ago may pass now; one that fails now is left to the next start.
        self.fold_now().or_else(|_| self.fold_now())?;
        if self.journal.length() > 0 {
            self.rotate();
            self.fold_now()?;
        }
        Ok(())
    }
}

/// What a change makes of its object.
fn operation(change: &Change) -> (String, Option<Bytes>) {
    let text = match &change.effect {
        Effect::Put(entry) => Some(entry.text()),
        Effect::Deleted(_) => None,
    };
    (path_of(&change.key), text)
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
