//! Reads a JSON tree as a type of the schema, the way Kubernetes decodes into its Go structs and prints them again.
//!
//! Wrong types are errors in the words of Go's decoder. Unknown and repeated fields are noted in document order and
//! dropped. What comes out is in the form in which Kubernetes gives objects back: quantities canonical, times in UTC,
//! empty optional fields left out, fields that are never omitted filled with their zero value. `managedFields` are
//! dropped: nothing here keeps them.

use control_plane_core::quantity::Quantity;
use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde_json::{Map, Value};

use crate::json::Node;
use crate::schema::{self, Field, Shape, Type};

/// A value read as a type, and the fields that were unknown or repeated.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Typed {
    pub(crate) value: Value,
    pub(crate) problems: Vec<String>,
}

/// Reads `node` as `entry`. With `any_quantity` a malformed quantity is kept as it stands.
///
/// Errors: the first failure, as Go's decoder words it.
pub(crate) fn read(entry: &'static Type, node: Node, any_quantity: bool) -> Result<Typed, String> {
    let mut reader = Reader {
        any_quantity,
        problems: Vec::new(),
        path: String::new(),
        fields: Vec::new(),
        within: "",
        mismatch: None,
    };
    let value = reader.object(entry, node)?;
    match reader.mismatch {
        Some(message) => Err(message),
        None => Ok(Typed { value: value.unwrap_or_default(), problems: reader.problems }),
    }
}

/// More unknown and repeated fields are not told of.
const MOST_PROBLEMS: usize = 100;

struct Reader {
    any_quantity: bool,
    problems: Vec<String>,
    /// Where we are, with list indices and map keys, as unknown fields are named.
    path: String,
    /// The names of the fields above, as Go's type errors name them.
    fields: Vec<&'static str>,
    /// The struct that the last of them is in.
    within: &'static str,
    /// The first value of a wrong type; decoding goes on after it.
    mismatch: Option<String>,
}

/// `Err` stops decoding at once, as a failing `UnmarshalJSON` does in Go. `None` stands for a null.
type Read = Result<Option<Value>, String>;

impl Reader {
    fn value(&mut self, shape: &Shape, go_name: Option<&str>, node: Node) -> Read {
        match shape {
            Shape::Object(name) => match schema::find(name) {
                Some(entry) => self.object(entry, node),
                None => Ok(Some(node.into_value())),
            },
            Shape::List(of) => self.list(of, shape, go_name, node),
            Shape::Map(of) => self.map(of, shape, go_name, node),
            Shape::Raw => Ok(Some(node.into_value()).filter(|value| !value.is_null())),
            Shape::Fields => Ok(None),
            Shape::Quantity => self.quantity(node),
            Shape::Time => time(node, 0),
            Shape::MicroTime => time(node, 6),
            Shape::IntOrString => int_or_string(node),
            Shape::Bytes => self.bytes(shape, node),
            Shape::Text | Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Double => {
                Ok(self.scalar(shape, go_name, node))
            }
        }
    }

    fn scalar(&mut self, shape: &Shape, go_name: Option<&str>, node: Node) -> Option<Value> {
        let fits = match (&node, shape) {
            (Node::Null, _) => return None,
            (Node::Text(_), Shape::Text) | (Node::Bool(_), Shape::Bool) => true,
            (Node::Number(_), Shape::Double) => true,
            (Node::Number(number), Shape::Int64) => number.is_i64(),
            (Node::Number(number), Shape::Int32) => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
            (_, _) => false,
        };
        if fits {
            return Some(node.into_value());
        }
        let what = match (&node, shape) {
            (Node::Number(number), Shape::Int32 | Shape::Int64) => format!("number {number}"),
            (_, _) => node.go_kind().to_owned(),
        };
        self.wrong_type(&what, &go_type(shape, go_name));
        None
    }

    fn wrong_type(&mut self, what: &str, go_type: &str) {
        if self.mismatch.is_none() {
            let target = if self.fields.is_empty() {
                format!("Go value of type {go_type}")
            } else {
                format!("Go struct field {}.{} of type {go_type}", self.within, self.fields.join("."))
            };
            self.mismatch = Some(format!("json: cannot unmarshal {what} into {target}"));
        }
    }

    fn list(&mut self, of: &Shape, shape: &Shape, go_name: Option<&str>, node: Node) -> Read {
        let items = match node {
            Node::Null => return Ok(None),
            Node::List(items) => items,
            other => {
                self.wrong_type(other.go_kind(), &go_type(shape, go_name));
                return Ok(None);
            }
        };
        let mark = self.path.len();
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            self.path.push_str(&format!("[{index}]"));
            let value = self.value(of, None, item)?;
            values.push(value.unwrap_or_else(|| zero(of)));
            self.path.truncate(mark);
        }
        Ok(Some(Value::Array(values)))
    }

    fn map(&mut self, of: &Shape, shape: &Shape, go_name: Option<&str>, node: Node) -> Read {
        let fields = match node {
            Node::Null => return Ok(None),
            Node::Object(fields) => fields,
            other => {
                self.wrong_type(other.go_kind(), &go_type(shape, go_name));
                return Ok(None);
            }
        };
        let mark = self.path.len();
        let mut values = Map::new();
        for (key, item) in fields {
            self.push(&key);
            if values.contains_key(&key) {
                self.note("duplicate");
            }
            let value = self.value(of, None, item)?;
            values.insert(key, value.unwrap_or_else(|| zero(of)));
            self.path.truncate(mark);
        }
        Ok(Some(Value::Object(values)))
    }

    fn object(&mut self, entry: &'static Type, node: Node) -> Read {
        let given = match node {
            Node::Null => return Ok(None),
            Node::Object(fields) => fields,
            other => {
                self.wrong_type(other.go_kind(), &format!("v1.{}", entry.go_struct()));
                return Ok(None);
            }
        };
        let mark = self.path.len();
        let mut seen: Vec<String> = Vec::new();
        let mut values = Map::new();
        for (key, item) in given {
            self.push(&key);
            match entry.fields.get(key.as_str()) {
                None => self.note("unknown"),
                Some(field) => {
                    if seen.contains(&key) {
                        self.note("duplicate");
                    }
                    let outer = std::mem::replace(&mut self.within, entry.go_struct());
                    self.fields.push(field.name);
                    let value = self.value(&field.shape, field.go_name, item)?;
                    self.fields.pop();
                    self.within = outer;
                    if field.name != "managedFields" {
                        keep(&mut values, entry, field, value);
                    }
                    seen.push(key);
                }
            }
            self.path.truncate(mark);
        }
        fill(&mut values, entry);
        Ok(Some(Value::Object(values)))
    }

    fn push(&mut self, key: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
    }

    /// Notes a problem, once and within reason, as Go's decoder does.
    fn note(&mut self, what: &str) {
        if self.problems.len() >= MOST_PROBLEMS {
            return;
        }
        let problem = format!("{what} field \"{}\"", self.path);
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn quantity(&mut self, node: Node) -> Read {
        let text = match node {
            Node::Null => return Ok(Some(Value::from("0"))),
            Node::Text(text) => text,
            Node::Number(number) => number.to_string(),
            other @ (Node::Bool(_) | Node::List(_) | Node::Object(_)) => other.into_value().to_string(),
        };
        match Quantity::parse(text.trim()) {
            Ok(quantity) => Ok(Some(Value::from(quantity.to_string()))),
            Err(_) if self.any_quantity => Ok(Some(Value::from(text))),
            Err(error) => Err(error.to_string()),
        }
    }

    fn bytes(&mut self, shape: &Shape, node: Node) -> Read {
        match node {
            Node::Null => Ok(None),
            Node::Text(text) => match bad_base64(&text) {
                Some(at) => Err(format!("illegal base64 data at input byte {at}")),
                None => Ok(Some(Value::from(text))),
            },
            other => {
                self.wrong_type(other.go_kind(), &go_type(shape, None));
                Ok(None)
            }
        }
    }
}

/// Puts a field in its place, unless Go would leave it out.
fn keep(values: &mut Map<String, Value>, entry: &Type, field: &Field, value: Option<Value>) {
    let Some(value) = value else {
        values.remove(field.name);
        return;
    };
    let empty = match (&value, &field.shape) {
        (Value::String(text), Shape::Text | Shape::Bytes) => text.is_empty(),
        (Value::Array(items), Shape::List(_)) => items.is_empty(),
        (Value::Object(map), Shape::Map(_)) => map.is_empty(),
        (Value::Number(number), _) => field.omit_zero && number.as_i64() == Some(0),
        (Value::Bool(flag), _) => field.omit_zero && !flag,
        (_, _) => false,
    };
    if empty && !field.keep_empty && !entry.required.contains(&field.name) {
        values.remove(field.name);
    } else {
        values.insert(field.name.to_owned(), value);
    }
}

/// Adds what Go prints even when it was never set.
fn fill(values: &mut Map<String, Value>, entry: &Type) {
    for field in entry.fields.values() {
        if values.contains_key(field.name) {
            continue;
        }
        if field.null_when_unset {
            values.insert(field.name.to_owned(), Value::Null);
        } else if let Some(default) = &field.default {
            let value = match field.shape {
                Shape::Object(_) => zero(&field.shape),
                Shape::Text
                | Shape::Bool
                | Shape::Int32
                | Shape::Int64
                | Shape::Double
                | Shape::Bytes
                | Shape::Time
                | Shape::MicroTime
                | Shape::Quantity
                | Shape::IntOrString
                | Shape::Raw
                | Shape::Fields
                | Shape::List(_)
                | Shape::Map(_) => default.clone(),
            };
            values.insert(field.name.to_owned(), value);
        }
    }
}

/// What Go's zero value of a shape prints as.
fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Text | Shape::Bytes => Value::from(""),
        Shape::Bool => Value::from(false),
        Shape::Int32 | Shape::Int64 | Shape::Double | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::from("0"),
        Shape::Time | Shape::MicroTime | Shape::Raw | Shape::Fields | Shape::List(_) | Shape::Map(_) => {
            Value::Null
        }
        Shape::Object(name) => {
            let mut values = Map::new();
            if let Some(entry) = schema::find(name) {
                fill(&mut values, entry);
            }
            Value::Object(values)
        }
    }
}

/// The name of a shape in Go.
fn go_type(shape: &Shape, go_name: Option<&str>) -> String {
    let own = match shape {
        Shape::Text => "string".to_owned(),
        Shape::Bool => "bool".to_owned(),
        Shape::Int32 => "int32".to_owned(),
        Shape::Int64 => "int64".to_owned(),
        Shape::Double => "float64".to_owned(),
        Shape::Bytes => "[]uint8".to_owned(),
        Shape::Time => "v1.Time".to_owned(),
        Shape::MicroTime => "v1.MicroTime".to_owned(),
        Shape::Quantity => "resource.Quantity".to_owned(),
        Shape::IntOrString => "intstr.IntOrString".to_owned(),
        Shape::Raw => "runtime.RawExtension".to_owned(),
        Shape::Fields => "v1.FieldsV1".to_owned(),
        Shape::List(of) => return format!("[]{}", go_type(of, go_name)),
        Shape::Map(of) => format!("map[string]{}", go_type(of, None)),
        Shape::Object(name) => format!("v1.{}", name.rsplit('.').next().unwrap_or(name)),
    };
    match go_name {
        Some(name) if name.contains('.') => name.to_owned(),
        Some(name) => format!("v1.{name}"),
        None => own,
    }
}

/// An instant as Kubernetes prints it: UTC, with `digits` decimal places.
pub(crate) fn stamp(instant: Timestamp, digits: u8) -> String {
    DateTimePrinter::new().precision(Some(digits)).timestamp_to_string(&instant)
}

fn time(node: Node, digits: u8) -> Read {
    match node {
        Node::Null => Ok(None),
        Node::Text(text) => match text.parse::<Timestamp>() {
            Ok(instant) => Ok(Some(Value::from(stamp(instant, digits)))),
            Err(_) => {
                let layout = if digits == 0 {
                    "2006-01-02T15:04:05Z07:00"
                } else {
                    "2006-01-02T15:04:05.000000Z07:00"
                };
                let text = crate::status::quote(&text);
                Err(format!("parsing time {text} as \"{layout}\": cannot parse {text} as \"2006\""))
            }
        },
        other => Err(format!("json: cannot unmarshal {} into Go value of type string", other.go_kind())),
    }
}

fn int_or_string(node: Node) -> Read {
    match node {
        Node::Null => Ok(None),
        Node::Text(text) => Ok(Some(Value::from(text))),
        Node::Number(number) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {
            Ok(Some(Value::Number(number)))
        }
        Node::Number(number) => {
            Err(format!("json: cannot unmarshal number {number} into Go value of type int32"))
        }
        other => Err(format!("json: cannot unmarshal {} into Go value of type int32", other.go_kind())),
    }
}

/// Bytes in standard base64, as JSON carries them.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let index = (group >> (18 - 6 * place)) & 63;
            out.push(if place > chunk.len() { '=' } else { char::from(ALPHABET[index as usize]) });
        }
    }
    out
}

/// The offset of the first byte that is not standard base64, counted as Go counts it.
fn bad_base64(text: &str) -> Option<usize> {
    let bytes: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let body = match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => &bytes[..at],
        None => &bytes[..],
    };
    let padding = bytes.len() - body.len();
    let odd = body.iter().position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')));
    if odd.is_some() {
        return odd;
    }
    let padded = bytes[body.len()..].iter().all(|byte| *byte == b'=');
    let whole = bytes.len().is_multiple_of(4) && padding <= 2 && padded;
    if whole { None } else { Some(bytes.len() / 4 * 4) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::json;

    fn pod(body: &Value) -> Result<Typed, String> {
        read(schema::find("core.v1.Pod").unwrap(), Node::from(body.clone()), false)
    }

    #[test]
    fn wrong_types_are_named_as_go_names_them() {
        let cases = [
            (
                json!({"spec": {"containers": "zzz"}}),
                "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (
                json!({"spec": {"terminationGracePeriodSeconds": "ten"}}),
                "json: cannot unmarshal string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of \
                 type int64",
            ),
            (
                json!({"spec": {"containers": [{"name": 5}]}}),
                "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string",
            ),
            (
                json!({"spec": {"restartPolicy": true}}),
                "json: cannot unmarshal bool into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
            ),
            (
                json!({"metadata": {"labels": {"a": 1}}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            ),
            (
                json!({"spec": {"priority": 1.5}}),
                "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
            ),
            (
                json!({"spec": {"priority": 3_000_000_000_u64}}),
                "json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority of type int32",
            ),
            (
                json!({"spec": {"nodeSelector": []}}),
                "json: cannot unmarshal array into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
            ),
            (json!([]), "json: cannot unmarshal array into Go value of type v1.Pod"),
        ];
        for (body, message) in cases {
            assert_eq!(pod(&body).unwrap_err(), message, "{body}");
        }
    }

    #[test]
    fn values_come_out_as_kubernetes_prints_them() {
        let body = json!({
            "metadata": {"labels": {}, "finalizers": [], "managedFields": [{"manager": "x"}]},
            "spec": {
                "nodeName": "",
                "hostNetwork": false,
                "containers": [{
                    "name": "c",
                    "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"memory": "1024Mi", "cpu": 0.5}},
                }],
            },
            "status": {"startTime": "2026-11-29T13:00:00.7+01:00"},
        });
        let expected = json!({
            "metadata": {"creationTimestamp": null},
            "spec": {"containers": [{
                "name": "c",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"memory": "1Gi", "cpu": "500m"}},
            }]},
            "status": {"startTime": "2026-11-29T12:00:00Z"},
        });
        assert_eq!(pod(&body).unwrap(), Typed { value: expected, problems: Vec::new() });
    }

    #[test]
    fn quantities_follow_the_dialect() {
        let body =
            json!({"spec": {"containers": [{"name": "c", "resources": {"limits": {"memory": "1Foo"}}}]}});
        assert!(pod(&body).unwrap_err().starts_with("quantities must match"));
        let entry = schema::find("core.v1.Pod").unwrap();
        let value = read(entry, Node::from(body), true).unwrap().value;
        assert_eq!(value["spec"]["containers"][0]["resources"]["limits"]["memory"], "1Foo");
    }

    #[test]
    fn unknown_and_repeated_fields_are_noted_in_order() {
        let body =
            br#"{"metadata":{"name":"a","name":"b"},"spec":{"containers":[{"imagee":"x"}],"bogus":1}}"#;
        let typed = read(schema::find("core.v1.Pod").unwrap(), json::parse(body).unwrap(), false).unwrap();
        let expected = [
            "duplicate field \"metadata.name\"",
            "unknown field \"spec.containers[0].imagee\"",
            "unknown field \"spec.bogus\"",
        ];
        assert_eq!(typed.problems, expected);
        assert_eq!(typed.value["metadata"]["name"], "b");
        assert!(typed.value["spec"].get("bogus").is_none());
    }

    #[test]
    fn secrets_hold_base64() {
        for (text, encoded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
        for (text, bad) in
            [("", None), ("YQ==", None), ("YWI=", None), ("a!", Some(1)), ("YQ", Some(0)), ("YWFhY", Some(4))]
        {
            assert_eq!(bad_base64(text), bad, "{text}");
        }
    }

    proptest! {
        #[test]
        fn reading_is_total_and_stable(value in json::tests::any_json()) {
            for body in [value.clone(), json!({"metadata": value, "spec": value, "status": value})] {
                if let Ok(typed) = pod(&body) {
                    let again = pod(&typed.value).unwrap();
                    prop_assert_eq!(&again.value, &typed.value);
                    prop_assert!(again.problems.is_empty());
                }
            }
        }
    }
}
