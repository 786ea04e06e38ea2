//! What is not as a store left it: refused with a remedy, or right; never quietly less than what was answered.

use control_plane::store::{Expect, Medium, Part, RedbStore, Sizes, Store};
use redb::{Database, TableDefinition};

use super::disk::{Disk, Image, cut};
use super::{SMALL, object, open, open_sized, pod};

const PAGE: usize = 4096;
const JOURNALS: [Part; 2] = [Part::Journal(0), Part::Journal(1)];

async fn put(store: &RedbStore, name: &str, bytes: usize) -> u64 {
    store.put(pod(name), object(name, &"x".repeat(bytes)), Expect::Absent).await.unwrap().revision
}

/// What lies there after some writes, as if the power went then: the journal holds them all.
async fn written(names: &[&str]) -> Image {
    let disk = Disk::default();
    let store = open_sized(&disk, Sizes { chunk: SMALL.chunk, ..Sizes::default() }).unwrap();
    for name in names {
        put(&store, name, 100).await;
    }
    disk.image()
}

fn refusal(image: Image) -> String {
    open(&Disk::of(image)).map(drop).unwrap_err().to_string()
}

#[tokio::test]
async fn an_empty_store_is_refused() {
    let mut image = written(&["a"]).await;
    image.file(Part::Store).clear();
    let message = refusal(image.clone());
    assert!(
        message.contains("store.redb is") && message.contains("empty") && message.contains("restore it"),
        "{message}"
    );
    JOURNALS.iter().for_each(|part| image.remove(*part));
    assert!(refusal(image).contains("empty"));
}

#[tokio::test]
async fn a_missing_journal_is_refused_and_so_is_one_without_its_store() {
    let image = written(&["a"]).await;
    for (part, name) in JOURNALS.into_iter().zip(["store.journal0", "store.journal1"]) {
        let mut without = image.clone();
        without.remove(part);
        let message = refusal(without);
        assert!(
            message.contains(name) && message.contains("missing") && message.contains("put it back"),
            "{message}"
        );
    }
    let mut without = image.clone();
    without.remove(Part::Store);
    let message = refusal(without.clone());
    assert!(message.contains("store.journal1") && message.contains("move"), "{message}");
    // Nothing was written meanwhile: what was moved away can come back.
    let disk = Disk::of(without.clone());
    assert!(open(&disk).is_err());
    let mut again = disk.image();
    again.remove(Part::Store);
    let mut kept = image.clone();
    again.put(Part::Store, kept.file(Part::Store).clone());
    assert_eq!(
        open(&Disk::of(again)).unwrap().revision(),
        open(&Disk::of(image.clone())).unwrap().revision()
    );
    // As that says.
    JOURNALS.iter().for_each(|part| without.remove(*part));
    assert_eq!(open(&Disk::of(without)).unwrap().revision(), 1);
}

#[tokio::test]
async fn a_journal_of_another_format_store_or_time_is_refused() {
    let image = written(&["a"]).await;
    let mut later = image.clone();
    later.file(Part::Journal(1))[8] = 2;
    let message = refusal(later);
    assert!(
        message.contains("store.journal1 has format 2") && message.contains("the version that wrote it"),
        "{message}"
    );

    let mut other = written(&["b"]).await;
    let mut mixed = image.clone();
    for part in JOURNALS {
        mixed.put(part, other.file(part).clone());
    }
    let message = refusal(mixed);
    assert!(message.contains("another store") && message.contains("put back"), "{message}");

    // The store's file from a copy, the journal from now.
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    let old = disk.image().file(Part::Store).clone();
    for n in 0..60 {
        put(&store, &format!("n{n}"), 9_000).await;
    }
    let mut mixed = disk.image();
    mixed.put(Part::Store, old);
    let message = refusal(mixed);
    assert!(message.contains("not of one copy") && message.contains("restore it"), "{message}");
}

#[tokio::test]
async fn a_journal_that_was_cut_off_or_swapped_is_refused() {
    let image = written(&["a", "b"]).await;
    for length in [0, 100, PAGE, PAGE + 10, SMALL.chunk as usize - 1] {
        let mut short = image.clone();
        short.file(Part::Journal(1)).truncate(length);
        let message = refusal(short);
        assert!(message.contains("store.journal1 is not a usable store"), "{length}: {message}");
    }
    let mut swapped = image.clone();
    let (zero, one) = (swapped.file(Part::Journal(0)).clone(), swapped.file(Part::Journal(1)).clone());
    swapped.put(Part::Journal(0), one);
    swapped.put(Part::Journal(1), zero);
    assert!(refusal(swapped).contains("renamed"));
}

/// Each sector of the journal is damaged in turn. Of the last record nobody can tell damage from a write that never finished.
#[tokio::test]
async fn damage_anywhere_in_the_journal_is_refused_or_costs_the_last_record_at_most() {
    let names = ["a", "b", "c", "d"];
    let mut image = written(&names).await;
    let newest = 1 + names.len() as u64;
    let (mut whole, mut shorter, mut refused) = (0, 0, 0);
    for part in JOURNALS {
        for at in (0..image.file(part).len()).step_by(512) {
            let mut bad = image.clone();
            bad.file(part)[at] ^= 0x40;
            match open(&Disk::of(bad)) {
                Ok(store) if store.revision() == newest => {
                    whole += 1;
                    for name in names {
                        assert!(
                            store.get(&pod(name)).await.unwrap().is_some(),
                            "{part:?} {at}: {name} is lost"
                        );
                    }
                }
                Ok(store) => {
                    shorter += 1;
                    assert_eq!(
                        (part, at / PAGE, store.revision()),
                        (Part::Journal(1), names.len(), newest - 1)
                    );
                }
                Err(error) => {
                    refused += 1;
                    assert!(error.to_string().contains("restore it"), "{error}");
                }
            }
        }
    }
    // The last record's one sector that says something; three records before it; two heads.
    assert_eq!((shorter, refused), (1, 3 + 2 * PAGE / 512), "{whole}");
}

/// A store as the version before this one made it.
fn without_journal(names: &[&str]) -> Image {
    const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
    const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
    let disk = Disk::default();
    let backend = disk.open(Part::Store, true).unwrap().unwrap();
    let database = Database::builder().create_with_backend(Boxed(backend)).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut objects = transaction.open_table(OBJECTS).unwrap();
        for (name, revision) in names.iter().zip(2..) {
            let mut object = object(name, "");
            object["metadata"]["resourceVersion"] = format!("{revision}").into();
            objects.insert(format!("pods/default/{name}").as_str(), object.to_string().as_bytes()).unwrap();
        }
        let mut facts = transaction.open_table(FACTS).unwrap();
        facts.insert("format", 1).unwrap();
        facts.insert("revision", 1 + names.len() as u64).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    disk.image()
}

#[tokio::test]
async fn a_store_of_the_version_before_gets_a_journal_whenever_the_power_goes_meanwhile() {
    let image = without_journal(&["a", "b"]);
    let disk = Disk::of(image.clone());
    let store = open(&disk).unwrap();
    let opened = disk.ops();
    assert_eq!(put(&store, "c", 10).await, 4);
    drop(store);
    let log = disk.log();
    let mut random = fastrand::Rng::with_seed(1);
    for at in 0..=log.len() {
        for _ in 0..4 {
            let what = format!("operation {at}");
            let left = open(&Disk::of(cut(&image, &log, at, &mut random)));
            let left = left.unwrap_or_else(|error| panic!("{what}: {error}"));
            for name in ["a", "b"] {
                assert!(left.get(&pod(name)).await.unwrap().is_some(), "{what}: {name} is lost");
            }
            assert!(left.revision() == 3 || at > opened, "{what}");
            assert_eq!(put(&left, "next", 10).await, left.revision(), "{what}");
        }
    }
}

/// A new store whose start is cut short at any moment starts again, and never with less than it has.
#[tokio::test]
async fn a_first_start_that_was_cut_short_starts_again() {
    let disk = Disk::default();
    drop(open(&disk).unwrap());
    let log = disk.log();
    let mut random = fastrand::Rng::with_seed(1);
    let mut unnamed = 0;
    for at in 0..=log.len() {
        for _ in 0..8 {
            let image = cut(&Image::default(), &log, at, &mut random);
            unnamed += usize::from(!image.has(Part::Store) && image.has(Part::Journal(0)));
            let left = open(&Disk::of(image)).unwrap_or_else(|error| panic!("operation {at}: {error}"));
            assert_eq!(left.revision(), 1, "operation {at}");
        }
    }
    assert!(unnamed > 0);
}

/// redb wants a backend of a type of its own.
#[derive(Debug)]
struct Boxed(Box<dyn redb::StorageBackend>);

impl redb::StorageBackend for Boxed {
    fn len(&self) -> std::io::Result<u64> {
        self.0.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.read(offset, out)
    }
    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.set_len(len)
    }
    fn sync_data(&self) -> std::io::Result<()> {
        self.0.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.0.write(offset, data)
    }
}
