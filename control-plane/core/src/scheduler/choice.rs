//! The choice itself: every node through the filters, the rest by score, ties by name; or the message that says why
//! there is none (SCHED-06, SCHED-41, SCHED-51, SCHED-52).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value;

use super::accounting::{Assumed, Beside};
use super::ledger::Ledger;
use super::profile::{Candidate, Filter, Profile, Rate, Reason, Wanted};
use super::score::{Score, Share, Sum};
use crate::json;
use crate::snapshot::{Key, Snapshot};

/// What came of looking for a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The pod goes here.
    Bind {
        /// Name of the node.
        node: String,
        /// Its score, the highest of all.
        score: Score,
        /// So many nodes passed the filters.
        feasible: usize,
    },
    /// The pod goes nowhere for now.
    Unschedulable {
        /// Message of the FailedScheduling event and of the PodScheduled condition.
        message: String,
    },
}

/// What a profile makes of one node for one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// Name of the node.
    pub node: String,
    /// Every filter in order, with its reasons where the node fails it. Only the first that fails counts.
    pub filters: Vec<(&'static str, Vec<Reason>)>,
    /// Every rating with its weight, where the node passed the filters.
    pub ratings: Option<Vec<(&'static str, u32, Share)>>,
}

/// Everything that one attempt looks at.
struct Attempt<'a> {
    profile: &'static Profile,
    ledger: Cow<'a, Ledger>,
    snapshot: &'a Snapshot,
    assumed: &'a Assumed,
    wanted: Wanted<'a>,
    /// Those that can rule out any node for this pod.
    filters: Vec<&'static Filter>,
    key: Key,
}

impl<'a> Attempt<'a> {
    fn new(profile: &'static Profile, pod: &'a Value, snapshot: &'a Snapshot, assumed: &'a Assumed) -> Self {
        let ledger = snapshot.ledger(profile);
        let wanted = Wanted::new(&ledger, pod);
        let filters = profile.filters.iter().filter(|filter| (filter.applies)(&wanted)).collect();
        Self { profile, ledger, snapshot, assumed, wanted, filters, key: Key::of(pod) }
    }

    fn beside(&self) -> Beside {
        Beside::new(&self.ledger, self.snapshot, self.assumed, &self.key)
    }

    fn candidate<'s>(&'s self, slot: usize, beside: &'s Beside) -> Candidate<'s> {
        Candidate::new(&self.wanted, (&self.ledger, slot), beside.on(slot), self.snapshot, self.assumed)
    }

    /// The first filter that the node fails; its reasons are left in `reasons`, which is empty otherwise.
    fn first_failed(&self, candidate: &Candidate<'_>, reasons: &mut Vec<Reason>) -> Option<&'static Filter> {
        reasons.clear();
        self.filters.iter().copied().find(|filter| {
            (filter.reasons)(candidate, reasons);
            !reasons.is_empty()
        })
    }

    /// The most that any of these nodes has of what each plugin wants few of.
    fn most<'s>(&self, candidates: impl Iterator<Item = &'s Candidate<'s>> + Clone) -> Vec<u64> {
        let of = |rate: &Rate| match rate {
            Rate::Share(_) => 0,
            Rate::Fewest(count) => candidates.clone().map(count).max().unwrap_or(0),
        };
        self.profile.scores.iter().map(|plugin| of(&plugin.rate)).collect()
    }

    fn ratings<'s>(
        &'s self,
        candidate: &'s Candidate<'_>,
        most: &'s [u64],
    ) -> impl Iterator<Item = (&'static str, u32, Share)> {
        self.profile.scores.iter().zip(most).map(|(plugin, most)| {
            let share = match plugin.rate {
                Rate::Share(share) => share(candidate),
                Rate::Fewest(_) if *most == 0 => Share::hundredths(100),
                Rate::Fewest(count) => Share::hundredths(100 - 100 * count(candidate) / most),
            };
            (plugin.name, plugin.weight, share)
        })
    }

    /// The highest score. The nodes come in the order of their names, and the first of equals is kept.
    fn best<'s>(&self, candidates: &'s [Candidate<'_>]) -> Option<(&'s Candidate<'s>, Score)> {
        let most = self.most(candidates.iter());
        let sum =
            |it: &Candidate<'_>| Sum::of(self.ratings(it, &most).map(|(_, weight, share)| (weight, share)));
        let mut rest = candidates.iter();
        let mut best = rest.next().map(|first| (first, sum(first)))?;
        for candidate in rest {
            let own = sum(candidate);
            let quick = own.as_ref().zip(best.1.as_ref()).and_then(|(own, best)| own.compare(best));
            let order = quick.unwrap_or_else(|| self.score(candidate, &most).cmp(&self.score(best.0, &most)));
            if order == Ordering::Greater {
                best = (candidate, own);
            }
        }
        Some((best.0, self.score(best.0, &most)))
    }

    fn score(&self, candidate: &Candidate<'_>, most: &[u64]) -> Score {
        Score::mean_of(self.ratings(candidate, most).map(|(_, weight, share)| (weight, share)).collect())
    }
}

/// Looks for a node for `pod`, which may be in the snapshot or not yet.
#[must_use]
pub fn schedule(profile: &'static Profile, pod: &Value, snapshot: &Snapshot, assumed: &Assumed) -> Verdict {
    let attempt = Attempt::new(profile, pod, snapshot, assumed);
    let beside = attempt.beside();
    let (mut feasible, mut failures) = (Vec::new(), Failures::default());
    let mut reasons = Vec::new();
    for (_, slot) in attempt.ledger.nodes() {
        let candidate = attempt.candidate(slot, &beside);
        match attempt.first_failed(&candidate, &mut reasons) {
            Some(filter) => failures.count(filter, &mut reasons),
            None => feasible.push(candidate),
        }
    }
    match attempt.best(&feasible) {
        Some((best, score)) => {
            Verdict::Bind { node: best.name().to_owned(), score, feasible: feasible.len() }
        }
        None => Verdict::Unschedulable { message: failures.message(profile, pod) },
    }
}

/// Whether `pod` would fit on this one node: what a change there can have helped.
#[must_use]
pub fn fits_on(
    profile: &'static Profile,
    pod: &Value,
    snapshot: &Snapshot,
    assumed: &Assumed,
    node: &str,
) -> bool {
    let attempt = Attempt::new(profile, pod, snapshot, assumed);
    let beside = attempt.beside();
    attempt.ledger.slot(node).is_some_and(|slot| {
        let candidate = attempt.candidate(slot, &beside);
        attempt.first_failed(&candidate, &mut Vec::new()).is_none()
    })
}

/// Every node's verdicts and ratings, in the order of the names.
#[must_use]
pub fn explain(
    profile: &'static Profile,
    pod: &Value,
    snapshot: &Snapshot,
    assumed: &Assumed,
) -> Vec<Explained> {
    let attempt = Attempt::new(profile, pod, snapshot, assumed);
    let beside = attempt.beside();
    let nodes = attempt.ledger.nodes().map(|(name, slot)| (name, attempt.candidate(slot, &beside)));
    let judged = nodes.map(|(name, candidate)| {
        let passes = attempt.first_failed(&candidate, &mut Vec::new()).is_none();
        (name, candidate, passes)
    });
    let judged: Vec<_> = judged.collect();
    let most = attempt.most(judged.iter().filter(|(.., passes)| *passes).map(|(_, candidate, _)| candidate));
    let filters = |candidate: &Candidate<'_>| {
        let verdict = |filter: &Filter| {
            let mut reasons = Vec::new();
            (filter.reasons)(candidate, &mut reasons);
            (filter.name, reasons)
        };
        profile.filters.iter().map(verdict).collect()
    };
    let explained = judged.iter().map(|(name, candidate, passes)| Explained {
        node: (*name).to_owned(),
        filters: filters(candidate),
        ratings: passes.then(|| attempt.ratings(candidate, &most).collect()),
    });
    explained.collect()
}

/// Reasons counted over nodes.
#[derive(Default)]
struct Failures {
    nodes: usize,
    reasons: BTreeMap<Reason, usize>,
    /// Nodes that might do without some of their pods.
    full: usize,
}

impl Failures {
    fn count(&mut self, filter: &Filter, reasons: &mut Vec<Reason>) {
        self.nodes += 1;
        self.full += usize::from(filter.depends_on_pods);
        for reason in reasons.drain(..) {
            *self.reasons.entry(reason).or_default() += 1;
        }
    }

    /// kube-scheduler's message: counted reasons as strings, sorted bytewise, the count included.
    fn message(&self, profile: &Profile, pod: &Value) -> String {
        if self.nodes == 0 {
            return "no nodes available to schedule pods".to_owned();
        }
        let counts = self.reasons.iter().map(|(reason, count)| (reason.as_ref(), *count));
        let message = counted(self.nodes, counts);
        if !profile.tells_preemption {
            return message;
        }
        if json::text(pod, &["spec", "preemptionPolicy"]) == Some("Never") {
            return format!("{message} preemption: not eligible due to preemptionPolicy=Never.");
        }
        let outcomes = [
            ("No preemption victims found for incoming pod", self.full),
            ("Preemption is not helpful for scheduling", self.nodes - self.full),
        ];
        let told = outcomes.into_iter().filter(|(_, count)| *count > 0);
        format!("{message} preemption: {}", counted(self.nodes, told))
    }
}

fn counted<'a>(nodes: usize, counts: impl Iterator<Item = (&'a str, usize)>) -> String {
    let mut counted: Vec<String> = counts.map(|(reason, count)| format!("{count} {reason}")).collect();
    counted.sort_unstable();
    format!("0/{nodes} nodes are available: {}.", counted.join(", "))
}
