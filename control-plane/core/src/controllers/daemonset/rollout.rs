//! Which old pods give way now (DS-04, DS-05).

use serde_json::Value;

use super::roster::Kept;
use crate::json;
use crate::snapshot::Key;

/// The old pods to delete: as many as `maxUnavailable` allows beyond the nodes that have no working pod of the present
/// template already, first those that are not available. None under OnDelete.
///
/// A node that is lost counts as one without a working pod, and its old pod waits until the node is back (DS-03).
pub(super) fn giving_way(daemon_set: &Value, kept: &Kept) -> Vec<Key> {
    if kept.old.is_empty() || json::text(daemon_set, &["spec", "updateStrategy", "type"]) == Some("OnDelete")
    {
        return Vec::new();
    }
    let number = |figure: u64| usize::try_from(figure).unwrap_or(usize::MAX);
    let budget =
        max_unavailable(daemon_set, number(kept.figures.desired)).saturating_sub(number(kept.figures.away));
    let old = kept.old.iter().filter_map(|(_, host)| kept.place(host)?.standing());
    old.take(budget).map(|daemon| daemon.key.clone()).collect()
}

/// A count, or a percentage of the nodes, rounded up; at least 1, since there is no surge.
fn max_unavailable(daemon_set: &Value, nodes: usize) -> usize {
    let bound = json::get(daemon_set, &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]);
    let bound = match bound {
        Some(Value::Number(number)) => number.as_u64().and_then(|n| usize::try_from(n).ok()),
        Some(Value::String(text)) => {
            let percent = text.strip_suffix('%').and_then(|p| p.parse::<usize>().ok());
            percent.map(|percent| nodes.saturating_mul(percent).div_ceil(100))
        }
        _ => None,
    };
    bound.unwrap_or(1).max(1)
}
