//! Making a journal, and finding out what one holds that redb does not.

use std::io;

use bytes::Bytes;

use super::file::{AppendError, JournalFile};
use super::format::{BadHead, Flaw, Head, PAGE, Record, VERSION, is_used, scan};
use super::{Generation, Journal, Latest, Sizes, number_of};
use crate::store::redb::errors::{Names, OpenError};
use crate::store::redb::medium::{Medium, Part};
use crate::store::redb::tables::Place;

/// The first generation of a store.
pub const FIRST: u64 = 1;

/// Makes the journal of a store that has none yet and stands at `place`. One that a start left behind before it got so far is
/// made again.
///
/// # Errors
/// [`OpenError::Stray`] where there is a journal with writes in it: they belong to some other store.
pub fn make(medium: &dyn Medium, names: &Names, sizes: Sizes, place: Place) -> Result<Journal, OpenError> {
    // Both are looked at before either is written: whoever is refused finds all as it was.
    for number in [0, 1] {
        refuse_used(medium, names, Part::Journal(number))?;
    }
    let made = sizes.chunk.max(PAGE as u64);
    let make = |number: usize| {
        let part = Part::Journal(number);
        let failed = |error: io::Error| names.io(part, &error);
        let backend = medium.open(part, true).map_err(failed)?.ok_or_else(|| names.no_journal(part))?;
        let left = JournalFile::open(backend, made).map_err(failed)?;
        left.make(&Head { number: number as u64, store: place.store, made }).map_err(failed)
    };
    let files = [make(0)?, make(1)?];
    medium.sync_names().map_err(|error| names.io(Part::Journal(0), &error))?;
    let current = Generation { number: place.generation, revision: place.revision, latest: Latest::new() };
    Ok(Journal {
        files,
        store: place.store,
        sizes,
        current,
        end: PAGE as u64,
        in_doubt: false,
        record: Vec::new(),
    })
}

/// Refuses a file that holds writes, or may hold some in a format that is not known.
fn refuse_used(medium: &dyn Medium, names: &Names, part: Part) -> Result<(), OpenError> {
    let failed = |error: io::Error| names.io(part, &error);
    let Some(backend) = medium.open(part, false).map_err(failed)? else { return Ok(()) };
    let bytes = JournalFile::open(backend, 0).and_then(|left| left.read()).map_err(failed)?;
    if is_used(&bytes) {
        return Err(names.stray(part));
    }
    match Head::decode(&bytes) {
        Err(BadHead::Version(found)) => Err(names.format(part, u64::from(found), u64::from(VERSION))),
        Ok(_) | Err(BadHead::Damaged) => Ok(()),
    }
}

/// What the files of a journal hold.
#[derive(Debug)]
pub struct Found {
    /// The journal, to go on with.
    pub journal: Journal,
    /// A generation that is complete, and that redb is still to take in.
    pub sealed: Option<Generation>,
}

/// Opens the journal of a store that stands at `place`, with all that it holds beyond that.
///
/// # Errors
/// [`OpenError`] where it is missing, damaged, of another format, or does not go on where the store stands.
pub fn find(medium: &dyn Medium, names: &Names, sizes: Sizes, place: Place) -> Result<Found, OpenError> {
    let open = |number: usize| {
        let part = Part::Journal(number);
        let backend = medium.open(part, false).map_err(|error| names.io(part, &error))?;
        let backend = backend.ok_or_else(|| names.no_journal(part))?;
        JournalFile::open(backend, sizes.chunk).map_err(|error| names.io(part, &error))
    };
    let mut files = [open(0)?, open(1)?];
    let older = read(&files, names, place)?;
    let next = Place { generation: place.generation + 1, revision: older.generation.revision, ..place };
    let newer = read(&files, names, next)?;
    let (sealed, held) = if newer.last.is_some() { (Some(older.generation), newer) } else { (None, older) };
    let number = number_of(held.generation.number);
    if let Some((at, record)) = held.last {
        // Its writer may have ended between the write and the sync. Whoever reads it from now on can rely on it.
        files[number].write(at, &record).map_err(|error| match error {
            AppendError::NoRoom(error) | AppendError::InDoubt(error) => {
                names.io(Part::Journal(number), &error)
            }
        })?;
    }
    let journal = Journal {
        files,
        store: place.store,
        sizes,
        current: held.generation,
        end: held.end,
        in_doubt: false,
        record: Vec::new(),
    };
    Ok(Found { journal, sealed })
}

/// A generation as its file holds it.
struct Held {
    generation: Generation,
    end: u64,
    /// Where its last record begins, and its bytes.
    last: Option<(u64, Vec<u8>)>,
}

/// Reads the generation that goes on at `place`.
fn read(files: &[JournalFile; 2], names: &Names, place: Place) -> Result<Held, OpenError> {
    let number = number_of(place.generation);
    let part = Part::Journal(number);
    let corrupt = |reason: &str| names.corrupt(part, reason);
    let bytes = files[number].read().map_err(|error| names.io(part, &error))?;
    let head = Head::decode(&bytes).map_err(|bad| match bad {
        BadHead::Damaged => corrupt("it does not begin as a journal does"),
        BadHead::Version(found) => names.format(part, u64::from(found), u64::from(VERSION)),
    })?;
    if head.store != place.store {
        return Err(names.stray(part));
    }
    if head.number != number as u64 || head.made > files[number].length() {
        return Err(corrupt("it was renamed or cut off"));
    }
    let found = scan(&bytes, place.store, place.generation).map_err(|flaw| match flaw {
        Flaw::Damaged { at } => {
            corrupt(&format!("the record at byte {at} is damaged, and those after it are not"))
        }
        Flaw::Ahead { .. } => corrupt("it is of a later time than the store: they are not of one copy"),
    })?;
    let (mut revision, mut start) = (place.revision, PAGE);
    let mut latest = Latest::new();
    let mut last = None;
    for Record { first, operations, length, .. } in found.records {
        if first != revision + 1 {
            let reason =
                format!("its record at byte {start} goes on at revision {first}, the store at {revision}");
            return Err(corrupt(&format!("{reason}: they are not of one copy")));
        }
        revision += operations.len() as u64;
        let owned = |text: &[u8]| Bytes::copy_from_slice(text);
        latest.extend(operations.into_iter().map(|(path, text)| (path.to_owned(), text.map(owned))));
        last = Some(start..start + length);
        start += length;
    }
    let last = last.map(|last| (last.start as u64, bytes[last].to_vec()));
    let generation = Generation { number: place.generation, revision, latest };
    Ok(Held { generation, end: found.end as u64, last })
}
