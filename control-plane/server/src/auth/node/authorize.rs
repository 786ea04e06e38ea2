//! Which requests of a board are let through to the object, by what it asks for and by the pods bound to it.
//!
//! Looks at the pods of that one node only.

use control_plane_core::Snapshot;

use super::LEASES;
use super::references::{Named, names};
use crate::auth::rbac::Rule;
use crate::auth::{Attributes, Decision};

fn yes() -> Decision {
    Decision::Allowed(String::new())
}

fn no(why: impl Into<String>) -> Decision {
    Decision::Refused(why.into())
}

/// Whether the board of this node may do this. `rules` say what every board may, apart from what is divided between them.
pub fn decide(node: &str, asked: &Attributes<'_>, rules: &[Rule], snapshot: &Snapshot) -> Decision {
    match (asked.group, asked.resource) {
        ("", "secrets") => read_named(node, asked, Named::Secret, snapshot),
        ("", "configmaps") => read_named(node, asked, Named::ConfigMap, snapshot),
        ("", "serviceaccounts") => create_token(node, asked, snapshot),
        ("", "nodes") => own_node(node, asked),
        ("", "pods") => own_pods(node, asked, snapshot),
        ("coordination.k8s.io", "leases") => own_lease(node, asked),
        ("storage.k8s.io", "csinodes") => own_storage(node, asked),
        // Boards have no volumes that outlive a pod, so none of these is ever a board's.
        ("", "persistentvolumeclaims" | "persistentvolumes") | ("storage.k8s.io", "volumeattachments") => {
            if asked.verb == "get" && asked.subresource.is_empty() {
                unrelated(node)
            } else {
                no("can only get individual resources of this type")
            }
        }
        _ if rules.iter().any(|rule| rule.allows(asked)) => yes(),
        _ => no(""),
    }
}

fn unrelated(node: &str) -> Decision {
    no(format!("no relationship found between node '{node}' and this object"))
}

/// Whether a pod on the node names the object.
fn related(node: &str, asked: &Attributes<'_>, what: Named, snapshot: &Snapshot) -> Decision {
    let mut pods = snapshot.pods_on(node);
    if pods.any(|(key, pod)| key.namespace == asked.namespace && names(pod, what, asked.name)) {
        yes()
    } else {
        unrelated(node)
    }
}

fn read_named(node: &str, asked: &Attributes<'_>, what: Named, snapshot: &Snapshot) -> Decision {
    if !["get", "list", "watch"].contains(&asked.verb) {
        return no("can only read resources of this type");
    }
    if !asked.subresource.is_empty() {
        return no("cannot read subresource");
    }
    if asked.namespace.is_empty() {
        return no("can only read namespaced object of this type");
    }
    if asked.name.is_empty() {
        return no("No Object name found");
    }
    related(node, asked, what, snapshot)
}

/// A service account of the board's pods: it may be read, and tokens for it be asked for.
fn create_token(node: &str, asked: &Attributes<'_>, snapshot: &Snapshot) -> Decision {
    if asked.verb == "get" && asked.subresource.is_empty() {
        return related(node, asked, Named::ServiceAccount, snapshot);
    }
    if asked.verb != "create" || asked.name.is_empty() {
        return no("can only create tokens for individual service accounts");
    }
    if asked.subresource != "token" {
        return no("can only create token subresource of serviceaccount");
    }
    related(node, asked, Named::ServiceAccount, snapshot)
}

fn own_node(node: &str, asked: &Attributes<'_>) -> Decision {
    match (asked.subresource, asked.verb) {
        // Whose Node it is, NodeRestriction tells.
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => yes(),
        ("", "get" | "list" | "watch") => match asked.name {
            "" => no(format!("node '{node}' cannot read all nodes, only its own Node object")),
            name if name == node => yes(),
            name => no(format!("node '{node}' cannot read '{name}', only its own Node object")),
        },
        _ => no(""),
    }
}

fn own_pods(node: &str, asked: &Attributes<'_>, snapshot: &Snapshot) -> Decision {
    let here = || {
        let found = snapshot.get("pods", asked.namespace, asked.name);
        found.map(|pod| pod["spec"]["nodeName"].as_str() == Some(node))
    };
    match (asked.subresource, asked.verb) {
        // A pod that is gone is told as such: the board has to drop its copy either way.
        ("", "get") => {
            if here().unwrap_or(true) {
                yes()
            } else {
                unrelated(node)
            }
        }
        ("", "list" | "watch") if asked.node_selected == node => yes(),
        ("", "list" | "watch") if !asked.name.is_empty() && here() == Some(true) => yes(),
        ("", "list" | "watch") => no("can only list/watch pods with spec.nodeName field selector"),
        // Whose pod it is, NodeRestriction tells.
        ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => yes(),
        _ => no(""),
    }
}

fn own_lease(node: &str, asked: &Attributes<'_>) -> Decision {
    if !["get", "create", "update", "patch", "delete"].contains(&asked.verb) {
        return no("can only get, create, update, patch, or delete a node lease");
    }
    if asked.namespace != LEASES {
        return no(format!("can only access leases in the \"{LEASES}\" system namespace"));
    }
    if asked.verb != "create" && asked.name != node {
        return no("can only access node lease with the same name as the requesting node");
    }
    yes()
}

fn own_storage(node: &str, asked: &Attributes<'_>) -> Decision {
    if asked.verb != "get" || asked.name != node {
        return no("can only access CSINode with the same name as the requesting node");
    }
    yes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::rbac::node_rules;
    use control_plane_core::Key;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn pod(name: &str, node: &str) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {
                "nodeName": node,
                "serviceAccountName": format!("of-{node}"),
                "volumes": [{"secret": {"secretName": format!("of-{node}")}}],
                "containers": [{"envFrom": [{"configMapRef": {"name": format!("of-{node}")}}]}],
            },
        })
    }

    #[test]
    fn klet_08_a_board_is_let_through_to_what_is_its_own() {
        let mut snapshot = Snapshot::default();
        for pod in [pod("p", "a"), pod("q", "b")] {
            snapshot.apply("pods", Key::of(&pod), Some(Arc::new(pod)));
        }
        let rules = node_rules();
        let check = |verb: &str, place: &str, expected: Result<(), &str>| {
            let parts: Vec<&str> = place.split(' ').collect();
            let (group, resource) = parts[0].split_once(':').unwrap_or(("", parts[0]));
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let (namespace, name) = (parts[1].trim_matches('-'), parts[2].trim_matches('-'));
            let node_selected = parts.get(3).copied().unwrap_or_default();
            let asked = Attributes { verb, group, resource, subresource, namespace, name, node_selected };
            let got = decide("a", &asked, rules, &snapshot);
            match (got, expected) {
                (Decision::Allowed(_), Ok(())) => {}
                (Decision::Refused(why), Err(words)) => assert!(why.contains(words), "{asked:?}: {why}"),
                (got, expected) => panic!("{asked:?}: {got:?}, expected {expected:?}"),
            }
        };
        let unrelated = Err("no relationship found between node 'a' and this object");
        check("get", "secrets ns of-a", Ok(()));
        check("watch", "secrets ns of-a", Ok(()));
        check("get", "secrets ns of-b", unrelated);
        check("get", "secrets other of-a", unrelated);
        check("get", "secrets ns absent", unrelated);
        check("list", "secrets ns -", Err("No Object name found"));
        check("list", "secrets - -", Err("can only read namespaced object of this type"));
        check("delete", "secrets ns of-a", Err("can only read resources of this type"));
        check("get", "configmaps ns of-a", Ok(()));
        check("get", "configmaps ns of-b", unrelated);
        check("update", "configmaps ns of-a", Err("can only read"));
        check("create", "serviceaccounts/token ns of-a", Ok(()));
        check("create", "serviceaccounts/token ns of-b", unrelated);
        check("create", "serviceaccounts ns -", Err("individual service accounts"));
        check("get", "serviceaccounts ns of-a", Ok(()));
        check("get", "serviceaccounts ns of-b", unrelated);
        check("get", "nodes - a", Ok(()));
        check("get", "nodes - b", Err("cannot read 'b', only its own Node object"));
        check("list", "nodes - -", Err("cannot read all nodes"));
        check("list", "nodes - a", Ok(()));
        check("create", "nodes - -", Ok(()));
        check("delete", "nodes - a", Err(""));
        check("create", "nodes/token - a", Err(""));
        check("patch", "nodes/status - b", Ok(()));
        check("get", "pods ns p", Ok(()));
        check("get", "pods ns q", unrelated);
        check("get", "pods ns gone", Ok(()));
        check("list", "pods - - a", Ok(()));
        check("list", "pods - - b", Err("spec.nodeName"));
        check("list", "pods - -", Err("spec.nodeName"));
        check("watch", "pods ns p", Ok(()));
        check("watch", "pods ns q", Err("spec.nodeName"));
        check("patch", "pods/status ns p", Ok(()));
        check("patch", "pods ns p", Err(""));
        check("create", "pods/binding ns p", Err(""));
        let leases = "coordination.k8s.io:leases";
        check("update", &format!("{leases} kube-node-lease a"), Ok(()));
        check("update", &format!("{leases} kube-node-lease b"), Err("same name"));
        check("create", &format!("{leases} kube-node-lease -"), Ok(()));
        check("create", &format!("{leases} kube-system -"), Err("system namespace"));
        check("list", &format!("{leases} kube-node-lease -"), Err("can only get, create"));
        check("get", "storage.k8s.io:csinodes - b", Err("same name"));
        check("get", "persistentvolumes - x", unrelated);
        check("list", "persistentvolumes - -", Err("individual resources"));
        check("create", "events ns -", Ok(()));
        check("create", "events.k8s.io:events ns -", Err(""));
        check("list", "services - -", Ok(()));
        check("create", "apps:deployments ns -", Err(""));
        check("get", "rbac.authorization.k8s.io:clusterroles - x", Err(""));
    }
}
