//! Pure decisions of the reference control plane: quantities, selectors, scheduler, controllers.
//!
//! Nothing in this crate reads a clock, a file, a socket or a random source: the state is a [`Snapshot`], time is a
//! [`Now`], the outcome is a [`Decision`]. The server applies decisions; tests and the simulator run the same
//! functions on a virtual clock.

pub mod conditions;
pub mod controllers;
pub mod decision;
mod json;
mod ownership;
pub mod pod;
pub mod quantity;
pub mod reports;
pub mod scheduler;
pub mod selectors;
pub mod snapshot;
pub mod time;
pub mod tolerations;

pub use decision::{Decision, EventKind, EventRecord, ObjectRef, Write};
pub use ownership::Ownership;
pub use snapshot::{Key, Object, Snapshot};
pub use time::Now;
