//! The pods of a Deployment, as a pass sees them.

use std::cmp::Reverse;
use std::time::Duration;

use super::TEMPLATE_HASH;
use crate::controllers::children;
use crate::json;
use crate::pod::{self, Phase};
use crate::snapshot::{Key, Object, Snapshot};
use crate::time::Now;

/// A pod that the Deployment controls.
#[derive(Debug, Clone)]
pub(super) struct Owned<'a> {
    pub(super) key: &'a Key,
    pub(super) pod: &'a Object,
    /// Made from the present template.
    pub(super) is_current: bool,
    pub(super) is_ready: bool,
    /// Ready for at least `minReadySeconds`.
    pub(super) is_available: bool,
    /// When it becomes available if it stays ready.
    pub(super) available_in: Option<Duration>,
}

impl<'a> Owned<'a> {
    /// Views a pod; `min_ready` is `minReadySeconds`.
    pub(super) fn of(
        snapshot: &Snapshot,
        key: &'a Key,
        pod: &'a Object,
        hash: &str,
        min_ready: Duration,
        now: &Now,
    ) -> Self {
        let ready_for = children::ready_for(snapshot, key, pod, min_ready, now);
        Self {
            key,
            pod,
            is_current: json::text(pod, &["metadata", "labels", TEMPLATE_HASH]) == Some(hash),
            is_ready: ready_for.is_some(),
            is_available: ready_for.is_some_and(|ready_for| ready_for >= min_ready),
            available_in: ready_for
                .map(|ready_for| min_ready.saturating_sub(ready_for))
                .filter(|d| !d.is_zero()),
        }
    }

    /// Sorts pods so that those that are least missed come first: not ready before ready, then old before current
    /// (DEPL-02), then unbound before bound, not running before running, young before old.
    pub(super) fn by_worth(pods: &mut [Self]) {
        pods.sort_by_cached_key(|it| {
            (
                it.is_ready,
                it.is_current,
                pod::node(it.pod).is_some(),
                Phase::of(it.pod),
                Reverse(
                    json::text(it.pod, &["metadata", "creationTimestamp"]).unwrap_or_default().to_owned(),
                ),
                it.key.clone(),
            )
        });
    }
}
