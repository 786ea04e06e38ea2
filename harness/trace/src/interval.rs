//! Instants as intervals: nothing is known more exactly than it was observed.

use std::fmt;
use std::time::Duration;

use crate::history::Micros;

/// An instant that lies somewhere from `earliest` to `latest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    /// Not before.
    pub earliest: Micros,
    /// Not after.
    pub latest: Micros,
}

impl Interval {
    /// Known exactly.
    pub fn exactly(at: Micros) -> Interval {
        Interval { earliest: at, latest: at }
    }

    /// From `earliest` to `latest`; an earliest after the latest is lowered to it.
    pub fn new(earliest: Micros, latest: Micros) -> Interval {
        Interval { earliest: earliest.min(latest), latest }
    }

    /// How uncertain it is.
    pub fn width(self) -> Duration {
        self.latest.since(self.earliest)
    }

    /// Later by `length`.
    #[must_use]
    pub fn plus(self, length: Duration) -> Interval {
        Interval { earliest: self.earliest + length, latest: self.latest + length }
    }

    /// Earlier by `length`, though not before the trial's start.
    #[must_use]
    pub fn minus(self, length: Duration) -> Interval {
        Interval { earliest: self.earliest - length, latest: self.latest - length }
    }

    /// What both allow; nothing if they exclude each other.
    pub fn intersection(self, other: Interval) -> Option<Interval> {
        let earliest = self.earliest.max(other.earliest);
        let latest = self.latest.min(other.latest);
        (earliest <= latest).then_some(Interval { earliest, latest })
    }

    /// The later of two instants.
    #[must_use]
    pub fn later(self, other: Interval) -> Interval {
        Interval { earliest: self.earliest.max(other.earliest), latest: self.latest.max(other.latest) }
    }

    /// The earlier of two instants.
    #[must_use]
    pub fn earlier(self, other: Interval) -> Interval {
        Interval { earliest: self.earliest.min(other.earliest), latest: self.latest.min(other.latest) }
    }

    /// Whether it is certainly before `other`.
    pub fn is_before(self, other: Interval) -> bool {
        self.latest < other.earliest
    }
}

impl fmt::Display for Interval {
    /// `12.345 s`, or `12.300..12.400 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.width() < Duration::from_millis(1) {
            return write!(f, "{}", self.latest);
        }
        let earliest = self.earliest.to_string();
        write!(f, "{}..{}", earliest.trim_end_matches(" s"), self.latest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn between(earliest: u64, latest: u64) -> Interval {
        Interval::new(Micros(earliest), Micros(latest))
    }

    #[test]
    fn intervals_are_computed_at_both_ends() {
        assert_eq!(between(5, 9).intersection(between(7, 20)), Some(between(7, 9)));
        assert_eq!(between(5, 9).intersection(between(10, 20)), None);
        assert_eq!(between(5, 9).later(between(7, 8)), between(7, 9));
        assert_eq!(between(5, 9).earlier(between(7, 8)), between(5, 8));
        assert_eq!(between(5, 9).minus(Duration::from_micros(6)), between(0, 3));
        assert!(between(5, 9).is_before(between(10, 11)));
        assert!(!between(5, 9).is_before(between(9, 11)));
        assert_eq!(between(9, 5), between(5, 5));
        assert_eq!(between(12_300_000, 12_400_000).to_string(), "12.300..12.400 s");
        assert_eq!(between(12_300_000, 12_300_500).to_string(), "12.300 s");
    }

    /// An interval and an instant in it.
    fn instant() -> impl Strategy<Value = (Interval, u64)> {
        (0_u64..1000, 0_u64..200)
            .prop_flat_map(|(from, width)| (Just(between(from, from + width)), from..=from + width))
    }

    fn holds(interval: Interval, at: u64) -> bool {
        (interval.earliest.0..=interval.latest.0).contains(&at)
    }

    proptest! {
        /// What is computed of intervals holds what is computed of any instants in them.
        #[test]
        fn arithmetic_holds_of_every_instant((a, x) in instant(), (b, y) in instant(), length in 0_u64..300) {
            let by = Duration::from_micros(length);
            prop_assert!(holds(a.plus(by), x + length));
            prop_assert!(holds(a.minus(by), x.saturating_sub(length)));
            prop_assert!(holds(a.later(b), x.max(y)));
            prop_assert!(holds(a.earlier(b), x.min(y)));
            if a.is_before(b) {
                prop_assert!(x < y);
            }
        }

        /// An instant that two intervals tell of is in their intersection, which is in both.
        #[test]
        fn an_intersection_holds_exactly_what_both_do((a, x) in instant(), (b, _) in instant()) {
            let both = a.intersection(b);
            prop_assert_eq!(both.is_some_and(|both| holds(both, x)), holds(b, x));
            prop_assert_eq!(both, b.intersection(a));
            prop_assert_eq!(both.is_none(), a.is_before(b) || b.is_before(a));
            if let Some(both) = both {
                prop_assert!(both.width() <= a.width() && both.width() <= b.width());
            }
        }

        #[test]
        fn later_and_earlier_agree((a, _) in instant(), (b, _) in instant()) {
            prop_assert_eq!(a.later(b), b.later(a));
            prop_assert_eq!(a.earlier(b), b.earlier(a));
            prop_assert!(!a.later(b).is_before(a) && !a.is_before(a.earlier(b)));
        }
    }
}
