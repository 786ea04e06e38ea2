//! Every namespace has a service account `default`, without which no pod can be made in it (GHOST-04).

use serde_json::json;

use crate::decision::{Decision, Write};
use crate::json;
use crate::snapshot::{Key, Snapshot};

/// Looks at one namespace (a cluster-scoped key): makes its default service account, unless it is going.
#[must_use]
pub fn decide(snapshot: &Snapshot, namespace: &Key) -> Decision {
    let Some(object) = snapshot.at("namespaces", namespace) else {
        return Decision::nothing("the namespace is gone");
    };
    if json::is_terminating(object) {
        return Decision::nothing("the namespace is going");
    }
    if snapshot.get("serviceaccounts", &namespace.name, "default").is_some() {
        return Decision::nothing("it has one");
    }
    let object = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": namespace.name},
    });
    Decision {
        writes: vec![Write::Create { resource: "serviceaccounts", object }],
        ..Decision::nothing("the namespace has no default service account")
    }
}
