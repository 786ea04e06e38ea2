//! Whether a frame is lost: a function of the seed, the link's name, the direction and the frame's number.
//!
//! Nothing is remembered from frame to frame, so that the fate of one does not shift the next, and a loss that
//! begins later meets the same frames as one that was there before.

/// Of a hundred, the part that `number` of the stream `name` falls into; below 100.
pub(crate) fn percentile(seed: u64, name: u64, number: u64) -> u8 {
    let drawn = mix(mix(mix(seed) ^ name) ^ number);
    // The upper half times 100, shifted: even to within one in 40 million.
    (((drawn >> 32) * 100) >> 32) as u8
}

/// A number for a name (FNV-1a).
pub(crate) fn number_of(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// SplitMix64's finalizer.
fn mix(value: u64) -> u64 {
    let mut value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_are_even_and_differ_by_seed_link_and_number() {
        let draw = |seed, name: &str| -> Vec<u8> {
            (0..20_000).map(|number| percentile(seed, number_of(name), number)).collect()
        };
        let fates = draw(7, "a:up");
        assert_eq!(fates, draw(7, "a:up"));
        assert_ne!(fates, draw(8, "a:up"));
        assert_ne!(fates, draw(7, "b:up"));
        for percent in 0..100 {
            let count = fates.iter().filter(|fate| **fate == percent).count();
            assert!((130..=270).contains(&count), "{count} of 20000 at {percent}");
        }
        assert!(fates.iter().all(|fate| *fate < 100));
    }
}
