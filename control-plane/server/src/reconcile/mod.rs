//! Controllers: core's decisions, made when they are due, and applied.
//!
//! There is one loop and it makes no choice of its own: it keeps the instants at which something is due, brings the snapshot up
//! to date, asks core, and applies the answer with its preconditions. What turns out stale is decided anew.

mod apply;
mod controllers;
pub mod recorder;
mod reflector;
mod workloads;

pub use self::controllers::Controllers;
pub use self::reflector::Reflector;
