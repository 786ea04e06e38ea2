//! Label selectors: `=`, `==`, `!=`, `in`, `notin`, presence, absence, `>` and `<`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;
use thiserror::Error;

use super::lexer::{Context, Lexer, Token};
use super::names;
use crate::json;

/// A conjunction of requirements on labels; without any it selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    nothing: bool,
}

/// One requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// What is required of it.
    pub test: Test,
}

/// What a requirement asks of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// Present with one of these values (`=`, `==`, `in`).
    In(BTreeSet<String>),
    /// Absent, or with none of these values (`!=`, `notin`).
    NotIn(BTreeSet<String>),
    /// Present.
    Exists,
    /// Absent.
    Absent,
    /// Present, a whole number, and greater.
    GreaterThan(i64),
    /// Present, a whole number, and less.
    LessThan(i64),
}

/// Why a label selector is refused, in Kubernetes' words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LabelSelectorError {
    /// A requirement of a query string cannot be read.
    #[error("unable to parse requirement: {0}")]
    Requirement(String),
    /// What stands between or after requirements is wrong.
    #[error("{0}")]
    Structure(String),
    /// An expression of a LabelSelector object has an operator that does not exist.
    #[error("{0:?} is not a valid label selector operator")]
    Operator(String),
    /// A field of an expression of a LabelSelector object is invalid.
    #[error("{0}")]
    Expression(String),
}

impl LabelSelector {
    /// Reads the `labelSelector` of a query string, already percent-decoded. An empty one selects everything.
    ///
    /// # Errors
    /// [`LabelSelectorError`], whose text is the message of Kubernetes' 400.
    pub fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        let mut lexer = Lexer::new(text);
        let mut requirements = Vec::new();
        loop {
            match lexer.peek(Context::Values) {
                (Token::Word | Token::Not, _) => {}
                (Token::End, _) => break,
                (_, found) => {
                    let expected = "expected: !, identifier, or 'end of string'";
                    return Err(LabelSelectorError::Structure(format!("found '{found}', {expected}")));
                }
            }
            requirements.push(requirement(&mut lexer).map_err(LabelSelectorError::Requirement)?);
            match lexer.next(Context::Values) {
                (Token::End, _) => break,
                (Token::Comma, _) => match lexer.peek(Context::Values) {
                    (Token::Word | Token::Not, _) => {}
                    (_, found) => {
                        let message = format!("found '{found}', expected: identifier after ','");
                        return Err(LabelSelectorError::Structure(message));
                    }
                },
                (_, found) => {
                    let message = format!("found '{found}', expected: ',' or 'end of string'");
                    return Err(LabelSelectorError::Structure(message));
                }
            }
        }
        Ok(Self { requirements, nothing: false })
    }

    /// Reads a LabelSelector object (`matchLabels`, `matchExpressions`). Null selects nothing, an empty object
    /// everything.
    ///
    /// # Errors
    /// [`LabelSelectorError`] for an unknown operator, a bad key or value, or values where none belong.
    pub fn from_object(object: &Value) -> Result<Self, LabelSelectorError> {
        if object.is_null() {
            return Ok(Self { requirements: Vec::new(), nothing: true });
        }
        let mut requirements = Vec::new();
        if let Some(labels) = json::get(object, &["matchLabels"]).and_then(Value::as_object) {
            for (key, value) in labels {
                let value = value.as_str().unwrap_or_default().to_owned();
                requirements.push(checked(key, Operator::In, BTreeSet::from([value]), Form::Object)?);
            }
        }
        for expression in json::list(object, &["matchExpressions"]) {
            let operator = match json::text(expression, &["operator"]).unwrap_or_default() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::Absent,
                other => return Err(LabelSelectorError::Operator(other.to_owned())),
            };
            let values = json::list(expression, &["values"]);
            let values = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            let key = json::text(expression, &["key"]).unwrap_or_default();
            requirements.push(checked(key, operator, values, Form::Object)?);
        }
        Ok(Self { requirements, nothing: false })
    }

    /// Whether `labels` (a `metadata.labels` object, or null) are selected.
    #[must_use]
    pub fn matches(&self, labels: &Value) -> bool {
        !self.nothing
            && self.requirements.iter().all(|it| it.matches(labels.get(&it.key).and_then(Value::as_str)))
    }

    /// Whether the labels of a whole object are selected.
    #[must_use]
    pub fn matches_object(&self, object: &Value) -> bool {
        self.matches(json::get(object, &["metadata", "labels"]).unwrap_or(&Value::Null))
    }

    /// Whether everything is selected.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// The requirements, all of which have to hold.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The selector that asks for exactly these labels.
    #[must_use]
    pub fn of_labels(labels: &BTreeMap<String, String>) -> Self {
        let requirement = |(key, value): (&String, &String)| Requirement {
            key: key.clone(),
            test: Test::In(BTreeSet::from([value.clone()])),
        };
        Self { requirements: labels.iter().map(requirement).collect(), nothing: false }
    }
}

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        match (&self.test, value) {
            (Test::In(values), Some(value)) => values.contains(value),
            (Test::NotIn(values), Some(value)) => !values.contains(value),
            (Test::NotIn(_) | Test::Absent, None) | (Test::Exists, Some(_)) => true,
            (Test::GreaterThan(bound), Some(value)) => value.parse::<i64>().is_ok_and(|it| it > *bound),
            (Test::LessThan(bound), Some(value)) => value.parse::<i64>().is_ok_and(|it| it < *bound),
            (Test::Absent, Some(_))
            | (Test::In(_) | Test::Exists | Test::GreaterThan(_) | Test::LessThan(_), None) => false,
        }
    }
}

/// The form in which `kubectl` and the scale subresource write a selector.
impl fmt::Display for LabelSelector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                out.write_str(",")?;
            }
            write!(out, "{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let joined = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(",");
        match &self.test {
            Test::In(values) if values.len() == 1 => write!(out, "{key}={}", joined(values)),
            Test::NotIn(values) if values.len() == 1 => write!(out, "{key}!={}", joined(values)),
            Test::In(values) => write!(out, "{key} in ({})", joined(values)),
            Test::NotIn(values) => write!(out, "{key} notin ({})", joined(values)),
            Test::Exists => write!(out, "{key}"),
            Test::Absent => write!(out, "!{key}"),
            Test::GreaterThan(bound) => write!(out, "{key}>{bound}"),
            Test::LessThan(bound) => write!(out, "{key}<{bound}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    Absent,
    GreaterThan,
    LessThan,
}

/// Where a requirement was written, which decides the kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Query,
    Object,
}

impl Form {
    fn error(self, message: String) -> LabelSelectorError {
        match self {
            Self::Query => LabelSelectorError::Requirement(message),
            Self::Object => LabelSelectorError::Expression(message),
        }
    }
}

/// One requirement of a query string; the error is what follows `unable to parse requirement: `.
fn requirement(lexer: &mut Lexer<'_>) -> Result<Requirement, String> {
    let (mut token, mut key) = lexer.next(Context::Values);
    let absent = token == Token::Not;
    if absent {
        (token, key) = lexer.next(Context::Values);
    }
    if token != Token::Word {
        return Err(format!("found '{key}', expected: identifier"));
    }
    if let Some(errors) = names::key_error(key) {
        return Err(format!("<nil>: Invalid value: {key:?}: {errors}"));
    }
    let (operator, values) = if absent {
        (Operator::Absent, BTreeSet::new())
    } else if matches!(lexer.peek(Context::Values).0, Token::End | Token::Comma) {
        (Operator::Exists, BTreeSet::new())
    } else {
        match lexer.next(Context::Operator) {
            (Token::In, _) => (Operator::In, values(lexer)?),
            (Token::NotIn, _) => (Operator::NotIn, values(lexer)?),
            (Token::Equals | Token::DoubleEquals, _) => (Operator::In, exact_value(lexer)?),
            (Token::NotEquals, _) => (Operator::NotIn, exact_value(lexer)?),
            (Token::GreaterThan, _) => (Operator::GreaterThan, exact_value(lexer)?),
            (Token::LessThan, _) => (Operator::LessThan, exact_value(lexer)?),
            (_, found) => return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt")),
        }
    };
    checked(key, operator, values, Form::Query).map_err(|error| match error {
        LabelSelectorError::Requirement(message)
        | LabelSelectorError::Structure(message)
        | LabelSelectorError::Operator(message)
        | LabelSelectorError::Expression(message) => message,
    })
}

/// `(a,b)` after `in` or `notin`; nothing between commas or brackets is the empty value.
fn values(lexer: &mut Lexer<'_>) -> Result<BTreeSet<String>, String> {
    match lexer.next(Context::Values) {
        (Token::Open, _) => {}
        (_, found) => return Err(format!("found '{found}' expected: '('")),
    }
    match lexer.peek(Context::Values) {
        (Token::Word | Token::Comma, _) => {}
        (Token::Close, _) => {
            lexer.next(Context::Values);
            return Ok(BTreeSet::from([String::new()]));
        }
        (_, found) => return Err(format!("found '{found}', expected: ',', ')' or identifier")),
    }
    let mut values = BTreeSet::new();
    let mut value = "";
    loop {
        match lexer.next(Context::Values) {
            (Token::Word, word) => {
                value = word;
                match lexer.peek(Context::Values) {
                    (Token::Comma | Token::Close, _) => {}
                    (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
                }
            }
            (Token::Comma, _) => {
                values.insert(std::mem::take(&mut value).to_owned());
            }
            (Token::Close, _) => {
                values.insert(value.to_owned());
                return Ok(values);
            }
            (_, found) => return Err(format!("found '{found}', expected: ',', or identifier")),
        }
    }
}

/// The value after `=`; where nothing follows, the empty value.
fn exact_value(lexer: &mut Lexer<'_>) -> Result<BTreeSet<String>, String> {
    match lexer.peek(Context::Values) {
        (Token::End | Token::Comma, _) => Ok(BTreeSet::from([String::new()])),
        (Token::Word, word) => {
            lexer.next(Context::Values);
            Ok(BTreeSet::from([word.to_owned()]))
        }
        (_, found) => Err(format!("found '{found}', expected: identifier")),
    }
}

fn checked(
    key: &str,
    operator: Operator,
    values: BTreeSet<String>,
    form: Form,
) -> Result<Requirement, LabelSelectorError> {
    let mut errors = Vec::new();
    if let Some(error) = names::key_error(key) {
        errors.push(format!("key: Invalid value: {key:?}: {error}"));
    }
    let number = values.first().and_then(|value| value.parse::<i64>().ok());
    match operator {
        Operator::In | Operator::NotIn if values.is_empty() => {
            errors.push(
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty".into(),
            );
        }
        Operator::Exists | Operator::Absent if !values.is_empty() => {
            let shown = values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(",");
            let message = "values set must be empty for exists and does not exist";
            errors.push(format!("values: Invalid value: [{shown}]: {message}"));
        }
        Operator::GreaterThan | Operator::LessThan if number.is_none() => {
            let shown = values.first().map(String::as_str).unwrap_or_default();
            let message = "for 'Gt', 'Lt' operators, the value must be an integer";
            errors.push(format!("values[0]: Invalid value: {shown:?}: {message}"));
        }
        Operator::In
        | Operator::NotIn
        | Operator::Exists
        | Operator::Absent
        | Operator::GreaterThan
        | Operator::LessThan => {}
    }
    for (index, value) in values.iter().enumerate() {
        if let Some(error) = names::value_error(value) {
            errors.push(format!("values[{index}][{key}]: Invalid value: {value:?}: {error}"));
        }
    }
    match errors.as_slice() {
        [] => {}
        [error] => return Err(form.error(error.clone())),
        _ => return Err(form.error(format!("[{}]", errors.join(", ")))),
    }
    let test = match operator {
        Operator::In => Test::In(values),
        Operator::NotIn => Test::NotIn(values),
        Operator::Exists => Test::Exists,
        Operator::Absent => Test::Absent,
        Operator::GreaterThan => Test::GreaterThan(number.unwrap_or_default()),
        Operator::LessThan => Test::LessThan(number.unwrap_or_default()),
    };
    Ok(Requirement { key: key.to_owned(), test })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The pods of the recorded lists: w0..w4 of namespace w.
    fn selected(selector: &LabelSelector) -> Vec<&'static str> {
        [
            ("w0", json!({"app": "a", "tier": "x"})),
            ("w1", json!({"app": "b", "tier": "x"})),
            ("w2", json!({"app": "c", "tier": "y"})),
            ("w3", Value::Null),
            ("w4", json!({"app": "a"})),
        ]
        .into_iter()
        .filter(|(_, labels)| selector.matches(labels))
        .map(|(name, _)| name)
        .collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let selector = LabelSelector::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(selected(&selector), expected, "{text:?}");
        let again = LabelSelector::parse(&selector.to_string()).expect("what it prints");
        assert_eq!(selected(&again), expected, "{text:?} printed as {selector}");
    }

    #[track_caller]
    fn refuse(text: &str, message: &str) {
        let error = LabelSelector::parse(text).expect_err(text);
        assert_eq!(error.to_string(), message, "{text:?}");
    }

    #[test]
    fn every_form_of_a_query_selects() {
        check("", &["w0", "w1", "w2", "w3", "w4"]);
        check("app=a", &["w0", "w4"]);
        check("app==a", &["w0", "w4"]);
        check("app!=a", &["w1", "w2", "w3"]);
        check("app in (a,b)", &["w0", "w1", "w4"]);
        check("app notin (a,b)", &["w2", "w3"]);
        check("app", &["w0", "w1", "w2", "w4"]);
        check("!app", &["w3"]);
        check("app=a,tier", &["w0"]);
        check("app=a,!tier", &["w4"]);
        check(" app in ( a ) , tier notin (y)", &["w0", "w4"]);
        check("tier=", &[]);
        check("tier=,app", &[]);
        check("app>1", &[]);
        check("app in ()", &[]);
        check("app in (a,)", &["w0", "w4"]);
        check("app in (,a)", &["w0", "w4"]);
        check("app in (b,,c)", &["w1", "w2"]);
        check("in", &[]);
        check("app=in", &[]);
        check("in in (in,notin)", &[]);
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let labels = |n: &str| json!({"n": n});
        for (text, value, expected) in [
            ("n>9", "10", true),
            ("n>9", "9", false),
            ("n<9", "-3", true),
            ("n<9", "x", false),
            ("n > 9", "10", true),
        ] {
            let selector = LabelSelector::parse(text).expect(text);
            assert_eq!(selector.matches(&labels(value)), expected, "{text} {value}");
        }
    }

    #[test]
    fn refusals_use_the_words_of_kubernetes() {
        refuse("app in a", "unable to parse requirement: found 'a' expected: '('");
        refuse("app in (", "unable to parse requirement: found '', expected: ',', ')' or identifier");
        refuse("app in (a", "unable to parse requirement: found '', expected: ',' or ')'");
        refuse("app in (a b)", "unable to parse requirement: found 'b', expected: ',' or ')'");
        refuse("app in (a,", "unable to parse requirement: found '', expected: ',', or identifier");
        refuse("=a", "found '=', expected: !, identifier, or 'end of string'");
        refuse("!", "unable to parse requirement: found '', expected: identifier");
        refuse("app=!", "unable to parse requirement: found '!', expected: identifier");
        refuse("app=bad value!", "found 'value', expected: ',' or 'end of string'");
        refuse("x y=1", "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt");
        refuse("a,", "found '', expected: identifier after ','");
        refuse("a,,b", "found ',', expected: identifier after ','");
        refuse(
            "n>a",
            "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must \
             be an integer",
        );
        refuse(
            "a/b/c=1",
            "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a qualified name must consist of \
             alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
             'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyName')",
        );
        refuse(
            "app=-",
            "unable to parse requirement: values[0][app]: Invalid value: \"-\": a valid label must be an empty string \
             or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
             character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        );
    }

    #[test]
    fn objects_select_as_queries_do() {
        for (object, expected) in [
            (Value::Null, vec![]),
            (json!({}), vec!["w0", "w1", "w2", "w3", "w4"]),
            (json!({"matchLabels": {"app": "a"}}), vec!["w0", "w4"]),
            (
                json!({"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
                vec!["w0"],
            ),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "c"]}]}),
                vec!["w0", "w2", "w4"],
            ),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}),
                vec!["w1", "w2", "w3"],
            ),
            (json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), vec!["w3"]),
        ] {
            let selector = LabelSelector::from_object(&object).expect("a selector");
            assert_eq!(selected(&selector), expected, "{object}");
        }
    }

    #[test]
    fn bad_objects_are_refused() {
        for (expression, message) in [
            (json!({"key": "a", "operator": "Near"}), "\"Near\" is not a valid label selector operator"),
            (
                json!({"key": "a", "operator": "In", "values": []}),
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
            ),
            (
                json!({"key": "a", "operator": "Exists", "values": ["b"]}),
                "values: Invalid value: [\"b\"]: values set must be empty for exists and does not exist",
            ),
        ] {
            let error =
                LabelSelector::from_object(&json!({"matchExpressions": [expression]})).expect_err(message);
            assert_eq!(error.to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "[ a-zA-Z0-9=!(),<>/._\\-é]{0,40}|\\PC{0,20}") {
            if let Ok(selector) = LabelSelector::parse(&text) {
                prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
            }
        }
    }
}
