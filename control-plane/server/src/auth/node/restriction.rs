//! What a board may make of an object: NodeRestriction, in Kubernetes' words.

use std::collections::BTreeSet;

use control_plane_api::{ApiError, Kind, strategy};
use serde_json::Value;

use super::LEASES;
use crate::auth::{Action, User};

/// Labels below these domains, and below domains that end in them, are a board's to set.
const OWN_DOMAINS: &[&str] = &["kubelet.kubernetes.io", "node.kubernetes.io"];
/// Labels of Kubernetes' domains that a board may set besides.
const OWN_LABELS: &[&str] = &[
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
const RESTRICTED: &str = "node-restriction.kubernetes.io";

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn is_at_or_below(domain: &str, above: &str) -> bool {
    domain.strip_suffix(above).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether a label is not a board's to change.
fn is_forbidden(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let reserved = is_at_or_below(domain, "kubernetes.io") || is_at_or_below(domain, "k8s.io");
    let own = OWN_LABELS.contains(&label) || OWN_DOMAINS.iter().any(|above| is_at_or_below(domain, above));
    is_at_or_below(domain, RESTRICTED) || (reserved && !own)
}

/// The forbidden labels that differ, in order.
fn forbidden_labels(old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
    let labels = |object: Option<&Value>| {
        object.and_then(|object| object["metadata"]["labels"].as_object()).cloned().unwrap_or_default()
    };
    let (old, new) = (labels(old), labels(new));
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    keys.into_iter().filter(|key| old.get(*key) != new.get(*key) && is_forbidden(key)).cloned().collect()
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
        // By way of the status too, whose metadata are stored.
        ("nodes", _) => {
            let taints = |object: Option<&Value>| {
                object
                    .and_then(|object| object.pointer("/spec/taints"))
                    .filter(|taints| !taints.is_null())
                    .cloned()
            };
            if old.is_some() && taints(old) != taints(new) {
                return refuse(format!("node \"{node}\" is not allowed to modify taints"));
            }
            // The garbage collector would delete the Node for a board that may not, and its taints and labels with it.
            let owners = |object: Option<&Value>| {
                object
                    .and_then(|object| object["metadata"]["ownerReferences"].as_array())
                    .cloned()
                    .unwrap_or_default()
            };
            if old.is_some() && owners(old) != owners(new) {
                return refuse(format!("node \"{node}\" is not allowed to modify ownerReferences"));
            }
            let labels = forbidden_labels(old, new).join(", ");
            match (labels.is_empty(), old) {
                (true, _) => Ok(()),
                (false, None) => {
                    refuse(format!("node \"{node}\" is not allowed to set the following labels: {labels}"))
                }
                (false, Some(_)) => refuse(format!("is not allowed to modify labels: {labels}")),
            }
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
        ("pods", None) if action == Action::Create => {
            if new.is_none_or(|new| !strategy::is_mirror(new)) {
                return refuse(format!(
                    "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"{node}\" can only create mirror pods"
                ));
            }
            if text(object, "/spec/nodeName") != node {
                return refuse(format!(
                    "node \"{node}\" can only create pods with spec.nodeName set to itself"
                ));
            }
            refuse(format!(
                "node \"{node}\" can not create mirror pods: boards run no pods but those bound to them"
            ))
        }
        ("pods", Some("status")) if text(object, "/spec/nodeName") != node => refuse(format!(
            "node \"{node}\" can only update pod status for pods with spec.nodeName set to itself"
        )),
        ("pods", Some("status")) => {
            let labels = |object: Option<&Value>| object.map(|object| object["metadata"]["labels"].clone());
            if old.is_some() && labels(old) != labels(new) {
                return refuse(format!("node \"{node}\" cannot update labels through pod status"));
            }
            Ok(())
        }
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
        check(Action::Update, "nodes", Some(tainted.clone()), Some(clean.clone()), Some("taints"));
        check(Action::Update, "nodes/status", Some(tainted.clone()), Some(clean), Some("taints"));
        check(Action::Update, "nodes", Some(tainted.clone()), Some(tainted), None);
    }

    #[test]
    fn a_board_gives_its_node_no_owner_to_be_collected_with() {
        let owned = json!({"metadata": {"name": "a", "ownerReferences": [{"kind": "Node", "name": "gone", "uid": "u"}]}});
        let refused = Some("node \"a\" is not allowed to modify ownerReferences");
        for resource in ["nodes", "nodes/status"] {
            check(Action::Patch, resource, named("a", ""), Some(owned.clone()), refused);
            check(Action::Patch, resource, Some(owned.clone()), named("a", ""), refused);
            check(Action::Patch, resource, Some(owned.clone()), Some(owned.clone()), None);
        }
    }

    #[test]
    fn a_board_makes_no_pods_and_sets_only_the_labels_of_boards() {
        let node =
            |label: &str, value: &str| Some(json!({"metadata": {"name": "a", "labels": {label: value}}}));
        let made = |label: &str, refused: Option<&str>| {
            check(Action::Create, "nodes", None, node(label, "x"), refused)
        };
        made("kubernetes.io/hostname", None);
        made("rigor.dev/board", None);
        made("x.node.kubernetes.io/y", None);
        made(
            "node-role.kubernetes.io/worker",
            Some("set the following labels: node-role.kubernetes.io/worker"),
        );
        made("node-restriction.kubernetes.io/x", Some("set the following labels"));
        made("x.k8s.io/y", Some("set the following labels"));
        made("notk8s.io/y", None);
        let label = "example.node-restriction.kubernetes.io/x";
        let changed = Some("is not allowed to modify labels: example.node-restriction.kubernetes.io/x");
        check(Action::Patch, "nodes", node(label, "1"), node(label, "2"), changed);
        check(Action::Patch, "nodes", node(label, "1"), named("a", ""), changed);
        check(Action::Patch, "nodes/status", node(label, "1"), node(label, "2"), changed);
        check(Action::Patch, "nodes", node(label, "1"), node(label, "1"), None);
        check(Action::Create, "pods", None, pod("a", false), Some("can only create mirror pods"));
        let mirror = |node: &str| {
            let mut pod = pod(node, false).unwrap();
            pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
            Some(pod)
        };
        let own = Some("can only create pods with spec.nodeName set to itself");
        check(Action::Create, "pods", None, mirror("b"), own);
        check(Action::Create, "pods", None, mirror("a"), Some("can not create mirror pods"));
        let mut relabelled = pod("a", false).unwrap();
        relabelled["metadata"]["labels"] = json!({"app": "other"});
        check(Action::Patch, "pods/status", pod("a", false), Some(relabelled), Some("cannot update labels"));
    }

    #[test]
    fn others_are_not_restricted_here() {
        let kind = kinds::by_resource("pods").unwrap();
        let pod = json!({"spec": {"nodeName": "b"}});
        let master = User::master("root");
        assert_eq!(check_write(&master, Action::Delete, kind, None, Some(&pod), None), Ok(()));
    }
}
