//! The table of kinds: a kind that is served is one row, and discovery, OpenAPI, tables and routes are read off it.
//!
//! Nothing outside this table lists kinds. `resource` names the storage (two rows may share one, as the two Event
//! groups do); `schema` names the definition in the embedded schema that decoding and patches follow.

/// The verbs of an ordinary stored kind, in the order in which discovery prints them.
pub const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const STATUS_VERBS: &[&str] = &["get", "patch", "update"];
const CREATE_ONLY: &[&str] = &["create"];

/// A subresource of a kind, such as `pods/binding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subresource {
    /// The path segment after the object's name.
    pub name: &'static str,
    /// The group of the object that the subresource speaks; empty for the core group.
    pub group: &'static str,
    /// The version of that object.
    pub version: &'static str,
    /// The kind of that object.
    pub kind: &'static str,
    /// The verbs allowed on it.
    pub verbs: &'static [&'static str],
}

/// One row of the table: a kind as it is served under one group and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version within the group.
    pub version: &'static str,
    /// Kind as written in `kind:`.
    pub kind: &'static str,
    /// Kind of a list of them; empty for kinds that are never listed.
    pub list_kind: &'static str,
    /// Resource name in URLs.
    pub plural: &'static str,
    /// Singular resource name.
    pub singular: &'static str,
    /// Abbreviations for kubectl.
    pub short_names: &'static [&'static str],
    /// Category names for kubectl, such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Subresources in alphabetical order.
    pub subresources: &'static [Subresource],
    /// Verbs of the main resource; `create` alone marks a kind that is answered but never stored.
    pub verbs: &'static [&'static str],
    /// The storage's resource name; the same for rows that are views of one storage.
    pub resource: &'static str,
    /// Name of its definition in the embedded schema.
    pub schema: &'static str,
}

impl Kind {
    /// `v1` or `apps/v1`, as written in `apiVersion:`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The resource with its group as error messages name it: `pods`, `deployments.apps`.
    pub fn qualified_resource(&self) -> String {
        qualify(self.plural, self.group)
    }

    /// The kind with its group as validation errors name it: `Pod`, `Deployment.apps`.
    pub fn qualified_kind(&self) -> String {
        qualify(self.kind, self.group)
    }

    /// Whether objects of this kind are kept in the store.
    pub fn is_stored(&self) -> bool {
        self.verbs.contains(&"get")
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether the status is written through a subresource of its own, and ignored by writes to the main resource.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}

fn qualify(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

const fn sub(
    name: &'static str,
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> Subresource {
    Subresource { name, group, version, kind, verbs }
}

/// A stored kind without subresources, short names or categories; rows override what differs.
const fn row(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    list_kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    schema: &'static str,
) -> Kind {
    Kind {
        group,
        version,
        kind,
        list_kind,
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced: true,
        subresources: &[],
        verbs: ALL_VERBS,
        resource: plural,
        schema,
    }
}

/// Every kind served, by group in the order in which `/apis` lists groups, then by resource name.
static KINDS: &[Kind] = &[
    Kind { verbs: CREATE_ONLY, ..row("", "v1", "Binding", "", "bindings", "binding", "core.v1.Binding") },
    Kind {
        short_names: &["cm"],
        ..row("", "v1", "ConfigMap", "ConfigMapList", "configmaps", "configmap", "core.v1.ConfigMap")
    },
    Kind { short_names: &["ev"], ..row("", "v1", "Event", "EventList", "events", "event", "core.v1.Event") },
    Kind {
        short_names: &["ns"],
        namespaced: false,
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        subresources: &[
            sub("finalize", "", "v1", "Namespace", &["update"]),
            sub("status", "", "v1", "Namespace", STATUS_VERBS),
        ],
        ..row("", "v1", "Namespace", "NamespaceList", "namespaces", "namespace", "core.v1.Namespace")
    },
    Kind {
        short_names: &["no"],
        namespaced: false,
        subresources: &[sub("status", "", "v1", "Node", STATUS_VERBS)],
        ..row("", "v1", "Node", "NodeList", "nodes", "node", "core.v1.Node")
    },
    Kind {
        short_names: &["po"],
        categories: &["all"],
        subresources: &[
            sub("binding", "", "v1", "Binding", CREATE_ONLY),
            sub("eviction", "policy", "v1", "Eviction", CREATE_ONLY),
            sub("log", "", "v1", "Pod", &["get"]),
            sub("status", "", "v1", "Pod", STATUS_VERBS),
        ],
        ..row("", "v1", "Pod", "PodList", "pods", "pod", "core.v1.Pod")
    },
    row("", "v1", "Secret", "SecretList", "secrets", "secret", "core.v1.Secret"),
    Kind {
        short_names: &["sa"],
        ..row(
            "",
            "v1",
            "ServiceAccount",
            "ServiceAccountList",
            "serviceaccounts",
            "serviceaccount",
            "core.v1.ServiceAccount",
        )
    },
    Kind {
        short_names: &["svc"],
        categories: &["all"],
        subresources: &[sub("status", "", "v1", "Service", STATUS_VERBS)],
        ..row("", "v1", "Service", "ServiceList", "services", "service", "core.v1.Service")
    },
    Kind {
        short_names: &["ds"],
        categories: &["all"],
        subresources: &[sub("status", "apps", "v1", "DaemonSet", STATUS_VERBS)],
        ..row("apps", "v1", "DaemonSet", "DaemonSetList", "daemonsets", "daemonset", "apps.v1.DaemonSet")
    },
    Kind {
        short_names: &["deploy"],
        categories: &["all"],
        subresources: &[
            sub("scale", "autoscaling", "v1", "Scale", STATUS_VERBS),
            sub("status", "apps", "v1", "Deployment", STATUS_VERBS),
        ],
        ..row("apps", "v1", "Deployment", "DeploymentList", "deployments", "deployment", "apps.v1.Deployment")
    },
    Kind {
        short_names: &["rs"],
        categories: &["all"],
        subresources: &[
            sub("scale", "autoscaling", "v1", "Scale", STATUS_VERBS),
            sub("status", "apps", "v1", "ReplicaSet", STATUS_VERBS),
        ],
        ..row("apps", "v1", "ReplicaSet", "ReplicaSetList", "replicasets", "replicaset", "apps.v1.ReplicaSet")
    },
    Kind {
        short_names: &["ev"],
        ..row("events.k8s.io", "v1", "Event", "EventList", "events", "event", "events.v1.Event")
    },
    Kind {
        namespaced: false,
        verbs: CREATE_ONLY,
        ..row(
            "authentication.k8s.io",
            "v1",
            "SelfSubjectReview",
            "",
            "selfsubjectreviews",
            "selfsubjectreview",
            "authentication.v1.SelfSubjectReview",
        )
    },
    Kind {
        namespaced: false,
        verbs: CREATE_ONLY,
        ..row(
            "authorization.k8s.io",
            "v1",
            "SelfSubjectAccessReview",
            "",
            "selfsubjectaccessreviews",
            "selfsubjectaccessreview",
            "authorization.v1.SelfSubjectAccessReview",
        )
    },
    Kind {
        categories: &["all"],
        subresources: &[sub("status", "batch", "v1", "Job", STATUS_VERBS)],
        ..row("batch", "v1", "Job", "JobList", "jobs", "job", "batch.v1.Job")
    },
    row("coordination.k8s.io", "v1", "Lease", "LeaseList", "leases", "lease", "coordination.v1.Lease"),
];

/// Every row, in discovery order.
pub fn all() -> &'static [Kind] {
    KINDS
}

/// The row served at `/api/VERSION/…/PLURAL` (empty group) or `/apis/GROUP/VERSION/…/PLURAL`.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
}

/// The row of an object's `apiVersion` and `kind`.
pub fn by_type(api_version: &str, kind: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|row| row.kind == kind && row.api_version() == api_version)
}

/// The first row over a storage: the form in which objects of that resource are kept.
pub fn by_resource(resource: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.resource == resource && kind.is_stored())
}

/// The group and version pairs served, in the order of `/apis`, each once; the core group comes first.
pub fn group_versions() -> Vec<(&'static str, &'static str)> {
    let mut pairs = Vec::new();
    for kind in KINDS {
        if !pairs.contains(&(kind.group, kind.version)) {
            pairs.push((kind.group, kind.version));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_unique_and_grouped() {
        let mut seen = Vec::new();
        for kind in all() {
            let key = (kind.group, kind.version, kind.plural);
            assert!(!seen.contains(&key), "{key:?} twice");
            seen.push(key);
            assert_eq!(find(kind.group, kind.version, kind.plural), Some(kind));
            assert_eq!(by_type(&kind.api_version(), kind.kind), Some(kind));
            assert!(kind.subresources.is_sorted_by_key(|sub| sub.name), "{}", kind.plural);
            assert!(kind.verbs.is_sorted(), "{}", kind.plural);
            assert_eq!(kind.list_kind.is_empty(), !kind.is_stored(), "{}", kind.plural);
        }
    }

    #[test]
    fn both_event_groups_share_one_storage() {
        assert_eq!(by_resource("events").map(|kind| kind.group), Some(""));
        assert_eq!(find("events.k8s.io", "v1", "events").map(|kind| kind.resource), Some("events"));
        assert!(by_resource("bindings").is_none());
    }

    #[test]
    fn names_carry_the_group() {
        let deployments = find("apps", "v1", "deployments").unwrap();
        assert_eq!(deployments.qualified_resource(), "deployments.apps");
        assert_eq!(deployments.qualified_kind(), "Deployment.apps");
        assert!(deployments.has_status());
        assert!(!by_resource("leases").unwrap().has_status());
    }
}
