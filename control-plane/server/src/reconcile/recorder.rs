//! Events: repeats raise the count of one Event object instead of making another (SCHED-53), and old ones go.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use control_plane_core::{EventKind, EventRecord, Now, Snapshot, time};
use serde_json::{Value, json};

use crate::random::Random;
use crate::store::{Expect, Key, Store, StoreError};

/// An Event lives so long after it was last seen.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// Writers of one Event at once that are put up with.
const ATTEMPTS: usize = 8;
/// The namespace of events about cluster-scoped objects.
const CLUSTER: &str = "default";

/// What makes two records one event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Same {
    namespace: String,
    name: String,
    uid: String,
    kind: String,
    type_: EventKind,
    reason: String,
    message: String,
    component: String,
}

/// Writes events.
#[derive(Debug, Default)]
pub struct Recorder {
    known: Mutex<BTreeMap<Same, Key>>,
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().into()
}

impl Recorder {
    /// A recorder that goes on with the events of an earlier run.
    pub fn of(snapshot: &Snapshot) -> Self {
        let known = snapshot.list("events").map(|(key, event)| {
            let warning = text(event, "/type") == "Warning";
            let same = Same {
                namespace: text(event, "/involvedObject/namespace"),
                name: text(event, "/involvedObject/name"),
                uid: text(event, "/involvedObject/uid"),
                kind: text(event, "/involvedObject/kind"),
                type_: if warning { EventKind::Warning } else { EventKind::Normal },
                reason: text(event, "/reason"),
                message: text(event, "/message"),
                component: text(event, "/source/component"),
            };
            (same, Key::new("events", &key.namespace, &key.name))
        });
        Self { known: Mutex::new(known.collect()) }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Same, Key>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that something happened now.
    ///
    /// # Errors
    /// When the store fails; that an event of the name exists, or was changed at the same time, is dealt with here.
    pub async fn record(
        &self,
        store: &dyn Store,
        random: &Random,
        now: &Now,
        record: &EventRecord,
    ) -> Result<(), StoreError> {
        let regarding = &record.regarding;
        let same = Same {
            namespace: regarding.namespace.clone(),
            name: regarding.name.clone(),
            uid: regarding.uid.clone(),
            kind: regarding.kind.clone(),
            type_: record.kind,
            reason: record.reason.into(),
            message: record.message.clone(),
            component: record.component.into(),
        };
        for _ in 0..ATTEMPTS {
            let key = self.known().get(&same).cloned();
            let entry = match &key {
                Some(key) => store.get(key).await?,
                None => None,
            };
            let written = match (key, entry) {
                (Some(key), Some(entry)) => {
                    let mut event = (*entry.object).clone();
                    let count = event["count"].as_i64().unwrap_or(1);
                    event["count"] = json!(count + 1);
                    event["lastTimestamp"] = json!(now.stamp());
                    store.put(key, event, Expect::Revision(entry.revision)).await
                }
                _ => {
                    let namespace =
                        if regarding.namespace.is_empty() { CLUSTER } else { &regarding.namespace };
                    let name = format!("{}.{}", regarding.name, random.event_suffix());
                    let key = Key::new("events", namespace, &name);
                    let event = event(record, namespace, &name, &random.uid(), now);
                    self.known().insert(same.clone(), key.clone());
                    store.put(key, event, Expect::Absent).await
                }
            };
            match written {
                Ok(_) => return Ok(()),
                Err(StoreError::Exists) => {
                    self.known().remove(&same);
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(error @ (StoreError::Compacted { .. } | StoreError::Unavailable(_))) => {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// The events whose time is over, with their revisions.
    pub fn expired(snapshot: &Snapshot, now: &Now) -> Vec<(Key, u64)> {
        let over = |event: &Value| {
            let stamps =
                ["/lastTimestamp", "/series/lastObservedTime", "/eventTime", "/metadata/creationTimestamp"];
            let seen = stamps.iter().filter_map(|stamp| time::parse(&text(event, stamp))).max();
            seen.is_some_and(|seen| time::elapsed(now.wall, seen) > LIFETIME)
        };
        let expired = snapshot.list("events").filter(|(_, event)| over(event));
        expired
            .filter_map(|(key, event)| {
                let revision = text(event, "/metadata/resourceVersion").parse().ok()?;
                Some((Key::new("events", &key.namespace, &key.name), revision))
            })
            .collect()
    }

    /// Forgets which Event was which where the Event is gone.
    pub fn forget(&self, gone: &Key) {
        self.known().retain(|_, key| key != gone);
    }
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
    use crate::store::{MemoryStore, Scope};
    use control_plane_core::ObjectRef;
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

    #[test]
    fn sched_53_repeats_raise_the_count_of_one_event() {
        let (store, random, recorder) = (MemoryStore::new(), Random::new(1, 1), Recorder::default());
        for second in [10, 11, 12] {
            let (now, record) = (at(second), failed("no room"));
            recorder.record(&store, &random, &now, &record).now_or_never().unwrap().unwrap();
        }
        recorder.record(&store, &random, &at(13), &failed("other")).now_or_never().unwrap().unwrap();
        let mut events = events(&store);
        events.sort_by_key(|event| event["message"].to_string());
        assert_eq!(events.len(), 2);
        assert_eq!(events[0]["count"], 3);
        assert_eq!(events[0]["firstTimestamp"], "1970-01-01T00:00:10Z");
        assert_eq!(events[0]["lastTimestamp"], "1970-01-01T00:00:12Z");
        assert_eq!(events[1]["count"], 1);
    }

    #[test]
    fn a_new_recorder_goes_on_with_the_events_that_are_there() {
        let (store, random) = (MemoryStore::new(), Random::new(1, 1));
        let record = |recorder: &Recorder| {
            recorder.record(&store, &random, &at(10), &failed("no room")).now_or_never().unwrap().unwrap();
        };
        record(&Recorder::default());
        let mut snapshot = Snapshot::default();
        for event in events(&store) {
            snapshot.apply("events", control_plane_core::Key::of(&event), Some(event));
        }
        record(&Recorder::of(&snapshot));
        assert_eq!(events(&store).len(), 1);
        assert_eq!(events(&store)[0]["count"], 2);
    }

    #[test]
    fn an_event_that_was_deleted_is_made_anew() {
        let (store, random, recorder) = (MemoryStore::new(), Random::new(1, 1), Recorder::default());
        let record =
            || recorder.record(&store, &random, &at(10), &failed("no room")).now_or_never().unwrap().unwrap();
        record();
        let event = &events(&store)[0];
        let key = Key::new("events", "default", event["metadata"]["name"].as_str().unwrap());
        store.delete(key, 2).now_or_never().unwrap().unwrap();
        record();
        assert_eq!(events(&store)[0]["count"], 1);
    }

    #[test]
    fn events_expire_an_hour_after_they_were_last_seen() {
        let mut snapshot = Snapshot::default();
        let event = json!({
            "metadata": {"name": "e", "namespace": "default", "resourceVersion": "7"},
            "lastTimestamp": "1970-01-01T00:00:10Z",
        });
        snapshot.apply("events", control_plane_core::Key::of(&event), Some(std::sync::Arc::new(event)));
        assert_eq!(Recorder::expired(&snapshot, &at(3600)), []);
        assert_eq!(Recorder::expired(&snapshot, &at(3611)), [(Key::new("events", "default", "e"), 7)]);
    }
}
