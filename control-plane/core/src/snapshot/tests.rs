//! Snapshots under writes and reports, on a clock that stands in the arguments.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::time::Now;

fn at(mono_millis: u64) -> Now {
    let start: Timestamp = "2026-11-29T12:00:00Z".parse().expect("a timestamp");
    let mono = Duration::from_millis(mono_millis);
    Now { mono, wall: start.checked_add(mono).expect("an instant") }
}

fn stamp(text: &str) -> Option<Timestamp> {
    Some(text.parse().expect("a timestamp"))
}

fn node(uid: &str, taints: &Value) -> Option<Object> {
    Some(Arc::new(json!({"metadata": {"name": "a", "uid": uid}, "spec": {"taints": taints}})))
}

fn no_execute(time_added: &str) -> Value {
    json!([{"key": "k", "effect": "NoExecute", "timeAdded": time_added}])
}

fn key() -> Key {
    Key::new("", "a")
}

#[track_caller]
fn check(
    snapshot: &Snapshot,
    added: Option<Timestamp>,
    kept: Option<Timestamp>,
    now: u64,
    expected: Option<u64>,
) {
    let mark = Mark::NoExecute("a".into(), "k".into());
    let since = snapshot.since(&mark, added, kept, &at(now));
    assert_eq!(since, expected.map(Duration::from_millis));
}

#[test]
fn node_08_a_stamp_counts_from_the_write_that_carried_it() {
    let added = stamp("2026-11-29T12:00:01Z");
    let mut snapshot = Snapshot::default();
    snapshot.observe("nodes", key(), node("u", &json!([])), &at(0));
    snapshot.observe("nodes", key(), node("u", &no_execute("2026-11-29T12:00:01Z")), &at(1_900));
    check(&snapshot, added, None, 5_000, Some(3_100));
    // a later write with the same stamp is another matter
    snapshot.observe("nodes", key(), node("u", &no_execute("2026-11-29T12:00:01Z")), &at(4_000));
    check(&snapshot, added, None, 5_000, Some(3_100));
    // gone and put on again within the same second
    snapshot.observe("nodes", key(), node("u", &no_execute("2026-11-29T12:00:06Z")), &at(6_100));
    snapshot.observe("nodes", key(), node("u", &json!([])), &at(6_200));
    snapshot.observe("nodes", key(), node("u", &no_execute("2026-11-29T12:00:06Z")), &at(6_300));
    check(&snapshot, stamp("2026-11-29T12:00:06Z"), None, 7_000, Some(700));
}

#[test]
fn node_12_after_a_restart_a_kept_instant_or_the_end_of_the_stamps_second() {
    let added = stamp("2026-11-29T12:00:01Z");
    let mut snapshot = Snapshot::default();
    let object = node("u", &no_execute("2026-11-29T12:00:01Z")).expect("a node");
    snapshot.restore("nodes", key(), object, &at(4_000));
    check(&snapshot, added, None, 5_000, Some(3_000));
    check(&snapshot, added, stamp("2026-11-29T12:00:01.25Z"), 5_000, Some(3_730));
    check(&snapshot, added, stamp("2026-11-29T12:00:00.999Z"), 5_000, Some(3_000));
    check(&snapshot, added, None, 1_500, Some(0));
}

#[test]
fn node_12_after_a_restart_a_slow_store_may_have_accepted_the_write_later() {
    let mut snapshot = Snapshot::of_store_with_latency(Duration::from_millis(230));
    let object = node("u", &no_execute("2026-11-29T12:00:01Z")).expect("a node");
    snapshot.restore("nodes", key(), object, &at(4_000));
    let added = stamp("2026-11-29T12:00:01Z");
    check(&snapshot, added, stamp("2026-11-29T12:00:01.25Z"), 5_000, Some(3_500));
    check(&snapshot, added, None, 5_000, Some(3_000));
}

#[test]
fn a_stamp_that_tells_of_another_time_is_taken_at_its_word() {
    let mut snapshot = Snapshot::default();
    snapshot.observe("nodes", key(), node("u", &json!([])), &at(0));
    snapshot.observe("nodes", key(), node("u", &no_execute("2026-11-29T11:00:00Z")), &at(1_000));
    check(&snapshot, stamp("2026-11-29T11:00:00Z"), None, 2_000, Some(3_601_000));
    let bare = json!([{"key": "k", "effect": "NoExecute"}]);
    snapshot.observe("nodes", key(), node("u", &bare), &at(3_000));
    check(&snapshot, None, None, 4_000, Some(1_000));
    let mut snapshot = Snapshot::default();
    snapshot.restore("nodes", key(), node("u", &bare).expect("a node"), &at(3_000));
    check(&snapshot, None, None, 4_000, Some(1_000));
    check(&Snapshot::default(), None, None, 4_000, None);
}

#[test]
fn node_26_renewals_belong_to_one_node_object() {
    let lease = |renewed: &str, seconds: u64| {
        let spec = json!({"renewTime": renewed, "leaseDurationSeconds": seconds});
        Some(Arc::new(json!({"metadata": {"name": "a", "namespace": LEASE_NAMESPACE}, "spec": spec})))
    };
    let lease_key = Key::new(LEASE_NAMESPACE, "a");
    let mut snapshot = Snapshot::default();
    let check = |snapshot: &Snapshot, from: Option<u64>, renewed: bool, seconds: Option<u64>| {
        assert_eq!(snapshot.lease_counted_from("a"), from.map(Duration::from_millis));
        assert_eq!(snapshot.lease_was_renewed("a"), renewed);
        assert_eq!(snapshot.lease_duration("a"), seconds.map(Duration::from_secs));
    };
    check(&snapshot, None, false, None);
    snapshot.observe("nodes", key(), node("u", &json!([])), &at(1));
    check(&snapshot, Some(1), false, None);
    snapshot.observe("leases", lease_key.clone(), lease("t1", 15), &at(2));
    check(&snapshot, Some(2), true, Some(15));
    snapshot.observe("leases", lease_key.clone(), lease("t1", 40), &at(3));
    check(&snapshot, Some(2), true, Some(40));
    snapshot.observe("leases", lease_key.clone(), lease("t2", 0), &at(4));
    check(&snapshot, Some(4), true, None);
    snapshot.observe("leases", Key::new("default", "a"), lease("t3", 15), &at(5));
    check(&snapshot, Some(4), true, None);
    snapshot.observe("nodes", key(), node("u", &no_execute("2026-11-29T12:00:00Z")), &at(6));
    check(&snapshot, Some(4), true, None);
    snapshot.observe("leases", lease_key, None, &at(7));
    check(&snapshot, Some(4), true, None);
    snapshot.observe("nodes", key(), node("another", &json!([])), &at(8));
    check(&snapshot, Some(8), false, None);
    snapshot.observe("nodes", key(), None, &at(9));
    check(&snapshot, None, false, None);
}

#[test]
fn sched_25_reports_cover_what_was_before_them() {
    let mut snapshot = Snapshot::default();
    snapshot.observe("nodes", key(), node("u", &json!([])), &at(0));
    assert_eq!(snapshot.status_covered("a"), 0);
    for (version, covered) in [(7, 7), (9, 9), (8, 9)] {
        snapshot.status_reported("a", version);
        assert_eq!(snapshot.status_covered("a"), covered);
    }
    snapshot.observe("nodes", key(), node("another", &json!([])), &at(1));
    assert_eq!(snapshot.status_covered("a"), 0, "another board's reports");
}

#[test]
fn objects_are_found_by_place_namespace_node_and_uid() {
    let pod = |namespace: &str, name: &str, node: &str| {
        let metadata = json!({"name": name, "namespace": namespace, "uid": format!("{namespace}-{name}")});
        Arc::new(json!({"metadata": metadata, "spec": {"nodeName": node}}))
    };
    let mut snapshot = Snapshot::default();
    for (namespace, name, node) in [("m", "z", "a"), ("n", "a", "a"), ("n", "b", "b"), ("o", "a", "a")] {
        snapshot.apply("pods", Key::new(namespace, name), Some(pod(namespace, name, node)));
    }
    let names = |keys: Vec<(&Key, &Object)>| -> Vec<String> {
        keys.iter().map(|(key, _)| format!("{}/{}", key.namespace, key.name)).collect()
    };
    assert_eq!(names(snapshot.list_in("pods", "n").collect()), ["n/a", "n/b"]);
    assert_eq!(names(snapshot.pods_on("a").collect()), ["m/z", "n/a", "o/a"]);
    assert_eq!(names(snapshot.list("nodes").collect()), [""; 0]);
    assert_eq!(snapshot.find_uid("n-b"), Some(&("pods", Key::new("n", "b"))));
    snapshot.apply("pods", Key::new("n", "b"), None);
    assert_eq!((snapshot.find_uid("n-b"), snapshot.get("pods", "n", "b")), (None, None));
    assert_eq!(snapshot.resources().collect::<Vec<_>>(), ["pods"]);
}

#[test]
fn events_grow_old_from_their_last_write_whatever_they_say() {
    let mut snapshot = Snapshot::default();
    let key = |name: &str| Key::new("n", name);
    let stamped = |stamps: Value| {
        let mut event = json!({"metadata": {"name": "e", "namespace": "n"}});
        event.as_object_mut().expect("an object").extend(stamps.as_object().cloned().unwrap_or_default());
        Some(Arc::new(event))
    };
    let old = json!({"lastTimestamp": "2020-01-01T00:00:00Z"});
    snapshot.observe("events", key("a"), stamped(old.clone()), &at(1_000));
    snapshot.observe("events", key("b"), stamped(json!({"eventTime": "2036-01-01T00:00:00Z"})), &at(2_000));
    snapshot.observe("events", key("gone"), stamped(json!({})), &at(1_000));
    snapshot.observe("events", key("gone"), None, &at(1_500));
    let check = |snapshot: &Snapshot, now: u64, expected: &[&str]| {
        let old = snapshot.events_older_than(Duration::from_secs(10), &at(now));
        assert_eq!(old.map(|key| key.name.as_str()).collect::<Vec<_>>(), expected, "{now}");
    };
    check(&snapshot, 10_999, &[]);
    check(&snapshot, 11_000, &["a"]);
    snapshot.observe("events", key("a"), stamped(old), &at(11_000));
    check(&snapshot, 12_000, &["b"]);
    check(&snapshot, 21_000, &["a", "b"]);
}

#[test]
fn after_a_restart_events_are_as_old_as_the_newest_of_their_stamps() {
    let mut snapshot = Snapshot::default();
    // The process starts at 12:01:40.
    for (name, stamps) in [
        ("count", json!({"firstTimestamp": "2026-11-29T11:00:00Z", "lastTimestamp": "2026-11-29T12:01:35Z"})),
        (
            "series",
            json!({"eventTime": "2026-11-29T11:00:00.5Z", "series": {"lastObservedTime": "2026-11-29T12:01:38Z"}}),
        ),
        (
            "created",
            json!({"metadata": {"creationTimestamp": "2026-11-29T12:01:30Z"}, "lastTimestamp": null}),
        ),
        ("silent", json!({})),
        ("to-come", json!({"eventTime": "2027-01-01T00:00:00Z"})),
    ] {
        snapshot.restore("events", Key::new("n", name), Arc::new(stamps), &at(100_000));
    }
    let check = |now: u64, expected: &[&str]| {
        let old = snapshot.events_older_than(Duration::from_secs(10), &at(now));
        assert_eq!(old.map(|key| key.name.as_str()).collect::<Vec<_>>(), expected, "{now}");
    };
    check(100_000, &["created"]);
    check(105_000, &["count", "created"]);
    check(108_000, &["count", "created", "series"]);
    check(109_999, &["count", "created", "series"]);
    check(110_000, &["count", "created", "series", "silent", "to-come"]);
}
