//! Field selectors: `field=value`, `==`, `!=`, joined by commas, with `\` before `\`, `,` and `=` in values.

use std::fmt;

use thiserror::Error;

/// A conjunction of equalities and inequalities on fields; without any it selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    field: String,
    equal: bool,
    value: String,
}

/// Why a field selector is refused, in Kubernetes' words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FieldSelectorError {
    /// A term without an operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term {
        /// The whole selector.
        selector: String,
        /// The term at fault.
        term: String,
    },
    /// A backslash before something that needs none.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    /// An operator's character in a value without a backslash; the message has its number, as Kubernetes' does.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

impl FieldSelector {
    /// Reads the `fieldSelector` of a query string, already percent-decoded. An empty one selects everything. Which
    /// fields a kind knows is for the caller to check: [`FieldSelector::fields`].
    ///
    /// # Errors
    /// [`FieldSelectorError`], whose text is the message of Kubernetes' 400.
    pub fn parse(text: &str) -> Result<Self, FieldSelectorError> {
        let mut parts: Vec<&str> = split(text);
        parts.sort_unstable();
        let terms = parts.into_iter().filter(|part| !part.is_empty()).map(|part| {
            let (field, equal, value) = operator(part).ok_or_else(|| FieldSelectorError::Term {
                selector: text.to_owned(),
                term: part.to_owned(),
            })?;
            Ok(Term { field: field.to_owned(), equal, value: unescaped(value)? })
        });
        Ok(Self { terms: terms.collect::<Result<_, _>>()? })
    }

    /// Whether an object is selected whose fields `field` looks up; an absent field is the empty string.
    #[must_use]
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms.iter().all(|term| (field(&term.field).unwrap_or_default() == term.value) == term.equal)
    }

    /// The names of the fields that it asks for.
    pub fn fields(&self) -> impl Iterator<Item = &str> + use<'_> {
        self.terms.iter().map(|term| term.field.as_str())
    }

    /// The value that `field` has to have, where the selector says exactly that.
    #[must_use]
    pub fn required(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }

    /// Whether everything is selected.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }
}

/// The form that [`FieldSelector::parse`] reads back.
impl fmt::Display for FieldSelector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if term.equal { "=" } else { "!=" };
            write!(out, "{comma}{}{operator}", term.field)?;
            for c in term.value.chars() {
                if matches!(c, '\\' | ',' | '=') {
                    out.write_str("\\")?;
                }
                write!(out, "{c}")?;
            }
        }
        Ok(())
    }
}

/// Splits at the commas that have no backslash before them.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Field, whether equality is asked for, and the escaped value.
fn operator(term: &str) -> Option<(&str, bool, &str)> {
    let begins = |at: &usize| term[*at..].starts_with("!=") || term[*at..].starts_with('=');
    let at = term.char_indices().map(|(at, _)| at).find(begins)?;
    let (field, rest) = term.split_at(at);
    let (equal, value) = match rest.strip_prefix("!=") {
        Some(value) => (false, value),
        None => (true, rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?),
    };
    Some((field, equal, value))
}

fn unescaped(value: &str) -> Result<String, FieldSelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return Err(FieldSelectorError::Escape(format!("\\{other}"))),
                None => return Err(FieldSelectorError::Escape("\\".to_owned())),
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped(c)),
            other => out.push(other),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terms_select_by_equality() {
        let pod = |field: &str| match field {
            "metadata.name" => Some("w0"),
            "spec.nodeName" => Some("node-a"),
            "status.phase" => Some("Pending"),
            _ => None,
        };
        for (text, expected) in [
            ("", true),
            ("spec.nodeName=node-a", true),
            ("spec.nodeName==node-a", true),
            ("spec.nodeName!=node-a", false),
            ("spec.nodeName=", false),
            ("spec.nodeName!=", true),
            ("status.podIP=", true),
            ("metadata.name=w0,status.phase!=Running", true),
            ("metadata.name=w0,status.phase=Running", false),
            (",metadata.name=w0,", true),
        ] {
            assert_eq!(FieldSelector::parse(text).expect(text).matches(pod), expected, "{text}");
        }
    }

    #[test]
    fn fields_and_required_values_can_be_asked_for() {
        let selector = FieldSelector::parse("spec.nodeName=a\\,b,status.phase!=Failed").expect("a selector");
        assert_eq!(selector.fields().collect::<Vec<_>>(), ["spec.nodeName", "status.phase"]);
        assert_eq!(selector.required("spec.nodeName"), Some("a,b"));
        assert_eq!(selector.required("status.phase"), None);
    }

    #[test]
    fn refusals_use_the_words_of_kubernetes() {
        for (text, message) in [
            ("bad", "invalid selector: 'bad'; can't understand 'bad'"),
            ("a=1,worse", "invalid selector: 'a=1,worse'; can't understand 'worse'"),
            ("a=\\x", "invalid field selector: invalid escape sequence: \\x"),
            ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ] {
            assert_eq!(FieldSelector::parse(text).expect_err(text).to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_prints_what_it_read(text in "[a-z.=!,\\\\é]{0,30}|\\PC{0,20}") {
            if let Ok(selector) = FieldSelector::parse(&text) {
                prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
            }
        }
    }
}
