//! One rule of a role: whether it allows a request, and whether it covers another rule.

use serde_json::{Map, Value, json};

use crate::auth::Attributes;

const ALL: &str = "*";

/// A PolicyRule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Verbs, or `*`.
    pub verbs: Vec<String>,
    /// API groups, or `*`.
    pub groups: Vec<String>,
    /// `PLURAL`, `PLURAL/SUBRESOURCE`, `*/SUBRESOURCE`, or `*`.
    pub resources: Vec<String>,
    /// Names of objects; empty for any.
    pub names: Vec<String>,
    /// Paths; a `*` at the end stands for anything.
    pub urls: Vec<String>,
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|one| one == wanted)
}

fn all_in(wanted: &[String], list: &[String]) -> bool {
    wanted.iter().all(|one| has(list, one))
}

fn texts(object: &Value, field: &str) -> Vec<String> {
    let values = object[field].as_array().map_or(&[] as &[Value], Vec::as_slice);
    values.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

impl Rule {
    /// Reads a PolicyRule.
    pub fn of(object: &Value) -> Self {
        Self {
            verbs: texts(object, "verbs"),
            groups: texts(object, "apiGroups"),
            resources: texts(object, "resources"),
            names: texts(object, "resourceNames"),
            urls: texts(object, "nonResourceURLs"),
        }
    }

    /// The rules of a role.
    pub fn all_of(role: &Value) -> Vec<Self> {
        let rules = role["rules"].as_array().map_or(&[] as &[Value], Vec::as_slice);
        rules.iter().map(Self::of).collect()
    }

    /// As a PolicyRule.
    pub fn to_value(&self) -> Value {
        let mut object = Map::new();
        let lists = [
            ("apiGroups", &self.groups),
            ("nonResourceURLs", &self.urls),
            ("resourceNames", &self.names),
            ("resources", &self.resources),
        ];
        for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            object.insert(name.into(), json!(list));
        }
        object.insert("verbs".into(), json!(self.verbs));
        Value::Object(object)
    }

    /// Rules that cover all others.
    pub fn everything() -> [Self; 2] {
        let all = || vec![ALL.to_owned()];
        let resources = Self { verbs: all(), groups: all(), resources: all(), ..Self::default() };
        [resources, Self { verbs: all(), urls: all(), ..Self::default() }]
    }

    fn allows_verb(&self, verb: &str) -> bool {
        has(&self.verbs, ALL) || has(&self.verbs, verb)
    }

    /// Whether it allows this.
    pub fn allows(&self, asked: &Attributes<'_>) -> bool {
        let resource = |rule: &String| {
            if rule == ALL {
                return true;
            }
            match rule.split_once('/') {
                None => asked.subresource.is_empty() && rule == asked.resource,
                Some((plural, subresource)) => {
                    subresource == asked.subresource && (plural == ALL || plural == asked.resource)
                }
            }
        };
        self.allows_verb(asked.verb)
            && (has(&self.groups, ALL) || has(&self.groups, asked.group))
            && self.resources.iter().any(resource)
            && (self.names.is_empty() || has(&self.names, asked.name))
    }

    /// Whether it allows this verb (a lower-case method) on a path.
    pub fn allows_path(&self, verb: &str, path: &str) -> bool {
        self.allows_verb(verb) && self.urls.iter().any(|url| url_covers(url, path))
    }

    /// Whether whoever holds this rule holds `other` as well.
    pub fn covers(&self, other: &Self) -> bool {
        let resource = |wanted: &String| {
            has(&self.resources, wanted)
                || wanted
                    .split_once('/')
                    .is_some_and(|(_, subresource)| has(&self.resources, &format!("*/{subresource}")))
        };
        let names = self.names.is_empty() || (!other.names.is_empty() && all_in(&other.names, &self.names));
        let urls = other.urls.iter().all(|url| self.urls.iter().any(|own| url_covers(own, url)));
        (has(&self.verbs, ALL) || all_in(&other.verbs, &self.verbs))
            && (has(&self.groups, ALL) || all_in(&other.groups, &self.groups))
            && (has(&self.resources, ALL) || other.resources.iter().all(resource))
            && names
            && urls
    }

    /// Rules of one verb for one resource of one group (and one name) or one path, which together are this one.
    pub fn pieces(&self) -> Vec<Self> {
        let mut pieces = Vec::new();
        let one = |text: &String| vec![text.clone()];
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let piece = Self {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.names.is_empty() {
                        pieces.push(piece);
                    } else {
                        pieces
                            .extend(self.names.iter().map(|name| Self { names: one(name), ..piece.clone() }));
                    }
                }
            }
        }
        for url in &self.urls {
            pieces.extend(self.verbs.iter().map(|verb| Self {
                verbs: one(verb),
                urls: one(url),
                ..Self::default()
            }));
        }
        pieces
    }

    /// As Kubernetes prints it in refusals.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        let lists = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("ResourceNames", &self.names),
            ("NonResourceURLs", &self.urls),
            ("Verbs", &self.verbs),
        ];
        for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            parts.push(format!("{name}:{}", quoted(list)));
        }
        format!("{{{}}}", parts.join(", "))
    }
}

/// A list as Go's `%q` prints it.
pub fn quoted(list: &[String]) -> String {
    let texts: Vec<String> = list.iter().map(|text| Value::from(text.as_str()).to_string()).collect();
    format!("[{}]", texts.join(" "))
}

fn url_covers(rule: &str, path: &str) -> bool {
    rule == path || rule.strip_suffix(ALL).is_some_and(|start| path.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split(',').filter(|part| *part != "-").map(|part| part.replace("core", "")).collect()
    }

    /// `VERBS GROUPS RESOURCES NAMES`, separated by spaces; `-` is an empty list.
    fn rule(text: &str) -> Rule {
        let parts: Vec<&str> = text.split(' ').collect();
        Rule {
            verbs: list(parts[0]),
            groups: list(parts[1]),
            resources: list(parts[2]),
            names: list(parts.get(3).unwrap_or(&"-")),
            urls: Vec::new(),
        }
    }

    fn path_rule(verbs: &str, urls: &str) -> Rule {
        Rule { verbs: list(verbs), urls: list(urls), ..Rule::default() }
    }

    #[test]
    fn a_rule_allows_what_it_names() {
        let check = |text: &str, asked: (&str, &str, &str, &str), expected: bool| {
            let (verb, group, resource, name) = asked;
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let asked =
                Attributes { verb, group, resource, subresource, name, namespace: "ns", node_selected: "" };
            assert_eq!(rule(text).allows(&asked), expected, "{text}: {asked:?}");
        };
        check("get,list core pods", ("get", "", "pods", "p"), true);
        check("get,list core pods", ("watch", "", "pods", ""), false);
        check("get core pods", ("get", "apps", "pods", ""), false);
        check("get core pods", ("get", "", "pods/log", ""), false);
        check("get core pods/log", ("get", "", "pods/log", ""), true);
        check("get core pods/log", ("get", "", "pods", ""), false);
        check("get core */log", ("get", "", "pods/log", ""), true);
        check("get core */log", ("get", "", "pods/status", ""), false);
        check("get core */log", ("get", "", "pods", ""), false);
        check("* * *", ("impersonate", "any", "thing/sub", "x"), true);
        check("* core *", ("get", "", "pods/log", ""), true);
        check("get * leases x", ("get", "coordination.k8s.io", "leases", "x"), true);
        check("get * leases x", ("get", "coordination.k8s.io", "leases", "y"), false);
        check("list * leases x", ("list", "coordination.k8s.io", "leases", ""), false);
        check("- core pods", ("get", "", "pods", ""), false);
        check("get - pods", ("get", "", "pods", ""), false);
        check("get core -", ("get", "", "pods", ""), false);
    }

    #[test]
    fn a_rule_allows_the_paths_it_names() {
        let check = |verbs: &str, urls: &str, verb: &str, path: &str, expected: bool| {
            assert_eq!(path_rule(verbs, urls).allows_path(verb, path), expected, "{urls} {verb} {path}");
        };
        check("get", "/healthz,/api/*", "get", "/healthz", true);
        check("get", "/healthz,/api/*", "get", "/healthz/ping", false);
        check("get", "/healthz,/api/*", "get", "/api/v1", true);
        check("get", "/healthz,/api/*", "get", "/api", false);
        check("get", "/healthz", "post", "/healthz", false);
        check("*", "*", "post", "/anything", true);
        assert!(!rule("* * *").allows_path("get", "/healthz"), "resources are no paths");
    }

    #[test]
    fn a_rule_covers_what_it_holds() {
        let check = |own: &str, other: &str, expected: bool| {
            assert_eq!(rule(own).covers(&rule(other)), expected, "{own} covers {other}");
        };
        check("get,list core pods", "get core pods", true);
        check("get core pods", "get,list core pods", false);
        check("get core pods", "get core pods/log", false);
        check("* * *", "get core pods/log", true);
        check("get core */log", "get core pods/log", true);
        check("get core pods x", "get core pods", false);
        check("get core pods x,y", "get core pods x", true);
        check("get core pods", "get core pods x", true);
        check("get core pods", "* core pods", false);
        assert!(path_rule("get", "/api/*").covers(&path_rule("get", "/api/v1/*")));
        assert!(!path_rule("get", "/api/v1").covers(&path_rule("get", "/api/*")));
        assert!(!rule("* * *").covers(&path_rule("get", "/api")));
    }

    #[test]
    fn a_rule_is_the_sum_of_its_pieces_and_reads_as_kubernetes_prints_it() {
        let whole = rule("get,list core,apps pods,deployments x,y");
        assert_eq!(whole.pieces().len(), 16);
        assert!(whole.pieces().iter().all(|piece| whole.covers(piece)));
        let expected = r#"{APIGroups:["" "apps"], Resources:["pods" "deployments"], ResourceNames:["x" "y"], Verbs:["get" "list"]}"#;
        assert_eq!(whole.text(), expected);
        assert_eq!(path_rule("get", "/x").text(), r#"{NonResourceURLs:["/x"], Verbs:["get"]}"#);
        assert_eq!(Rule::of(&whole.to_value()), whole);
    }
}
