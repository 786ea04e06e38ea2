//! What TCP makes of lost packets: they come later, each wait twice the one before, or their connection is given up.
//!
//! The numbers are those of RFC 6298 and of Linux, which small stacks follow closely enough. Fast retransmission is
//! left out: a board's messages are seldom longer than a packet or two.

/// How long a sender waits and how often it repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Before the first repeat, in microseconds.
    first: u64,
    /// Repeats until the connection is given up.
    repeats: u32,
}

impl Patience {
    /// Of who opens a connection.
    pub(crate) const OPENING: Self = Self { first: 1_000_000, repeats: 6 };
    /// On a connection that stands.
    pub(crate) const OPEN: Self = Self { first: 200_000, repeats: 10 };
    /// Of who does not repeat at all.
    pub(crate) const NONE: Self = Self { first: 0, repeats: 0 };
}

/// How much later a message in so many packets arrives when `percent` of packets are lost, in microseconds. Everything is
/// drawn from `luck`, so that a message costs its link one draw.
///
/// # Errors
/// One packet was lost too often: after so many microseconds its sender gives the connection up.
pub(crate) fn retransmit(luck: u64, percent: u8, patience: &Patience, packets: usize) -> Result<u64, u64> {
    if percent == 0 {
        return Ok(0);
    }
    let mut draws = fastrand::Rng::with_seed(luck);
    let mut latest = 0;
    for _ in 0..packets {
        let mut waited = 0;
        for repeat in 0..=patience.repeats {
            if draws.u8(0..100) >= percent {
                break;
            }
            waited += patience.first << repeat;
            if repeat == patience.repeats {
                return Err(waited);
            }
        }
        latest = latest.max(waited);
    }
    Ok(latest)
}

#[cfg(test)]
mod tests {
    use super::{Patience, retransmit};

    #[test]
    fn each_wait_is_twice_the_one_before_and_the_last_one_ends_the_connection() {
        assert_eq!(retransmit(1, 0, &Patience::OPEN, 9), Ok(0));
        assert_eq!(retransmit(1, 100, &Patience::NONE, 1), Err(0));
        assert_eq!(retransmit(1, 100, &Patience::OPENING, 1), Err(127_000_000));
        let mut waits: Vec<_> =
            (0..4_000).filter_map(|luck| retransmit(luck, 50, &Patience::OPEN, 1).ok()).collect();
        waits.sort_unstable();
        waits.dedup();
        assert_eq!(waits[..5], [0, 200_000, 600_000, 1_400_000, 3_000_000]);
    }

    #[test]
    fn as_many_are_lost_as_was_said() {
        let late = |percent, packets| {
            let lost =
                (0..10_000).filter(|luck| retransmit(*luck, percent, &Patience::OPEN, packets) != Ok(0));
            lost.count()
        };
        assert!((1_800..2_200).contains(&late(20, 1)), "{}", late(20, 1));
        // Two of three messages in five packets lose at least one.
        assert!((6_500..6_950).contains(&late(20, 5)), "{}", late(20, 5));
        assert_eq!(late(100, 1), 10_000);
    }
}
