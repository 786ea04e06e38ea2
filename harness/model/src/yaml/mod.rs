//! YAML as a tree that knows where each value stands and whether it was quoted.
//!
//! The first of two stages: everything wrong with a file as YAML is found here, all of it at once; what
//! the values mean is decided by those who read the tree. The tree is built on the event parser beneath
//! serde-saphyr, because only events tell a quoted `"no"` from a bare one.

mod parse;
mod scalar;
mod tree;

pub(crate) use scalar::plain;

pub use parse::{parse_documents, parse_one};
pub use tree::{Entry, Kind, Node};
