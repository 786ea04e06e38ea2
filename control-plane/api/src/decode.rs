//! Bodies of write requests: from bytes to a well-typed object, or the 400 or 422 that Kubernetes answers.
//!
//! The same checks run on what a patch leaves behind. Unknown and repeated fields follow `fieldValidation`.

use serde_json::{Value, json};

use crate::json::{self, Node};
use crate::kinds::{Kind, Subresource};
use crate::options::FieldValidation;
use crate::schema::{self, Shape, Type};
use crate::status::{ApiError, Cause};
use crate::typed;

/// Whose rules hold where kube32 and Kubernetes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Any text is a quantity (SCHED-20), and extended resources need no limits.
    #[default]
    Kube32,
    /// As Kubernetes 1.32.
    Kubernetes,
}

/// The type of object that an endpoint takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version within the group.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
}

impl From<&Kind> for Expected {
    fn from(kind: &Kind) -> Self {
        Self { group: kind.group, version: kind.version, kind: kind.kind }
    }
}

impl From<&Subresource> for Expected {
    fn from(sub: &Subresource) -> Self {
        Self { group: sub.group, version: sub.version, kind: sub.kind }
    }
}

impl Expected {
    fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    fn entry(&self) -> &'static Type {
        schema::find_kind(self.group, self.version, self.kind)
            .expect("every endpoint's kind is in the schema")
    }
}

/// A well-typed object, and what to say about it in `Warning` headers.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The object, with `apiVersion` and `kind` set and unknown fields dropped.
    pub object: Value,
    /// One text for each unknown or repeated field, under [`FieldValidation::Warn`].
    pub warnings: Vec<String>,
}

/// Decodes the JSON body of a POST or PUT.
///
/// Errors: 400 with Kubernetes' text for a body that is no JSON, of another kind, wrongly typed, or, under
/// [`FieldValidation::Strict`], with unknown or repeated fields.
pub fn decode(
    expected: Expected,
    body: &[u8],
    validation: FieldValidation,
    dialect: Dialect,
) -> Result<Decoded, ApiError> {
    decode_after(Vec::new(), expected, body, validation, dialect)
}

/// As [`decode`], where `problems` were found on the way to JSON: they count as unknown fields do, and come first.
///
/// Errors: as [`decode`].
pub fn decode_after(
    mut problems: Vec<String>,
    expected: Expected,
    body: &[u8],
    validation: FieldValidation,
    dialect: Dialect,
) -> Result<Decoded, ApiError> {
    let node = json::parse(body).map_err(|why| unrecognized(expected, body, &why))?;
    let (api_version, kind) = type_of(expected, &node).map_err(|why| unrecognized(expected, body, &why))?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let refuse = |why: &str| {
        let kind_wanted = expected.kind;
        ApiError::bad_request(format!(
            "{kind} in version {} cannot be handled as a {kind_wanted}: {why}",
            crate::status::quote(&api_version)
        ))
    };
    let Some(entry) = schema::find_kind(group, version, &kind) else {
        return Err(refuse(&not_registered(&api_version, &kind)));
    };
    let typed = typed::read(entry, node, dialect == Dialect::Kube32).map_err(|why| refuse(&why))?;
    if kind != expected.kind {
        return Err(refuse(&no_conversion(version, &kind, expected)));
    }
    if api_version != expected.api_version() {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            expected.api_version()
        )));
    }
    problems.extend(typed.problems);
    let warnings = match validation {
        FieldValidation::Ignore => Vec::new(),
        FieldValidation::Warn => problems,
        FieldValidation::Strict if problems.is_empty() => Vec::new(),
        FieldValidation::Strict => {
            return Err(refuse(&format!("strict decoding error: {}", problems.join(", "))));
        }
    };
    Ok(Decoded { object: stamp_type(expected, typed.value), warnings })
}

/// Checks what a patch left behind. `shown` is the text that stands for it in messages.
///
/// Errors: 422 about a field named `patch`, as Kubernetes answers.
pub fn check_patched(
    expected: Expected,
    patched: Value,
    shown: &str,
    validation: FieldValidation,
    dialect: Dialect,
) -> Result<Decoded, ApiError> {
    let refuse = |why: &str| {
        let cause = Cause::invalid("patch", &Value::from(shown), why);
        ApiError::invalid_for("", "", "", vec![cause])
    };
    let kind = json::text(&patched, &["kind"]).to_owned();
    let api_version = json::text(&patched, &["apiVersion"]).to_owned();
    let typed = typed::read(expected.entry(), Node::from(patched), dialect == Dialect::Kube32)
        .map_err(|why| refuse(&why))?;
    if (!kind.is_empty() && kind != expected.kind)
        || (!api_version.is_empty() && api_version != expected.api_version())
    {
        let cause = format!(
            "{kind} in version {} cannot be handled as a {}",
            crate::status::quote(&api_version),
            expected.kind
        );
        return Err(ApiError::bad_request(cause));
    }
    let warnings = match validation {
        FieldValidation::Ignore => Vec::new(),
        FieldValidation::Warn => typed.problems,
        FieldValidation::Strict if typed.problems.is_empty() => Vec::new(),
        FieldValidation::Strict => {
            return Err(refuse(&format!("strict decoding error: {}", typed.problems.join(", "))));
        }
    };
    Ok(Decoded { object: stamp_type(expected, typed.value), warnings })
}

/// Brings an object that the server itself made into the form in which objects are kept and printed.
///
/// Errors: 500 where it is not well typed.
pub fn canonical(expected: Expected, object: Value, dialect: Dialect) -> Result<Value, ApiError> {
    typed::read(expected.entry(), Node::from(object), dialect == Dialect::Kube32)
        .map(|typed| stamp_type(expected, typed.value))
        .map_err(|why| ApiError::internal(&why))
}

/// An object of which only the metadata is said, with the other fields that Kubernetes prints even so: bookmarks are such.
///
/// Errors: 500 where the metadata is not well typed.
pub fn empty(expected: Expected, metadata: Value, dialect: Dialect) -> Result<Value, ApiError> {
    let mut object = canonical(expected, json!({"metadata": metadata}), dialect)?;
    fill_required(expected.entry(), &mut object);
    Ok(object)
}

/// Prints what a type requires and nobody said as `null`, as Go does.
fn fill_required(entry: &Type, object: &mut Value) {
    let Value::Object(map) = object else { return };
    for name in &entry.required {
        map.entry(*name).or_insert(Value::Null);
    }
    for (name, field) in &entry.fields {
        if let (Shape::Object(inner), Some(value)) = (&field.shape, map.get_mut(*name))
            && let Some(inner) = schema::find(inner)
        {
            fill_required(inner, value);
        }
    }
}

/// `apiVersion` and `kind` of a body; where they are missing they are the endpoint's.
fn type_of(expected: Expected, node: &Node) -> Result<(String, String), String> {
    let Node::Object(_) = node else {
        if *node == Node::Null {
            return Ok((expected.api_version(), expected.kind.to_owned()));
        }
        return Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ \
             APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            node.go_kind()
        ));
    };
    let read = |name: &str, default: String| match node.get(name) {
        None | Some(Node::Null) => Ok(default),
        Some(Node::Text(text)) if text.is_empty() => Ok(default),
        Some(Node::Text(text)) => Ok(text.clone()),
        Some(other) => Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{name} of \
             type string",
            other.go_kind()
        )),
    };
    Ok((read("apiVersion", expected.api_version())?, read("kind", expected.kind.to_owned())?))
}

fn unrecognized(expected: Expected, body: &[u8], why: &str) -> ApiError {
    let why = match why.strip_prefix("couldn't") {
        Some(_) => why.to_owned(),
        None => format!("couldn't get version/kind; json parse error: {why}"),
    };
    let kind = expected.kind;
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        summary(body)
    ))
}

/// The beginning of a body as messages show it: JSON as text, anything else in hexadecimal.
fn summary(body: &[u8]) -> String {
    const LIMIT: usize = 30;
    let head = &body[..body.len().min(LIMIT)];
    let more = if body.len() > LIMIT { " ..." } else { "" };
    match head.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(head)),
        Some(_) => format!("{}{more}", head.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

fn not_registered(api_version: &str, kind: &str) -> String {
    format!(
        "no kind {} is registered for version {} in scheme \"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\"",
        crate::status::quote(kind),
        crate::status::quote(api_version)
    )
}

/// What Kubernetes says when a known kind is sent where another is expected.
fn no_conversion(version: &str, kind: &str, expected: Expected) -> String {
    let internal = match expected.group.split('.').next() {
        None | Some("") => "core",
        // Both event groups are one type inside.
        Some("events") => "core",
        Some(first) => first,
    };
    format!("converting ({version}.{kind}) to ({internal}.{}): unknown conversion", expected.kind)
}

fn stamp_type(expected: Expected, mut object: Value) -> Value {
    let map = json::object_mut(&mut object, &[]);
    map.insert("apiVersion".to_owned(), Value::from(expected.api_version()));
    map.insert("kind".to_owned(), Value::from(expected.kind));
    object
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::kinds;

    fn pod(body: &str, validation: FieldValidation) -> Result<Decoded, ApiError> {
        decode(kinds::by_resource("pods").unwrap().into(), body.as_bytes(), validation, Dialect::Kubernetes)
    }

    #[test]
    fn bodies_are_refused_in_kubernetes_words() {
        let cases = [
            (
                "",
                "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: \
                 unexpected end of JSON input (<empty>)",
            ),
            (
                "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",",
                "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: \
                 unexpected end of JSON input ({\"apiVersion\":\"v1\",\"kind\":\"Pod ...)",
            ),
            (
                "hello",
                "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: \
                 invalid character 'h' looking for beginning of value (68656c6c6f)",
            ),
            (
                r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"}}"#,
                "Service in version \"v1\" cannot be handled as a Pod: converting (v1.Service) to (core.Pod): unknown \
                 conversion",
            ),
            (
                r#"{"apiVersion":"v2","kind":"Pod"}"#,
                "Pod in version \"v2\" cannot be handled as a Pod: no kind \"Pod\" is registered for version \"v2\" in \
                 scheme \"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\"",
            ),
            (
                r#"{"apiVersion":"v1","kind":"Pod","spec":{"containers":"zzz"}}"#,
                "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field \
                 PodSpec.spec.containers of type []v1.Container",
            ),
            (
                r#"{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"abc"}}}]}}"#,
                "Pod in version \"v1\" cannot be handled as a Pod: quantities must match the regular expression \
                 '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
        ];
        for (body, message) in cases {
            let error = pod(body, FieldValidation::Warn).unwrap_err();
            assert_eq!((error.code, error.message.as_str()), (400, message), "{body}");
        }
    }

    #[test]
    fn field_validation_decides_about_unknown_and_repeated_fields() {
        let body = r#"{"kind":"Pod","metadata":{"name":"a","name":"b"},"spec":{"bogus":1}}"#;
        let texts = ["duplicate field \"metadata.name\"", "unknown field \"spec.bogus\""];
        assert_eq!(pod(body, FieldValidation::Warn).unwrap().warnings, texts);
        assert!(pod(body, FieldValidation::Ignore).unwrap().warnings.is_empty());
        assert_eq!(
            pod(body, FieldValidation::Strict).unwrap_err().message,
            "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: duplicate field \
             \"metadata.name\", unknown field \"spec.bogus\""
        );
    }

    #[test]
    fn type_is_filled_in() {
        let object = pod(r#"{"metadata":{"name":"a"}}"#, FieldValidation::Strict).unwrap().object;
        assert_eq!((&object["apiVersion"], &object["kind"]), (&json!("v1"), &json!("Pod")));
        let core = Expected { group: "", version: "v1", kind: "Event" };
        let other = br#"{"apiVersion":"events.k8s.io/v1","kind":"Event"}"#;
        let error = decode(core, other, FieldValidation::Warn, Dialect::Kube32).unwrap_err();
        assert_eq!(
            error.message,
            "the API version in the data (events.k8s.io/v1) does not match the expected API version (v1)"
        );
    }

    #[test]
    fn a_patched_object_is_checked_as_a_field_named_patch() {
        let expected = Expected::from(kinds::by_resource("pods").unwrap());
        let patched = json!({"spec": {"bogus": 1}});
        let error =
            check_patched(expected, patched, "{}", FieldValidation::Strict, Dialect::Kube32).unwrap_err();
        assert_eq!(
            error.message,
            " \"\" is invalid: patch: Invalid value: \"{}\": strict decoding error: unknown field \"spec.bogus\""
        );
        assert_eq!(error.code, 422);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(body in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = pod(&String::from_utf8_lossy(&body), FieldValidation::Strict);
        }
    }
}
