//! A disk that is full or fails: a clear refusal, reads and followers go on, and so do writes as soon as they can.

use std::sync::Arc;

use control_plane::store::{Expect, RedbStore, Store, StoreError};

use super::disk::Disk;
use super::{object, open, pod};

fn store(disk: &Disk) -> Arc<RedbStore> {
    Arc::new(open(disk).unwrap())
}

async fn put(store: &RedbStore, name: &str, bytes: usize) -> Result<u64, StoreError> {
    let written = store.put(pod(name), object(name, &"x".repeat(bytes)), Expect::Absent).await;
    written.map(|entry| entry.revision)
}

fn refused(outcome: Result<u64, StoreError>) -> String {
    match outcome {
        Err(StoreError::Unavailable(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

/// Everything that was answered is there after the power goes now.
async fn kept(disk: &Disk, names: &[&str]) {
    let left = open(&Disk::of(disk.after_power_cut())).unwrap();
    for name in names {
        assert!(left.get(&pod(name)).await.unwrap().is_some(), "{name} is lost");
    }
}

#[tokio::test]
async fn a_full_disk_is_said_reads_go_on_and_writes_come_back() {
    let disk = Disk::default();
    let store = store(&disk);
    let first = put(&store, "a", 1_000).await.unwrap();
    disk.limit(Some(disk.size()));
    let mut made = 0;
    let reason = loop {
        match put(&store, &format!("fill{made}"), 200_000).await {
            Ok(_) => made += 1,
            refusal => break refused(refusal),
        }
    };
    assert!(reason.contains("the disk is full") && reason.contains("make room"), "{reason}");
    assert!(store.health().unwrap_err().contains("the disk is full"));
    for n in 0..3 {
        refused(put(&store, &format!("more{n}"), 200_000).await);
    }
    assert_eq!(store.get(&pod("a")).await.unwrap().unwrap().revision, first);
    assert_eq!(store.changes(first - 1).unwrap().len(), 1 + made);
    let before = store.revision();
    disk.limit(None);
    let after = put(&store, "after", 200_000).await.unwrap();
    assert_eq!((after, store.health()), (before + 1, Ok(())));
    kept(&disk, &["a", "after"]).await;
}

#[tokio::test]
async fn a_small_write_may_pass_where_a_large_one_does_not_fit() {
    let disk = Disk::default();
    let store = store(&disk);
    put(&store, "a", 1_000).await.unwrap();
    disk.limit(Some(disk.size()));
    let reason = refused(put(&store, "large", 3_000_000).await);
    assert!(reason.contains("the disk is full"), "{reason}");
    put(&store, "small", 100).await.unwrap();
    let entry = store.get(&pod("a")).await.unwrap().unwrap();
    store.delete(pod("a"), entry.revision).await.unwrap();
    assert_eq!(store.health(), Ok(()));
    kept(&disk, &["small"]).await;
}

#[tokio::test]
async fn whoever_asks_for_its_health_learns_when_it_is_well_again() {
    let disk = Disk::default();
    let store = store(&disk);
    disk.fail_writes(true);
    refused(put(&store, "a", 100).await);
    assert!(store.health().is_err());
    disk.fail_writes(false);
    while store.health().is_err() {
        tokio::task::yield_now().await;
    }
    put(&store, "b", 100).await.unwrap();
}

/// Of a write whose sync failed nobody knows whether it is on the disk. It may be seen later, but what is answered after it
/// must not stand on pages that the kernel only took for written.
#[tokio::test]
async fn what_is_answered_after_a_failed_sync_outlives_a_power_cut() {
    let mut arrived = 0;
    for (passing, failing) in (0..4).flat_map(|passing| (1..4).map(move |failing| (passing, failing))) {
        let what = format!("{failing} syncs fail after {passing}");
        let disk = Disk::default();
        let store = store(&disk);
        // What was deleted leaves room in the file, so that a write may fail after its pages are written.
        put(&store, "a", 1_000).await.unwrap();
        let room = put(&store, "room", 90_000).await.unwrap();
        store.delete(pod("room"), room).await.unwrap();
        put(&store, "b", 1_000).await.unwrap();
        disk.fail_syncs(passing, failing);
        let mut names = vec!["a".to_owned(), "b".to_owned()];
        let mut tries = 0;
        while disk.is_failing() {
            tries += 1;
            let name = format!("unknown{tries}");
            match put(&store, &name, 5_000).await {
                Ok(_) => {}
                refusal => assert!(!refused(refusal).contains("full"), "{what}"),
            }
            if store.get(&pod(&name)).await.unwrap().is_some() {
                names.push(name);
                arrived += usize::from(store.health().is_err());
            }
        }
        let known = store.revision();
        let after = put(&store, "after", 100).await.unwrap();
        // The write in doubt may turn out to be there only now.
        assert!(after > known && store.health().is_ok(), "{what}: {known}, then {after}");
        names.push("after".into());
        let left = open(&Disk::of(disk.after_power_cut())).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(left.revision(), after, "{what}");
        for name in &names {
            assert!(left.get(&pod(name)).await.unwrap().is_some(), "{what}: {name} is lost");
        }
    }
    // Otherwise no write was ever in doubt.
    assert!(arrived > 0);
}
