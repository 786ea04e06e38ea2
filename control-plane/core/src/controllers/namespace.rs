//! Namespaces that are being deleted: their contents go first, then the `kubernetes` finalizer, and with it they.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::conditions::{self, Saying};
use crate::decision::{Decision, Write};
use crate::json;
use crate::snapshot::{Key, Object, Snapshot};
use crate::time::Now;

const FINALIZER: &str = "kubernetes";

/// Looks at one namespace (a cluster-scoped key). While anything of it is left, that is deleted and the status says
/// what remains; when nothing is left the finalizer is removed through `finalize`, and the server removes the object.
///
/// Everything namespaced that can be created has to be in the snapshot, or it would be left behind.
#[must_use]
pub fn decide(snapshot: &Snapshot, namespace: &Key, now: &Now) -> Decision {
    let Some(object) = snapshot.at("namespaces", namespace) else {
        return Decision::nothing("the namespace is gone");
    };
    if !json::is_terminating(object) {
        return Decision::nothing("the namespace is not being deleted");
    }
    let finalizers = json::list(object, &["spec", "finalizers"]);
    if !finalizers.iter().any(|it| it.as_str() == Some(FINALIZER)) {
        return Decision::nothing("its end is for others to come");
    }
    let contents: Vec<(&'static str, &Key, &Object)> = snapshot
        .resources()
        .flat_map(|resource| {
            snapshot.list_in(resource, &namespace.name).map(move |(key, object)| (resource, key, object))
        })
        .collect();
    if contents.is_empty() {
        let kept: Vec<Value> =
            finalizers.iter().filter(|it| it.as_str() != Some(FINALIZER)).cloned().collect();
        let mut object = Value::clone(object);
        json::object_mut(&mut object, &["spec"]).insert("finalizers".to_owned(), kept.into());
        let write = Write::Update { resource: "namespaces", subresource: Some("finalize"), object };
        return Decision { writes: vec![write], ..Decision::nothing("nothing of it is left") };
    }
    let mut writes: Vec<Write> = contents
        .iter()
        .filter(|(_, _, object)| !json::is_terminating(object))
        .map(|(resource, key, object)| Write::Delete {
            resource,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: Some(json::uid(object).to_owned()),
            resource_version: None,
            grace_seconds: None,
        })
        .collect();
    let told = with_status(object, &contents, now);
    if told != **object {
        writes.push(Write::Update { resource: "namespaces", subresource: Some("status"), object: told });
    }
    Decision { writes, ..Decision::nothing("some of it is left") }
}

fn with_status(object: &Value, contents: &[(&'static str, &Key, &Object)], now: &Now) -> Value {
    let mut resources: BTreeMap<&str, usize> = BTreeMap::new();
    let mut finalizers: BTreeMap<&str, usize> = BTreeMap::new();
    for (resource, _, object) in contents {
        *resources.entry(resource).or_default() += 1;
        for finalizer in json::list(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str) {
            *finalizers.entry(finalizer).or_default() += 1;
        }
    }
    let counted = |counts: &BTreeMap<&str, usize>, what: &str| {
        counts
            .iter()
            .map(|(name, n)| format!("{name} {what} {n} resource instances"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let remaining = format!(
        "Some resources are remaining: {}",
        resources
            .iter()
            .map(|(name, n)| format!("{name}. has {n} resource instances"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    let waiting =
        format!("Some content in the namespace has finalizers remaining: {}", counted(&finalizers, "in"));
    let finalizing = if finalizers.is_empty() {
        ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished")
    } else {
        ("True", "SomeFinalizersRemain", waiting.as_str())
    };
    let mut told = object.clone();
    json::object_mut(&mut told, &["status"]).insert("phase".to_owned(), "Terminating".into());
    let deleted = "All content successfully deleted, may be waiting on finalization";
    for (kind, (status, reason, message)) in [
        (
            "NamespaceDeletionDiscoveryFailure",
            ("False", "ResourcesDiscovered", "All resources successfully discovered"),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            ("False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        ),
        ("NamespaceDeletionContentFailure", ("False", "ContentDeleted", deleted)),
        ("NamespaceContentRemaining", ("True", "SomeResourcesRemain", remaining.as_str())),
        ("NamespaceFinalizersRemaining", finalizing),
    ] {
        conditions::set(&mut told, Saying { kind, status, reason, message }, now);
    }
    told
}
