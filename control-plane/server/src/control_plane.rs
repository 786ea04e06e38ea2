//! The control plane without sockets and real time: a router, and one function that does whatever is due.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use control_plane_api::{decode, kinds};
use futures_util::future::{Either, select};
use serde_json::json;
use tokio::sync::Mutex;

use crate::api;
use crate::auth::{Tokens, User, rbac};
use crate::clock::Clock;
use crate::config::Config;
use crate::observe::{Metrics, Vitals};
use crate::random::Random;
use crate::reconcile::{Controllers, Reflector};
use crate::service::Service;
use crate::store::{ObservedStore, Store};

/// Sets the uids of the default roles and bindings apart from those of everything else.
const DEFAULTS: u64 = 0x5242_4143;
/// Namespaces that are always there.
const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// An API server with its controllers. Clones share everything.
#[derive(Clone)]
pub struct ControlPlane {
    service: Arc<Service>,
    controllers: Arc<Mutex<Controllers>>,
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
        Self::open_with(config, store, clock, seed, Tokens::default()).await
    }

    /// As [`Self::open`], with tokens besides those of the token file.
    ///
    /// # Errors
    /// When the store or the token file cannot be read.
    pub async fn open_with(
        config: Config,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        seed: u64,
        mut tokens: Tokens,
    ) -> anyhow::Result<Self> {
        let from_file = config.token_auth_file.as_deref().map(Tokens::read).transpose()?;
        let from_text =
            config.token_auth_text.as_deref().map(|text| Tokens::parse(text, Path::new("(given as text)")));
        for (token, user) in [from_file, from_text.transpose()?].iter().flatten().flat_map(Tokens::iter) {
            tokens.add(token, user.clone());
        }
        let (metrics, vitals) = (Arc::<Metrics>::default(), Arc::<Vitals>::default());
        vitals.moved(clock.mono());
        let store: Arc<dyn Store> = Arc::new(ObservedStore::new(
            store,
            Arc::clone(&clock),
            Arc::clone(&metrics),
            Arc::clone(&vitals),
        ));
        let now = control_plane_core::Now { mono: clock.mono(), wall: clock.wall() };
        let reflector = Reflector::load(store.as_ref(), &now).await.context("the store cannot be read")?;
        let service = Service::new(config, store, clock, seed, tokens, reflector, (metrics, vitals));
        service.finish_removals().await.context("the store cannot be written")?;
        bootstrap(&service).await?;
        // A source of their own, so that the defaults change no other uid.
        let random = Random::new(seed ^ DEFAULTS, service.store.revision());
        rbac::reconcile(&service, &random).await?;
        let mut controllers = Controllers::new(&service);
        controllers.follow(&service).await;
        let seen = Arc::new(AtomicU64::new(service.store.revision()));
        Ok(Self { service: Arc::new(service), controllers: Arc::new(Mutex::new(controllers)), seen })
    }

    /// The API as a tower service. Over the memory store every handler completes at its first poll, and a watch's body yields
    /// all lines that are there.
    pub fn router(&self) -> Router {
        api::router(Arc::clone(&self.service))
    }

    /// Takes in what changed, runs every controller that is due, ends watches whose time is up, and returns the next instant
    /// (on the clock's [`Clock::mono`]) at which something will be due.
    pub async fn reconcile(&self) -> Option<Duration> {
        let mut controllers = self.controllers.lock().await;
        let (due, seen) = controllers.turn(&self.service).await;
        self.seen.store(seen, Ordering::SeqCst);
        let watches = self.service.watches.fire(self.service.clock.mono());
        [due, watches].into_iter().flatten().min()
    }

    /// Completes when something happened since the last [`Self::reconcile`] that calls for another: a write, or a watch that
    /// opened.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut writes = self.service.store.signal().listen();
        let mut opened = self.service.watches.opened().listen();
        let (service, seen) = (Arc::clone(&self.service), Arc::clone(&self.seen));
        async move {
            if service.store.revision() != seen.load(Ordering::SeqCst) {
                return;
            }
            let (written, opened) = (std::pin::pin!(writes.raised()), std::pin::pin!(opened.raised()));
            match select(written, opened).await {
                Either::Left(_) | Either::Right(_) => {}
            }
        }
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

/// The address that Kubernetes' clients inside a cluster expect the API at.
const OWN_ADDRESS: &str = "10.96.0.1";

/// Makes what is always there: the namespaces, and the service by which the API itself is found.
async fn bootstrap(service: &Service) -> anyhow::Result<()> {
    for name in NAMESPACES {
        make(service, "namespaces", None, json!({"metadata": {"name": name}})).await?;
    }
    for class in control_plane_api::strategy::system_classes() {
        make(service, "priorityclasses", None, class).await?;
    }
    let port = service.config.listen.port();
    let own = json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": OWN_ADDRESS,
            "ports": [{"name": "https", "port": 443, "targetPort": port.max(1)}],
        },
    });
    make(service, "services", Some("default"), own).await
}

async fn make(
    service: &Service,
    resource: &str,
    namespace: Option<&str>,
    object: serde_json::Value,
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
