//! Rows of pods: readiness, the one word that sums a pod up, and restarts.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::format::{NONE, age, column, name_column, or, since};
use super::{Printer, age_column, name};
use crate::json;

pub(super) fn printer() -> Printer {
    Printer {
        columns: vec![
            name_column(),
            column("Ready", "string", 0, "Containers that are ready, of all"),
            column("Status", "string", 0, "What the pod's containers are doing, in one word"),
            column("Restarts", "string", 0, "How often containers were restarted, and when last"),
            age_column(),
            column("IP", "string", 1, "Address of the pod"),
            column("Node", "string", 1, "Node that the pod is bound to"),
            column("Nominated Node", "string", 1, "Node on which room is being made for the pod"),
            column("Readiness Gates", "string", 1, "Readiness gates that are passed, of all"),
        ],
        cells,
    }
}

/// The condition of a row whose pod is over.
pub(super) fn row_conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match json::text(pod, &["status", "phase"]) {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = summarise(pod);
    let restarts = match summary.last_restart {
        Some(at) if summary.restarts > 0 => format!("{} ({} ago)", summary.restarts, since(at, now)),
        Some(_) | None => summary.restarts.to_string(),
    };
    let address = json::list(pod, &["status", "podIPs"]).first().map(|first| json::text(first, &["ip"]));
    let address = address.unwrap_or_else(|| json::text(pod, &["status", "podIP"]));
    vec![
        name(pod),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(restarts),
        age(pod, now),
        json!(or(address, NONE)),
        json!(or(json::text(pod, &["spec", "nodeName"]), NONE)),
        json!(or(json::text(pod, &["status", "nominatedNodeName"]), NONE)),
        json!(readiness_gates(pod)),
    ]
}

struct Summary<'a> {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<&'a str>,
}

fn summarise(pod: &Value) -> Summary<'_> {
    let status = |field: &str| json::text(pod, &["status", field]);
    let phase = status("phase");
    let mut summary = Summary {
        reason: or(status("reason"), phase).to_owned(),
        ready: 0,
        total: json::list(pod, &["spec", "containers"]).len(),
        restarts: 0,
        last_restart: None,
    };
    let scheduled = condition(pod, "PodScheduled");
    if scheduled.is_some_and(|one| json::text(one, &["reason"]) == "SchedulingGated") {
        summary.reason = "SchedulingGated".to_owned();
    }
    let initialised = condition(pod, "Initialized").is_some_and(|one| json::text(one, &["status"]) == "True");
    if !initialising(pod, &mut summary) || initialised {
        summary.restarts = 0;
        summary.last_restart = None;
        sum_containers(pod, &mut summary);
    }
    if !json::text(pod, &["metadata", "deletionTimestamp"]).is_empty() {
        if status("reason") == "NodeLost" {
            summary.reason = "Unknown".to_owned();
        } else if !matches!(phase, "Failed" | "Succeeded") {
            summary.reason = "Terminating".to_owned();
        }
    }
    summary
}

/// Whether an init container has not finished; the reason then tells about it.
fn initialising<'a>(pod: &'a Value, summary: &mut Summary<'a>) -> bool {
    let total = json::list(pod, &["spec", "initContainers"]).len();
    for (index, container) in json::list(pod, &["status", "initContainerStatuses"]).iter().enumerate() {
        count_restarts(container, summary);
        let terminated = json::at(container, &["state", "terminated"]);
        let waiting = json::text(container, &["state", "waiting", "reason"]);
        summary.reason = match terminated {
            Some(ended) if json::int(ended, &["exitCode"]).unwrap_or(0) == 0 => continue,
            Some(ended) => format!("Init:{}", ended_reason(ended)),
            None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
            None => format!("Init:{index}/{total}"),
        };
        return true;
    }
    false
}

fn sum_containers<'a>(pod: &'a Value, summary: &mut Summary<'a>) {
    let mut running = false;
    for container in json::list(pod, &["status", "containerStatuses"]).iter().rev() {
        count_restarts(container, summary);
        let waiting = json::text(container, &["state", "waiting", "reason"]);
        let terminated = json::at(container, &["state", "terminated"]);
        if !waiting.is_empty() {
            summary.reason = waiting.to_owned();
        } else if let Some(ended) = terminated {
            summary.reason = ended_reason(ended);
        } else if json::flag(container, &["ready"]) && json::at(container, &["state", "running"]).is_some() {
            running = true;
            summary.ready += 1;
        }
    }
    // A pod of which something still runs is not over.
    if summary.reason == "Completed" && running {
        let ready = condition(pod, "Ready").is_some_and(|one| json::text(one, &["status"]) == "True");
        summary.reason = if ready { "Running" } else { "NotReady" }.to_owned();
    }
}

fn ended_reason(ended: &Value) -> String {
    let signal = json::int(ended, &["signal"]).unwrap_or(0);
    match json::text(ended, &["reason"]) {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", json::int(ended, &["exitCode"]).unwrap_or(0)),
        reason => reason.to_owned(),
    }
}

fn count_restarts<'a>(container: &'a Value, summary: &mut Summary<'a>) {
    summary.restarts += json::int(container, &["restartCount"]).unwrap_or(0);
    let ended = json::text(container, &["lastState", "terminated", "finishedAt"]);
    // RFC 3339 in UTC and whole seconds sorts as text.
    if !ended.is_empty() && summary.last_restart.is_none_or(|last| last < ended) {
        summary.last_restart = Some(ended);
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = json::list(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let passed = gates.iter().filter(|gate| {
        condition(pod, json::text(gate, &["conditionType"]))
            .is_some_and(|one| json::text(one, &["status"]) == "True")
    });
    format!("{}/{}", passed.count(), gates.len())
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    json::list(pod, &["status", "conditions"]).iter().find(|one| json::text(one, &["type"]) == kind)
}
