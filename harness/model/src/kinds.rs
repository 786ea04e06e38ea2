//! The kinds of objects that scenarios may name by kind alone, and where the API keeps them.
//!
//! Written from Kubernetes' documentation, not shared with the control plane under test. A scenario may
//! bring kinds of its own, for clusters that have more than these.

use std::sync::Mutex;

/// One kind.
#[derive(Debug, PartialEq, Eq)]
pub struct ObjectKind {
    /// `Pod`.
    pub kind: &'static str,
    /// `v1`, `apps/v1`.
    pub api_version: &'static str,
    /// `pods`: the name in paths.
    pub plural: &'static str,
    /// The name of the history's stream: the plural, and for a kind of the scenario's own with its group
    /// (`widgets.example.com`), because other groups may have the same plural.
    pub stream: &'static str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

const fn row(
    kind: &'static str,
    api_version: &'static str,
    plural: &'static str,
    namespaced: bool,
) -> ObjectKind {
    ObjectKind { kind, api_version, plural, stream: plural, namespaced }
}

/// Every known kind.
pub static KINDS: [ObjectKind; 15] = [
    row("Namespace", "v1", "namespaces", false),
    row("Node", "v1", "nodes", false),
    row("Pod", "v1", "pods", true),
    row("Lease", "coordination.k8s.io/v1", "leases", true),
    row("Event", "v1", "events", true),
    row("Service", "v1", "services", true),
    row("ServiceAccount", "v1", "serviceaccounts", true),
    row("ConfigMap", "v1", "configmaps", true),
    row("Secret", "v1", "secrets", true),
    row("Endpoints", "v1", "endpoints", true),
    row("Deployment", "apps/v1", "deployments", true),
    row("ReplicaSet", "apps/v1", "replicasets", true),
    row("DaemonSet", "apps/v1", "daemonsets", true),
    row("Job", "batch/v1", "jobs", true),
    row("EndpointSlice", "discovery.k8s.io/v1", "endpointslices", true),
];

/// The words of [`KINDS`], for shapes.
pub(crate) const KIND_NAMES: &[&str] = &{
    let mut names = [""; KINDS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = KINDS[index].kind;
        index += 1;
    }
    names
};

/// The kinds that scenarios brought along.
static OWN: Mutex<Vec<&'static ObjectKind>> = Mutex::new(Vec::new());

/// The namespace in which nodes' leases live.
pub const LEASE_NAMESPACE: &str = "kube-node-lease";

impl ObjectKind {
    /// The kind of that name.
    pub fn named(kind: &str) -> Option<&'static ObjectKind> {
        KINDS.iter().find(|row| row.kind == kind)
    }

    /// A kind that is in no table. Each is kept once, for as long as the program runs.
    pub fn own(kind: &str, api_version: &str, plural: &str, namespaced: bool) -> &'static ObjectKind {
        let mut known = OWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let same = |row: &&ObjectKind| {
            row.kind == kind
                && row.api_version == api_version
                && row.plural == plural
                && row.namespaced == namespaced
        };
        if let Some(row) = known.iter().copied().find(same) {
            return row;
        }
        let kept = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let stream = match api_version.split_once('/') {
            Some((group, _)) => format!("{plural}.{group}"),
            None => plural.to_owned(),
        };
        let row = ObjectKind {
            kind: kept(kind),
            api_version: kept(api_version),
            plural: kept(plural),
            stream: kept(&stream),
            namespaced,
        };
        let row: &'static ObjectKind = Box::leak(Box::new(row));
        known.push(row);
        row
    }

    /// Whether every rig watches it anyway.
    pub fn is_known(&self) -> bool {
        KINDS.iter().any(|row| row.stream == self.stream)
    }

    /// The kind whose plural is that.
    pub fn of_stream(plural: &str) -> Option<&'static ObjectKind> {
        KINDS.iter().find(|row| row.plural == plural)
    }

    /// The path of the collection: `/api/v1/namespaces/NS/pods`; without a namespace, that of all namespaces.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        match namespace {
            Some(namespace) if self.namespaced => {
                format!("{root}/{}/namespaces/{namespace}/{}", self.api_version, self.plural)
            }
            Some(_) | None => format!("{root}/{}/{}", self.api_version, self.plural),
        }
    }

    /// The path of one object: `/api/v1/namespaces/NS/pods/NAME`.
    pub fn object_path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection_path(Some(namespace)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api() {
        let path =
            |kind, namespace, name| ObjectKind::named(kind).expect("known").object_path(namespace, name);
        assert_eq!(path("Node", "x", "a"), "/api/v1/nodes/a");
        assert_eq!(path("Pod", "x", "p"), "/api/v1/namespaces/x/pods/p");
        assert_eq!(
            path("Lease", LEASE_NAMESPACE, "a"),
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a"
        );
        let own = ObjectKind::own("Widget", "example.com/v1", "widgets", true);
        assert_eq!(own.object_path("x", "w"), "/apis/example.com/v1/namespaces/x/widgets/w");
        assert_eq!((own.stream, own.is_known()), ("widgets.example.com", false));
        assert!(std::ptr::eq(own, ObjectKind::own("Widget", "example.com/v1", "widgets", true)));
        let jobs = ObjectKind::of_stream("jobs").expect("known");
        assert_eq!(jobs.collection_path(None), "/apis/batch/v1/jobs");
    }
}
