//! Scores as exact ratios, compared by cross multiplication (SCHED-40 to SCHED-42).
//!
//! Nano-units of memory take up to 93 bits, and comparing two sums of two ratios multiplies four of them, so the
//! products are held in as many words as they need; nothing is rounded, whatever the figures.

use std::cmp::Ordering;

/// A ratio from nothing upwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    part: u128,
    of: u128,
}

impl Share {
    /// `part / of`; nothing where `of` is 0 or less, or `part` is negative.
    #[must_use]
    pub fn new(part: i128, of: i128) -> Self {
        match (u128::try_from(part), u128::try_from(of)) {
            (Ok(part), Ok(of)) if of > 0 => Self::shortened(part, of),
            _ => Self { part: 0, of: 1 },
        }
    }

    /// `n / 100`.
    #[must_use]
    pub fn hundredths(n: u64) -> Self {
        Self { part: u128::from(n), of: 100 }
    }

    /// Most figures are whole units, and small numbers are quick to compare.
    fn shortened(part: u128, of: u128) -> Self {
        if let (Ok(small_part), Ok(small_of)) = (u64::try_from(part), u64::try_from(of))
            && small_part % UNIT == 0
            && small_of % UNIT == 0
        {
            return Self { part: u128::from(small_part / UNIT), of: u128::from(small_of / UNIT) };
        }
        Self { part, of }
    }

    /// In thousandths, rounded down: for logs, never for choices.
    #[must_use]
    pub fn per_mille(&self) -> u128 {
        self.part.saturating_mul(1000) / self.of
    }
}

/// Nano-units of one.
const UNIT: u64 = 1_000_000_000;

/// The sum of weighted shares as one ratio, where that fits into the numbers that the machine has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    part: u128,
    of: u128,
}

impl Sum {
    /// The sum, if it fits.
    pub(super) fn of(mut shares: impl Iterator<Item = (u32, Share)>) -> Option<Self> {
        let zero = Self { part: 0, of: 1 };
        shares.try_fold(zero, |sum, (weight, share)| {
            let term = times(share.part, u128::from(weight))?;
            if sum.part == 0 {
                return Some(Self { part: term, of: share.of });
            }
            if sum.of == share.of {
                return Some(Self { part: sum.part.checked_add(term)?, of: sum.of });
            }
            let part = times(sum.part, share.of)?.checked_add(times(term, sum.of)?)?;
            Some(Self { part, of: times(sum.of, share.of)? })
        })
    }

    /// The order, where it can be told with such numbers.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        if self.of == other.of {
            return Some(self.part.cmp(&other.part));
        }
        Some(times(self.part, other.of)?.cmp(&times(other.part, self.of)?))
    }
}

/// The product, if it fits. That of two small numbers always does, and finding out takes longer than multiplying them.
fn times(a: u128, b: u128) -> Option<u128> {
    match (u64::try_from(a), u64::try_from(b)) {
        (Ok(a), Ok(b)) => Some(u128::from(a) * u128::from(b)),
        _ => a.checked_mul(b),
    }
}

/// The weighted mean of some shares. Scores of the same profile, so of shares with the same weights, can be compared.
#[derive(Debug, Clone)]
pub struct Score(Vec<(u32, Share)>);

impl Score {
    /// The mean of `shares`, each with its weight.
    #[must_use]
    pub fn mean_of(shares: Vec<(u32, Share)>) -> Self {
        Self(shares)
    }

    /// The score in thousandths, rounded down: for logs, never for choices.
    #[must_use]
    pub fn per_mille(&self) -> u128 {
        let weights: u128 = self.0.iter().map(|(weight, _)| u128::from(*weight)).sum::<u128>().max(1);
        let whole = |(weight, share): &(u32, Share)| u128::from(*weight) * share.per_mille();
        // Each share lost less than one thousandth, so their mean did too.
        let least = self.0.iter().map(whole).sum::<u128>() / weights;
        let more = self.denominator().times(&Wide::from(weights)).times(&Wide::from(least + 1));
        if more <= self.numerator().times(&Wide::from(1000)) { least + 1 } else { least }
    }

    /// Numerator of the sum of the shares, over [`Score::denominator`].
    fn numerator(&self) -> Wide {
        let mut sum = Wide::default();
        for (index, (weight, share)) in self.0.iter().enumerate() {
            let mut term = Wide::from(share.part).times(&Wide::from(u128::from(*weight)));
            for (other, (_, factor)) in self.0.iter().enumerate() {
                if other != index {
                    term = term.times(&Wide::from(factor.of));
                }
            }
            sum = sum.plus(&term);
        }
        sum
    }

    fn denominator(&self) -> Wide {
        self.0.iter().fold(Wide::from(1), |product, (_, share)| product.times(&Wide::from(share.of)))
    }

    /// The order whatever the figures.
    fn wide_cmp(&self, other: &Self) -> Ordering {
        self.numerator().times(&other.denominator()).cmp(&other.numerator().times(&self.denominator()))
    }
}

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        // The means have the same divisor, so the sums decide.
        let sum = |it: &Self| Sum::of(it.0.iter().copied());
        let quick = sum(self).zip(sum(other)).and_then(|(own, other)| own.compare(&other));
        quick.unwrap_or_else(|| self.wide_cmp(other))
    }
}

/// A natural number of any size: words of 32 bits, lowest first, without leading zeros.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Wide(Vec<u32>);

impl Wide {
    fn plus(&self, other: &Self) -> Self {
        let mut words = Vec::with_capacity(self.0.len().max(other.0.len()) + 1);
        let mut carry = 0_u64;
        for index in 0..self.0.len().max(other.0.len()) {
            let word = |of: &Self| u64::from(of.0.get(index).copied().unwrap_or(0));
            carry += word(self) + word(other);
            words.push(low(carry));
            carry >>= 32;
        }
        words.push(low(carry));
        Self::trimmed(words)
    }

    fn times(&self, other: &Self) -> Self {
        let mut words = vec![0_u32; self.0.len() + other.0.len() + 1];
        for (i, a) in self.0.iter().enumerate() {
            let mut carry = 0_u64;
            for (j, word) in words.iter_mut().skip(i).enumerate() {
                let b = other.0.get(j).copied().unwrap_or(0);
                carry += u64::from(*word) + u64::from(*a) * u64::from(b);
                *word = low(carry);
                carry >>= 32;
            }
        }
        Self::trimmed(words)
    }

    fn trimmed(mut words: Vec<u32>) -> Self {
        while words.last() == Some(&0) {
            words.pop();
        }
        Self(words)
    }
}

impl From<u128> for Wide {
    fn from(value: u128) -> Self {
        let words = value.to_le_bytes();
        let words = words.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        Self::trimmed(words.collect())
    }
}

impl Ord for Wide {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn low(word: u64) -> u32 {
    u32::try_from(word & 0xffff_ffff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn score(shares: &[(i128, i128)]) -> Score {
        Score::mean_of(shares.iter().map(|(part, of)| (1, Share::new(*part, *of))).collect())
    }

    #[test]
    fn sched_40_ratios_are_compared_exactly() {
        let big = i128::from(i64::MAX) * 1_000_000_000;
        for (a, b, expected) in [
            ([(1, 3), (1, 3)], [(1, 2), (1, 6)], Ordering::Equal),
            ([(2, 4), (0, 1)], [(1, 4), (1, 4)], Ordering::Equal),
            ([(1, 3), (1, 3)], [(1, 2), (1, 7)], Ordering::Greater),
            ([(big - 1, big), (1, 1)], [(big, big), (1, 1)], Ordering::Less),
            ([(big - 1, big), (big, big)], [(big, big), (big - 1, big)], Ordering::Equal),
            ([(big - 2, big - 1), (1, 1)], [(big - 1, big), (1, 1)], Ordering::Less),
        ] {
            assert_eq!(score(&a).cmp(&score(&b)), expected, "{a:?} {b:?}");
            assert_eq!(score(&b).cmp(&score(&a)), expected.reverse(), "{b:?} {a:?}");
        }
    }

    #[test]
    fn sched_42_a_missing_share_counts_nothing() {
        for share in [(5, 0), (-5, 10), (5, -1), (0, 10)] {
            assert_eq!(score(&[share]), score(&[(0, 1)]), "{share:?}");
        }
        assert_eq!(score(&[(1, 2), (1, 4)]).per_mille(), 375);
        assert_eq!(Score::mean_of(Vec::new()).per_mille(), 0);
        // two fractions of a thousandth together are one; 999.98 and 714.28 of them are 857.13 in the mean
        assert_eq!(score(&[(65_535, 65_536), (5, 7)]).per_mille(), 857);
    }

    proptest! {
        #[test]
        fn wide_numbers_agree_with_u128(a in 0_u128..1 << 60, b in 0_u128..1 << 60, c in 0_u128..1 << 100) {
            let wide = |n: u128| Wide::from(n);
            prop_assert_eq!(wide(a).times(&wide(b)), wide(a * b));
            prop_assert_eq!(wide(a).plus(&wide(c)), wide(a + c));
            prop_assert_eq!(wide(a * b).cmp(&wide(c)), (a * b).cmp(&c));
        }

        #[test]
        fn the_order_is_that_of_the_sums(
            a in 0_i128..1000, b in 1_i128..1000, c in 0_i128..1000, d in 1_i128..1000,
            e in 0_i128..1000, f in 1_i128..1000, g in 0_i128..1000, h in 1_i128..1000,
        ) {
            let left = (a * d + c * b) * (f * h);
            let right = (e * h + g * f) * (b * d);
            prop_assert_eq!(score(&[(a, b), (c, d)]).cmp(&score(&[(e, f), (g, h)])), left.cmp(&right));
        }

        #[test]
        fn the_quick_order_is_the_exact_one(
            shares in prop::collection::vec((0_i128..1 << 60, 1_i128..1 << 60, 0_i128..1 << 60, 1_i128..1 << 60), 2),
            bits in 0_u32..60, weight in 1_u32..5,
        ) {
            let score = |(a, b, c, d): (i128, i128, i128, i128)| {
                let share = |part: i128, of: i128| Share::new((part >> bits) * 500_000_000, ((of >> bits) + 1) * 500_000_000);
                Score::mean_of(vec![(weight, share(a, b)), (1, share(c, d))])
            };
            let (left, right) = (score(shares[0]), score(shares[1]));
            prop_assert_eq!(left.cmp(&right), left.wide_cmp(&right));
        }
    }
}
