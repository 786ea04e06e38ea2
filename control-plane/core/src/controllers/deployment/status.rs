//! The status that follows from the pods of a pass (DEPL-05, DEPL-06, DEPL-12).

use std::time::Duration;

use serde_json::{Map, Value};

use super::owned::Owned;
use super::pass::Wanted;
use super::progress;
use crate::conditions::{self, Saying};
use crate::decision::Write;
use crate::json;
use crate::snapshot::{Key, Snapshot};
use crate::time::Now;

/// What of a status a pass needs to know.
pub(super) struct Status {
    /// The write of the status, if it changes. It comes first among the writes of a pass: a pass that looked at an
    /// old version of the Deployment fails there, and touches no pod.
    pub(super) writes: Vec<Write>,
    pub(super) ready: usize,
    /// How long until the progress deadline, while there is one to be kept.
    pub(super) deadline_in: Option<Duration>,
}

/// How many pods stand, and how well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) replicas: usize,
    pub(super) updated: usize,
    pub(super) ready: usize,
    pub(super) available: usize,
}

impl Counts {
    fn of(active: &[Owned<'_>]) -> Self {
        let count = |which: fn(&Owned<'_>) -> bool| active.iter().filter(|it| which(it)).count();
        Self {
            replicas: active.len(),
            updated: count(|it| it.is_current),
            ready: count(|it| it.is_ready),
            available: count(|it| it.is_available),
        }
    }

    /// What the status that is written now says; absent figures are 0.
    pub(super) fn written(deployment: &Value) -> Self {
        let figure = |name| {
            json::int(deployment, &["status", name]).and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
        };
        Self {
            replicas: figure("replicas"),
            updated: figure("updatedReplicas"),
            ready: figure("readyReplicas"),
            available: figure("availableReplicas"),
        }
    }

    /// Whether every pod is of the present template and available, and there are as many as asked for.
    pub(super) fn are_complete(self, replicas: usize) -> bool {
        self.replicas == replicas && self.updated == replicas && self.available == replicas
    }
}

pub(super) fn write(
    snapshot: &Snapshot,
    key: &Key,
    deployment: &Value,
    wanted: &Wanted,
    active: &[Owned<'_>],
    now: &Now,
) -> Status {
    let counts = Counts::of(active);
    let mut told = deployment.clone();
    let status = json::object_mut(&mut told, &["status"]);
    figures(status, wanted, counts);
    if let Some(generation) = json::int(deployment, &["metadata", "generation"]) {
        status.insert("observedGeneration".to_owned(), generation.into());
    }
    let enough = counts.available >= wanted.replicas.saturating_sub(wanted.max_unavailable);
    let (status, reason, message) = if enough {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let changed = conditions::set(&mut told, Saying { kind: "Available", status, reason, message }, now);
    if changed {
        progress::touch(&mut told, "Available", now);
    }
    let deadline_in = progress::write(snapshot, key, deployment, &mut told, wanted, counts, now);
    let writes = if told == *deployment {
        Vec::new()
    } else {
        vec![Write::Update { resource: "deployments", subresource: Some("status"), object: told }]
    };
    Status { writes, ready: counts.ready, deadline_in }
}

fn figures(status: &mut Map<String, Value>, wanted: &Wanted, counts: Counts) {
    let figures = [
        ("replicas", counts.replicas),
        ("updatedReplicas", counts.updated),
        ("readyReplicas", counts.ready),
        ("availableReplicas", counts.available),
        ("unavailableReplicas", wanted.replicas.saturating_sub(counts.available)),
    ];
    for (name, figure) in figures {
        if figure == 0 {
            status.remove(name);
        } else {
            status.insert(name.to_owned(), figure.into());
        }
    }
}
