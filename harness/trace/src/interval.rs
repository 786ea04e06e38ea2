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
}
