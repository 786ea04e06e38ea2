//! Where a DaemonSet's pods are and should be, kept from pass to pass: a pass looks again only at the places where something
//! changed.
//!
//! A roster says what the snapshot says and nothing else: whatever was kept, the decision is that of one made anew (there is a
//! property test of that).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::basis::{Basis, target};
use super::place::{Figures, Place};
use crate::snapshot::{Key, Object, Snapshot, Touch};
use crate::time::Now;

/// The places of one DaemonSet. One that was kept goes with the snapshot that it was kept over, as that changes.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    kept: Option<Kept>,
}

impl Roster {
    /// Brings it up to date; nothing where the DaemonSet's selector cannot be read.
    pub(super) fn look(&mut self, snapshot: &Snapshot, daemon_set: &Object, now: &Now) -> Option<&Kept> {
        let kept = self.kept.take().filter(|kept| kept.basis.is_of(daemon_set));
        self.kept = match kept.and_then(|kept| kept.follow(snapshot, now)) {
            Some(kept) => Some(kept),
            None => Basis::of(daemon_set).map(|basis| Kept::all(basis, snapshot, now)),
        };
        self.kept.as_ref()
    }
}

/// Where a pod is, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Spot {
    /// On the place with this hostname, or meant for it.
    Host(String),
    /// Nowhere: its node is gone, or it is meant for none.
    Nowhere,
    /// The selector does not match it any more.
    Released,
}

/// The places, and what follows from all of them together.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) basis: Basis,
    /// The number of the last change that is in.
    seen: u64,
    places: BTreeMap<String, Place>,
    spots: BTreeMap<Key, Spot>,
    by_host: BTreeMap<String, BTreeSet<Key>>,
    /// Pods that are on no place.
    pub(super) strays: BTreeSet<Key>,
    /// Pods that the selector does not match any more.
    pub(super) released: BTreeSet<Key>,
    pub(super) figures: Figures,
    /// Places with a pod to make or to take away.
    untended: BTreeSet<String>,
    /// Places whose old pod can give way, in the order in which they do.
    pub(super) old: BTreeSet<((bool, bool), String)>,
    /// Places where a pod becomes available by time alone.
    maturing: BTreeSet<(Duration, String)>,
    /// Those of them for which that instant moves.
    uncertain: BTreeSet<String>,
}

impl Kept {
    /// Looks at every node and pod.
    fn all(basis: Basis, snapshot: &Snapshot, now: &Now) -> Self {
        let mut kept = Self {
            basis,
            seen: snapshot.touched(),
            places: BTreeMap::new(),
            spots: BTreeMap::new(),
            by_host: BTreeMap::new(),
            strays: BTreeSet::new(),
            released: BTreeSet::new(),
            figures: Figures::default(),
            untended: BTreeSet::new(),
            old: BTreeSet::new(),
            maturing: BTreeSet::new(),
            uncertain: BTreeSet::new(),
        };
        let mut hosts: BTreeSet<String> =
            snapshot.list("nodes").map(|(_, node)| super::host(node).to_owned()).collect();
        let uid = kept.basis.uid().to_owned();
        for (key, _) in snapshot.pods_of(&uid) {
            kept.move_pod(snapshot, key, &mut hosts);
        }
        for host in &hosts {
            kept.judge(snapshot, host, now);
        }
        kept
    }

    /// Looks at what changed since the last time; nothing where that is not known.
    fn follow(mut self, snapshot: &Snapshot, now: &Now) -> Option<Self> {
        let mut hosts: BTreeSet<String> = self.uncertain.clone();
        let due = self.maturing.iter().take_while(|(at, _)| *at <= now.mono);
        hosts.extend(due.map(|(_, host)| host.clone()));
        for touch in snapshot.touches_after(self.seen)? {
            match touch {
                Touch::Pod { owner, key } if owner == self.basis.uid() => {
                    self.move_pod(snapshot, key, &mut hosts);
                }
                Touch::Pod { .. } => {}
                Touch::Node { name, hosts: of_node } => {
                    hosts.extend(of_node.iter().flatten().cloned());
                    // Its pods are where it is.
                    for (key, _) in snapshot.pods_on(name) {
                        self.move_pod(snapshot, key, &mut hosts);
                    }
                }
            }
        }
        self.seen = snapshot.touched();
        for host in &hosts {
            self.judge(snapshot, host, now);
        }
        Some(self)
    }

    /// Notes where a pod is now; the places that it is on, or was, are then to be judged.
    fn move_pod(&mut self, snapshot: &Snapshot, key: &Key, hosts: &mut BTreeSet<String>) {
        if let Some(Spot::Host(host)) = self.spots.remove(key) {
            if let Some(keys) = self.by_host.get_mut(&host) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_host.remove(&host);
                }
            }
            hosts.insert(host);
        }
        self.strays.remove(key);
        self.released.remove(key);
        let Some(pod) = snapshot.at("pods", key).filter(|pod| self.basis.owns(pod)) else { return };
        let spot = if !self.basis.selects(pod) {
            Spot::Released
        } else {
            target(snapshot, pod).map_or(Spot::Nowhere, |host| Spot::Host(host.to_owned()))
        };
        match &spot {
            Spot::Released => drop(self.released.insert(key.clone())),
            Spot::Nowhere => drop(self.strays.insert(key.clone())),
            Spot::Host(host) => {
                self.by_host.entry(host.clone()).or_default().insert(key.clone());
                hosts.insert(host.clone());
            }
        }
        self.spots.insert(key.clone(), spot);
    }

    /// Makes a place anew from what is there.
    fn judge(&mut self, snapshot: &Snapshot, host: &str, now: &Now) {
        if let Some(old) = self.places.remove(host) {
            self.figures = self.figures.with(old.figures(), u64::wrapping_sub);
            self.untended.remove(host);
            if let Some(turn) = old.turn() {
                self.old.remove(&(turn, host.to_owned()));
            }
            for at in old.pods.iter().filter_map(|daemon| daemon.available_at) {
                self.maturing.remove(&(at, host.to_owned()));
            }
            self.uncertain.remove(host);
        }
        let keys = self.by_host.get(host);
        let Some(place) = Place::of(snapshot, &self.basis, host, keys, now) else {
            self.strays.extend(keys.into_iter().flatten().cloned());
            return;
        };
        for key in keys.into_iter().flatten() {
            self.strays.remove(key);
        }
        self.figures = self.figures.with(place.figures(), u64::wrapping_add);
        if place.needs_tending() {
            self.untended.insert(host.to_owned());
        }
        if let Some(turn) = place.turn() {
            self.old.insert((turn, host.to_owned()));
        }
        self.maturing.extend(
            place.pods.iter().filter_map(|daemon| daemon.available_at).map(|at| (at, host.to_owned())),
        );
        if place.pods.iter().any(|daemon| daemon.is_uncertain) {
            self.uncertain.insert(host.to_owned());
        }
        self.places.insert(host.to_owned(), place);
    }

    /// The place with this hostname.
    pub(super) fn place(&self, host: &str) -> Option<&Place> {
        self.places.get(host)
    }

    /// The places with a pod to make or to take away, by hostname.
    pub(super) fn untended(&self) -> impl Iterator<Item = (&str, &Place)> {
        self.untended.iter().filter_map(|host| Some((host.as_str(), self.places.get(host)?)))
    }

    /// The next instant at which a pod becomes available.
    pub(super) fn next_available(&self) -> Option<Duration> {
        self.maturing.first().map(|(at, _)| *at)
    }
}
