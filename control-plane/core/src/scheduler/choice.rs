//! The choice itself: every node through the filters, the rest by score, ties by name; or the message that says why
//! there is none (SCHED-06, SCHED-41, SCHED-51, SCHED-52).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value;

use super::accounting::{self, Assumed};
use super::profile::{Candidate, Profile};
use super::score::Score;
use crate::snapshot::{Key, Snapshot};

/// What came of looking for a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The pod goes here.
    Bind {
        /// Name of the node.
        node: String,
        /// The score of every node that passed the filters.
        scores: BTreeMap<String, Score>,
    },
    /// The pod goes nowhere for now.
    Unschedulable {
        /// Message of the FailedScheduling event and of the PodScheduled condition.
        message: String,
        /// Why not, by name of the node: the reasons of the first filter that it failed.
        per_node: BTreeMap<String, Vec<String>>,
    },
}

/// Looks for a node for `pod`, which may be in the snapshot or not yet.
#[must_use]
pub fn schedule(profile: &Profile, pod: &Value, snapshot: &Snapshot, assumed: &Assumed) -> Verdict {
    let request = (profile.request)(pod);
    let mut taken = accounting::taken(profile, snapshot, assumed, &Key::of(pod));
    let mut scores = BTreeMap::new();
    let mut per_node = BTreeMap::new();
    for (key, node) in snapshot.list("nodes") {
        let taken = taken.remove(&key.name).unwrap_or_default();
        let candidate = Candidate { pod, node, request: &request, offer: (profile.offer)(node), taken };
        let failed =
            profile.filters.iter().map(|filter| (filter.reasons)(&candidate)).find(|r| !r.is_empty());
        match failed {
            Some(reasons) => {
                per_node.insert(key.name.clone(), reasons);
            }
            None => {
                let shares = profile.scores.iter().map(|plugin| (plugin.share)(&candidate)).collect();
                scores.insert(key.name.clone(), Score::mean_of(shares));
            }
        }
    }
    match scores.iter().min_by_key(|(name, score)| (Reverse(*score), *name)) {
        Some((node, _)) => Verdict::Bind { node: node.clone(), scores },
        None => Verdict::Unschedulable { message: message(&per_node), per_node },
    }
}

/// kube-scheduler's message: counted reasons as strings, sorted bytewise, the count included.
fn message(per_node: &BTreeMap<String, Vec<String>>) -> String {
    if per_node.is_empty() {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in per_node.values().flatten() {
        *counts.entry(reason).or_default() += 1;
    }
    let mut counted: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    counted.sort_unstable();
    format!("0/{} nodes are available: {}.", per_node.len(), counted.join(", "))
}
