//! What is asked, in the terms in which rules speak of it.

use control_plane_api::{ApiError, Kind};

use super::User;

/// Kubernetes' name of what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read one object.
    Get,
    /// Read many.
    List,
    /// Follow changes.
    Watch,
    /// Make an object.
    Create,
    /// Replace one.
    Update,
    /// Change a part of one.
    Patch,
    /// Remove one.
    Delete,
    /// Remove many.
    DeleteCollection,
}

impl Action {
    /// The verb in rules and messages.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// A request for a resource that is served.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// What is asked.
    pub action: Action,
    /// Of which kind.
    pub kind: &'static Kind,
    /// Of which of its subresources.
    pub subresource: Option<&'a str>,
    /// In which namespace; absent for cluster-scoped kinds and for all namespaces.
    pub namespace: Option<&'a str>,
    /// Which object; may come from a `metadata.name` field selector. Empty when none is named.
    pub name: &'a str,
    /// The node that a `spec.nodeName` field selector asks for.
    pub node_selected: Option<&'a str>,
}

/// A question about any resource, served or not. What is not said is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// The verb, of which there may be more than those of requests.
    pub verb: &'a str,
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural name.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: &'a str,
    /// The namespace; empty for all of them and for cluster-scoped kinds.
    pub namespace: &'a str,
    /// The object.
    pub name: &'a str,
    /// The node that a `spec.nodeName` field selector asks for; empty for none.
    pub node_selected: &'a str,
}

/// What the authorisers say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes, for this reason, which may be empty.
    Allowed(String),
    /// Nobody said yes; what there is to say about it, which may be nothing.
    Refused(String),
}

impl Decision {
    /// Whether it is a yes.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }
}

impl<'a> Asked<'a> {
    /// The same in the terms of rules. A namespace is asked for in itself, as in Kubernetes.
    pub fn attributes(&self) -> Attributes<'a> {
        let own = self.kind.group.is_empty() && self.kind.plural == "namespaces";
        Attributes {
            verb: self.action.verb(),
            group: self.kind.group,
            resource: self.kind.plural,
            subresource: self.subresource.unwrap_or_default(),
            namespace: if own { self.name } else { self.namespace.unwrap_or_default() },
            name: self.name,
            node_selected: self.node_selected.unwrap_or_default(),
        }
    }

    /// 403 in Kubernetes' words, with the reason where there is one.
    pub fn refusal(&self, user: &User, reason: &str) -> ApiError {
        let Self { action, kind, subresource, name, .. } = *self;
        let namespace = Some(self.attributes().namespace).filter(|namespace| !namespace.is_empty());
        let mut refusal =
            ApiError::forbidden_verb(&user.name, action.verb(), kind, subresource, namespace, name);
        if !reason.is_empty() {
            refusal.message = format!("{}: {reason}", refusal.message);
        }
        refusal
    }
}
