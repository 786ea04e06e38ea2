//! Rows of Deployments, ReplicaSets, DaemonSets, StatefulSets, Jobs and CronJobs.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::format::{
    NONE, age, column, duration, labels, name_column, or, since, template_cells, template_columns,
};
use super::{Column, Printer, age_column, name};
use crate::json;

fn with_template(mut columns: Vec<Column>) -> Vec<Column> {
    columns.extend(template_columns());
    columns
}

fn status(object: &Value, field: &str) -> i64 {
    json::int(object, &["status", field]).unwrap_or(0)
}

pub(super) fn deployments() -> Printer {
    Printer {
        columns: with_template(vec![
            name_column(),
            column("Ready", "string", 0, "Pods that are ready, of those wanted"),
            column("Up-to-date", "string", 0, "Pods made from the present template"),
            column("Available", "string", 0, "Pods that have been ready long enough"),
            age_column(),
        ]),
        cells: |object, now| {
            let wanted = json::int(object, &["spec", "replicas"]).unwrap_or(0);
            let mut cells = vec![
                name(object),
                json!(format!("{}/{wanted}", status(object, "readyReplicas"))),
                json!(status(object, "updatedReplicas")),
                json!(status(object, "availableReplicas")),
                age(object, now),
            ];
            cells.extend(template_cells(object));
            cells
        },
    }
}

pub(super) fn replica_sets() -> Printer {
    Printer {
        columns: with_template(vec![
            name_column(),
            column("Desired", "integer", 0, "Pods wanted"),
            column("Current", "integer", 0, "Pods that exist"),
            column("Ready", "integer", 0, "Pods that are ready"),
            age_column(),
        ]),
        cells: |object, now| {
            let mut cells = vec![
                name(object),
                json!(json::int(object, &["spec", "replicas"]).unwrap_or(0)),
                json!(status(object, "replicas")),
                json!(status(object, "readyReplicas")),
                age(object, now),
            ];
            cells.extend(template_cells(object));
            cells
        },
    }
}

pub(super) fn daemon_sets() -> Printer {
    Printer {
        columns: with_template(vec![
            name_column(),
            column("Desired", "integer", 0, "Nodes that should run a pod"),
            column("Current", "integer", 0, "Nodes that have a pod and should"),
            column("Ready", "integer", 0, "Nodes whose pod is ready"),
            column("Up-to-date", "integer", 0, "Nodes whose pod is made from the present template"),
            column("Available", "integer", 0, "Nodes whose pod has been ready long enough"),
            column("Node Selector", "string", 0, "Labels that a node must have"),
            age_column(),
        ]),
        cells: |object, now| {
            let mut cells = vec![name(object)];
            for field in [
                "desiredNumberScheduled",
                "currentNumberScheduled",
                "numberReady",
                "updatedNumberScheduled",
                "numberAvailable",
            ] {
                cells.push(json!(status(object, field)));
            }
            cells.push(json!(labels(object.pointer("/spec/template/spec/nodeSelector"))));
            cells.push(age(object, now));
            cells.extend(template_cells(object));
            cells
        },
    }
}

pub(super) fn stateful_sets() -> Printer {
    let [containers, images, _] = template_columns();
    Printer {
        columns: vec![
            name_column(),
            column("Ready", "string", 0, "Pods that are ready, of those wanted"),
            age_column(),
            containers,
            images,
        ],
        cells: |object, now| {
            let wanted = json::int(object, &["spec", "replicas"]).unwrap_or(0);
            let ready = json!(format!("{}/{wanted}", status(object, "readyReplicas")));
            let [containers, images, _] = template_cells(object);
            vec![name(object), ready, age(object, now), containers, images]
        },
    }
}

pub(super) fn cron_jobs() -> Printer {
    Printer {
        columns: with_template(vec![
            name_column(),
            column("Schedule", "string", 0, "When jobs are made"),
            column("Timezone", "string", 0, "The time zone of the schedule"),
            column("Suspend", "boolean", 0, "Whether no jobs are made for now"),
            column("Active", "integer", 0, "Jobs that are not done"),
            column("Last Schedule", "string", 0, "Time since the last job was made"),
            age_column(),
        ]),
        cells: |object, now| {
            let spec = |field: &str| json::text(object, &["spec", field]);
            let last = json::text(object, &["status", "lastScheduleTime"]);
            let suspended = if json::flag(object, &["spec", "suspend"]) { "True" } else { "False" };
            let mut cells = vec![
                name(object),
                json!(spec("schedule")),
                json!(or(spec("timeZone"), NONE)),
                json!(suspended),
                json!(json::list(object, &["status", "active"]).len()),
                json!(if last.is_empty() { NONE.to_owned() } else { since(last, now) }),
                age(object, now),
            ];
            let template = json::at(object, &["spec", "jobTemplate"]).cloned().unwrap_or_default();
            cells.extend(template_cells(&template));
            cells
        },
    }
}

pub(super) fn jobs() -> Printer {
    Printer {
        columns: with_template(vec![
            name_column(),
            column("Status", "string", 0, "How the job stands"),
            column("Completions", "string", 0, "Pods that succeeded, of those wanted"),
            column("Duration", "string", 0, "Time from start to completion, or until now"),
            age_column(),
        ]),
        cells: job_cells,
    }
}

fn job_cells(job: &Value, now: Timestamp) -> Vec<Value> {
    let holds = |kind: &str| {
        json::list(job, &["status", "conditions"])
            .iter()
            .any(|one| json::text(one, &["type"]) == kind && json::text(one, &["status"]) == "True")
    };
    let state = if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if !json::text(job, &["metadata", "deletionTimestamp"]).is_empty() {
        "Terminating"
    } else if holds("Suspended") {
        "Suspended"
    } else if holds("FailureTarget") {
        "FailureTarget"
    } else if holds("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    let succeeded = status(job, "succeeded");
    let parallelism = json::int(job, &["spec", "parallelism"]).unwrap_or(0);
    let completions = match json::int(job, &["spec", "completions"]) {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let started = json::text(job, &["status", "startTime"]);
    let completed = json::text(job, &["status", "completionTime"]).parse::<Timestamp>();
    let took = match (started.parse::<Timestamp>(), completed) {
        (Err(_), _) => String::new(),
        (Ok(_), Err(_)) => since(started, now),
        (Ok(start), Ok(end)) => duration(end.duration_since(start).as_millis()),
    };
    let mut cells = vec![name(job), json!(state), json!(completions), json!(took), age(job, now)];
    cells.extend(template_cells(job));
    cells
}
