//! What a board may do to a particular object: its own Node and Lease, and the pods bound to it (KLET-08).
//!
//! This is Kubernetes' NodeRestriction with the part of its node authoriser that needs to see the object. The refusals carry
//! its words, since a board that reads 403 for a pod drops its copy.

use control_plane_api::{ApiError, Kind};
use serde_json::Value;

use super::{Action, User};

/// The namespace of the boards' leases.
const LEASES: &str = "kube-node-lease";

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a board may read this pod. Anyone else may, as far as this is concerned.
///
/// # Errors
/// 403 for a pod that is bound elsewhere or nowhere.
pub fn check_pod_visible(user: &User, kind: &Kind, pod: &Value) -> Result<(), ApiError> {
    let Some(node) = user.node() else { return Ok(()) };
    if kind.plural != "pods" || text(pod, "/spec/nodeName") == node {
        return Ok(());
    }
    let namespace = text(pod, "/metadata/namespace");
    let mut refusal =
        ApiError::forbidden_verb(&user.name, "get", kind, None, Some(namespace), text(pod, "/metadata/name"));
    refusal.message.push_str(": no relationship found between this node and this object");
    Err(refusal)
}

/// Whether a board may make this write. `old` is the stored object (absent for a creation), `new` what would be stored
/// (absent for a deletion).
///
/// # Errors
/// 403 for what is not the board's own.
pub fn check_write(
    user: &User,
    action: Action,
    kind: &Kind,
    subresource: Option<&str>,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<(), ApiError> {
    let Some(node) = user.node() else { return Ok(()) };
    let object = old.or(new).unwrap_or(&Value::Null);
    let name = text(object, "/metadata/name");
    let refuse = |why: String| Err(ApiError::forbidden(kind.group, kind.plural, name, &why));
    match (kind.plural, subresource) {
        ("nodes", _) if name != node => {
            refuse(format!("node \"{node}\" is not allowed to modify node \"{name}\""))
        }
        ("nodes", None) => {
            let taints = |object: Option<&Value>| {
                object
                    .and_then(|object| object.pointer("/spec/taints"))
                    .filter(|taints| !taints.is_null())
                    .cloned()
            };
            if old.is_some() && taints(old) != taints(new) {
                return refuse(format!("node \"{node}\" is not allowed to modify taints"));
            }
            Ok(())
        }
        ("leases", _) => {
            if text(object, "/metadata/namespace") != LEASES {
                return refuse(format!("can only access leases in the \"{LEASES}\" system namespace"));
            }
            if name != node {
                return refuse("can only access node lease with the same name as the requesting node".into());
            }
            Ok(())
        }
        ("pods", Some("status")) if text(object, "/spec/nodeName") != node => refuse(format!(
            "node \"{node}\" can only update pod status for pods with spec.nodeName set to itself"
        )),
        ("pods", None) if action == Action::Delete => {
            if text(object, "/spec/nodeName") != node {
                return refuse(format!(
                    "node \"{node}\" can only delete pods with spec.nodeName set to itself"
                ));
            }
            if text(object, "/metadata/deletionTimestamp").is_empty() {
                return refuse(format!("node \"{node}\" can only delete pods that are being deleted"));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::NODES;
    use control_plane_api::kinds;
    use serde_json::json;

    fn board() -> User {
        User { name: "system:node:a".into(), groups: vec![NODES.into()], ..User::default() }
    }

    fn check(action: Action, resource: &str, old: Option<Value>, new: Option<Value>, refused: Option<&str>) {
        let (plural, subresource) = match resource.split_once('/') {
            Some((plural, subresource)) => (plural, Some(subresource)),
            None => (resource, None),
        };
        let kind = kinds::by_resource(plural).unwrap();
        let got = check_write(&board(), action, kind, subresource, old.as_ref(), new.as_ref());
        match (got, refused) {
            (Ok(()), None) => {}
            (Err(error), Some(words)) => {
                assert_eq!(error.code, 403);
                assert!(error.message.contains(words), "{}", error.message);
            }
            (got, refused) => panic!("{resource} {old:?} -> {new:?}: {got:?}, expected {refused:?}"),
        }
    }

    fn pod(node: &str, deleted: bool) -> Option<Value> {
        let mut pod = json!({"metadata": {"name": "p", "namespace": "default"}, "spec": {"nodeName": node}});
        if deleted {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Some(pod)
    }

    fn named(name: &str, namespace: &str) -> Option<Value> {
        Some(json!({"metadata": {"name": name, "namespace": namespace}}))
    }

    #[test]
    fn klet_08_a_board_writes_only_what_is_its_own() {
        use Action::*;
        check(Create, "nodes", None, named("a", ""), None);
        check(Create, "nodes", None, named("b", ""), Some("not allowed to modify node \"b\""));
        check(
            Patch,
            "nodes/status",
            named("b", ""),
            named("b", ""),
            Some("not allowed to modify node \"b\""),
        );
        check(Update, "leases", named("a", "kube-node-lease"), named("a", "kube-node-lease"), None);
        check(
            Update,
            "leases",
            named("b", "kube-node-lease"),
            named("b", "kube-node-lease"),
            Some("same name"),
        );
        check(Create, "leases", None, named("a", "default"), Some("system namespace"));
        check(Patch, "pods/status", pod("a", false), pod("a", false), None);
        let elsewhere = Some("can only update pod status for pods with spec.nodeName set to itself");
        check(Patch, "pods/status", pod("b", false), pod("b", false), elsewhere);
        check(Patch, "pods/status", pod("", false), pod("", false), elsewhere);
        check(Delete, "pods", pod("a", true), None, None);
        check(Delete, "pods", pod("a", false), None, Some("being deleted"));
        check(Delete, "pods", pod("b", true), None, Some("set to itself"));
    }

    #[test]
    fn a_board_does_not_lift_its_own_taints() {
        let tainted =
            json!({"metadata": {"name": "a"}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
        let clean = json!({"metadata": {"name": "a"}, "spec": {}});
        check(Action::Update, "nodes", Some(tainted.clone()), Some(clean), Some("taints"));
        check(Action::Update, "nodes", Some(tainted.clone()), Some(tainted), None);
    }

    #[test]
    fn others_are_not_restricted_here() {
        let kind = kinds::by_resource("pods").unwrap();
        let pod = json!({"spec": {"nodeName": "b"}});
        let master = User::master("root");
        assert_eq!(check_write(&master, Action::Delete, kind, None, Some(&pod), None), Ok(()));
        assert_eq!(check_pod_visible(&master, kind, &pod), Ok(()));
        assert_eq!(check_pod_visible(&board(), kind, &pod).unwrap_err().code, 403);
    }
}
