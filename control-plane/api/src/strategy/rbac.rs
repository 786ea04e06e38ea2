//! Roles and their bindings: checks, and that a binding never changes its role.

use serde_json::{Value, json};

use super::{go, meta, names};
use crate::json;
use crate::kinds::Kind;
use crate::status::{Cause, quote};

/// The API group of roles, users and groups.
const GROUP: &str = "rbac.authorization.k8s.io";

/// Fills in the groups of a binding's role and subjects.
pub(super) fn defaults(object: &mut Value) {
    if json::text(object, &["roleRef", "apiGroup"]).is_empty() {
        json::object_mut(object, &["roleRef"]).insert("apiGroup".to_owned(), json!(GROUP));
    }
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        let person = matches!(json::text(subject, &["kind"]), "User" | "Group");
        if person && json::text(subject, &["apiGroup"]).is_empty() {
            json::object_mut(subject, &[]).insert("apiGroup".to_owned(), json!(GROUP));
        }
    }
}

/// Checks the rules of a role; its metadata is checked by the caller.
pub(super) fn validate_role(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    for (index, rule) in json::list(object, &["rules"]).iter().enumerate() {
        validate_rule(rule, kind.namespaced, &format!("rules[{index}]"), causes);
    }
    let Some(aggregation) = json::at(object, &["aggregationRule"]).filter(|rule| !rule.is_null()) else {
        return;
    };
    let selectors = json::list(aggregation, &["clusterRoleSelectors"]);
    let field = "aggregationRule.clusterRoleSelectors";
    if selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        causes.push(Cause::required(field, why));
    }
    for (index, selector) in selectors.iter().enumerate() {
        meta::validate_selector(selector, &format!("{field}[{index}]"), causes);
    }
}

fn validate_rule(rule: &Value, namespaced: bool, path: &str, causes: &mut Vec<Cause>) {
    let list = |field: &str| json::list(rule, &[field]);
    if list("verbs").is_empty() {
        causes.push(Cause::required(format!("{path}.verbs"), "verbs must contain at least one value"));
    }
    let urls = list("nonResourceURLs");
    if !urls.is_empty() {
        let mut refuse = |why| {
            causes.push(Cause::invalid_text(format!("{path}.nonResourceURLs"), &go::strings(urls), why))
        };
        if namespaced {
            refuse("namespaced rules cannot apply to non-resource URLs");
        }
        if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !list(field).is_empty()) {
            refuse("rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if list("apiGroups").is_empty() {
        let why = "resource rules must supply at least one api group";
        causes.push(Cause::required(format!("{path}.apiGroups"), why));
    }
    if list("resources").is_empty() {
        let why = "resource rules must supply at least one resource";
        causes.push(Cause::required(format!("{path}.resources"), why));
    }
}

/// Checks a binding; its metadata is checked by the caller.
pub(super) fn validate_binding(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    let role = |field: &str| json::text(object, &["roleRef", field]);
    if role("apiGroup") != GROUP {
        causes.push(Cause::not_supported("roleRef.apiGroup", role("apiGroup"), &[GROUP]));
    }
    let known: &[&str] = if kind.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !known.contains(&role("kind")) {
        causes.push(Cause::not_supported("roleRef.kind", role("kind"), known));
    }
    if role("name").is_empty() {
        causes.push(Cause::required("roleRef.name", ""));
    } else {
        for why in names::path_segment(role("name")) {
            causes.push(Cause::invalid("roleRef.name", &json!(role("name")), &why));
        }
    }
    for (index, subject) in json::list(object, &["subjects"]).iter().enumerate() {
        validate_subject(subject, kind.namespaced, &format!("subjects[{index}]"), causes);
    }
}

fn validate_subject(subject: &Value, namespaced: bool, path: &str, causes: &mut Vec<Cause>) {
    let text = |field: &str| json::text(subject, &[field]);
    let (name, group) = (text("name"), text("apiGroup"));
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    }
    match text("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                for why in names::dns_subdomain(name) {
                    causes.push(Cause::invalid(format!("{path}.name"), &json!(name), &why));
                }
            }
            if !group.is_empty() {
                causes.push(Cause::not_supported(format!("{path}.apiGroup"), group, &[""]));
            }
            if !namespaced && text("namespace").is_empty() {
                causes.push(Cause::required(format!("{path}.namespace"), ""));
            }
        }
        kind @ ("User" | "Group") => {
            if name.is_empty() {
                let why = format!("{} name cannot be empty", kind.to_lowercase());
                causes.push(Cause::invalid(format!("{path}.name"), &json!(""), &why));
            }
            if group != GROUP {
                causes.push(Cause::not_supported(format!("{path}.apiGroup"), group, &[GROUP]));
            }
        }
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            causes.push(Cause::not_supported(format!("{path}.kind"), other, &known));
        }
    }
}

/// A binding keeps the role that it was made for.
pub(super) fn validate_binding_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if old.get("roleRef") == new.get("roleRef") {
        return;
    }
    let role = |field: &str| quote(json::text(new, &["roleRef", field]));
    let shown = format!(
        "rbac.RoleRef{{APIGroup:{}, Kind:{}, Name:{}}}",
        role("apiGroup"),
        role("kind"),
        role("name")
    );
    causes.push(Cause::invalid_text("roleRef", &shown, "cannot change roleRef"));
}
