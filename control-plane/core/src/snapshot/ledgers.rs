//! What schedulers read, kept as it changes.

use std::borrow::Cow;

use super::{Key, Snapshot};
use crate::pod;
use crate::scheduler::{Ledger, Profile};

impl Snapshot {
    /// Keeps what `profile` reads from now on, so that its attempts need not gather it.
    pub fn keep_ledger(&mut self, profile: &'static Profile) {
        if !self.ledgers.iter().any(|ledger| ledger.profile().name == profile.name) {
            self.ledgers.push(Ledger::of(profile, self));
        }
    }

    /// What `profile` reads: as it was kept, or gathered now.
    #[must_use]
    pub fn ledger(&self, profile: &'static Profile) -> Cow<'_, Ledger> {
        let kept = self.ledgers.iter().find(|ledger| ledger.profile().name == profile.name);
        kept.map_or_else(|| Cow::Owned(Ledger::of(profile, self)), Cow::Borrowed)
    }

    /// Lets the ledgers know of a change.
    pub(super) fn enter(&mut self, resource: &str, key: &Key) {
        if self.ledgers.is_empty() || !matches!(resource, "nodes" | "pods") {
            return;
        }
        let mut ledgers = std::mem::take(&mut self.ledgers);
        let object = self.at(resource, key);
        let covered = object.and_then(|it| pod::node(it)).map_or(0, |node| self.status_covered(node));
        for ledger in &mut ledgers {
            match resource {
                "nodes" => ledger.node(&key.name, object),
                _ => ledger.pod(key, object, covered),
            }
        }
        self.ledgers = ledgers;
    }

    /// Lets the ledgers know that a node's report covers another version.
    pub(super) fn enter_covered(&mut self, node: &str) {
        let mut ledgers = std::mem::take(&mut self.ledgers);
        for ledger in &mut ledgers {
            ledger.covers(node, self.status_covered(node), self.pods_on(node));
        }
        self.ledgers = ledgers;
    }
}
