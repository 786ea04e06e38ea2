//! Nobody grants what they do not hold: the check on roles and bindings that are made or changed.

use serde_json::Value;

use super::rule::quoted;
use super::{Policy, Rule};
use crate::auth::User;

/// What a write of a role or binding gives away.
#[derive(Clone, Debug, PartialEq)]
pub enum Grant {
    /// Rules, to whoever is or will be bound to the role.
    Rules {
        /// The role's own.
        rules: Vec<Rule>,
        /// It takes the rules of whatever roles have some labels, now and later.
        aggregates: bool,
    },
    /// A role, to the subjects: its kind and name.
    Role(String, String),
}

/// What writing `new` over `old` gives away. Labels count, since aggregating roles go by them; only what lets an object be
/// collected (owners, finalizers) may be changed by anyone who may change the object.
pub fn grant_of(resource: &str, old: Option<&Value>, new: &Value) -> Option<Grant> {
    let bare = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in ["finalizers", "managedFields", "ownerReferences", "resourceVersion"] {
                metadata.remove(field);
            }
        }
        object
    };
    if old.is_some_and(|old| bare(old) == bare(new)) {
        return None;
    }
    match resource {
        "clusterroles" | "roles" => {
            Some(Grant::Rules { rules: Rule::all_of(new), aggregates: new["aggregationRule"].is_object() })
        }
        "clusterrolebindings" | "rolebindings" => {
            let text = |field: &str| new["roleRef"][field].as_str().unwrap_or_default().to_owned();
            Some(Grant::Role(text("kind"), text("name")))
        }
        _ => None,
    }
}

/// Why a user may not grant these rules in a namespace (in all of them, for an empty one); nothing when all are held.
pub fn not_held(policy: &Policy, user: &User, namespace: &str, wanted: &[Rule]) -> Option<String> {
    let (held, problems) = policy.rules_for(user, namespace);
    let missing = wanted.iter().flat_map(Rule::pieces);
    let missing: Vec<Rule> = missing.filter(|piece| !held.iter().any(|rule| rule.covers(piece))).collect();
    if missing.is_empty() {
        return None;
    }
    let mut texts: Vec<String> = compact(missing).iter().map(Rule::text).collect();
    texts.sort();
    texts.dedup();
    let mut why = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        Value::from(user.name.as_str()),
        quoted(&user.groups),
        texts.join("\n")
    );
    if !problems.is_empty() {
        why += &format!("; resolution errors: [{}]", problems.join(", "));
    }
    Some(why)
}

/// Puts the verbs for the same resource together.
fn compact(pieces: Vec<Rule>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for piece in pieces {
        let same = |rule: &&mut Rule| {
            piece.urls.is_empty()
                && (&rule.groups, &rule.resources, &rule.names, &rule.urls)
                    == (&piece.groups, &piece.resources, &piece.names, &piece.urls)
        };
        match rules.iter_mut().find(same) {
            Some(rule) => rule.verbs.extend(piece.verbs),
            None => rules.push(piece),
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_plane_core::{Key, Snapshot};
    use serde_json::json;
    use std::sync::Arc;

    fn rules(verbs: &[&str], resource: &str) -> Value {
        json!([{"verbs": verbs, "apiGroups": [""], "resources": [resource]}])
    }

    #[test]
    fn what_is_not_held_is_listed_in_kubernetes_words() {
        let mut snapshot = Snapshot::default();
        let role = json!({"metadata": {"name": "read"}, "rules": rules(&["get", "list"], "pods")});
        let binding = json!({
            "metadata": {"name": "b"},
            "roleRef": {"kind": "ClusterRole", "name": "read"},
            "subjects": [{"kind": "User", "name": "alice"}],
        });
        for (resource, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            snapshot.apply(resource, Key::of(&object), Some(Arc::new(object)));
        }
        let policy = Policy::of(&snapshot);
        let alice = User::known("alice".into(), Vec::new());
        let check = |wanted: Value, expected: Option<&str>| {
            let wanted = Rule::all_of(&json!({"rules": wanted}));
            assert_eq!(not_held(&policy, &alice, "ns", &wanted).as_deref(), expected);
        };
        check(rules(&["get"], "pods"), None);
        check(json!([]), None);
        check(
            rules(&["get", "list", "create", "delete"], "pods"),
            Some(
                "user \"alice\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"create\" \"delete\"]}",
            ),
        );
    }

    #[test]
    fn whatever_changes_but_owners_and_finalizers_is_a_grant() {
        let role =
            json!({"metadata": {"name": "r", "resourceVersion": "1"}, "rules": rules(&["get"], "pods")});
        assert!(
            matches!(grant_of("roles", None, &role), Some(Grant::Rules { rules, aggregates: false }) if rules.len() == 1)
        );
        let mut owned = role.clone();
        owned["metadata"]["ownerReferences"] = json!([{"name": "x"}]);
        assert_eq!(grant_of("roles", Some(&role), &owned), None);
        let mut labelled = role.clone();
        labelled["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-admin": "true"});
        assert!(grant_of("clusterroles", Some(&role), &labelled).is_some());
        let binding =
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "a"}]});
        let mut more = binding.clone();
        more["subjects"] = json!([{"kind": "User", "name": "b"}]);
        let grant = Some(Grant::Role("Role".into(), "r".into()));
        assert_eq!(grant_of("rolebindings", None, &binding), grant);
        assert_eq!(grant_of("rolebindings", Some(&binding), &binding), None);
        assert_eq!(grant_of("rolebindings", Some(&binding), &more), grant);
        let aggregating = json!({"aggregationRule": {"clusterRoleSelectors": []}, "rules": []});
        assert!(matches!(
            grant_of("clusterroles", None, &aggregating),
            Some(Grant::Rules { aggregates: true, .. })
        ));
        assert_eq!(grant_of("pods", None, &role), None);
    }
}
