//! A medium that is written again what a failed sync may have lost.
//!
//! After a sync failed, the kernel may count the pages that it could not write as clean: later syncs pass, and only a restart of
//! the machine shows the hole. So whatever was written since the last good sync is remembered, and written once more before the
//! file is used again.

use std::io;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{BackendError, StorageBackend};

/// Offsets and lengths of what was written since the last sync that passed; outlives the database that wrote it.
pub type Unsynced = Arc<Mutex<Vec<(u64, usize)>>>;

/// See the module.
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
