//! The node itself: its conditions, its taints, its events.

use serde_json::{Map, Value, json};

use super::outage::Outage;
use super::{Lease, LifecycleConfig, REPORTED, is_ours};
use crate::conditions::{self, Saying};
use crate::decision::{Decision, EventKind, EventRecord, ObjectRef, Write};
use crate::json;
use crate::reports;
use crate::snapshot::{Mark, Snapshot};
use crate::time::{self, Now};
use crate::tolerations::{self, Effect, UNREACHABLE};

/// Looks at one node. When its lease ran out: Ready and its three companions become Unknown and the NoSchedule taint
/// appears in one write, and one NodeNotReady is told (NODE-03 to NODE-06); N later, counted from Ready's
/// `lastTransitionTime`, the NoExecute taint follows (NODE-07, NODE-28). When the lease is renewed all of that is
/// undone (NODE-09). Each decision is one write, so that its event is told exactly when that write succeeded.
///
/// After a start of the process every lease has its period of grace (NODE-11): a node that is called Ready waits it
/// out, whatever taints it has; an outage that was running goes on, unless the stored lease was renewed since it began.
#[must_use]
pub fn decide(snapshot: &Snapshot, config: &LifecycleConfig, node: &str, now: &Now) -> Decision {
    let Some(object) = snapshot.get("nodes", "", node) else {
        return Decision::nothing("the node is gone");
    };
    let outage = Outage::of(object);
    let lease = Lease::of(node, snapshot, config, now.mono);
    let is_over = outage.as_ref().is_some_and(|outage| outage.is_over(snapshot, node));
    let is_unknown = conditions::status(object, "Ready") == Some("Unknown");
    let is_lost = outage.is_some() || conditions::get(object, "Ready").is_some_and(is_ours);
    let is_tainted = has_taint(object, Effect::NoSchedule) || has_taint(object, Effect::NoExecute);
    match lease {
        Lease::Uncounted => Decision::nothing("its lease is not counted"),
        Lease::Renewed if is_lost || is_tainted => recovered(object, outage, now),
        Lease::Renewed => Decision::nothing("its lease is fresh"),
        Lease::Grace | Lease::RunOut if is_over => recovered(object, outage, now),
        Lease::Grace if is_lost && is_unknown => {
            unreachable(snapshot, config, node, outage.unwrap_or_default(), now)
        }
        Lease::Grace => Decision::nothing("its lease has not run out"),
        Lease::RunOut if is_lost => unreachable(snapshot, config, node, outage.unwrap_or_default(), now),
        Lease::RunOut => {
            let begun = Outage::begun(snapshot, node, now);
            let mut decision = unreachable(snapshot, config, node, begun, now);
            decision.events.push(event(object, "NodeNotReady"));
            decision
        }
    }
}

/// One look at a node in an outage, be it the first or a later one; what is as it should be is left alone.
fn unreachable(
    snapshot: &Snapshot,
    config: &LifecycleConfig,
    name: &str,
    mut outage: Outage,
    now: &Now,
) -> Decision {
    let Some(before) = snapshot.get("nodes", "", name) else {
        return Decision::nothing("the node is gone");
    };
    let mut node = Value::clone(before);
    let mut look_again = None;
    let mut because = "the outage goes on";
    if conditions::status(before, "Ready") == Some("Unknown") {
        let stamp = conditions::get(before, "Ready")
            .and_then(|ready| json::text(ready, &["lastTransitionTime"]))
            .and_then(time::parse);
        let mark = Mark::NodeReady(name.to_owned());
        let unknown_for = snapshot
            .since(&mark, stamp, outage.unknown_since, now)
            .or_else(|| outage.unknown_since.map(|instant| time::elapsed(now.wall, instant)))
            .unwrap_or_default();
        if has_taint(before, Effect::NoExecute) {
            // nothing more happens to the node itself
        } else if unknown_for >= config.not_ready_timeout {
            outage.no_execute_since = Some(now.wall);
            add_taint(&mut node, Effect::NoExecute, now);
            because = "it has been unreachable for so long that its pods have to go";
        } else {
            look_again = Some(now.mono + (config.not_ready_timeout - unknown_for));
        }
    } else {
        because = "its lease ran out";
        // What was said in the midst of an outage ended nothing: it is Unknown since it began.
        let since = *outage.unknown_since.get_or_insert(now.wall);
        turn_unknown(&mut node, &mut outage, &Now { wall: since, ..*now });
        let unknown_for = time::elapsed(now.wall, since);
        look_again = Some(now.mono + config.not_ready_timeout.saturating_sub(unknown_for));
    }
    if !has_taint(&node, Effect::NoSchedule) {
        add_taint(&mut node, Effect::NoSchedule, now);
    }
    outage.keep(&mut node);
    let mut writes = Vec::new();
    if node != **before {
        writes.push(rewrite(before, node));
    }
    Decision { writes, events: Vec::new(), look_again, because: because.to_owned() }
}

/// All four conditions Unknown, what they were before kept in `outage`.
fn turn_unknown(node: &mut Value, outage: &mut Outage, now: &Now) {
    for kind in REPORTED {
        let (reason, message) = match conditions::get(node, kind) {
            Some(condition) if json::text(condition, &["status"]) == Some("Unknown") => continue,
            Some(condition) => {
                outage.reported.insert(kind.to_owned(), condition.clone());
                ("NodeStatusUnknown", "Kubelet stopped posting node status.")
            }
            None => ("NodeStatusNeverUpdated", "Kubelet never posted node status."),
        };
        conditions::set(node, Saying { kind, status: "Unknown", reason, message }, now);
    }
}

/// Conditions as last reported, taints gone, and told so.
fn recovered(before: &Value, outage: Option<Outage>, now: &Now) -> Decision {
    let mut node = before.clone();
    let reported = outage.map(|outage| outage.reported).unwrap_or_default();
    for kind in REPORTED {
        let Some(was) = reported.get(kind) else { continue };
        if conditions::status(&node, kind) == Some("Unknown") {
            let field = |name| json::text(was, &[name]).unwrap_or_default();
            let (status, reason, message) = (field("status"), field("reason"), field("message"));
            conditions::set(&mut node, Saying { kind, status, reason, message }, now);
        }
    }
    conditions::retain(&mut node, |condition| {
        let never_reported = json::text(condition, &["reason"]) == Some("NodeStatusNeverUpdated");
        !(is_ours(condition) && never_reported)
    });
    let spec = json::object_mut(&mut node, &["spec"]);
    if let Some(Value::Array(taints)) = spec.get_mut("taints") {
        taints.retain(|taint| {
            let effect = json::text(taint, &["effect"]);
            json::text(taint, &["key"]) != Some(UNREACHABLE)
                || !matches!(effect, Some("NoSchedule" | "NoExecute"))
        });
        if taints.is_empty() {
            spec.remove("taints");
        }
    }
    Outage::forget(&mut node);
    if node == *before {
        return Decision::nothing("its lease is renewed, and its kubelet has yet to report");
    }
    let is_ready = conditions::is_true(&node, "Ready");
    Decision {
        events: if is_ready { vec![event(before, "NodeReady")] } else { Vec::new() },
        writes: vec![rewrite(before, node)],
        look_again: None,
        because: "its lease is renewed".to_owned(),
    }
}

/// The write that makes `node` of what was there; it is no report (SCHED-22).
fn rewrite(before: &Value, mut node: Value) -> Write {
    reports::keep(before, &mut node);
    Write::Replace { resource: "nodes", object: node }
}

fn has_taint(node: &Value, effect: Effect) -> bool {
    tolerations::taints(node).any(|taint| taint.key == UNREACHABLE && taint.effect == effect)
}

fn add_taint(node: &mut Value, effect: Effect, now: &Now) {
    let taint = json!({"key": UNREACHABLE, "effect": effect.as_str(), "timeAdded": now.stamp()});
    let spec: &mut Map<String, Value> = json::object_mut(node, &["spec"]);
    match spec.get_mut("taints") {
        Some(Value::Array(taints)) => taints.push(taint),
        _ => {
            spec.insert("taints".to_owned(), json!([taint]));
        }
    }
}

fn event(node: &Value, reason: &'static str) -> EventRecord {
    EventRecord {
        regarding: ObjectRef::to("v1", "Node", node),
        kind: EventKind::Normal,
        reason,
        message: format!("Node {} status is now: {reason}", json::name(node)),
        component: "node-controller",
    }
}
