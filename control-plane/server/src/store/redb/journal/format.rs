//! What the bytes of a journal mean. Pure; any bytes may be put in.
//!
//! A journal file is a head page and then records, each at the start of a page and padded to whole pages, so that no record that
//! was synced is ever part of a later write. A record's digest covers the store's identity, its generation and all that it
//! says: nothing of another store, of an earlier generation, or half written passes for a record. The first byte of what begins
//! a page is none that UTF-8 has, so that no object can hold what looks like a record.

use ring::digest::{Context, SHA256};

/// Bytes to which records are padded: what file systems and disks write at once.
pub const PAGE: usize = 4096;
/// The format that this version writes and reads.
pub const VERSION: u32 = 1;

const HEAD_MAGIC: [u8; 8] = *b"\xFFjournal";
const RECORD_MAGIC: [u8; 8] = *b"\xFFwrites\xFF";
const DIGEST: usize = 16;
/// Magic, payload length, number of operations, generation, first revision, digest.
const RECORD_HEAD: usize = 8 + 4 * 8 + DIGEST;

/// What the head page of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which of the two files it is.
    pub number: u64,
    /// The store that it belongs to.
    pub store: u64,
    /// Bytes that the file has had from the first, and never less.
    pub made: u64,
}

/// Why a head page is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHead {
    /// No journal, or damaged.
    Damaged,
    /// A journal of this other format.
    Version(u32),
}

impl Head {
    /// The page.
    pub fn encode(&self) -> Vec<u8> {
        let mut page = HEAD_MAGIC.to_vec();
        page.extend(VERSION.to_le_bytes());
        for number in [self.number, self.store, self.made] {
            page.extend(number.to_le_bytes());
        }
        page.extend(digest(0, &[&page]));
        page.resize(PAGE, 0);
        page
    }

    /// The head that `bytes` begin with.
    ///
    /// # Errors
    /// [`BadHead`].
    pub fn decode(bytes: &[u8]) -> Result<Self, BadHead> {
        let mut rest = bytes.strip_prefix(&HEAD_MAGIC).ok_or(BadHead::Damaged)?;
        let version = take(&mut rest).map(u32::from_le_bytes).ok_or(BadHead::Damaged)?;
        if version != VERSION {
            return Err(BadHead::Version(version));
        }
        let mut number = || take(&mut rest).map(u64::from_le_bytes).ok_or(BadHead::Damaged);
        let head = Self { number: number()?, store: number()?, made: number()? };
        if bytes.get(..PAGE) == Some(&head.encode()) { Ok(head) } else { Err(BadHead::Damaged) }
    }
}

/// One object's address, and its text from now on; nothing where it is gone.
pub type Operation<'a> = (&'a str, Option<&'a [u8]>);

/// One batch of writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The generation of the journal that it belongs to.
    pub generation: u64,
    /// The revision of the first operation; each later one has the next.
    pub first: u64,
    /// What was written, in order. Empty where a record only takes the place of one that failed.
    pub operations: Vec<Operation<'a>>,
    /// Bytes that it takes in the file.
    pub length: usize,
}

/// Writes a record of the store to `out`, which is emptied first.
pub fn encode<'a>(
    out: &mut Vec<u8>,
    store: u64,
    generation: u64,
    first: u64,
    operations: impl Iterator<Item = Operation<'a>>,
) {
    out.clear();
    out.resize(RECORD_HEAD, 0);
    let mut count = 0_u64;
    for (path, text) in operations {
        count += 1;
        out.push(u8::from(text.is_some()));
        for bytes in [Some(path.as_bytes()), text].into_iter().flatten() {
            out.extend((bytes.len() as u64).to_le_bytes());
            out.extend(bytes);
        }
    }
    let mut head = RECORD_MAGIC.to_vec();
    for number in [(out.len() - RECORD_HEAD) as u64, count, generation, first] {
        head.extend(number.to_le_bytes());
    }
    head.extend(digest(store, &[&head, &out[RECORD_HEAD..]]));
    out[..RECORD_HEAD].copy_from_slice(&head);
    out.resize(out.len().next_multiple_of(PAGE), 0);
}

/// The record of the store that `bytes` begin with, if there is a whole one; that its padding is there is not looked at.
pub fn decode(bytes: &[u8], store: u64) -> Option<Record<'_>> {
    let (head, rest) = bytes.split_at_checked(RECORD_HEAD)?;
    let (told, expected) = head.split_at(RECORD_HEAD - DIGEST);
    let mut numbers = told.strip_prefix(&RECORD_MAGIC)?;
    let mut number = || take(&mut numbers).map(u64::from_le_bytes);
    let (size, count, generation, first) = (number()?, number()?, number()?, number()?);
    let mut payload = rest.get(..usize::try_from(size).ok()?)?;
    if digest(store, &[told, payload]) != expected {
        return None;
    }
    let length = (RECORD_HEAD + payload.len()).next_multiple_of(PAGE);
    let mut operations = Vec::new();
    for _ in 0..count {
        let [is_there] = take(&mut payload)?;
        let path = std::str::from_utf8(sized(&mut payload)?).ok()?;
        let text = if is_there == 0 { None } else { Some(sized(&mut payload)?) };
        operations.push((path, text));
    }
    payload.is_empty().then_some(Record { generation, first, operations, length })
}

/// The generation of what may be a record: its digest is not looked at.
pub fn generation(bytes: &[u8]) -> Option<u64> {
    let mut rest = bytes.strip_prefix(&RECORD_MAGIC)?.get(16..)?;
    take(&mut rest).map(u64::from_le_bytes)
}

/// What a file holds of one generation.
#[derive(Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Its records, in order.
    pub records: Vec<Record<'a>>,
    /// Where the next one goes.
    pub end: usize,
}

/// Why a file is not to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// What is here was a record: whole ones of the same generation follow.
    Damaged {
        /// Bytes from the start of the file.
        at: usize,
    },
    /// It goes on where the store has not come to.
    Ahead {
        /// The generation of a record that was found.
        generation: u64,
    },
}

/// The records of a generation in the bytes of a whole file, which are whole pages. What is torn at their end is a write that never finished.
///
/// # Errors
/// [`Flaw`].
pub fn scan(bytes: &[u8], store: u64, expected: u64) -> Result<Found<'_>, Flaw> {
    let mut records = Vec::new();
    let mut end = PAGE;
    while let Some(record) = bytes.get(end..).and_then(|rest| decode(rest, store)) {
        if record.generation != expected {
            break;
        }
        end += record.length;
        records.push(record);
    }
    for (at, page) in (0..).step_by(PAGE).zip(bytes.chunks(PAGE)).skip(end / PAGE) {
        let Some(generation) = generation(page).filter(|generation| *generation >= expected) else {
            continue;
        };
        if decode(&bytes[at..], store).is_some() {
            return Err(if generation > expected {
                Flaw::Ahead { generation }
            } else {
                Flaw::Damaged { at: end }
            });
        }
    }
    Ok(Found { records, end })
}

/// Whether there is anything in the bytes of a whole file that was, or may have been, a record.
pub fn is_used(bytes: &[u8]) -> bool {
    bytes.chunks(PAGE).any(|page| page.starts_with(&RECORD_MAGIC))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

fn sized<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let size = usize::try_from(u64::from_le_bytes(take(bytes)?)).ok()?;
    let (taken, rest) = bytes.split_at_checked(size)?;
    *bytes = rest;
    Some(taken)
}

fn digest(store: u64, parts: &[&[u8]]) -> [u8; DIGEST] {
    let mut context = Context::new(&SHA256);
    context.update(&store.to_le_bytes());
    parts.iter().for_each(|part| context.update(part));
    let mut short = [0; DIGEST];
    short.copy_from_slice(&context.finish().as_ref()[..DIGEST]);
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const STORE: u64 = 7;

    type Writes = Vec<(String, Option<Vec<u8>>)>;

    fn record(generation: u64, first: u64, writes: &Writes) -> Vec<u8> {
        let mut out = vec![0xEE; 3];
        let operations = writes.iter().map(|(path, text)| (path.as_str(), text.as_deref()));
        encode(&mut out, STORE, generation, first, operations);
        out
    }

    fn writes() -> impl Strategy<Value = Writes> {
        let text = vec(any::<u8>(), 0..6_000);
        vec(("[a-z/é]{0,20}", proptest::option::of(text)), 0..4)
    }

    /// A head page and records of one generation, and where each begins.
    fn file(generation: u64, batches: &[Writes]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = Head { number: 0, store: STORE, made: 0 }.encode();
        let mut starts = Vec::new();
        for (batch, first) in batches.iter().zip(1..) {
            starts.push(bytes.len());
            bytes.extend(record(generation, first, batch));
        }
        (bytes, starts)
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(writes in writes(), generation: u64, first: u64) {
            let mut bytes = record(generation, first, &writes);
            prop_assert_eq!(bytes.len() % PAGE, 0);
            let length = bytes.len();
            bytes.extend([0x55; 100]);
            let operations = writes.iter().map(|(path, text)| (path.as_str(), text.as_deref())).collect();
            let expected = Record { generation, first, operations, length };
            prop_assert_eq!(decode(&bytes, STORE), Some(expected));
            prop_assert_eq!(decode(&bytes, STORE + 1), None);
        }

        /// Each byte that the record says anything with.
        #[test]
        fn a_record_of_which_a_byte_was_changed_is_none(writes in writes(), at: prop::sample::Index, by in 1..=255_u8) {
            let mut bytes = record(3, 9, &writes);
            let said = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
            bytes[at.index(said)] ^= by;
            prop_assert_eq!(decode(&bytes, STORE), None);
        }

        #[test]
        fn a_record_that_was_cut_off_is_none(writes in writes(), at: prop::sample::Index) {
            let bytes = record(3, 9, &writes);
            let said = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
            prop_assert_eq!(decode(&bytes[..at.index(said)], STORE), None);
        }

        #[test]
        fn any_bytes_may_be_read(bytes in vec(any::<u8>(), 0..3 * PAGE), magic: bool, store: u64, expected: u64) {
            let mut bytes = bytes;
            if magic && bytes.len() > PAGE + 8 {
                bytes[..8].copy_from_slice(&HEAD_MAGIC);
                bytes[PAGE..PAGE + 8].copy_from_slice(&RECORD_MAGIC);
            }
            let behind = bytes.get(PAGE..).unwrap_or_default();
            prop_assert_eq!(decode(behind, store), None);
            prop_assert!(Head::decode(&bytes).is_err());
            prop_assert_eq!(scan(&bytes, store, expected), Ok(Found { records: Vec::new(), end: PAGE }));
        }

        /// The numbers in a record may be anything, its digest right: what decodes is what encodes to it.
        #[test]
        fn records_with_strange_numbers_are_none_or_whole(
            payload in vec(prop_oneof![Just(0), Just(1), any::<u8>()], 0..200), size in 0..300_u64, count: u64, big: bool,
        ) {
            let size = if big { u64::MAX - size } else { size };
            let mut bytes = RECORD_MAGIC.to_vec();
            for number in [size, count % 5, 1, 1] {
                bytes.extend(number.to_le_bytes());
            }
            let covered = usize::try_from(size).ok().and_then(|size| payload.get(..size)).unwrap_or(&payload);
            bytes.extend(digest(STORE, &[&bytes, covered]));
            bytes.extend(&payload);
            if let Some(record) = decode(&bytes, STORE) {
                let mut again = Vec::new();
                encode(&mut again, STORE, 1, 1, record.operations.iter().copied());
                prop_assert_eq!(again[RECORD_HEAD..].len(), record.length - RECORD_HEAD);
            }
        }

        /// Damage at the end is a write that never finished; damage before a whole record is refused.
        #[test]
        fn only_the_last_record_may_be_torn(batches in vec(writes(), 1..5), which: prop::sample::Index, at: prop::sample::Index) {
            let (mut bytes, starts) = file(5, &batches);
            let which = which.index(starts.len());
            let until = starts.get(which + 1).copied().unwrap_or(bytes.len());
            let said = bytes[starts[which]..until].iter().rposition(|byte| *byte != 0).unwrap() + 1;
            bytes[starts[which] + at.index(said)] ^= 0xFF;
            let last = which + 1 == starts.len();
            match scan(&bytes, STORE, 5) {
                Ok(found) => {
                    prop_assert!(last);
                    prop_assert_eq!((found.records.len(), found.end), (which, starts[which]));
                }
                Err(flaw) => {
                    prop_assert_eq!((last, flaw), (false, Flaw::Damaged { at: starts[which] }));
                }
            }
        }

        /// A new generation begins at the front of a file whose old records are still there.
        #[test]
        fn what_an_earlier_generation_left_is_not_believed(old in vec(writes(), 1..5), new in vec(writes(), 0..5)) {
            let (mut bytes, _) = file(5, &old);
            let (fresh, _) = file(7, &new);
            if bytes.len() < fresh.len() {
                bytes.resize(fresh.len(), 0);
            }
            bytes[..fresh.len()].copy_from_slice(&fresh);
            let found = scan(&bytes, STORE, 7).unwrap();
            prop_assert_eq!((found.records.len(), found.end), (new.len(), fresh.len()));
            if new.is_empty() {
                prop_assert_eq!(scan(&bytes, STORE, 3), Err(Flaw::Ahead { generation: 5 }));
            } else {
                prop_assert_eq!(scan(&bytes, STORE, 5), Err(Flaw::Ahead { generation: 7 }));
            }
        }
    }

    #[test]
    fn heads_are_read_as_they_were_written_and_other_versions_are_told() {
        let head = Head { number: 1, store: STORE, made: 1 << 20 };
        let good = head.encode();
        assert_eq!((good.len(), Head::decode(&good)), (PAGE, Ok(head)));
        assert_eq!(Head::decode(&good[..PAGE - 1]), Err(BadHead::Damaged));
        for at in [0, 13, 20, 40, 100, PAGE - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(Head::decode(&bad), Err(BadHead::Damaged), "{at}");
        }
        let mut later = good;
        later[8] = 2;
        assert_eq!(Head::decode(&later), Err(BadHead::Version(2)));
    }

    #[test]
    fn a_file_is_used_once_there_is_a_record_whole_or_not() {
        let (mut bytes, starts) = file(1, &[vec![("pods/a/b".into(), None)]]);
        assert!(is_used(&bytes) && !is_used(&bytes[..PAGE]));
        bytes[starts[0] + 20] ^= 1;
        assert!(is_used(&bytes));
        bytes[starts[0]..].fill(0);
        assert!(!is_used(&bytes));
    }
}
