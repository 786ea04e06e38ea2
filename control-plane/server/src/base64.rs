//! Base64 for continue tokens, credentials, keys and signatures: written url-safe and without padding, or padded in the
//! standard alphabet; read in either.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Bytes as text.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let index = (bits >> (18 - 6 * place)) & 63;
            text.push(char::from(LETTERS[index as usize]));
        }
    }
    text
}

/// Bytes as text in the standard alphabet, with padding.
pub fn encode_standard(bytes: &[u8]) -> String {
    let mut text = encode(bytes).replace('-', "+").replace('_', "/");
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

/// The first byte of a text that is no url-safe base64 without padding, as Go counts; nothing when it is some.
pub fn fault(text: &str) -> Option<usize> {
    let stray = text.bytes().position(|letter| !LETTERS.contains(&letter));
    stray.or_else(|| (text.len() % 4 == 1).then(|| text.len() - 1))
}

/// Text as bytes; nothing for other letters.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xFF).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }

    #[test]
    fn either_alphabet_is_read() {
        assert_eq!(encode(&[0xFB, 0xEF, 0xFF]), "--__");
        assert_eq!(encode_standard(&[0xFB, 0xEF, 0xFF]), "++//");
        assert_eq!(encode_standard(b"a"), "YQ==");
        assert_eq!(decode("++//"), Some(vec![0xFB, 0xEF, 0xFF]));
        assert_eq!(decode("YmVhcmVyOnQx"), Some(b"bearer:t1".to_vec()));
        assert_eq!(decode("YQ=="), Some(b"a".to_vec()));
        assert_eq!(decode("a b"), None);
    }
}
