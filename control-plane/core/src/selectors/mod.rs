//! Label selectors and field selectors, from query strings and from LabelSelector objects.
//!
//! The grammar, and the words in which a bad selector is refused, are Kubernetes'. Parsing never panics.

mod fields;
mod labels;
mod lexer;
mod names;

pub use fields::{FieldSelector, FieldSelectorError};
pub use labels::{LabelSelector, LabelSelectorError, Requirement, Test};
