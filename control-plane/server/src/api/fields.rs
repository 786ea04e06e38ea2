//! Field selectors: which fields a kind can be selected by, and whether an object matches.

use std::collections::BTreeMap;

use control_plane_api::{ApiError, Kind};
use control_plane_core::selectors::FieldSelector;
use serde_json::Value;

/// Fields besides `metadata.name` and `metadata.namespace`, by group and resource.
const FIELDS: &[(&str, &str, &[&str])] = &[
    (
        "",
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
    ),
    ("", "nodes", &["spec.unschedulable"]),
    ("", "namespaces", &["status.phase"]),
    ("", "secrets", &["type"]),
    ("", "services", &["spec.clusterIP", "spec.type"]),
    (
        "",
        "events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    (
        "events.k8s.io",
        "events",
        &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
    ),
    ("apps", "replicasets", &["status.replicas"]),
    ("batch", "jobs", &["status.successful"]),
];
const ALWAYS: &[&str] = &["metadata.name", "metadata.namespace"];
/// The same for the two kinds without a namespace that have fields of their own.
const WITHOUT_NAMESPACE: &[&str] = &["metadata.name"];

/// Reads a field selector for objects of `kind`.
///
/// # Errors
/// 400 for a malformed selector or a field that the kind cannot be selected by.
pub fn parse(text: &str, kind: &Kind) -> Result<FieldSelector, ApiError> {
    let selector = FieldSelector::parse(text).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let own = FIELDS.iter().find(|(group, plural, _)| *group == kind.group && *plural == kind.plural);
    let known = own.map_or(&[] as &[&str], |(_, _, fields)| fields);
    let always = if own.is_some() && !kind.namespaced { WITHOUT_NAMESPACE } else { ALWAYS };
    for field in selector.fields() {
        if !always.contains(&field) && !known.contains(&field) {
            return Err(ApiError::bad_request(match own {
                Some((_, "jobs", _)) => format!("field label \"{field}\" not supported for batchv1.Job"),
                Some(_) => format!("field label not supported: {field}"),
                None => {
                    let known = "\"metadata.name\", \"metadata.namespace\"";
                    format!("\"{field}\" is not a known field selector: only {known}")
                }
            }));
        }
    }
    Ok(selector)
}

/// Whether a stored object is selected.
pub fn selects(selector: &FieldSelector, object: &Value) -> bool {
    if selector.is_everything() {
        return true;
    }
    let values: BTreeMap<&str, String> =
        selector.fields().map(|field| (field, value_of(object, field))).collect();
    selector.matches(|field| values.get(field).map(String::as_str))
}

fn value_of(object: &Value, field: &str) -> String {
    let (pointer, absent) = match field {
        "source" => ("/source/component".to_owned(), ""),
        "reportingController" => ("/reportingComponent".to_owned(), ""),
        "status.successful" => ("/status/succeeded".to_owned(), "0"),
        "status.podIPs" => ("/status/podIP".to_owned(), ""),
        // Events are stored in the form of the core group.
        _ if field.starts_with("regarding.") => {
            (format!("/involvedObject/{}", field.trim_start_matches("regarding.")), "")
        }
        "spec.unschedulable" | "spec.hostNetwork" => (format!("/{}", field.replace('.', "/")), "false"),
        "status.replicas" => ("/status/replicas".to_owned(), "0"),
        _ => (format!("/{}", field.replace('.', "/")), ""),
    };
    match object.pointer(&pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => absent.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_plane_api::kinds;
    use serde_json::json;

    fn parse(group: &str, plural: &str, text: &str) -> Result<FieldSelector, ApiError> {
        super::parse(text, kinds::find(group, "v1", plural).unwrap())
    }

    #[test]
    fn pods_are_selected_by_their_fields() {
        let pod = json!({
            "metadata": {"name": "p", "namespace": "w"},
            "spec": {"nodeName": "a"},
            "status": {"phase": "Running"},
        });
        let check = |text: &str, expected: bool| {
            assert_eq!(selects(&parse("", "pods", text).unwrap(), &pod), expected, "{text}");
        };
        check("", true);
        check("spec.nodeName=a", true);
        check("spec.nodeName==a", true);
        check("spec.nodeName=", false);
        check("spec.nodeName!=", true);
        check("spec.nodeName=a,status.phase!=Running", false);
        check("metadata.name=p,metadata.namespace=w", true);
        check("status.podIP=", true);
        check("spec.hostNetwork=false", true);
        check("metadata.name=p\\,q", false);
    }

    #[test]
    fn nodes_and_events_have_fields_of_their_own() {
        let node = json!({"metadata": {"name": "n"}, "spec": {}});
        assert!(selects(&parse("", "nodes", "spec.unschedulable=false").unwrap(), &node));
        let event = json!({"involvedObject": {"kind": "Pod", "name": "p"}, "source": {"component": "s"}});
        assert!(selects(&parse("", "events", "involvedObject.name=p,source=s").unwrap(), &event));
        assert!(selects(&parse("events.k8s.io", "events", "regarding.kind=Pod").unwrap(), &event));
    }

    #[test]
    fn unknown_fields_and_nonsense_are_refused() {
        let check = |group: &str, plural: &str, text: &str, message: &str| {
            let error = parse(group, plural, text).unwrap_err();
            assert_eq!((error.code, error.message.as_str()), (400, message), "{text}");
        };
        check("", "pods", "metadata.labels.app=a", "field label not supported: metadata.labels.app");
        check("", "nodes", "spec.providerID=x", "field label not supported: spec.providerID");
        check("", "nodes", "metadata.namespace=x", "field label not supported: metadata.namespace");
        check("", "namespaces", "name=x", "field label not supported: name");
        check(
            "batch",
            "jobs",
            "spec.suspend=true",
            "field label \"spec.suspend\" not supported for batchv1.Job",
        );
        let known =
            "\"spec.replicas\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
        check("apps", "deployments", "spec.replicas=1", known);
        check("", "pods", "bad", "invalid selector: 'bad'; can't understand 'bad'");
    }
}
