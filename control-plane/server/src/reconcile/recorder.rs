//! Events: repeats raise the count of one Event object instead of making another (SCHED-53), and old ones go.
//!
//! What makes two records one event decides the Event's name, so that the store itself keeps one from becoming two: whoever
//! records the same at the same time, or before a restart, meets the other there. No memory of its own, no lock.

use std::time::Duration;

use control_plane_core::{EventRecord, Now, Snapshot};
use serde_json::{Value, json};

use crate::random::Random;
use crate::store::{Expect, Key, Store, StoreError};

/// Writers of one Event at once, and foreign Events of its name, that are put up with.
const ATTEMPTS: u64 = 64;
/// The namespace of events about cluster-scoped objects.
const CLUSTER: &str = "default";

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// What makes two records one event, by its place in the Event.
fn identity(record: &EventRecord) -> [(&'static str, &str); 8] {
    let regarding = &record.regarding;
    [
        ("/involvedObject/kind", &regarding.kind),
        ("/involvedObject/namespace", &regarding.namespace),
        ("/involvedObject/name", &regarding.name),
        ("/involvedObject/uid", &regarding.uid),
        ("/type", record.kind.as_str()),
        ("/reason", record.reason),
        ("/message", &record.message),
        ("/source/component", record.component),
    ]
}

/// Whether this Event is the record's.
fn is_of(event: &Value, record: &EventRecord) -> bool {
    identity(record).iter().all(|(place, wanted)| text(event, place) == *wanted)
}

/// The name of the record's Event in the form of Kubernetes, `OBJECT.16-HEX-DIGITS`; `other` counts the names that turned
/// out to be taken by foreign Events.
fn name(record: &EventRecord, other: u64) -> String {
    let identity = identity(record);
    let fields = identity.iter().flat_map(|(_, field)| field.bytes().chain([0]));
    // FNV-1a: the same in every build, which `std`'s hashers do not promise.
    let hash = fields.chain(other.to_le_bytes()).fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    format!("{}.{hash:016x}", record.regarding.name)
}

/// Records that something happened now.
///
/// # Errors
/// When the store fails, or so many others write the same event that none of the attempts is successful.
pub async fn record(
    store: &dyn Store,
    random: &Random,
    now: &Now,
    record: &EventRecord,
) -> Result<(), StoreError> {
    let namespace = if record.regarding.namespace.is_empty() { CLUSTER } else { &record.regarding.namespace };
    let (mut foreign, mut lost) = (0, StoreError::Exists);
    for _ in 0..ATTEMPTS {
        let name = name(record, foreign);
        let key = Key::new("events", namespace, &name);
        let written = match store.get(&key).await? {
            Some(entry) if is_of(&entry.object, record) => {
                let mut event = (*entry.object).clone();
                let count = event["count"].as_i64().unwrap_or(1);
                event["count"] = json!(count + 1);
                event["lastTimestamp"] = json!(now.stamp());
                store.put(key, event, Expect::Revision(entry.revision)).await
            }
            Some(_) => {
                foreign += 1;
                continue;
            }
            None => {
                let event = event(record, namespace, &name, &random.uid(), now);
                store.put(key, event, Expect::Absent).await
            }
        };
        match written {
            Ok(_) => return Ok(()),
            Err(error @ (StoreError::Exists | StoreError::Conflict { .. })) => lost = error,
            Err(
                error @ (StoreError::Compacted { .. }
                | StoreError::Unavailable(_)
                | StoreError::Uncertain(_)
                | StoreError::Deposed),
            ) => return Err(error),
        }
    }
    Err(lost)
}

/// The events whose last write is at least `lifetime` ago, with their revisions.
pub fn expired(snapshot: &Snapshot, lifetime: Duration, now: &Now) -> Vec<(Key, u64)> {
    let expired = snapshot.events_older_than(lifetime, now).filter_map(|key| {
        let event = snapshot.at("events", key)?;
        let revision = text(event, "/metadata/resourceVersion").parse().ok()?;
        Some((Key::new("events", &key.namespace, &key.name), revision))
    });
    expired.collect()
}

fn event(record: &EventRecord, namespace: &str, name: &str, uid: &str, now: &Now) -> Value {
    let regarding = &record.regarding;
    let mut about = json!({
        "apiVersion": regarding.api_version,
        "kind": regarding.kind,
        "name": regarding.name,
        "uid": regarding.uid,
    });
    if !regarding.namespace.is_empty() {
        about["namespace"] = json!(regarding.namespace);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": now.stamp()},
        "involvedObject": about,
        "type": record.kind.as_str(),
        "reason": record.reason,
        "message": record.message,
        "source": {"component": record.component},
        "reportingComponent": record.component,
        "reportingInstance": "",
        "firstTimestamp": now.stamp(),
        "lastTimestamp": now.stamp(),
        "count": 1,
        "eventTime": null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{MemoryStore, RedbStore, Scope};
    use control_plane_core::{EventKind, ObjectRef};
    use futures_util::FutureExt;

    fn at(seconds: u64) -> Now {
        let wall = jiff::Timestamp::UNIX_EPOCH + Duration::from_secs(seconds);
        Now { mono: Duration::from_secs(seconds), wall }
    }

    fn failed(message: &str) -> EventRecord {
        EventRecord {
            regarding: ObjectRef {
                api_version: "v1".into(),
                kind: "Pod".into(),
                namespace: "default".into(),
                name: "p".into(),
                uid: "u".into(),
            },
            kind: EventKind::Warning,
            reason: "FailedScheduling",
            message: message.into(),
            component: "default-scheduler",
        }
    }

    fn events(store: &MemoryStore) -> Vec<std::sync::Arc<Value>> {
        let scope = Scope { resource: "events", namespace: None };
        let listing = store.list(scope, None).now_or_never().unwrap().unwrap();
        listing.entries.into_iter().map(|(_, entry)| entry.object).collect()
    }

    fn record_in(store: &MemoryStore, second: u64, told: &EventRecord) {
        let random = Random::new(second, 1);
        record(store, &random, &at(second), told).now_or_never().unwrap().unwrap();
    }

    #[test]
    fn sched_53_repeats_raise_the_count_of_one_event() {
        let store = MemoryStore::new();
        for second in [10, 11, 12] {
            record_in(&store, second, &failed("no room"));
        }
        record_in(&store, 13, &failed("other"));
        let mut events = events(&store);
        events.sort_by_key(|event| event["message"].to_string());
        assert_eq!(events.len(), 2);
        assert_eq!(events[0]["count"], 3);
        assert_eq!(events[0]["firstTimestamp"], "1970-01-01T00:00:10Z");
        assert_eq!(events[0]["lastTimestamp"], "1970-01-01T00:00:12Z");
        assert_eq!(events[1]["count"], 1);
    }

    /// Passes that come to the same conclusion at once, over the store whose writes take their time.
    #[tokio::test]
    async fn sched_53_records_that_cross_are_one_event() {
        let dir = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&dir.path().join("store.redb"), 64).unwrap();
        let (random, now, failed) = (Random::new(1, 1), at(10), failed("no room"));
        let crossing = (0..4).map(|_| record(&store, &random, &now, &failed));
        let crossing = futures_util::future::join_all(crossing).await;
        assert!(crossing.iter().all(Result::is_ok), "{crossing:?}");
        let listing = store.list(Scope { resource: "events", namespace: None }, None).await.unwrap();
        let counts: Vec<&Value> = listing.entries.iter().map(|(_, entry)| &entry.object["count"]).collect();
        assert_eq!(counts, [4]);
    }

    #[test]
    fn whatever_tells_two_records_apart_makes_them_two_events() {
        let store = MemoryStore::new();
        let changes: [fn(&mut EventRecord); 9] = [
            |_| {},
            |record| record.regarding.kind = "Node".into(),
            |record| record.regarding.namespace = "other".into(),
            |record| record.regarding.name = "q".into(),
            |record| record.regarding.uid = "another".into(),
            |record| record.kind = EventKind::Normal,
            |record| record.reason = "Preempted",
            |record| record.message = "no pins".into(),
            |record| record.component = "node-controller",
        ];
        for change in changes {
            let mut record = failed("no room");
            change(&mut record);
            record_in(&store, 10, &record);
        }
        assert_eq!(events(&store).len(), changes.len());
        assert!(events(&store).iter().all(|event| event["count"] == 1));
    }

    #[test]
    fn a_foreign_event_of_the_same_name_is_left_alone() {
        let (store, record) = (MemoryStore::new(), failed("no room"));
        let foreign = json!({"metadata": {"name": name(&record, 0), "namespace": "default"}, "count": 7});
        let key = Key::new("events", "default", &name(&record, 0));
        store.put(key, foreign, Expect::Absent).now_or_never().unwrap().unwrap();
        record_in(&store, 10, &record);
        record_in(&store, 11, &record);
        let mut counts: Vec<_> = events(&store).iter().map(|event| event["count"].as_u64()).collect();
        counts.sort_unstable();
        assert_eq!(counts, [Some(2), Some(7)]);
    }

    #[test]
    fn names_stay_what_they_are_from_one_version_to_the_next() {
        let names = [0, 1].map(|other| name(&failed("no room"), other));
        assert_eq!(names, ["p.73f39a6e250ed24e", "p.92ee61772ffe1c6f"]);
    }

    #[test]
    fn an_event_that_was_deleted_is_made_anew() {
        let store = MemoryStore::new();
        record_in(&store, 10, &failed("no room"));
        let event = &events(&store)[0];
        let key = Key::new("events", "default", event["metadata"]["name"].as_str().unwrap());
        store.delete(key, 2).now_or_never().unwrap().unwrap();
        record_in(&store, 11, &failed("no room"));
        assert_eq!(events(&store)[0]["count"], 1);
        assert_ne!(events(&store)[0]["metadata"]["uid"], event["metadata"]["uid"]);
    }

    #[test]
    fn events_expire_so_long_after_they_were_last_written() {
        let mut snapshot = Snapshot::default();
        let key = control_plane_core::Key::new("default", "e");
        let event = json!({"metadata": {"name": "e", "namespace": "default", "resourceVersion": "7"}});
        snapshot.observe("events", key, Some(std::sync::Arc::new(event)), &at(10));
        let lifetime = Duration::from_secs(3600);
        assert_eq!(expired(&snapshot, lifetime, &at(3609)), []);
        assert_eq!(expired(&snapshot, lifetime, &at(3610)), [(Key::new("events", "default", "e"), 7)]);
    }
}
