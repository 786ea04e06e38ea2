//! Which state of the store a board's last report covers, as its Node object tells: it outlives the process that took the report
//! (SCHED-22).
//!
//! A report is a write of the node, so as long as nobody else writes the node its resourceVersion says it. Whoever else writes it (a
//! label, a taint, a cordon, an outage) keeps in an annotation what the resourceVersion said until then; the next report takes that
//! away again.

use serde_json::Value;

use crate::json;

/// The annotation; it is on a node exactly while the node's last write was no report. Its value is a resourceVersion.
pub const ANNOTATION: &str = "control-plane.rigor.dev/reported";

/// The resourceVersion up to which the last report of this node covers what happened on it; 0 where it has not reported.
#[must_use]
pub fn covered(node: &Value) -> u64 {
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
    if !has_status(node) {
        return 0;
    }
    match json::text(node, &["metadata", "annotations", ANNOTATION]) {
        // What cannot be read covers nothing, which errs to the safe side.
        Some(kept) => number(Some(kept)),
        None => number(json::text(node, &["metadata", "resourceVersion"])),
    }
}

/// Whether the node's last write was no report.
#[must_use]
pub fn is_kept(node: &Value) -> bool {
    json::get(node, &["metadata", "annotations", ANNOTATION]).is_some()
}

/// Makes the annotation of `new` what it is in `old`, whatever a client wrote there.
pub fn leave(old: &Value, new: &mut Value) {
    let kept = json::get(old, &["metadata", "annotations", ANNOTATION]).cloned();
    match kept {
        Some(kept) => {
            json::object_mut(new, &["metadata", "annotations"]).insert(ANNOTATION.to_owned(), kept);
        }
        None => reported(new),
    }
}

/// Keeps in `new`, which is `old` after a write that is no report, what the last report covers.
pub fn keep(old: &Value, new: &mut Value) {
    if !has_status(new) {
        return reported(new);
    }
    let kept = covered(old).to_string();
    json::object_mut(new, &["metadata", "annotations"]).insert(ANNOTATION.to_owned(), kept.into());
}

/// Notes that the write which makes `node` is a report.
pub fn reported(node: &mut Value) {
    let metadata = json::object_mut(node, &["metadata"]);
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
        && annotations.remove(ANNOTATION).is_some()
        && annotations.is_empty()
    {
        metadata.remove("annotations");
    }
}

fn has_status(node: &Value) -> bool {
    json::get(node, &["status"]).is_some_and(|status| !status.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(version: &str, annotations: &Value) -> Value {
        json!({"metadata": {"name": "a", "resourceVersion": version, "annotations": annotations}, "status": {}})
    }

    #[test]
    fn a_node_tells_what_its_last_report_covers() {
        for (node, expected) in [
            (node("7", &Value::Null), 7),
            (node("9", &json!({ANNOTATION: "7"})), 7),
            (node("9", &json!({ANNOTATION: "a lot"})), 0),
            (json!({"metadata": {"resourceVersion": "7"}}), 0),
            (json!({"metadata": {"resourceVersion": "7"}, "status": null}), 0),
        ] {
            assert_eq!(covered(&node), expected, "{node}");
        }
    }

    #[test]
    fn it_is_kept_over_any_number_of_other_writes_until_the_next_report() {
        let reported_at_7 = node("7", &json!({"a": "b"}));
        let mut labelled = node("8", &json!({"a": "b"}));
        keep(&reported_at_7, &mut labelled);
        assert_eq!((covered(&labelled), is_kept(&labelled)), (7, true));
        let mut cordoned = node("9", &json!({"a": "b", ANNOTATION: "9999"}));
        keep(&labelled, &mut cordoned);
        assert_eq!(covered(&cordoned), 7, "a client does not say it");
        let mut again = node("10", &json!({ANNOTATION: "9999"}));
        leave(&cordoned, &mut again);
        assert_eq!(covered(&again), 7);
        leave(&reported_at_7, &mut again);
        assert!(!is_kept(&again));
        reported(&mut cordoned);
        assert_eq!(cordoned, node("9", &json!({"a": "b"})));
        reported(&mut labelled);
        let mut alone = node("9", &json!({ANNOTATION: "7"}));
        reported(&mut alone);
        assert_eq!(alone, json!({"metadata": {"name": "a", "resourceVersion": "9"}, "status": {}}));
    }

    #[test]
    fn a_node_without_a_status_has_nothing_to_keep() {
        let bare = json!({"metadata": {"name": "a", "resourceVersion": "7"}});
        let mut labelled = bare.clone();
        keep(&bare, &mut labelled);
        assert_eq!(labelled, bare);
        let mut judged =
            json!({"metadata": {"name": "a", "resourceVersion": "8"}, "status": {"conditions": []}});
        keep(&bare, &mut judged);
        assert_eq!(covered(&judged), 0, "a controller said something of a node that never reported");
    }
}
