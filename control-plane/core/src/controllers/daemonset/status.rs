//! The status that follows from the pods of a pass (DS-07).

use serde_json::Value;

use super::place::Figures;
use crate::decision::Write;
use crate::json;

/// Figures that Kubernetes leaves out where they are 0.
const OMITTED: [&str; 3] = ["updatedNumberScheduled", "numberAvailable", "numberUnavailable"];

/// The write of the status, if it changes.
pub(super) fn write(daemon_set: &Value, figures: &Figures) -> Option<Write> {
    let mut told = daemon_set.clone();
    let status = json::object_mut(&mut told, &["status"]);
    for (name, figure) in [
        ("currentNumberScheduled", figures.current),
        ("numberMisscheduled", figures.misscheduled),
        ("desiredNumberScheduled", figures.desired),
        ("numberReady", figures.ready),
        ("updatedNumberScheduled", figures.updated),
        ("numberAvailable", figures.available),
        ("numberUnavailable", figures.desired.saturating_sub(figures.available)),
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
