//! Where a value is not as a pattern says. In lists, the element that was meant is told: the one of the same
//! key, or else the nearest.

use rigor_model::pattern::{Operator, Pattern};
use serde_json::Value;

use super::{Difference, Node, Test, has_key, is_list_or_absent, keyed_matches, matches, passes};

pub(super) fn differences(node: &Node, value: Option<&Value>, path: &str, found: &mut Vec<Difference>) {
    if matches(node, value) {
        return;
    }
    match (node, value) {
        (Node::Map(pairs), Some(Value::Object(object))) => {
            for (key, node) in pairs {
                differences(node, object.get(key), &joined(path, key), found);
            }
        }
        (Node::List(items), Some(Value::Array(elements))) => {
            for item in
                items.iter().filter(|item| !elements.iter().any(|element| matches(item, Some(element))))
            {
                in_elements(item, elements, path, value, found);
            }
        }
        (Node::Operators(tests), _) => {
            for test in tests.iter().filter(|test| !passes(test, value)) {
                test_differences(test, value, path, found);
            }
        }
        (_, _) => {
            found.push(Difference { path: path.to_owned(), expected: shown(node), found: abridged(value) })
        }
    }
}

/// No element is like the item: which one was meant, and how it differs.
fn in_elements(
    item: &Node,
    elements: &[Value],
    path: &str,
    list: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    // The element that a `type`, `key` or `name` points at is the one that was meant.
    if let (Some((key, text)), Some(element)) = (key_of(item), meant(item, elements)) {
        differences(item, Some(element), &format!("{path}[{key}={text}]"), found);
        return;
    }
    match nearest(item, elements) {
        Some((position, unlike)) => found.extend(unlike.into_iter().map(|difference| Difference {
            path: joined_path(&format!("{path}[{position}]"), &difference.path),
            expected: difference.expected,
            found: format!("{} (the nearest of {})", difference.found, elements.len()),
        })),
        None => found.push(Difference {
            path: path.to_owned(),
            expected: format!("an element like {}", shown(item)),
            found: abridged(list),
        }),
    }
}

/// Among elements that are mappings, the one with the fewest differences from a mapping, with these.
fn nearest(item: &Node, elements: &[Value]) -> Option<(usize, Vec<Difference>)> {
    let Node::Map(_) = item else { return None };
    elements
        .iter()
        .enumerate()
        .filter(|(_, element)| element.is_object())
        .map(|(position, element)| {
            let mut unlike = Vec::new();
            differences(item, Some(element), "", &mut unlike);
            (position, unlike)
        })
        .min_by_key(|(position, unlike)| (unlike.len(), *position))
}

/// Where a value fails an operator.
fn test_differences(test: &Test, value: Option<&Value>, path: &str, found: &mut Vec<Difference>) {
    match (test, value) {
        (Test::ByKey(key, wanted), _) if is_list_or_absent(value) => {
            let elements = match value {
                Some(Value::Array(elements)) => elements.as_slice(),
                Some(_) | None => &[],
            };
            for (text, node) in wanted.iter().filter(|(text, node)| !keyed_matches(node, key, text, elements))
            {
                let place = format!("{path}[{key}={text}]");
                let there = elements.iter().filter(|element| has_key(element, key, text));
                let unlike = there.map(|element| {
                    let mut unlike = Vec::new();
                    differences(node, Some(element), &place, &mut unlike);
                    unlike
                });
                match unlike.min_by_key(Vec::len) {
                    Some(unlike) => found.extend(unlike),
                    None => found.push(Difference {
                        path: place,
                        expected: shown(node),
                        found: "no such element".to_owned(),
                    }),
                }
            }
        }
        (Test::All(node), Some(Value::Array(elements))) => {
            for (position, element) in elements.iter().enumerate() {
                differences(node, Some(element), &format!("{path}[{position}]"), found);
            }
        }
        (Test::NoneOf(node), Some(Value::Array(elements))) => {
            for (position, element) in
                elements.iter().enumerate().filter(|(_, element)| matches(node, Some(element)))
            {
                found.push(Difference {
                    path: format!("{path}[{position}]"),
                    expected: format!("nothing like {}", shown(node)),
                    found: abridged(Some(element)),
                });
            }
        }
        (Test::Any(node), Some(Value::Array(elements))) => in_elements(node, elements, path, value, found),
        (
            Test::Regex(..)
            | Test::Any(_)
            | Test::All(_)
            | Test::NoneOf(_)
            | Test::OneOf(_)
            | Test::Not(_)
            | Test::ByKey(..)
            | Test::Plain(_),
            _,
        ) => found.push(Difference {
            path: path.to_owned(),
            expected: Pattern::Operators(vec![original_test(test)]).to_string(),
            found: abridged(value),
        }),
    }
}

/// A path under another one, which may begin with a bracket.
fn joined_path(path: &str, rest: &str) -> String {
    if rest.is_empty() || rest.starts_with('[') { format!("{path}{rest}") } else { format!("{path}.{rest}") }
}

fn joined(path: &str, key: &str) -> String {
    if key.contains(['.', '/', ' ']) {
        format!("{path}[\"{key}\"]")
    } else if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// The key by which Kubernetes tells elements of a list apart, as a list item states it.
fn key_of(item: &Node) -> Option<(&'static str, &str)> {
    let Node::Map(pairs) = item else { return None };
    ["type", "key", "name"].into_iter().find_map(|key| {
        pairs.iter().find_map(|(found, node)| match node {
            Node::Scalar(Value::String(text)) if found == key => Some((key, text.as_str())),
            Node::Scalar(_) | Node::Map(_) | Node::List(_) | Node::Operators(_) => None,
        })
    })
}

/// Among the elements with the item's key, the one with the fewest differences.
fn meant<'a>(item: &Node, elements: &'a [Value]) -> Option<&'a Value> {
    let (key, text) = key_of(item)?;
    elements.iter().filter(|element| element.get(key).and_then(Value::as_str) == Some(text)).min_by_key(
        |element| {
            let mut found = Vec::new();
            differences(item, Some(element), "", &mut found);
            found.len()
        },
    )
}

/// A value in few words.
fn abridged(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    if text.chars().count() > 160 { text.chars().take(159).chain(['…']).collect() } else { text }
}

fn shown(node: &Node) -> String {
    original(node).to_string()
}

/// The pattern that was made ready.
fn original(node: &Node) -> Pattern {
    match node {
        Node::Map(pairs) => {
            Pattern::Map(pairs.iter().map(|(key, node)| (key.clone(), original(node))).collect())
        }
        Node::List(items) => Pattern::List(items.iter().map(original).collect()),
        Node::Scalar(value) => Pattern::Scalar(value.clone()),
        Node::Operators(tests) => Pattern::Operators(tests.iter().map(original_test).collect()),
    }
}

fn original_test(test: &Test) -> Operator {
    match test {
        Test::Regex(_, text) => Operator::Regex(text.clone()),
        Test::Any(node) => Operator::Any(Box::new(original(node))),
        Test::All(node) => Operator::All(Box::new(original(node))),
        Test::NoneOf(node) => Operator::NoneOf(Box::new(original(node))),
        Test::OneOf(ways) => Operator::OneOf(ways.iter().map(original).collect()),
        Test::Not(node) => Operator::Not(Box::new(original(node))),
        Test::ByKey(key, elements) => Operator::ByKey(
            key.clone(),
            elements.iter().map(|(text, node)| (text.clone(), original(node))).collect(),
        ),
        Test::Plain(operator) => operator.clone(),
    }
}
