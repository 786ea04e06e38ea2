//! The state that decisions read: objects as the reflector knows them, and a few instants that no object carries.
//!
//! A decision never looks elsewhere. The server feeds every object it finds at start through
//! [`Snapshot::restore`], every accepted write (its own too, at once) through [`Snapshot::observe`], and every
//! accepted status write of a node through [`Snapshot::status_reported`]. From these the snapshot keeps, on the
//! monotonic clock: when each lease was renewed (NODE-03, NODE-11, NODE-26) and when each stamp that delays are
//! counted from was really written ([`Snapshot::since`]).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::controllers::{job, node_lifecycle};
use crate::ownership::Ownership;
use crate::scheduler::{Ledger, Profile};
use crate::time::{self, Now};
use crate::{conditions, json, pod, tolerations};

/// A stored object in Kubernetes' JSON form, shared, never changed in place.
pub type Object = Arc<Value>;

/// Namespace of the nodes' leases.
pub const LEASE_NAMESPACE: &str = "kube-node-lease";

/// An object's place among its resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// A key from its parts; `namespace` is empty for cluster-scoped objects.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of a stored object.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        Self::new(json::namespace(object), json::name(object))
    }
}

/// A stamp in whole seconds that some delay is counted from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// `lastTransitionTime` of a node's Ready condition (NODE-28).
    NodeReady(String),
    /// `timeAdded` of a NoExecute taint (NODE-08): node, key of the taint.
    NoExecute(String, String),
    /// `lastTransitionTime` of a pod's Ready condition (`minReadySeconds`).
    PodReady(Key),
    /// `lastUpdateTime` of a deployment's Progressing condition (`progressDeadlineSeconds`).
    Progress(Key),
    /// `startTime` of a Job (`activeDeadlineSeconds`).
    JobStarted(Key),
    /// `lastTransitionTime` of a Job's Complete or Failed condition (`ttlSecondsAfterFinished`).
    JobFinished(Key),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    stamp: Option<Timestamp>,
    at: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LeaseClock {
    counted_from: Duration,
    /// False while `counted_from` is a period of grace (start of the process, node made anew).
    renewed: bool,
}

/// Objects and instants. Cheap to clone: objects are shared.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    objects: BTreeMap<&'static str, BTreeMap<Key, Object>>,
    by_uid: BTreeMap<String, (&'static str, Key)>,
    /// The pods of each node, by `spec.nodeName`.
    by_node: BTreeMap<String, BTreeSet<Key>>,
    ownership: Ownership,
    /// Those that wait for a node, by the scheduler that is to find it, with their times of creation.
    waiting: BTreeMap<String, BTreeSet<(String, Key)>>,
    waiting_version: u64,
    /// Nodes that show signs of an outage.
    marked: BTreeSet<String>,
    /// Nodes on which something changed that may help a waiting pod.
    stirred: BTreeSet<String>,
    leases: BTreeMap<String, LeaseClock>,
    lease_seconds: BTreeMap<String, u64>,
    covered: BTreeMap<String, u64>,
    seen: BTreeMap<Mark, Seen>,
    write_latency: Duration,
    /// What schedulers read, kept as it changes.
    ledgers: Vec<Ledger>,
}

impl Snapshot {
    /// An empty snapshot of a store that may take so long from a decision to the write's acceptance.
    #[must_use]
    pub fn of_store_with_latency(write_latency: Duration) -> Self {
        Self { write_latency, ..Self::default() }
    }

    /// The object, if it exists. `namespace` is empty for cluster-scoped resources.
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<&Object> {
        self.at(resource, &Key::new(namespace, name))
    }

    /// The object under `key`, if it exists.
    #[must_use]
    pub fn at(&self, resource: &str, key: &Key) -> Option<&Object> {
        self.objects.get(resource)?.get(key)
    }

    /// All objects of a resource (by its plural name) in the order of their keys.
    pub fn list(&self, resource: &str) -> impl Iterator<Item = (&Key, &Object)> + use<'_> {
        self.objects.get(resource).into_iter().flatten()
    }

    /// The objects of a resource in one namespace, in the order of their names.
    pub fn list_in<'a>(
        &'a self,
        resource: &str,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
        let from = Key::new(namespace, "");
        self.objects
            .get(resource)
            .into_iter()
            .flat_map(move |objects| objects.range(from.clone()..))
            .take_while(move |(key, _)| key.namespace == namespace)
    }

    /// The plural names of the resources that hold any object.
    pub fn resources(&self) -> impl Iterator<Item = &'static str> + use<'_> {
        self.objects.iter().filter(|(_, objects)| !objects.is_empty()).map(|(resource, _)| *resource)
    }

    /// Where the object with this uid is, if it still exists.
    #[must_use]
    pub fn find_uid(&self, uid: &str) -> Option<&(&'static str, Key)> {
        self.by_uid.get(uid)
    }

    /// The pods whose `spec.nodeName` is `node`, in the order of their keys.
    pub fn pods_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
        let pods = self.objects.get("pods");
        let keys = self.by_node.get(node).into_iter().flatten();
        keys.filter_map(move |key| pods.and_then(|pods| pods.get_key_value(key)))
    }

    /// The pods that wait for a node which the scheduler of this name is to find, oldest first, with their times of creation.
    pub fn waiting_for(&self, scheduler: &str) -> impl Iterator<Item = &(String, Key)> + use<'_> {
        self.waiting.get(scheduler).into_iter().flatten()
    }

    /// Which pods belong to which workload, and which workloads something has happened to.
    #[must_use]
    pub fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// The pods whose controller has this uid, in the order of their keys.
    pub fn pods_of<'a>(&'a self, uid: &str) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
        let pods = self.objects.get("pods");
        self.ownership.pods_of(uid).filter_map(move |key| pods.and_then(|pods| pods.get_key_value(key)))
    }

    /// Another number whenever other pods wait.
    #[must_use]
    pub fn waiting_version(&self) -> u64 {
        self.waiting_version
    }

    /// The nodes on which something changed, since this was last asked, that may help a waiting pod: the node itself, a pod that
    /// left it or holds less, or what its report covers (SCHED-55).
    #[must_use]
    pub fn take_stirred(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.stirred)
    }

    /// Keeps the index of waiting pods.
    fn apply_waiting(&mut self, key: &Key, new: Option<&Value>) {
        let place = |pod: &Value| {
            let created = json::text(pod, &["metadata", "creationTimestamp"]).unwrap_or_default();
            (pod::scheduler_name(pod).to_owned(), (created.to_owned(), key.clone()))
        };
        let waits = |pod: &&Value| pod::waits_for_node(pod);
        let old = self.at("pods", key).map(AsRef::as_ref).filter(waits).map(place);
        let new = new.filter(waits).map(place);
        if old == new {
            return;
        }
        self.waiting_version += 1;
        if let Some((scheduler, place)) = old
            && let Some(waiting) = self.waiting.get_mut(&scheduler)
        {
            waiting.remove(&place);
            if waiting.is_empty() {
                self.waiting.remove(&scheduler);
            }
        }
        if let Some((scheduler, place)) = new {
            self.waiting.entry(scheduler).or_default().insert(place);
        }
    }

    /// Keeps what `profile` reads from now on, so that its attempts need not gather it.
    pub fn keep_ledger(&mut self, profile: &'static Profile) {
        if !self.ledgers.iter().any(|ledger| ledger.profile().name == profile.name) {
            self.ledgers.push(Ledger::of(profile, self));
        }
    }

    /// What `profile` reads: as it was kept, or gathered now.
    #[must_use]
    pub fn ledger(&self, profile: &'static Profile) -> Cow<'_, Ledger> {
        let kept = self.ledgers.iter().find(|ledger| ledger.profile().name == profile.name);
        kept.map_or_else(|| Cow::Owned(Ledger::of(profile, self)), Cow::Borrowed)
    }

    /// Lets the ledgers know of a change.
    fn enter(&mut self, resource: &str, key: &Key) {
        if self.ledgers.is_empty() || !matches!(resource, "nodes" | "pods") {
            return;
        }
        let mut ledgers = std::mem::take(&mut self.ledgers);
        let object = self.at(resource, key);
        let covered = object.and_then(|it| pod::node(it)).map_or(0, |node| self.status_covered(node));
        for ledger in &mut ledgers {
            match resource {
                "nodes" => ledger.node(&key.name, object),
                _ => ledger.pod(key, object, covered),
            }
        }
        self.ledgers = ledgers;
    }

    /// Lets the ledgers know that a node's report covers another version.
    fn enter_covered(&mut self, node: &str) {
        let mut ledgers = std::mem::take(&mut self.ledgers);
        for ledger in &mut ledgers {
            ledger.covers(node, self.status_covered(node), self.pods_on(node));
        }
        self.ledgers = ledgers;
    }

    /// Puts an object in its place, or takes it away, without any bookkeeping of instants: for tests and read-only copies.
    pub fn apply(&mut self, resource: &'static str, key: Key, object: Option<Object>) {
        let old = self.objects.get(resource).and_then(|objects| objects.get(&key));
        self.ownership.note(resource, &key, old.map(AsRef::as_ref), object.as_deref());
        if resource == "pods" {
            self.stir_by_pod(&key, object.as_deref());
            self.apply_node(&key, object.as_deref());
            self.apply_waiting(&key, object.as_deref());
        } else if resource == "nodes" {
            self.stirred.insert(key.name.clone());
            if object.as_deref().is_some_and(node_lifecycle::is_marked) {
                self.marked.insert(key.name.clone());
            } else {
                self.marked.remove(&key.name);
            }
        }
        let place = key.clone();
        let objects = self.objects.entry(resource).or_default();
        if let Some(old) = objects.get(&key) {
            self.by_uid.remove(json::uid(old));
        }
        match object {
            Some(object) => {
                if !json::uid(&object).is_empty() {
                    self.by_uid.insert(json::uid(&object).to_owned(), (resource, key.clone()));
                }
                objects.insert(key, object);
            }
            None => {
                objects.remove(&key);
            }
        }
        self.enter(resource, &place);
    }

    /// A pod that was bound and changes may hold less from now on. One that is bound just now takes.
    fn stir_by_pod(&mut self, key: &Key, new: Option<&Value>) {
        let Some(node) = self.at("pods", key).and_then(|old| pod::node(old)).map(str::to_owned) else {
            return;
        };
        let held = |pod: &Value| (pod::Phase::of(pod), pod::has_waiting_container(pod));
        let same = new.is_some_and(|new| {
            pod::node(new) == Some(&node) && self.at("pods", key).is_some_and(|old| held(old) == held(new))
        });
        if !same {
            self.stirred.insert(node);
        }
    }

    /// Keeps the index of pods by node.
    fn apply_node(&mut self, key: &Key, new: Option<&Value>) {
        let node = |pod: &Value| json::text(pod, &["spec", "nodeName"]).unwrap_or_default().to_owned();
        let (old, new) = (self.at("pods", key).map(|pod| node(pod)), new.map(node));
        if old == new {
            return;
        }
        if let Some(old) = old
            && let Some(keys) = self.by_node.get_mut(&old)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_node.remove(&old);
            }
        }
        if let Some(new) = new.filter(|new| !new.is_empty()) {
            self.by_node.entry(new).or_default().insert(key.clone());
        }
    }

    /// Takes in an object that was in the store when the process started. Each node has one full lease from here
    /// on (NODE-11); stamps are older than this instant, so their true instants stay unknown.
    pub fn restore(&mut self, resource: &'static str, key: Key, object: Object, now: &Now) {
        if resource == "nodes" {
            self.leases.insert(key.name.clone(), LeaseClock { counted_from: now.mono, renewed: false });
            for taint in tolerations::no_execute(&object).filter(|taint| taint.time_added.is_none()) {
                let mark = Mark::NoExecute(key.name.clone(), taint.key);
                self.seen.insert(mark, Seen { stamp: None, at: now.mono });
            }
        }
        self.note_lease_seconds(resource, &key, Some(&object));
        self.apply(resource, key, Some(object));
    }

    /// Takes in an accepted write (`None`: the object was removed) at the instant it was accepted.
    pub fn observe(&mut self, resource: &'static str, key: Key, object: Option<Object>, now: &Now) {
        let old = self.at(resource, &key).cloned();
        match resource {
            "nodes" => self.observe_node(&key.name, old.as_deref(), object.as_deref(), now),
            "leases" if key.namespace == LEASE_NAMESPACE => {
                self.observe_lease(&key, old.as_deref(), object.as_deref(), now);
            }
            "pods" => {
                let said = |pod: &Object| Said::condition(pod, "Ready");
                let (before, after) = (old.as_ref().and_then(said), object.as_ref().and_then(said));
                self.observe_condition(Mark::PodReady(key.clone()), before, after, now);
            }
            "deployments" => {
                let said = |it: &Object| Said::progress(it);
                let (before, after) = (old.as_ref().and_then(said), object.as_ref().and_then(said));
                self.observe_condition(Mark::Progress(key.clone()), before, after, now);
            }
            "jobs" => {
                let said = |job: &Object| Said::start(job);
                let (before, after) = (old.as_ref().and_then(said), object.as_ref().and_then(said));
                self.observe_condition(Mark::JobStarted(key.clone()), before, after, now);
                let said = |job: &Object| Said::end(job);
                let (before, after) = (old.as_ref().and_then(said), object.as_ref().and_then(said));
                self.observe_condition(Mark::JobFinished(key.clone()), before, after, now);
            }
            _ => {}
        }
        self.apply(resource, key, object);
    }

    /// Notes that a status write of this node was accepted when the store stood at `resource_version` (of the
    /// write itself, or of the store where the write changed nothing). Only writes that report figures count: those
    /// of the node or of whoever plays it, creation with a status included; never the control plane's own, never
    /// labels, taints or cordons (SCHED-22, SCHED-25, SCHED-26).
    pub fn status_reported(&mut self, node: &str, resource_version: u64) {
        let covered = self.covered.entry(node.to_owned()).or_default();
        if *covered < resource_version {
            *covered = resource_version;
            self.enter_covered(node);
            self.stirred.insert(node.to_owned());
        }
    }

    /// The resourceVersion up to which the node's last report covers what happened on it; 0 when it has not
    /// reported to this process (then every pod on it is subtracted, which errs to the safe side).
    #[must_use]
    pub fn status_covered(&self, node: &str) -> u64 {
        self.covered.get(node).copied().unwrap_or(0)
    }

    /// The instant that the node's lease is counted from: its last renewal, or the beginning of its period of
    /// grace (NODE-11, NODE-26).
    #[must_use]
    pub fn lease_counted_from(&self, node: &str) -> Option<Duration> {
        self.leases.get(node).map(|lease| lease.counted_from)
    }

    /// Whether [`Snapshot::lease_counted_from`] is a renewal that this process accepted for this very Node object.
    /// Only that proves life; a period of grace does not.
    #[must_use]
    pub fn lease_was_renewed(&self, node: &str) -> bool {
        self.leases.get(node).is_some_and(|lease| lease.renewed)
    }

    /// The nodes that show signs of an outage, or of one that is not cleared away yet, in the order of their names.
    pub fn marked_nodes(&self) -> impl Iterator<Item = &str> + use<'_> {
        self.marked.iter().map(String::as_str)
    }

    /// The nodes whose leases are not fresh: run out, where `duration` holds for one that says none, or in a period of grace.
    pub fn nodes_without_fresh_lease(
        &self,
        duration: Duration,
        now: Duration,
    ) -> impl Iterator<Item = &str> + use<'_> {
        let mut seconds = self.lease_seconds.iter().peekable();
        // Both are in the order of the names, so one walk along both finds each node's.
        let stale = self.leases.iter().filter(move |(name, lease)| {
            while seconds.next_if(|(of, _)| of < name).is_some() {}
            let own = seconds
                .peek()
                .filter(|(of, _)| of == name)
                .map(|(_, seconds)| Duration::from_secs(**seconds));
            !lease.renewed || now.saturating_sub(lease.counted_from) >= own.unwrap_or(duration)
        });
        stale.map(|(name, _)| name.as_str())
    }

    /// `leaseDurationSeconds` of the node's lease as last seen (a deleted lease keeps it), if it ever had one.
    #[must_use]
    pub fn lease_duration(&self, node: &str) -> Option<Duration> {
        self.lease_seconds.get(node).copied().map(Duration::from_secs)
    }

    /// How long ago the write was accepted that put `stamp` there; never more than the truth, so that a delay
    /// counted from it never ends early.
    ///
    /// Exact where this process saw that write. Otherwise (after a restart) `exact`, the instant that a controller
    /// kept beside the stamp, where it is the same second; otherwise the stamp is taken for the end of its second.
    #[must_use]
    pub fn since(
        &self,
        mark: &Mark,
        stamp: Option<Timestamp>,
        exact: Option<Timestamp>,
        now: &Now,
    ) -> Option<Duration> {
        if let Some(seen) = self.seen.get(mark)
            && seen.stamp == stamp
        {
            return Some(now.mono.saturating_sub(seen.at));
        }
        let stamp = stamp?;
        let end = match exact {
            Some(exact) if time::floor(exact) == stamp => {
                add(exact, KEPT_INSTANT_MARGIN + self.write_latency)
            }
            _ => add(stamp, WHOLE_SECOND),
        };
        Some(time::elapsed(now.wall, end))
    }

    fn observe_node(&mut self, name: &str, old: Option<&Value>, new: Option<&Value>, now: &Now) {
        let same_node = matches!((old, new), (Some(old), Some(new)) if json::uid(old) == json::uid(new));
        if !same_node {
            self.leases.remove(name);
            self.covered.remove(name);
            self.enter_covered(name);
        }
        if new.is_some() && !same_node {
            self.leases.insert(name.to_owned(), LeaseClock { counted_from: now.mono, renewed: false });
        }
        let old = old.filter(|_| same_node);
        let said = |node: &Value| Said::condition(node, "Ready");
        self.observe_condition(Mark::NodeReady(name.to_owned()), old.and_then(said), new.and_then(said), now);
        let taints = |node: Option<&Value>| -> BTreeMap<String, Option<Timestamp>> {
            node.into_iter().flat_map(tolerations::no_execute).map(|t| (t.key, t.time_added)).collect()
        };
        let (before, after) = (taints(old), taints(new));
        for key in before.keys().filter(|key| !after.contains_key(*key)) {
            self.seen.remove(&Mark::NoExecute(name.to_owned(), key.clone()));
        }
        for (key, stamp) in after {
            if before.get(&key) != Some(&stamp) {
                self.see(Mark::NoExecute(name.to_owned(), key), stamp, now);
            }
        }
    }

    fn observe_lease(&mut self, key: &Key, old: Option<&Value>, new: Option<&Value>, now: &Now) {
        let renew_time = |lease| json::text(lease, &["spec", "renewTime"]);
        let renewed = new.is_some_and(|new| {
            renew_time(new).is_some() && old.is_none_or(|old| renew_time(old) != renew_time(new))
        });
        if renewed {
            self.leases.insert(key.name.clone(), LeaseClock { counted_from: now.mono, renewed: true });
        }
        self.note_lease_seconds("leases", key, new);
    }

    fn note_lease_seconds(&mut self, resource: &str, key: &Key, lease: Option<&Value>) {
        let (true, Some(lease)) = (resource == "leases" && key.namespace == LEASE_NAMESPACE, lease) else {
            return;
        };
        match json::int(lease, &["spec", "leaseDurationSeconds"]).and_then(|s| u64::try_from(s).ok()) {
            Some(seconds) if seconds > 0 => self.lease_seconds.insert(key.name.clone(), seconds),
            _ => self.lease_seconds.remove(&key.name),
        };
    }

    fn observe_condition(&mut self, mark: Mark, before: Option<Said>, after: Option<Said>, now: &Now) {
        let Some(after) = after else {
            self.seen.remove(&mark);
            return;
        };
        let same_stamp = before.as_ref().is_some_and(|before| before.stamp == after.stamp);
        if before.as_ref() != Some(&after) && (!same_stamp || is_told_now(after.stamp, now)) {
            self.see(mark, Some(after.stamp), now);
        }
    }

    /// Keeps the instant of a write, unless its stamp tells of another time than now (a client may set any).
    fn see(&mut self, mark: Mark, stamp: Option<Timestamp>, now: &Now) {
        if stamp.is_none_or(|stamp| is_told_now(stamp, now)) {
            self.seen.insert(mark, Seen { stamp, at: now.mono });
        } else {
            self.seen.remove(&mark);
        }
    }
}

/// A stamp's true instant lies in the second that it begins.
const WHOLE_SECOND: Duration = Duration::from_secs(1);
/// The longest time from taking a stamp to the write's acceptance that is still taken for one act.
const STAMP_TO_WRITE: Duration = Duration::from_secs(1);
/// A kept instant is taken just before its write is accepted; this much, and what the store may take, is added to be
/// never early after a restart.
const KEPT_INSTANT_MARGIN: Duration = Duration::from_millis(20);

fn add(instant: Timestamp, span: Duration) -> Timestamp {
    instant.checked_add(span).unwrap_or(instant)
}

/// Whether a write that is accepted now may have taken its stamp just before.
fn is_told_now(stamp: Timestamp, now: &Now) -> bool {
    stamp <= now.wall && time::elapsed(now.wall, stamp) < WHOLE_SECOND + STAMP_TO_WRITE
}

/// A stamp with what was said at it: two writes within one second have the same stamp, but say different things.
#[derive(PartialEq, Eq)]
struct Said {
    what: Value,
    stamp: Timestamp,
}

impl Said {
    /// A condition's status and stamp.
    fn condition(object: &Value, kind: &str) -> Option<Self> {
        let condition = conditions::get(object, kind)?;
        let stamp = time::parse(json::text(condition, &["lastTransitionTime"])?)?;
        Some(Self { what: condition.get("status").cloned().unwrap_or_default(), stamp })
    }

    /// The stamp of a Job's start.
    fn start(job: &Value) -> Option<Self> {
        let stamp = time::parse(json::text(job, &["status", "startTime"])?)?;
        Some(Self { what: Value::Null, stamp })
    }

    /// The stamp of a Job's end, and how it ended.
    fn end(job: &Value) -> Option<Self> {
        let condition = job::finished(job)?;
        let stamp = time::parse(json::text(condition, &["lastTransitionTime"])?)?;
        Some(Self { what: condition.get("type").cloned().unwrap_or_default(), stamp })
    }

    /// The stamp of a deployment's last progress, and its whole status, of which some figure moved.
    fn progress(deployment: &Value) -> Option<Self> {
        let condition = conditions::get(deployment, "Progressing")?;
        let stamp = time::parse(json::text(condition, &["lastUpdateTime"])?)?;
        Some(Self { what: deployment.get("status").cloned().unwrap_or_default(), stamp })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            let metadata =
                json!({"name": name, "namespace": namespace, "uid": format!("{namespace}-{name}")});
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
}
