//! The candidate: takes the lease when it may, renews it while it leads, gives it up at a clean end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use serde_json::{Value, json};

use super::Leadership;
use super::record::{self, Seen, Step};
use crate::clock::{Clock, SystemClock, within};
use crate::store::{EtcdStore, Expect, Key, Store, StoreError};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "control-plane";

/// How leaders are elected; the defaults are Kubernetes'.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Who does not lead waits so long after the last renewal that it saw.
    pub lease_duration: Duration,
    /// A leader that could not renew for so long stops.
    pub renew_deadline: Duration,
    /// How often it renews, and how often taking is tried again that failed.
    pub retry_period: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl Timing {
    /// Refuses times by which two could lead at once.
    ///
    /// # Errors
    /// A message naming the flags.
    pub fn check(&self) -> Result<(), &'static str> {
        let Self { lease_duration, renew_deadline, retry_period } = *self;
        if lease_duration > renew_deadline
            && renew_deadline > retry_period
            && lease_duration.subsec_nanos() == 0
        {
            return Ok(());
        }
        Err(
            "--leader-elect-lease-duration (whole seconds) must be longer than --leader-elect-renew-deadline, and that longer \
             than --leader-elect-retry-period",
        )
    }
}

/// One control plane that would lead.
#[derive(Debug)]
pub struct Candidate {
    store: Arc<EtcdStore>,
    leadership: Arc<Leadership>,
    clock: Arc<SystemClock>,
    timing: Timing,
    me: String,
    uid: String,
    seen: Seen,
}

impl Candidate {
    /// A candidate called `me`, a name that no other process has; `uid` is the lease's, if it makes it.
    pub fn new(
        store: Arc<EtcdStore>,
        clock: Arc<SystemClock>,
        timing: Timing,
        me: String,
        uid: String,
    ) -> Self {
        let shared = Arc::clone(&clock) as Arc<dyn Clock>;
        let leadership = Arc::new(Leadership::new(shared, timing.renew_deadline));
        Self { store, leadership, clock, timing, me, uid, seen: Seen::default() }
    }

    /// What it holds.
    pub fn leadership(&self) -> &Arc<Leadership> {
        &self.leadership
    }

    fn key() -> Key {
        Key::new("leases", NAMESPACE, NAME)
    }

    /// Takes the lease if it is free, renews it if this is its holder. Answers when to come again.
    pub async fn turn(&mut self) -> Duration {
        let now = self.clock.mono();
        let lease = self.store.local(&Self::key());
        self.seen.look(lease.as_ref().map(|lease| &lease.object["spec"]), now);
        let leads = self.leadership.term();
        let own =
            lease.as_ref().is_some_and(|lease| lease.object["spec"]["holderIdentity"] == self.me.as_str());
        if leads.is_some() && !own {
            tracing::warn!("another control plane has taken the lease");
            self.leadership.end();
        }
        match self.seen.step(&self.me, now, self.timing.lease_duration) {
            Step::Take => {}
            Step::Wait(until) => return until,
        }
        let expect = lease.as_ref().map_or(Expect::Absent, |lease| Expect::Revision(lease.revision));
        let before = lease.as_ref().map(|lease| &lease.object["spec"]);
        let spec = record::taken(before, &self.me, self.timing.lease_duration, self.clock.wall());
        let object = self.lease(lease.as_ref().map(|lease| lease.object.as_ref()), spec);
        let outcome = if leads.is_some() && own {
            self.store.put(Self::key(), object, expect).await.map(|_| self.leadership.renew(now))
        } else {
            let begun = self.store.begin_term(Self::key(), object, expect).await;
            begun.map(|term| {
                tracing::info!(term, me = self.me, "leads from now on");
                self.leadership.begin(term, now);
            })
        };
        match outcome {
            Ok(()) => now + self.timing.retry_period,
            // Somebody was faster, or touched the lease: what it says now decides.
            Err(StoreError::Conflict { .. } | StoreError::Exists) => now,
            Err(error) => {
                tracing::warn!(%error, "the lease was not renewed");
                self.clock.mono() + self.timing.retry_period
            }
        }
    }

    /// The lease with this `spec`.
    fn lease(&self, before: Option<&Value>, spec: Value) -> Value {
        match before {
            Some(before) => {
                let mut lease = before.clone();
                lease["spec"] = spec;
                lease
            }
            None => json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {
                    "name": NAME,
                    "namespace": NAMESPACE,
                    "uid": self.uid,
                    "creationTimestamp": self.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                },
                "spec": spec,
            }),
        }
    }

    /// Goes on until `end` completes.
    pub async fn run(&mut self, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        loop {
            let mut changes = self.store.signal().listen();
            let due = self.turn().await;
            // Whoever leads has nothing to learn from changes; whoever waits has.
            let leads = self.leadership.term().is_some();
            let clock = Arc::clone(&self.clock);
            let due = std::pin::pin!(async move {
                let due = std::pin::pin!(clock.sleep_until(due));
                if leads {
                    due.await;
                } else {
                    select(due, std::pin::pin!(changes.raised())).await;
                }
            });
            if let Either::Left(_) = select(end.as_mut(), due).await {
                return;
            }
        }
    }

    /// Gives up the lease, so that another may begin at once; call it when the last decision is written.
    pub async fn release(&mut self) {
        if self.leadership.term().is_none() {
            return;
        }
        self.leadership.end();
        let Some(lease) = self.store.local(&Self::key()) else { return };
        if lease.object["spec"]["holderIdentity"] != self.me.as_str() {
            return;
        }
        let spec = record::released(&lease.object["spec"], self.clock.wall());
        let object = self.lease(Some(&lease.object), spec);
        let written = self.store.put(Self::key(), object, Expect::Revision(lease.revision));
        match within(self.timing.retry_period, written).await {
            Some(Ok(_)) => tracing::info!("the lease was given up"),
            Some(Err(error)) => tracing::warn!(%error, "the lease was not given up"),
            None => tracing::warn!("the lease was not given up: etcd takes too long"),
        }
    }
}
