//! The kubelet of a board: a no_std state machine, bytes in and bytes out.
//!
//! [`Kubelet::handle`] takes one [`Input`] and the time; [`Kubelet::next_output`] gives what the
//! shell has to do; [`Kubelet::deadline`] says when it wants to be called again. Nothing here opens
//! a socket, reads a clock, sleeps or draws randomness: the same code runs on silicon, in an
//! emulator, as a process and under simulated time. It needs no compare-and-swap, and every buffer
//! has a bound (KLET-06, KLET-07).
#![no_std]

extern crate alloc;

mod answers;
mod claims;
mod config;
mod container;
mod events;
mod flight;
mod heap;
mod http;
mod json;
mod kubelet;
mod link;
mod node;
mod pod;
mod pod_status;
mod pods;
mod posting;
mod quantity;
mod random;
mod requests;
mod seam;
mod skim;
mod split;
mod wall;
mod watch;
mod wire;
mod workload;

pub use config::{Board, Capabilities, Config, ConfigError, LeaseConfig, Server};
pub use kubelet::Kubelet;
pub use seam::{Boot, ConnId, Input, Now, Output, ResetReason};

/// Heap a shell with a real allocator keeps for the kubelet and the network, in bytes: it reports
/// `measured free heap - WORKING_RESERVE` (at least 0) as [`Now::free_heap`], so that a pod that takes
/// all that is offered leaves the board working (KLET-07). Shells that model their heap keep nothing.
pub const WORKING_RESERVE: u32 = 32 * 1024;
