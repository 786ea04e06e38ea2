//! Whether a command printed what the page shows.

const ANYTHING: &str = "…";

/// Whether `said` is what `shown` stands for.
pub fn matches(shown: &[String], said: &[String]) -> bool {
    match shown.split_first() {
        None => said.is_empty(),
        Some((first, rest)) if first.trim() == ANYTHING => {
            (0..=said.len()).any(|skipped| matches(rest, &said[skipped..]))
        }
        Some((first, rest)) => {
            said.split_first().is_some_and(|(line, said)| line_matches(first, line) && matches(rest, said))
        }
    }
}

fn line_matches(shown: &str, said: &str) -> bool {
    let (shown, said) = (single_blanks(shown), single_blanks(said));
    let parts: Vec<_> = shown.split(ANYTHING).collect();
    let [first, middle @ .., last] = parts.as_slice() else { return shown == said };
    let Some(mut rest) = said.strip_prefix(first) else { return false };
    for part in middle {
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
}

fn single_blanks(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_notation_stands_for_what_varies_and_for_nothing_else() {
    let check = |shown: &str, said: &str, expected| {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(matches(&lines(shown), &lines(said)), expected, "{shown:?} {said:?}");
    };
    check("", "", true);
    check("", "a", false);
    check("a", "", false);
    check("a  b", " a b  ", true);
    check("a b", "ab", false);
    check("a … c", "a b b c", true);
    check("a … c", "a b c d", false);
    check("…c", "a b c", true);
    check("a…b…c", "axxc", false);
    check("a…a", "a", false);
    check("a\n…\nc", "a\nb\nb\nc", true);
    check("a\n…\nc", "a\nc", true);
    check("a\n…", "a\nb", true);
    check("a\n…\nc", "a\nb", false);
    check("a\nb", "a\nb\nc", false);
}
