//! The Kubernetes wire dialect as pure functions: kinds, status errors, patches, tables, discovery, defaults, validation.
//!
//! Everything here maps JSON to JSON. Nothing reads a clock, draws randomness or does I/O: instants, uids and the
//! suffixes of generated names are arguments. The server owns the store and the routes; this crate owns what goes
//! over the wire.

pub mod binding;
pub mod decode;
pub mod delete;
pub mod discovery;
mod json;
pub mod kinds;
pub mod openapi;
pub mod options;
pub mod patch;
pub mod protobuf;
pub mod scale;
mod schema;
pub mod status;
pub mod strategy;
pub mod strconv;
pub mod table;
mod typed;
pub mod views;

pub use decode::{Decoded, Dialect, Expected};
pub use json::syntax_error;
pub use kinds::Kind;
pub use status::{ApiError, Cause, CauseReason, Reason};
