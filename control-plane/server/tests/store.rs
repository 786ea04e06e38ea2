//! What every store must do, checked on the memory store and on a redb file; and what only a file can get wrong.

#[path = "support/contract.rs"]
mod contract;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contract::{HISTORY, names, object, pod};
use control_plane::store::{Expect, Key, MemoryStore, OpenError, RedbStore, Store, StoreError};
use futures_util::FutureExt;
use serde_json::json;

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

contract::each_check!(on_both);

#[tokio::test]
async fn a_list_from_before_the_history_is_refused() {
    on_both(async |store| {
        let start = store.revision();
        for n in 0..HISTORY + 2 {
            store.put(pod(&n.to_string()), object("x", ""), Expect::Absent).await.unwrap();
        }
        let too_old = names(store.as_ref(), Some(start)).await;
        assert_eq!(too_old, Err(StoreError::Compacted { asked: start, oldest: start + 2 }));
    })
    .await;
}

#[tokio::test]
async fn a_fork_begins_with_what_is_there_and_goes_its_own_way() {
    let store = MemoryStore::with_history(HISTORY);
    let made = store.put(pod("a"), object("a", "1"), Expect::Absent).await.unwrap();
    let fork = store.fork();
    assert_eq!(names(&fork, None).await, Ok((made.revision, vec!["a=1".to_owned()])));
    assert_eq!(fork.changes(made.revision).map(|changes| changes.len()), Ok(0));
    let before = fork.changes(made.revision - 1).map(drop);
    assert_eq!(before, Err(StoreError::Compacted { asked: made.revision - 1, oldest: made.revision }));
    fork.put(pod("a"), object("a", "2"), Expect::Revision(made.revision)).await.unwrap();
    store.delete(pod("a"), made.revision).await.unwrap();
    assert_eq!(names(&fork, None).await, Ok((made.revision + 1, vec!["a=2".to_owned()])));
    assert_eq!(names(&store, None).await, Ok((made.revision + 1, Vec::new())));
}

/// Few changes may be large ones; and what was deleted is kept no longer than its change is remembered.
#[tokio::test]
async fn the_history_is_bounded_in_bytes_too_and_lets_go_of_what_it_forgets() {
    let store = MemoryStore::with_history(1_000);
    let start = store.revision();
    let filling = "x".repeat(1024 * 1024);
    let first = store.put(pod("0"), object("0", &filling), Expect::Absent).await.unwrap();
    let kept = Arc::downgrade(&first.object);
    store.delete(pod("0"), first.revision).await.unwrap();
    drop(first);
    assert!(kept.upgrade().is_some());
    for n in 1..100 {
        store.put(pod(&n.to_string()), object("x", &filling), Expect::Absent).await.unwrap();
    }
    assert!(kept.upgrade().is_none());
    let Err(StoreError::Compacted { oldest, .. }) = store.changes(start) else { panic!("it kept all") };
    let remembered = store.changes(oldest).unwrap().len();
    assert!((50..=64).contains(&remembered), "{remembered}");
    assert_eq!(store.changes(store.revision() - 1).unwrap().len(), 1);
}

/// A watch of something quiet is woken before the history leaves its cursor behind.
#[tokio::test]
async fn followers_of_one_resource_are_woken_before_others_push_them_out() {
    on_both(async |store| {
        let mut quiet = store.signal().listen_to(&["nodes"]);
        let mut cursor = store.revision();
        for n in 0..10 * HISTORY {
            let made = store.put(pod(&n.to_string()), object("x", ""), Expect::Absent).await.unwrap();
            if quiet.raised().now_or_never().is_some() {
                assert!(store.changes(cursor).is_ok(), "woken too late, at {}", made.revision);
                cursor = made.revision;
            }
        }
        assert!(store.changes(cursor).is_ok());
        let node = json!({"metadata": {"name": "n"}});
        store.put(Key::new("nodes", "", "n"), node, Expect::Absent).await.unwrap();
        assert_eq!(quiet.raised().now_or_never(), Some(()));
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

/// Copies the files of a store, as they are now, into an empty directory; answers where the copy of its main file is.
fn copy(from: &Path, to: &Path) -> PathBuf {
    std::fs::create_dir_all(to).unwrap();
    for name in ["store.redb", "store.journal0", "store.journal1"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
    to.join("store.redb")
}

/// A copy of the files taken while the store is open is what a power cut leaves behind.
#[tokio::test]
async fn what_was_acknowledged_is_in_the_files_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("store.redb")).unwrap();
    for n in 0..20 {
        let made = store.put(pod(&format!("{n:02}")), object("x", ""), Expect::Absent).await.unwrap();
        let left = open(&copy(dir.path(), &dir.path().join("copy"))).unwrap();
        assert_eq!(left.revision(), made.revision);
        assert_eq!(names(&left, None).await.unwrap().1.len(), n + 1);
    }
}

#[tokio::test]
async fn its_files_are_for_their_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("store.redb")).unwrap();
    store.put(pod("a"), object("a", "1"), Expect::Absent).await.unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
        found.push(entry.file_name().into_string().unwrap());
    }
    found.sort();
    assert_eq!(found, ["store.journal0", "store.journal1", "store.redb"]);
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
    let store = open(&dir.path().join("store.redb")).unwrap();
    for n in 0..50 {
        store.put(pod(&n.to_string()), object(&n.to_string(), "1"), Expect::Absent).await.unwrap();
    }
    drop(store);
    let good = std::fs::read(dir.path().join("store.redb")).unwrap();
    for step in 0..60 {
        let mut bad = good.clone();
        let at = (step * 7919) % bad.len();
        bad[at..].iter_mut().take(64).for_each(|byte| *byte ^= 0xFF);
        let copy = copy(dir.path(), &dir.path().join("copy"));
        std::fs::write(&copy, &bad).unwrap();
        if let Err(error) = open(&copy) {
            let message = error.to_string();
            assert!(message.contains("copy/store.redb") && message.contains("restore it"), "{message}");
        }
    }
}

/// Whoever is making the store has it already.
#[test]
fn a_store_that_another_process_is_making_is_said_to_be_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let made = std::fs::File::create(dir.path().join("store.redb.new")).unwrap();
    made.lock().unwrap();
    let message = refusal(&dir.path().join("store.redb"));
    assert!(message.contains("in use"), "{message}");
    drop(made);
    assert!(open(&dir.path().join("store.redb")).is_ok());
    assert!(!dir.path().join("store.redb.new").exists());
}

/// redb's lock is let go of while its file is opened again; the journal's is not.
#[test]
fn a_store_whose_journal_another_process_has_is_said_to_be_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    drop(open(&path).unwrap());
    let held = std::fs::File::open(dir.path().join("store.journal1")).unwrap();
    held.lock().unwrap();
    let message = refusal(&path);
    assert!(message.contains("store.journal1 is in use"), "{message}");
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let message = refusal(Path::new("/nonexistent/store.redb"));
    assert!(message.contains("/nonexistent/store.redb") && message.contains("writable"), "{message}");
}
