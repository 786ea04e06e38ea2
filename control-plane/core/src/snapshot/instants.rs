//! When stamps in whole seconds, which delays are counted from, were really written.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::said::Said;
use super::{Key, Object};
use crate::time::{self, Now};
use crate::tolerations;

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

/// The instants of stamps.
#[derive(Debug, Clone, Default)]
pub(super) struct Instants {
    seen: BTreeMap<Mark, Seen>,
    write_latency: Duration,
}

impl Instants {
    /// For a store that may take so long from a decision to the write's acceptance.
    pub(super) fn of_store_with_latency(write_latency: Duration) -> Self {
        Self { seen: BTreeMap::new(), write_latency }
    }

    /// See [`super::Snapshot::since`].
    pub(super) fn since(
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

    /// Takes in a node that was in the store when the process started: taints without a stamp count from here.
    pub(super) fn restore_node(&mut self, name: &str, node: &Value, now: &Now) {
        for taint in tolerations::no_execute(node).filter(|taint| taint.time_added.is_none()) {
            let mark = Mark::NoExecute(name.to_owned(), taint.key);
            self.seen.insert(mark, Seen { stamp: None, at: now.mono });
        }
    }

    /// Takes in an accepted write of an object that is no node.
    pub(super) fn observe(
        &mut self,
        resource: &str,
        key: &Key,
        old: Option<&Object>,
        new: Option<&Object>,
        now: &Now,
    ) {
        let mut observe = |mark: fn(Key) -> Mark, said: fn(&Value) -> Option<Said>| {
            let said = |object: &Object| said(object);
            self.observe_condition(mark(key.clone()), old.and_then(said), new.and_then(said), now);
        };
        match resource {
            "pods" => observe(Mark::PodReady, |pod| Said::condition(pod, "Ready")),
            "deployments" => observe(Mark::Progress, Said::progress),
            "jobs" => {
                observe(Mark::JobStarted, Said::start);
                observe(Mark::JobFinished, Said::end);
            }
            _ => {}
        }
    }

    /// Takes in an accepted write of a node; `old` is the same node before.
    pub(super) fn observe_node(&mut self, name: &str, old: Option<&Value>, new: Option<&Value>, now: &Now) {
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
