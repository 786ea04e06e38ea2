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
