//! What a store's bytes lie on: three files of one directory, or something that stands for them in tests.
//!
//! A store that is being made stands under another name until everything of it is synced. So whatever stands under the store's
//! own name was a store once, and an empty file there is one that lost its content.

use std::fmt::Debug;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::backends::FileBackend;
use redb::{BackendError, DatabaseError, StorageBackend, StorageError};

/// One of a store's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// All objects, as of the last fold.
    Store,
    /// The same while it is made.
    Fresh,
    /// The writes since; generations alternate between number 0 and number 1.
    Journal(usize),
}

impl Part {
    /// Its file, where the store's is `store`.
    #[must_use]
    pub fn path(self, store: &Path) -> PathBuf {
        match self {
            Self::Store => store.into(),
            Self::Fresh => store.with_extension("redb.new"),
            Self::Journal(number) => store.with_extension(format!("journal{number}")),
        }
    }
}

/// Where a store's files are. Parts are opened anew after they failed.
pub trait Medium: Debug + Send + Sync {
    /// Opens a part; makes it, empty, where it is not there and `make` says so. [`Part::Fresh`] is emptied.
    ///
    /// # Errors
    /// [`ErrorKind::ResourceBusy`] where another process has it, and whatever the system says.
    fn open(&self, part: Part, make: bool) -> io::Result<Option<Box<dyn StorageBackend>>>;

    /// Makes durable which parts there are.
    ///
    /// # Errors
    /// Whatever the system says.
    fn sync_names(&self) -> io::Result<()>;

    /// Makes [`Part::Fresh`], which stays open, the [`Part::Store`], durably.
    ///
    /// # Errors
    /// Whatever the system says.
    fn publish(&self) -> io::Result<()>;
}

/// The files beside a path, readable by their owner only: they hold Secrets.
#[derive(Debug)]
pub struct Directory {
    store: PathBuf,
}

impl Directory {
    /// The store's file, and its journal beside it.
    pub fn new(store: PathBuf) -> Self {
        Self { store }
    }
}

impl Medium for Directory {
    fn open(&self, part: Part, make: bool) -> io::Result<Option<Box<dyn StorageBackend>>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(make).truncate(false).mode(0o600);
        let file = match options.open(part.path(&self.store)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound && !make => return Ok(None),
            Err(error) => return Err(error),
        };
        if part != Part::Store {
            // redb's lock is let go of while the store is opened again; this one is not.
            lock(&file)?;
        }
        if part == Part::Fresh {
            // Whoever had the lock before may have made the store meanwhile, from this very file.
            if self.store.try_exists()? {
                return Err(ErrorKind::ResourceBusy.into());
            }
            file.set_len(0)?;
        }
        let backend = FileBackend::new(file).map_err(|error| match error {
            DatabaseError::Storage(StorageError::Io(error)) => error,
            other => io::Error::other(other.to_string()),
        })?;
        Ok(Some(Box::new(backend)))
    }

    fn sync_names(&self) -> io::Result<()> {
        let directory = self.store.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn publish(&self) -> io::Result<()> {
        self.sync_names()?;
        std::fs::rename(Part::Fresh.path(&self.store), &self.store)?;
        self.sync_names()
    }
}

fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => ErrorKind::ResourceBusy.into(),
        TryLockError::Error(error) => error,
    })
}

/// Offsets and lengths of what was written since the last sync that passed; outlives the database that wrote it.
pub type Unsynced = Arc<Mutex<Vec<(u64, usize)>>>;

/// A backend that is written again what a failed sync may have lost.
///
/// After a sync failed, the kernel may count the pages that it could not write as clean: later syncs pass, and only a restart of
/// the machine shows the hole, or that the file is shorter. So whatever was written since the last good sync is remembered, and
/// written once more before the file is used again.
#[derive(Debug)]
pub struct Careful {
    medium: Box<dyn StorageBackend>,
    unsynced: Unsynced,
}

impl Careful {
    /// Takes up a medium; what an earlier one could not sync is written again.
    ///
    /// # Errors
    /// When that cannot be written either.
    pub fn new(medium: Box<dyn StorageBackend>, unsynced: Unsynced) -> io::Result<Self> {
        let careful = Self { medium, unsynced };
        let again = careful.unsynced().clone();
        let mut bytes = Vec::new();
        let length = careful.medium.len()?;
        // What lies past the end was cut off on purpose, or was never there.
        for (offset, size) in again.into_iter().filter(|(offset, size)| offset + *size as u64 <= length) {
            bytes.resize(size, 0);
            careful.medium.read(offset, &mut bytes)?;
            careful.medium.write(offset, &bytes)?;
        }
        Ok(careful)
    }

    fn unsynced(&self) -> MutexGuard<'_, Vec<(u64, usize)>> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StorageBackend for Careful {
    fn len(&self) -> io::Result<u64> {
        self.medium.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.medium.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        // With its last byte written again, the file is so long again.
        if let Some(last) = len.checked_sub(1) {
            self.unsynced().push((last, 1));
        }
        self.medium.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.medium.sync_data()?;
        self.unsynced().clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.unsynced().push((offset, data.len()));
        self.medium.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.medium.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.medium.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.medium.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.medium.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.medium.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.medium.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.medium.query_lock_range(start, end)
    }
}
