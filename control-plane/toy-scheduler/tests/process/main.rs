//! The real toy-scheduler against the real control plane, with the kubeconfigs that the latter makes; nodes are played by
//! their objects alone.

#[path = "../binaries/mod.rs"]
mod binaries;
mod crowds;
mod flags;
mod placing;
#[path = "../../../server/tests/support/port.rs"]
mod port;
mod restarts;
mod world;
