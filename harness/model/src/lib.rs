//! Scenarios, rigs and reports: raw YAML with spans, resolved to types that cannot be wrong.
//!
//! Pure: nothing here reads a clock or talks to a network. Every mistake in a file is reported with
//! its place and a remedy.

pub mod constants;
pub mod duration;
pub mod expr;
pub mod mistake;
pub mod path;
pub mod template;
pub mod yaml;

pub use constants::{Constant, Constants};
pub use mistake::{Mistake, Mistakes};
