//! `spec.nodeSelector` and the required terms of node affinity.

use serde_json::Value;

use crate::json;
use crate::scheduler::ledger::KnownNode;
use crate::scheduler::profile::{Candidate, Reason, Wanted};

fn terms(pod: &Value) -> Option<&[Value]> {
    let path = [
        "spec",
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    ];
    json::get(pod, &path).and_then(Value::as_array).map(Vec::as_slice)
}

/// Whether there are any terms.
pub(super) fn has_terms(wanted: &Wanted<'_>) -> bool {
    terms(wanted.pod).is_some()
}

/// Where every term names its nodes, others are not even looked at.
pub(super) fn other_names(candidate: &Candidate<'_>, reasons: &mut Vec<Reason>) {
    let Some(terms) = terms(candidate.wanted().pod).filter(|terms| !terms.is_empty()) else { return };
    let names = |term: &Value| {
        let fields = json::list(term, &["matchFields"]);
        fields
            .iter()
            .find(|it| json::text(it, &["operator"]) == Some("In"))
            .map(|it| is_among(it, candidate.name()))
    };
    let named: Option<Vec<bool>> = terms.iter().map(names).collect();
    if named.is_some_and(|named| !named.contains(&true)) {
        reasons.push("node(s) didn't satisfy plugin(s) [NodeAffinity]".into());
    }
}

/// Every label of the selector, and one of the terms (SCHED-13).
pub(super) fn differs(candidate: &Candidate<'_>, reasons: &mut Vec<Reason>) {
    let Some(node) = candidate.node() else { return };
    let mut selector = candidate.wanted().selector.into_iter().flatten();
    let selected = selector.all(|(key, value)| node.label(key) == Some(value));
    let matched =
        terms(candidate.wanted().pod).is_none_or(|terms| terms.iter().any(|term| term_matches(term, node)));
    if !selected || !matched {
        reasons.push("node(s) didn't match Pod's node affinity/selector".into());
    }
}

/// All its requirements hold. A term without any matches nothing.
fn term_matches(term: &Value, node: &KnownNode) -> bool {
    let expressions = json::list(term, &["matchExpressions"]);
    let fields = json::list(term, &["matchFields"]);
    let label = |key: &str| node.label(key).and_then(Value::as_str);
    let field = |key: &str| (key == "metadata.name").then(|| node.name());
    (!expressions.is_empty() || !fields.is_empty())
        && expressions.iter().all(|it| requirement_holds(it, label(key_of(it))))
        && fields.iter().all(|it| requirement_holds(it, field(key_of(it))))
}

fn key_of(requirement: &Value) -> &str {
    json::text(requirement, &["key"]).unwrap_or_default()
}

fn is_among(requirement: &Value, value: &str) -> bool {
    json::list(requirement, &["values"]).iter().any(|it| it == value)
}

fn requirement_holds(requirement: &Value, value: Option<&str>) -> bool {
    let bound = || json::list(requirement, &["values"]).first()?.as_str()?.parse::<i64>().ok();
    let number = || value?.parse::<i64>().ok();
    match json::text(requirement, &["operator"]).unwrap_or_default() {
        "In" => value.is_some_and(|value| is_among(requirement, value)),
        "NotIn" => value.is_none_or(|value| !is_among(requirement, value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number().zip(bound()).is_some_and(|(number, bound)| number > bound),
        "Lt" => number().zip(bound()).is_some_and(|(number, bound)| number < bound),
        _ => false,
    }
}
