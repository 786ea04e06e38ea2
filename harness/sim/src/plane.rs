//! The control plane under simulation, behind the two calls that virtual time needs of it.
//!
//! [`Plane`] is what lives between start and stop; [`Launch`] starts one on what the last one left. Both exist so
//! that tests can put a small router in the server's place. Everything here is polled once: a future that waits
//! is a mistake of the server, and reported as such.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use control_plane::{Config, ControlPlane};
use futures_util::FutureExt;

use crate::clock::ProcessClock;
use crate::fuse::{Fuse, MortalStore};
use crate::seed::seed_of;

/// A server between its start and its end.
pub(crate) trait Plane {
    /// The API.
    fn router(&self) -> Router;

    /// Does what is due and says when it wants to be called next, on its own monotonic clock.
    ///
    /// # Errors
    /// It waited for something, in one sentence.
    fn reconcile(&self) -> Result<Option<Duration>, String>;
}

/// Starts servers on one store.
pub(crate) trait Launch {
    /// Starts the server for the `life`-th time, counted from 1.
    ///
    /// # Errors
    /// It did not come up, in one sentence.
    fn launch(&mut self, clock: Arc<ProcessClock>, life: u32) -> Result<Box<dyn Plane>, String>;

    /// What ends the server's process in the middle of what it does: its writes burn it.
    fn fuse(&self) -> Arc<Fuse>;
}

/// Starts the real one over a store in memory, which outlives it.
pub(crate) struct RealLaunch {
    pub(crate) config: Config,
    pub(crate) store: Arc<MortalStore>,
    pub(crate) seed: u64,
}

impl Launch for RealLaunch {
    fn launch(&mut self, clock: Arc<ProcessClock>, life: u32) -> Result<Box<dyn Plane>, String> {
        let seed = seed_of(self.seed, &format!("control-plane:{life}"));
        ControlPlane::open(self.config.clone(), self.store.clone(), clock, seed)
            .now_or_never()
            .ok_or("the control plane waited for something while it started")?
            .map(|plane| Box::new(plane) as Box<dyn Plane>)
            .map_err(|error| format!("the control plane did not start: {error:#}"))
    }

    fn fuse(&self) -> Arc<Fuse> {
        Arc::clone(self.store.fuse())
    }
}

impl Plane for ControlPlane {
    fn router(&self) -> Router {
        ControlPlane::router(self)
    }

    fn reconcile(&self) -> Result<Option<Duration>, String> {
        ControlPlane::reconcile(self)
            .now_or_never()
            .ok_or_else(|| "a controller waited for something".to_owned())
    }
}
