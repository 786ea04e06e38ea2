//! How a Job ends: why, in which conditions, and what becomes of it afterwards.

use std::time::Duration;

use serde_json::Value;

use super::census::{Census, Wanted};
use crate::conditions::{self, Saying};
use crate::decision::{Decision, EventKind, Write};
use crate::json;
use crate::snapshot::{Key, Mark, Snapshot};
use crate::time::{self, Now};

const SUCCESS: &str = "SuccessCriteriaMet";
const FAILURE: &str = "FailureTarget";
pub(super) const SUSPENDED: &str = "Suspended";

/// Why a Job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Enough pods have succeeded.
    Completed,
    /// More pods have failed than `backoffLimit` allows (JOB-02).
    BackoffLimitExceeded,
    /// `activeDeadlineSeconds` are over.
    DeadlineExceeded,
}

impl End {
    /// What was decided in an earlier pass.
    pub(super) fn decided(job: &Value) -> Option<Self> {
        if conditions::is_true(job, SUCCESS) {
            return Some(Self::Completed);
        }
        let failure = conditions::get(job, FAILURE).filter(|_| conditions::is_true(job, FAILURE))?;
        Some(if json::text(failure, &["reason"]) == Some(Self::DeadlineExceeded.reason()) {
            Self::DeadlineExceeded
        } else {
            Self::BackoffLimitExceeded
        })
    }

    /// What the pods and the time decide now. Success is decided only when no pod is active.
    pub(super) fn of(wanted: &Wanted, census: &Census<'_>, deadline: Option<Duration>) -> Option<Self> {
        let succeeded = census.succeeded(wanted);
        let enough = match wanted.completions {
            Some(completions) => succeeded >= completions,
            None => succeeded > 0,
        };
        if census.failed() > wanted.backoff_limit {
            Some(Self::BackoffLimitExceeded)
        } else if deadline == Some(Duration::ZERO) {
            Some(Self::DeadlineExceeded)
        } else {
            (enough && census.active.is_empty()).then_some(Self::Completed)
        }
    }

    /// The conditions: the first as soon as it is decided, the second when no pod is left to be counted or to end.
    pub(super) fn conditions(self) -> [&'static str; 2] {
        match self {
            Self::Completed => [SUCCESS, "Complete"],
            Self::BackoffLimitExceeded | Self::DeadlineExceeded => [FAILURE, "Failed"],
        }
    }

    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Completed => "CompletionsReached",
            Self::BackoffLimitExceeded => "BackoffLimitExceeded",
            Self::DeadlineExceeded => "DeadlineExceeded",
        }
    }

    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Completed => "Reached expected number of succeeded pods",
            Self::BackoffLimitExceeded => "Job has reached the specified backoff limit",
            Self::DeadlineExceeded => "Job was active longer than specified deadline",
        }
    }

    /// The event that tells of it.
    pub(super) fn event(self) -> (EventKind, &'static str, &'static str) {
        match self {
            Self::Completed => (EventKind::Normal, "Completed", "Job completed"),
            Self::BackoffLimitExceeded | Self::DeadlineExceeded => {
                (EventKind::Warning, self.reason(), self.message())
            }
        }
    }
}

/// Sets a Job's condition, which was probed now. Returns whether anything changed.
pub(super) fn say(job: &mut Value, saying: Saying<'_>, now: &Now) -> bool {
    let kind = saying.kind.to_owned();
    let changed = conditions::set(job, saying, now);
    if changed {
        for condition in conditions::list_mut(job).iter_mut() {
            if json::text(condition, &["type"]) == Some(kind.as_str()) {
                json::object_mut(condition, &[]).insert("lastProbeTime".to_owned(), now.stamp().into());
            }
        }
    }
    changed
}

/// How long until `activeDeadlineSeconds` are over; none while the Job is suspended (one that resumes starts anew) or has
/// none.
pub(super) fn deadline_in(snapshot: &Snapshot, key: &Key, job: &Value, now: &Now) -> Option<Duration> {
    let deadline = json::int(job, &["spec", "activeDeadlineSeconds"]).and_then(|s| u64::try_from(s).ok())?;
    let started = json::text(job, &["status", "startTime"]).and_then(time::parse)?;
    let since = snapshot.since(&Mark::JobStarted(key.clone()), Some(started), None, now)?;
    let suspended = json::is_true(job, &["spec", "suspend"]) || conditions::is_true(job, SUSPENDED);
    (!suspended).then(|| Duration::from_secs(deadline).saturating_sub(since))
}

/// The condition that says that a Job is finished, and since when.
pub(crate) fn finished(job: &Value) -> Option<&Value> {
    let kind = ["Complete", "Failed"].into_iter().find(|kind| conditions::is_true(job, kind))?;
    conditions::get(job, kind)
}

/// The deletion of a finished Job whose `ttlSecondsAfterFinished` are over, or the instant at which they will be.
pub(super) fn ttl(snapshot: &Snapshot, key: &Key, job: &Value, now: &Now) -> Decision {
    let because = "the job is finished";
    let ttl = json::int(job, &["spec", "ttlSecondsAfterFinished"]).and_then(|s| u64::try_from(s).ok());
    let finished = finished(job).and_then(|condition| json::text(condition, &["lastTransitionTime"]));
    let finished = finished.and_then(time::parse);
    let (Some(ttl), Some(finished)) = (ttl.map(Duration::from_secs), finished) else {
        return Decision::nothing(because);
    };
    let since = snapshot.since(&Mark::JobFinished(key.clone()), Some(finished), None, now);
    let since = since.unwrap_or(Duration::ZERO);
    if since < ttl {
        return Decision { look_again: Some(now.mono + (ttl - since)), ..Decision::nothing(because) };
    }
    let write = Write::Delete {
        resource: "jobs",
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: Some(json::uid(job).to_owned()),
        resource_version: json::resource_version(job),
        grace_seconds: None,
    };
    Decision { writes: vec![write], ..Decision::nothing("its time after the end is over") }
}
