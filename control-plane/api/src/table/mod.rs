//! Objects as rows: the Table form that kubectl asks for, with the columns of Kubernetes 1.32, and the form that
//! carries metadata only.
//!
//! Columns and cells of a kind stand side by side in one function; kinds without one get name and age.

mod access;
mod events;
mod format;
mod limits;
mod network;
mod node;
mod pod;
mod service;
mod workloads;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::json;
use crate::kinds::Kind;
use crate::status::{ApiError, Cause};
use crate::views;
use format::{age, column, name_column};

/// What a row of a table carries along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// The object's metadata; what is done when the parameter is absent.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// Reads the `includeObject` parameter from decoded query pairs.
    ///
    /// Errors: 400 for an unknown value.
    pub fn parse(query: &[(String, String)]) -> Result<Self, ApiError> {
        let value = query.iter().find(|(key, _)| key == "includeObject").map(|(_, value)| value.as_str());
        match value.unwrap_or_default() {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => {
                let why = "must be 'Metadata', 'Object', 'None', or empty";
                let cause = Cause::invalid("includeObject", &json!(other), why);
                Err(ApiError::bad_request(format!(
                    "Unable to convert to Table as requested: {}: {}",
                    cause.field, cause.message
                )))
            }
        }
    }
}

/// A column of a table.
struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    description: &'static str,
    /// 0 is always shown, 1 with `-o wide`.
    priority: u8,
}

/// How one kind is printed.
struct Printer {
    columns: Vec<Column>,
    cells: fn(&Value, Timestamp) -> Vec<Value>,
}

fn printer(kind: &Kind) -> Printer {
    match kind.resource {
        "pods" => pod::printer(),
        "nodes" => node::printer(),
        "deployments" => workloads::deployments(),
        "replicasets" => workloads::replica_sets(),
        "daemonsets" => workloads::daemon_sets(),
        "jobs" => workloads::jobs(),
        "events" => events::printer(),
        "services" => service::printer(),
        "statefulsets" => workloads::stateful_sets(),
        "cronjobs" => workloads::cron_jobs(),
        "endpoints" => network::endpoints(),
        "endpointslices" => network::slices(),
        "clusterroles" | "roles" => access::roles(),
        "clusterrolebindings" | "rolebindings" => access::bindings(),
        "priorityclasses" => access::priority_classes(),
        "poddisruptionbudgets" => limits::disruption_budgets(),
        "horizontalpodautoscalers" => limits::autoscalers(),
        "persistentvolumeclaims" => limits::volume_claims(),
        "resourcequotas" => limits::quotas(),
        BARE => limits::bare(),
        "namespaces" => Printer {
            columns: vec![
                name_column(),
                column("Status", "string", 0, "Phase of the namespace"),
                age_column(),
            ],
            cells: |object, now| {
                vec![name(object), json!(json::text(object, &["status", "phase"])), age(object, now)]
            },
        },
        "configmaps" => Printer {
            columns: vec![name_column(), column("Data", "string", 0, "Number of entries"), age_column()],
            cells: |object, now| {
                vec![name(object), json!(entries(object, &["data", "binaryData"])), age(object, now)]
            },
        },
        "secrets" => Printer {
            columns: vec![
                name_column(),
                column("Type", "string", 0, "What the data is for"),
                column("Data", "string", 0, "Number of entries"),
                age_column(),
            ],
            cells: |object, now| {
                let kind = json!(json::text(object, &["type"]));
                vec![name(object), kind, json!(entries(object, &["data"])), age(object, now)]
            },
        },
        "serviceaccounts" => Printer {
            columns: vec![name_column(), column("Secrets", "string", 0, "Number of secrets"), age_column()],
            cells: |object, now| {
                vec![name(object), json!(json::list(object, &["secrets"]).len()), age(object, now)]
            },
        },
        "leases" => Printer {
            columns: vec![name_column(), column("Holder", "string", 0, "Who holds the lease"), age_column()],
            cells: |object, now| {
                vec![name(object), json!(json::text(object, &["spec", "holderIdentity"])), age(object, now)]
            },
        },
        _ => Printer {
            columns: vec![name_column(), age_column()],
            cells: |object, now| vec![name(object), age(object, now)],
        },
    }
}

/// The one kind without a printer of its own.
const BARE: &str = "limitranges";

fn age_column() -> Column {
    column("Age", "string", 0, "Time since the object was created")
}

fn name(object: &Value) -> Value {
    json!(json::text(object, &["metadata", "name"]))
}

fn entries(object: &Value, fields: &[&str]) -> usize {
    fields.iter().filter_map(|field| json::object(object, &[field])).map(Map::len).sum()
}

/// The Table of an object, or of a list of them (told apart by `items`). Ages are counted at `now`.
pub fn table(kind: &Kind, shown: &Value, now: Timestamp, include: IncludeObject) -> Value {
    let printer = printer(kind);
    let row = |object: &Value| {
        let cells = (printer.cells)(&views::stored_form(kind, object), now);
        let carried = match include {
            IncludeObject::None => Value::Null,
            IncludeObject::Metadata => partial(object),
            IncludeObject::Object => {
                let mut whole = object.clone();
                let map = json::object_mut(&mut whole, &[]);
                map.insert("apiVersion".to_owned(), json!(kind.api_version()));
                map.insert("kind".to_owned(), json!(kind.kind));
                whole
            }
        };
        let mut row = json!({"cells": cells, "object": carried});
        if kind.resource == "pods"
            && let Some(conditions) = pod::row_conditions(object)
        {
            row["conditions"] = conditions;
        }
        row
    };
    let (metadata, rows): (_, Vec<Value>) = match shown.get("items").and_then(Value::as_array) {
        Some(items) => (shown.get("metadata").cloned().unwrap_or(json!({})), items.iter().map(row).collect()),
        None => {
            let version = json::text(shown, &["metadata", "resourceVersion"]);
            (json!({"resourceVersion": version}), vec![row(shown)])
        }
    };
    // Where Kubernetes has no printer it does not make the list either.
    let rows: Value = if rows.is_empty() && kind.resource == BARE { Value::Null } else { rows.into() };
    let columns: Vec<Value> = printer
        .columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name, "type": column.kind, "format": column.format,
                "description": column.description, "priority": column.priority,
            })
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": columns, "rows": rows,
    })
}

/// The metadata of an object, or with `list` of each object of a list.
pub fn partial_metadata(shown: &Value, list: bool) -> Value {
    if !list {
        return partial(shown);
    }
    let items: Vec<Value> = json::list(shown, &["items"]).iter().map(partial).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": shown.get("metadata").cloned().unwrap_or(json!({})),
        "items": items,
    })
}

fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or(json!({})),
    })
}

#[cfg(test)]
mod tests;
