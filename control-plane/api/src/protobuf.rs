//! Bodies in protobuf, which kubectl sends for `create` and the components of Kubernetes for everything: read by the
//! field numbers of the schema and turned into the JSON they stand for.
//!
//! Only requests are read; answers are JSON, which all of these clients take. Reading never panics and never
//! recurses deeper than JSON may nest.

use serde_json::Number;

use crate::json::{self, MAX_DEPTH, Node};
use crate::schema::{self, Field, Shape, Type};
use crate::status::ApiError;
use crate::typed;

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// Every body begins with this.
const MAGIC: &[u8] = b"k8s\0";

/// The JSON text of a protobuf body: an object with `apiVersion` and `kind`.
///
/// Errors: 400 for a body that is no envelope, is cut short, or holds a kind that is not known.
pub fn to_json(body: &[u8]) -> Result<Vec<u8>, ApiError> {
    read_envelope(body)
        .map(|node| node.into_value().to_string().into_bytes())
        .map_err(|why| ApiError::bad_request(format!("error decoding protobuf: {why}")))
}

fn read_envelope(body: &[u8]) -> Result<Node, String> {
    let body = body.strip_prefix(MAGIC).ok_or("the body does not begin with the expected prefix")?;
    let mut type_meta: &[u8] = &[];
    let mut raw: &[u8] = &[];
    for entry in fields(body) {
        match entry? {
            (1, Wire::Bytes(bytes)) => type_meta = bytes,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            (3, Wire::Bytes(encoding)) if !encoding.is_empty() => {
                return Err("an encoded body is not supported".to_owned());
            }
            (_, _) => {}
        }
    }
    let (mut api_version, mut kind) = (String::new(), String::new());
    for entry in fields(type_meta) {
        match entry? {
            (1, Wire::Bytes(bytes)) => api_version = text(bytes),
            (2, Wire::Bytes(bytes)) => kind = text(bytes),
            (_, _) => {}
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let entry = match kind.as_str() {
        "DeleteOptions" => schema::find("meta.v1.DeleteOptions"),
        kind => schema::find_kind(group, version, kind),
    };
    let entry = entry.ok_or_else(|| format!("no kind \"{kind}\" is known for version \"{api_version}\""))?;
    let mut object = read_message(entry, raw, 0)?;
    object.retain(|(name, _)| name != "apiVersion" && name != "kind");
    object.push(("apiVersion".to_owned(), Node::Text(api_version)));
    object.push(("kind".to_owned(), Node::Text(kind)));
    Ok(Node::Object(object))
}

/// A value as it lies on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wire<'a> {
    Varint(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, in order.
fn fields(message: &[u8]) -> impl Iterator<Item = Result<(u32, Wire<'_>), String>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = take_field(&mut rest);
        if field.is_none() {
            rest = &[];
        }
        Some(field.ok_or_else(|| "unexpected EOF".to_owned()))
    })
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Option<(u32, Wire<'a>)> {
    let key = take_varint(rest)?;
    let number = u32::try_from(key >> 3).ok()?;
    let value = match key & 7 {
        0 => Wire::Varint(take_varint(rest)?),
        1 => Wire::Fixed(u64::from_le_bytes(take(rest, 8)?.try_into().ok()?)),
        2 => {
            let length = usize::try_from(take_varint(rest)?).ok()?;
            Wire::Bytes(take(rest, length)?)
        }
        5 => Wire::Fixed(u64::from(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?))),
        _ => return None,
    };
    Some((number, value))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(head)
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads a message as a type: its fields by name, lists and maps gathered.
fn read_message(entry: &Type, message: &[u8], depth: usize) -> Result<Vec<(String, Node)>, String> {
    if depth > MAX_DEPTH {
        return Err("exceeded max depth".to_owned());
    }
    let mut object = Vec::new();
    read_into(entry, &[], message, depth, &mut object)?;
    Ok(object)
}

fn read_into(
    entry: &Type,
    prefix: &[u32],
    message: &[u8],
    depth: usize,
    object: &mut Vec<(String, Node)>,
) -> Result<(), String> {
    for field in fields(message) {
        let (number, wire) = field?;
        let path = [prefix, &[number]].concat();
        let known = entry.fields.values().find(|field| field.numbers == path);
        if let Some(field) = known {
            add(field, wire, depth, object)?;
        } else if let Wire::Bytes(inner) = wire
            && entry.fields.values().any(|field| field.numbers.starts_with(&path))
        {
            read_into(entry, &path, inner, depth, object)?;
        }
    }
    Ok(())
}

fn add(field: &Field, wire: Wire<'_>, depth: usize, object: &mut Vec<(String, Node)>) -> Result<(), String> {
    let place = object.iter().position(|(name, _)| name == field.name);
    match &field.shape {
        Shape::List(of) => {
            let item = read_value(of, wire, depth + 1)?;
            match place.map(|at| &mut object[at].1) {
                Some(Node::List(items)) => items.push(item),
                Some(_) | None => object.push((field.name.to_owned(), Node::List(vec![item]))),
            }
        }
        Shape::Map(of) => {
            let entry = read_entry(of, wire, depth + 1)?;
            match place.map(|at| &mut object[at].1) {
                Some(Node::Object(entries)) => entries.push(entry),
                Some(_) | None => object.push((field.name.to_owned(), Node::Object(vec![entry]))),
            }
        }
        shape => {
            let value = read_value(shape, wire, depth + 1)?;
            match place {
                Some(at) => object[at].1 = value,
                None => object.push((field.name.to_owned(), value)),
            }
        }
    }
    Ok(())
}

/// One entry of a map: key in field 1, value in field 2.
fn read_entry(of: &Shape, wire: Wire<'_>, depth: usize) -> Result<(String, Node), String> {
    let (mut key, mut value) = (String::new(), None);
    if let Wire::Bytes(message) = wire {
        for field in fields(message) {
            match field? {
                (1, Wire::Bytes(bytes)) => key = text(bytes),
                (2, wire) => value = Some(read_value(of, wire, depth)?),
                (_, _) => {}
            }
        }
    }
    // A value that is its type's zero may be left out.
    let empty = match of {
        Shape::Text | Shape::Bytes => Node::Text(String::new()),
        _ => Node::Null,
    };
    Ok((key, value.unwrap_or(empty)))
}

#[expect(clippy::cast_possible_wrap, reason = "protobuf carries negative numbers as their two's complement")]
fn read_value(shape: &Shape, wire: Wire<'_>, depth: usize) -> Result<Node, String> {
    let wrong = || format!("wrong wireType for a field of type {shape:?}");
    Ok(match (shape, wire) {
        (Shape::Text, Wire::Bytes(bytes)) => Node::Text(text(bytes)),
        (Shape::Bytes, Wire::Bytes(bytes)) => Node::Text(typed::base64(bytes)),
        (Shape::Bool, Wire::Varint(value)) => Node::Bool(value != 0),
        (Shape::Int32 | Shape::Int64, Wire::Varint(value)) => Node::Number((value as i64).into()),
        (Shape::Double, Wire::Fixed(bits)) => {
            Number::from_f64(f64::from_bits(bits)).map_or(Node::Null, Node::Number)
        }
        (Shape::Time | Shape::MicroTime, Wire::Bytes(message)) => read_time(shape, message)?,
        (Shape::Quantity, Wire::Bytes(message)) => {
            let mut amount = String::from("0");
            for field in fields(message) {
                if let (1, Wire::Bytes(bytes)) = field? {
                    amount = text(bytes);
                }
            }
            Node::Text(amount)
        }
        (Shape::IntOrString, Wire::Bytes(message)) => read_int_or_string(message)?,
        (Shape::Raw, Wire::Bytes(message)) => {
            let mut raw = Node::Null;
            for field in fields(message) {
                if let (1, Wire::Bytes(bytes)) = field?
                    && !bytes.is_empty()
                {
                    raw = json::parse(bytes)?;
                }
            }
            raw
        }
        (Shape::Fields, Wire::Bytes(_)) => Node::Null,
        (Shape::Object(name), Wire::Bytes(message)) => match schema::find(name) {
            Some(entry) => Node::Object(read_message(entry, message, depth)?),
            None => Node::Null,
        },
        // A list inside a map is a message whose field 1 repeats.
        (Shape::List(of), Wire::Bytes(message)) => {
            let mut items = Vec::new();
            for field in fields(message) {
                if let (1, wire) = field? {
                    items.push(read_value(of, wire, depth + 1)?);
                }
            }
            Node::List(items)
        }
        (_, _) => return Err(wrong()),
    })
}

/// Seconds in field 1, nanoseconds in field 2; a message without fields is no time.
#[expect(clippy::cast_possible_wrap, reason = "protobuf carries negative numbers as their two's complement")]
fn read_time(shape: &Shape, message: &[u8]) -> Result<Node, String> {
    let (mut seconds, mut nanos) = (None, 0_i32);
    for field in fields(message) {
        match field? {
            (1, Wire::Varint(value)) => seconds = Some(value as i64),
            (2, Wire::Varint(value)) => nanos = i32::try_from(value as i64).unwrap_or_default(),
            (_, _) => {}
        }
    }
    let Some(seconds) = seconds else { return Ok(Node::Null) };
    let instant = jiff::Timestamp::new(seconds, nanos).map_err(|error| error.to_string())?;
    let digits = if *shape == Shape::Time { 0 } else { 6 };
    Ok(Node::Text(typed::stamp(instant, digits)))
}

/// Which of the two in field 1 (0 number, 1 text), the number in field 2, the text in field 3.
#[expect(clippy::cast_possible_wrap, reason = "protobuf carries negative numbers as their two's complement")]
fn read_int_or_string(message: &[u8]) -> Result<Node, String> {
    let (mut is_text, mut number, mut string) = (false, 0, String::new());
    for field in fields(message) {
        match field? {
            (1, Wire::Varint(value)) => is_text = value == 1,
            (2, Wire::Varint(value)) => number = value as i64,
            (3, Wire::Bytes(bytes)) => string = text(bytes),
            (_, _) => {}
        }
    }
    Ok(if is_text { Node::Text(string) } else { Node::Number(Number::from(number)) })
}

/// Whether a `Content-Type` header names this media type.
pub fn is_protobuf(header: &str) -> bool {
    header.split(';').next().unwrap_or_default().trim() == MEDIA_TYPE
}

#[cfg(test)]
mod judge;
#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Writes a length-delimited field.
    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        assert!(number < 16 && content.len() < 128);
        [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
    }

    fn varint(number: u8, value: u8) -> Vec<u8> {
        vec![number << 3, value]
    }

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let type_meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &type_meta), bytes(2, raw), bytes(3, b""), bytes(4, b"")].concat()
    }

    fn check(api_version: &str, kind: &str, raw: &[u8], mut expected: Value) {
        let json = to_json(&envelope(api_version, kind, raw)).unwrap();
        expected["apiVersion"] = json!(api_version);
        expected["kind"] = json!(kind);
        assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), expected);
    }

    #[test]
    fn what_kubectl_create_sends() {
        // As `kubectl create serviceaccount x`: empty metadata fields are written out, the unset time is empty.
        let meta =
            [bytes(1, b"x"), bytes(2, b""), bytes(3, b"default"), varint(7, 0), bytes(8, b"")].concat();
        let expected = json!({"metadata": {
            "name": "x", "generateName": "", "namespace": "default", "generation": 0, "creationTimestamp": null,
        }});
        check("v1", "ServiceAccount", &bytes(1, &meta), expected);
    }

    #[test]
    fn maps_lists_and_special_types() {
        let label = [bytes(1, b"a"), bytes(2, b"b")].concat();
        let meta = [bytes(11, &label), bytes(14, b""), bytes(8, &varint(1, 60))].concat();
        let raw = [bytes(1, &meta), bytes(2, &[bytes(1, b"k"), bytes(2, b"foo")].concat())].concat();
        let expected = json!({
            "metadata": {"labels": {"a": "b"}, "finalizers": [""], "creationTimestamp": "1970-01-01T00:01:00Z"},
            "data": {"k": "Zm9v"},
        });
        check("v1", "Secret", &raw, expected);

        let by_number = [varint(1, 0), varint(2, 80)].concat();
        let by_name = [varint(1, 1), bytes(3, b"http")].concat();
        let port = |target: &[u8]| [varint(3, 80), bytes(4, target)].concat();
        let spec = [bytes(1, &port(&by_number)), bytes(1, &port(&by_name))].concat();
        let expected =
            json!({"spec": {"ports": [{"port": 80, "targetPort": 80}, {"port": 80, "targetPort": "http"}]}});
        check("v1", "Service", &bytes(2, &spec), expected);
    }

    #[test]
    fn inlined_messages_are_looked_through() {
        let empty_dir = bytes(2, b"");
        let volume = [bytes(1, b"v"), bytes(2, &empty_dir)].concat();
        let limit = [bytes(1, b"cpu"), bytes(2, &bytes(1, b"1"))].concat();
        let container = [bytes(1, b"c"), bytes(8, &bytes(1, &limit))].concat();
        let spec = [bytes(1, &volume), bytes(2, &container)].concat();
        let expected = json!({"spec": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}],
        }});
        check("v1", "Pod", &bytes(2, &spec), expected);
    }

    #[test]
    fn bodies_that_are_refused() {
        for (body, message) in [
            (&b"{}"[..], "error decoding protobuf: the body does not begin with the expected prefix"),
            (b"k8s\0\x0a\x7f", "error decoding protobuf: unexpected EOF"),
            (
                &envelope("v1", "Nope", b""),
                "error decoding protobuf: no kind \"Nope\" is known for version \"v1\"",
            ),
            (
                &envelope("v1", "Pod", &varint(1, 5)),
                "error decoding protobuf: wrong wireType for a field of type Object(\"meta.v1.ObjectMeta\")",
            ),
        ] {
            assert_eq!(to_json(body), Err(ApiError::bad_request(message)));
        }
        assert!(is_protobuf("application/vnd.kubernetes.protobuf;stream=watch"));
        assert!(!is_protobuf("application/json"));
    }

    #[test]
    fn every_field_has_a_number() {
        for entry in schema::types().values() {
            for field in entry.fields.values() {
                let typed = matches!(field.name, "apiVersion" | "kind") && field.numbers.is_empty();
                assert!(typed || matches!(field.numbers.len(), 1..=3), "{}.{}", entry.name, field.name);
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(raw in prop::collection::vec(any::<u8>(), 0..120)) {
            for kind in ["Pod", "Secret", "Service"] {
                let _ = to_json(&envelope("v1", kind, &raw));
            }
            let _ = to_json(&[MAGIC, &raw].concat());
        }
    }
}
