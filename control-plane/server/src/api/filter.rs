//! Which objects a list, a watch or a deletion of many is about.

use control_plane_api::{ApiError, Kind};
use control_plane_core::selectors::{FieldSelector, LabelSelector};
use serde_json::Value;

use super::fields;
use super::query::{Query, get};
use crate::store::{Key, Scope};

/// One resource, in one namespace or all, by labels and fields.
#[derive(Clone, Debug)]
pub struct Filter {
    resource: &'static str,
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Filter {
    /// What a request's path and its `labelSelector` and `fieldSelector` ask for.
    ///
    /// # Errors
    /// 400 for selectors that cannot be read, or fields that the kind cannot be selected by.
    pub fn new(kind: &'static Kind, namespace: Option<&str>, query: &Query) -> Result<Self, ApiError> {
        let labels = LabelSelector::parse(get(query, "labelSelector").unwrap_or_default())
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let fields = fields::parse(get(query, "fieldSelector").unwrap_or_default(), kind)?;
        Ok(Self { resource: kind.resource, namespace: namespace.map(Into::into), labels, fields })
    }

    /// The same, for the one object of this name.
    pub fn named(mut self, name: &str) -> Result<Self, ApiError> {
        let escaped = name.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
        self.fields = FieldSelector::parse(&format!("metadata.name={escaped}"))
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        Ok(self)
    }

    /// The part of the store to look at.
    pub fn scope(&self) -> Scope<'_> {
        Scope { resource: self.resource, namespace: self.namespace.as_deref() }
    }

    /// Whether objects are chosen by more than their place.
    pub fn is_selective(&self) -> bool {
        !self.labels.is_everything() || !self.fields.is_everything()
    }

    /// The value that a field must have, where the selector says so.
    pub fn required(&self, field: &str) -> Option<&str> {
        self.fields.required(field)
    }

    /// Whether an object of this key is in the part of the store looked at.
    pub fn covers(&self, key: &Key) -> bool {
        key.resource == self.resource
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }

    /// Whether the selectors let this object through.
    pub fn selects(&self, object: &Value) -> bool {
        self.labels.matches_object(object) && fields::selects(&self.fields, object)
    }
}
