//! Which old pods give way now (DS-04, DS-05).

use serde_json::Value;

use super::places::{Daemon, Place, Places};
use crate::json;
use crate::snapshot::Object;

/// The old pods to delete: as many as `maxUnavailable` allows beyond the nodes that have no working pod of the present
/// template already, first those that are not available. None under OnDelete.
///
/// A node that is lost counts as one without a working pod, and its old pod waits until the node is back (DS-03).
pub(super) fn giving_way<'a>(daemon_set: &Value, places: &Places<'a>) -> Vec<&'a Object> {
    if json::text(daemon_set, &["spec", "updateStrategy", "type"]) == Some("OnDelete") {
        return Vec::new();
    }
    let mut away = 0;
    let mut old = Vec::new();
    for (host, place) in places.wanted() {
        match standing(place) {
            Some(daemon) if daemon.is_current => away += usize::from(!daemon.is_available),
            Some(_) if place.is_lost => away += 1,
            Some(daemon) => old.push((order(place, daemon), host, daemon.pod)),
            None => away += 1,
        }
    }
    if old.is_empty() {
        return Vec::new();
    }
    old.sort_unstable_by_key(|(order, host, _)| (*order, *host));
    let budget = max_unavailable(daemon_set, places.wanted().count()).saturating_sub(away);
    old.into_iter().take(budget).map(|(_, _, pod)| pod).collect()
}

/// The one pod that stays on a node.
fn standing<'p, 'a>(place: &'p Place<'a>) -> Option<&'p Daemon<'a>> {
    place.pods.iter().find(|daemon| daemon.is_live() && !daemon.phase().is_finished())
}

/// Those that do not work come first; those on nodes that would not take the next one come last.
fn order(place: &Place<'_>, daemon: &Daemon<'_>) -> (bool, bool) {
    (daemon.is_available, json::is_true(place.node, &["spec", "unschedulable"]))
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
