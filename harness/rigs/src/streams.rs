//! What every rig watches, so that a history holds the same streams whatever it was recorded on.

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
