//! One pass: what to make, what to delete, what to replace.

use std::time::Duration;

use serde_json::Value;

use super::owned::Owned;
use super::{DeploymentConfig, status, template};
use crate::controllers::children;
use crate::decision::{Decision, EventKind, EventRecord, ObjectRef, Write};
use crate::selectors::LabelSelector;
use crate::snapshot::{Key, Object, Snapshot};
use crate::time::Now;
use crate::{json, pod};

/// What a Deployment asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) replicas: usize,
    /// `floor(maxUnavailable)`, 25 % by default; 0 under Recreate (DEPL-12).
    pub(super) max_unavailable: usize,
    pub(super) recreate: bool,
    pub(super) paused: bool,
    pub(super) min_ready: Duration,
}

impl Wanted {
    pub(super) fn by(deployment: &Value) -> Self {
        let count = |path: &[&str]| json::int(deployment, path).and_then(|n| usize::try_from(n).ok());
        let replicas = count(&["spec", "replicas"]).unwrap_or(1);
        let recreate = json::text(deployment, &["spec", "strategy", "type"]) == Some("Recreate");
        let bound = json::get(deployment, &["spec", "strategy", "rollingUpdate", "maxUnavailable"]);
        let min_ready = count(&["spec", "minReadySeconds"]).unwrap_or(0);
        Self {
            replicas,
            max_unavailable: if recreate { 0 } else { floor_of(bound, replicas) },
            recreate,
            paused: json::is_true(deployment, &["spec", "paused"]),
            min_ready: Duration::from_secs(u64::try_from(min_ready).unwrap_or(u64::MAX)),
        }
    }
}

/// A count or a percentage of `replicas`, rounded down; 25 % where there is none that can be read.
fn floor_of(bound: Option<&Value>, replicas: usize) -> usize {
    let percent = |p: usize| replicas.saturating_mul(p) / 100;
    match bound {
        Some(Value::Number(number)) => number.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
        Some(Value::String(text)) => {
            text.strip_suffix('%').and_then(|p| p.parse().ok()).map_or_else(|| percent(25), percent)
        }
        _ => percent(25),
    }
}

/// One pass over one Deployment. Asks to be looked at again W later while something is left to do, and at the
/// instants at which a pod becomes available or the progress deadline passes.
#[must_use]
pub fn decide(snapshot: &Snapshot, config: &DeploymentConfig, key: &Key, now: &Now) -> Decision {
    let Some(deployment) = snapshot.at("deployments", key) else {
        return Decision::nothing("the deployment is gone");
    };
    if json::is_terminating(deployment) {
        return Decision::nothing("the deployment is being deleted");
    }
    let selector = json::get(deployment, &["spec", "selector"]).unwrap_or(&Value::Null);
    let Ok(selector) = LabelSelector::from_object(selector) else {
        return Decision::nothing("its selector cannot be read");
    };
    let hash = template::hash(json::get(deployment, &["spec", "template"]).unwrap_or(&Value::Null));
    let wanted = Wanted::by(deployment);
    let (owned, strays): (Vec<_>, Vec<_>) =
        controlled(snapshot, deployment).partition(|(_, pod)| selector.matches_object(pod));
    let mut active: Vec<_> = owned
        .iter()
        .filter(|(_, pod)| pod::is_active(pod))
        .map(|(key, pod)| Owned::of(snapshot, key, pod, &hash, wanted.min_ready, now))
        .collect();
    Owned::by_worth(&mut active);

    let status = status::write(snapshot, key, deployment, &wanted, &active, now);
    let mut plan = Plan { deployment, hash: &hash, writes: status.writes, made: 0, deleted: Vec::new() };
    for (_, pod) in strays {
        plan.writes.push(children::release(pod, deployment));
    }
    plan.trim_finished(&owned, wanted.replicas);
    let left_to_do = plan.replicas(&wanted, &active, &owned);

    let available_in = active.iter().filter_map(|it| it.available_in).min();
    let next_pass = left_to_do.then_some(config.period);
    let look_again = [available_in, status.deadline_in, next_pass].into_iter().flatten().min();
    Decision {
        events: plan.events(),
        because: format!("{} of {} pods stand, {} ready", active.len(), wanted.replicas, status.ready),
        writes: plan.writes,
        look_again: look_again.map(|span| now.mono + span),
    }
}

/// The pods in the Deployment's namespace whose controller it is. A pod without an owner is none of them, whatever
/// its labels, nor is one of another controller (DEPL-11, DEPL-13).
fn controlled<'a>(
    snapshot: &'a Snapshot,
    deployment: &'a Value,
) -> impl Iterator<Item = (&'a Key, &'a Object)> {
    let namespace = json::namespace(deployment);
    snapshot.pods_of(json::uid(deployment)).filter(move |(key, _)| key.namespace == namespace)
}

struct Plan<'a> {
    deployment: &'a Value,
    hash: &'a str,
    writes: Vec<Write>,
    made: usize,
    deleted: Vec<String>,
}

impl Plan<'_> {
    /// Makes, deletes and replaces pods; returns whether another pass has to follow.
    fn replicas(&mut self, wanted: &Wanted, active: &[Owned<'_>], owned: &[(&Key, &Object)]) -> bool {
        let stale = active.iter().filter(|it| !it.is_current).count();
        let old_remains = owned.iter().any(|(_, pod)| {
            json::text(pod, &["metadata", "labels", super::TEMPLATE_HASH]) != Some(self.hash)
                && !pod::Phase::of(pod).is_finished()
        });
        if wanted.recreate && !wanted.paused && old_remains {
            // old ones go first, all of them; their going brings the next pass
            for it in active.iter().filter(|it| !it.is_current) {
                self.delete(it.pod);
            }
            return true;
        }
        if active.len() > wanted.replicas {
            for it in &active[..active.len() - wanted.replicas] {
                self.delete(it.pod);
            }
            return stale > 0;
        }
        for _ in active.len()..wanted.replicas {
            self.make();
        }
        if stale == 0 || wanted.paused {
            return false;
        }
        if active.len() == wanted.replicas {
            self.replace_one(wanted, active);
        }
        true
    }

    /// Replaces one pod of an old template, if enough others are available: never more than
    /// `max(1, floor(maxUnavailable))` are missing (DEPL-04). One that is not available is missing already.
    fn replace_one(&mut self, wanted: &Wanted, active: &[Owned<'_>]) {
        let available = active.iter().filter(|it| it.is_available).count();
        let least = wanted.replicas.saturating_sub(wanted.max_unavailable.max(1));
        let Some(stale) = active.iter().find(|it| !it.is_current) else { return };
        if !stale.is_available || available > least {
            self.delete(stale.pod);
            self.make();
        }
    }

    /// Of the finished pods the youngest stay, as many as there are replicas, so that one can see what happened.
    fn trim_finished(&mut self, owned: &[(&Key, &Object)], replicas: usize) {
        let mut finished: Vec<_> = owned
            .iter()
            .filter(|(_, pod)| pod::Phase::of(pod).is_finished() && !pod::is_terminating(pod))
            .map(|(key, pod)| (json::text(pod, &["metadata", "creationTimestamp"]), *key, *pod))
            .collect();
        finished.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        let surplus = finished.len().saturating_sub(replicas.max(1));
        for (_, _, pod) in &finished[..surplus] {
            self.delete(pod);
        }
    }

    fn make(&mut self) {
        self.made += 1;
        self.writes
            .push(Write::Create { resource: "pods", object: template::pod(self.deployment, self.hash) });
    }

    fn delete(&mut self, pod: &Value) {
        self.deleted.push(json::name(pod).to_owned());
        self.writes.push(children::delete(pod, None));
    }

    fn events(&self) -> Vec<EventRecord> {
        let event = |reason, message| EventRecord {
            regarding: ObjectRef::to("apps/v1", "Deployment", self.deployment),
            kind: EventKind::Normal,
            reason,
            message,
            component: "deployment-controller",
        };
        let made = match self.made {
            0 => None,
            1 => Some("Created 1 pod".to_owned()),
            n => Some(format!("Created {n} pods")),
        };
        let made = made.map(|message| event("SuccessfulCreate", message));
        let deleted =
            self.deleted.iter().map(|name| event("SuccessfulDelete", format!("Deleted pod: {name}")));
        made.into_iter().chain(deleted).collect()
    }
}
