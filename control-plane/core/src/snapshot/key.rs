//! Objects and their places.

use std::sync::Arc;

use serde_json::Value;

use crate::json;

/// A stored object in Kubernetes' JSON form, shared, never changed in place.
pub type Object = Arc<Value>;
/// An object's place among its resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// A key from its parts; `namespace` is empty for cluster-scoped objects.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of a stored object.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        Self::new(json::namespace(object), json::name(object))
    }
}
