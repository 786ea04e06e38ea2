//! What a profile reads of each node and each bound pod, kept as they change: one attempt then costs a look at each node and
//! none at any other pod.
//!
//! Figures of one resource lie side by side for all nodes, so that thousands of nodes are looked at at the speed of memory. A
//! ledger says what the snapshot says and nothing else: it can be made anew from a snapshot at any time, with the same content
//! (there is a property test of that).

use std::collections::BTreeMap;

use serde_json::Value;

use super::amounts::{Amounts, ResourceName};
use super::profile::Profile;
use crate::snapshot::{Key, Object, Snapshot};
use crate::tolerations::{self, Taint};
use crate::{conditions, json, pod};

/// A node, with what filters ask of it read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownNode {
    /// The node.
    pub object: Object,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// What it offers, as the profile reads it.
    pub offer: Amounts,
}

impl KnownNode {
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

/// What most nodes are asked about, in one byte each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Facts {
    /// Whether there is a node of that name.
    known: bool,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Whether its Ready condition is True.
    pub ready: bool,
    /// Whether it has any taint.
    pub tainted: bool,
}

/// How much a place has of one resource, and how much of that is taken, in nano-units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figure {
    /// What the node offers.
    pub offered: i128,
    /// What bound pods take that are to be subtracted.
    pub taken: i128,
}

/// A place that pods are bound to; there may be no node of that name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place {
    node: Option<KnownNode>,
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

/// One resource at every place.
#[derive(Debug, Clone)]
struct Column {
    resource: ResourceName,
    figures: Vec<Figure>,
}

/// The nodes and bound pods of a snapshot, as one profile reads them.
#[derive(Debug, Clone)]
pub struct Ledger {
    profile: &'static Profile,
    /// Where in the vectors below each place is.
    slots: BTreeMap<String, usize>,
    unused: Vec<usize>,
    facts: Vec<Facts>,
    places: Vec<Place>,
    columns: Vec<Column>,
    holdings: BTreeMap<Key, Holding>,
}

impl Ledger {
    /// All that `snapshot` holds.
    #[must_use]
    pub fn of(profile: &'static Profile, snapshot: &Snapshot) -> Self {
        let mut ledger = Self {
            profile,
            slots: BTreeMap::new(),
            unused: Vec::new(),
            facts: Vec::new(),
            places: Vec::new(),
            columns: Vec::new(),
            holdings: BTreeMap::new(),
        };
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

    /// The nodes in the order of their names, with where their figures are.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, usize)> {
        let slots = self.slots.iter().map(|(name, slot)| (name.as_str(), *slot));
        slots.filter(|(_, slot)| self.facts(*slot).known)
    }

    /// Where the figures of a node are.
    #[must_use]
    pub fn slot(&self, node: &str) -> Option<usize> {
        self.slots.get(node).copied().filter(|slot| self.facts(*slot).known)
    }

    /// What is known of the node there.
    #[must_use]
    pub fn facts(&self, slot: usize) -> Facts {
        self.facts.get(slot).copied().unwrap_or_default()
    }

    /// The node there.
    #[must_use]
    pub fn known(&self, slot: usize) -> Option<&KnownNode> {
        self.places.get(slot)?.node.as_ref()
    }

    /// The number of a resource, if any node or bound pod has something of it.
    #[must_use]
    pub fn column(&self, resource: &str) -> Option<usize> {
        // Most ask by the very name that a column was made with.
        let is_it = |column: &Column| {
            let name: &str = &column.resource;
            std::ptr::eq(name, resource) || name == resource
        };
        self.columns.iter().position(is_it)
    }

    /// How much there is of the resource with this number.
    #[must_use]
    pub fn figure(&self, column: usize, slot: usize) -> Figure {
        self.columns.get(column).and_then(|column| column.figures.get(slot)).copied().unwrap_or_default()
    }

    /// Where the pod under `key` is bound, and what is subtracted for it.
    #[must_use]
    pub fn subtracted(&self, key: &Key) -> Option<(&str, &Amounts)> {
        let holding = self.holdings.get(key).filter(|holding| holding.outstanding)?;
        Some((&holding.node, &holding.request))
    }

    /// A node was written, or is gone.
    pub fn node(&mut self, name: &str, object: Option<&Object>) {
        let slot = self.slot_for(name);
        let node = object.map(|object| KnownNode {
            taints: tolerations::taints(object).collect(),
            offer: (self.profile.offer)(object),
            object: Object::clone(object),
        });
        let facts = node.as_ref().map_or_else(Facts::default, |node| Facts {
            known: true,
            unschedulable: json::is_true(&node.object, &["spec", "unschedulable"]),
            ready: conditions::is_true(&node.object, "Ready"),
            tainted: !node.taints.is_empty(),
        });
        let Some(place) = self.places.get_mut(slot) else { return };
        let (new, old) = (node.as_ref().map(|node| node.offer.clone()), place.node.take());
        place.node = node;
        if let Some(held) = self.facts.get_mut(slot) {
            *held = facts;
        }
        for (offer, sign) in [(old.map(|node| node.offer), -1), (new, 1)] {
            for (resource, nanos) in offer.iter().flat_map(Amounts::named) {
                if let Some(figure) = self.figure_mut(resource, slot) {
                    figure.offered += sign * nanos;
                }
            }
        }
        self.drop_if_empty(name);
    }

    /// A pod was written, or is gone. `covered` is that of the node it is bound to now.
    pub fn pod(&mut self, key: &Key, object: Option<&Object>, covered: u64) {
        if let Some(old) = self.holdings.remove(key) {
            let slot = self.slot_for(&old.node);
            if let Some(place) = self.places.get_mut(slot) {
                place.pods = place.pods.saturating_sub(1);
            }
            if old.outstanding {
                self.take(slot, &old.request, -1);
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
        let slot = self.slot_for(node);
        if let Some(place) = self.places.get_mut(slot) {
            place.pods += 1;
        }
        if holding.outstanding {
            self.take(slot, &holding.request, 1);
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
        let Some(slot) = self.slots.get(node).copied() else { return };
        for (key, object) in pods {
            let Some(holding) = self.holdings.get_mut(key) else { continue };
            let outstanding = (self.profile.outstanding)(object, covered);
            if holding.outstanding != outstanding {
                holding.outstanding = outstanding;
                let request = holding.request.clone();
                self.take(slot, &request, if outstanding { 1 } else { -1 });
            }
        }
    }

    fn take(&mut self, slot: usize, request: &Amounts, sign: i128) {
        for (resource, nanos) in request.named() {
            if let Some(figure) = self.figure_mut(resource, slot) {
                figure.taken += sign * nanos;
            }
        }
    }

    fn figure_mut(&mut self, resource: &ResourceName, slot: usize) -> Option<&mut Figure> {
        let number = match self.column(resource) {
            Some(number) => number,
            None => {
                let figures = vec![Figure::default(); self.places.len()];
                self.columns.push(Column { resource: resource.clone(), figures });
                self.columns.len() - 1
            }
        };
        self.columns.get_mut(number)?.figures.get_mut(slot)
    }

    fn slot_for(&mut self, name: &str) -> usize {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            self.facts.push(Facts::default());
            for column in &mut self.columns {
                column.figures.push(Figure::default());
            }
            self.places.len() - 1
        });
        self.slots.insert(name.to_owned(), slot);
        slot
    }

    /// Nothing is left of an empty place: all its figures have come to nothing.
    fn drop_if_empty(&mut self, name: &str) {
        let Some(slot) = self.slots.get(name).copied() else { return };
        if self.places.get(slot).is_some_and(|place| place.node.is_none() && place.pods == 0) {
            self.slots.remove(name);
            self.unused.push(slot);
        }
    }

    /// Everything that it says, whatever lies where.
    fn content(&self) -> (&'static str, Vec<Said<'_>>, &BTreeMap<Key, Holding>) {
        let places = self.slots.iter().map(|(name, slot)| Said {
            name,
            facts: self.facts(*slot),
            place: self.places.get(*slot),
            figures: {
                let figures = (0..self.columns.len()).map(|column| self.figure(column, *slot));
                let named = self.columns.iter().map(|column| column.resource.as_ref()).zip(figures);
                named.filter(|(_, figure)| *figure != Figure::default()).collect()
            },
        });
        (self.profile.name, places.collect(), &self.holdings)
    }
}

/// What a ledger says of one place.
#[derive(PartialEq)]
struct Said<'a> {
    name: &'a str,
    facts: Facts,
    place: Option<&'a Place>,
    figures: BTreeMap<&'a str, Figure>,
}

impl PartialEq for Ledger {
    fn eq(&self, other: &Self) -> bool {
        self.content() == other.content()
    }
}
