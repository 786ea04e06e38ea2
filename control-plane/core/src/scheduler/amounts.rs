//! Amounts of resources by name, in exact nano-units.

use std::collections::BTreeMap;

use crate::quantity::Quantity;

/// Amounts by the name of the resource; what is not in it is 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<&'static str, i128>);

impl Amounts {
    /// The amount of one resource, in nano-units.
    #[must_use]
    pub fn get(&self, resource: &str) -> i128 {
        self.0.get(resource).copied().unwrap_or(0)
    }

    /// Adds to one resource.
    pub fn add(&mut self, resource: &'static str, quantity: Quantity) {
        *self.0.entry(resource).or_default() += quantity.nanos();
    }

    /// Adds everything of `other`.
    pub fn add_all(&mut self, other: &Self) {
        for (resource, nanos) in &other.0 {
            *self.0.entry(resource).or_default() += nanos;
        }
    }

    /// Raises every resource to what `other` has, where that is more.
    pub fn raise_to(&mut self, other: &Self) {
        for (resource, nanos) in &other.0 {
            let mine = self.0.entry(resource).or_default();
            *mine = (*mine).max(*nanos);
        }
    }
}
