//! The verbs on objects, below HTTP: what a request and a controller do alike.
//!
//! Everything that writes goes through here: admission, strategy, the store with its preconditions, and then the snapshot, which
//! knows of a write before its client does. No function here waits for anything but the store and the scheduling lock.

mod authenticate;
mod authorize;
mod bind;
mod create;
mod read;
mod remove;
mod update;

pub use self::read::Page;
pub use self::update::{Door, Written, absent, show};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use control_plane_api::strategy::Context;
use control_plane_api::{ApiError, Kind, kinds};
use control_plane_core::scheduler::{Assumed, KUBE32, Profile, SchedulerConfig, UPSTREAM};
use control_plane_core::{EventRecord, Now};
use serde_json::Value;

use crate::admission;
use crate::api::Watches;
use crate::auth::accounts::Issuer;
use crate::auth::rbac::Policy;
use crate::auth::{Credentials, Secrets, Tokens};
use crate::clock::Clock;
use crate::config::{Config, Controller, SchedulerProfile};
use crate::leadership::Leadership;
use crate::observe::audit::Audit;
use crate::observe::{Metrics, Vitals};
use crate::random::Random;
use crate::reconcile::{Reflector, recorder};
use crate::store::{ComputedEndpoints, Expect, Key, Signal, Store, StoreError, is_computed, is_exempt};

/// The schedulerName of pods that say nothing.
const DEFAULT_SCHEDULER: &str = "default-scheduler";
/// So often a write is tried again that lost a race for its object.
const ATTEMPTS: usize = 64;

/// The policy, and the version of the roles and bindings that it was made of.
type Compiled = (u64, Arc<Policy>);

/// What handlers and controllers share. Clones share everything.
#[derive(Clone)]
pub struct Service {
    /// The flags.
    pub config: Config,
    /// Where objects are.
    pub store: Arc<dyn Store>,
    /// The same objects, for what only a leader may write.
    decisions: Arc<dyn Store>,
    /// What is computed of the same objects, where it is.
    computed: Option<Arc<ComputedEndpoints>>,
    /// Whether this process leads, where several share the store.
    leadership: Option<Arc<Leadership>>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Uids and generated names.
    pub random: Arc<Random>,
    /// Ids of requests; a source of its own, so that reading changes no uid.
    pub audit: Arc<Random>,
    /// Who may come in.
    pub tokens: Tokens,
    /// Issues and reads the tokens of service accounts.
    pub issuer: Option<Arc<Issuer>>,
    /// Where the secrets of boards' tokens come from.
    pub secrets: Arc<Secrets>,
    /// The boards that have a client certificate of this control plane's own authority.
    pub certified: Arc<BTreeSet<String>>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Signs of life, for health checks.
    pub vitals: Arc<Vitals>,
    /// The audit log, once there is one.
    pub audit_log: Arc<OnceLock<Audit>>,
    /// The open watches.
    pub watches: Arc<Watches>,
    /// Which scheduler profile serves which pods.
    pub scheduler: SchedulerConfig,
    /// Held from looking for a node to the write that binds, so that no two bindings share what only one can have (SCHED-56).
    pub scheduling: Arc<tokio::sync::Mutex<()>>,
    /// Held from choosing a service's address to the write that takes it.
    allocating: Arc<tokio::sync::Mutex<()>>,
    /// Bindings inside creations whose writes are on their way (SCHED-56).
    assumed: Arc<Mutex<Assumed>>,
    /// Events of creations that were answered already; the next turn of the controllers records them.
    told: Arc<Mutex<Vec<EventRecord>>>,
    /// Raised when there are such events.
    pub telling: Arc<Signal>,
    reflector: Arc<Mutex<Reflector>>,
    policy: Arc<Mutex<Option<Compiled>>>,
    retries: Arc<Mutex<BTreeMap<control_plane_core::Key, Duration>>>,
}

impl Service {
    /// Takes up a store whose objects the reflector has loaded.
    pub fn new(
        config: Config,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        seed: u64,
        credentials: Credentials,
        mut reflector: Reflector,
        (metrics, vitals): (Arc<Metrics>, Arc<Vitals>),
    ) -> Self {
        let random = Arc::new(Random::new(seed, store.revision()));
        let mut profiles: BTreeMap<_, _> =
            config.scheduler_profiles.iter().map(|(name, chosen)| (name.clone(), profile(*chosen))).collect();
        profiles.insert(DEFAULT_SCHEDULER.to_owned(), profile(config.default_scheduler_profile));
        let scheduler = SchedulerConfig { profiles, retry_period: config.reconcile_interval };
        reflector.keep_ledgers(&scheduler);
        Self {
            config,
            decisions: Arc::clone(&store),
            computed: None,
            leadership: None,
            store,
            clock,
            random,
            audit: Arc::new(Random::new(!seed, 0)),
            tokens: credentials.tokens,
            issuer: credentials.issuer.map(Arc::new),
            secrets: Arc::new(credentials.secrets),
            certified: Arc::new(credentials.certified),
            metrics,
            vitals,
            audit_log: Arc::default(),
            watches: Arc::default(),
            scheduler,
            scheduling: Arc::default(),
            allocating: Arc::default(),
            assumed: Arc::default(),
            told: Arc::default(),
            telling: Arc::default(),
            reflector: Arc::new(Mutex::new(reflector)),
            policy: Arc::default(),
            retries: Arc::default(),
        }
    }

    /// This service where several control planes share its store: it decides only while it leads, and writes what it decides
    /// through `decisions`.
    pub fn elected(self, leadership: Arc<Leadership>, decisions: Arc<dyn Store>) -> Self {
        Self { leadership: Some(leadership), decisions, ..self }
    }

    /// This service with Endpoints and EndpointSlices that are computed (EP-01).
    pub fn computing(self, computed: ComputedEndpoints) -> Self {
        Self { computed: Some(Arc::new(computed)), ..self }
    }

    /// Whether this object is computed, so that nobody writes it (EP-01). A name that is not known yet is empty.
    pub fn computes(&self, resource: &str, namespace: Option<&str>, name: &str) -> bool {
        self.computed.is_some() && is_computed(resource) && !is_exempt(namespace.unwrap_or_default(), name)
    }

    /// Where objects of this resource are read: in the store, or in what is computed from it, which is then up to date.
    pub async fn source(&self, resource: &str) -> Arc<dyn Store> {
        match &self.computed {
            Some(computed) if is_computed(resource) => {
                self.settle_computed().await;
                Arc::<ComputedEndpoints>::clone(computed)
            }
            Some(_) | None => Arc::clone(&self.store),
        }
    }

    /// Computes what follows from what was written, before the store forgets it.
    pub async fn settle_computed(&self) {
        if let Some(computed) = &self.computed
            && let Err(error) = computed.settle().await
        {
            tracing::warn!(%error, "endpoints cannot be computed");
        }
    }

    /// One that goes on from here over a copy of the store, with sources of its own.
    pub fn fork(
        &self,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        seed: u64,
        signs: (Arc<Metrics>, Arc<Vitals>),
    ) -> Self {
        let credentials = Credentials {
            tokens: self.tokens.clone(),
            certified: self.certified.as_ref().clone(),
            ..Credentials::repeatable(seed)
        };
        // Compiled now at the latest, so that the next fork need not.
        drop(self.policy());
        let compiled = self.policy.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let reflector = self.reflector().clone();
        Self {
            issuer: self.issuer.clone(),
            policy: Arc::new(Mutex::new(compiled)),
            retries: Arc::new(Mutex::new(self.retries().clone())),
            ..Self::new(self.config.clone(), store, clock, seed, credentials, reflector, signs)
        }
    }

    /// The view through which controllers write: every write of it is a decision.
    pub fn deciding(&self) -> Self {
        Self { store: Arc::clone(&self.decisions), ..self.clone() }
    }

    /// The term in which this process decides; always the same one where it is alone.
    pub fn term(&self) -> Option<u64> {
        self.leadership.as_ref().map_or(Some(0), |leadership| leadership.term())
    }

    /// Raised when it begins or ceases to lead.
    pub fn led(&self) -> Option<&Arc<Signal>> {
        self.leadership.as_ref().map(|leadership| leadership.changed())
    }

    /// Takes everything from the store anew, as after a restart: each node has one full lease from now (NODE-11).
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn take_over(&self) -> Result<(), StoreError> {
        self.store.catch_up().await?;
        let mut loaded = Reflector::load(self.store.as_ref(), &self.now()).await?;
        loaded.keep_ledgers(&self.scheduler);
        {
            let mut reflector = self.reflector();
            *reflector = loaded;
            // Its versions are counted anew.
            *self.policy.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        self.retries().clear();
        self.finish_removals().await
    }

    /// Both clocks.
    pub fn now(&self) -> Now {
        Now { mono: self.clock.mono(), wall: self.clock.wall() }
    }

    /// Whether this controller runs.
    pub fn runs(&self, controller: Controller) -> bool {
        self.config.controllers.has(controller)
    }

    /// Bindings that are on their way.
    pub fn assumed(&self) -> MutexGuard<'_, Assumed> {
        self.assumed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reflector as it stands, which may be behind the store.
    pub fn reflector(&self) -> MutexGuard<'_, Reflector> {
        self.reflector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When each pending pod is tried again, on the clock's `mono`.
    pub fn retries(&self) -> MutexGuard<'_, BTreeMap<control_plane_core::Key, Duration>> {
        self.retries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reflector after it took in every acknowledged write.
    pub fn fresh(&self) -> MutexGuard<'_, Reflector> {
        let now = self.now();
        let mut reflector = self.reflector();
        if let Err(error) = reflector.refresh(self.store.as_ref(), &now) {
            // It catches up at the next turn of the controllers; until then preconditions keep decisions from doing harm.
            tracing::warn!(%error, "the reflector fell behind the history");
        }
        reflector
    }

    /// Catches up with the store where the history no longer reaches back to the last refresh.
    pub async fn catch_up(&self) {
        let now = self.now();
        if self.reflector().refresh(self.store.as_ref(), &now).is_ok() {
            return;
        }
        match Reflector::everything(self.store.as_ref()).await {
            Ok(everything) => self.reflector().catch_up(everything, &now),
            Err(error) => tracing::error!(%error, "the store cannot be read"),
        }
    }

    /// Where the last write failed, writes something that changes nothing: whether the store works again would not be known
    /// before a client tries, and clients are told to go elsewhere.
    pub async fn try_store(&self) {
        if self.vitals.store_failure().is_none() {
            return;
        }
        let key = Key::new("namespaces", "", "kube-system");
        if let Ok(Some(entry)) = self.store.get(&key).await {
            // What comes of it is noted by the store's observer.
            let expect = Expect::Revision(entry.revision);
            drop(self.store.put(key, (*entry.object).clone(), expect).await);
            self.take_in();
        }
    }

    /// Takes every acknowledged write into the snapshot.
    pub fn take_in(&self) {
        drop(self.fresh());
    }

    /// Records events of a request. Where that takes its time, whoever asked does not wait for it.
    pub async fn record_soon(&self, events: Vec<EventRecord>) {
        if self.store.latency().is_zero() {
            return self.record(&events).await;
        }
        if !events.is_empty() {
            self.told.lock().unwrap_or_else(PoisonError::into_inner).extend(events);
            self.telling.raise();
        }
    }

    /// Records what requests left to be recorded, together.
    pub async fn record_told(&self) {
        let told = std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner));
        let records = told.chunks(1).map(|event| self.record(event));
        futures_util::future::join_all(records).await;
    }

    /// Records events; that they cannot be written fails nothing else.
    pub async fn record(&self, events: &[EventRecord]) {
        let now = self.now();
        for event in events {
            if let Err(error) = recorder::record(self.store.as_ref(), &self.random, &now, event).await {
                tracing::error!(%error, reason = event.reason, "an event was not recorded");
            }
            self.take_in();
        }
    }

    /// The rules by which objects are prepared now.
    pub fn context(&self) -> Context {
        Context {
            now: self.clock.wall(),
            dialect: self.config.dialect,
            eviction_seconds: admission::eviction_seconds(&self.config),
        }
    }
}

/// The table behind the name of a profile.
fn profile(chosen: SchedulerProfile) -> &'static Profile {
    match chosen {
        SchedulerProfile::Kube32 => &KUBE32,
        SchedulerProfile::Upstream => &UPSTREAM,
    }
}

/// The row in whose form objects of this kind are stored.
fn stored_kind(kind: &'static Kind) -> &'static Kind {
    kinds::by_resource(kind.resource).unwrap_or(kind)
}

/// The address of an object of this kind.
fn key_of(kind: &Kind, namespace: Option<&str>, name: &str) -> Key {
    Key::new(kind.resource, namespace.unwrap_or_default(), name)
}

/// What a client is told when the store fails for reasons of its own.
pub fn store_failed(error: &StoreError) -> ApiError {
    match error {
        StoreError::Uncertain(_) => ApiError::timed_out(&error.to_string()),
        StoreError::Exists
        | StoreError::Conflict { .. }
        | StoreError::Compacted { .. }
        | StoreError::Unavailable(_)
        | StoreError::Deposed => ApiError::internal(&error.to_string()),
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
