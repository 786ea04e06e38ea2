//! Roles as tables: what each identity may ask for, decided before an object is looked at (GHOST-05).
//!
//! The rules of the scheduler and the controller manager are those of Kubernetes' default roles, for the kinds served here.
//! What a board may do to a particular object is decided later, in `node`.

use control_plane_api::{ApiError, Kind};

use super::{AUTHENTICATED, MASTERS, User};

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

/// A request for a resource.
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

/// A request for anything else.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    /// The lower-case method.
    pub method: &'a str,
    /// The URL's path.
    pub path: &'a str,
}

struct Rule {
    verbs: &'static [&'static str],
    /// `GROUP/PLURAL` or `GROUP/PLURAL/SUBRESOURCE`; the core group is empty; `*` is any.
    resources: &'static [&'static str],
    /// Empty for any.
    names: &'static [&'static str],
    /// Only this namespace.
    namespace: Option<&'static str>,
}

const fn rule(verbs: &'static [&'static str], resources: &'static [&'static str]) -> Rule {
    Rule { verbs, resources, names: &[], namespace: None }
}

const READ: &[&str] = &["get", "list", "watch"];

const BASIC_USER: &[Rule] = &[rule(
    &["create"],
    &["authentication.k8s.io/selfsubjectreviews", "authorization.k8s.io/selfsubjectaccessreviews"],
)];

const SCHEDULER: &[Rule] = &[
    rule(&["create", "patch", "update"], &["/events", "events.k8s.io/events"]),
    rule(READ, &["/nodes", "/pods", "/services", "/namespaces", "apps/replicasets"]),
    rule(&["delete"], &["/pods"]),
    rule(&["create"], &["/bindings", "/pods/binding"]),
    rule(&["patch", "update"], &["/pods/status"]),
    rule(&["create"], &["coordination.k8s.io/leases"]),
    Rule {
        names: &["kube-scheduler"],
        ..rule(&["get", "list", "update", "watch"], &["coordination.k8s.io/leases"])
    },
    Rule {
        namespace: Some("kube-system"),
        ..rule(&["create", "get", "list", "update", "watch"], &["coordination.k8s.io/leases"])
    },
    Rule { namespace: Some("kube-system"), ..rule(&["watch"], &["/configmaps"]) },
];

const CONTROLLER_MANAGER: &[Rule] = &[
    rule(&["create", "patch", "update"], &["/events", "events.k8s.io/events"]),
    rule(&["list", "watch"], &["*"]),
    rule(&["get"], &["/configmaps", "/namespaces", "/secrets", "/serviceaccounts"]),
    rule(&["create", "update"], &["/secrets", "/serviceaccounts"]),
    rule(&["delete"], &["/secrets"]),
    rule(&["create"], &["coordination.k8s.io/leases"]),
    Rule { names: &["kube-controller-manager"], ..rule(&["get", "update"], &["coordination.k8s.io/leases"]) },
    Rule {
        namespace: Some("kube-system"),
        ..rule(&["create", "get", "list", "update", "watch"], &["coordination.k8s.io/leases"])
    },
];

/// What any board may ask for; which objects is decided by [`super::node`].
const NODE: &[Rule] = &[
    rule(READ, &["/nodes", "/pods", "/services", "/configmaps"]),
    rule(&["create", "update", "patch"], &["/nodes"]),
    rule(&["update", "patch"], &["/nodes/status", "/pods/status"]),
    rule(&["delete"], &["/pods"]),
    rule(&["create", "patch"], &["/events", "events.k8s.io/events"]),
    Rule {
        namespace: Some("kube-node-lease"),
        ..rule(&["create", "get", "update", "patch"], &["coordination.k8s.io/leases"])
    },
];

/// The rules that apply to users of a name, then those of a group.
const BY_NAME: &[(&str, &[Rule])] =
    &[("system:kube-scheduler", SCHEDULER), ("system:kube-controller-manager", CONTROLLER_MANAGER)];

/// Paths that anyone may read.
const PUBLIC: &[&str] = &["/healthz", "/livez", "/readyz", "/version"];
/// Paths that everyone authenticated may read, with all below them.
const DISCOVERY: &[&str] = &["/api", "/apis", "/openapi"];

fn allows(rule: &Rule, asked: &Asked<'_>) -> bool {
    let resource = match asked.subresource {
        Some(subresource) => format!("{}/{}/{subresource}", asked.kind.group, asked.kind.plural),
        None => format!("{}/{}", asked.kind.group, asked.kind.plural),
    };
    rule.verbs.contains(&asked.action.verb())
        && rule.resources.iter().any(|allowed| *allowed == "*" || *allowed == resource)
        && (rule.names.is_empty() || rule.names.contains(&asked.name))
        && rule.namespace.is_none_or(|namespace| asked.namespace == Some(namespace))
}

/// Whether `user` may ask for this.
///
/// # Errors
/// 403 in Kubernetes' words.
pub fn authorize(user: &User, asked: &Asked<'_>) -> Result<(), ApiError> {
    if user.is_in(MASTERS) {
        return Ok(());
    }
    let refusal = || {
        let Asked { action, kind, subresource, namespace, name, node_selected: _ } = *asked;
        ApiError::forbidden_verb(&user.name, action.verb(), kind, subresource, namespace, name)
    };
    let granted = |rules: &[Rule]| rules.iter().any(|rule| allows(rule, asked));
    if user.is_in(AUTHENTICATED) && granted(BASIC_USER) {
        return Ok(());
    }
    if BY_NAME.iter().any(|(name, rules)| *name == user.name && granted(rules)) {
        return Ok(());
    }
    if let Some(node) = user.node()
        && granted(NODE)
    {
        let many_pods = asked.kind.plural == "pods"
            && asked.subresource.is_none()
            && matches!(asked.action, Action::List | Action::Watch);
        if !many_pods || asked.node_selected == Some(node) {
            return Ok(());
        }
        let mut refusal = refusal();
        refusal.message.push_str(": can only list/watch pods with spec.nodeName field selector");
        return Err(refusal);
    }
    Err(refusal())
}

impl Path<'_> {
    /// Whether `user` may read this path.
    ///
    /// # Errors
    /// 403 in Kubernetes' words.
    pub fn authorize(&self, user: &User) -> Result<(), ApiError> {
        let below = |roots: &[&str]| {
            roots.iter().any(|root| {
                self.path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let public = PUBLIC.contains(&self.path.trim_end_matches('/'));
        let discovery = user.is_in(AUTHENTICATED) && below(DISCOVERY);
        if user.is_in(MASTERS) || (self.method == "get" && (public || discovery)) {
            return Ok(());
        }
        Err(ApiError::forbidden_path(&user.name, self.method, self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_plane_api::kinds;

    fn user(name: &str, groups: &[&str]) -> User {
        let groups = groups.iter().copied().chain([AUTHENTICATED]).map(Into::into).collect();
        User { name: name.into(), groups, ..User::default() }
    }

    fn asked(action: Action, resource: &'static str) -> Asked<'static> {
        let mut parts = resource.split('/');
        let (group, plural, subresource) = (parts.next().unwrap(), parts.next().unwrap(), parts.next());
        let kind = kinds::find(group, "v1", plural).unwrap();
        let namespace = kind.namespaced.then_some("default");
        Asked { action, kind, subresource, namespace, name: "", node_selected: None }
    }

    #[test]
    fn roles_grant_what_kubernetes_grants() {
        use Action::*;
        let scheduler = user("system:kube-scheduler", &[]);
        let manager = user("system:kube-controller-manager", &[]);
        let board = user("system:node:a", &["system:nodes"]);
        let impostor = user("system:node:a", &[]);
        let nobody = user("nobody", &[]);
        let check = |who: &User, action, resource, expected: bool| {
            let got = authorize(who, &asked(action, resource));
            assert_eq!(got.is_ok(), expected, "{} {action:?} {resource}", who.name);
        };
        check(&scheduler, Watch, "/pods", true);
        check(&scheduler, Create, "/pods/binding", true);
        check(&scheduler, Create, "/bindings", true);
        check(&scheduler, Create, "events.k8s.io/events", true);
        check(&scheduler, Create, "/pods", false);
        check(&scheduler, Update, "/nodes", false);
        check(&scheduler, Get, "/configmaps", false);
        check(&manager, List, "apps/deployments", true);
        check(&manager, Update, "apps/deployments", false);
        check(&board, Patch, "/pods/status", true);
        check(&board, Create, "/events", true);
        check(&board, Create, "/pods", false);
        check(&board, Patch, "/pods", false);
        check(&board, Get, "/secrets", false);
        check(&board, Create, "coordination.k8s.io/leases", false);
        check(&impostor, Patch, "/pods/status", false);
        check(&nobody, List, "/pods", false);
        check(&nobody, Create, "authentication.k8s.io/selfsubjectreviews", true);
        check(&User::anonymous(), Create, "authentication.k8s.io/selfsubjectreviews", false);
        check(&User::master("root"), DeleteCollection, "/secrets", true);
    }

    #[test]
    fn a_board_lists_only_the_pods_of_its_node() {
        let board = user("system:node:a", &["system:nodes"]);
        let mut pods = asked(Action::Watch, "/pods");
        assert!(authorize(&board, &pods).is_err());
        pods.node_selected = Some("b");
        assert!(authorize(&board, &pods).is_err());
        pods.node_selected = Some("a");
        assert_eq!(authorize(&board, &pods), Ok(()));
    }

    #[test]
    fn rules_for_named_objects_ask_for_the_name() {
        let scheduler = user("system:kube-scheduler", &[]);
        let mut lease = asked(Action::Update, "coordination.k8s.io/leases");
        assert!(authorize(&scheduler, &lease).is_err());
        lease.name = "kube-scheduler";
        assert_eq!(authorize(&scheduler, &lease), Ok(()));
    }

    #[test]
    fn a_refusal_names_user_verb_and_scope() {
        let nobody = user("nobody", &[]);
        let error = authorize(&nobody, &asked(Action::Create, "/pods")).unwrap_err();
        let expected = r#"pods is forbidden: User "nobody" cannot create resource "pods" in API group "" in the namespace "default""#;
        assert_eq!((error.code, error.message.as_str()), (403, expected));
    }

    #[test]
    fn health_is_public_and_discovery_is_for_the_authenticated() {
        let nobody = user("nobody", &[]);
        let check = |who: &User, method, path, expected: bool| {
            let got = Path { method, path }.authorize(who);
            assert_eq!(got.is_ok(), expected, "{} {method} {path}", who.name);
        };
        check(&User::anonymous(), "get", "/healthz", true);
        check(&User::anonymous(), "get", "/version/", true);
        check(&User::anonymous(), "get", "/healthz/ping", false);
        check(&User::anonymous(), "get", "/api", false);
        check(&User::anonymous(), "post", "/version", false);
        check(&nobody, "get", "/apis/apps/v1", true);
        check(&nobody, "get", "/openapi/v3", true);
        check(&nobody, "get", "/apisx", false);
        check(&nobody, "get", "/", false);
        check(&User::master("root"), "get", "/", true);
    }
}
