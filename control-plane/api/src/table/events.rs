//! Rows of events, in whichever group they are asked for.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::format::{UNKNOWN, column, name_column, or, since};
use super::{Column, Printer, name};
use crate::json;

pub(super) fn printer() -> Printer {
    Printer {
        columns: vec![
            column("Last Seen", "string", 0, "Time since the event last happened"),
            column("Type", "string", 0, "Normal or Warning"),
            column("Reason", "string", 0, "Why, in one word"),
            column("Object", "string", 0, "What the event is about"),
            column("Subobject", "string", 1, "Which part of it"),
            column("Source", "string", 1, "Who reported the event"),
            column("Message", "string", 0, "What happened, for people"),
            column("First Seen", "string", 1, "Time since the event first happened"),
            column("Count", "string", 1, "How often the event happened"),
            Column { priority: 1, ..name_column() },
        ],
        cells,
    }
}

fn cells(event: &Value, now: Timestamp) -> Vec<Value> {
    let text = |path: &[&str]| json::text(event, path);
    let mut first = since(text(&["firstTimestamp"]), now);
    if first == UNKNOWN {
        first = since(text(&["eventTime"]), now);
    }
    let mut last = since(text(&["lastTimestamp"]), now);
    if last == UNKNOWN {
        last.clone_from(&first);
    }
    let mut count = json::int(event, &["count"]).unwrap_or(0).max(1);
    if event.get("series").is_some_and(Value::is_object) {
        last = since(text(&["series", "lastObservedTime"]), now);
        count = json::int(event, &["series", "count"]).unwrap_or(0);
    }
    let kind = text(&["involvedObject", "kind"]).to_lowercase();
    let about = match text(&["involvedObject", "name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let component = or(text(&["source", "component"]), text(&["reportingComponent"]));
    let instance = or(text(&["source", "host"]), text(&["reportingInstance"]));
    let source = if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") };
    vec![
        json!(last),
        json!(text(&["type"])),
        json!(text(&["reason"])),
        json!(about),
        json!(text(&["involvedObject", "fieldPath"])),
        json!(source),
        json!(text(&["message"]).trim()),
        json!(first),
        json!(count),
        name(event),
    ]
}
