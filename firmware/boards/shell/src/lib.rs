//! What every networked board shares: the pump between a network card, the kubelet and the console.
//!
//! Generic over a smoltcp `Device` (the card) and a [`Board`] (time, sleep, console, entropy, heap); a board
//! crate adds drivers and start-up only. No clock, no hardware and no `unsafe` here: all of it runs on the
//! host under test.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod board;
mod endpoint;
mod link;
mod machine;
mod network;
mod pump;
mod random;

pub use board::Board;
pub use endpoint::EndpointError;
pub use machine::Machine;
pub use pump::Shell;
