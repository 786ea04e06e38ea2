//! Takes out of answers what differs from run to run: uids, times, versions, generated names, addresses, ages.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::translate::base64;

struct Rule {
    pattern: Regex,
    replacement: &'static str,
}

fn rule(pattern: &str, replacement: &'static str) -> Rule {
    Rule { pattern: Regex::new(pattern).unwrap(), replacement }
}

/// What is replaced wherever it stands in a text.
static ANYWHERE: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    vec![
        rule(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        rule(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "MICROTIME"),
        rule(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
        rule(r"(Too large resource version: \d+, current: )\d+", "${1}VERSION"),
        rule(r"(too old resource version: \d+ )\(\d+\)", "${1}(VERSION)"),
        rule(r"(ResourceVersion in object meta: )\d+", "${1}VERSION"),
        rule(r"(the ResourceVersion in record )\(\d+\)", "${1}(VERSION)"),
        rule(r#"(\\*"resourceVersion\\*":\\*")\d+"#, "${1}VERSION"),
        rule(r"\b10\.96\.\d+\.\d+\b", "ADDRESS"),
    ]
});

/// Columns whose cells tell how long ago something was.
const AGES: &[&str] = &["Age", "Last Seen", "First Seen", "Duration", "Last Schedule"];
static AGE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^(\d+[smhdy])+$").unwrap());

/// The same text without what differs from run to run.
pub fn text(text: &str) -> String {
    ANYWHERE
        .iter()
        .fold(text.to_owned(), |text, rule| rule.pattern.replace_all(&text, rule.replacement).into_owned())
}

/// A token says where the next page starts; at which version differs.
fn token(text: &str) -> String {
    let fields = base64(text).and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    // Kubernetes begins with a slash or not, by where the page came from; both are read alike.
    let start =
        |fields: &Value| fields["start"].as_str().unwrap_or_default().trim_start_matches('/').to_owned();
    fields.map_or_else(|| text.to_owned(), |fields| format!("{} {:?}", fields["v"], start(&fields)))
}

fn columns(table: &mut Value) {
    for column in table["columnDefinitions"].as_array_mut().into_iter().flatten() {
        if column["description"].as_str().is_some_and(|description| !description.is_empty()) {
            column["description"] = json!("prose");
        }
    }
    let columns = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        for (cell, column) in row["cells"].as_array_mut().into_iter().flatten().zip(&columns) {
            let name = column["name"].as_str().unwrap_or_default();
            if AGES.contains(&name) && cell.as_str().is_some_and(|cell| AGE.is_match(cell)) {
                *cell = json!("AGE");
            }
        }
    }
}

/// The same for whatever differs from run to run.
pub fn normalise(value: &mut Value) {
    if value["kind"] == "Table" {
        columns(value);
    }
    match value {
        Value::Object(map) => {
            map.remove("managedFields");
            let prefix = map.get("generateName").and_then(Value::as_str).map(str::to_owned);
            if let (Some(prefix), Some(name)) = (prefix, map.get_mut("name")) {
                let suffix = name.as_str().and_then(|name| name.strip_prefix(&prefix)).map(str::len);
                *name = json!(format!("{prefix}({suffix:?} letters)"));
            }
            for (key, value) in map.iter_mut() {
                match (key.as_str(), value) {
                    ("resourceVersion", Value::String(version))
                        if version.parse::<u64>().is_ok_and(|v| v > 0) =>
                    {
                        *version = "VERSION".into();
                    }
                    ("continue", Value::String(given)) => *given = token(given),
                    (_, value) => normalise(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::String(given) => *given = text(given),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: Value, expected: Value) {
        let mut value = given;
        normalise(&mut value);
        assert_eq!(value, expected);
    }

    #[test]
    fn only_what_differs_from_run_to_run_is_taken_out() {
        check(
            json!({"uid": "317139f7-8212-459a-8b1b-606f46f8df3d", "x": "317139f7"}),
            json!({"uid": "UID", "x": "317139f7"}),
        );
        check(json!({"resourceVersion": "12", "n": "12"}), json!({"resourceVersion": "VERSION", "n": "12"}));
        check(json!({"resourceVersion": ""}), json!({"resourceVersion": ""}));
        check(json!(["2026-11-29T12:00:45Z", "2026-11-29T12:00:45.000001Z"]), json!(["TIME", "MICROTIME"]));
        check(
            json!({"generateName": "a-", "name": "a-x2x4z"}),
            json!({"generateName": "a-", "name": "a-(Some(5) letters)"}),
        );
        check(
            json!({"generateName": "a-", "name": "b"}),
            json!({"generateName": "a-", "name": "a-(None letters)"}),
        );
        let table = |age: &str| json!({"kind": "Table", "columnDefinitions": [{"name": "Name"}, {"name": "Age"}], "rows": [{"cells": ["5m", age]}]});
        check(table("8m18s"), table("AGE"));
        check(table("<unknown>"), table("<unknown>"));
    }
}
