//! Cluster roles that aggregate: their rules are those of the roles that their selectors select, as Kubernetes' controller
//! writes them.

use serde_json::Value;

use crate::decision::{Decision, Write};
use crate::json;
use crate::selectors::LabelSelector;
use crate::snapshot::{Key, Snapshot};

/// Looks at one cluster role: writes the rules that it aggregates over whatever rules it has. Roles that aggregate from one
/// another settle in as many rounds as they are deep.
#[must_use]
pub fn decide(snapshot: &Snapshot, key: &Key) -> Decision {
    let Some(role) = snapshot.at("clusterroles", key) else {
        return Decision::nothing("the role is gone");
    };
    if !aggregates(role) {
        return Decision::nothing("it has rules of its own");
    }
    let rules = aggregated(snapshot, key, role);
    if json::list(role, &["rules"]) == rules {
        return Decision::nothing("its rules are those that it selects");
    }
    let mut object = Value::clone(role);
    // None are `null`, as in what clients write.
    let rules = if rules.is_empty() { Value::Null } else { rules.into() };
    json::object_mut(&mut object, &[]).insert("rules".to_owned(), rules);
    let write = Write::Update { resource: "clusterroles", subresource: None, object };
    Decision { writes: vec![write], ..Decision::nothing("its rules are not those that it selects") }
}

/// Whether a cluster role takes its rules from others.
#[must_use]
pub fn aggregates(role: &Value) -> bool {
    json::get(role, &["aggregationRule"]).is_some_and(Value::is_object)
}

/// The rules of all selected roles but itself, in the order of selectors and names, each once.
fn aggregated(snapshot: &Snapshot, own: &Key, role: &Value) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    for selector in json::list(role, &["aggregationRule", "clusterRoleSelectors"]) {
        let Ok(selector) = LabelSelector::from_object(selector) else { continue };
        for (key, selected) in snapshot.list("clusterroles") {
            if key == own || !selector.matches_object(selected) {
                continue;
            }
            for rule in json::list(selected, &["rules"]) {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}
