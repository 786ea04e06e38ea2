//! The simulated rig: router, controllers, kubelet cores and scenario on one event queue in virtual time.
//!
//! Everything that happens is a function of what the scenario does and of the seed: no sockets, no sleeps, no real
//! clock, no threads, no runtime. Never judges, and never looks into a component: boards and server
//! meet over HTTP bytes only, as on every other rig.

mod board;
mod clock;
mod faults;
mod fuse;
mod garbage;
mod http1;
mod link;
mod observer;
mod open;
mod panics;
mod plane;
mod queue;
mod retransmission;
mod second;
mod seed;
mod server;
mod simulation;
mod stream;
mod strike;
#[cfg(test)]
mod tests;
mod world;

pub use open::{check_flags, open, open_with};
