//! Values as Go prints them with `%#v`, which is how Kubernetes shows structs, lists and maps in its refusals.

use serde_json::{Map, Value};

use crate::json;
use crate::status::quote;

/// A list of texts.
pub(super) fn strings(list: &[Value]) -> String {
    let texts: Vec<String> = list.iter().map(|one| quote(one.as_str().unwrap_or_default())).collect();
    if texts.is_empty() { "[]string(nil)".to_owned() } else { format!("[]string{{{}}}", texts.join(", ")) }
}

/// A map of texts.
pub(super) fn map(map: &Map<String, Value>) -> String {
    let fields: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{}:{}", quote(key), quote(value.as_str().unwrap_or_default())))
        .collect();
    if fields.is_empty() {
        "map[string]string(nil)".to_owned()
    } else {
        format!("map[string]string{{{}}}", fields.join(", "))
    }
}

/// A number or text where either may stand.
pub(super) fn int_or_string(value: &Value) -> String {
    match value {
        Value::String(text) => format!("intstr.IntOrString{{Type:1, IntVal:0, StrVal:{}}}", quote(text)),
        other => {
            let number = other.as_i64().unwrap_or_default();
            format!("intstr.IntOrString{{Type:0, IntVal:{number}, StrVal:\"\"}}")
        }
    }
}

/// A label selector.
pub(super) fn selector(selector: &Value) -> String {
    let labels = json::object(selector, &["matchLabels"]).cloned().unwrap_or_default();
    let expressions: Vec<String> = json::list(selector, &["matchExpressions"])
        .iter()
        .map(|one| {
            format!(
                "v1.LabelSelectorRequirement{{Key:{}, Operator:{}, Values:{}}}",
                quote(json::text(one, &["key"])),
                quote(json::text(one, &["operator"])),
                strings(json::list(one, &["values"]))
            )
        })
        .collect();
    let expressions = if expressions.is_empty() {
        "[]v1.LabelSelectorRequirement(nil)".to_owned()
    } else {
        format!("[]v1.LabelSelectorRequirement{{{}}}", expressions.join(", "))
    };
    format!("v1.LabelSelector{{MatchLabels:{}, MatchExpressions:{expressions}}}", map(&labels))
}
