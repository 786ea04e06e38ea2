//! The reference control plane: a small Kubernetes-compatible API server with its controllers.
//!
//! [`ControlPlane`] is everything but sockets and real time: the binary serves its router over TCP and calls
//! [`ControlPlane::reconcile`] from one task; the simulated rig calls both directly in virtual time. Decisions are made in
//! `control-plane-core` and the wire dialect is spoken in `control-plane-api`; this crate stores, routes and applies.

mod admission;
mod api;
pub mod auth;
mod base64;
pub mod cli;
pub mod clock;
pub mod config;
mod control_plane;
pub mod explain;
pub mod kubeconfig;
pub mod leadership;
pub mod observe;
mod random;
mod reconcile;
pub mod serve;
mod service;
pub mod store;
pub mod tls;

pub use self::clock::{Clock, SystemClock};
pub use self::config::Config;
pub use self::control_plane::{ControlPlane, Elected};
pub use self::store::{MemoryStore, RedbStore, Store};
