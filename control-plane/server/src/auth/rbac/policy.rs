//! All roles and bindings as one policy: who holds which rules, indexed by the names that bindings give.

use std::collections::BTreeMap;
use std::sync::Arc;

use control_plane_core::selectors::LabelSelector;
use control_plane_core::{Object, Snapshot};
use serde_json::Value;

use super::{GROUP, Rule};
use crate::auth::{Attributes, Decision, User};

/// Where a binding's rules come from: them, or why there are none.
type Rules = Result<Arc<Vec<Rule>>, String>;

/// A binding, as far as one of its subjects is concerned.
#[derive(Clone, Debug)]
struct Granted {
    /// Empty for cluster bindings.
    namespace: String,
    rules: Rules,
    /// `ClusterRoleBinding "x" of ClusterRole "y" to Group "z"`
    by: String,
}

/// Who holds which rules.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    users: BTreeMap<String, Vec<Granted>>,
    groups: BTreeMap<String, Vec<Granted>>,
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object[field].as_array().map_or(&[], Vec::as_slice)
}

/// The rules of the roles of a snapshot, each read once.
#[derive(Default)]
struct Roles(BTreeMap<(String, String), Rules>);

impl Roles {
    fn rules(&mut self, snapshot: &Snapshot, kind: &str, namespace: &str, name: &str) -> Rules {
        let (resource, shown, namespace) = match kind {
            "Role" => ("roles", "role", namespace),
            _ => ("clusterroles", "clusterrole", ""),
        };
        let key = (namespace.to_owned(), format!("{resource}/{name}"));
        if let Some(known) = self.0.get(&key) {
            return known.clone();
        }
        let found = match snapshot.get(resource, namespace, name) {
            Some(role) => Ok(Arc::new(Policy::rules_of(snapshot, role))),
            None => Err(format!("{shown}.{GROUP} \"{name}\" not found")),
        };
        self.0.insert(key, found.clone());
        found
    }
}

impl Policy {
    /// A role's own rules, and those of all that it aggregates.
    pub fn rules_of(snapshot: &Snapshot, role: &Object) -> Vec<Rule> {
        let mut rules = Vec::new();
        let mut open = vec![Arc::clone(role)];
        let mut seen: Vec<Object> = Vec::new();
        while let Some(role) = open.pop() {
            if seen.iter().any(|other| Arc::ptr_eq(other, &role)) {
                continue;
            }
            for rule in Rule::all_of(&role) {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
            for selector in list(&role["aggregationRule"], "clusterRoleSelectors") {
                let Ok(selector) = LabelSelector::from_object(selector) else { continue };
                let selected = snapshot.list("clusterroles").map(|(_, role)| role);
                open.extend(selected.filter(|role| selector.matches_object(role)).cloned());
            }
            seen.push(role);
        }
        rules
    }

    /// Reads all roles and bindings.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut policy = Self::default();
        let mut roles = Roles::default();
        for (key, binding) in snapshot.list("clusterrolebindings") {
            let (kind, role) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
            let rules = roles.rules(snapshot, kind, "", role);
            let described = format!("ClusterRoleBinding \"{}\" of {kind} \"{role}\"", key.name);
            policy.bind(binding, "", &rules, &described);
        }
        for (key, binding) in snapshot.list("rolebindings") {
            let (kind, role) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
            let rules = roles.rules(snapshot, kind, &key.namespace, role);
            let described = format!("RoleBinding \"{}/{}\" of {kind} \"{role}\"", key.name, key.namespace);
            policy.bind(binding, &key.namespace, &rules, &described);
        }
        policy
    }

    fn bind(&mut self, binding: &Value, namespace: &str, rules: &Rules, described: &str) {
        for subject in list(binding, "subjects") {
            let (kind, name) = (text(subject, "/kind"), text(subject, "/name"));
            let granted = |shown: String| Granted {
                namespace: namespace.to_owned(),
                rules: rules.clone(),
                by: format!("{described} to {shown}"),
            };
            match kind {
                "User" => {
                    self.users.entry(name.into()).or_default().push(granted(format!("User \"{name}\"")));
                }
                "Group" => {
                    self.groups.entry(name.into()).or_default().push(granted(format!("Group \"{name}\"")));
                }
                "ServiceAccount" => {
                    let stated = text(subject, "/namespace");
                    let of = if stated.is_empty() { namespace } else { stated };
                    let user = format!("system:serviceaccount:{of}:{name}");
                    let shown = format!("ServiceAccount \"{name}/{of}\"");
                    self.users.entry(user).or_default().push(granted(shown));
                }
                _ => {}
            }
        }
    }

    /// The bindings that concern a user, those of the cluster first, and those of one namespace.
    fn granted<'a>(&'a self, user: &'a User, namespace: &'a str) -> impl Iterator<Item = &'a Granted> {
        let everything = move || {
            let own = self.users.get(&user.name).into_iter().flatten();
            own.chain(user.groups.iter().filter_map(|group| self.groups.get(group)).flatten())
        };
        let cluster = everything().filter(|granted| granted.namespace.is_empty());
        cluster.chain(
            everything()
                .filter(move |granted| !granted.namespace.is_empty() && granted.namespace == namespace),
        )
    }

    fn search(&self, user: &User, namespace: &str, allows: impl Fn(&Rule) -> bool) -> Decision {
        let mut problems: Vec<&str> = Vec::new();
        for granted in self.granted(user, namespace) {
            match &granted.rules {
                Ok(rules) if rules.iter().any(&allows) => {
                    return Decision::Allowed(format!("RBAC: allowed by {}", granted.by));
                }
                Ok(_) => {}
                Err(problem) if problems.contains(&problem.as_str()) => {}
                Err(problem) => problems.push(problem),
            }
        }
        Decision::Refused(match problems.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            many => format!("RBAC: [{}]", many.join(", ")),
        })
    }

    /// Whether a user may do this.
    pub fn decide(&self, user: &User, asked: &Attributes<'_>) -> Decision {
        self.search(user, asked.namespace, |rule| rule.allows(asked))
    }

    /// Whether a user may do this (a lower-case method) with a path.
    pub fn decide_path(&self, user: &User, verb: &str, path: &str) -> Decision {
        self.search(user, "", |rule| rule.allows_path(verb, path))
    }

    /// All rules that a user holds in a namespace (in none, for an empty one), and which roles are missing.
    pub fn rules_for<'a>(&'a self, user: &'a User, namespace: &'a str) -> (Vec<&'a Rule>, Vec<&'a str>) {
        let (mut rules, mut problems) = (Vec::new(), Vec::new());
        for granted in self.granted(user, namespace) {
            match &granted.rules {
                Ok(held) => rules.extend(held.iter()),
                Err(problem) => problems.push(problem.as_str()),
            }
        }
        (rules, problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_plane_core::Key;
    use serde_json::json;

    fn snapshot(objects: &[(&'static str, Value)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (resource, object) in objects {
            snapshot.apply(resource, Key::of(object), Some(Arc::new(object.clone())));
        }
        snapshot
    }

    fn role(name: &str, namespace: &str, verb: &str, resource: &str) -> Value {
        let rule = json!({"verbs": [verb], "apiGroups": [""], "resources": [resource]});
        json!({"metadata": {"name": name, "namespace": namespace}, "rules": [rule]})
    }

    fn binding(name: &str, namespace: &str, role: (&str, &str), subject: Value) -> Value {
        json!({
            "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"apiGroup": GROUP, "kind": role.0, "name": role.1},
            "subjects": [subject],
        })
    }

    fn ask(policy: &Policy, user: &User, verb: &str, resource: &str, namespace: &str) -> Decision {
        policy.decide(user, &Attributes { verb, resource, namespace, ..Attributes::default() })
    }

    #[test]
    fn bindings_give_rules_to_users_groups_and_service_accounts_where_they_are() {
        let account = json!({"kind": "ServiceAccount", "name": "robot", "namespace": "two"});
        let policy = Policy::of(&snapshot(&[
            ("clusterroles", role("read", "", "get", "pods")),
            ("roles", role("write", "one", "create", "pods")),
            ("roles", role("write", "two", "create", "secrets")),
            (
                "clusterrolebindings",
                binding("all", "", ("ClusterRole", "read"), json!({"kind": "Group", "name": "team"})),
            ),
            (
                "rolebindings",
                binding("w", "one", ("Role", "write"), json!({"kind": "User", "name": "alice"})),
            ),
            ("rolebindings", binding("r", "one", ("ClusterRole", "read"), account)),
        ]));
        let alice = User::known("alice".into(), vec!["team".into()]);
        let bob = User::known("bob".into(), Vec::new());
        let robot = User::known("system:serviceaccount:two:robot".into(), Vec::new());
        let group = User::known("alice2".into(), vec!["alice".into()]);
        let check = |user: &User, verb: &str, resource: &str, namespace: &str, expected: bool| {
            let got = ask(&policy, user, verb, resource, namespace);
            assert_eq!(got.is_allowed(), expected, "{} {verb} {resource} {namespace}: {got:?}", user.name);
        };
        check(&alice, "get", "pods", "", true);
        check(&alice, "get", "pods", "two", true);
        check(&alice, "create", "pods", "one", true);
        check(&alice, "create", "pods", "two", false);
        check(&alice, "create", "pods", "", false);
        check(&alice, "create", "secrets", "two", false);
        check(&bob, "get", "pods", "one", false);
        check(&robot, "get", "pods", "one", true);
        check(&robot, "get", "pods", "two", false);
        check(&group, "create", "pods", "one", false);
        let why = ask(&policy, &robot, "get", "pods", "one");
        let words =
            r#"RBAC: allowed by RoleBinding "r/one" of ClusterRole "read" to ServiceAccount "robot/two""#;
        assert_eq!(why, Decision::Allowed(words.into()));
        let why = ask(&policy, &alice, "get", "pods", "one");
        let words = r#"RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "read" to Group "team""#;
        assert_eq!(why, Decision::Allowed(words.into()));
    }

    #[test]
    fn a_role_that_is_missing_is_named() {
        let subject = || json!({"kind": "User", "name": "alice"});
        let policy = Policy::of(&snapshot(&[
            ("rolebindings", binding("w", "one", ("Role", "gone"), subject())),
            ("clusterrolebindings", binding("w", "", ("ClusterRole", "lost"), subject())),
        ]));
        let alice = User::known("alice".into(), Vec::new());
        let said = |namespace: &str| ask(&policy, &alice, "get", "pods", namespace);
        let lost = "clusterrole.rbac.authorization.k8s.io \"lost\" not found";
        assert_eq!(said("two"), Decision::Refused(format!("RBAC: {lost}")));
        let both = format!("RBAC: [{lost}, role.rbac.authorization.k8s.io \"gone\" not found]");
        assert_eq!(said("one"), Decision::Refused(both));
    }

    #[test]
    fn aggregated_roles_have_the_rules_of_all_that_they_select() {
        let selects = |label: &str| json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
        let mut view = role("view", "", "get", "pods");
        view["metadata"]["labels"] = json!({"to-edit": "true"});
        let mut edit = json!({"metadata": {"name": "edit", "labels": {"to-edit": "true"}}, "rules": []});
        edit["aggregationRule"] = selects("to-edit");
        let mut more = role("more", "", "get", "things");
        more["metadata"]["labels"] = json!({"to-edit": "true"});
        let subject = json!({"kind": "User", "name": "alice"});
        let policy = Policy::of(&snapshot(&[
            ("clusterroles", view),
            ("clusterroles", edit),
            ("clusterroles", more),
            ("clusterroles", role("other", "", "get", "secrets")),
            ("clusterrolebindings", binding("b", "", ("ClusterRole", "edit"), subject)),
        ]));
        let alice = User::known("alice".into(), Vec::new());
        assert!(ask(&policy, &alice, "get", "pods", "").is_allowed());
        assert!(ask(&policy, &alice, "get", "things", "").is_allowed());
        assert!(!ask(&policy, &alice, "get", "secrets", "").is_allowed());
    }
}
