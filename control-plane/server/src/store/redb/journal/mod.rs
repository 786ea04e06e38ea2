//! The journal: what was written since redb was last brought up to date, one record and one sync a batch.
//!
//! Two files take turns. While the writes of one generation are folded into redb, the next generation goes to the other file;
//! redb names the oldest generation that it does not hold, in the transaction by which it holds the one before. So there is no
//! instant at which a write is in neither, and a file is written over only when nothing needs it.

mod file;
mod format;
mod replay;

pub use self::file::AppendError;
pub use self::replay::{FIRST, Found, find, make};

use std::collections::BTreeMap;

use bytes::Bytes;

use self::file::JournalFile;
use self::format::PAGE;
use super::medium::Part;

/// How large a journal becomes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Room is made for so much at once.
    pub chunk: u64,
    /// From here on a generation is folded into redb.
    pub fold: u64,
    /// From here on writes wait for that. What a start reads is at most twice this and a batch.
    pub most: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { chunk: 1 << 20, fold: 4 << 20, most: 32 << 20 }
    }
}

/// The newest text of each object that was written, by its path; nothing where it is gone.
pub type Latest = BTreeMap<String, Option<Bytes>>;

/// A generation that is complete.
#[derive(Clone, Debug)]
pub struct Generation {
    /// Its number.
    pub number: u64,
    /// The revision of its last write.
    pub revision: u64,
    /// What it made of the objects that it wrote.
    pub latest: Latest,
}

impl Generation {
    /// Where it is written.
    pub fn part(&self) -> Part {
        Part::Journal(number_of(self.number))
    }
}

/// See the module.
#[derive(Debug)]
pub struct Journal {
    files: [JournalFile; 2],
    store: u64,
    sizes: Sizes,
    /// The generation that is written.
    current: Generation,
    /// Where its next record goes.
    end: u64,
    /// Whether a record that was answered with a failure may stand at `end`.
    in_doubt: bool,
    record: Vec<u8>,
}

/// The file of a generation.
fn number_of(generation: u64) -> usize {
    usize::from(generation % 2 == 1)
}

impl Journal {
    /// The generation that is written.
    pub fn current(&self) -> &Generation {
        &self.current
    }

    /// Whether the last record failed in a way that may have left it there. What is written next takes its place.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Bytes of the generation that is written.
    pub fn length(&self) -> u64 {
        self.end - PAGE as u64
    }

    /// Whether the generation that is written is to be folded.
    pub fn is_due(&self) -> bool {
        self.length() >= self.sizes.fold
    }

    /// Whether no more may be written before something was folded.
    pub fn is_full(&self) -> bool {
        self.length() >= self.sizes.most
    }

    /// How large it becomes.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Appends the writes that follow the last, durably; none only shows whether that can be done, and settles that a record
    /// in doubt is not there.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn append(&mut self, writes: Vec<(String, Option<Bytes>)>) -> Result<(), AppendError> {
        let first = self.current.revision + 1;
        let operations = writes.iter().map(|(path, text)| (path.as_str(), text.as_deref()));
        format::encode(&mut self.record, self.store, self.current.number, first, operations);
        let written = self.files[number_of(self.current.number)].write(self.end, &self.record);
        if matches!(written, Err(AppendError::InDoubt(_))) {
            self.in_doubt = true;
        }
        written?;
        self.in_doubt = false;
        self.end += self.record.len() as u64;
        // Large ones are rare; their room is not kept.
        self.record.shrink_to(1 << 20);
        self.current.revision += writes.len() as u64;
        self.current.latest.extend(writes);
        Ok(())
    }

    /// Begins the next generation, and hands over the one before to be folded. Only while none is being folded: the next one's
    /// file is that of the one before the last.
    pub fn rotate(&mut self) -> Generation {
        let next = Generation {
            number: self.current.number + 1,
            revision: self.current.revision,
            latest: Latest::new(),
        };
        self.files[number_of(next.number)].shrink(self.sizes.fold);
        self.end = PAGE as u64;
        std::mem::replace(&mut self.current, next)
    }
}
