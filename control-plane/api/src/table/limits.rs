//! Rows of what bounds others and of claims: disruption budgets, autoscalers, volume claims, quotas and limits.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::format::{age, column, name_column};
use super::{Printer, age_column, name};
use crate::json;

const UNSET: &str = "<unset>";

/// A text or number as text; `absent` where there is neither.
fn shown(object: &Value, path: &[&str], absent: &str) -> String {
    match json::at(object, path) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => absent.to_owned(),
    }
}

pub(super) fn disruption_budgets() -> Printer {
    Printer {
        columns: vec![
            name_column(),
            column("Min Available", "string", 0, "Pods that must stay"),
            column("Max Unavailable", "string", 0, "Pods that may be missing"),
            column("Allowed Disruptions", "integer", 0, "Pods that may be evicted now"),
            age_column(),
        ],
        cells: |budget, now| {
            vec![
                name(budget),
                json!(shown(budget, &["spec", "minAvailable"], "N/A")),
                json!(shown(budget, &["spec", "maxUnavailable"], "N/A")),
                json!(json::int(budget, &["status", "disruptionsAllowed"]).unwrap_or(0)),
                age(budget, now),
            ]
        },
    }
}

pub(super) fn autoscalers() -> Printer {
    Printer {
        columns: vec![
            name_column(),
            column("Reference", "string", 0, "What is scaled"),
            column("Targets", "string", 0, "Each figure as it is and as it should be"),
            column("MinPods", "string", 0, "The fewest pods"),
            column("MaxPods", "string", 0, "The most pods"),
            column("Replicas", "string", 0, "Pods there are"),
            age_column(),
        ],
        cells: |scaler, now| {
            let target = |field: &str| json::text(scaler, &["spec", "scaleTargetRef", field]);
            vec![
                name(scaler),
                json!(format!("{}/{}", target("kind"), target("name"))),
                json!(targets(scaler)),
                json!(shown(scaler, &["spec", "minReplicas"], UNSET)),
                json!(json::int(scaler, &["spec", "maxReplicas"]).unwrap_or(0)),
                json!(json::int(scaler, &["status", "currentReplicas"]).unwrap_or(0)),
                age(scaler, now),
            ]
        },
    }
}

/// So many figures of an autoscaler are shown, and the others counted.
const FIGURES: usize = 2;

/// An autoscaler's figures; those of resources are read, others are named as unknown.
fn targets(scaler: &Value) -> String {
    let wanted = json::list(scaler, &["spec", "metrics"]);
    if wanted.is_empty() {
        return "<none>".to_owned();
    }
    let found = json::list(scaler, &["status", "currentMetrics"]);
    let figures = wanted.iter().enumerate().take(FIGURES).map(|(index, metric)| {
        if json::text(metric, &["type"]) != "Resource" {
            return "<unknown type>".to_owned();
        }
        let target = |field: &str| shown(metric, &["resource", "target", field], "");
        let current = |field: &str| {
            found
                .get(index)
                .map(|found| shown(found, &["resource", "current", field], ""))
                .unwrap_or_default()
        };
        let (current, target) = match target("averageValue") {
            value if value.is_empty() => (
                share(&current("averageUtilization"), "<unknown>"),
                share(&target("averageUtilization"), "<auto>"),
            ),
            value => (or(current("averageValue"), "<unknown>"), value),
        };
        format!("{}: {current}/{target}", json::text(metric, &["resource", "name"]))
    });
    let text = figures.collect::<Vec<_>>().join(", ");
    match wanted.len().saturating_sub(FIGURES) {
        0 => text,
        more => format!("{text} + {more} more..."),
    }
}

fn or(text: String, absent: &str) -> String {
    if text.is_empty() { absent.to_owned() } else { text }
}

fn share(number: &str, absent: &str) -> String {
    if number.is_empty() { absent.to_owned() } else { format!("{number}%") }
}

pub(super) fn volume_claims() -> Printer {
    Printer {
        columns: vec![
            name_column(),
            column("Status", "string", 0, "Whether there is a volume"),
            column("Volume", "string", 0, "Which one"),
            column("Capacity", "string", 0, "Its size"),
            column("Access Modes", "string", 0, "How it can be mounted"),
            column("StorageClass", "string", 0, "Where it comes from"),
            column("VolumeAttributesClass", "string", 0, "Its quality"),
            age_column(),
            column("VolumeMode", "string", 1, "File system or block device"),
        ],
        cells: volume_claim_cells,
    }
}

fn volume_claim_cells(claim: &Value, now: Timestamp) -> Vec<Value> {
    let going = !json::text(claim, &["metadata", "deletionTimestamp"]).is_empty();
    let phase = if going { "Terminating" } else { json::text(claim, &["status", "phase"]) };
    let volume = json::text(claim, &["spec", "volumeName"]);
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        (shown(claim, &["status", "capacity", "storage"], "0"), access_modes(claim))
    };
    let annotated =
        json::text(claim, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    let class =
        if annotated.is_empty() { json::text(claim, &["spec", "storageClassName"]) } else { annotated };
    vec![
        name(claim),
        json!(phase),
        json!(volume),
        json!(capacity),
        json!(modes),
        json!(class),
        json!(shown(claim, &["spec", "volumeAttributesClassName"], UNSET)),
        age(claim, now),
        json!(shown(claim, &["spec", "volumeMode"], UNSET)),
    ]
}

fn access_modes(claim: &Value) -> String {
    const SHORT: &[(&str, &str)] = &[
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let given = json::list(claim, &["status", "accessModes"]);
    let has = |long: &str| given.iter().any(|mode| mode == long);
    SHORT.iter().filter(|(long, _)| has(long)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

pub(super) fn quotas() -> Printer {
    Printer {
        columns: vec![
            name_column(),
            age_column(),
            column("Request", "string", 0, "What is used of what there is, of requests and counts"),
            column("Limit", "string", 0, "The same of limits"),
        ],
        cells: |quota, now| {
            vec![name(quota), age(quota, now), json!(used(quota, false)), json!(used(quota, true))]
        },
    }
}

fn used(quota: &Value, limits: bool) -> String {
    let Some(hard) = json::object(quota, &["status", "hard"]) else { return String::new() };
    let own = hard.keys().filter(|resource| resource.starts_with("limits.") == limits);
    let parts = own.map(|resource| {
        let figure = |field: &str| shown(quota, &["status", field, resource], "0");
        format!("{resource}: {}/{}", figure("used"), figure("hard"))
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Kinds of which Kubernetes prints nothing but when they were made.
pub(super) fn bare() -> Printer {
    Printer {
        columns: vec![name_column(), column("Created At", "date", 0, "When the object was created")],
        cells: |object, _| {
            let created = json::at(object, &["metadata", "creationTimestamp"]).cloned();
            vec![name(object), created.unwrap_or_default()]
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(printer: Printer, object: Value, expected: Value) {
        let now = "2026-11-29T12:10:29Z".parse().unwrap();
        let cells = (printer.cells)(&object, now);
        assert_eq!(cells.len(), printer.columns.len());
        assert_eq!(json!(cells), expected);
    }

    fn meta(name: &str) -> Value {
        json!({"name": name, "creationTimestamp": "2026-11-29T12:10:19Z"})
    }

    #[test]
    fn budgets_and_autoscalers() {
        let budget = json!({"metadata": meta("b"), "spec": {"maxUnavailable": "25%"}, "status": {"disruptionsAllowed": 2}});
        check(disruption_budgets(), budget, json!(["b", "N/A", "25%", 2, "10s"]));
        let metric =
            |target: Value| json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        let scaler = |metrics: Value, current: Value| {
            json!({
                "metadata": meta("h"),
                "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3, "metrics": metrics},
                "status": {"currentReplicas": 1, "currentMetrics": current},
            })
        };
        let row = |targets: &str| json!(["h", "Deployment/web", targets, "<unset>", 3, 1, "10s"]);
        check(autoscalers(), scaler(json!([]), Value::Null), row("<none>"));
        let share = metric(json!({"type": "Utilization", "averageUtilization": 80}));
        check(autoscalers(), scaler(json!([share]), Value::Null), row("cpu: <unknown>/80%"));
        let current =
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}}]);
        check(
            autoscalers(),
            scaler(json!([share, share, share]), current),
            row("cpu: 7%/80%, cpu: <unknown>/80% + 1 more..."),
        );
        let value = metric(json!({"type": "AverageValue", "averageValue": "5m"}));
        check(
            autoscalers(),
            scaler(json!([value, {"type": "Pods"}]), Value::Null),
            row("cpu: <unknown>/5m, <unknown type>"),
        );
    }

    #[test]
    fn claims_and_quotas() {
        let claim = json!({"metadata": meta("c"), "spec": {"storageClassName": "fast", "volumeMode": "Filesystem"}, "status": {"phase": "Pending"}});
        check(
            volume_claims(),
            claim,
            json!(["c", "Pending", "", "", "", "fast", "<unset>", "10s", "Filesystem"]),
        );
        let status = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"]});
        let claim = json!({"metadata": meta("c"), "spec": {"volumeName": "v"}, "status": status});
        check(
            volume_claims(),
            claim,
            json!(["c", "Bound", "v", "1Gi", "RWO,RWX", "", "<unset>", "10s", "<unset>"]),
        );
        let status =
            json!({"hard": {"pods": "4", "limits.cpu": "2", "requests.cpu": "1"}, "used": {"pods": "1"}});
        let quota = json!({"metadata": meta("q"), "status": status});
        check(quotas(), quota, json!(["q", "10s", "pods: 1/4, requests.cpu: 0/1", "limits.cpu: 0/2"]));
        check(bare(), json!({"metadata": meta("l")}), json!(["l", "2026-11-29T12:10:19Z"]));
    }
}
