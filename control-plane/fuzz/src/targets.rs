//! What each fuzz target does with its bytes. A finding is a panic: of the code under test, or of a property stated here.
//!
//! Inputs are text as far as possible, so that a kept one can be read. The workspace's tests replay all kept inputs through
//! these same functions; this file uses nothing that only a fuzzer has.

#[path = "router.rs"]
mod router;

use control_plane_api::decode::{Dialect, Expected};
use control_plane_api::options::FieldValidation;
use control_plane_api::patch::PatchType;
use control_plane_api::{Kind, kinds, protobuf};
use control_plane_core::quantity::Quantity;
use control_plane_core::selectors::{FieldSelector, LabelSelector};
use serde_json::{Value, json};

pub use self::router::{Told, router};

/// The first line, and all after it.
fn line(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[]),
    }
}

/// The kind of this plural name; pods where there is none.
fn kind(plural: &str) -> &'static Kind {
    let named = kinds::all().iter().find(|kind| kind.plural == plural && kind.is_stored());
    named.or_else(|| kinds::by_resource("pods")).expect("pods are served")
}

fn words(line: &[u8]) -> (String, &'static Kind, Dialect) {
    let text = String::from_utf8_lossy(line);
    let mut words = text.split(' ');
    let first = words.next().unwrap_or_default().to_owned();
    let kind = kind(words.next().unwrap_or_default());
    let dialect = if words.next() == Some("kubernetes") { Dialect::Kubernetes } else { Dialect::Kube32 };
    (first, kind, dialect)
}

/// `json|merge|strategic PLURAL [kubernetes]`, the object on the next line, the patch on the rest.
pub fn patch(data: &[u8]) {
    let (head, rest) = line(data);
    let (current, patch) = line(rest);
    let (how, kind, dialect) = words(head);
    let Ok(current) = serde_json::from_slice::<Value>(current) else { return };
    let expected = Expected::from(kind);
    // Only objects that could have been stored are patched.
    let Ok(current) = control_plane_api::decode::canonical(expected, current, dialect) else { return };
    let how = match how.as_str() {
        "json" => PatchType::Json,
        "merge" => PatchType::Merge,
        _ => PatchType::Strategic,
    };
    let apply = |current: &Value| {
        control_plane_api::patch::apply(expected, how, current, patch, FieldValidation::Ignore, dialect)
    };
    match apply(&current) {
        Ok(patched) => {
            assert!(patched.object.is_object(), "{}", patched.object);
            if how == PatchType::Merge {
                let again = apply(&patched.object).expect("a merge patch that was taken once is taken twice");
                assert_eq!(again.object, patched.object, "a merge patch is idempotent");
            }
        }
        Err(error) => assert!((400..500).contains(&error.code), "{error}"),
    }
}

/// A label selector, a field selector, and an object to select, one a line.
pub fn selectors(data: &[u8]) {
    let (labels, rest) = line(data);
    let (fields, object) = line(rest);
    let object: Value = serde_json::from_slice(object)
        .unwrap_or_else(|_| json!({"metadata": {"name": "a", "labels": {"a": "b", "n": "5"}}}));
    if let Ok(text) = std::str::from_utf8(labels)
        && let Ok(selector) = LabelSelector::parse(text)
    {
        let matched = selector.matches_object(&object);
        assert!(matched || !selector.is_everything(), "everything selects everything");
        assert_eq!(LabelSelector::parse(text).map(|again| again.matches_object(&object)), Ok(matched));
    }
    if let Ok(text) = std::str::from_utf8(fields)
        && let Ok(selector) = FieldSelector::parse(text)
    {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let matched = selector.matches(|field| (field == "metadata.name").then_some(name));
        assert!(matched || !selector.is_everything(), "everything selects everything");
        if let Some(required) = selector.required("metadata.name") {
            assert!(!matched || required == name, "what is selected has the required value");
        }
    }
    drop(LabelSelector::from_object(&object));
}

/// The text of a quantity.
pub fn quantities(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    drop(Quantity::kube32(text).to_string());
    let Ok(value) = Quantity::parse(text) else { return };
    let shown = value.to_string();
    let again = Quantity::parse(&shown).unwrap_or_else(|error| panic!("{text:?} became {shown:?}: {error}"));
    assert_eq!(again, value, "{text:?} became {shown:?}");
    assert_eq!(again.to_string(), shown, "the canonical form of {text:?} is canonical");
    assert!(
        i128::from(value.units_ceil()) * 1_000_000_000 >= value.nanos() || value.units_ceil() == i64::MAX
    );
    assert_eq!(value.is_negative(), value.nanos() < 0);
}

/// `json|yaml|protobuf PLURAL [kubernetes]`, and the body on the rest.
pub fn decode(data: &[u8]) {
    let (head, body) = line(data);
    let (how, kind, dialect) = words(head);
    let json = match how.as_str() {
        "protobuf" => match protobuf::to_json(body) {
            Ok(json) => {
                assert!(serde_json::from_slice::<Value>(&json).is_ok(), "protobuf became no JSON");
                json
            }
            Err(error) => return assert!((400..500).contains(&error.code), "{error}"),
        },
        "yaml" => return yaml(kind, body),
        _ => body.to_vec(),
    };
    let expected = Expected::from(kind);
    let read =
        |body: &[u8], validation| control_plane_api::decode::decode(expected, body, validation, dialect);
    match read(&json, FieldValidation::Warn) {
        Ok(decoded) => {
            let text = decoded.object.to_string();
            let again = read(text.as_bytes(), FieldValidation::Strict)
                .unwrap_or_else(|error| panic!("{text} is not what it was decoded to: {error}"));
            assert_eq!(again.object, decoded.object, "decoding is idempotent");
        }
        Err(error) => assert!((400..500).contains(&error.code), "{error}"),
    }
}

fn yaml(kind: &Kind, body: &[u8]) {
    let group = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    let scope = if kind.namespaced { "/namespaces/default" } else { "" };
    let path = format!("{group}/{}{scope}/{}?dryRun=All", kind.version, kind.plural);
    let head = format!("POST {path}\ncontent-type: application/yaml\n\n");
    drop(router(&[head.as_bytes(), body].concat()));
}
