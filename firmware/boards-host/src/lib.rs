//! The kubelet as a process of the host, and the board model that simulated rigs share with it.
//!
//! Both kinds of board model their heap: a process of the host has gigabytes, a board has not. The process
//! keeps no state and ends without a word to anyone: a power cut is silence.

mod clock;
mod console;
mod model;
mod run;
mod sockets;

pub use clock::Clock;
pub use console::Console;
pub use model::{esp32c3_capabilities, free_heap};
pub use run::{load, run};
