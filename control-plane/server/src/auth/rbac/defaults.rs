//! The default roles and bindings, read off one compact text (`defaults.txt`, which says how it is written).
//!
//! They are what the identities in use need: administrators and the roles that people are given (cluster-admin, admin, edit,
//! view), everyone's (system:basic-user, system:discovery, system:public-info-viewer), kube-scheduler's and
//! kube-controller-manager's with those of its controllers (for `--use-service-account-credentials`), monitoring, delegated
//! authentication, the issuer's discovery, boards and boards that join. Roles for signing certificates, kube-proxy, DNS,
//! cloud providers and volume provisioners are left out: nothing here does these things.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{GROUP, Rule};

static TEXT: &str = include_str!("defaults.txt");

/// A default object with its resource.
pub type Default = (&'static str, Value);

/// The role of boards, whose rules count whatever its object says.
const NODE: &str = "system:node";

/// A block of the text: the line that names a role, and those that belong to it.
fn blocks() -> impl Iterator<Item = (Vec<&'static str>, Vec<&'static str>)> {
    TEXT.split("\n\n").filter_map(|block| {
        let mut lines = block.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let head = lines.next()?.split(' ').collect();
        Some((head, lines.map(str::trim).collect()))
    })
}

fn list(text: &str) -> Vec<String> {
    let plain = |one: &str| if one == "core" { String::new() } else { one.to_owned() };
    text.trim().split(',').map(plain).collect()
}

fn rule(line: &str) -> Rule {
    let parts: Vec<&str> = line.split(" | ").collect();
    match parts.as_slice() {
        [verbs, "url", urls] => Rule { verbs: list(verbs), urls: list(urls), ..Rule::default() },
        [verbs, groups, resources, rest @ ..] => Rule {
            verbs: list(verbs),
            groups: list(groups),
            resources: list(resources),
            names: rest.first().map_or_else(Vec::new, |names| list(names)),
            urls: Vec::new(),
        },
        _ => Rule::default(),
    }
}

fn rules(lines: &[&str]) -> Vec<Rule> {
    lines.iter().filter(|line| !line.starts_with("to ")).map(|line| rule(line)).collect()
}

fn subject(text: &str) -> Value {
    match text.split_once(':') {
        Some(("user", name)) => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
        Some(("group", name)) => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
        Some((_, account)) => {
            let (namespace, name) = account.split_once('/').unwrap_or(("", account));
            json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
        }
        None => Value::Null,
    }
}

/// The value after a word of a block's first line.
fn after<'a>(head: &[&'a str], word: &str) -> Option<&'a str> {
    head.iter().position(|one| *one == word).and_then(|place| head.get(place + 1)).copied()
}

fn metadata(namespace: &str, name: &str, label: Option<&str>) -> Value {
    let mut metadata = json!({
        "name": name,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    });
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    if let Some(label) = label {
        metadata["labels"][format!("{GROUP}/{label}")] = json!("true");
    }
    metadata
}

/// Every default role and binding. The rules of aggregating roles are filled in.
pub fn all() -> Vec<Default> {
    let mut objects = Vec::new();
    let mut bindings = Vec::new();
    for (head, lines) in blocks() {
        let (namespace, name) = head.get(1).and_then(|name| name.split_once('/')).unwrap_or(("", ""));
        let clustered = head.first() == Some(&"clusterrole");
        let (namespace, name) = if clustered { ("", head[1]) } else { (namespace, name) };
        let (resource, kind) = if clustered { ("clusterroles", "ClusterRole") } else { ("roles", "Role") };
        let mut role = json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": kind,
            "metadata": metadata(namespace, name, after(&head, "label")),
            "rules": rules(&lines).iter().map(Rule::to_value).collect::<Vec<_>>(),
        });
        if let Some(label) = after(&head, "aggregates") {
            let label = format!("{GROUP}/{label}");
            role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
        }
        objects.push((resource, role));
        for line in lines.iter().filter_map(|line| line.strip_prefix("to ")) {
            let words: Vec<&str> = line.split(' ').collect();
            let (bound, subjects) = match words.as_slice() {
                ["as", bound, subjects @ ..] => (*bound, subjects),
                subjects => (name, subjects),
            };
            let resource = if clustered { "clusterrolebindings" } else { "rolebindings" };
            bindings.push((
                resource,
                json!({
                    "apiVersion": format!("{GROUP}/v1"),
                    "kind": if clustered { "ClusterRoleBinding" } else { "RoleBinding" },
                    "metadata": metadata(namespace, bound, None),
                    "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
                    "subjects": subjects.iter().map(|text| subject(text)).collect::<Vec<_>>(),
                }),
            ));
        }
    }
    aggregate(&mut objects);
    objects.extend(bindings);
    objects
}

/// Fills in the rules of aggregating roles, from the innermost outwards.
fn aggregate(roles: &mut [Default]) {
    for name in ["view", "edit", "admin"] {
        let label = format!("{GROUP}/aggregate-to-{name}");
        let selected = roles.iter().filter(|(_, role)| role["metadata"]["labels"].get(&label).is_some());
        let mut rules: Vec<Value> = Vec::new();
        for rule in selected.filter_map(|(_, role)| role["rules"].as_array()).flatten() {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
        for (_, role) in roles.iter_mut().filter(|(_, role)| role["metadata"]["name"] == name) {
            role["rules"] = json!(rules);
        }
    }
}

/// What every board may ask for, apart from the resources that are divided between boards.
pub fn node_rules() -> &'static [Rule] {
    static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        let own = blocks().find(|(head, _)| head.get(1) == Some(&NODE));
        own.map_or_else(Vec::new, |(_, lines)| rules(&lines))
    });
    &RULES
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn find(resource: &str, name: &str) -> Value {
        let found =
            all().into_iter().find(|(of, object)| *of == resource && object["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("{resource} {name}")).1
    }

    #[test]
    fn every_line_of_the_text_is_understood() {
        let mut names = BTreeSet::new();
        for (resource, object) in all() {
            let (namespace, name) = (&object["metadata"]["namespace"], &object["metadata"]["name"]);
            assert!(names.insert(format!("{resource} {namespace} {name}")), "{resource} {name} twice");
            if let Some(rules) = object["rules"].as_array() {
                assert!(!rules.is_empty(), "{name} has no rules");
                for rule in Rule::all_of(&object) {
                    assert!(!rule.verbs.is_empty(), "{name}: {rule:?}");
                    assert_ne!(rule.urls.is_empty(), rule.resources.is_empty(), "{name}: {rule:?}");
                    assert_eq!(rule.groups.is_empty(), rule.resources.is_empty(), "{name}: {rule:?}");
                }
            } else {
                assert!(object["subjects"].as_array().is_some_and(|all| !all.is_empty()), "{name}");
                assert!(object["subjects"].as_array().unwrap().iter().all(Value::is_object), "{name}");
            }
        }
        assert!(names.len() > 90, "{}", names.len());
    }

    #[test]
    fn the_roles_are_those_of_kubernetes() {
        let scheduler = Rule::all_of(&find("clusterroles", "system:kube-scheduler"));
        assert_eq!(scheduler.len(), 20);
        assert_eq!(scheduler[2].names, ["kube-scheduler"]);
        assert_eq!(find("clusterroles", "cluster-admin")["rules"][1]["nonResourceURLs"][0], "*");
        let admin = find("clusterroles", "admin");
        assert_eq!(admin["rules"].as_array().unwrap().len(), 25, "aggregated from three");
        let selector = &admin["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"];
        assert_eq!(selector["rbac.authorization.k8s.io/aggregate-to-admin"], "true");
        let reader = find("rolebindings", "system::extension-apiserver-authentication-reader");
        assert_eq!(reader["roleRef"]["name"], "extension-apiserver-authentication-reader");
        assert_eq!(reader["metadata"]["namespace"], "kube-system");
        let account = &find("clusterrolebindings", "system:controller:job-controller")["subjects"][0];
        assert_eq!(account["namespace"], "kube-system");
        assert_eq!(account.get("apiGroup"), None);
        assert!(node_rules().len() > 15);
    }
}
