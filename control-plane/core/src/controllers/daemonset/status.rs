//! The status that follows from the pods of a pass (DS-07).

use serde_json::Value;

use super::places::Places;
use crate::decision::Write;
use crate::json;

/// Figures that Kubernetes leaves out where they are 0.
const OMITTED: [&str; 3] = ["updatedNumberScheduled", "numberAvailable", "numberUnavailable"];

/// The write of the status, if it changes. On each node its first pod counts.
pub(super) fn write(daemon_set: &Value, places: &Places<'_>) -> Option<Write> {
    let (mut desired, mut current, mut misscheduled) = (0_u64, 0_u64, 0_u64);
    let (mut ready, mut available, mut updated) = (0_u64, 0_u64, 0_u64);
    for place in places.by_host.values() {
        if !place.is_wanted {
            misscheduled += u64::from(!place.pods.is_empty());
            continue;
        }
        desired += 1;
        let Some(first) = place.pods.first() else { continue };
        current += 1;
        ready += u64::from(first.is_ready);
        available += u64::from(first.is_available);
        updated += u64::from(first.is_current);
    }
    let mut told = daemon_set.clone();
    let status = json::object_mut(&mut told, &["status"]);
    for (name, figure) in [
        ("currentNumberScheduled", current),
        ("numberMisscheduled", misscheduled),
        ("desiredNumberScheduled", desired),
        ("numberReady", ready),
        ("updatedNumberScheduled", updated),
        ("numberAvailable", available),
        ("numberUnavailable", desired - available),
    ] {
        if figure == 0 && OMITTED.contains(&name) {
            status.remove(name);
        } else {
            status.insert(name.to_owned(), figure.into());
        }
    }
    if let Some(generation) = json::int(daemon_set, &["metadata", "generation"]) {
        status.insert("observedGeneration".to_owned(), generation.into());
    }
    (told != *daemon_set).then_some(Write::Update {
        resource: "daemonsets",
        subresource: Some("status"),
        object: told,
    })
}
