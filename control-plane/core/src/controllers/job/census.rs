//! The pods of a Job, told apart by what they mean to it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{indexes, is_tracked};
use crate::json;
use crate::pod::{self, Phase};
use crate::snapshot::Object;

/// What a Job asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) parallelism: usize,
    /// None: the first success is the last pod that is made.
    pub(super) completions: Option<usize>,
    pub(super) indexed: bool,
    pub(super) suspended: bool,
    pub(super) backoff_limit: usize,
    /// A pod that is on its way out is replaced only when it has ended.
    only_ended: bool,
}

impl Wanted {
    pub(super) fn by(job: &Value) -> Self {
        let count = |field| json::int(job, &["spec", field]).and_then(|n| usize::try_from(n).ok());
        Self {
            parallelism: count("parallelism").unwrap_or(1),
            completions: count("completions"),
            indexed: json::text(job, &["spec", "completionMode"]) == Some("Indexed"),
            suspended: json::is_true(job, &["spec", "suspend"]),
            backoff_limit: count("backoffLimit").unwrap_or(6),
            only_ended: json::text(job, &["spec", "podReplacementPolicy"]) == Some("Failed"),
        }
    }
}

/// The pods, and the counts that follow from them.
#[derive(Debug, Default)]
pub(super) struct Census<'a> {
    /// Neither finished nor terminating.
    pub(super) active: Vec<&'a Object>,
    pub(super) ready: usize,
    /// On their way out, and not finished.
    pub(super) terminating: usize,
    /// Those of them for which no replacement may be made yet.
    pub(super) leaving: usize,
    /// uids that are noted and whose pods still have the finalizer.
    pub(super) noted_succeeded: Vec<String>,
    pub(super) noted_failed: Vec<String>,
    /// The figures of the status, with those that are noted and have lost their finalizer.
    pub(super) counted_succeeded: usize,
    pub(super) counted_failed: usize,
    /// Of an Indexed Job: the indexes that have succeeded.
    pub(super) succeeded_indexes: BTreeSet<usize>,
    /// Pods whose finalizer can go once the status has been written.
    pub(super) to_untrack: Vec<&'a Object>,
}

impl<'a> Census<'a> {
    pub(super) fn of(job: &Value, wanted: &Wanted, pods: &[&'a Object]) -> Self {
        let figure =
            |field| json::int(job, &["status", field]).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let tracked: BTreeSet<&str> =
            pods.iter().filter(|pod| is_tracked(pod)).map(|pod| json::uid(pod)).collect();
        let mut census = Self::default();
        let noted = |field| {
            json::list(job, &["status", "uncountedTerminatedPods", field]).iter().filter_map(Value::as_str)
        };
        let (still, gone): (Vec<_>, Vec<_>) = noted("succeeded").partition(|uid| tracked.contains(uid));
        census.counted_succeeded = figure("succeeded") + gone.len();
        census.noted_succeeded = still.into_iter().map(str::to_owned).collect();
        let (still, gone): (Vec<_>, Vec<_>) = noted("failed").partition(|uid| tracked.contains(uid));
        census.counted_failed = figure("failed") + gone.len();
        census.noted_failed = still.into_iter().map(str::to_owned).collect();
        if wanted.indexed {
            let completed = json::text(job, &["status", "completedIndexes"]).unwrap_or_default();
            census.succeeded_indexes = indexes::parse(completed, wanted.completions.unwrap_or(0));
        }
        for pod in pods {
            census.take(pod, wanted);
        }
        census
    }

    /// How many pods have succeeded.
    pub(super) fn succeeded(&self, wanted: &Wanted) -> usize {
        if wanted.indexed {
            self.succeeded_indexes.len()
        } else {
            self.counted_succeeded + self.noted_succeeded.len()
        }
    }

    /// How many pods have failed.
    pub(super) fn failed(&self) -> usize {
        self.counted_failed + self.noted_failed.len()
    }

    /// Whether every pod that ended is in the figures.
    pub(super) fn is_counted(&self) -> bool {
        self.noted_succeeded.is_empty() && self.noted_failed.is_empty() && self.to_untrack.is_empty()
    }

    fn take(&mut self, pod: &'a Object, wanted: &Wanted) {
        let (phase, going) = (Phase::of(pod), pod::is_terminating(pod));
        if pod::is_active(pod) {
            self.active.push(pod);
            self.ready += usize::from(pod::is_ready(pod));
        }
        let is_terminating = going && !phase.is_finished();
        self.terminating += usize::from(is_terminating);
        if !is_tracked(pod) {
            return;
        }
        let uid = json::uid(pod);
        // A pod that was deleted counts as failed, since it may never get to say so; under podReplacementPolicy Failed
        // only when its node has let go of it.
        let ended = json::int(pod, &["metadata", "deletionGracePeriodSeconds"]) == Some(0);
        let has_failed = phase == Phase::Failed || is_terminating && (!wanted.only_ended || ended);
        self.leaving += usize::from(is_terminating && !has_failed);
        let is_noted = |noted: &[String]| noted.iter().any(|it| it == uid);
        if is_noted(&self.noted_succeeded) || is_noted(&self.noted_failed) {
            self.to_untrack.push(pod);
        } else if phase == Phase::Succeeded {
            if !wanted.indexed {
                self.noted_succeeded.push(uid.to_owned());
            } else if let Some(index) = indexes::of(pod, wanted.completions.unwrap_or(0)) {
                self.succeeded_indexes.insert(index);
            }
            self.to_untrack.push(pod);
        } else if has_failed {
            // A pod of an index that is asked for no more is not missed.
            if !wanted.indexed || indexes::of(pod, wanted.completions.unwrap_or(0)).is_some() {
                self.noted_failed.push(uid.to_owned());
            }
            self.to_untrack.push(pod);
        }
    }
}
