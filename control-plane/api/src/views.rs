//! One storage, two shapes: events are kept as core/v1 and shown as `events.k8s.io/v1` on request.
//!
//! Every other kind is shown as it is kept.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::json;
use crate::kinds::Kind;

/// Fields that have one name in core/v1 and another in events.k8s.io/v1.
const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// A stored object as `kind` shows it.
pub fn to_view(kind: &Kind, stored: &Value) -> Value {
    let mut shown = stored.clone();
    if is_renamed(kind) {
        rename(&mut shown, |pair| pair);
        set_type(&mut shown, "events.k8s.io/v1");
    }
    shown
}

/// An object that was sent as `kind` in the form in which it is stored.
pub fn from_view(kind: &Kind, sent: Value) -> Value {
    let mut stored = sent;
    if is_renamed(kind) {
        rename(&mut stored, |(core, new)| (new, core));
        set_type(&mut stored, "v1");
    }
    stored
}

/// As [`from_view`], without a copy where nothing differs; the type is left as it is.
pub(crate) fn stored_form<'a>(kind: &Kind, shown: &'a Value) -> Cow<'a, Value> {
    if is_renamed(kind) { Cow::Owned(from_view(kind, shown.clone())) } else { Cow::Borrowed(shown) }
}

/// Whether objects of this kind are shown otherwise than they are stored.
pub fn differs(kind: &Kind) -> bool {
    is_renamed(kind)
}

fn is_renamed(kind: &Kind) -> bool {
    kind.group == "events.k8s.io"
}

fn rename(object: &mut Value, direction: fn((&'static str, &'static str)) -> (&'static str, &'static str)) {
    let map = json::object_mut(object, &[]);
    let moved: Map<String, Value> = RENAMED
        .iter()
        .filter_map(|pair| {
            let (from, to) = direction(*pair);
            map.remove(from).map(|value| (to.to_owned(), value))
        })
        .collect();
    map.extend(moved);
}

fn set_type(object: &mut Value, api_version: &str) {
    let map = json::object_mut(object, &[]);
    map.insert("apiVersion".to_owned(), json!(api_version));
    map.insert("kind".to_owned(), json!("Event"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn events_are_shown_in_both_shapes() {
        let kind = kinds::find("events.k8s.io", "v1", "events").unwrap();
        let stored = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"name": "p"},
            "message": "m", "reason": "r", "count": 2, "reportingComponent": "c", "source": {"component": "c"},
        });
        let shown = to_view(kind, &stored);
        let expected = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "regarding": {"name": "p"},
            "note": "m", "reason": "r", "deprecatedCount": 2, "reportingController": "c",
            "deprecatedSource": {"component": "c"},
        });
        assert_eq!(shown, expected);
        assert_eq!(from_view(kind, shown), stored);
        let core = kinds::by_resource("events").unwrap();
        assert_eq!(to_view(core, &stored), stored);
    }
}
