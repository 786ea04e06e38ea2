//! The two edges of a window. Too early or too late only if it is certain over both intervals; what is
//! uncertain by more than the slack is undecided.

use std::time::Duration;

use rigor_model::Margins;

use crate::history::Micros;
use crate::interval::Interval;

/// Where something lies with respect to a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// Certainly before it, by at least so much.
    TooEarly(Duration),
    /// Certainly after it, by at least so much.
    TooLate(Duration),
    /// Certainly before it or after it.
    Outside,
    /// Not certainly outside.
    Inside(Margins),
    /// It may be either, and what is known is too coarse to say.
    Unclear(Duration),
}

/// Where `effect` lies between two edges, of which either may be absent.
pub(super) fn place(
    effect: Interval,
    not_before: Option<Interval>,
    not_after: Option<Interval>,
    slack: Duration,
) -> Edge {
    if let Some(edge) = not_before.filter(|edge| effect.is_before(*edge)) {
        return Edge::TooEarly(edge.earliest.since(effect.latest));
    }
    if let Some(edge) = not_after.filter(|edge| edge.is_before(effect)) {
        return Edge::TooLate(effect.earliest.since(edge.latest));
    }
    let clear_of_early = not_before.is_none_or(|edge| effect.earliest >= edge.latest);
    let clear_of_late = not_after.is_none_or(|edge| effect.latest <= edge.earliest);
    let early_doubt = not_before.map_or(Duration::ZERO, |edge| edge.width());
    let late_doubt = not_after.map_or(Duration::ZERO, |edge| edge.width());
    let doubt = |edge: Duration, clear: bool| if clear { Duration::ZERO } else { effect.width() + edge };
    let worst = doubt(early_doubt, clear_of_early).max(doubt(late_doubt, clear_of_late));
    if worst > slack {
        return Edge::Unclear(worst);
    }
    Edge::Inside(Margins {
        early_micros: not_before.map(|edge| difference(effect.latest, edge.earliest)),
        late_micros: not_after.map(|edge| difference(edge.latest, effect.earliest)),
        uncertainty_micros: Micros::from_duration(effect.width() + early_doubt.max(late_doubt)).0,
    })
}

/// `later` less `earlier`, in microseconds.
fn difference(later: Micros, earlier: Micros) -> i64 {
    let signed = |at: Micros| i64::try_from(at.0).unwrap_or(i64::MAX);
    signed(later).saturating_sub(signed(earlier))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(earliest: u64, latest: u64) -> Interval {
        Interval::new(Micros(earliest * 1000), Micros(latest * 1000))
    }

    #[test]
    fn only_what_is_certain_is_a_failure() {
        let slack = Duration::from_millis(50);
        let check = |effect: Interval, expected: &str| {
            let edge = place(effect, Some(millis(1000, 1010)), Some(millis(2000, 2010)), slack);
            let shown = match edge {
                Edge::TooEarly(by) => format!("early by {by:?}"),
                Edge::TooLate(by) => format!("late by {by:?}"),
                Edge::Outside => "outside".to_owned(),
                Edge::Inside(margins) => format!(
                    "inside {} {} ±{}",
                    margins.early_micros.unwrap_or_default() / 1000,
                    margins.late_micros.unwrap_or_default() / 1000,
                    margins.uncertainty_micros / 1000
                ),
                Edge::Unclear(doubt) => format!("unclear {doubt:?}"),
            };
            assert_eq!(shown, expected, "{effect}");
        };
        check(millis(900, 999), "early by 1ms");
        check(millis(990, 1000), "inside 0 1020 ±20");
        check(millis(940, 1001), "unclear 71ms");
        check(millis(1500, 1500), "inside 500 510 ±10");
        check(millis(1010, 1900), "inside 900 1000 ±900");
        check(millis(2009, 2040), "inside 1040 1 ±41");
        check(millis(1990, 2060), "unclear 80ms");
        check(millis(2011, 2500), "late by 1ms");
    }

    /// An interval and an instant in it.
    fn instant() -> impl Strategy<Value = (Interval, u64)> {
        (0_u64..400, 0_u64..60).prop_flat_map(|(earliest, width)| {
            let interval = Interval::new(Micros(earliest), Micros(earliest + width));
            (Just(interval), earliest..=earliest + width)
        })
    }

    proptest! {
        /// A verdict never contradicts what really happened, wherever in their intervals the instants were.
        #[test]
        fn a_verdict_holds_of_every_instant_that_may_have_been(
            (effect, when) in instant(), (lower, not_before) in instant(), (upper, not_after) in instant(), slack in 0_u64..50,
        ) {
            let slack = Duration::from_micros(slack);
            match place(effect, Some(lower), Some(upper), slack) {
                Edge::TooEarly(by) => prop_assert!(when + by.as_micros() as u64 <= not_before && when < not_before),
                Edge::TooLate(by) => prop_assert!(when >= not_after + by.as_micros() as u64 && when > not_after),
                Edge::Inside(margins) => {
                    // What really was outside was so by no more than the slack.
                    prop_assert!(not_before.saturating_sub(when) <= slack.as_micros() as u64);
                    prop_assert!(when.saturating_sub(not_after) <= slack.as_micros() as u64);
                    prop_assert!(margins.early_micros.unwrap_or_default() >= when as i64 - not_before as i64);
                    prop_assert!(margins.late_micros.unwrap_or_default() >= not_after as i64 - when as i64);
                }
                Edge::Outside => prop_assert!(when < not_before || when > not_after),
                Edge::Unclear(doubt) => prop_assert!(doubt > slack),
            }
        }

        /// Knowing more never turns a certain verdict into its opposite.
        #[test]
        fn a_narrower_interval_keeps_what_was_certain((effect, when) in instant(), (lower, _) in instant(), (upper, _) in instant()) {
            let exact = Interval::exactly(Micros(when));
            let (wide, narrow) = (
                place(effect, Some(lower), Some(upper), Duration::ZERO),
                place(exact, Some(lower), Some(upper), Duration::ZERO),
            );
            match wide {
                Edge::TooEarly(_) => prop_assert!(matches!(narrow, Edge::TooEarly(_))),
                Edge::TooLate(_) => prop_assert!(matches!(narrow, Edge::TooLate(_) | Edge::TooEarly(_))),
                Edge::Inside(_) => prop_assert!(matches!(narrow, Edge::Inside(_))),
                Edge::Outside | Edge::Unclear(_) => {}
            }
        }
    }
}
