//! Amounts of resources by name, in exact nano-units.

use std::borrow::Cow;

use crate::quantity::Quantity;

/// The name of a resource: one that a profile knows, or one that an object names.
pub type ResourceName = Cow<'static, str>;

/// Names of figures that profiles rate nodes by and that no node can be short of begin so.
pub const RATED: &str = "rated/";

/// Amounts by the name of the resource, in the order of the names; what is not in it is 0. There are only ever a few, so a row
/// is quicker to search than a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amounts(Vec<(ResourceName, i128)>);

impl Amounts {
    /// The amount of one resource, in nano-units.
    #[must_use]
    pub fn get(&self, resource: &str) -> i128 {
        self.0.iter().find(|(name, _)| name == resource).map_or(0, |(_, nanos)| *nanos)
    }

    /// The resources of which there is more or less than nothing, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i128)> {
        self.0.iter().map(|(name, nanos)| (name.as_ref(), *nanos))
    }

    /// As [`Self::iter`], with the names as they are kept.
    pub(super) fn named(&self) -> impl Iterator<Item = (&ResourceName, i128)> {
        self.0.iter().map(|(name, nanos)| (name, *nanos))
    }

    /// Adds to one resource.
    pub fn add(&mut self, resource: impl Into<ResourceName>, quantity: Quantity) {
        self.change(resource.into(), quantity.nanos());
    }

    /// Adds everything of `other`.
    pub fn add_all(&mut self, other: &Self) {
        for (resource, nanos) in &other.0 {
            self.change(resource.clone(), *nanos);
        }
    }

    /// Takes away everything of `other`.
    pub fn take_all(&mut self, other: &Self) {
        for (resource, nanos) in &other.0 {
            self.change(resource.clone(), -nanos);
        }
    }

    /// Raises every resource to what `other` has, where that is more.
    pub fn raise_to(&mut self, other: &Self) {
        for (resource, nanos) in &other.0 {
            let missing = nanos - self.get(resource);
            if missing > 0 {
                self.change(resource.clone(), missing);
            }
        }
    }

    /// Adds nano-units to one resource, or takes them away.
    pub(super) fn change(&mut self, resource: ResourceName, by: i128) {
        match self.0.binary_search_by(|(name, _)| name.cmp(&resource)) {
            Ok(at) => {
                if let Some((_, nanos)) = self.0.get_mut(at) {
                    *nanos += by;
                    if *nanos == 0 {
                        self.0.remove(at);
                    }
                }
            }
            Err(_) if by == 0 => {}
            Err(at) => self.0.insert(at, (resource, by)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_to_nothing_is_not_kept() {
        let units = |resource: &str, n: i64| {
            let mut amounts = Amounts::default();
            amounts.add(resource.to_owned(), Quantity::units(n));
            amounts
        };
        let mut amounts = units("b", 2);
        amounts.add_all(&units("a", 1));
        amounts.add_all(&units("c", 0));
        assert_eq!(amounts.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
        amounts.raise_to(&units("b", 1));
        amounts.raise_to(&units("a", 5));
        assert_eq!((amounts.get("a"), amounts.get("b"), amounts.get("c")), (5_000_000_000, 2_000_000_000, 0));
        amounts.take_all(&units("a", 5));
        assert_eq!(amounts, units("b", 2));
    }
}
