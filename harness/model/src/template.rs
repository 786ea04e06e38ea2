//! `${NAME}` in texts. `$${` is a plain `${`.
//!
//! Some names are known when a file is read (rows of tables, rounds), others only while a trial runs
//! (captures); so texts are filled in two goes, and the first leaves what it does not know.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A piece of a text.
enum Piece<'a> {
    Plain(&'a str),
    Name(&'a str),
}

/// The name, if the text is nothing but `${NAME}`.
pub fn whole(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    is_name(name).then_some(name)
}

/// Whether a text can stand between `${` and `}`.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_name_part)
}

fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Cuts a text at its names. An unclosed `${` and one around something that is no name stay plain.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let escaped = rest[..at].ends_with('$');
        let close = rest[at..].find('}').map(|length| at + length);
        match close {
            Some(close) if !escaped && is_name(&rest[at + 2..close]) => {
                pieces.push(Piece::Plain(&rest[..at]));
                pieces.push(Piece::Name(&rest[at + 2..close]));
                rest = &rest[close + 1..];
            }
            Some(_) | None => {
                pieces.push(Piece::Plain(&rest[..at + 2]));
                rest = &rest[at + 2..];
            }
        }
    }
    pieces.push(Piece::Plain(rest));
    pieces
}

/// The names in a text, in order.
pub fn names(text: &str) -> Vec<&str> {
    pieces(text)
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Name(name) => Some(name),
            Piece::Plain(_) => None,
        })
        .collect()
}

/// A name as other languages write it, if the text is nothing else or has it in double braces: how it is written, and the
/// name. `$uid`, `$(uid)`, `{{ .uid }}`.
pub(crate) fn foreign(text: &str) -> Option<(&str, &str)> {
    if let Some(at) = text.find("{{")
        && let Some(length) = text[at..].find("}}")
    {
        let name = text[at + 2..at + length].trim().trim_start_matches(['.', '$']);
        return is_name(name).then_some((&text[at..at + length + 2], name));
    }
    let rest = text.strip_prefix('$')?;
    let name = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest);
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    (begins && is_name(name)).then_some((text, name))
}

/// The first name of a text that stands in braces without a dollar, as URL templates have it: `/namespaces/{namespace}`.
pub(crate) fn single_braces(text: &str) -> Option<&str> {
    text.match_indices('{').find_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        let name = &text[at + 1..at + text[at..].find('}')?];
        (!matches!(before, Some('$' | '{')) && is_name(name)).then_some(name)
    })
}

/// A `${` that begins no name, though it looks like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken<'a> {
    /// As it is written.
    pub written: &'a str,
    /// The name that is meant, if there is one.
    pub name: Option<&'a str>,
    /// What is wrong with it.
    pub why: &'static str,
}

/// The first `${` that is not closed, that holds nothing, or that has blanks around its name.
pub(crate) fn broken(text: &str) -> Option<Broken<'_>> {
    text.match_indices("${").filter(|(at, _)| !text[..*at].ends_with('$')).find_map(|(at, _)| {
        let rest = &text[at + 2..];
        let Some(inside) = rest.find('}').map(|close| &rest[..close]).filter(|inside| !inside.contains("${"))
        else {
            let end = rest.find(|c: char| !is_name_part(c)).unwrap_or(rest.len());
            let name = Some(&rest[..end]).filter(|name| !name.is_empty());
            return Some(Broken { written: &text[at..at + 2 + end], name, why: "it is not closed" });
        };
        let written = &text[at..at + inside.len() + 3];
        match inside.trim() {
            name if name == inside && !name.is_empty() => None,
            "" => Some(Broken { written, name: None, why: "it names nothing" }),
            name if is_name(name) => {
                Some(Broken { written, name: Some(name), why: "there are blanks around the name" })
            }
            _ => None,
        }
    })
}

/// The names in all texts and keys of a value.
pub fn names_in(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => names(text),
        Value::Array(items) => items.iter().flat_map(names_in).collect(),
        Value::Object(pairs) => {
            pairs.iter().flat_map(|(key, value)| names(key).into_iter().chain(names_in(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Fills in the names that are known and leaves the others, escapes included.
pub(crate) fn fill_known(text: &str, values: &BTreeMap<String, Value>) -> String {
    let mut filled = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Plain(plain) => filled.push_str(plain),
            Piece::Name(name) => match values.get(name) {
                Some(value) => filled.push_str(&shown(value)),
                None => {
                    filled.push_str("${");
                    filled.push_str(name);
                    filled.push('}');
                }
            },
        }
    }
    filled
}

/// A name that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`${{{0}}}` has no value here")]
pub struct MissingName(pub String);

/// Fills in all names of a text.
///
/// # Errors
/// [`MissingName`] for the first name without a value.
pub fn fill_text(text: &str, values: &BTreeMap<String, Value>) -> Result<String, MissingName> {
    let mut filled = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Plain(plain) => filled.push_str(plain),
            Piece::Name(name) => {
                let value = values.get(name).ok_or_else(|| MissingName(name.to_owned()))?;
                filled.push_str(&shown(value));
            }
        }
    }
    Ok(filled.replace("$${", "${"))
}

/// Fills in all names of a value; a text that is nothing but one name becomes that value itself.
///
/// # Errors
/// [`MissingName`] for the first name without a value.
pub fn fill(value: &Value, values: &BTreeMap<String, Value>) -> Result<Value, MissingName> {
    Ok(match value {
        Value::String(text) => match whole(text) {
            Some(name) => values.get(name).cloned().ok_or_else(|| MissingName(name.to_owned()))?,
            None => Value::String(fill_text(text, values)?),
        },
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill(item, values)).collect::<Result<_, _>>()?)
        }
        Value::Object(pairs) => {
            let mut filled = Map::new();
            for (key, value) in pairs {
                filled.insert(fill_text(key, values)?, fill(value, values)?);
            }
            Value::Object(filled)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

/// A value inside a longer text.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values() -> BTreeMap<String, Value> {
        [("pod".to_owned(), json!("web-1")), ("n".to_owned(), json!(3))].into()
    }

    #[test]
    fn names_are_filled_in() {
        let check = |value: Value, expected: Value| assert_eq!(fill(&value, &values()), Ok(expected));
        check(json!("${n}"), json!(3));
        check(json!("x-${n}-${pod}"), json!("x-3-web-1"));
        check(json!({"${pod}": ["${n}"]}), json!({"web-1": [3]}));
        check(json!("$${n} $ ${ {} ${a b}"), json!("${n} $ ${ {} ${a b}"));
        assert_eq!(fill(&json!(["${x}"]), &values()), Err(MissingName("x".to_owned())));
        assert_eq!(names_in(&json!({"${a}": "${b}${c}"})), ["a", "b", "c"]);
    }

    #[test]
    fn names_of_other_languages_are_known() {
        for (text, expected) in [
            ("$uid", Some(("$uid", "uid"))),
            ("$(uid)", Some(("$(uid)", "uid"))),
            ("a {{ .uid }} b", Some(("{{ .uid }}", "uid"))),
            ("${uid}", None),
            ("$${uid}", None),
            ("$5", None),
            ("cost: $x", None),
            ("{{", None),
            ("{{}}", None),
            ("$", None),
        ] {
            assert_eq!(foreign(text), expected, "{text}");
        }
    }

    #[test]
    fn names_in_single_braces_are_known() {
        for (text, expected) in [
            ("/namespaces/{namespace}/pods", Some("namespace")),
            ("/a/${x}/{b}", Some("b")),
            ("/a/${x}", None),
            ("/a/$${x}", None),
            ("/a/{{x}}", None),
            ("/a/{x y}", None),
            ("/a/{", None),
        ] {
            assert_eq!(single_braces(text), expected, "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_name_and_is_none_is_known() {
        for (text, expected) in [
            ("x-${ namespace }", Some(("${ namespace }", Some("namespace")))),
            ("${nope }", Some(("${nope }", Some("nope")))),
            ("${a", Some(("${a", Some("a")))),
            ("${", Some(("${", None))),
            ("${}", Some(("${}", None))),
            ("${  }", Some(("${  }", None))),
            ("${a-${b}", Some(("${a-", Some("a-")))),
            ("${a}${", Some(("${", None))),
            ("${a}", None),
            ("$${ a }", None),
            ("$${", None),
            ("${x:-y} ${a b}", None),
            ("$a {b}", None),
        ] {
            let found = broken(text).map(|broken| (broken.written, broken.name));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn unknown_names_stay_for_the_second_go() {
        assert_eq!(fill_known("${n}${later}$${n}", &values()), "3${later}$${n}");
    }
}
