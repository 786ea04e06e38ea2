//! Taints and tolerations: what tolerates what, and for how long (NODE-15, NODE-16).
//!
//! Typed views over the JSON of nodes and pods; entries that cannot be read are as if absent.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::{json, time};

/// Key of the taint that the lifecycle controller puts on a node whose lease ran out.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// Key of the taint for nodes that report not being ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// No new pod is placed.
    NoSchedule,
    /// New pods are placed elsewhere where possible.
    PreferNoSchedule,
    /// Running pods have to go.
    NoExecute,
}

impl Effect {
    /// The word in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute].into_iter().find(|e| e.as_str() == text)
    }
}

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value, often empty.
    pub value: String,
    /// Effect.
    pub effect: Effect,
    /// When it was added, in whole seconds.
    pub time_added: Option<Timestamp>,
}

/// How long something may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stay {
    /// This long, counted from the taint; zero is "not at all".
    For(Duration),
    /// For ever.
    Forever,
}

/// The taints of a node.
pub fn taints(node: &Value) -> impl Iterator<Item = Taint> + use<'_> {
    json::list(node, &["spec", "taints"]).iter().filter_map(|taint| {
        Some(Taint {
            key: json::text(taint, &["key"])?.to_owned(),
            value: json::text(taint, &["value"]).unwrap_or_default().to_owned(),
            effect: Effect::parse(json::text(taint, &["effect"])?)?,
            time_added: json::text(taint, &["timeAdded"]).and_then(time::parse),
        })
    })
}

/// The NoExecute taints of a node.
pub fn no_execute(node: &Value) -> impl Iterator<Item = Taint> + use<'_> {
    taints(node).filter(|taint| taint.effect == Effect::NoExecute)
}

/// Whether `toleration`, an entry of `spec.tolerations`, tolerates `taint`. An empty effect stands for all effects,
/// an empty key for all keys, an empty operator for `Equal`.
#[must_use]
pub fn tolerates(toleration: &Value, taint: &Taint) -> bool {
    let field = |name| json::text(toleration, &[name]).unwrap_or_default();
    let (key, effect) = (field("key"), field("effect"));
    if !effect.is_empty() && effect != taint.effect.as_str() || !key.is_empty() && key != taint.key {
        return false;
    }
    match field("operator") {
        "Exists" => true,
        "" | "Equal" => field("value") == taint.value,
        _ => false,
    }
}

/// How long a pod with these `tolerations` may stay under all of `taints`: for each taint the first toleration that
/// matches counts, and the shortest of these holds. Without a match for some taint, or with 0 seconds or fewer, not
/// at all; with none that has seconds, for ever (NODE-15, NODE-16).
#[must_use]
pub fn stay(tolerations: &[Value], taints: &[Taint]) -> Stay {
    taints
        .iter()
        .map(|taint| match tolerations.iter().find(|toleration| tolerates(toleration, taint)) {
            None => Stay::For(Duration::ZERO),
            Some(toleration) => match json::get(toleration, &["tolerationSeconds"]).and_then(Value::as_i64) {
                None => Stay::Forever,
                Some(seconds) => Stay::For(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))),
            },
        })
        .min()
        .unwrap_or(Stay::Forever)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taint(key: &str, value: &str, effect: Effect) -> Taint {
        Taint { key: key.into(), value: value.into(), effect, time_added: None }
    }

    #[test]
    fn tolerations_match_by_key_value_and_effect() {
        let unreachable = taint(UNREACHABLE, "", Effect::NoExecute);
        let dedicated = taint("dedicated", "gpu", Effect::NoSchedule);
        for (toleration, under_unreachable, under_dedicated) in [
            (json!({"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}), true, false),
            (json!({"key": UNREACHABLE, "operator": "Exists"}), true, false),
            (json!({"key": UNREACHABLE, "effect": "NoExecute"}), true, false),
            (json!({"key": UNREACHABLE, "effect": "NoSchedule", "operator": "Exists"}), false, false),
            (json!({"operator": "Exists"}), true, true),
            (json!({"operator": "Exists", "effect": "NoSchedule"}), false, true),
            (json!({"key": "dedicated", "operator": "Equal", "value": "gpu"}), false, true),
            (json!({"key": "dedicated", "value": "cpu"}), false, false),
            (json!({"key": "dedicated", "operator": "Near", "value": "gpu"}), false, false),
            (json!({}), true, false),
        ] {
            assert_eq!(tolerates(&toleration, &unreachable), under_unreachable, "{toleration}");
            assert_eq!(tolerates(&toleration, &dedicated), under_dedicated, "{toleration}");
        }
    }

    #[test]
    fn node_15_and_16_how_long_a_pod_may_stay() {
        let any = |seconds: Value| json!({"operator": "Exists", "tolerationSeconds": seconds});
        let unreachable = |seconds: Value| json!({"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
        let seconds = |n| Stay::For(Duration::from_secs(n));
        let one = [taint(UNREACHABLE, "", Effect::NoExecute)];
        let two = [one[0].clone(), taint("other", "", Effect::NoExecute)];
        for (tolerations, taints, expected) in [
            (vec![], &one[..], seconds(0)),
            (vec![json!({"key": NOT_READY, "operator": "Exists"})], &one, seconds(0)),
            (vec![unreachable(json!(300))], &one, seconds(300)),
            (vec![unreachable(json!(0))], &one, seconds(0)),
            (vec![unreachable(json!(-5))], &one, seconds(0)),
            (vec![unreachable(Value::Null)], &one, Stay::Forever),
            (vec![any(json!(10)), unreachable(json!(300))], &one, seconds(10)),
            (vec![unreachable(json!(300)), any(json!(10))], &one, seconds(300)),
            (vec![unreachable(json!(300))], &two, seconds(0)),
            (vec![unreachable(json!(300)), any(json!(10))], &two, seconds(10)),
            (vec![unreachable(Value::Null), any(json!(10))], &two, seconds(10)),
            (vec![], &[], Stay::Forever),
        ] {
            assert_eq!(stay(&tolerations, taints), expected, "{tolerations:?} {taints:?}");
        }
    }

    #[test]
    fn taints_that_cannot_be_read_are_as_if_absent() {
        let node = json!({"spec": {"taints": [
            {"key": "a", "effect": "NoExecute", "timeAdded": "2026-11-29T12:00:00Z"},
            {"key": "b", "effect": "Weird"},
            {"effect": "NoSchedule"},
            {"key": "c", "value": "v", "effect": "PreferNoSchedule", "timeAdded": "soon"},
        ]}});
        let read: Vec<_> = taints(&node).map(|t| (t.key, t.effect, t.time_added.is_some())).collect();
        assert_eq!(
            read,
            [("a".to_owned(), Effect::NoExecute, true), ("c".to_owned(), Effect::PreferNoSchedule, false),]
        );
        assert_eq!(no_execute(&node).count(), 1);
    }
}
