//! A control plane that is there already, reached by a kubeconfig, with nodes that the harness plays and boards that
//! are there as well.
//!
//! The rule here: nothing of the cluster is written but the trial's own namespace and nodes, and all of that goes again,
//! whatever becomes of the trial. `scope` says what is the trial's and is asked before each write; `cleanup` takes it away;
//! `lock` lets one trial at a time onto a cluster.

mod cleanup;
mod cluster;
mod command;
mod connection;
mod kubeconfig;
mod lock;
mod plugin;
mod probe;
mod quiet;
mod scope;
mod trial;

pub use cluster::Cluster;
pub(crate) use cluster::Inner;
pub use probe::rights;
