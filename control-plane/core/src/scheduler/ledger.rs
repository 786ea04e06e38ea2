//! What a profile reads of each node and each bound pod, kept as they change: one attempt then costs a look at each node and
//! none at any other pod.
//!
//! A ledger says what the snapshot says and nothing else: it can be made anew from a snapshot at any time, with the same
//! content (there is a property test of that).

use std::collections::BTreeMap;

use serde_json::Value;

use super::amounts::Amounts;
use super::profile::Profile;
use crate::snapshot::{Key, Object, Snapshot};
use crate::tolerations::{self, Taint};
use crate::{conditions, json, pod};

/// A node, with what filters ask of it read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownNode {
    /// The node.
    pub object: Object,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Whether its Ready condition is True.
    pub ready: bool,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// What it offers, as the profile reads it.
    pub offer: Amounts,
}

impl KnownNode {
    fn new(profile: &Profile, object: Object) -> Self {
        Self {
            unschedulable: json::is_true(&object, &["spec", "unschedulable"]),
            ready: conditions::is_true(&object, "Ready"),
            taints: tolerations::taints(&object).collect(),
            offer: (profile.offer)(&object),
            object,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        json::name(&self.object)
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&Value> {
        json::get(&self.object, &["metadata", "labels", key])
    }
}

/// A place that pods are bound to; there may be no node of that name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place {
    node: Option<KnownNode>,
    taken: Amounts,
    /// Bound pods, whether or not they are subtracted.
    pods: usize,
}

/// A bound pod.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holding {
    node: String,
    request: Amounts,
    /// Whether it is subtracted from what the node offers.
    outstanding: bool,
}

/// The nodes and bound pods of a snapshot, as one profile reads them.
#[derive(Debug, Clone)]
pub struct Ledger {
    profile: &'static Profile,
    places: BTreeMap<String, Place>,
    holdings: BTreeMap<Key, Holding>,
}

impl PartialEq for Ledger {
    fn eq(&self, other: &Self) -> bool {
        self.profile.name == other.profile.name
            && self.places == other.places
            && self.holdings == other.holdings
    }
}

impl Ledger {
    /// All that `snapshot` holds.
    #[must_use]
    pub fn of(profile: &'static Profile, snapshot: &Snapshot) -> Self {
        let mut ledger = Self { profile, places: BTreeMap::new(), holdings: BTreeMap::new() };
        for (key, node) in snapshot.list("nodes") {
            ledger.node(&key.name, Some(node));
        }
        for (key, bound) in snapshot.list("pods") {
            let covered = pod::node(bound).map_or(0, |node| snapshot.status_covered(node));
            ledger.pod(key, Some(bound), covered);
        }
        ledger
    }

    /// Whose it is.
    #[must_use]
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// The nodes with what is taken of each, in the order of their names.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &KnownNode, &Amounts)> {
        let places = self.places.iter();
        places.filter_map(|(name, place)| Some((name.as_str(), place.node.as_ref()?, &place.taken)))
    }

    /// One node, with what is taken of it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<(&KnownNode, &Amounts)> {
        let place = self.places.get(name)?;
        Some((place.node.as_ref()?, &place.taken))
    }

    /// Where the pod under `key` is bound, and what is subtracted for it.
    #[must_use]
    pub fn subtracted(&self, key: &Key) -> Option<(&str, &Amounts)> {
        let holding = self.holdings.get(key).filter(|holding| holding.outstanding)?;
        Some((&holding.node, &holding.request))
    }

    /// A node was written, or is gone.
    pub fn node(&mut self, name: &str, object: Option<&Object>) {
        let node = object.map(|object| KnownNode::new(self.profile, Object::clone(object)));
        self.places.entry(name.to_owned()).or_default().node = node;
        self.drop_if_empty(name);
    }

    /// A pod was written, or is gone. `covered` is that of the node it is bound to now.
    pub fn pod(&mut self, key: &Key, object: Option<&Object>, covered: u64) {
        if let Some(old) = self.holdings.remove(key) {
            let place = self.places.entry(old.node.clone()).or_default();
            place.pods = place.pods.saturating_sub(1);
            if old.outstanding {
                place.taken.take_all(&old.request);
            }
            self.drop_if_empty(&old.node);
        }
        let Some((object, node)) = object.and_then(|object| Some((object, pod::node(object)?))) else {
            return;
        };
        let holding = Holding {
            node: node.to_owned(),
            request: (self.profile.request)(object),
            outstanding: (self.profile.outstanding)(object, covered),
        };
        let place = self.places.entry(node.to_owned()).or_default();
        place.pods += 1;
        if holding.outstanding {
            place.taken.add_all(&holding.request);
        }
        self.holdings.insert(key.clone(), holding);
    }

    /// The report of `node` covers another version; `pods` are those bound to it.
    pub fn covers<'a>(
        &mut self,
        node: &str,
        covered: u64,
        pods: impl Iterator<Item = (&'a Key, &'a Object)>,
    ) {
        let Some(place) = self.places.get_mut(node) else { return };
        for (key, object) in pods {
            let Some(holding) = self.holdings.get_mut(key) else { continue };
            let outstanding = (self.profile.outstanding)(object, covered);
            match (holding.outstanding, outstanding) {
                (true, false) => place.taken.take_all(&holding.request),
                (false, true) => place.taken.add_all(&holding.request),
                (true, true) | (false, false) => {}
            }
            holding.outstanding = outstanding;
        }
    }

    fn drop_if_empty(&mut self, name: &str) {
        if self.places.get(name).is_some_and(|place| place.node.is_none() && place.pods == 0) {
            self.places.remove(name);
        }
    }
}
