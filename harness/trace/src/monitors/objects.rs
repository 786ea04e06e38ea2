//! Monitors over object versions: resourceVersions rise, transitions move with status, pods change nodes
//! by eviction only, and taints follow leases.

use std::collections::BTreeMap;
use std::time::Duration;

use rigor_model::kinds::LEASE_NAMESPACE;
use serde_json::Value;

use super::{Ground, Violation};
use crate::history::{Fact, Verb};
use crate::index::{ObjectKey, Version, key_of, resource_version};
use crate::interval::Interval;

/// Streams of objects that are computed from others. One write may change several of them, which then carry its version, and a
/// watch that goes on from such a version is told of all of them again.
const COMPUTED: [&str; 2] = ["endpoints", "endpointslices"];

/// Within a stream each event is newer than the one before; a list after a gap may only repeat or go on.
pub(super) fn versions_rise(ground: &Ground<'_>, seen: &mut Vec<Violation>) {
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    let mut objects: BTreeMap<(&str, ObjectKey), (u64, &Value)> = BTreeMap::new();
    for (number, record) in ground.history.records().iter().enumerate() {
        let Fact::Object { stream, verb, object } = &record.fact else { continue };
        let Some(version) = resource_version(object) else { continue };
        let key = (stream.as_str(), key_of(object));
        let known = objects.get(&key).copied();
        let before = match verb {
            Verb::Listed => known.map(|(before, _)| before).filter(|before| *before > version),
            Verb::Added | Verb::Modified | Verb::Deleted => {
                let told_otherwise = known.is_some_and(|(before, told)| before == version && told != object);
                let may_share = COMPUTED.contains(&stream.as_str()) && !told_otherwise;
                let newest = last.get(stream.as_str()).copied();
                newest.filter(|before| *before > version || (*before == version && !may_share))
            }
        };
        if let Some(before) = before {
            let name = &object["metadata"]["name"];
            seen.push(Violation {
                monitor: "resourceVersion never goes back",
                message: format!("{stream} {name} has resourceVersion {version} after {before}"),
                when: Interval::exactly(record.at),
                record: number,
                infra: false,
            });
        }
        objects.insert(key, (version, object));
        // A list is no event of the watch, but the watch goes on from it.
        let newest = last.entry(stream).or_default();
        *newest = (*newest).max(version);
    }
}

/// A condition's lastTransitionTime moves only when its status does.
pub(super) fn transitions_move_with_status(ground: &Ground<'_>, seen: &mut Vec<Violation>) {
    let written = ground.written();
    for plural in ["nodes", "pods", "deployments"] {
        for (key, versions) in ground.objects(plural) {
            // Pods of a history from elsewhere are played by whoever recorded it.
            if plural == "pods" && ground.scenario.observe {
                continue;
            }
            let touched = written.keys().any(|path| path.ends_with(&format!("/{plural}/{}/status", key.1)));
            if touched || (plural == "nodes" && ground.is_played(&key.1)) {
                continue;
            }
            for pair in versions.windows(2) {
                let [before, after] = pair else { continue };
                if before.gone || after.gone || after.blind_since.is_some() {
                    continue;
                }
                let (was, is) = (ground.view.object(before), ground.view.object(after));
                if was["metadata"]["uid"] != is["metadata"]["uid"] {
                    continue;
                }
                for condition in conditions(is) {
                    let Some(old) = conditions(was).iter().find(|old| old["type"] == condition["type"])
                    else {
                        continue;
                    };
                    let moved = old["lastTransitionTime"] != condition["lastTransitionTime"];
                    if moved && old["status"] == condition["status"] {
                        let message = format!(
                            "{plural} {}: lastTransitionTime of {} moved from {} to {} while its status stayed {}",
                            key.1,
                            condition["type"],
                            old["lastTransitionTime"],
                            condition["lastTransitionTime"],
                            condition["status"]
                        );
                        seen.push(ground.violation(
                            "lastTransitionTime moves only with status",
                            after,
                            message,
                        ));
                    }
                }
            }
        }
    }
}

/// A bound pod's node changes only through eviction, and then by way of none.
pub(super) fn nodes_change_by_eviction(ground: &Ground<'_>, seen: &mut Vec<Violation>) {
    for (key, versions) in ground.objects("pods") {
        for pair in versions.windows(2) {
            let [before, after] = pair else { continue };
            if before.gone || after.gone || after.blind_since.is_some() {
                continue;
            }
            let (was, is) = (ground.view.object(before), ground.view.object(after));
            if was["metadata"]["uid"] != is["metadata"]["uid"] {
                continue;
            }
            let node = |pod: &Value| pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
            let (old, new) = (node(was), node(is));
            if old.is_empty() || old == new {
                continue;
            }
            let evicted = new.is_empty()
                && (is["status"]["reason"] == "Evicted"
                    || conditions(is).iter().any(|condition| {
                        condition["type"] == "DisruptionTarget" && condition["status"] == "True"
                    }));
            if !evicted {
                let now = if new.is_empty() { "none, and it was not evicted".to_owned() } else { new };
                let message = format!("pod {}/{} went from node {old} to {now}", key.0, key.1);
                seen.push(ground.violation(
                    "a bound pod's node changes only through eviction",
                    after,
                    message,
                ));
            }
        }
    }
}

/// An unreachable taint comes only after the node's lease ran out.
pub(super) fn taints_follow_leases(ground: &Ground<'_>, seen: &mut Vec<Violation>) {
    let written = ground.written();
    let by_hand = |node: &str| {
        written.iter().any(|(path, bodies)| {
            path.contains(&format!("/nodes/{node}"))
                && bodies.iter().any(|body| body.to_string().contains(UNREACHABLE))
        })
    };
    for (key, versions) in ground.objects("nodes") {
        let renewals = renewals(ground, &key.1);
        let mut before: Vec<&Value> = Vec::new();
        for version in versions {
            let node = ground.view.object(version);
            let taints: Vec<&Value> = if version.gone { Vec::new() } else { unreachable_taints(node) };
            let fresh =
                taints.iter().find(|taint| !before.iter().any(|old| old["effect"] == taint["effect"]));
            if let Some(taint) = fresh.filter(|_| version.blind_since.is_none() && !by_hand(&key.1)) {
                let when = ground.view.interval(version);
                // A renewal that came just before may not have been seen by the check that decided.
                let known = renewals
                    .iter()
                    .rfind(|(renewal, _)| renewal.latest + ground.constants.slack < when.earliest);
                if let Some((renewal, length)) = known
                    && when.latest < renewal.earliest + *length
                {
                    let message = format!(
                        "node {} got the taint {}:{} though its lease was renewed at {renewal} and is good for {length:?}",
                        key.1,
                        UNREACHABLE,
                        taint["effect"].as_str().unwrap_or_default()
                    );
                    seen.push(ground.violation(
                        "unreachable taints only after a lease ran out",
                        version,
                        message,
                    ));
                }
            }
            before = taints;
        }
    }
}

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

fn unreachable_taints(node: &Value) -> Vec<&Value> {
    let taints = node["spec"]["taints"].as_array().map_or(&[][..], Vec::as_slice);
    taints.iter().filter(|taint| taint["key"] == UNREACHABLE).collect()
}

/// When a node's lease was renewed, and for how long each time: the shortest duration that it stated until it was
/// renewed again, since NODE-06 does not say which one counts when it changes between renewals.
fn renewals(ground: &Ground<'_>, node: &str) -> Vec<(Interval, Duration)> {
    let key = (LEASE_NAMESPACE.to_owned(), node.to_owned());
    let mut all: Vec<(Interval, Duration)> = Vec::new();
    let mut known = &Value::Null;
    let renewal = |version: &&Version| !version.gone;
    for version in ground.view.versions("leases", &key).iter().filter(renewal) {
        let lease = ground.view.object(version);
        let renewed = &lease["spec"]["renewTime"];
        let length = lease["spec"]["leaseDurationSeconds"].as_u64().map(Duration::from_secs);
        // NODE-21: a lease that does not say how long it lasts lasts the not-ready timeout, which is N.
        let length = length.unwrap_or(ground.constants.no_execute_delay);
        if renewed.is_null() {
            continue;
        }
        match all.last_mut() {
            Some((_, shortest)) if renewed == known => *shortest = length.min(*shortest),
            _ => all.push((ground.view.interval(version), length)),
        }
        known = renewed;
    }
    all
}

fn conditions(object: &Value) -> &[Value] {
    object["status"]["conditions"].as_array().map_or(&[], Vec::as_slice)
}
