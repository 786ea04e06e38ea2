//! What the controller has to remember of an outage beyond its own process: kept in an annotation of the node. While
//! it is there the conditions are the controller's, and what the kubelet reports goes into the annotation.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::REPORTED;
use crate::snapshot::{LEASE_NAMESPACE, Snapshot};
use crate::{conditions, json, time};

/// The annotation; it is on a node exactly while its outage lasts. Its value is JSON: `unknownSince` and
/// `noExecuteSince` in microseconds, `renewTime` of the lease that ran out (empty where there was none), and
/// `reported`, the conditions as the kubelet last reported them (NODE-09).
pub const ANNOTATION: &str = "control-plane.rigor.dev/outage";

/// The memory of one outage.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Outage {
    /// When Ready became Unknown (NODE-28).
    pub(super) unknown_since: Option<Timestamp>,
    /// When the NoExecute taint was put on (NODE-12).
    pub(super) no_execute_since: Option<Timestamp>,
    /// `renewTime` of the lease when the outage began, empty where there was none.
    pub(super) renew_time: Option<String>,
    /// Conditions as last reported, by type.
    pub(super) reported: Map<String, Value>,
}

impl Outage {
    /// An outage of this node that begins now.
    pub(super) fn begun(snapshot: &Snapshot, node: &str, now: &time::Now) -> Self {
        let renew_time = Some(renew_time(snapshot, node).unwrap_or_default().to_owned());
        Self { unknown_since: Some(now.wall), renew_time, ..Self::default() }
    }

    /// Whether the stored lease was renewed after the outage began, be it under another process than this one.
    pub(super) fn is_over(&self, snapshot: &Snapshot, node: &str) -> bool {
        match (&self.renew_time, renew_time(snapshot, node)) {
            (Some(before), Some(now)) => before != now,
            _ => false,
        }
    }

    /// The outage that the node is in. One whose annotation cannot be read counts, without its memory.
    pub(super) fn of(node: &Value) -> Option<Self> {
        let text = json::text(node, &["metadata", "annotations", ANNOTATION])?;
        let value: Value = serde_json::from_str(text).unwrap_or(Value::Null);
        let instant = |field| json::text(&value, &[field]).and_then(time::parse);
        Some(Self {
            unknown_since: instant("unknownSince"),
            no_execute_since: instant("noExecuteSince"),
            renew_time: json::text(&value, &["renewTime"]).map(str::to_owned),
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
        if let Some(renew_time) = &self.renew_time {
            value.insert("renewTime".to_owned(), renew_time.as_str().into());
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

fn renew_time<'a>(snapshot: &'a Snapshot, node: &str) -> Option<&'a str> {
    json::text(snapshot.get("leases", LEASE_NAMESPACE, node)?, &["spec", "renewTime"])
}

/// Fields of a condition that the controller says while an outage lasts.
const SAID: [&str; 4] = ["status", "reason", "message", "lastTransitionTime"];

/// What a status write that makes `new` of the node `old` is to store: only a renewal ends an outage, so while one
/// lasts the conditions stay Unknown, and what was reported waits for its end in the annotation (NODE-05, NODE-09).
/// Everything else of the status is taken as it is.
pub fn hold(old: &Value, new: &mut Value) {
    let Some(mut outage) = Outage::of(old) else { return };
    for kind in REPORTED {
        let Some(unknown) = conditions::get(old, kind) else { continue };
        if json::text(unknown, &["status"]) != Some("Unknown") {
            continue;
        }
        let conditions = conditions::list_mut(new);
        let Some(said) = conditions.iter_mut().find(|said| same(said, unknown, "type")) else {
            conditions.push(unknown.clone());
            continue;
        };
        // Whoever writes back what it read reports nothing.
        let is_news = !same(said, unknown, "status") || !same(said, unknown, "reason");
        if is_news {
            let mut report = said.clone();
            // A patch of the status alone leaves the controller's reason beside it.
            if same(said, unknown, "reason") {
                let before = outage.reported.get(kind).filter(|before| same(before, said, "status"));
                copy(&["reason", "message"], before.unwrap_or(&Value::Null), &mut report);
            }
            outage.reported.insert(kind.to_owned(), report);
        }
        copy(&SAID, unknown, said);
    }
    outage.keep(new);
}

fn same(a: &Value, b: &Value, field: &str) -> bool {
    json::text(a, &[field]) == json::text(b, &[field])
}

/// Makes these fields of `to` what they are in `from`.
fn copy(fields: &[&str], from: &Value, to: &mut Value) {
    let to = json::object_mut(to, &[]);
    for field in fields {
        match from.get(field) {
            Some(value) => to.insert((*field).to_owned(), value.clone()),
            None => to.remove(*field),
        };
    }
}
