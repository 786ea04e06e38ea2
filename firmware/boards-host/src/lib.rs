//! The kubelet as a process of the host, and the board model that simulated rigs share with it.
//!
//! Both kinds of board model their heap: a process of the host has gigabytes, a board has not.

mod model;

pub use model::{esp32c3_capabilities, free_heap};
