//! The ports of a service, as a pod resolves them (EP-03).

use serde_json::{Map, Value};

use super::backend::Backend;
use crate::json;

/// The ports at which a pod is reached: each as its place in the service and its number.
pub(super) type Resolved = Vec<(usize, i64)>;

/// Those ports of `service` that the pod has. One that is named like no port of a container is left out, as in Kubernetes.
pub(super) fn resolve(service: &Value, backend: &Backend<'_>) -> Resolved {
    let ports = json::list(service, &["spec", "ports"]).iter().enumerate();
    ports.filter_map(|(place, port)| Some((place, number(port, backend.pod)?))).collect()
}

fn protocol(port: &Value) -> &str {
    json::text(port, &["protocol"]).filter(|text| !text.is_empty()).unwrap_or("TCP")
}

fn number(port: &Value, pod: &Value) -> Option<i64> {
    let own = json::int(port, &["port"]);
    match json::get(port, &["targetPort"]) {
        Some(Value::String(name)) if !name.is_empty() => named(name, protocol(port), pod),
        Some(Value::Number(number)) => number.as_i64().filter(|number| *number > 0).or(own),
        _ => own,
    }
}

/// The container port of this name. Of the containers that run before the others only those stay that are always restarted.
fn named(name: &str, wanted: &str, pod: &Value) -> Option<i64> {
    let stays = |container: &&Value| json::text(container, &["restartPolicy"]) == Some("Always");
    let beside = json::list(pod, &["spec", "initContainers"]).iter().filter(stays);
    let containers = json::list(pod, &["spec", "containers"]).iter().chain(beside);
    let mut ports = containers.flat_map(|container| json::list(container, &["ports"]));
    let found = ports.find(|port| json::text(port, &["name"]) == Some(name) && protocol(port) == wanted)?;
    json::int(found, &["containerPort"])
}

/// The port as it stands in Endpoints and slices. Only slices have the name of one that has none.
pub(super) fn shown(service: &Value, (place, number): (usize, i64), in_slice: bool) -> Value {
    let port = json::list(service, &["spec", "ports"]).get(place).unwrap_or(&Value::Null);
    let text = |field: &str| json::text(port, &[field]).filter(|text| !text.is_empty());
    let mut fields = Map::new();
    if let Some(name) = text("name").or(in_slice.then_some("")) {
        fields.insert("name".to_owned(), name.into());
    }
    fields.insert("port".to_owned(), number.into());
    fields.insert("protocol".to_owned(), protocol(port).into());
    if let Some(app) = text("appProtocol") {
        fields.insert("appProtocol".to_owned(), app.into());
    }
    fields.into()
}
