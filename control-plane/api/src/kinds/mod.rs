//! The table of kinds: a kind that is served is one row, and discovery, OpenAPI, tables and routes are read off it.
//!
//! Nothing outside this table lists kinds. `resource` names the storage (two rows may share one, as the two Event
//! groups do); `schema` names the definition in the embedded schema that decoding and patches follow.

mod rows;

pub use rows::ALL_VERBS;
use rows::KINDS;

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
    /// Whether objects count the changes of what they want in `metadata.generation`.
    pub generation: bool,
    /// Subresources in alphabetical order.
    pub subresources: &'static [Subresource],
    /// Verbs of the main resource; `create` alone marks a kind that is answered but never stored.
    pub verbs: &'static [&'static str],
    /// The storage's resource name; the same for rows that are views of one storage.
    pub resource: &'static str,
    /// Name of its definition in the embedded schema.
    pub schema: &'static str,
}

/// `nodes/NAME/token`, where a board that joins asks for a token of its own. It is this server's own, and no part of
/// discovery, which is Kubernetes'.
static NODE_TOKEN: Subresource = Subresource {
    name: "token",
    group: "authentication.k8s.io",
    version: "v1",
    kind: "TokenRequest",
    verbs: &["create"],
};

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
        let own = self.subresources.iter().find(|sub| sub.name == name);
        own.or_else(|| (self.resource == "nodes" && name == NODE_TOKEN.name).then_some(&NODE_TOKEN))
    }

    /// Whether the status is written through a subresource of its own, and ignored by writes to the main resource.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}

fn qualify(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

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
