//! What every store must do, however it keeps its objects. Each check takes an empty store that remembers [`HISTORY`] changes and
//! that nobody else writes to.

use std::sync::Arc;

use control_plane::store::{Effect, Entry, Expect, Key, Scope, Store, StoreError};
use serde_json::{Value, json};

pub const HISTORY: usize = 6;

pub fn pod(name: &str) -> Key {
    Key::new("pods", "default", name)
}

pub fn object(name: &str, label: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "label": label})
}

pub async fn names(store: &dyn Store, at: Option<u64>) -> Result<(u64, Vec<String>), StoreError> {
    let listing = store.list(Scope { resource: "pods", namespace: None }, at).await?;
    let name = |(key, entry): (Key, Entry)| {
        format!("{}={}", key.name, entry.object["label"].as_str().unwrap_or_default())
    };
    Ok((listing.revision, listing.entries.into_iter().map(name).collect()))
}

pub async fn writes_take_the_next_revision_and_carry_it(store: Arc<dyn Store>) {
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
}

pub async fn a_precondition_that_does_not_hold_changes_nothing(store: Arc<dyn Store>) {
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
}

pub async fn of_many_writers_with_one_precondition_one_wins(store: Arc<dyn Store>) {
    let made = store.put(pod("a"), object("a", "0"), Expect::Absent).await.unwrap();
    let writes =
        (0..50).map(|n| store.put(pod("a"), object("a", &n.to_string()), Expect::Revision(made.revision)));
    let outcomes = futures_util::future::join_all(writes).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!(store.revision(), made.revision + 1);
}

pub async fn a_list_shows_one_revision_even_an_earlier_one(store: Arc<dyn Store>) {
    let a = store.put(pod("a"), object("a", "1"), Expect::Absent).await.unwrap();
    let b = store.put(pod("b"), object("b", "1"), Expect::Absent).await.unwrap();
    store.put(Key::new("nodes", "", "n"), json!({"metadata": {"name": "n"}}), Expect::Absent).await.unwrap();
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
}

pub async fn the_history_is_bounded_and_says_where_it_begins(store: Arc<dyn Store>) {
    let start = store.revision();
    for n in 0..HISTORY + 2 {
        store.put(pod(&n.to_string()), object("x", ""), Expect::Absent).await.unwrap();
    }
    let oldest = start + 2;
    assert_eq!(store.changes(start).map(|_| ()), Err(StoreError::Compacted { asked: start, oldest }));
    assert_eq!(store.changes(oldest).unwrap().len(), HISTORY);
    assert_eq!(store.changes(store.revision()).unwrap().len(), 0);
    assert_eq!(store.changes(store.revision() + 5).unwrap().len(), 0);
}

pub async fn changes_tell_what_was_and_what_is(store: Arc<dyn Store>) {
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
}

pub async fn followers_are_woken_after_the_write_can_be_seen(store: Arc<dyn Store>) {
    let mut listener = store.signal().listen();
    let made = store.put(pod("a"), object("a", "1"), Expect::Absent).await.unwrap();
    listener.raised().await;
    assert_eq!(store.changes(made.revision - 1).unwrap().len(), 1);
}

/// Runs `$run` on each check, as a test of its name.
macro_rules! each_check {
    ($run:path) => {
        $crate::contract::each_check!($run:
            writes_take_the_next_revision_and_carry_it,
            a_precondition_that_does_not_hold_changes_nothing,
            of_many_writers_with_one_precondition_one_wins,
            a_list_shows_one_revision_even_an_earlier_one,
            the_history_is_bounded_and_says_where_it_begins,
            changes_tell_what_was_and_what_is,
            followers_are_woken_after_the_write_can_be_seen,
        );
    };
    ($run:path: $($check:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                $run($crate::contract::$check).await;
            }
        )+
    };
}
pub(crate) use each_check;
