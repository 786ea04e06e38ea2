//! Pods of a Job.

use serde_json::{Value, json};

use super::TRACKING;
use super::indexes::INDEX;
use crate::controllers::children::Owner;
use crate::json;

const ENVIRONMENT: &str = "JOB_COMPLETION_INDEX";

/// A pod; of an Indexed Job for this index.
pub(super) fn pod(owner: &Owner<'_>, index: Option<usize>) -> Value {
    let name = json::name(owner.object);
    let mut pod = match index {
        Some(index) => owner.pod(&format!("{name}-{index}-")),
        None => owner.pod(&format!("{name}-")),
    };
    let metadata = json::object_mut(&mut pod, &["metadata"]);
    let finalizers = metadata.entry("finalizers").or_insert(Value::Null);
    json::list_mut(finalizers).push(TRACKING.into());
    if let Some(index) = index {
        for field in ["labels", "annotations"] {
            let map = json::object_mut(&mut pod, &["metadata", field]);
            map.insert(INDEX.to_owned(), index.to_string().into());
        }
        json::object_mut(&mut pod, &["spec"]).insert("hostname".to_owned(), format!("{name}-{index}").into());
        for containers in ["initContainers", "containers"] {
            tell_index(json::object_mut(&mut pod, &["spec"]).get_mut(containers));
        }
    }
    pod
}

/// Gives each container its index in the environment, unless it has a variable of that name.
fn tell_index(containers: Option<&mut Value>) {
    let Some(Value::Array(containers)) = containers else { return };
    for container in containers {
        let environment = json::object_mut(container, &[]).entry("env").or_insert(Value::Null);
        let environment = json::list_mut(environment);
        if !environment.iter().any(|it| json::text(it, &["name"]) == Some(ENVIRONMENT)) {
            let path = format!("metadata.labels['{INDEX}']");
            let from = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": path}});
            environment.push(json!({"name": ENVIRONMENT, "valueFrom": from}));
        }
    }
}
