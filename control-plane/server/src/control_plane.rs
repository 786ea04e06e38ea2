//! The control plane without sockets and real time: a router, and one function that does whatever is due.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use control_plane_api::{Dialect, decode, kinds};
use control_plane_core::controllers::endpoints::EndpointsConfig;
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::api;
use crate::auth::{Credentials, Tokens, User, rbac};
use crate::clock::Clock;
use crate::config::{Config, Controller};
use crate::leadership::Leadership;
use crate::observe::audit::{Audit, AuditLevel, AuditSink};
use crate::observe::{Metrics, Vitals};
use crate::random::Random;
use crate::reconcile::{Controllers, Reflector};
use crate::service::{Door, Service};
use crate::store::{ComputedEndpoints, ObservedStore, Store, StoreError};

/// Sets the uids of the default roles and bindings apart from those of everything else.
const DEFAULTS: u64 = 0x5242_4143;
/// Namespaces that are always there.
const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// So soon the controllers come again when the store cannot be read.
const AGAIN: Duration = Duration::from_secs(1);

/// So often one that does not lead shows that it is alive.
const STAND_BY: Duration = Duration::from_secs(10);

/// How one of several control planes on a store decides.
pub struct Elected {
    /// Whether it leads.
    pub leadership: Arc<Leadership>,
    /// The store, for writes that only a leader may make.
    pub decisions: Arc<dyn Store>,
}

/// The controllers of the term in which they were made.
#[derive(Clone)]
struct InOffice {
    term: u64,
    controllers: Controllers,
}

/// An API server with its controllers. Clones share everything.
#[derive(Clone)]
pub struct ControlPlane {
    service: Arc<Service>,
    /// The same, for controllers.
    deciding: Arc<Service>,
    controllers: Arc<Mutex<Option<InOffice>>>,
    /// The revision up to which [`Self::reconcile`] has seen all changes.
    seen: Arc<AtomicU64>,
}

impl ControlPlane {
    /// Takes up the objects of `store`. Nodes that were Ready have one full lease from this instant (NODE-11).
    ///
    /// Who may come in stands in the configuration's token file; `seed` decides all uids and generated names.
    ///
    /// # Errors
    /// When the store or the token file cannot be read.
    pub async fn open(
        config: Config,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        seed: u64,
    ) -> anyhow::Result<Self> {
        Self::open_with(config, store, clock, seed, Credentials::repeatable(seed)).await
    }

    /// As [`Self::open`], with what people are known by besides the token file.
    ///
    /// # Errors
    /// When the store or the token file cannot be read.
    pub async fn open_with(
        config: Config,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        seed: u64,
        credentials: Credentials,
    ) -> anyhow::Result<Self> {
        Self::open_elected(config, store, clock, seed, credentials, None).await
    }

    /// As [`Self::open_with`]; where it is `elected`, it decides only while it leads.
    ///
    /// # Errors
    /// When the store or the token file cannot be read.
    pub async fn open_elected(
        config: Config,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        seed: u64,
        credentials: Credentials,
        elected: Option<Elected>,
    ) -> anyhow::Result<Self> {
        let service = load(config, store, clock, seed, credentials).await?;
        bootstrap(&service).await?;
        // A source of their own, so that the defaults change no other uid.
        let random = Random::new(seed ^ DEFAULTS, service.store.revision());
        rbac::reconcile(&service, &random).await?;
        let service = computing(service).await?;
        let service = match elected {
            Some(Elected { leadership, decisions }) => {
                let decisions = observed(decisions, &service.clock, (&service.metrics, &service.vitals));
                service.elected(leadership, decisions)
            }
            None => service,
        };
        Ok(Self::over(service).await)
    }

    /// One that goes on from here over a copy of the store, with a clock at the same instant, and leads itself; they share
    /// nothing that changes. For those who need many that begin alike, in less time than opening takes.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn fork(
        &self,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let (metrics, vitals) = signs(&clock);
        let store = observed(store, &clock, (&metrics, &vitals));
        let service = computing(self.service.fork(store, clock, seed, (metrics, vitals))).await?;
        let in_office = self.controllers.lock().await.clone();
        Ok(Self::with(service, in_office))
    }

    /// A service with controllers, which have a first look where nobody is elected.
    async fn over(service: Service) -> Self {
        let mut in_office = None;
        if service.led().is_none() {
            let mut controllers = Controllers::new(&service);
            controllers.follow(&service).await;
            in_office = service.term().map(|term| InOffice { term, controllers });
        }
        Self::with(service, in_office)
    }

    fn with(service: Service, in_office: Option<InOffice>) -> Self {
        Self {
            seen: Arc::new(AtomicU64::new(service.store.revision())),
            deciding: Arc::new(service.deciding()),
            service: Arc::new(service),
            controllers: Arc::new(Mutex::new(in_office)),
        }
    }

    /// The API as a tower service. Over the memory store every handler completes at its first poll, and a watch's body yields
    /// all lines that are there.
    pub fn router(&self) -> Router {
        api::router(Arc::clone(&self.service))
    }

    /// Takes in what changed, runs every controller that is due, ends watches whose time is up, and returns the next instant
    /// (on the clock's [`Clock::mono`]) at which something will be due.
    pub async fn reconcile(&self) -> Option<Duration> {
        let mut in_office = self.controllers.lock().await;
        // Read first: what is written while the controllers are at work calls for another turn.
        let reached = self.service.store.revision();
        self.service.settle_computed().await;
        let (due, seen) = match self.decide(&mut in_office).await {
            Ok((due, seen)) => (due, seen),
            Err(error) => {
                tracing::warn!(%error, "the controllers wait for the store");
                self.service.vitals.moved(self.service.clock.mono());
                (Some(self.service.clock.mono() + AGAIN), reached)
            }
        };
        self.seen.store(seen, Ordering::SeqCst);
        let watches = self.service.watches.fire(self.service.clock.mono());
        [due, watches].into_iter().flatten().min()
    }

    /// The controllers' turn, if they have one here. Answers when they have the next, and what they saw.
    async fn decide(&self, in_office: &mut Option<InOffice>) -> Result<(Option<Duration>, u64), StoreError> {
        let service = &self.deciding;
        let Some(term) = service.term() else {
            *in_office = None;
            let reached = service.store.revision();
            service.catch_up().await;
            self.service.try_store().await;
            let now = service.clock.mono();
            service.vitals.moved(now);
            return Ok((Some(now + STAND_BY), reached));
        };
        // Decisions see what other control planes accepted.
        service.store.catch_up().await?;
        let controllers = match in_office {
            Some(held) if held.term == term => &mut held.controllers,
            _ => {
                *in_office = None;
                service.take_over().await?;
                let controllers = Controllers::new(service);
                &mut in_office.insert(InOffice { term, controllers }).controllers
            }
        };
        Ok(controllers.turn(service).await)
    }

    /// Completes when something happened since the last [`Self::reconcile`] that calls for another: a write, or a watch that
    /// opened, or this control plane began or ceased to lead.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut writes = self.service.store.signal().listen();
        let mut opened = self.service.watches.opened().listen();
        let mut led = self.service.led().cloned().unwrap_or_default().listen();
        let mut telling = self.service.telling.listen();
        let (service, seen) = (Arc::clone(&self.service), Arc::clone(&self.seen));
        async move {
            if service.store.revision() != seen.load(Ordering::SeqCst) {
                return;
            }
            poll_fn(|context| {
                let raised = [&mut writes, &mut opened, &mut telling, &mut led]
                    .map(|listener| listener.poll_raised(context));
                if raised.iter().any(Poll::is_ready) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }

    /// Records requests from here on. Only the first call counts.
    pub fn audit_to(&self, level: AuditLevel, sink: Arc<dyn AuditSink>) {
        drop(self.service.audit_log.set(Audit { level, sink }));
    }

    /// What is counted, for whoever serves this control plane.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.service.metrics
    }

    /// The process was asked to end: from here on it is not ready.
    pub fn begin_end(&self) {
        self.service.vitals.end();
    }

    /// Ends all open watches, for a clean end of the process.
    pub fn end_watches(&self) {
        self.service.watches.end_all();
    }
}

/// Has Endpoints and EndpointSlices computed, unless a foreign controller is to write them (EP-01).
async fn computing(service: Service) -> anyhow::Result<Service> {
    if !service.runs(Controller::Endpoints) {
        return Ok(service);
    }
    let config = EndpointsConfig { slices_keep_terminating: service.config.dialect == Dialect::Kubernetes };
    let computed = ComputedEndpoints::open(Arc::clone(&service.store), config, service.config.watch_history);
    Ok(service.computing(computed.await.context("the store cannot be read")?))
}

/// What is counted and what shows that it lives, from now on.
fn signs(clock: &Arc<dyn Clock>) -> (Arc<Metrics>, Arc<Vitals>) {
    let (metrics, vitals) = (Arc::<Metrics>::default(), Arc::<Vitals>::default());
    vitals.moved(clock.mono());
    (metrics, vitals)
}

/// A store whose writes are counted and timed.
fn observed(
    store: Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    (metrics, vitals): (&Arc<Metrics>, &Arc<Vitals>),
) -> Arc<dyn Store> {
    Arc::new(ObservedStore::new(store, Arc::clone(clock), Arc::clone(metrics), Arc::clone(vitals)))
}

/// A service over what is stored, and over no more than that.
async fn load(
    config: Config,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    seed: u64,
    mut credentials: Credentials,
) -> anyhow::Result<Service> {
    let from_file = config.token_auth_file.as_deref().map(Tokens::read).transpose()?;
    let from_text =
        config.token_auth_text.as_deref().map(|text| Tokens::parse(text, Path::new("(given as text)")));
    for (token, user) in [from_file, from_text.transpose()?].iter().flatten().flat_map(Tokens::iter) {
        credentials.tokens.add(token, user.clone());
    }
    let (metrics, vitals) = signs(&clock);
    let store = observed(store, &clock, (&metrics, &vitals));
    let now = control_plane_core::Now { mono: clock.mono(), wall: clock.wall() };
    let reflector = Reflector::load(store.as_ref(), &now).await.context("the store cannot be read")?;
    let service = Service::new(config, store, clock, seed, credentials, reflector, (metrics, vitals));
    service.finish_removals().await.context("the store cannot be written")?;
    Ok(service)
}

/// The address that Kubernetes' clients inside a cluster expect the API at.
const OWN_ADDRESS: &str = "10.96.0.1";

/// Makes what is always there: the namespaces, and the service by which the API itself is found.
async fn bootstrap(service: &Service) -> anyhow::Result<()> {
    // At once, so that a store which commits in groups takes them in few steps.
    let namespaces =
        NAMESPACES.iter().map(|name| make(service, "namespaces", None, json!({"metadata": {"name": name}})));
    try_join_all(namespaces).await?;
    let classes = control_plane_api::strategy::system_classes().into_iter();
    try_join_all(classes.map(|class| make(service, "priorityclasses", None, class))).await?;
    let port = service.config.listen.port();
    let own = json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": OWN_ADDRESS,
            "ports": [{"name": "https", "port": 443, "targetPort": port.max(1)}],
        },
    });
    make(service, "services", Some("default"), own).await?;
    for (resource, object) in own_endpoints(service.config.listen) {
        keep(service, resource, object).await?;
    }
    Ok(())
}

/// Where the API is, for those who look up the addresses behind its service; nothing where only this host can reach it.
fn own_endpoints(listen: SocketAddr) -> Vec<(&'static str, Value)> {
    let address = listen.ip();
    if address.is_loopback() || address.is_unspecified() || listen.port() == 0 {
        return Vec::new();
    }
    let ports = json!([{"name": "https", "port": listen.port(), "protocol": "TCP"}]);
    let endpoints = json!({
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
    });
    let slice = json!({
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        "ports": ports,
    });
    vec![("endpoints", endpoints), ("endpointslices", slice)]
}

/// Makes an object of the server's own, or brings it up to date where an earlier process listened elsewhere.
async fn keep(service: &Service, resource: &str, object: Value) -> anyhow::Result<()> {
    let user = User::master("system:control-plane");
    let kind = kinds::by_resource(resource).with_context(|| format!("{resource} are not served"))?;
    make(service, resource, Some("default"), object.clone()).await?;
    let object = decode::canonical(kind.into(), object, service.config.dialect)?;
    let door = Door { kind, subresource: None, namespace: Some("default"), name: "kubernetes" };
    match service.update(&user, door, object, false).await {
        Ok(_) => Ok(()),
        Err(error) => anyhow::bail!("{resource} kubernetes cannot be written: {}", error.message),
    }
}

async fn make(
    service: &Service,
    resource: &str,
    namespace: Option<&str>,
    object: Value,
) -> anyhow::Result<()> {
    let user = User::master("system:control-plane");
    let kind = kinds::by_resource(resource).with_context(|| format!("{resource} are not served"))?;
    let object = decode::canonical(kind.into(), object, service.config.dialect)?;
    match service.create(&user, kind, namespace, object, false).await {
        Ok(_) => Ok(()),
        Err(error) if error.code == 409 => Ok(()),
        Err(error) => anyhow::bail!("{resource} that are always there cannot be made: {}", error.message),
    }
}
