//! One trial at a time on a cluster, whoever runs it and from wherever.
//!
//! Two trials on one cluster share its scheduler: a pod of the one may be bound to a node of the other, and both would
//! judge what they did not do. So the lock is the cluster's, not a board's: a Lease in the namespace `rigor-lock`, which a
//! file on one machine could not be. It is given back by deleting that namespace while the Lease is still held: until it
//! is gone nobody else can hold a Lease in it, and afterwards nothing is left of it. Who ends without giving it back is
//! taken to be gone when the Lease was not renewed for its duration, by the clock of who waits.

use super::connection::Connection;
use crate::clock::Clock;
use crate::world::{ApiAnswer, Infra};
use rigor_trace::Micros;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// The namespace that holds the Lease and nothing else.
pub(crate) const LOCK_NAMESPACE: &str = "rigor-lock";

const NAMESPACE_PATH: &str = "/api/v1/namespaces/rigor-lock";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/rigor-lock/leases";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/rigor-lock/leases/rigor.dev-cluster";

/// Who does not renew for so long is gone.
const DURATION: Duration = Duration::from_secs(20);

/// How often it is renewed.
const RENEWAL: Duration = Duration::from_secs(4);

/// How often it is tried while somebody else holds it.
const LOOK: Duration = Duration::from_millis(500);

/// The cluster's lock, held; given back by [`Held::release`].
pub(crate) struct Held {
    lost: Arc<AtomicBool>,
    renewing: JoinHandle<()>,
    namespace_uid: String,
}

impl Held {
    /// Whether somebody else may hold it by now.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// Gives it back.
    pub(crate) async fn release(self, connection: &Connection) {
        self.renewing.abort();
        if self.is_lost() {
            return;
        }
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": self.namespace_uid}});
        connection.own("DELETE", NAMESPACE_PATH, Some(&options)).await;
        // Whoever comes next would have to wait for its end anyway; a run that is over has left nothing.
        let clock = Clock::start();
        while clock.now().as_duration() < DURATION
            && connection.own("GET", NAMESPACE_PATH, None).await.status == 200
        {
            Clock::pause(Duration::from_millis(100)).await;
        }
    }
}

fn lease(holder: &str, clock: &Clock, version: Option<&str>) -> Value {
    let mut lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "rigor.dev-cluster", "namespace": LOCK_NAMESPACE},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": DURATION.as_secs(),
            "renewTime": clock.stamp(),
        },
    });
    if let Some(version) = version {
        lease["metadata"]["resourceVersion"] = version.into();
    }
    lease
}

fn version(answer: &ApiAnswer) -> Option<String> {
    Some(answer.body.as_ref()?["metadata"]["resourceVersion"].as_str()?.to_owned())
}

/// Takes the lock as `holder`, waiting until it is free; says once on standard error who has it.
pub(crate) async fn acquire(
    connection: &Arc<Connection>,
    runtime: &Handle,
    holder: &str,
    limit: Duration,
) -> Result<Held, Infra> {
    let clock = Clock::start();
    let mut said = false;
    // The version of somebody else's Lease, and since when it has not changed.
    let mut seen: Option<(String, Micros)> = None;
    while clock.now().as_duration() < limit {
        let namespace = connection.own("GET", NAMESPACE_PATH, None).await;
        let uid =
            namespace.body.as_ref().and_then(|body| body["metadata"]["uid"].as_str()).map(str::to_owned);
        let ending =
            namespace.body.as_ref().is_some_and(|body| !body["metadata"]["deletionTimestamp"].is_null());
        match (namespace.status, uid) {
            (200, Some(uid)) if !ending => {
                let made = connection.own("POST", LEASES, Some(&lease(holder, &clock, None))).await;
                let taken = if made.status == 201 {
                    version(&made)
                } else {
                    let there = connection.own("GET", LEASE, None).await;
                    let now = clock.now();
                    let known = version(&there);
                    let idle = match (&seen, &known) {
                        (Some((then, since)), Some(now_version)) if then == now_version => now.since(*since),
                        _ => Duration::ZERO,
                    };
                    if let (Some(known), Duration::ZERO) = (&known, idle) {
                        seen = Some((known.clone(), now));
                    }
                    if !said && known.is_some() {
                        said = true;
                        let by = there.body.as_ref().map(|body| body["spec"]["holderIdentity"].clone());
                        eprintln!(
                            "rigor: waiting for the cluster, which {} uses",
                            by.as_ref().and_then(Value::as_str).unwrap_or("somebody")
                        );
                    }
                    match known {
                        Some(known) if idle >= DURATION => {
                            let claim = lease(holder, &clock, Some(&known));
                            version(&connection.own("PUT", LEASE, Some(&claim)).await)
                        }
                        _ => None,
                    }
                };
                // A namespace that began to end meanwhile takes the Lease with it.
                if let Some(version) = taken
                    && connection.own("GET", NAMESPACE_PATH, None).await.body.is_some_and(|body| {
                        body["metadata"]["deletionTimestamp"].is_null()
                            && body["metadata"]["uid"] == uid.as_str()
                    })
                {
                    return Ok(hold(connection, runtime, holder, version, uid));
                }
            }
            (404, _) => {
                let wanted =
                    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LOCK_NAMESPACE}});
                let made = connection.own("POST", "/api/v1/namespaces", Some(&wanted)).await;
                if matches!(made.status, 201 | 409) {
                    continue;
                }
                if made.status == 403 {
                    return Err(refused(&made));
                }
            }
            (401 | 403, _) => return Err(refused(&namespace)),
            _ => {}
        }
        Clock::pause(LOOK).await;
    }
    Err(Infra::transient(format!("the cluster was not free within {} s", limit.as_secs())))
}

fn refused(answer: &ApiAnswer) -> Infra {
    Infra::lasting(
        format!("the cluster's lock cannot be taken: {}", answer.text),
        format!("allow this user to create and delete namespaces, and leases in {LOCK_NAMESPACE}"),
    )
}

fn hold(
    connection: &Arc<Connection>,
    runtime: &Handle,
    holder: &str,
    mut version_now: String,
    namespace_uid: String,
) -> Held {
    let lost = Arc::new(AtomicBool::new(false));
    let (theirs, connection, holder) = (lost.clone(), connection.clone(), holder.to_owned());
    let renewing = runtime.spawn(async move {
        let clock = Clock::start();
        let mut last = clock.now();
        loop {
            Clock::pause(RENEWAL).await;
            let sent = clock.now();
            let renewed = connection
                .own("PUT", LEASE, Some(&lease(&holder, &Clock::start(), Some(&version_now))))
                .await;
            match (renewed.status, version(&renewed)) {
                (200, Some(version)) => {
                    version_now = version;
                    last = sent;
                }
                // An answer that was lost may have been a renewal: what the Lease says counts.
                (409, _) => {
                    let there = connection.own("GET", LEASE, None).await;
                    let ours =
                        there.body.as_ref().is_some_and(|body| body["spec"]["holderIdentity"] == *holder);
                    match version(&there) {
                        Some(version) if ours => version_now = version,
                        _ => return theirs.store(true, Ordering::SeqCst),
                    }
                }
                (404, _) => return theirs.store(true, Ordering::SeqCst),
                _ if clock.now().since(last) > DURATION => return theirs.store(true, Ordering::SeqCst),
                _ => {}
            }
        }
    });
    Held { lost, renewing, namespace_uid }
}
