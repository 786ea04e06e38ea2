//! Uids and names that follow from the service's uid alone: the same on every read, after every restart, on every control plane.

/// Kubernetes' alphabet for generated names: no vowels, nothing that looks alike.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

const SUFFIX: usize = 5;

/// FNV-1a, 128 bits, over the parts with a mark between them.
fn hash(parts: &[&str]) -> u128 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xFF]));
    bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |state: u128, byte| {
        (state ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

/// A uid of the form of RFC 9562's version 8, which is for uids made in ways of one's own.
pub(super) fn uid(parts: &[&str]) -> String {
    let hash = hash(parts);
    let hash = hash & !(0xF << 76) | 0x8 << 76;
    let hash = hash & !(0x3 << 62) | 0x2 << 62;
    let digits = format!("{hash:032x}");
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| digits.get(range).unwrap_or_default());
    groups.join("-")
}

/// What stands behind the prefix of a generated name.
pub(super) fn suffix(parts: &[&str]) -> String {
    let mut rest = hash(parts);
    let mut letters = String::new();
    for _ in 0..SUFFIX {
        let place = usize::try_from(rest % ALPHABET.len() as u128).unwrap_or_default();
        letters.push(char::from(ALPHABET[place]));
        rest /= ALPHABET.len() as u128;
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_well_formed_repeatable_and_apart() {
        let one = uid(&["a", "b"]);
        assert_eq!(one, uid(&["a", "b"]));
        assert_ne!(one, uid(&["ab"]));
        assert_ne!(one, uid(&["a", "c"]));
        assert_eq!(one.len(), 36);
        assert_eq!(one.as_bytes()[14], b'8');
        assert!(matches!(one.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{one}");
        assert_eq!(suffix(&["a", "0"]).len(), 5);
        assert_ne!(suffix(&["a", "0"]), suffix(&["a", "1"]));
    }
}
