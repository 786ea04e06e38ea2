//! Whether an answer is the recorded one.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::exchange::{Exchange, Recorded};
use crate::normalise::normalise;
use crate::rig::{Answer, Asked};

/// What came of an exchange.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Same,
    /// What differs.
    Different(String),
    /// No recorded answer; what is wrong with ours, if anything.
    Judged(Result<(), String>),
    /// Counted apart.
    Aside,
}

/// Headers that clients act on. `etag` is compared by its presence.
const HEADERS: &[&str] = &[
    "allow",
    "cache-control",
    "content-type",
    "etag",
    "location",
    "retry-after",
    "vary",
    "warning",
    "www-authenticate",
    "x-content-type-options",
];

pub fn compare(exchange: &Exchange, recorded: &Recorded, answer: &Answer) -> Outcome {
    let mut differences = Vec::new();
    if answer.status != recorded.status {
        differences.push(format!("status {} instead of {}", answer.status, recorded.status));
    }
    for name in HEADERS {
        let theirs: Vec<String> = recorded
            .headers
            .iter()
            .filter(|(given, _)| given == name)
            .map(|(_, value)| value.clone())
            .collect();
        let ours = answer.header(name);
        let same = if *name == "etag" { theirs.len() == ours.len() } else { theirs == ours };
        if !same {
            differences.push(format!("{name}: {ours:?} instead of {theirs:?}"));
        }
    }
    if let Some(json) = &recorded.json {
        bodies(json, &answer.json(), &mut differences);
        if answer.json().is_null() {
            differences.push(format!("no JSON: {}", answer.text));
        }
    }
    if let Some(lines) = &recorded.lines {
        self::lines(lines, answer, &mut differences);
    }
    if let Some(text) = &recorded.text {
        texts(exchange, recorded, text, &answer.text, &mut differences);
    }
    if differences.is_empty() { Outcome::Same } else { Outcome::Different(differences.join("\n    ")) }
}

fn bodies(recorded: &Value, ours: &Value, differences: &mut Vec<String>) {
    let (mut recorded, mut ours) = (recorded.clone(), ours.clone());
    normalise(&mut recorded);
    normalise(&mut ours);
    beside("", &recorded, &ours, differences);
}

fn texts(exchange: &Exchange, recorded: &Recorded, theirs: &str, ours: &str, differences: &mut Vec<String>) {
    if recorded.headers.iter().any(|(name, value)| name == "content-type" && value.contains("yaml")) {
        let parse = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap_or(Value::Null);
        return bodies(&parse(theirs), &parse(ours), differences);
    }
    // The end of line that the recording's end hides.
    if exchange.method != "HEAD" && theirs.trim_end_matches('\n') != ours.trim_end_matches('\n') {
        differences.push(format!("text {ours:?} instead of {theirs:?}"));
    }
}

/// A bookmark that only says how far the watch has come: when Kubernetes sends them hangs on its timers.
fn is_periodic(line: &Value) -> bool {
    line["type"] == "BOOKMARK" && line["object"]["metadata"]["annotations"].is_null()
}

fn lines(recorded: &[Value], answer: &Answer, differences: &mut Vec<String>) {
    let Some(ours) = answer.lines() else {
        return differences.push(format!("a line is no JSON: {}", answer.text));
    };
    if let Some(mark) = recorded.iter().find(|line| is_periodic(line)) {
        match ours.iter().find(|line| is_periodic(line)) {
            Some(own) => bodies(mark, own, differences),
            None => differences.push("no bookmark".into()),
        }
    }
    let told = |lines: &[Value]| lines.iter().filter(|line| !is_periodic(line)).cloned().collect::<Vec<_>>();
    let (recorded, ours) = (told(recorded), told(&ours));
    if recorded.len() != ours.len() {
        differences.push(format!("{} lines instead of {}", ours.len(), recorded.len()));
    }
    for (line, own) in recorded.iter().zip(&ours) {
        bodies(line, own, differences);
    }
}

/// Names what differs by its path.
fn beside(path: &str, recorded: &Value, ours: &Value, differences: &mut Vec<String>) {
    match (recorded, ours) {
        (Value::Object(recorded), Value::Object(own)) => {
            let keys: BTreeSet<&String> = recorded.keys().chain(own.keys()).collect();
            for key in keys {
                let path = format!("{path}.{key}");
                match (recorded.get(key), own.get(key)) {
                    (Some(value), Some(other)) => beside(&path, value, other, differences),
                    (Some(value), None) => differences.push(format!("{path}: absent instead of {value}")),
                    (None, Some(other)) => differences.push(format!("{path}: {other} too much")),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(recorded), Value::Array(own)) if recorded.len() == own.len() => {
            for (index, (value, other)) in recorded.iter().zip(own).enumerate() {
                beside(&format!("{path}[{index}]"), value, other, differences);
            }
        }
        _ if recorded == ours => {}
        _ => differences.push(format!("{path}: {ours} instead of {recorded}")),
    }
}

/// Whether an answer without a recording is one that Kubernetes' clients can read.
pub fn well_formed(asked: &Asked, answer: &Answer) -> Result<(), String> {
    let json = answer.json();
    let object = |value: &Value| value["kind"].is_string() && value["apiVersion"].is_string();
    if asked.watch && answer.status == 200 {
        let lines = answer.lines().ok_or("a line is no JSON")?;
        return match lines.iter().find(|line| !(line["type"].is_string() && object(&line["object"]))) {
            Some(line) => Err(format!("no event: {line}")),
            None => Ok(()),
        };
    }
    if asked.method == "HEAD" || answer.text == "404 page not found\n" && answer.status == 404 {
        return Ok(());
    }
    match answer.status {
        200..=202 if object(&json) => Ok(()),
        // The lists of core versions have no apiVersion.
        200 if json["kind"] == "APIVersions" || json["groupVersion"] == "v1" => Ok(()),
        400.. if json["kind"] == "Status" && json["code"] == answer.status && json["status"] == "Failure" => {
            Ok(())
        }
        _ => Err(format!("{} {}", answer.status, answer.text)),
    }
}
