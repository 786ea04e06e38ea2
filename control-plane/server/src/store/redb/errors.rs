//! Why a store cannot be opened; each message names a file and says what to do.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use super::medium::Part;

/// Why a store cannot be opened.
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
    /// The file is not part of a store, or was damaged.
    #[error(
        "{path} is not a usable store ({reason}): restore it from a copy, with the other files of the store, or move it away, with them, to start with an empty one"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file was written by another version.
    #[error(
        "{path} has format {found}, and this version reads format {known}: use the version that wrote it"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The format found.
        found: u64,
        /// The newest format that this version reads.
        known: u64,
    },
    /// The file is not there, though it was.
    #[error(
        "{path} is missing, and with it writes that {store} does not hold yet: put it back, or restore all files of the store from a copy"
    )]
    NoJournal {
        /// The file.
        path: PathBuf,
        /// The store's.
        store: PathBuf,
    },
    /// The journal of another store.
    #[error(
        "{path} holds writes of another store than {store}, which may be missing: put back files that belong together, or move {store} and both of its journals away to begin with an empty store, without what they hold"
    )]
    Stray {
        /// The journal's file.
        path: PathBuf,
        /// The store's, which may not be there.
        store: PathBuf,
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

/// Makes errors that name the files of one store.
#[derive(Clone, Debug)]
pub struct Names {
    store: PathBuf,
}

impl Names {
    /// Of the store that errors call `store`.
    pub fn new(store: PathBuf) -> Self {
        Self { store }
    }

    /// What errors call a part.
    pub fn path(&self, part: Part) -> PathBuf {
        part.path(&self.store)
    }

    /// It is in use.
    pub fn locked(&self, part: Part) -> OpenError {
        OpenError::Locked { path: self.path(part) }
    }

    /// It is damaged.
    pub fn corrupt(&self, part: Part, reason: &str) -> OpenError {
        OpenError::Corrupt { path: self.path(part), reason: reason.into() }
    }

    /// It is of another format.
    pub fn format(&self, part: Part, found: u64, known: u64) -> OpenError {
        OpenError::Format { path: self.path(part), found, known }
    }

    /// It is a journal, and not there.
    pub fn no_journal(&self, part: Part) -> OpenError {
        OpenError::NoJournal { path: self.path(part), store: self.store.clone() }
    }

    /// It is some other store's journal.
    pub fn stray(&self, part: Part) -> OpenError {
        OpenError::Stray { path: self.path(part), store: self.store.clone() }
    }

    /// It cannot be read or written.
    pub fn io(&self, part: Part, error: &io::Error) -> OpenError {
        match error.kind() {
            ErrorKind::ResourceBusy => self.locked(part),
            _ => OpenError::Io { path: self.path(part), reason: error.to_string() },
        }
    }
}

/// What the system said of a write, for people.
pub fn in_words(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => format!(
            "the disk is full ({error}); make room in the data directory: reads go on meanwhile, and writes as soon as there is room"
        ),
        _ => error.to_string(),
    }
}
