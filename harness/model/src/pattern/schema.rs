//! The JSON schema of patterns: anything but nothing, and operators by name.

use serde_json::{Map, Value, json};

use super::OPERATORS;
use crate::shape::count_schema;

/// The schema, for `#/definitions/pattern`.
pub(crate) fn schema() -> Value {
    let itself = json!({"$ref": "#/definitions/pattern"});
    let scalar = json!({"type": ["string", "number", "boolean"]});
    let properties: Map<String, Value> = OPERATORS
        .iter()
        .map(|operator| {
            let (mut schema, about) = match *operator {
                "$is" => (json!({"enum": ["present", "absent", "any"]}), "There, not there, or whatever."),
                "$regex" => (json!({"type": "string"}), "A text in which this expression is found."),
                "$eq" => (json!({}), "Exactly this, with nothing more."),
                "$ne" => (scalar.clone(), "Not this; what is absent is not it either."),
                "$gt" => (scalar.clone(), "Greater than this."),
                "$ge" => (scalar.clone(), "This or greater."),
                "$lt" => (scalar.clone(), "Less than this."),
                "$le" => (scalar.clone(), "This or less."),
                "$quantity" => (json!({}), "A Kubernetes quantity of this value, or compared: {$ge: 16Ki}."),
                "$any" => (itself.clone(), "A list with at least one element that matches."),
                "$all" => (itself.clone(), "A list of which every element matches."),
                "$none" => (itself.clone(), "A list of which no element matches; absent counts as empty."),
                "$byKey" => (
                    json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties":
                        {"type": "object", "minProperties": 1, "additionalProperties": itself}}),
                    "Elements of a list found by a key: {type: {Ready: {status: \"True\"}}}.",
                ),
                "$count" => (count_schema(false), "A list (or mapping) of that length; absent: 0."),
                "$oneOf" => (json!({"type": "array", "minItems": 1, "items": itself}), "One of these."),
                "$not" => (itself.clone(), "Not this."),
                _ => (json!({}), "An operator."),
            };
            schema["description"] = json!(about);
            ((*operator).to_owned(), schema)
        })
        .collect();
    let known = OPERATORS.map(|operator| operator.trim_start_matches('$')).join("|");
    json!({
        "type": ["object", "array", "string", "number", "boolean"],
        "description": "What a value is to look like: a mapping matches if every key in it does.",
        "properties": properties,
        "patternProperties": {format!("^\\$(?!(?:{known})$)[A-Za-z]"): false},
        "additionalProperties": itself,
        "items": itself,
        "errorMessage": "no operator of that name, or nothing to match: known are $is, $regex, $eq, $ne, $gt, $ge, $lt, $le, $quantity, $any, $all, $none, $byKey, $count, $oneOf, $not",
    })
}
