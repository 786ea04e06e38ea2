//! What the controller has to remember of an outage beyond its own process: kept in an annotation of the node.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{json, time};

/// The annotation; it is on a node exactly while its outage lasts. Its value is JSON: `unknownSince` and
/// `noExecuteSince` in microseconds, `reported` the conditions as the kubelet last reported them (NODE-09).
pub const ANNOTATION: &str = "control-plane.rigor.dev/outage";

/// The memory of one outage.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Outage {
    /// When Ready became Unknown (NODE-28).
    pub(super) unknown_since: Option<Timestamp>,
    /// When the NoExecute taint was put on (NODE-12).
    pub(super) no_execute_since: Option<Timestamp>,
    /// Conditions as last reported, by type.
    pub(super) reported: Map<String, Value>,
}

impl Outage {
    /// The outage that the node is in. One whose annotation cannot be read counts, without its memory.
    pub(super) fn of(node: &Value) -> Option<Self> {
        let text = json::text(node, &["metadata", "annotations", ANNOTATION])?;
        let value: Value = serde_json::from_str(text).unwrap_or(Value::Null);
        let instant = |field| json::text(&value, &[field]).and_then(time::parse);
        Some(Self {
            unknown_since: instant("unknownSince"),
            no_execute_since: instant("noExecuteSince"),
            reported: json::get(&value, &["reported"])
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
        })
    }

    /// Writes it into the node's annotations.
    pub(super) fn keep(&self, node: &mut Value) {
        let mut value = Map::new();
        for (field, instant) in
            [("unknownSince", self.unknown_since), ("noExecuteSince", self.no_execute_since)]
        {
            if let Some(instant) = instant {
                value.insert(field.to_owned(), time::micro_stamp(instant).into());
            }
        }
        value.insert("reported".to_owned(), json!(self.reported));
        let text = Value::Object(value).to_string();
        json::object_mut(node, &["metadata", "annotations"]).insert(ANNOTATION.to_owned(), text.into());
    }

    /// Removes it from the node's annotations.
    pub(super) fn forget(node: &mut Value) {
        let metadata = json::object_mut(node, &["metadata"]);
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(ANNOTATION);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
}
