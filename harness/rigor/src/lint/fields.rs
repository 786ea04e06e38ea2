//! The fields that Kubernetes' objects have, by the names of their types.

use rigor_model::kinds::ObjectKind;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// What stands in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sort {
    /// A quantity, or whatever one likes.
    Plain,
    /// A text; instants are, too.
    Text,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// An object of that type.
    Of(&'static str),
    /// A list of such.
    List(Box<Sort>),
    /// Such under keys of the writer's choice.
    Map(Box<Sort>),
}

type Fields = BTreeMap<&'static str, Sort>;

/// What an object of that kind is, where its fields are known.
pub(super) fn of_kind(kind: &str) -> Option<Sort> {
    let kind = ObjectKind::named(kind)?.kind;
    types().contains_key(kind).then_some(Sort::Of(kind))
}

/// The fields of a type.
pub(super) fn fields(name: &str) -> Option<&'static Fields> {
    types().get(name)
}

fn types() -> &'static BTreeMap<&'static str, Fields> {
    static TYPES: OnceLock<BTreeMap<&'static str, Fields>> = OnceLock::new();
    TYPES.get_or_init(|| {
        let lines = include_str!("fields.txt").lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.split_once(": ")).map(|(name, rest)| (name, of_line(rest))).collect()
    })
}

/// `name text, labels {text}, spec PodSpec`.
fn of_line(line: &'static str) -> Fields {
    let field = |text: &'static str| match text.split_once(' ') {
        Some((field, sort)) => (field, sort_of(sort)),
        None => (text, Sort::Plain),
    };
    line.split(", ").map(field).collect()
}

fn sort_of(text: &'static str) -> Sort {
    let inside = |open, close| Some(sort_of(text.strip_prefix(open)?.strip_suffix(close)?));
    match (text, inside('[', ']'), inside('{', '}')) {
        ("", _, _) => Sort::Plain,
        ("text", _, _) => Sort::Text,
        ("number", _, _) => Sort::Number,
        ("boolean", _, _) => Sort::Boolean,
        (_, Some(inner), _) => Sort::List(Box::new(inner)),
        (_, None, Some(inner)) => Sort::Map(Box::new(inner)),
        (name, None, None) => Sort::Of(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_what_stands_in_fields() {
        let expected = [
            ("a", Sort::Plain),
            ("b", Sort::Of("B")),
            ("c", Sort::List(Box::new(Sort::Of("C")))),
            ("d", Sort::Map(Box::new(Sort::List(Box::new(Sort::Plain))))),
            ("e", Sort::Text),
            ("f", Sort::List(Box::new(Sort::Number))),
            ("g", Sort::Boolean),
        ];
        let line = "a, b B, c [C], d {[]}, e text, f [number], g boolean";
        assert_eq!(of_line(line), BTreeMap::from(expected));
    }

    #[test]
    fn each_type_that_a_field_has_is_there() {
        fn check(sort: &Sort) {
            match sort {
                Sort::Plain | Sort::Text | Sort::Number | Sort::Boolean => {}
                Sort::Of(name) => assert!(fields(name).is_some(), "{name}"),
                Sort::List(inner) | Sort::Map(inner) => check(inner),
            }
        }
        types().values().flat_map(Fields::values).for_each(check);
        assert_eq!(of_kind("Pod"), Some(Sort::Of("Pod")));
        assert_eq!(of_kind("PodSpec"), None, "no kind of objects");
    }
}
