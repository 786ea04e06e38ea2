//! How far one instant can be after another at most, as far as what is written says.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Instant, Length};
use crate::constants::Constant;

/// Nanoseconds, and so many times each constant that is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sum {
    fixed: i128,
    constants: BTreeMap<Constant, i128>,
}

impl Sum {
    /// This and so many times another one.
    fn and(mut self, times: i128, other: &Sum) -> Sum {
        self.fixed += times * other.fixed;
        for (constant, count) in &other.constants {
            *self.constants.entry(*constant).or_default() += times * count;
        }
        self
    }

    /// What it amounts to at most, whatever the constants are; nothing if there is no most.
    fn most(&self) -> Option<i128> {
        self.constants.iter().try_fold(self.fixed, |most, (constant, count)| match count {
            0 => Some(most),
            1.. => None,
            // No constant is nothing, but for one.
            _ if *constant == Constant::TolerationSeconds => Some(most),
            _ => Some(most - 1),
        })
    }
}

/// A length, where it is a sum.
fn sum_of(length: &Length, known: &BTreeMap<Constant, Duration>) -> Option<Sum> {
    let fixed = |length: &Duration| {
        Some(Sum { fixed: i128::try_from(length.as_nanos()).ok()?, constants: BTreeMap::new() })
    };
    match length {
        Length::Fixed(length) => fixed(length),
        Length::Constant(constant) => match known.get(constant) {
            Some(length) => fixed(length),
            None => Some(Sum { fixed: 0, constants: [(*constant, 1)].into() }),
        },
        Length::Sum(a, b) => Some(sum_of(a, known)?.and(1, &sum_of(b, known)?)),
        Length::Times(count, length) => Some(Sum::default().and(i128::from(*count), &sum_of(length, known)?)),
        // Not below zero, and one of several: no sums.
        Length::Difference(..) | Length::Longest(_) | Length::Shortest(_) => None,
    }
}

/// What an instant counts from, and how long after it it is.
fn reckoned<'i>(instant: &'i Instant, known: &BTreeMap<Constant, Duration>) -> Option<(&'i Instant, Sum)> {
    let (mut base, mut sum) = (instant, Sum::default());
    while let Instant::Plus(from, length) | Instant::Minus(from, length) = base {
        let times = if matches!(base, Instant::Plus(..)) { 1 } else { -1 };
        sum = sum.and(times, &sum_of(length, known)?);
        base = from;
    }
    Some((base, sum))
}

impl Instant {
    /// How long after another instant this one is at most, in nanoseconds, where that follows from what is written and from the
    /// constants that are known: both count from the same, or this one from a base that is not after the other's.
    pub(crate) fn at_most_after(
        &self,
        other: &Instant,
        known: &BTreeMap<Constant, Duration>,
        not_after: impl Fn(&Instant, &Instant) -> bool,
    ) -> Option<i128> {
        let (base, sum) = reckoned(self, known)?;
        let (other_base, other_sum) = reckoned(other, known)?;
        (base == other_base || not_after(base, other_base)).then_some(())?;
        sum.and(-1, &other_sum).most()
    }

    /// What it is computed from, if that is one instant.
    pub(crate) fn base(&self) -> &Instant {
        let mut base = self;
        while let Instant::Plus(from, _) | Instant::Minus(from, _) = base {
            base = from;
        }
        base
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Expr, parse};
    use super::*;

    fn instant(text: &str) -> Instant {
        match parse(text, None) {
            Ok(Expr::Instant(instant)) => instant,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn an_instant_is_after_another_by_so_much_at_most() {
        let known = [(Constant::RetryPeriod, Duration::from_nanos(7))].into();
        let check = |one: &str, other: &str, expected: Option<i128>| {
            let most = instant(one).at_most_after(&instant(other), &known, |_, _| false);
            assert_eq!(most, expected, "{one}, {other}");
        };
        check("x", "x", Some(0));
        check("x + 1us", "x + 3us", Some(-2_000));
        check("x + 1us", "y", None);
        check("x + slack", "x", None);
        check("x + slack", "x + slack + 1us", Some(-1_000));
        check("x + slack", "x + 2 * slack", Some(-1));
        check("x", "x + tolerationSeconds", Some(0));
        check("x + checkPeriod", "x + leaseDuration", None);
        check("x + retryPeriod", "x", Some(7));
        check("x + max(slack, checkPeriod)", "x + 1s", None);
    }
}
