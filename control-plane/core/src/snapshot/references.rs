//! Owner references by whom they name, and the objects that wait for their dependants: what the garbage collector looks at.
//!
//! Most changes leave no reference dangling. With these at hand a look costs what there are of owners, however many objects
//! there are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Key, Object};
use crate::controllers::garbage;
use crate::json;

/// An object's place: its resource and its key.
pub type Place = (&'static str, Key);

/// An owner as references name it, and the namespace that they do so from.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// `uid` of the reference.
    pub uid: String,
    /// `apiVersion` of the reference.
    pub api_version: String,
    /// `kind` of the reference.
    pub kind: String,
    /// The dependants' namespace; empty for those without one.
    pub namespace: String,
}

impl Owner {
    /// The owner that a reference of an object in `namespace` names.
    pub(crate) fn of(reference: &Value, namespace: &str) -> Self {
        let field = |name| json::text(reference, &[name]).unwrap_or_default().to_owned();
        Self {
            uid: field("uid"),
            api_version: field("apiVersion"),
            kind: field("kind"),
            namespace: namespace.to_owned(),
        }
    }
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct References {
    by_owner: BTreeMap<Owner, BTreeSet<Place>>,
    waiting: BTreeSet<Place>,
}

impl References {
    /// Every owner that is named, with the places of those that name it.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (&Owner, &BTreeSet<Place>)> {
        self.by_owner.iter()
    }

    /// Places of the objects that wait for their dependants.
    pub(crate) fn waiting(&self) -> &BTreeSet<Place> {
        &self.waiting
    }

    /// Places of the objects that name an owner of this uid, in order.
    pub(crate) fn dependants(&self, uid: &str) -> BTreeSet<&Place> {
        let from = Owner { uid: uid.to_owned(), ..Owner::default() };
        let named = self.by_owner.range(from..).take_while(|(owner, _)| owner.uid == uid);
        named.flat_map(|(_, places)| places).collect()
    }

    /// Takes in that `old` became `new`.
    pub(super) fn note(
        &mut self,
        resource: &'static str,
        key: &Key,
        old: Option<&Object>,
        new: Option<&Object>,
    ) {
        let references = |object: Option<&'_ Object>| -> BTreeSet<Owner> {
            let object = object.map_or(&Value::Null, AsRef::as_ref);
            let owners = json::list(object, &["metadata", "ownerReferences"]);
            owners.iter().map(|reference| Owner::of(reference, &key.namespace)).collect()
        };
        let (before, after) = (references(old), references(new));
        let place = || (resource, key.clone());
        for owner in before.difference(&after) {
            if let Some(places) = self.by_owner.get_mut(owner) {
                places.remove(&place());
                if places.is_empty() {
                    self.by_owner.remove(owner);
                }
            }
        }
        for owner in after.difference(&before) {
            self.by_owner.entry(owner.clone()).or_default().insert(place());
        }
        let waits = |object: Option<&Object>| object.is_some_and(|object| garbage::waits(object));
        match (waits(old), waits(new)) {
            (false, true) => drop(self.waiting.insert(place())),
            (true, false) => drop(self.waiting.remove(&place())),
            (true, true) | (false, false) => {}
        }
    }
}
