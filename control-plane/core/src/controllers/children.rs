//! What the controllers that make pods share: pods from a template, their names, their readiness, and the writes and
//! events that make and delete them.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::garbage;
use crate::decision::{EventKind, EventRecord, ObjectRef, Write};
use crate::snapshot::{Key, Mark, Snapshot};
use crate::time::{self, Now};
use crate::{conditions, json, pod};

/// Kubernetes' alphabet for generated names: no vowels, nothing that looks alike.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Characters after the prefix of a generated name, and bytes of the prefix that are used.
const SUFFIX: usize = 5;
const PREFIX: usize = 58;

/// FNV-1a over 32 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fnv(u32);

impl Fnv {
    pub(super) fn new() -> Self {
        Self(0x811c_9dc5)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }

    /// The digits of the hash in Kubernetes' alphabet for names.
    pub(super) fn text(self) -> String {
        let digits = self.0.to_string().into_bytes();
        digits.iter().map(|digit| char::from(ALPHABET[usize::from(*digit) % ALPHABET.len()])).collect()
    }

    /// Five characters of Kubernetes' alphabet.
    fn suffix(self) -> String {
        let mut rest = self.0;
        let base = 27;
        (0..SUFFIX)
            .map(|_| {
                let letter = ALPHABET[usize::try_from(rest % base).unwrap_or(0)];
                rest /= base;
                char::from(letter)
            })
            .collect()
    }
}

/// Who makes pods: the object, its kind, and the component that its events name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) object: &'a Value,
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    pub(super) component: &'static str,
}

impl Owner<'_> {
    /// A pod from the owner's `spec.template`, with the owner as its controller, to be named after `prefix`.
    pub(super) fn pod(&self, prefix: &str) -> Value {
        let template = json::get(self.object, &["spec", "template"]).cloned().unwrap_or_default();
        let mut metadata = Map::new();
        for field in ["labels", "annotations", "finalizers"] {
            if let Some(value) = json::get(&template, &["metadata", field]) {
                metadata.insert(field.to_owned(), value.clone());
            }
        }
        metadata.insert("generateName".to_owned(), prefix.into());
        metadata.insert("namespace".to_owned(), json::namespace(self.object).into());
        let reference = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": json::name(self.object),
            "uid": json::uid(self.object),
            "controller": true,
            "blockOwnerDeletion": true,
        });
        metadata.insert("ownerReferences".to_owned(), json!([reference]));
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": json::get(&template, &["spec"]).cloned().unwrap_or_default(),
        })
    }
}

/// The writes and events of a pass that makes and deletes pods one by one, each with an event that names it.
pub(super) struct Children<'a> {
    owner: Owner<'a>,
    snapshot: &'a Snapshot,
    now: &'a Now,
    names: u64,
    pub(super) writes: Vec<Write>,
    pub(super) events: Vec<EventRecord>,
}

impl<'a> Children<'a> {
    pub(super) fn new(owner: Owner<'a>, snapshot: &'a Snapshot, now: &'a Now) -> Self {
        Self { owner, snapshot, now, names: 0, writes: Vec::new(), events: Vec::new() }
    }

    /// Makes `pod`, under a name that follows from its `generateName`, its owner and this instant: the decision has to
    /// know it, since the event names it.
    pub(super) fn make(&mut self, mut pod: Value) {
        let prefix = json::text(&pod, &["metadata", "generateName"]).unwrap_or_default();
        let prefix: String = prefix.chars().take(PREFIX).collect();
        let name = loop {
            let mut hash = Fnv::new();
            hash.write(json::uid(self.owner.object).as_bytes());
            hash.write(&self.now.wall.as_nanosecond().to_le_bytes());
            hash.write(&self.names.to_le_bytes());
            self.names += 1;
            let name = format!("{prefix}{}", hash.suffix());
            if self.snapshot.get("pods", json::namespace(self.owner.object), &name).is_none() {
                break name;
            }
        };
        json::object_mut(&mut pod, &["metadata"]).insert("name".to_owned(), name.as_str().into());
        self.writes.push(Write::Create { resource: "pods", object: pod });
        self.tell(EventKind::Normal, "SuccessfulCreate", format!("Created pod: {name}"));
    }

    /// Deletes `pod`; `grace_seconds` as in [`Write::Delete`].
    pub(super) fn delete(&mut self, pod: &Value, grace_seconds: Option<i64>) {
        self.writes.push(delete(pod, grace_seconds));
        self.tell(EventKind::Normal, "SuccessfulDelete", format!("Deleted pod: {}", json::name(pod)));
    }

    /// Tells of the owner.
    pub(super) fn tell(&mut self, kind: EventKind, reason: &'static str, message: String) {
        self.events.push(EventRecord {
            regarding: ObjectRef::to(self.owner.api_version, self.owner.kind, self.owner.object),
            kind,
            reason,
            message,
            component: self.owner.component,
        });
    }
}

/// The deletion of this very pod.
pub(super) fn delete(pod: &Value, grace_seconds: Option<i64>) -> Write {
    Write::Delete {
        resource: "pods",
        namespace: json::namespace(pod).to_owned(),
        name: json::name(pod).to_owned(),
        uid: Some(json::uid(pod).to_owned()),
        resource_version: None,
        grace_seconds,
    }
}

/// Lets go of a pod that no longer matches its controller's selector, as Kubernetes does.
pub(super) fn release(pod: &Value, owner: &Value) -> Write {
    let object = garbage::without_owner(pod, json::uid(owner));
    Write::Update { resource: "pods", subresource: None, object }
}

/// How long a pod has been ready, if it is; exact only where it matters, that is where `min_ready` is not zero.
pub(super) fn ready_for(
    snapshot: &Snapshot,
    key: &Key,
    pod: &Value,
    min_ready: Duration,
    now: &Now,
) -> Option<Duration> {
    if !pod::is_ready(pod) {
        return None;
    }
    if min_ready.is_zero() {
        return Some(Duration::ZERO);
    }
    let stamp = conditions::get(pod, "Ready").and_then(|c| json::text(c, &["lastTransitionTime"]));
    // Ready since an unknown instant is ready since now.
    let span = stamp.and_then(time::parse);
    let span = span.and_then(|stamp| snapshot.since(&Mark::PodReady(key.clone()), Some(stamp), None, now));
    Some(span.unwrap_or(Duration::ZERO))
}

/// `minReadySeconds`.
pub(super) fn min_ready(workload: &Value) -> Duration {
    let seconds = json::int(workload, &["spec", "minReadySeconds"]).unwrap_or(0);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn names_differ_and_avoid_those_that_are_taken() {
        let object = json!({"metadata": {"name": "w", "namespace": "n", "uid": "u"}, "spec": {}});
        let owner =
            Owner { object: &object, api_version: "batch/v1", kind: "Job", component: "job-controller" };
        let now = Now { mono: Duration::ZERO, wall: "2026-11-29T12:00:00Z".parse().expect("a timestamp") };
        let names = |snapshot: &Snapshot, now: &Now| -> Vec<String> {
            let mut children = Children::new(owner, snapshot, now);
            for _ in 0..2 {
                children.make(owner.pod("w-"));
            }
            children.events.iter().map(|event| event.message.clone()).collect()
        };
        let mut snapshot = Snapshot::default();
        let first = names(&snapshot, &now);
        assert_ne!(first[0], first[1]);
        assert_eq!(names(&snapshot, &now), first, "the same, given the same");
        let taken = first[0].trim_start_matches("Created pod: ");
        assert_eq!(taken.len(), "w-".len() + SUFFIX);
        snapshot.apply("pods", Key::new("n", taken), Some(Arc::new(json!({"metadata": {"name": taken}}))));
        assert_eq!(names(&snapshot, &now)[0], first[1], "the next one");
        let later = Now { wall: now.wall.checked_add(Duration::from_nanos(1)).expect("an instant"), ..now };
        assert!(!names(&snapshot, &later).contains(&first[1]));
    }

    #[test]
    fn long_names_leave_room_for_the_suffix() {
        let object = json!({"metadata": {"name": "w", "namespace": "n", "uid": "u"}, "spec": {}});
        let owner =
            Owner { object: &object, api_version: "batch/v1", kind: "Job", component: "job-controller" };
        let now = Now { mono: Duration::ZERO, wall: "2026-11-29T12:00:00Z".parse().expect("a timestamp") };
        let snapshot = Snapshot::default();
        let mut children = Children::new(owner, &snapshot, &now);
        children.make(owner.pod(&"w".repeat(70)));
        assert_eq!(children.events[0].message.len(), "Created pod: ".len() + 63);
    }
}
