//! Times in which no object can have changed: an act of the scenario kept the control plane from running, and nobody else writes
//! to its store. What the scenario itself writes there by etcdctl ends such a time.

use rigor_model::Margins;

use super::Bench;
use super::edges::Edge;
use crate::history::Micros;
use crate::interval::Interval;

/// From the end of a stop or kill to the begin of the next start.
pub(crate) type Away = (Micros, Micros);

/// The instants of an interval at which something can have been written; at least one interval, in order.
fn left_of(when: Interval, away: &[Away]) -> Vec<Interval> {
    let mut parts = vec![when];
    for (since, until) in away {
        parts = parts
            .into_iter()
            .flat_map(|part| {
                if *until <= part.earliest || part.latest <= *since {
                    return vec![part];
                }
                let before = (part.earliest <= *since).then(|| Interval::new(part.earliest, *since));
                let after = (*until <= part.latest).then(|| Interval::new(*until, part.latest));
                let left: Vec<Interval> = before.into_iter().chain(after).collect();
                // Something that was seen to come while nothing could: then what is known of the acts is not the whole truth.
                if left.is_empty() { vec![part] } else { left }
            })
            .collect();
    }
    parts
}

/// What can be said of something that lies in one of several intervals; nothing where they do not agree.
fn agreed(edges: impl IntoIterator<Item = Edge>) -> Option<Edge> {
    edges
        .into_iter()
        .map(Some)
        .reduce(|all, next| {
            Some(match (all?, next?) {
                (Edge::TooEarly(one), Edge::TooEarly(other)) => Edge::TooEarly(one.min(other)),
                (Edge::TooLate(one), Edge::TooLate(other)) => Edge::TooLate(one.min(other)),
                (Edge::Inside(one), Edge::Inside(other)) => Edge::Inside(either(one, other)),
                (Edge::Inside(_) | Edge::Unclear(_), _) | (_, Edge::Inside(_) | Edge::Unclear(_)) => {
                    return None;
                }
                (_, _) => Edge::Outside,
            })
        })
        .flatten()
}

/// The margins of something that has these or those.
fn either(one: Margins, other: Margins) -> Margins {
    Margins {
        early_micros: one.early_micros.max(other.early_micros),
        late_micros: one.late_micros.max(other.late_micros),
        uncertainty_micros: one.uncertainty_micros.max(other.uncertainty_micros),
    }
}

impl Bench<'_, '_> {
    /// The instants of an interval at which something can have been written.
    ///
    /// Only of a trial of ours can it be said that nobody else wrote: its control plane is the harness's, with a store of its own. What
    /// was accepted before a kill and seen by nobody lies before it, so a kill parts an interval as a stop does.
    pub(super) fn possible(&self, when: Interval) -> Vec<Interval> {
        let shared = |flag: &String| flag.starts_with("--store") || flag.starts_with("--etcd");
        if !self.staged || self.judge.scenario().flags.iter().any(shared) {
            return vec![when];
        }
        left_of(when, &self.view.away())
    }

    /// Where something lies that came in one of several intervals, where they agree about it; and words that say what lies between
    /// them.
    pub(super) fn in_parts(parts: &[Interval], place: impl Fn(Interval) -> Edge) -> (Option<Edge>, String) {
        let edge = agreed(parts.iter().map(|part| place(*part)));
        let gaps = parts.windows(2).filter_map(|pair| match pair {
            [before, after] => Some(format!("from {} to {}", before.latest, after.earliest)),
            _ => None,
        });
        let gaps: Vec<String> = gaps.collect();
        (edge, format!("the control plane was away {}", gaps.join(" and ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_without_the_times_in_which_nothing_is_written() {
        let interval = |(earliest, latest): (u64, u64)| Interval::new(Micros(earliest), Micros(latest));
        let check = |when: (u64, u64), away: &[(u64, u64)], expected: &[(u64, u64)]| {
            let away: Vec<Away> =
                away.iter().map(|(since, until)| (Micros(*since), Micros(*until))).collect();
            let expected: Vec<Interval> = expected.iter().copied().map(interval).collect();
            assert_eq!(left_of(interval(when), &away), expected, "{when:?} {away:?}");
        };
        check((10, 50), &[], &[(10, 50)]);
        check((10, 50), &[(20, 40)], &[(10, 20), (40, 50)]);
        check((10, 50), &[(20, 30), (35, 45)], &[(10, 20), (30, 35), (45, 50)]);
        // It begins or ends in one.
        check((25, 50), &[(20, 40)], &[(40, 50)]);
        check((10, 35), &[(20, 40)], &[(10, 20)]);
        check((20, 40), &[(20, 40)], &[(20, 20), (40, 40)]);
        // Beside it.
        check((10, 20), &[(20, 40)], &[(10, 20)]);
        check((40, 50), &[(20, 40)], &[(40, 50)]);
        // What cannot be.
        check((25, 35), &[(20, 40)], &[(25, 35)]);
    }
}
