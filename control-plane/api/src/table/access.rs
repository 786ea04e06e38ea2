//! Rows of roles, their bindings, and priority classes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::format::{age, column, name_column};
use super::{Printer, age_column, name};
use crate::json;

/// Roles are shown by the time they were made.
pub(super) fn roles() -> Printer {
    Printer {
        columns: vec![name_column(), column("Created At", "date", 0, "When the object was created")],
        cells: |object, _| {
            let created = json::at(object, &["metadata", "creationTimestamp"]).cloned();
            vec![name(object), created.unwrap_or_default()]
        },
    }
}

pub(super) fn bindings() -> Printer {
    Printer {
        columns: vec![
            name_column(),
            column("Role", "string", 0, "The role that is given"),
            age_column(),
            column("Users", "string", 1, "Users that get it"),
            column("Groups", "string", 1, "Groups that get it"),
            column("ServiceAccounts", "string", 1, "Service accounts that get it"),
        ],
        cells: binding_cells,
    }
}

fn binding_cells(binding: &Value, now: Timestamp) -> Vec<Value> {
    let role = |field: &str| json::text(binding, &["roleRef", field]);
    let of = |kind: &str| {
        let all: Vec<String> = json::list(binding, &["subjects"])
            .iter()
            .filter(|subject| json::text(subject, &["kind"]) == kind)
            .map(|subject| {
                let text = |field: &str| json::text(subject, &[field]);
                match kind {
                    "ServiceAccount" => format!("{}/{}", text("namespace"), text("name")),
                    _ => text("name").to_owned(),
                }
            })
            .collect();
        json!(all.join(", "))
    };
    vec![
        name(binding),
        json!(format!("{}/{}", role("kind"), role("name"))),
        age(binding, now),
        of("User"),
        of("Group"),
        of("ServiceAccount"),
    ]
}

pub(super) fn priority_classes() -> Printer {
    Printer {
        columns: vec![
            name_column(),
            column("Value", "integer", 0, "The priority that pods of the class get"),
            column("Global-Default", "boolean", 0, "Whether pods without a class get this one"),
            age_column(),
            column("PreemptionPolicy", "string", 0, "Whether its pods may take the place of others"),
        ],
        cells: |class, now| {
            vec![
                name(class),
                json!(json::int(class, &["value"]).unwrap_or(0)),
                json!(json::flag(class, &["globalDefault"])),
                age(class, now),
                json!(json::text(class, &["preemptionPolicy"])),
            ]
        },
    }
}
