//! What a profile is: a named table of filters and scores, and its rules of accounting.
//!
//! A profile is data; the choice in `choice.rs` knows none by name. Another dialect is another table.

use serde_json::Value;

use super::amounts::Amounts;
use super::score::Share;

/// A way to choose nodes.
#[derive(Debug)]
pub struct Profile {
    /// Its name, as flags and logs have it.
    pub name: &'static str,
    /// Reporting component of its events.
    pub component: &'static str,
    /// What a pod asks for.
    pub request: fn(&Value) -> Amounts,
    /// What a node offers.
    pub offer: fn(&Value) -> Amounts,
    /// Whether a pod that is bound is still to be subtracted from what its node offers, given the resourceVersion
    /// of the node's last report.
    pub outstanding: fn(pod: &Value, covered: u64) -> bool,
    /// In this order; a node is counted under the first filter that it fails.
    pub filters: &'static [Filter],
    /// The mean of these shares is the score; the highest wins.
    pub scores: &'static [ScorePlugin],
}

/// Rules nodes out.
#[derive(Debug)]
pub struct Filter {
    /// Its name.
    pub name: &'static str,
    /// Why this node will not do, in the words of the FailedScheduling message; empty if it will.
    pub reasons: fn(&Candidate<'_>) -> Vec<String>,
}

/// Rates nodes.
#[derive(Debug)]
pub struct ScorePlugin {
    /// Its name.
    pub name: &'static str,
    /// Its share of the score, from nothing to one.
    pub share: fn(&Candidate<'_>) -> Share,
}

/// A pod before a node that may take it.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// The pod.
    pub pod: &'a Value,
    /// The node.
    pub node: &'a Value,
    /// What the pod asks for.
    pub request: &'a Amounts,
    /// What the node offers in all.
    pub offer: Amounts,
    /// What of it is taken, before this pod.
    pub taken: Amounts,
}

impl Candidate<'_> {
    /// What is left of a resource before this pod, in nano-units; negative where pods were bound past the scheduler.
    #[must_use]
    pub fn free(&self, resource: &str) -> i128 {
        self.offer.get(resource) - self.taken.get(resource)
    }

    /// Whether the pod asks for more of a resource than is left. Asking for nothing always fits.
    #[must_use]
    pub fn is_short_of(&self, resource: &str) -> bool {
        let asked = self.request.get(resource);
        asked > 0 && asked > self.free(resource)
    }

    /// What is left of a resource after this pod, as a share of what the node offers; nothing where it offers none
    /// (SCHED-40, SCHED-42).
    #[must_use]
    pub fn share_left(&self, resource: &str) -> Share {
        Share::new(self.free(resource) - self.request.get(resource), self.offer.get(resource))
    }
}
