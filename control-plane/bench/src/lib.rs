//! What the benchmarks of the control plane share: a client that costs little, and the process under measurement.

pub mod client;
pub mod figures;
pub mod server;

pub use client::Client;
pub use figures::{median, ms, part, sorted};
pub use server::Server;

/// The pods of the default namespace.
pub const PODS: &str = "/api/v1/namespaces/default/pods";
/// The leases of nodes.
pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
