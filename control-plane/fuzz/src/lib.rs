//! What each fuzz target does with its bytes.

mod targets;

pub use targets::*;
