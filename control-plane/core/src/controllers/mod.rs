//! The controllers: each a function from the snapshot and a key to a decision.

mod children;
pub mod cluster_role;
pub mod daemonset;
pub mod deployment;
pub mod endpoints;
pub mod garbage;
pub mod job;
pub mod namespace;
pub mod node_lifecycle;
pub mod pod_garbage;
pub mod service_account;
