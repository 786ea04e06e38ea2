//! All randomness of the server comes from one seeded source, so that a simulated run repeats byte for byte.
//!
//! Secrets (tokens) never come from here: they are drawn from the operating system, once, where the binary starts.

use std::sync::{Mutex, PoisonError};

/// Letters of generated names: no vowels and nothing that looks alike, as Kubernetes chooses them.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Length of a generated suffix.
const SUFFIX: usize = 5;

/// The seeded source of uids and generated names.
#[derive(Debug)]
pub struct Random {
    source: Mutex<fastrand::Rng>,
}

impl Random {
    /// A source that gives the same sequence for the same seed and store revision: a server that starts again on the same
    /// objects must not repeat the uids it gave before.
    pub fn new(seed: u64, revision: u64) -> Self {
        let mixed = seed ^ revision.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self { source: Mutex::new(fastrand::Rng::with_seed(mixed)) }
    }

    /// A fresh uid in the form of a version 4 UUID.
    pub fn uid(&self) -> String {
        let bits = self.source.lock().unwrap_or_else(PoisonError::into_inner).u128(..);
        let bits = (bits & !(0xF000 << 64) & !(0xC << 60)) | (0x4000 << 64) | (0x8 << 60);
        let hex = format!("{bits:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// The random end of a name made from `generateName`.
    pub fn suffix(&self) -> String {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        (0..SUFFIX).map(|_| char::from(LETTERS[source.usize(..LETTERS.len())])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_repeats_and_another_revision_does_not() {
        let draw = |seed, revision| {
            let random = Random::new(seed, revision);
            (random.uid(), random.suffix())
        };
        assert_eq!(draw(1, 1), draw(1, 1));
        assert_ne!(draw(1, 1), draw(1, 2));
        assert_ne!(draw(1, 1), draw(2, 1));
    }

    #[test]
    fn uids_have_the_form_of_version_4() {
        let random = Random::new(7, 1);
        for _ in 0..100 {
            let uid = random.uid();
            let parts: Vec<usize> = uid.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{uid}");
            assert_eq!(uid.as_bytes()[14], b'4', "{uid}");
            assert!(b"89ab".contains(&uid.as_bytes()[19]), "{uid}");
        }
    }

    #[test]
    fn suffixes_have_five_of_the_allowed_letters() {
        let suffix = Random::new(7, 1).suffix();
        assert_eq!(suffix.len(), SUFFIX);
        assert!(suffix.bytes().all(|letter| LETTERS.contains(&letter)), "{suffix}");
    }
}
