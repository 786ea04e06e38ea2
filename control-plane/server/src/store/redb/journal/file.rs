//! One file of the journal: made once, and then written only in place wherever that is possible.
//!
//! Its bytes are written as zeros ahead of the records, a chunk at a time. So a record's sync carries the record and no news of
//! the file's length or of its place on the disk.

use std::io;

use redb::StorageBackend;

use super::format::{Head, PAGE};

/// Why a record is not in the file.
#[derive(Debug)]
pub enum AppendError {
    /// The file could not grow; it is as it was.
    NoRoom(io::Error),
    /// The record may be in the file, whole or in part, now or later.
    InDoubt(io::Error),
}

/// See the module.
#[derive(Debug)]
pub struct JournalFile {
    backend: Box<dyn StorageBackend>,
    /// Bytes that are there for sure, and on the disk.
    length: u64,
    chunk: u64,
}

impl JournalFile {
    /// A file that was made.
    ///
    /// # Errors
    /// When its length cannot be told.
    pub fn open(backend: Box<dyn StorageBackend>, chunk: u64) -> io::Result<Self> {
        let length = backend.len()?;
        Ok(Self { backend, length, chunk })
    }

    /// Makes it a file without records, durably.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn make(mut self, head: &Head) -> io::Result<Self> {
        let mut bytes = head.encode();
        self.length = self.length.max(head.made);
        bytes.resize(usize::try_from(self.length).map_err(io::Error::other)?, 0);
        self.backend.write(0, &bytes)?;
        self.backend.sync_data()?;
        Ok(self)
    }

    /// Bytes in it.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Everything in it, with zeros to the end of the last page: a file that was about to grow may end anywhere.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.length).map_err(io::Error::other)?;
        let mut bytes = vec![0; length.next_multiple_of(PAGE)];
        self.backend.read(0, &mut bytes[..length])?;
        Ok(bytes)
    }

    /// Writes a record at an offset, and returns when it is on the disk.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn write(&mut self, at: u64, record: &[u8]) -> Result<(), AppendError> {
        let end = at + record.len() as u64;
        let mut length = self.length;
        if end > length {
            length = end.next_multiple_of(self.chunk.max(PAGE as u64));
            if let Err(error) = self.grow(length) {
                // What did fit is of no use; others may need it.
                drop(self.backend.set_len(self.length));
                return Err(AppendError::NoRoom(error));
            }
        }
        self.backend.write(at, record).map_err(AppendError::InDoubt)?;
        self.backend.sync_data().map_err(AppendError::InDoubt)?;
        self.length = length;
        Ok(())
    }

    /// Not synced: the record that comes next is.
    fn grow(&self, length: u64) -> io::Result<()> {
        let more = usize::try_from(length - self.length).map_err(io::Error::other)?;
        self.backend.write(self.length, &vec![0; more])
    }

    /// Gives up what is beyond `length`, of a file whose records are all folded.
    pub fn shrink(&mut self, length: u64) {
        if self.length > length && self.backend.set_len(length).is_ok() {
            self.length = length;
        }
    }
}
