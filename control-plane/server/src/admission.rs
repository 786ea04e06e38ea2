//! Admission: what happens to an object between its decoding and its validation, plugin by plugin, with Kubernetes' names.
//!
//! NODE-13, NODE-14 (DefaultTolerationSeconds), GHOST-04, GHOST-09 (ServiceAccount) and the rule that nothing is made in a
//! namespace that is absent or being deleted. NodeRestriction is in `auth`, since it speaks of users.

use control_plane_api::status::Cause;
use control_plane_api::{ApiError, Kind, strategy};
use control_plane_core::Snapshot;
use serde_json::Value;

use crate::auth::node::{Named, names_any};
use crate::config::{Admission, Config, Controller};

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Whether something may be made in this namespace.
///
/// # Errors
/// 404 for an absent namespace, 403 for one that is being deleted.
pub fn namespace_open(snapshot: &Snapshot, kind: &Kind, namespace: &str, name: &str) -> Result<(), ApiError> {
    let Some(found) = snapshot.get("namespaces", "", namespace) else {
        return Err(ApiError::not_found_in("", "namespaces", namespace));
    };
    if text(found, "/metadata/deletionTimestamp").is_empty() {
        return Ok(());
    }
    Err(ApiError::namespace_terminating(kind, name, namespace))
}

/// Lets the plugins that need to see other objects at an object that is being made.
///
/// # Errors
/// 403 where a plugin refuses it.
pub fn admit(config: &Config, snapshot: &Snapshot, kind: &Kind, object: &mut Value) -> Result<(), ApiError> {
    if kind.resource == "jobs" {
        return supported_job(config, kind, object);
    }
    if kind.resource != "pods" || config.disable_admission.contains(&Admission::ServiceAccount) {
        return Ok(());
    }
    if strategy::is_mirror(object) {
        return admit_mirror(kind, object);
    }
    strategy::admit_service_account(object);
    let namespace = text(object, "/metadata/namespace");
    let account = text(object, "/spec/serviceAccountName");
    if snapshot.get("serviceaccounts", namespace, account).is_none() {
        return Err(strategy::service_account_missing(namespace, account, text(object, "/metadata/name")));
    }
    Ok(())
}

/// Leaves a mirror pod as its kubelet wrote it, which would take it for another if it were changed; what it stands for runs
/// without this API, and so without accounts and secrets.
fn admit_mirror(kind: &Kind, pod: &Value) -> Result<(), ApiError> {
    let list = |object: &Value, pointer: &str| {
        object.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let volumes = list(pod, "/spec/volumes");
    let mut projected = volumes.iter().flat_map(|volume| list(volume, "/projected/sources"));
    let why = if ["/spec/serviceAccountName", "/spec/serviceAccount"]
        .iter()
        .any(|field| !text(pod, field).is_empty())
    {
        "a mirror pod may not reference service accounts"
    } else if names_any(pod, Named::Secret, |_| true) {
        "a mirror pod may not reference secrets"
    } else if projected.any(|source| !source["serviceAccountToken"].is_null()) {
        "a mirror pod may not use ServiceAccountToken volume projections"
    } else {
        return Ok(());
    };
    Err(ApiError::forbidden(kind.group, kind.plural, text(pod, "/metadata/name"), why))
}

/// What of a Job's spec only Kubernetes' own job controller does. Each is immutable, so that creation is the place to refuse it.
const UNSUPPORTED_OF_JOBS: [&str; 3] = ["podFailurePolicy", "successPolicy", "backoffLimitPerIndex"];

/// Refuses a Job that the built-in controller would run otherwise than it asks, while that one runs.
fn supported_job(config: &Config, kind: &Kind, job: &Value) -> Result<(), ApiError> {
    let foreign = !matches!(text(job, "/spec/managedBy"), "" | "kubernetes.io/job-controller");
    if foreign || !config.controllers.has(Controller::Job) {
        return Ok(());
    }
    let unsupported = UNSUPPORTED_OF_JOBS.into_iter().filter(|field| !job["spec"][*field].is_null());
    let why = "the job controller of this control plane does not support it";
    let causes: Vec<Cause> =
        unsupported.map(|field| Cause::forbidden(format!("spec.{field}"), why)).collect();
    if causes.is_empty() { Ok(()) } else { Err(ApiError::invalid(kind, text(job, "/metadata/name"), causes)) }
}

/// The tolerationSeconds that DefaultTolerationSeconds gives (NODE-21); nothing when it is off.
pub fn eviction_seconds(config: &Config) -> Option<i64> {
    let on = !config.disable_admission.contains(&Admission::DefaultTolerationSeconds);
    on.then(|| i64::try_from(config.eviction_timeout.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_plane_api::kinds;
    use control_plane_core::Key;
    use serde_json::json;
    use std::sync::Arc;

    fn snapshot(objects: &[(&'static str, Value)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (resource, object) in objects {
            snapshot.apply(resource, Key::of(object), Some(Arc::new(object.clone())));
        }
        snapshot
    }

    #[test]
    fn ghost_04_a_pod_needs_its_service_account() {
        let kind = kinds::by_resource("pods").unwrap();
        let pod = json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": {}});
        let check = |config: &Config, accounts: &[(&'static str, Value)], refused: bool| {
            let mut pod = pod.clone();
            let admitted = admit(config, &snapshot(accounts), kind, &mut pod);
            assert_eq!(admitted.is_err(), refused);
            admitted.err().map(|error| (error.code, error.message))
        };
        let words = "pods \"p\" is forbidden: error looking up service account ns/default: serviceaccount \"default\" not found";
        assert_eq!(check(&Config::default(), &[], true), Some((403, words.to_owned())));
        let account = json!({"metadata": {"name": "default", "namespace": "ns"}});
        check(&Config::default(), &[("serviceaccounts", account)], false);
        let off = Config { disable_admission: [Admission::ServiceAccount].into(), ..Config::default() };
        check(&off, &[], false);
    }

    #[test]
    fn a_mirror_pod_is_left_as_it_is_and_has_no_account() {
        let kind = kinds::by_resource("pods").unwrap();
        let check = |spec: Value, refused: Option<&str>| {
            let annotations = json!({"kubernetes.io/config.mirror": "x"});
            let sent = json!({"metadata": {"name": "p", "namespace": "ns", "annotations": annotations}, "spec": spec});
            let mut pod = sent.clone();
            let admitted = admit(&Config::default(), &snapshot(&[]), kind, &mut pod);
            assert_eq!(pod, sent);
            let expected =
                refused.map(|why| (403, format!("pods \"p\" is forbidden: a mirror pod may not {why}")));
            assert_eq!(admitted.err().map(|error| (error.code, error.message)), expected);
        };
        check(json!({"nodeName": "a", "volumes": [{"name": "v", "emptyDir": {}}]}), None);
        check(json!({"serviceAccountName": "default"}), Some("reference service accounts"));
        check(json!({"serviceAccount": "default"}), Some("reference service accounts"));
        check(json!({"imagePullSecrets": [{"name": "s"}]}), Some("reference secrets"));
        let token =
            json!({"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {}}]}}]});
        check(token, Some("use ServiceAccountToken volume projections"));
    }

    #[test]
    fn nothing_is_made_in_a_namespace_that_is_absent_or_going() {
        let kind = kinds::by_resource("pods").unwrap();
        let open = json!({"metadata": {"name": "open"}});
        let going = json!({"metadata": {"name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let snapshot = snapshot(&[("namespaces", open), ("namespaces", going)]);
        assert_eq!(namespace_open(&snapshot, kind, "open", "p"), Ok(()));
        assert_eq!(namespace_open(&snapshot, kind, "absent", "p").unwrap_err().code, 404);
        let error = namespace_open(&snapshot, kind, "going", "p").unwrap_err();
        let words = "pods \"p\" is forbidden: unable to create new content in namespace going because it is being terminated";
        assert_eq!((error.code, error.message.as_str()), (403, words));
        assert_eq!(error.to_status()["details"]["causes"][0]["reason"], "NamespaceTerminating");
    }
}
