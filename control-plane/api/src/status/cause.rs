//! Why single fields of an object were refused, in the words of Kubernetes' field errors.

use serde_json::{Map, Value, json};

/// Why one field was refused (`Status.details.causes[].reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CauseReason {
    /// A value must be there.
    Required,
    /// The value is malformed or not allowed here.
    Invalid,
    /// The value is not one of a fixed set.
    NotSupported,
    /// The value must be unique and is not.
    Duplicate,
    /// The field may not be set or changed.
    Forbidden,
    /// The value has too many bytes.
    TooLong,
    /// The list has too many entries.
    TooMany,
    /// The value refers to something that does not exist.
    NotFound,
    /// The value has the wrong type.
    TypeInvalid,
    /// The namespace takes no new objects.
    NamespaceTerminating,
    /// The list asks for a resourceVersion that is not reached yet.
    VersionTooLarge,
    /// A fault of the server, not of a field; printed without field and reason.
    Fault,
}

impl CauseReason {
    /// The text in `causes[].reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NamespaceTerminating => "NamespaceTerminating",
            Self::VersionTooLarge => "ResourceVersionTooLarge",
            Self::Fault => "",
        }
    }
}

/// One refused field: where, why, and the message without the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Path of the field, such as `spec.containers[0].image`.
    pub field: String,
    /// The class of the refusal.
    pub reason: CauseReason,
    /// The message, such as `Invalid value: -1: must be greater than or equal to 0`.
    pub message: String,
}

impl Cause {
    /// A field that must be given; `detail` may be empty.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new(field, CauseReason::Required, with_detail("Required value", detail))
    }

    /// A malformed value, printed as Go prints it (strings quoted, numbers plain).
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::invalid_text(field, &go_value(value), detail)
    }

    /// As [`Cause::invalid`], with the value's text given verbatim.
    pub fn invalid_text(field: impl Into<String>, value: &str, detail: &str) -> Self {
        Self::new(field, CauseReason::Invalid, with_detail(&format!("Invalid value: {value}"), detail))
    }

    /// A value outside a fixed set; `supported` is printed in the order given.
    pub fn not_supported(field: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let list = supported.iter().map(|v| quote(v)).collect::<Vec<_>>().join(", ");
        let message = format!("Unsupported value: {}: supported values: {list}", quote(value));
        Self::new(field, CauseReason::NotSupported, message)
    }

    /// A value that occurs twice.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new(field, CauseReason::Duplicate, format!("Duplicate value: {}", go_value(value)))
    }

    /// A field that may not be set or changed.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(field, CauseReason::Forbidden, with_detail("Forbidden", detail))
    }

    /// A value longer than `limit` bytes.
    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        Self::new(field, CauseReason::TooLong, format!("Too long: may not be more than {limit} bytes"))
    }

    /// A cause from its parts.
    pub fn new(field: impl Into<String>, reason: CauseReason, message: impl Into<String>) -> Self {
        Self { field: field.into(), reason, message: message.into() }
    }

    pub(super) fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, text) in
            [("reason", self.reason.as_str()), ("message", &self.message), ("field", &self.field)]
        {
            if !text.is_empty() {
                map.insert(key.to_owned(), json!(text));
            }
        }
        Value::Object(map)
    }
}

fn with_detail(head: &str, detail: &str) -> String {
    if detail.is_empty() { head.to_owned() } else { format!("{head}: {detail}") }
}

/// A string as Go's `%q` prints it for the values that occur in messages.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for ch in text.chars() {
        match ch {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A value as `field.Error` prints it: strings quoted, scalars plain, objects as JSON.
pub(crate) fn go_value(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
