//! A disk that is full or fails: a clear refusal, reads and followers go on, and so do writes as soon as they can.

use std::sync::Arc;

use control_plane::store::{Expect, Part, RedbStore, Sizes, Store, StoreError};

use super::disk::{Disk, Failing};
use super::{SMALL, object, open, open_sized, pod};

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
    assert_eq!(store.get(&pod("a")).await.unwrap(), None);
}

/// Of a write whose sync failed nobody knows whether it is on the disk. It is settled before the next one: it is not there, not
/// even after a power cut, and what is answered after it does not stand on pages that the kernel only took for written.
#[tokio::test]
async fn what_is_answered_after_a_failed_sync_outlives_a_power_cut() {
    let cases = (0..3).flat_map(|passing| (1..4).map(move |count| (passing, count)));
    for (passing, count, arrives) in
        cases.flat_map(|(passing, count)| [false, true].map(|arrives| (passing, count, arrives)))
    {
        let what = format!("{count} syncs fail after {passing}, what they write arrives: {arrives}");
        let disk = Disk::default();
        // One generation takes it all.
        let store = open_sized(&disk, Sizes::default()).unwrap();
        put(&store, "a", 1_000).await.unwrap();
        disk.fail_syncs(Part::Journal(1), Failing { passing, count, arrives });
        let (mut names, mut refusals) = (vec!["a".to_owned()], Vec::new());
        for n in 0.. {
            if !disk.is_failing() {
                break;
            }
            // Each time of another length, so that one in the place of another does not cover it.
            let name = format!("n{n}");
            match put(&store, &name, 20_000 / (n + 1)).await {
                Ok(_) => names.push(name),
                refusal => {
                    assert!(!refused(refusal).contains("full"), "{what}");
                    assert!(store.health().is_err(), "{what}");
                    assert_eq!(store.get(&pod(&name)).await.unwrap(), None, "{what}: {name}");
                    refusals.push(name);
                }
            }
            // Whatever became of the one in doubt, the others are there.
            let left = open_sized(&Disk::of(disk.after_power_cut()), Sizes::default());
            let left = left.unwrap_or_else(|error| panic!("{what}: {error}"));
            for name in &names {
                assert!(left.get(&pod(name)).await.unwrap().is_some(), "{what}: {name} is lost");
            }
        }
        let known = store.revision();
        let after = put(&store, "after", 100).await.unwrap();
        assert_eq!((after, store.health()), (known + 1, Ok(())), "{what}");
        names.push("after".into());
        let left = open_sized(&Disk::of(disk.after_power_cut()), Sizes::default()).unwrap();
        assert_eq!(left.revision(), after, "{what}");
        for name in &names {
            assert!(left.get(&pod(name)).await.unwrap().is_some(), "{what}: {name} is lost");
        }
        assert!(!refusals.is_empty());
        for name in &refusals {
            assert_eq!(left.get(&pod(name)).await.unwrap(), None, "{what}: {name} came back");
        }
    }
}

/// What the journal holds is not in danger where redb cannot take it: writes go on.
#[tokio::test]
async fn writes_go_on_while_redb_cannot_be_synced_and_it_catches_up() {
    for (passing, count) in (0..3).flat_map(|passing| (1..4).map(move |count| (passing, count))) {
        let what = format!("{count} syncs of redb fail after {passing}");
        let disk = Disk::default();
        // However slow the fold is, nothing waits for it.
        let store = open_sized(&disk, Sizes { most: u64::MAX, ..SMALL }).unwrap();
        let mut names = Vec::new();
        disk.fail_syncs(Part::Store, Failing { passing, count, arrives: false });
        let mut n = 0;
        while disk.is_failing() || n < 30 {
            let name = format!("n{n}");
            put(&store, &name, 9_000).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            names.push(name);
            n += 1;
        }
        let cut = open(&Disk::of(disk.after_power_cut())).unwrap_or_else(|error| panic!("{what}: {error}"));
        let revision = store.revision();
        drop(store);
        let closed = open(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
        for left in [cut, closed] {
            assert_eq!(left.revision(), revision, "{what}");
            for name in &names {
                assert!(left.get(&pod(name)).await.unwrap().is_some(), "{what}: {name} is lost");
            }
        }
    }
}

/// A failed sync may lose how long the file became, too: it is not only what was written that is written again.
#[tokio::test]
async fn a_file_that_grew_while_it_could_not_be_synced_is_as_long_after_a_power_cut() {
    let cases = (1..3).flat_map(|count| (4..7).map(move |n| (count, n * 3_000)));
    for (count, size) in cases {
        let what = format!("{count} syncs of redb fail, {size} bytes each");
        let disk = Disk::default();
        let store = open_sized(&disk, Sizes { most: u64::MAX, ..SMALL }).unwrap();
        disk.fail_syncs(Part::Store, Failing { passing: 0, count, arrives: false });
        let (mut names, mut after) = (Vec::new(), 0);
        // The cut comes before the store is closed, which would sync once more.
        while after < 12 {
            after += usize::from(!disk.is_failing());
            let name = format!("n{}", names.len());
            put(&store, &name, size).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            names.push(name);
            let cut = open(&Disk::of(disk.after_power_cut()));
            let cut = cut.unwrap_or_else(|error| panic!("{what}, {after} writes after: {error}"));
            for name in &names {
                assert!(cut.get(&pod(name)).await.unwrap().is_some(), "{what}: {name} is lost");
            }
        }
    }
}

/// The journal does not grow for ever, and what a start reads is bounded.
#[tokio::test]
async fn writes_are_refused_when_redb_takes_nothing_for_too_long_and_come_back() {
    let disk = Disk::default();
    let store = store(&disk);
    let before = disk.size();
    disk.fail_syncs(Part::Store, Failing { passing: 0, count: usize::MAX, arrives: false });
    let mut names = Vec::new();
    let reason = loop {
        let name = format!("n{}", names.len());
        match put(&store, &name, 9_000).await {
            Ok(_) => names.push(name),
            refusal => break refused(refusal),
        }
    };
    assert!(!reason.contains("full"), "{reason}");
    let grown = (disk.size() - before) as u64;
    // redb's own file grows too, by what it tries to write.
    assert!(
        names.len() as u64 * 12_288 > SMALL.most && grown < 8 * SMALL.most,
        "{} names, {grown}",
        names.len()
    );
    assert!(store.health().is_err());
    assert!(store.get(&pod("n0")).await.unwrap().is_some());
    disk.fail_syncs(Part::Store, Failing { passing: 0, count: 0, arrives: false });
    put(&store, "after", 100).await.unwrap();
    let left = open(&Disk::of(disk.after_power_cut())).unwrap();
    for name in names.iter().map(String::as_str).chain(["after"]) {
        assert!(left.get(&pod(name)).await.unwrap().is_some(), "{name} is lost");
    }
}
