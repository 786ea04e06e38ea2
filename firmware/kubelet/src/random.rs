//! The one source of randomness: a SplitMix64 generator seeded by the shell, for jitter and
//! identifiers. Not for secrets.

/// A small seeded generator.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Two generators with one seed draw the same numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// `value` moved by up to `percent` per cent either way, in whole units.
    pub(crate) fn jitter(&mut self, value: u64, percent: u64) -> u64 {
        let reach = value * percent / 100;
        value - reach + self.next() % (2 * reach + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_its_reach_and_uses_it() {
        let mut random = Random::new(7);
        let drawn: alloc::vec::Vec<u64> = (0..1000).map(|_| random.jitter(5000, 5)).collect();
        assert!(drawn.iter().all(|v| (4750..=5250).contains(v)));
        assert!(drawn.iter().any(|v| *v < 4800) && drawn.iter().any(|v| *v > 5200));
        assert_eq!(Random::new(1).jitter(0, 5), 0);
    }
}
