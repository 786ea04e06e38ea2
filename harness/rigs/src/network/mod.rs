//! The network of a trial's emulators: what [`rigor_switch`] decides, carried out with sockets by one thread.
//!
//! Each emulator is joined by a unix socket of its board, so that whose frames are whose is never in question. Each
//! connection that a board opens goes on over a socket of its own to the control plane. Acts are done when they return:
//! nothing leaves after a cut.

mod carrier;
mod handle;
mod port;
mod thread;

pub(crate) use handle::{Network, Seat};

#[cfg(test)]
mod tests;
