//! The state that decisions read: objects as the reflector knows them, and a few instants that no object carries.
//!
//! A decision never looks elsewhere. The server feeds every object it finds at start through
//! [`Snapshot::restore`], every accepted write (its own too, at once) through [`Snapshot::observe`], and every
//! accepted status write of a node through [`Snapshot::status_reported`]. From these the snapshot keeps, on the
//! monotonic clock: when each lease was renewed (NODE-03, NODE-11, NODE-26) and when each stamp that delays are
//! counted from was really written ([`Snapshot::since`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::time::{self, Now};
use crate::{conditions, json, tolerations};

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
    leases: BTreeMap<String, LeaseClock>,
    lease_seconds: BTreeMap<String, u64>,
    covered: BTreeMap<String, u64>,
    seen: BTreeMap<Mark, Seen>,
}

impl Snapshot {
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
        self.list("pods").filter(move |(_, pod)| json::text(pod, &["spec", "nodeName"]) == Some(node))
    }

    /// Puts an object in its place, or takes it away, without any bookkeeping: for tests and read-only copies.
    pub fn apply(&mut self, resource: &'static str, key: Key, object: Option<Object>) {
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
                let said = |pod: &Object| Said::of(pod, "Ready", "lastTransitionTime");
                let (before, after) = (old.as_ref().and_then(said), object.as_ref().and_then(said));
                self.observe_condition(Mark::PodReady(key.clone()), before, after, now);
            }
            "deployments" => {
                let said = |it: &Object| Said::of(it, "Progressing", "lastUpdateTime");
                let (before, after) = (old.as_ref().and_then(said), object.as_ref().and_then(said));
                self.observe_condition(Mark::Progress(key.clone()), before, after, now);
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
        *covered = (*covered).max(resource_version);
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
            Some(exact) if time::floor(exact) == stamp => add(exact, KEPT_INSTANT_MARGIN),
            _ => add(stamp, WHOLE_SECOND),
        };
        Some(time::elapsed(now.wall, end))
    }

    fn observe_node(&mut self, name: &str, old: Option<&Value>, new: Option<&Value>, now: &Now) {
        let same_node = matches!((old, new), (Some(old), Some(new)) if json::uid(old) == json::uid(new));
        if !same_node {
            self.leases.remove(name);
            self.covered.remove(name);
        }
        if new.is_some() && !same_node {
            self.leases.insert(name.to_owned(), LeaseClock { counted_from: now.mono, renewed: false });
        }
        let old = old.filter(|_| same_node);
        let said = |node: &Value| Said::of(node, "Ready", "lastTransitionTime");
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
        match after {
            None => {
                self.seen.remove(&mark);
            }
            Some(after) if before.as_ref() != Some(&after) => self.see(mark, Some(after.stamp), now),
            Some(_) => {}
        }
    }

    /// Keeps the instant of a write, unless its stamp tells of another time than now (a client may set any).
    fn see(&mut self, mark: Mark, stamp: Option<Timestamp>, now: &Now) {
        let told_now = stamp.is_none_or(|stamp| {
            stamp <= now.wall && time::elapsed(now.wall, stamp) < WHOLE_SECOND + STAMP_TO_WRITE
        });
        if told_now {
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
/// A kept instant is taken just before its write is accepted; this much is added to be never early after a restart.
const KEPT_INSTANT_MARGIN: Duration = Duration::from_millis(20);

fn add(instant: Timestamp, span: Duration) -> Timestamp {
    instant.checked_add(span).unwrap_or(instant)
}

/// A condition's status with the stamp that is of interest: two changes within one second differ in the status.
#[derive(PartialEq, Eq)]
struct Said {
    status: Option<String>,
    stamp: Timestamp,
}

impl Said {
    fn of(object: &Value, kind: &str, field: &str) -> Option<Self> {
        let condition = conditions::get(object, kind)?;
        let stamp = time::parse(json::text(condition, &[field])?)?;
        Some(Self { status: json::text(condition, &["status"]).map(str::to_owned), stamp })
    }
}
