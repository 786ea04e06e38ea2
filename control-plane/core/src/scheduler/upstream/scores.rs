//! Ratings, each in whole hundredths as kube-scheduler's are.

use crate::scheduler::profile::Candidate;
use crate::scheduler::score::Share;
use crate::tolerations::{self, Effect};

use super::resources::{CPU, MEMORY, RATED_CPU, RATED_MEMORY};

/// Nano-units of a thousandth of a core, and of a byte: what kube-scheduler counts in.
const MILLI: i128 = 1_000_000;
const BYTE: i128 = 1_000_000_000;

/// The more is left the better: the mean over cpu and memory, of those that the node has.
pub(super) fn least_allocated(candidate: &Candidate<'_>) -> Share {
    let rated = [(CPU, RATED_CPU, MILLI), (MEMORY, RATED_MEMORY, BYTE)];
    let left: Vec<i128> = rated
        .into_iter()
        .filter_map(|(resource, rated, unit)| {
            let all = candidate.node.offer.get(resource) / unit;
            let used = (candidate.taken.get(rated) + candidate.wanted.request.get(rated)) / unit;
            (all > 0).then(|| if used > all { 0 } else { (all - used) * 100 / all })
        })
        .collect();
    let count = i128::try_from(left.len()).unwrap_or(0);
    hundredths(if count == 0 { 0 } else { left.iter().sum::<i128>() / count })
}

/// The more alike the used parts of cpu and memory the better.
pub(super) fn balanced_allocation(candidate: &Candidate<'_>) -> Share {
    let used = |resource: &str, unit: i128| {
        let all = candidate.node.offer.get(resource) / unit;
        let used = (candidate.taken.get(resource) + candidate.wanted.request.get(resource)) / unit;
        (all > 0).then(|| (used.clamp(0, all), all))
    };
    match (used(CPU, MILLI), used(MEMORY, BYTE)) {
        // Of two, the standard deviation is half of the difference.
        (Some((a, of_a)), Some((b, of_b))) => {
            let (difference, all) = ((a * of_b - b * of_a).abs(), 2 * of_a * of_b);
            hundredths(100 * (all - difference) / all)
        }
        _ => hundredths(100),
    }
}

/// The taints that would rather not have the pod.
pub(super) fn avoided_taints(candidate: &Candidate<'_>) -> u64 {
    // As in Kubernetes, only tolerations of this effect, or of all, count here.
    let tolerates = |taint| candidate.wanted.tolerations.iter().any(|it| tolerations::tolerates(it, taint));
    let soft = candidate.node.taints.iter().filter(|taint| taint.effect == Effect::PreferNoSchedule);
    u64::try_from(soft.filter(|taint| !tolerates(taint)).count()).unwrap_or(u64::MAX)
}

fn hundredths(n: i128) -> Share {
    Share::hundredths(u64::try_from(n).unwrap_or(0))
}
