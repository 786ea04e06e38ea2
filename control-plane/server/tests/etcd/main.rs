//! Several control planes on one etcd: where objects are (GHOST-06), what one sees of another's writes, who decides, and what
//! is left when etcd or a control plane is killed under load. Each test starts an etcd of its own; where none is installed
//! they say so and pass.

#[path = "../support/contract.rs"]
mod contract;
mod endpoints;
#[path = "../support/etcd.rs"]
mod etcd;
mod failover;
mod http;
mod planes;
mod server;
mod stores;
#[path = "../support/mod.rs"]
mod support;
mod tls;
