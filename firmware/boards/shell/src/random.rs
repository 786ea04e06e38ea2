//! A small generator for what must merely differ from boot to boot: local ports and initial sequence numbers.
//! Not for secrets.

/// SplitMix64 over one seed.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

/// Local ports, each used once before any is used again: a connection never meets the remains of the last
/// one. The first is drawn, because the peer may still remember the ports of the boot before.
#[derive(Debug)]
pub(crate) struct Ports(u16);

/// First and number of the ports that are handed out (the dynamic range of RFC 6335).
const FIRST: u16 = 49152;
const COUNT: u16 = 16384;

impl Ports {
    pub(crate) fn new(random: &mut Random) -> Self {
        Self((random.draw() % u64::from(COUNT)) as u16)
    }

    pub(crate) fn next(&mut self) -> u16 {
        self.0 = (self.0 + 1) % COUNT;
        FIRST + self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_port_comes_once_before_any_comes_twice() {
        let mut ports = Ports::new(&mut Random::new(7));
        let seen: BTreeSet<u16> = (0..COUNT).map(|_| ports.next()).collect();
        assert_eq!(seen.len(), usize::from(COUNT));
        assert_eq!((seen.first(), seen.last()), (Some(&FIRST), Some(&u16::MAX)));
    }

    #[test]
    fn seeds_give_different_starts() {
        let starts: BTreeSet<u16> = (0..64).map(|seed| Ports::new(&mut Random::new(seed)).next()).collect();
        assert!(starts.len() > 60, "{} of 64 starts differ", starts.len());
    }
}
