//! The Progressing condition and its deadline (DEPL-06): NewReplicaSetAvailable when complete, ReplicaSetUpdated while
//! not, ProgressDeadlineExceeded after `progressDeadlineSeconds` without progress, DeploymentPaused while paused.

use std::time::Duration;

use serde_json::Value;

use super::pass::Wanted;
use super::status::Counts;
use crate::conditions::{self, Saying};
use crate::json;
use crate::snapshot::{Key, Mark, Snapshot};
use crate::time::{self, Now};

const PROGRESSING: &str = "Progressing";

/// Kubernetes' value for "no deadline".
const NO_DEADLINE: i64 = 2_147_483_647;

/// Writes the condition into `told`, which has the new figures; returns how long until the deadline.
pub(super) fn write(
    snapshot: &Snapshot,
    key: &Key,
    before: &Value,
    told: &mut Value,
    wanted: &Wanted,
    counts: Counts,
    now: &Now,
) -> Option<Duration> {
    let name = json::name(before).to_owned();
    let old_reason = conditions::get(before, PROGRESSING).and_then(|c| json::text(c, &["reason"]));
    let mut say = |status, reason, message: &str| {
        conditions::set(told, Saying { kind: PROGRESSING, status, reason, message }, now)
    };
    if wanted.paused {
        if old_reason != Some("ProgressDeadlineExceeded")
            && say("Unknown", "DeploymentPaused", "Deployment is paused")
        {
            touch(told, PROGRESSING, now);
        }
        return None;
    }
    if counts.are_complete(wanted.replicas) {
        let message = format!("Deployment \"{name}\" has successfully progressed.");
        if say("True", "NewReplicaSetAvailable", &message) {
            touch(told, PROGRESSING, now);
        }
        return None;
    }
    let deadline = json::int(before, &["spec", "progressDeadlineSeconds"]).filter(|s| *s < NO_DEADLINE);
    let deadline = deadline.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    let observed = json::int(before, &["status", "observedGeneration"])
        == json::int(before, &["metadata", "generation"]);
    let moved_on = !observed || has_progressed(Counts::written(before), counts);
    let progressing = matches!(old_reason, Some("ReplicaSetUpdated" | "ProgressDeadlineExceeded"));
    if moved_on || !progressing {
        say("True", "ReplicaSetUpdated", &format!("Deployment \"{name}\" is progressing."));
        touch(told, PROGRESSING, now);
        return deadline;
    }
    let stamp = conditions::get(before, PROGRESSING)
        .and_then(|c| json::text(c, &["lastUpdateTime"]))
        .and_then(time::parse);
    let still_for = snapshot.since(&Mark::Progress(key.clone()), stamp, None, now).unwrap_or(Duration::ZERO);
    match deadline {
        Some(deadline) if old_reason == Some("ReplicaSetUpdated") && still_for >= deadline => {
            let message = format!("Deployment \"{name}\" has timed out progressing.");
            if say("False", "ProgressDeadlineExceeded", &message) {
                touch(told, PROGRESSING, now);
            }
            None
        }
        Some(deadline) if old_reason == Some("ReplicaSetUpdated") => Some(deadline - still_for),
        Some(_) | None => None,
    }
}

/// More pods of the present template, ready or available, or fewer of old ones.
fn has_progressed(before: Counts, after: Counts) -> bool {
    let old = |counts: Counts| counts.replicas.saturating_sub(counts.updated);
    after.updated > before.updated
        || after.ready > before.ready
        || after.available > before.available
        || old(after) < old(before)
}

/// Sets the condition's `lastUpdateTime`.
pub(super) fn touch(deployment: &mut Value, kind: &str, now: &Now) {
    let status = json::object_mut(deployment, &["status"]);
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        for condition in conditions.iter_mut().filter(|c| json::text(c, &["type"]) == Some(kind)) {
            json::object_mut(condition, &[]).insert("lastUpdateTime".to_owned(), now.stamp().into());
        }
    }
}
