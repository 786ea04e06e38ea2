//! The types of the served kinds, read once from the embedded compact schema (`data/schema.txt`).
//!
//! Decoding, strategic merge patches and OpenAPI all follow this one table, so they cannot disagree about a field.
//! The file is made by `data/compact-schema` from the OpenAPI of a running Kubernetes; it carries no prose.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

/// The JSON shape of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Bool,
    Int32,
    Int64,
    Double,
    /// Base64 text.
    Bytes,
    /// RFC 3339 in whole seconds.
    Time,
    /// RFC 3339 in microseconds.
    MicroTime,
    Quantity,
    IntOrString,
    /// Any object.
    Raw,
    /// The field set of a managedFields entry.
    Fields,
    List(Box<Shape>),
    Map(Box<Shape>),
    /// The type of that name.
    Object(&'static str),
}

/// One field of a type.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) list_type: Option<&'static str>,
    pub(crate) list_keys: Vec<&'static str>,
    pub(crate) map_type: Option<&'static str>,
    /// The field by which entries of a list are told apart in strategic merge patches.
    pub(crate) merge_key: Option<&'static str>,
    /// `merge`, `retainKeys` or both, as written.
    pub(crate) strategy: Option<&'static str>,
    pub(crate) allowed: Vec<&'static str>,
    /// The name of the type in Go, where it is not the shape's own.
    pub(crate) go_name: Option<&'static str>,
    pub(crate) default: Option<Value>,
    pub(crate) omit_zero: bool,
    /// An empty text is kept.
    pub(crate) keep_empty: bool,
    /// The protobuf field number; more than one where the field lies in messages that JSON inlines.
    pub(crate) numbers: Vec<u32>,
    pub(crate) null_when_unset: bool,
}

impl Field {
    /// Whether strategic merge patches merge this list by key or as a set; other lists are replaced.
    pub(crate) fn merges(&self) -> bool {
        self.strategy.is_some_and(|list| list.split(',').any(|one| one == "merge"))
    }
}

/// A type: an object with known fields.
#[derive(Debug, Clone)]
pub(crate) struct Type {
    pub(crate) name: &'static str,
    /// Group, version and kind, where objects of this type stand alone.
    pub(crate) gvks: Vec<(&'static str, &'static str, &'static str)>,
    pub(crate) required: Vec<&'static str>,
    pub(crate) map_type: Option<&'static str>,
    pub(crate) fields: BTreeMap<&'static str, Field>,
}

impl Type {
    /// The bare name of the struct in Go, as decoding errors print it.
    pub(crate) fn go_struct(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }
}

static TEXT: &str = include_str!("../data/schema.txt");
static TYPES: LazyLock<BTreeMap<&'static str, Type>> = LazyLock::new(|| parse(TEXT));

/// The types of objects by group, version and kind: each object that is written is looked up.
static KINDS: LazyLock<BTreeMap<(&str, &str, &str), &Type>> = LazyLock::new(|| {
    // Of several the first by name.
    let named = TYPES.values().rev().flat_map(|entry| entry.gvks.iter().map(move |gvk| (*gvk, entry)));
    named.collect()
});

/// Every type, by name.
pub(crate) fn types() -> &'static BTreeMap<&'static str, Type> {
    &TYPES
}

/// The type of that name, such as `core.v1.Pod`.
pub(crate) fn find(name: &str) -> Option<&'static Type> {
    TYPES.get(name)
}

/// The type whose objects have that `apiVersion` and `kind`.
pub(crate) fn find_kind(group: &str, version: &str, kind: &str) -> Option<&'static Type> {
    KINDS.get(&(group, version, kind)).copied()
}

fn parse(text: &'static str) -> BTreeMap<&'static str, Type> {
    let blocks = text.split("\n\n").filter(|block| block.starts_with("type "));
    blocks.map(parse_type).map(|entry| (entry.name, entry)).collect()
}

fn parse_type(block: &'static str) -> Type {
    let mut entry =
        Type { name: "", gvks: Vec::new(), required: Vec::new(), map_type: None, fields: BTreeMap::new() };
    for line in block.lines() {
        let (head, rest) = line.split_once(' ').unwrap_or((line, ""));
        match head {
            "type" if entry.name.is_empty() => entry.name = rest,
            "@gvk" => entry.gvks.extend(parse_gvk(rest)),
            "@required" => entry.required = rest.split(' ').collect(),
            "@map" => entry.map_type = Some(rest),
            name => {
                entry.fields.insert(name, parse_field(name, rest));
            }
        }
    }
    entry
}

fn parse_gvk(text: &'static str) -> Option<(&'static str, &'static str, &'static str)> {
    let (group_version, kind) = text.split_once(' ')?;
    let (group, version) = group_version.split_once('/')?;
    Some((group, version, kind))
}

fn parse_field(name: &'static str, text: &'static str) -> Field {
    let mut words = text.split(' ');
    let mut field = Field {
        name,
        shape: parse_shape(words.next().unwrap_or_default()),
        list_type: None,
        list_keys: Vec::new(),
        map_type: None,
        merge_key: None,
        strategy: None,
        allowed: Vec::new(),
        go_name: None,
        default: None,
        omit_zero: false,
        keep_empty: false,
        numbers: Vec::new(),
        null_when_unset: false,
    };
    for word in words {
        let (flag, value) = word.split_once('=').unwrap_or((word, ""));
        match flag {
            "list" => field.list_type = Some(value),
            "keys" => field.list_keys = value.split(',').collect(),
            "map" => field.map_type = Some(value),
            "merge" => field.merge_key = Some(value),
            "strategy" => field.strategy = Some(value),
            "enum" => field.allowed = value.split(',').collect(),
            "go" => field.go_name = Some(value),
            "default" => field.default = serde_json::from_str(value).ok(),
            "pb" => field.numbers = value.split('.').filter_map(|number| number.parse().ok()).collect(),
            "omitzero" => field.omit_zero = true,
            "keepempty" => field.keep_empty = true,
            "null" => field.null_when_unset = true,
            _ => {}
        }
    }
    field
}

fn parse_shape(text: &'static str) -> Shape {
    if let Some(of) = text.strip_prefix("[]") {
        return Shape::List(Box::new(parse_shape(of)));
    }
    if let Some(of) = text.strip_prefix("{}") {
        return Shape::Map(Box::new(parse_shape(of)));
    }
    match text {
        "string" => Shape::Text,
        "bool" => Shape::Bool,
        "int32" => Shape::Int32,
        "int64" => Shape::Int64,
        "double" => Shape::Double,
        "bytes" => Shape::Bytes,
        "time" => Shape::Time,
        "microtime" => Shape::MicroTime,
        "quantity" => Shape::Quantity,
        "intstr" => Shape::IntOrString,
        "raw" => Shape::Raw,
        "fields" => Shape::Fields,
        name => Shape::Object(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn the_file_is_small_and_closed() {
        assert!(TEXT.len() < 200_000);
        let mut words = 0;
        for line in TEXT.lines().filter(|line| !line.starts_with(['#', '@'])) {
            for word in line.split(' ').skip(2) {
                let flag = word.split('=').next().unwrap();
                let known = [
                    "list",
                    "keys",
                    "map",
                    "merge",
                    "strategy",
                    "enum",
                    "go",
                    "default",
                    "omitzero",
                    "keepempty",
                    "null",
                    "pb",
                ];
                assert!(known.contains(&flag), "{line}");
                words += 1;
            }
        }
        assert!(words > 100);
        for entry in types().values() {
            for field in entry.fields.values() {
                let mut shape = &field.shape;
                while let Shape::List(of) | Shape::Map(of) = shape {
                    shape = of;
                }
                if let Shape::Object(name) = shape {
                    assert!(find(name).is_some(), "{}.{} is a {name}", entry.name, field.name);
                }
            }
            for name in &entry.required {
                assert!(entry.fields.contains_key(name), "{}.{name}", entry.name);
            }
        }
    }

    #[test]
    fn every_kind_and_subresource_has_a_type() {
        for kind in kinds::all() {
            let entry = find(kind.schema).unwrap_or_else(|| panic!("{}", kind.schema));
            assert_eq!(entry.gvks, [(kind.group, kind.version, kind.kind)]);
            if kind.is_stored() {
                assert!(find_kind(kind.group, kind.version, kind.list_kind).is_some(), "{}", kind.list_kind);
            }
            for sub in kind.subresources {
                assert!(find_kind(sub.group, sub.version, sub.kind).is_some(), "{}", sub.kind);
            }
        }
    }

    #[test]
    fn facts_are_read() {
        let pod_spec = find("core.v1.PodSpec").unwrap();
        let containers = &pod_spec.fields["containers"];
        assert_eq!(containers.merge_key, Some("name"));
        assert!(containers.merges());
        assert_eq!(containers.shape, Shape::List(Box::new(Shape::Object("core.v1.Container"))));
        assert!(pod_spec.fields["volumes"].merges());
        assert!(!pod_spec.fields["tolerations"].merges());
        assert_eq!(pod_spec.fields["restartPolicy"].allowed, ["Always", "Never", "OnFailure"]);
        assert_eq!(pod_spec.fields["restartPolicy"].go_name, Some("RestartPolicy"));
        assert_eq!(find("core.v1.ServicePort").unwrap().fields["protocol"].default, Some("TCP".into()));
        assert_eq!(pod_spec.go_struct(), "PodSpec");
    }
}
