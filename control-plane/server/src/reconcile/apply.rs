//! Applying decisions: writes in order, each with its precondition, and then the events.

use std::time::Duration;

use control_plane_api::decode::{self, Expected};
use control_plane_api::delete::DeleteOptions;
use control_plane_api::status::Reason;
use control_plane_api::{ApiError, kinds};
use control_plane_core::{Decision, Now, Snapshot, Write};
use serde_json::{Value, json};

use crate::auth::User;
use crate::observe::Outcome;
use crate::service::{Door, Service};
use crate::store::{Expect, Key, StoreError};

/// So often a decision is made anew within one turn; after that the next turn may do better.
const ATTEMPTS: usize = 5;

/// The controller that finds nodes for pods.
pub const SCHEDULER: &str = "scheduler";

/// Why a write was not made.
enum NotApplied {
    /// The world is no longer as the decision saw it.
    Stale,
    /// It was refused for a reason that will not go away by itself.
    Refused(ApiError),
}

impl From<ApiError> for NotApplied {
    fn from(error: ApiError) -> Self {
        match error.reason {
            Reason::Conflict | Reason::NotFound | Reason::AlreadyExists => Self::Stale,
            _ => Self::Refused(error),
        }
    }
}

impl From<StoreError> for NotApplied {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Exists | StoreError::Conflict { .. } => Self::Stale,
            StoreError::Compacted { .. }
            | StoreError::Unavailable(_)
            | StoreError::Uncertain(_)
            | StoreError::Deposed => Self::Refused(ApiError::internal(&error.to_string())),
        }
    }
}

/// What became of looking at one key.
#[derive(Debug, Clone, Copy)]
pub struct Settled {
    /// Whether the last decision was carried out: one that was refused, or was stale time and again, is still to be made.
    pub holds: bool,
    /// When to look again, even when nothing changes until then.
    pub again: Option<Duration>,
}

/// Decides and applies until a decision holds. Answers when to look again.
pub async fn settle(
    service: &Service,
    what: &str,
    decide: impl Fn(&Snapshot, &Now) -> Decision,
) -> Option<Duration> {
    try_settle(service, what, decide).await.again
}

/// As [`settle`], for those who need to know whether it did.
pub async fn try_settle(
    service: &Service,
    what: &str,
    mut decide: impl FnMut(&Snapshot, &Now) -> Decision,
) -> Settled {
    for _ in 0..ATTEMPTS {
        let began = service.clock.mono();
        service.vitals.moved(began);
        let decision = {
            let reflector = service.fresh();
            decide(reflector.snapshot(), &service.now())
        };
        if !decision.writes.is_empty() {
            tracing::info!(what, because = decision.because, writes = decision.writes.len());
        }
        let applied = apply(service, &decision.writes).await;
        let took = service.clock.mono().saturating_sub(began);
        let outcome = match &applied {
            Ok(()) if decision.is_idle() => Outcome::Idle,
            Ok(()) => Outcome::Applied,
            Err(NotApplied::Stale) => Outcome::Stale,
            Err(NotApplied::Refused(_)) => Outcome::Refused,
        };
        service.metrics.decided(what, outcome, decision.writes.len(), took);
        if what == SCHEDULER {
            note_attempt(service, &decision, outcome, took);
        }
        match applied {
            Ok(()) => {
                service.record(&decision.events).await;
                return Settled { holds: true, again: decision.look_again };
            }
            Err(NotApplied::Stale) => {}
            Err(NotApplied::Refused(error)) => {
                tracing::warn!(
                    what,
                    because = decision.because,
                    error = error.message,
                    "a decision was refused"
                );
                return Settled { holds: false, again: decision.look_again };
            }
        }
    }
    Settled { holds: false, again: None }
}

/// So many are looked at under one lock: what is asked of the snapshot meanwhile waits no longer than that takes.
const AT_A_LOOK: usize = 256;

/// Settles each of `keys`, of which none waits for another. The many from which nothing follows cost one look. Answers when to look at which again.
pub async fn settle_each<K: Sync>(
    service: &Service,
    what: &str,
    keys: &[K],
    decide: impl Fn(&Snapshot, &K, &Now) -> Decision,
) -> Vec<(usize, Duration)> {
    let (mut again, mut numbers) = (Vec::new(), 0..);
    for some in keys.chunks(AT_A_LOOK) {
        let began = service.clock.mono();
        service.vitals.moved(began);
        let looks: Vec<Option<Option<Duration>>> = {
            let reflector = service.fresh();
            let (snapshot, now) = (reflector.snapshot(), service.now());
            let looks = some.iter().map(|key| decide(snapshot, key, &now));
            looks.map(|decision| decision.is_idle().then_some(decision.look_again)).collect()
        };
        let idle = looks.iter().filter(|look| look.is_some()).count();
        service.metrics.looked_at(what, idle, service.clock.mono().saturating_sub(began));
        // Together, so that a store which commits in groups takes what many nodes' end brings in few steps.
        let dues = some.iter().zip(looks).map(async |(key, look)| match look {
            Some(due) => due,
            None => settle(service, what, |snapshot, now| decide(snapshot, key, now)).await,
        });
        let dues = futures_util::future::join_all(dues).await;
        again.extend(dues.into_iter().zip(&mut numbers).filter_map(|(due, number)| Some((number, due?))));
    }
    again
}

/// Counts an attempt to find a node, as Kubernetes does: a pod that had no room is unschedulable.
fn note_attempt(service: &Service, decision: &Decision, outcome: Outcome, took: Duration) {
    let bound = decision.writes.iter().any(|write| matches!(write, Write::Bind { .. }));
    match outcome {
        Outcome::Idle if decision.look_again.is_none() => {}
        Outcome::Idle | Outcome::Applied => {
            service.metrics.scheduled(if bound { "scheduled" } else { "unschedulable" }, took);
        }
        Outcome::Stale | Outcome::Refused => service.metrics.scheduled("error", took),
    }
}

async fn apply(service: &Service, writes: &[Write]) -> Result<(), NotApplied> {
    for write in writes {
        one(service, write).await?;
    }
    Ok(())
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

async fn one(service: &Service, write: &Write) -> Result<(), NotApplied> {
    let user = User::master("system:control-plane");
    let unknown = || NotApplied::Refused(ApiError::resource_not_found());
    match write {
        Write::Create { resource, object } => {
            let kind = kinds::by_resource(resource).ok_or_else(unknown)?;
            let expected = Expected::from(kind);
            let object = decode::canonical(expected, object.clone(), service.config.dialect)?;
            let namespace = text(&object, "/metadata/namespace").to_owned();
            let namespace = kind.namespaced.then_some(namespace.as_str());
            service.create(&user, kind, namespace, object, false).await?;
        }
        Write::Update { resource, subresource, object } => {
            let kind = kinds::by_resource(resource).ok_or_else(unknown)?;
            let namespace = kind.namespaced.then(|| text(object, "/metadata/namespace"));
            let name = text(object, "/metadata/name");
            let door = Door { kind, subresource: *subresource, namespace, name };
            service.update(&user, door, object.clone(), false).await?;
        }
        Write::Replace { resource, object } => {
            let kind = kinds::by_resource(resource).ok_or_else(unknown)?;
            let object = decode::canonical(Expected::from(kind), object.clone(), service.config.dialect)?;
            let revision =
                text(&object, "/metadata/resourceVersion").parse().map_err(|_| NotApplied::Stale)?;
            let key =
                Key::new(resource, text(&object, "/metadata/namespace"), text(&object, "/metadata/name"));
            let written = service.store.put(key, object, Expect::Revision(revision)).await;
            service.take_in();
            written?;
        }
        Write::Delete { resource, namespace, name, uid, resource_version, grace_seconds } => {
            let kind = kinds::by_resource(resource).ok_or_else(unknown)?;
            let options = json!({
                "preconditions": {"uid": uid, "resourceVersion": resource_version},
                "gracePeriodSeconds": grace_seconds,
            });
            let options = DeleteOptions::parse(options.to_string().as_bytes(), &[])?;
            let namespace = kind.namespaced.then_some(namespace.as_str());
            service.remove(&user, kind, namespace, name, &options).await?;
        }
        Write::Bind { namespace, pod, uid, resource_version, node } => {
            let key = Key::new("pods", namespace, pod);
            service.bind_decided(key, uid, resource_version.as_deref(), node).await?;
        }
        Write::Evict { namespace, name, uid, resource_version, message } => {
            let key = Key::new("pods", namespace, name);
            service.evict(key, uid, resource_version.as_deref(), message).await?;
        }
    }
    Ok(())
}
