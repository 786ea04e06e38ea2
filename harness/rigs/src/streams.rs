//! What every rig watches, so that a history holds the same streams whatever it was recorded on.

use rigor_model::kinds::{LEASE_NAMESPACE, ObjectKind};

/// What is watched: the stream's name and where its collection is. One that is not served is left out.
pub const STREAMS: [(&str, &str); 15] = [
    ("configmaps", "/api/v1/configmaps"),
    ("daemonsets", "/apis/apps/v1/daemonsets"),
    ("deployments", "/apis/apps/v1/deployments"),
    ("endpoints", "/api/v1/endpoints"),
    ("endpointslices", "/apis/discovery.k8s.io/v1/endpointslices"),
    ("events", "/api/v1/events"),
    ("jobs", "/apis/batch/v1/jobs"),
    ("leases", "/apis/coordination.k8s.io/v1/leases"),
    ("namespaces", "/api/v1/namespaces"),
    ("nodes", "/api/v1/nodes"),
    ("pods", "/api/v1/pods"),
    ("replicasets", "/apis/apps/v1/replicasets"),
    ("secrets", "/api/v1/secrets"),
    ("serviceaccounts", "/api/v1/serviceaccounts"),
    ("services", "/api/v1/services"),
];

/// A stream of a history: lists and watches that together show all of one resource that is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Feed {
    /// The stream's name.
    pub(crate) stream: String,
    /// The collections, with a query where only a part is looked at.
    pub(crate) paths: Vec<String>,
}

/// Everything, in all namespaces.
pub(crate) fn everywhere() -> Vec<Feed> {
    STREAMS.iter().map(|(stream, path)| feed(stream, &[(*path).to_owned()])).collect()
}

/// What a trial on somebody else's cluster has to see: its own namespace, and of what lives outside of namespaces
/// only what the recorder then keeps of it (`nodes` and their leases). Events of nodes are in `default`.
pub(crate) fn of_trial(namespace: &str) -> Vec<Feed> {
    STREAMS
        .iter()
        .map(|(stream, path)| match *stream {
            "nodes" => feed(stream, &[(*path).to_owned()]),
            "namespaces" => feed(stream, &[format!("{path}?fieldSelector=metadata.name={namespace}")]),
            "leases" => feed(stream, &[within(path, LEASE_NAMESPACE), within(path, namespace)]),
            "events" => feed(
                stream,
                &[
                    within(path, namespace),
                    format!("{}?fieldSelector=involvedObject.kind=Node", within(path, "default")),
                ],
            ),
            _ => feed(stream, &[within(path, namespace)]),
        })
        .collect()
}

/// A kind of a scenario's own, in one namespace or in all.
pub(crate) fn of_kind(kind: &ObjectKind, namespace: Option<&str>) -> Feed {
    feed(kind.stream, &[kind.collection_path(namespace)])
}

fn feed(stream: &str, paths: &[String]) -> Feed {
    Feed { stream: stream.to_owned(), paths: paths.to_vec() }
}

/// A collection's path within a namespace: `/api/v1/pods` becomes `/api/v1/namespaces/NS/pods`.
fn within(path: &str, namespace: &str) -> String {
    let (root, plural) = path.rsplit_once('/').unwrap_or(("", path));
    format!("{root}/namespaces/{namespace}/{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_looks_at_its_own_namespace_and_at_nodes() {
        let feeds = of_trial("rigor-1");
        assert_eq!(feeds.len(), STREAMS.len());
        let paths = |stream: &str| feeds.iter().find(|feed| feed.stream == stream).unwrap().paths.join(" ");
        assert_eq!(paths("jobs"), "/apis/batch/v1/namespaces/rigor-1/jobs");
        assert_eq!(paths("secrets"), "/api/v1/namespaces/rigor-1/secrets");
        assert_eq!(paths("namespaces"), "/api/v1/namespaces?fieldSelector=metadata.name=rigor-1");
        assert_eq!(paths("nodes"), "/api/v1/nodes");
        assert_eq!(
            paths("leases"),
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases /apis/coordination.k8s.io/v1/namespaces/rigor-1/leases"
        );
        assert_eq!(
            paths("events"),
            "/api/v1/namespaces/rigor-1/events /api/v1/namespaces/default/events?fieldSelector=involvedObject.kind=Node"
        );
    }
}
