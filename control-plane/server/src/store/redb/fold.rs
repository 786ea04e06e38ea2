//! The thread that brings redb up to date, a generation of the journal at a time, so that no write waits for it.
//!
//! redb takes no writes after one failed, so the file is then opened again before the next try. What it says of itself tells
//! whether the failed fold is in it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use redb::Database;

use super::journal::Generation;
use super::tables::{Place, State, Tables, fold};

/// The thread's own side.
struct Folder {
    tables: Tables,
    /// Nothing after a failure, until it is open again.
    database: Option<Database>,
    place: Place,
}

/// The other side: a generation is handed over, and later its outcome is there.
#[derive(Debug)]
pub struct Folding {
    jobs: Option<Sender<Arc<Generation>>>,
    outcomes: Receiver<Result<(), String>>,
    thread: Option<JoinHandle<()>>,
}

impl Folding {
    /// Begins over tables that stand at `place`.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn start(tables: Tables, database: Database, place: Place) -> std::io::Result<Self> {
        let (jobs, incoming) = channel::<Arc<Generation>>();
        let (told, outcomes) = channel();
        let mut folder = Folder { tables, database: Some(database), place };
        let thread = std::thread::Builder::new().name("store-fold".into()).spawn(move || {
            while let Ok(generation) = incoming.recv() {
                if told.send(folder.fold(&generation)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { jobs: Some(jobs), outcomes, thread: Some(thread) })
    }

    /// Hands over a generation. One at a time: the next one when this one's outcome was good, or else this one again.
    pub fn begin(&self, generation: Arc<Generation>) {
        // Where the thread has ended, the outcome says so.
        drop(self.jobs.as_ref().map(|jobs| jobs.send(generation)));
    }

    /// The outcome, if it is there already.
    pub fn outcome(&self) -> Option<Result<(), String>> {
        self.outcomes.try_recv().ok()
    }

    /// The outcome, when it is there.
    pub fn wait(&self) -> Result<(), String> {
        self.outcomes.recv().unwrap_or_else(|_| Err("the thread that folds the journal has ended".into()))
    }
}

impl Drop for Folding {
    fn drop(&mut self) {
        self.jobs.take();
        if let Some(thread) = self.thread.take() {
            // It panics only where redb does; the file is consistent either way.
            drop(thread.join());
        }
    }
}

impl Folder {
    fn fold(&mut self, generation: &Generation) -> Result<(), String> {
        let next = Place { revision: generation.revision, generation: generation.number + 1, ..self.place };
        self.open_again(next)?;
        if self.place == next {
            return Ok(());
        }
        let Some(database) = &self.database else { return Err("its file is not open".into()) };
        let folded = fold(database, &generation.latest, next);
        match folded {
            Ok(()) => self.place = next,
            Err(_) => self.database = None,
        }
        folded
    }

    /// Opens the tables where they are not open; a fold that failed may turn out to be in them.
    fn open_again(&mut self, next: Place) -> Result<(), String> {
        if self.database.is_some() {
            return Ok(());
        }
        match self.tables.open() {
            Ok(Some((database, State::WithJournal(place)))) if place == self.place || place == next => {
                tracing::info!(arrived = place == next, "the store's file was opened again");
                (self.place, self.database) = (place, Some(database));
                Ok(())
            }
            Ok(_) => {
                Err("the store's file is not as it was left: it was damaged, or written by someone else"
                    .into())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}
