//! Ratings, each in whole hundredths as kube-scheduler's are.

use crate::scheduler::profile::Candidate;
use crate::scheduler::score::Share;
use crate::tolerations::{self, Effect};

use super::resources::{ASKED_CPU, ASKED_MEMORY, RATED_CPU, RATED_MEMORY};

/// What the node has of something, and what of it is used with this pod, as far as that is rated.
fn figures(candidate: &Candidate<'_>, offered: &str, asked: &str) -> Option<(i64, i64)> {
    let small = |units: i128| i64::try_from(units).unwrap_or(i64::MAX);
    let all = small(candidate.figure(offered).offered);
    let used = candidate.figure(asked).taken + candidate.wanted().request.get(asked);
    (all > 0).then(|| (small(used), all))
}

/// The more is left the better: the mean over cpu and memory, of those that the node has.
pub(super) fn least_allocated(candidate: &Candidate<'_>) -> Share {
    let left = |resource| {
        let (used, all) = figures(candidate, resource, resource)?;
        Some(if used > all { 0 } else { hundredths_of(all - used, all) })
    };
    match (left(RATED_CPU), left(RATED_MEMORY)) {
        (Some(cpu), Some(memory)) => Share::hundredths(u64::midpoint(cpu, memory)),
        (Some(only), None) | (None, Some(only)) => Share::hundredths(only),
        (None, None) => Share::hundredths(0),
    }
}

/// The more alike the used parts of cpu and memory the better.
pub(super) fn balanced_allocation(candidate: &Candidate<'_>) -> Share {
    let used = |offered, asked| {
        let (used, all) = figures(candidate, offered, asked)?;
        Some((i128::from(used.clamp(0, all)), i128::from(all)))
    };
    match (used(RATED_CPU, ASKED_CPU), used(RATED_MEMORY, ASKED_MEMORY)) {
        // Of two, the standard deviation is half of the difference.
        (Some((a, of_a)), Some((b, of_b))) => {
            let (difference, all) = ((a * of_b - b * of_a).unsigned_abs(), 2 * (of_a * of_b).unsigned_abs());
            match (u64::try_from(difference), u64::try_from(all)) {
                (Ok(difference), Ok(all)) if all < u64::MAX / 100 => {
                    Share::hundredths(100 * (all - difference) / all)
                }
                _ => Share::hundredths(u64::try_from(100 * (all - difference) / all).unwrap_or(0)),
            }
        }
        _ => Share::hundredths(100),
    }
}

/// `part / all` in hundredths, rounded down; `part` is not negative.
fn hundredths_of(part: i64, all: i64) -> u64 {
    let hundredths = match part.checked_mul(100) {
        Some(part) => part / all,
        None => i64::try_from(i128::from(part) * 100 / i128::from(all)).unwrap_or(0),
    };
    u64::try_from(hundredths).unwrap_or(0)
}

/// The taints that would rather not have the pod.
pub(super) fn avoided_taints(candidate: &Candidate<'_>) -> u64 {
    if !candidate.facts.tainted {
        return 0;
    }
    // As in Kubernetes, only tolerations of this effect, or of all, count here.
    let tolerates = |taint| candidate.wanted().tolerations.iter().any(|it| tolerations::tolerates(it, taint));
    let taints = candidate.node().map_or(&[][..], |node| &node.taints);
    let soft = taints.iter().filter(|taint| taint.effect == Effect::PreferNoSchedule);
    u64::try_from(soft.filter(|taint| !tolerates(taint)).count()).unwrap_or(u64::MAX)
}
