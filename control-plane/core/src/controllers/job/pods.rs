//! Which pods to make and which to take away while a Job runs (JOB-01, JOB-08).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde_json::Value;

use super::census::{Census, Wanted};
use super::{indexes, is_tracked, template, untracked};
use crate::controllers::children::{self, Children, Owner};
use crate::json;
use crate::pod::{self, Phase};
use crate::snapshot::Object;

/// So many pods are made in one pass.
const MOST: usize = 500;

/// Makes what is missing, or else takes away what is too much: whoever does both at once may have too many.
pub(super) fn manage(children: &mut Children<'_>, owner: &Owner<'_>, wanted: &Wanted, census: &Census<'_>) {
    let surplus = surplus(wanted, census);
    if !surplus.is_empty() {
        for pod in surplus {
            take_away(children, pod);
        }
        return;
    }
    if wanted.suspended {
        return;
    }
    let missing = active_wanted(wanted, census).saturating_sub(census.active.len() + census.leaving);
    if wanted.indexed {
        let completions = wanted.completions.unwrap_or(0);
        let taken: BTreeSet<usize> =
            census.active.iter().filter_map(|pod| indexes::of(pod, completions)).collect();
        let free = (0..completions)
            .filter(|index| !census.succeeded_indexes.contains(index) && !taken.contains(index));
        for index in free.take(missing.min(MOST)) {
            children.make(template::pod(owner, Some(index)));
        }
    } else {
        for _ in 0..missing.min(MOST) {
            children.make(template::pod(owner, None));
        }
    }
}

/// How many pods are to be active.
fn active_wanted(wanted: &Wanted, census: &Census<'_>) -> usize {
    let succeeded = census.succeeded(wanted);
    match wanted.completions {
        _ if wanted.suspended => 0,
        Some(completions) => completions.saturating_sub(succeeded).min(wanted.parallelism),
        // What runs may end, and nothing is made any more.
        None if succeeded > 0 => census.active.len().min(wanted.parallelism),
        None => wanted.parallelism,
    }
}

/// The active pods that are too many: those that could not be counted, those whose index is taken or not asked for,
/// then those that are missed least.
fn surplus<'a>(wanted: &Wanted, census: &Census<'a>) -> Vec<&'a Object> {
    let (mut standing, mut surplus) = (Vec::new(), Vec::new());
    let mut taken = BTreeSet::new();
    let mut active = census.active.clone();
    active.sort_by_cached_key(|pod| Reverse(worth(pod)));
    for pod in active {
        let index = indexes::of(pod, wanted.completions.unwrap_or(0));
        let is_free = |index| !census.succeeded_indexes.contains(&index) && taken.insert(index);
        if is_tracked(pod) && (!wanted.indexed || index.is_some_and(is_free)) {
            standing.push(pod);
        } else {
            surplus.push(pod);
        }
    }
    surplus.extend(standing.into_iter().skip(active_wanted(wanted, census)));
    surplus
}

/// The most missed is the greatest: bound, running, ready, old.
fn worth(pod: &Value) -> (bool, Phase, bool, Reverse<String>, Reverse<String>) {
    let created = json::text(pod, &["metadata", "creationTimestamp"]).unwrap_or_default();
    let (created, name) = (created.to_owned(), json::name(pod).to_owned());
    (pod::node(pod).is_some(), Phase::of(pod), pod::is_ready(pod), Reverse(created), Reverse(name))
}

/// Deletes a pod that is too much. It did not fail, so it goes without being counted.
fn take_away(children: &mut Children<'_>, pod: &Value) {
    if is_tracked(pod) {
        children.writes.push(untracked(pod));
    }
    children.delete(pod, None);
}

/// Lets go of a pod that no longer matches the selector.
pub(super) fn release(children: &mut Children<'_>, pod: &Value, job: &Value) {
    if is_tracked(pod) {
        children.writes.push(untracked(pod));
    } else {
        children.writes.push(children::release(pod, job));
    }
}
