//! What objects say of instants that delays are counted from.

use jiff::Timestamp;
use serde_json::Value;

use crate::controllers::job;
use crate::{conditions, json, time};

/// A stamp with what was said at it: two writes within one second have the same stamp, but say different things.
#[derive(PartialEq, Eq)]
pub(super) struct Said {
    what: Value,
    pub(super) stamp: Timestamp,
}

impl Said {
    /// A condition's status and stamp.
    pub(super) fn condition(object: &Value, kind: &str) -> Option<Self> {
        let condition = conditions::get(object, kind)?;
        let stamp = time::parse(json::text(condition, &["lastTransitionTime"])?)?;
        Some(Self { what: condition.get("status").cloned().unwrap_or_default(), stamp })
    }

    /// The stamp of a Job's start.
    pub(super) fn start(job: &Value) -> Option<Self> {
        let stamp = time::parse(json::text(job, &["status", "startTime"])?)?;
        Some(Self { what: Value::Null, stamp })
    }

    /// The stamp of a Job's end, and how it ended.
    pub(super) fn end(job: &Value) -> Option<Self> {
        let condition = job::finished(job)?;
        let stamp = time::parse(json::text(condition, &["lastTransitionTime"])?)?;
        Some(Self { what: condition.get("type").cloned().unwrap_or_default(), stamp })
    }

    /// The stamp of a deployment's last progress, and its whole status, of which some figure moved.
    pub(super) fn progress(deployment: &Value) -> Option<Self> {
        let condition = conditions::get(deployment, "Progressing")?;
        let stamp = time::parse(json::text(condition, &["lastUpdateTime"])?)?;
        Some(Self { what: deployment.get("status").cloned().unwrap_or_default(), stamp })
    }
}
