//! What every store must do, checked on the memory store and on a redb file; and what only a file can get wrong.

use std::path::Path;
use std::sync::Arc;

use control_plane::store::{
    Effect, Expect, Key, MemoryStore, OpenError, RedbStore, Scope, Store, StoreError,
};
use serde_json::{Value, json};

const HISTORY: usize = 6;

/// Runs a check on both stores.
async fn on_both<F, G>(check: F)
where
    F: Fn(Arc<dyn Store>) -> G,
    G: Future<Output = ()>,
{
    check(Arc::new(MemoryStore::with_history(HISTORY))).await;
    let dir = tempfile::tempdir().unwrap();
    check(Arc::new(RedbStore::open(&dir.path().join("store.redb"), HISTORY).unwrap())).await;
}

fn pod(name: &str) -> Key {
    Key::new("pods", "default", name)
}

fn object(name: &str, label: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "label": label})
}

async fn names(store: &dyn Store, at: Option<u64>) -> Result<(u64, Vec<String>), StoreError> {
    let listing = store.list(Scope { resource: "pods", namespace: None }, at).await?;
    let name = |(key, entry): (Key, control_plane::store::Entry)| {
        format!("{}={}", key.name, entry.object["label"].as_str().unwrap_or_default())
    };
    Ok((listing.revision, listing.entries.into_iter().map(name).collect()))
}

#[tokio::test]
async fn writes_take_the_next_revision_and_carry_it() {
    on_both(async |store| {
        let first = store.revision();
        let made = store.put(pod("a"), object("a", "1"), Expect::Absent).await.unwrap();
        assert_eq!(made.revision, first + 1);
        assert_eq!(made.object["metadata"]["resourceVersion"], (first + 1).to_string());
        let changed = store.put(pod("a"), object("a", "2"), Expect::Revision(made.revision)).await.unwrap();
        assert_eq!(changed.revision, first + 2);
        assert_eq!(store.get(&pod("a")).await.unwrap(), Some(changed.clone()));
        let gone = store.delete(pod("a"), changed.revision).await.unwrap();
        assert_eq!(gone.object["metadata"]["resourceVersion"], (first + 3).to_string());
        assert_eq!(store.get(&pod("a")).await.unwrap(), None);
        assert_eq!(store.revision(), first + 3);
    })
    .await;
}

#[tokio::test]
async fn a_precondition_that_does_not_hold_changes_nothing() {
    on_both(async |store| {
        let made = store.put(pod("a"), object("a", "1"), Expect::Absent).await.unwrap();
        let again = store.put(pod("a"), object("a", "2"), Expect::Absent).await;
        assert_eq!(again, Err(StoreError::Exists));
        let stale = store.put(pod("a"), object("a", "2"), Expect::Revision(made.revision - 1)).await;
        assert_eq!(stale, Err(StoreError::Conflict { found: Some(made.revision) }));
        let absent = store.put(pod("b"), object("b", "2"), Expect::Revision(1)).await;
        assert_eq!(absent, Err(StoreError::Conflict { found: None }));
        assert_eq!(store.delete(pod("b"), 1).await, Err(StoreError::Conflict { found: None }));
        let stale = store.delete(pod("a"), made.revision + 1).await;
        assert_eq!(stale, Err(StoreError::Conflict { found: Some(made.revision) }));
        assert_eq!(store.revision(), made.revision);
        assert_eq!(names(store.as_ref(), None).await.unwrap().1, ["a=1"]);
    })
    .await;
}

#[tokio::test]
async fn of_many_writers_with_one_precondition_one_wins() {
    on_both(async |store| {
        let made = store.put(pod("a"), object("a", "0"), Expect::Absent).await.unwrap();
        let writes = (0..50)
            .map(|n| store.put(pod("a"), object("a", &n.to_string()), Expect::Revision(made.revision)));
        let outcomes = futures_util::future::join_all(writes).await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        assert_eq!(store.revision(), made.revision + 1);
    })
    .await;
}

#[tokio::test]
async fn a_list_shows_one_revision_even_an_earlier_one() {
    on_both(async |store| {
        let a = store.put(pod("a"), object("a", "1"), Expect::Absent).await.unwrap();
        let b = store.put(pod("b"), object("b", "1"), Expect::Absent).await.unwrap();
        store
            .put(Key::new("nodes", "", "n"), json!({"metadata": {"name": "n"}}), Expect::Absent)
            .await
            .unwrap();
        let changed = store.put(pod("a"), object("a", "2"), Expect::Revision(a.revision)).await.unwrap();
        store.delete(pod("b"), b.revision).await.unwrap();
        let newest = store.revision();
        let check = async |at: Option<u64>, revision: u64, expected: &[&str]| {
            let (found, list) = names(store.as_ref(), at).await.unwrap();
            assert_eq!(
                (found, list.iter().map(String::as_str).collect::<Vec<_>>()),
                (revision, expected.to_vec())
            );
        };
        check(None, newest, &["a=2"]).await;
        check(Some(changed.revision), changed.revision, &["a=2", "b=1"]).await;
        check(Some(b.revision), b.revision, &["a=1", "b=1"]).await;
        check(Some(a.revision), a.revision, &["a=1"]).await;
        let other = Scope { resource: "pods", namespace: Some("elsewhere") };
        assert!(store.list(other, None).await.unwrap().entries.is_empty());
    })
    .await;
}

#[tokio::test]
async fn the_history_is_bounded_and_says_where_it_begins() {
    on_both(async |store| {
        let start = store.revision();
        for n in 0..HISTORY + 2 {
            store.put(pod(&n.to_string()), object("x", ""), Expect::Absent).await.unwrap();
        }
        let oldest = start + 2;
        assert_eq!(store.changes(start).map(|_| ()), Err(StoreError::Compacted { asked: start, oldest }));
        assert_eq!(store.changes(oldest).unwrap().len(), HISTORY);
        assert_eq!(store.changes(store.revision()).unwrap().len(), 0);
        assert_eq!(store.changes(store.revision() + 5).unwrap().len(), 0);
        let too_old = names(store.as_ref(), Some(start)).await;
        assert_eq!(too_old, Err(StoreError::Compacted { asked: start, oldest }));
    })
    .await;
}

#[tokio::test]
async fn changes_tell_what_was_and_what_is() {
    on_both(async |store| {
        let start = store.revision();
        let made = store.put(pod("a"), object("a", "1"), Expect::Absent).await.unwrap();
        let changed = store.put(pod("a"), object("a", "2"), Expect::Revision(made.revision)).await.unwrap();
        store.delete(pod("a"), changed.revision).await.unwrap();
        let changes = store.changes(start).unwrap();
        assert_eq!(
            changes.iter().map(|change| change.revision).collect::<Vec<_>>(),
            [start + 1, start + 2, start + 3]
        );
        assert_eq!(changes[0].previous, None);
        assert_eq!(changes[1].previous, Some(made));
        match (&changes[1].effect, &changes[2].effect) {
            (Effect::Put(now), Effect::Deleted(last)) => {
                assert_eq!(now.object["label"], "2");
                assert_eq!(last.object["metadata"]["resourceVersion"], (start + 3).to_string());
            }
            other => panic!("{other:?}"),
        }
    })
    .await;
}

#[tokio::test]
async fn followers_are_woken_after_the_write_can_be_seen() {
    on_both(async |store| {
        let mut listener = store.signal().listen();
        let made = store.put(pod("a"), object("a", "1"), Expect::Absent).await.unwrap();
        listener.raised().await;
        assert_eq!(store.changes(made.revision - 1).unwrap().len(), 1);
    })
    .await;
}

fn open(path: &Path) -> Result<RedbStore, OpenError> {
    RedbStore::open(path, HISTORY)
}

#[tokio::test]
async fn a_reopened_file_has_everything_and_goes_on_counting() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let store = open(&path).unwrap();
    store.put(pod("a"), object("a", "1"), Expect::Absent).await.unwrap();
    let b = store.put(pod("b"), object("b", "1"), Expect::Absent).await.unwrap();
    let gone = store.delete(pod("b"), b.revision).await.unwrap();
    drop(store);

    let store = open(&path).unwrap();
    assert_eq!(store.revision(), gone.revision);
    assert_eq!(names(&store, None).await.unwrap().1, ["a=1"]);
    let asked = gone.revision - 1;
    assert_eq!(store.changes(asked).map(|_| ()), Err(StoreError::Compacted { asked, oldest: gone.revision }));
    let next = store.put(pod("c"), object("c", "1"), Expect::Absent).await.unwrap();
    assert_eq!(next.revision, gone.revision + 1);
}

/// A copy of the file taken while the store is open is what a power cut leaves behind.
#[tokio::test]
async fn what_was_acknowledged_is_in_the_file_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("store.redb"), dir.path().join("copy.redb"));
    let store = open(&path).unwrap();
    for n in 0..20 {
        let made = store.put(pod(&format!("{n:02}")), object("x", ""), Expect::Absent).await.unwrap();
        std::fs::copy(&path, &copy).unwrap();
        let left = open(&copy).unwrap();
        assert_eq!(left.revision(), made.revision);
        assert_eq!(names(&left, None).await.unwrap().1.len(), n + 1);
    }
}

fn refusal(path: &Path) -> String {
    match open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_locked_file_is_said_to_be_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let _held = open(&path).unwrap();
    let message = refusal(&path);
    assert!(message.contains("in use") && message.contains("--data-dir"), "{message}");
}

#[test]
fn what_is_no_store_is_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    for garbage in [b"hello, I am no database".to_vec(), vec![0xA5; 100_000]] {
        std::fs::write(&path, &garbage).unwrap();
        let message = refusal(&path);
        assert!(message.contains("not a usable store") && message.contains("move it away"), "{message}");
    }
}

#[tokio::test]
async fn a_damaged_file_is_refused_or_right_but_never_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("store.redb"), dir.path().join("copy.redb"));
    let store = open(&path).unwrap();
    for n in 0..50 {
        store.put(pod(&n.to_string()), object(&n.to_string(), "1"), Expect::Absent).await.unwrap();
    }
    drop(store);
    let good = std::fs::read(&path).unwrap();
    for step in 0..60 {
        let mut bad = good.clone();
        let at = (step * 7919) % bad.len();
        bad[at..].iter_mut().take(64).for_each(|byte| *byte ^= 0xFF);
        std::fs::write(&copy, &bad).unwrap();
        if let Err(error) = open(&copy) {
            let message = error.to_string();
            assert!(message.contains("copy.redb") && message.contains("restore it"), "{message}");
        }
    }
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let message = refusal(Path::new("/nonexistent/store.redb"));
    assert!(message.contains("/nonexistent/store.redb") && message.contains("writable"), "{message}");
}
