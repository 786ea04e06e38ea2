//! Names as they were meant, in the letters that names have: from words with umlauts and accents, blanks and capitals.

/// Letters that people write in ASCII in a way of their own.
const WRITTEN: [(&str, &str); 12] = [
    ("ä", "ae"),
    ("ö", "oe"),
    ("ü", "ue"),
    ("ß", "ss"),
    ("æ", "ae"),
    ("áàâãå", "a"),
    ("éèêë", "e"),
    ("íìîï", "i"),
    ("óòôõø", "o"),
    ("úùû", "u"),
    ("ñ", "n"),
    ("ç", "c"),
];

/// A text in ASCII; a sign that has no usual way of writing becomes a blank.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars() {
        if letter.is_ascii() {
            plain.push(letter);
            continue;
        }
        for small in letter.to_lowercase() {
            let written = WRITTEN.iter().find(|(letters, _)| letters.contains(small));
            plain.push_str(written.map_or(" ", |(_, written)| written));
        }
    }
    plain
}

fn words(plain: &str) -> impl Iterator<Item = &str> {
    plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

/// `the-outage` as `theOutage`.
pub(crate) fn camel(name: &str) -> String {
    words(&plain(name))
        .enumerate()
        .map(|(index, word)| {
            let (first, rest) = word.split_at(1);
            let first = if index == 0 { first.to_ascii_lowercase() } else { first.to_ascii_uppercase() };
            first + rest
        })
        .collect()
}

/// `The outage` as `the-outage`.
pub(crate) fn hyphened(name: &str) -> String {
    words(&plain(name)).collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_right() {
        for (name, one, hyphens) in [
            ("the-outage", "theOutage", "the-outage"),
            ("TheOutage", "theOutage", "theoutage"),
            ("a b_c", "aBC", "a-b-c"),
            ("läuft", "laeuft", "laeuft"),
            ("Größe É", "groesseE", "groesse-e"),
            ("停电", "", ""),
            ("1st", "1st", "1st"),
        ] {
            assert_eq!((camel(name).as_str(), hyphened(name).as_str()), (one, hyphens), "{name}");
        }
    }
}
