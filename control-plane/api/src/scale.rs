//! The scale subresource: an `autoscaling/v1` Scale as a view of a Deployment or ReplicaSet.

use serde_json::{Map, Value, json};

use crate::json;
use crate::kinds::Kind;
use crate::status::{ApiError, Cause};

/// The Scale of an object; `status.selector` is the object's selector in its text form.
pub fn from_object(object: &Value) -> Value {
    let mut meta = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = json::at(object, &["metadata", field]) {
            meta.insert(field.to_owned(), value.clone());
        }
    }
    let mut spec = Map::new();
    let replicas = json::int(object, &["spec", "replicas"]).unwrap_or(1);
    if replicas != 0 {
        spec.insert("replicas".to_owned(), json!(replicas));
    }
    let mut status = json!({"replicas": json::int(object, &["status", "replicas"]).unwrap_or(0)});
    let selector = selector_text(object.pointer("/spec/selector").unwrap_or(&Value::Null));
    if !selector.is_empty() {
        status["selector"] = json!(selector);
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status,
    })
}

/// The object as a written Scale wants it: `spec.replicas` set, nothing else changed.
///
/// The caller passes the result through [`crate::strategy::prepare_update`], which raises the generation.
///
/// Errors: 400 for another name, 409 for a uid or resourceVersion that is not the object's, 422 for negative replicas.
pub fn apply(kind: &Kind, object: &Value, scale: &Value) -> Result<Value, ApiError> {
    let name = json::text(object, &["metadata", "name"]);
    let meta = |field: &str| json::text(scale, &["metadata", field]);
    let own = |field: &str| json::text(object, &["metadata", field]);
    for field in ["name", "namespace"] {
        if !meta(field).is_empty() && meta(field) != own(field) {
            return Err(ApiError::bad_request(format!(
                "the {field} of the object ({}) does not match the {field} on the URL ({})",
                meta(field),
                own(field)
            )));
        }
    }
    if !meta("uid").is_empty() && meta("uid") != own("uid") {
        let (namespace, wanted, found) = (own("namespace"), meta("uid"), own("uid"));
        return Err(ApiError::precondition_failed(kind, namespace, name, "UID", wanted, found));
    }
    if !meta("resourceVersion").is_empty() && meta("resourceVersion") != own("resourceVersion") {
        return Err(ApiError::stale(kind, name));
    }
    let replicas = json::int(scale, &["spec", "replicas"]).unwrap_or(0);
    if replicas < 0 {
        let cause = Cause::invalid("spec.replicas", &json!(replicas), "must be greater than or equal to 0");
        return Err(ApiError::invalid_for("autoscaling", "Scale", name, vec![cause]));
    }
    let mut scaled = object.clone();
    json::object_mut(&mut scaled, &["spec"]).insert("replicas".to_owned(), json!(replicas));
    Ok(scaled)
}

/// 404 for the scale of an absent object.
pub fn not_found(kind: &Kind, name: &str) -> ApiError {
    ApiError::not_found_in(kind.group, &format!("{}/scale", kind.plural), name)
}

/// A label selector object in the text form of queries: `app=web,tier in (a,b)`, sorted by key.
pub(crate) fn selector_text(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in json::object(selector, &["matchLabels"]).into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in json::list(selector, &["matchExpressions"]) {
        let key = json::text(expression, &["key"]);
        let mut values: Vec<&str> =
            json::list(expression, &["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match json::text(expression, &["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => continue,
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort();
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn deployment() -> Value {
        json!({
            "metadata": {
                "name": "web", "namespace": "d", "uid": "u", "resourceVersion": "1314",
                "creationTimestamp": "2026-11-29T12:06:08Z", "labels": {"a": "b"}, "generation": 1,
            },
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "paused": true},
            "status": {"replicas": 2},
        })
    }

    fn run(scale: &Value) -> Result<Value, ApiError> {
        apply(kinds::by_resource("deployments").unwrap(), &deployment(), scale)
    }

    #[test]
    fn a_scale_shows_replicas_and_selector() {
        let expected = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": "web", "namespace": "d", "uid": "u", "resourceVersion": "1314",
                "creationTimestamp": "2026-11-29T12:06:08Z",
            },
            "spec": {"replicas": 3},
            "status": {"replicas": 2, "selector": "app=web"},
        });
        assert_eq!(from_object(&deployment()), expected);
    }

    #[test]
    fn selectors_as_text() {
        let cases = [
            (json!({}), ""),
            (json!({"matchLabels": {"b": "2", "a": "1"}}), "a=1,b=2"),
            (
                json!({"matchLabels": {"m": "1"}, "matchExpressions": [
                    {"key": "z", "operator": "In", "values": ["q", "p"]},
                    {"key": "a", "operator": "NotIn", "values": ["x"]},
                    {"key": "e", "operator": "Exists"},
                    {"key": "d", "operator": "DoesNotExist"},
                ]}),
                "a notin (x),!d,e,m=1,z in (p,q)",
            ),
        ];
        for (selector, text) in cases {
            assert_eq!(selector_text(&selector), text);
        }
    }

    #[test]
    fn writing_a_scale_sets_replicas_only() {
        let scaled = run(&json!({"spec": {"replicas": 5}})).unwrap();
        let mut expected = deployment();
        expected["spec"]["replicas"] = json!(5);
        assert_eq!(scaled, expected);
        let to_zero =
            run(&json!({"metadata": {"name": "web", "resourceVersion": "1314", "uid": "u"}, "spec": {}}));
        assert_eq!(to_zero.unwrap()["spec"]["replicas"], 0);
    }

    #[test]
    fn refusals() {
        let cases = [
            (
                json!({"spec": {"replicas": -1}}),
                422,
                "Scale.autoscaling \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            ),
            (
                json!({"metadata": {"resourceVersion": "1"}}),
                409,
                "Operation cannot be fulfilled on deployments.apps \"web\": the object has been modified; please apply your \
                 changes to the latest version and try again",
            ),
            (
                json!({"metadata": {"name": "x"}}),
                400,
                "the name of the object (x) does not match the name on the URL (web)",
            ),
        ];
        for (scale, code, message) in cases {
            let error = run(&scale).unwrap_err();
            assert_eq!((error.code, error.message.as_str()), (code, message));
        }
        let missing = not_found(kinds::by_resource("deployments").unwrap(), "absent");
        assert_eq!(missing.message, "deployments/scale.apps \"absent\" not found");
    }
}
