//! The network that emulated boards sit on, without a socket, a clock or a thread.
//!
//! [`Network`] is all of it: a [`switch::Switch`] whose links can be cut, slowed and made lossy, a DHCP server
//! ([`dhcp`]) and a [`gateway`] that ends the boards' TCP connections and hands their bytes on. Whoever drives it
//! brings frames, bytes and the present instant, in microseconds, and takes away what is due; it never waits. What
//! is drawn is a function of the seed, the link and the number of the frame, so that a run can be repeated.

pub mod address;
pub mod codec;
pub mod dhcp;
mod fate;
pub mod gateway;
pub mod link;
pub mod network;
pub mod pcap;
#[cfg(any(test, feature = "stack"))]
pub mod stack;
pub mod switch;

pub use gateway::{ConnectionId, Event};
pub use link::Counts;
pub use network::{Network, Plan};

#[cfg(test)]
mod testing;
