//! The reference control plane: a small Kubernetes-compatible API server with its controllers.
//!
//! [`ControlPlane`] is everything but sockets and real time: the binary serves its router over TCP and calls
//! [`ControlPlane::reconcile`] from one task; the simulated rig calls both directly in virtual time. Decisions are made in
//! `control-plane-core` and the wire dialect is spoken in `control-plane-api`; this crate stores, routes and applies.

pub mod clock;
pub mod config;
mod control_plane;
mod random;
pub mod store;

pub use self::clock::{Clock, SystemClock};
pub use self::config::Config;
pub use self::control_plane::ControlPlane;
pub use self::store::{MemoryStore, RedbStore, Store};
