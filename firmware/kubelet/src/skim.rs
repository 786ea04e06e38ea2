//! Shortens the long strings of a JSON text while it comes in, so that an object that is large because of what nobody here
//! looks at can still be read in a bounded buffer (KLET-06).

use alloc::vec::Vec;

/// Most of a string that is left, in bytes. Names, versions, types and times of Kubernetes are shorter.
const MAX_STRING: usize = 256;

/// Where in a text the next byte stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    Inside,
    /// Behind a backslash.
    Escaped,
    /// In the four digits behind `\u`; so many are left.
    Digits(u8),
}

/// Takes a text piece by piece and leaves out the ends of long strings. What is no JSON comes through as something that is none.
#[derive(Debug, Default)]
pub(crate) struct Skim {
    place: Place,
    /// How much of this string was left, in bytes.
    length: usize,
    cut: bool,
}

impl Skim {
    /// What is left of the next piece.
    pub(crate) fn piece(&mut self, bytes: &[u8]) -> Vec<u8> {
        bytes.iter().copied().filter(|byte| self.leaves(*byte)).collect()
    }

    fn leaves(&mut self, byte: u8) -> bool {
        let place = self.place;
        self.place = match (place, byte) {
            (Place::Outside, b'"') => Place::Inside,
            (Place::Outside, _) | (Place::Inside, b'"') => Place::Outside,
            (Place::Inside, b'\\') => Place::Escaped,
            (Place::Escaped, b'u') => Place::Digits(4),
            (Place::Digits(left), _) if left > 1 => Place::Digits(left - 1),
            (Place::Inside | Place::Escaped | Place::Digits(_), _) => Place::Inside,
        };
        if place == Place::Outside || self.place == Place::Outside {
            (self.length, self.cut) = (0, false);
            return true;
        }
        // Neither an escape nor a character of several bytes is cut in two.
        let begins = place == Place::Inside && byte & 0xc0 != 0x80;
        self.cut |= begins && self.length >= MAX_STRING;
        self.length += usize::from(!self.cut);
        !self.cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::{String, ToString};
    use proptest::prelude::*;
    use serde_json::Value;

    fn skimmed(pieces: &[&[u8]]) -> Vec<u8> {
        let mut skim = Skim::default();
        pieces.iter().flat_map(|piece| skim.piece(piece)).collect()
    }

    #[test]
    fn long_strings_end_early_and_the_rest_stays() {
        let check = |long: &str, left: &str| {
            let text = |string: &str| format!(r#"{{"a{string}":[1,"{string}"],"b":{{"c":"d\"e"}}}}"#);
            let result = String::from_utf8(skimmed(&[text(long).as_bytes()])).unwrap();
            let key = if long == left { long } else { &left[..left.len() - 1] };
            assert_eq!(result, text(left).replacen(&format!("a{left}"), &format!("a{key}"), 1));
        };
        let exact = "x".repeat(MAX_STRING - 1);
        check(&exact, &exact);
        check(&"x".repeat(600_000), &"x".repeat(MAX_STRING));
    }

    #[test]
    fn nothing_is_cut_in_two() {
        for (unit, width) in [("é", 2), ("€", 3), ("\\n", 2), ("\\\"", 2), ("\\u00e9", 6)] {
            for before in 0..7 {
                let string = format!("{}{}", "x".repeat(before), unit.repeat(MAX_STRING));
                let left = skimmed(&[format!("\"{string}\"").as_bytes()]);
                let value: Value = serde_json::from_slice(&left).unwrap();
                assert!(value.is_string());
                assert!((MAX_STRING..MAX_STRING + width).contains(&(left.len() - 2)), "{unit} {before}");
            }
        }
    }

    proptest! {
        #[test]
        fn cuts_of_the_bytes_make_no_difference(text in r#"("|\\|u|[a-z]|é|[0-9]|x{200}|\{|,){0,40}"#, at in 0usize..400) {
            let bytes = text.as_bytes();
            let (front, back) = bytes.split_at(at.min(bytes.len()));
            prop_assert_eq!(skimmed(&[front, back]), skimmed(&[bytes]));
        }

        #[test]
        fn json_stays_json(key in ".{0,300}", value in ".{0,300}", number in any::<i64>()) {
            let text = serde_json::json!({key: [value, number]}).to_string();
            let left: Value = serde_json::from_slice(&skimmed(&[text.as_bytes()])).unwrap();
            prop_assert_eq!(left.as_object().unwrap().values().next().unwrap()[1].as_i64(), Some(number));
        }
    }
}
