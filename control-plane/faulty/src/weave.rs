//! Weaves edits into a source, so that one build holds them all and a fault is chosen when the program runs.
//!
//! Where an edit stands, the woven source asks `::fault::on(N)`; edits may stand in the same place or inside one another.

use anyhow::{Result, bail, ensure};

/// An edit at its place in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// What the fault is asked for by.
    pub number: usize,
    /// The fault's id, for messages.
    pub id: String,
    /// First byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
    /// What stands there; FAULT is whether the fault is on, SOUND what stood there.
    pub template: String,
    /// Whether to put marks around it by which [`marked_at`] finds it.
    pub marked: bool,
}

/// The bytes of `source` that have the words of `pattern`, laid out however; of the first after `within`, if that is given.
///
/// # Errors
/// It, or `within`, is not there or not the only one; in a sentence that goes on after the name of the file.
pub fn find(source: &str, within: Option<&str>, pattern: &str) -> Result<(usize, usize), String> {
    let only = |text: &str, what: &str| {
        let all = matches(source, text);
        match all.as_slice() {
            [] => Err(format!("the {what} is not there any more: `{}`", shortened(text))),
            [one] => Ok(*one),
            [_, ..] => Err(format!(
                "the {what} is there {} times: `{}`; take more of it, or say `within`",
                all.len(),
                shortened(text)
            )),
        }
    };
    let Some(within) = within else { return only(pattern, "sound code") };
    let (_, after) = only(within, "text of `within`")?;
    let found = matches(source, pattern).into_iter().find(|(start, _)| *start >= after);
    found.ok_or_else(|| {
        format!("the sound code is not there after `{}`: `{}`", shortened(within), shortened(pattern))
    })
}

fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= 80 {
        line
    } else {
        format!("{}…", line.chars().take(80).collect::<String>())
    }
}

fn matches(source: &str, pattern: &str) -> Vec<(usize, usize)> {
    let words: Vec<&str> = pattern.split_whitespace().collect();
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    let starts = source.match_indices(first).map(|(start, _)| start);
    starts
        .filter_map(|start| {
            let mut at = start + first.len();
            for word in rest {
                let gap = source[at..].len() - source[at..].trim_start().len();
                if gap == 0 || !source[at + gap..].starts_with(word) {
                    return None;
                }
                at += gap + word.len();
            }
            Some((start, at))
        })
        .collect()
}

/// The template of an edit whose broken code is `broken` in place of `sound`: as it is where it says FAULT or SOUND
/// itself, otherwise the one or the other.
#[must_use]
pub fn template(sound: &str, broken: &str) -> String {
    if has_word(broken, "FAULT") || has_word(broken, "SOUND") {
        return broken.trim_end().to_owned();
    }
    let broken = broken.trim();
    if sound.trim_end().ends_with([';', '}']) {
        format!("if FAULT {{ {broken} }} else {{ SOUND }}")
    } else {
        format!("(if FAULT {{ {broken} }} else {{ SOUND }})")
    }
}

fn has_word(text: &str, word: &str) -> bool {
    word_at(text, word).is_some()
}

fn word_at(text: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(at, _)| at)
        .find(|at| !text[..*at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

fn with_words(text: &str, word: &str, by: &str) -> String {
    let (mut done, mut rest) = (String::new(), text);
    while let Some(at) = word_at(rest, word) {
        done.push_str(&rest[..at]);
        done.push_str(by);
        rest = &rest[at + word.len()..];
    }
    done + rest
}

/// `source` with `edits` in it.
///
/// # Errors
/// Two edits overlap without one being inside the other, or one that does not say SOUND has another inside it.
pub fn weave(source: &str, edits: &[Placed]) -> Result<String> {
    let mut edits: Vec<&Placed> = edits.iter().collect();
    // Whoever does not keep the sound code stands innermost.
    edits.sort_by_key(|edit| {
        (edit.start, std::cmp::Reverse(edit.end), !has_word(&edit.template, "SOUND"), edit.number)
    });
    let mut woven = String::with_capacity(source.len() * 2);
    let rest = render(source, 0, source.len(), &edits, &mut woven)?;
    debug_assert!(rest.is_empty(), "every edit lies in the source");
    Ok(woven)
}

/// Renders the bytes from `start` to `end`; gives the edits that begin after them.
fn render<'a, 'e>(
    source: &str,
    start: usize,
    end: usize,
    mut edits: &'e [&'a Placed],
    into: &mut String,
) -> Result<&'e [&'a Placed]> {
    let mut at = start;
    while let Some((edit, others)) = edits.split_first() {
        if edit.start >= end {
            break;
        }
        ensure!(
            edit.start >= at && edit.end <= end,
            "{} overlaps another fault's code: give both the same sound code, or one a part of the other's",
            edit.id
        );
        into.push_str(&source[at..edit.start]);
        let mut inner = String::new();
        let rest = render(source, edit.start, edit.end, others, &mut inner)?;
        if rest.len() != others.len() && !has_word(&edit.template, "SOUND") {
            bail!("{} drops the sound code that another fault stands in: write SOUND for it", edit.id);
        }
        let asked = format!("::fault::on({})", edit.number);
        let woven = with_words(&edit.template, "FAULT", &asked);
        let woven = with_words(&woven, "SOUND", &inner);
        if edit.marked {
            into.push_str(&format!("/*<{0}*/{woven}/*{0}>*/", edit.number));
        } else {
            into.push_str(&woven);
        }
        at = edit.end;
        edits = rest;
    }
    into.push_str(&source[at..end]);
    Ok(edits)
}

/// The innermost marked edit of a woven source around the byte `at`.
#[must_use]
pub fn marked_at(woven: &str, at: usize) -> Option<usize> {
    let mut open: Vec<usize> = Vec::new();
    let mut rest = woven.get(..at)?;
    while let Some(begin) = rest.find("/*") {
        let Some(length) = rest[begin..].find("*/") else { break };
        let inside = &rest[begin + 2..begin + length];
        if let Some(number) = inside.strip_prefix('<').and_then(|n| n.parse().ok()) {
            open.push(number);
        } else if let Some(number) = inside.strip_suffix('>').and_then(|n| n.parse::<usize>().ok()) {
            open.retain(|it| *it != number);
        }
        rest = &rest[begin + length + 2..];
    }
    open.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn f() {\n    let a = one(1,\n        2);\n    two();\n}\nfn g() { two(); }\n";

    fn placed(number: usize, within: Option<&str>, sound: &str, broken: &str) -> Placed {
        let (start, end) = find(SOURCE, within, sound).unwrap();
        Placed {
            number,
            id: format!("fault-{number}"),
            start,
            end,
            template: template(sound, broken),
            marked: false,
        }
    }

    #[test]
    fn code_is_found_by_its_words_and_only_where_there_is_no_doubt() {
        let text = |found: Result<(usize, usize), String>| found.map(|(start, end)| &SOURCE[start..end]);
        assert_eq!(text(find(SOURCE, None, "one(1, 2)")), Ok("one(1,\n        2)"));
        assert_eq!(find(SOURCE, Some("fn g()"), "two();").unwrap().0, SOURCE.rfind("two").unwrap());
        for (within, pattern, said) in [
            (None, "two();", "is there 2 times: `two();`; take more of it"),
            (None, "three()", "is not there any more: `three()`"),
            (None, "one( 1, 2)", "is not there any more"),
            (Some("fn h()"), "two();", "the text of `within` is not there"),
            (Some("fn g()"), "one(1, 2)", "is not there after `fn g()`"),
        ] {
            let error = find(SOURCE, within, pattern).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn edits_stand_beside_in_and_on_one_another() {
        let edits = [
            placed(1, None, "one(1, 2)", "0"),
            placed(2, None, "let a = one(1, 2);", "let a = if FAULT { 9 } else { 8 }; SOUND"),
            placed(3, Some("fn g()"), "two();", "three();"),
            placed(4, Some("fn g()"), "two();", "if !FAULT { SOUND }"),
        ];
        let woven = weave(SOURCE, &edits).unwrap();
        let words: Vec<&str> = woven.split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "fn f() { let a = if ::fault::on(2) { 9 } else { 8 }; let a = (if ::fault::on(1) { 0 } else { one(1, 2) }); \
             two(); } fn g() { if ::fault::on(3) { three(); } else { if !::fault::on(4) { two(); } } }"
        );
        assert_eq!(weave(SOURCE, &[]).unwrap(), SOURCE);
    }

    #[test]
    fn what_cannot_be_woven_is_refused() {
        let whole = placed(1, None, "one(1, 2);", "if FAULT { x() } else { y() }");
        let error = weave(SOURCE, &[whole.clone(), placed(2, None, "one(1,", "z")]).unwrap_err();
        assert!(error.to_string().contains("fault-1 drops the sound code"), "{error}");
        let mut across = placed(2, None, "let a = one(1,", "z");
        across.end -= 1;
        let error = weave(SOURCE, &[whole, across]).unwrap_err();
        assert!(error.to_string().contains("overlaps"), "{error}");
    }

    #[test]
    fn marks_say_which_edit_a_byte_is_of() {
        let edits = [(1, "let a = one(1, 2);"), (2, "one(1, 2)")]
            .map(|(number, sound)| Placed { marked: true, ..placed(number, None, sound, "SOUND") });
        let woven = weave(SOURCE, &edits).unwrap();
        let at = |text: &str| marked_at(&woven, woven.find(text).unwrap());
        assert_eq!((at("fn f"), at("let a"), at("one(1"), at("two()")), (None, Some(1), Some(2), None));
    }
}
