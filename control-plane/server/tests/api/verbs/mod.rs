//! Each verb with all its parameters, by tables: what Kubernetes 1.32 does with them beyond the recorded exchanges.

mod deletes;
mod lists;
mod selectors;
mod watches;
mod writes;

use serde_json::{Value, json};

use crate::rig::{Answer, Rig};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": "v"}})
}

fn get(rig: &Rig, url: &str) -> Answer {
    rig.call("GET", url, &Value::Null)
}

/// A read that is refused with this code, in words that include these.
#[track_caller]
fn refused(rig: &Rig, url: &str, code: u16, words: &str) {
    let message = get(rig, url).refused(code);
    assert!(message.contains(words), "{url}: {message}");
}

/// The names of a list's items, or of a table's rows.
fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// A selector as it stands in a URL.
fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}
