//! SCHED-56: for each binding that the scheduler makes, the requests of all scheduler-bound pods which
//! the node's last status write does not cover, this one included, are within that write's allocatable.
//!
//! The scheduler is the control plane's own one. What another one binds it can neither refuse nor foresee, so pods of other
//! schedulers are left out like those bound by hand: they are not judged, and not counted against those that are.

use std::collections::{BTreeMap, BTreeSet};

use rigor_model::{Action, Profile};
use serde_json::Value;

use super::{Ground, Violation};
use crate::history::Fact;
use crate::index::{ObjectKey, Version};
use crate::quantity::Quantity;

/// What is counted besides memory.
const COUNTED: [&str; 7] = [
    "esp32.io/psram",
    "esp32.io/gpio",
    "esp32.io/i2c",
    "esp32.io/uart",
    "esp32.io/adc",
    "esp32.io/rmt-tx",
    "esp32.io/rmt-rx",
];

/// What a pod asks for that declares no memory at all, in bytes.
const UNDECLARED_MEMORY: &str = "16Ki";

/// Whose pods are the built-in scheduler's unless flags say otherwise, and the profile with this rule.
const DEFAULT: &str = "default-scheduler";
const PROFILE: &str = "kube32";

/// A node as its last status write left it.
struct Book<'a> {
    node: &'a Value,
    status: &'a Value,
    written: u64,
}

pub(super) fn nothing_overcommitted(ground: &Ground<'_>, seen: &mut Vec<Violation>) {
    if ground.scenario.profile == Profile::Upstream {
        return;
    }
    let by_hand = bound_by_hand(ground);
    let own = own_names(ground);
    let is_own = |pod: &Value| own.contains(pod["spec"]["schedulerName"].as_str().unwrap_or(DEFAULT));
    let mut versions: Vec<(u64, &str, &ObjectKey, &Version)> = Vec::new();
    for plural in ["nodes", "pods"] {
        for (key, all) in ground.objects(plural) {
            versions.extend(all.iter().map(|version| {
                (version.resource_version.unwrap_or(version.record as u64), plural, key, version)
            }));
        }
    }
    // A stream keeps the order in which it was written.
    let of_nodes = versions.iter().filter(|(_, plural, ..)| *plural == "nodes");
    let nodes_until = of_nodes.map(|(written, ..)| *written).max().unwrap_or_default();
    // The order in which the store was written, which streams that are watched apart do not keep.
    versions.sort_by_key(|(written, _, _, version)| (*written, version.record));
    let mut books: BTreeMap<&str, Book<'_>> = BTreeMap::new();
    let mut pods: BTreeMap<&ObjectKey, (u64, &Value)> = BTreeMap::new();
    for (written, plural, key, version) in versions {
        let object = ground.view.object(version);
        if plural == "nodes" {
            if version.gone {
                books.remove(key.1.as_str());
                continue;
            }
            let status = &object["status"];
            match books.get_mut(key.1.as_str()) {
                // Somebody wrote something else of the node.
                Some(book) if book.status == status && !repeats(book.node, object) => book.node = object,
                Some(_) | None => {
                    books.insert(&key.1, Book { node: object, status, written });
                }
            }
            continue;
        }
        if version.gone {
            pods.remove(key);
            continue;
        }
        let before = pods.insert(key, (written, object)).map(|(_, pod)| node_of(pod));
        let node = node_of(object);
        let newly = !node.is_empty() && before.unwrap_or_default() != node && version.blind_since.is_none();
        // A write of the node that came before may still be under way.
        let view = &ground.view;
        let settled = view.exact() || view.now() >= version.at + view.lag() || written < nodes_until;
        if !newly
            || !settled
            || !is_own(object)
            || by_hand.contains(&key.1)
            || by_hand
                .iter()
                .any(|prefix| prefix.ends_with('*') && key.1.starts_with(prefix.trim_end_matches('*')))
        {
            continue;
        }
        let Some(book) = books.get(node) else { continue };
        for resource in std::iter::once("memory").chain(COUNTED) {
            let Some(free) = offered(book.status, resource) else { continue };
            let uncovered = pods.iter().filter(|(other, (changed, pod))| {
                node_of(pod) == node
                    && is_own(pod)
                    && !by_hand.contains(&other.1)
                    && !finished(pod)
                    && (**other == key || *changed > book.written || pending(pod))
            });
            let asked: i128 = uncovered.map(|(_, (_, pod))| requested(pod, resource)).sum();
            if asked > free && requested(object, resource) > 0 {
                let message = format!(
                    "pod {}/{} was bound to {node}, where pods that its last status write does not cover now ask for {} of {resource}, and it offered {}",
                    key.0,
                    key.1,
                    shown(asked),
                    shown(free)
                );
                seen.push(ground.violation("no binding over-commits (SCHED-56)", version, message));
            }
        }
    }
}

/// The names by which pods ask for the control plane's own scheduler with this rule of accounting, as its flags say; a name under
/// which the scenario started a scheduler is that one's.
fn own_names(ground: &Ground<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::from([DEFAULT.to_owned()]);
    for flag in &ground.scenario.flags {
        let named = match flag.split_once('=') {
            Some(("--default-scheduler-profile", profile)) => Some((DEFAULT, profile)),
            Some(("--scheduler-profile", named)) => named.split_once('='),
            Some(_) | None => None,
        };
        match named {
            Some((name, PROFILE)) => names.insert(name.to_owned()),
            Some((name, _)) => names.remove(name),
            None => false,
        };
    }
    for act in ground.view.acts() {
        if let Fact::Scheduler { name, .. } = &act.fact {
            names.remove(name);
        }
    }
    names
}

/// Names of pods that the scenario bound itself, or created with a node (a `*` ends a generated name).
fn bound_by_hand(ground: &Ground<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for record in ground.view.requests() {
        let Fact::Request { method, path, body, .. } = &record.fact else { continue };
        if method != "POST" {
            continue;
        }
        let path = path.split('?').next().unwrap_or_default();
        if let Some(pod) = path.strip_suffix("/binding").and_then(|path| path.rsplit('/').next()) {
            names.insert(pod.to_owned());
        }
        let Some(body) = body else { continue };
        let metadata = &body["metadata"];
        if path.ends_with("/bindings") {
            names.extend(metadata["name"].as_str().map(str::to_owned));
        }
        if path.ends_with("/pods") && body["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty()) {
            names.extend(metadata["name"].as_str().map(str::to_owned));
            names.extend(metadata["generateName"].as_str().map(|prefix| format!("{prefix}*")));
        }
    }
    // What kubectl was given is not recorded; a scenario that binds through it is left alone.
    let through_kubectl = ground.scenario.plan.iter().any(|step| {
        matches!(&step.action, Action::Kubectl(kubectl) if kubectl.args.iter().any(|arg| arg.contains("binding")))
    });
    // So is one that writes into the store itself.
    let past_the_server =
        ground.view.acts().any(|act| matches!(&act.fact, Fact::Etcdctl(ran) if !ran.gets()));
    if through_kubectl || past_the_server {
        names.insert("*".to_owned());
    }
    names
}

/// Whether a version of a node says nothing new, but for what control planes note on it: its status was written again.
fn repeats(old: &Value, new: &Value) -> bool {
    let rest = |node: &Value| {
        let (mut metadata, spec) = (node["metadata"].clone(), node["spec"].clone());
        metadata["resourceVersion"].take();
        // Says who wrote what and when: of a write that changes nothing else too.
        metadata["managedFields"].take();
        let noted = metadata["annotations"].take();
        let noted = noted.as_object().cloned().unwrap_or_default().into_iter();
        let noted: Vec<_> = noted.filter(|(key, _)| !key.starts_with("control-plane.rigor.dev/")).collect();
        (metadata, noted, spec)
    };
    rest(old) == rest(new)
}

fn node_of(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

fn finished(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// Bound and not running yet, or with a container that waits to start again.
fn pending(pod: &Value) -> bool {
    let containers = pod["status"]["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
    pod["status"]["phase"] != "Running"
        || containers.iter().any(|container| container["state"]["waiting"].is_object())
}

/// What a node offers of a resource; nothing where its status has no such figure.
fn offered(status: &Value, resource: &str) -> Option<i128> {
    let figures =
        if status["allocatable"].is_object() { &status["allocatable"] } else { &status["capacity"] };
    Quantity::read(figures.get(resource)?).map(Quantity::nano)
}

/// What a pod asks for of a resource.
fn requested(pod: &Value, resource: &str) -> i128 {
    let containers = pod["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    let declared: Vec<i128> = containers
        .iter()
        .filter_map(|container| {
            let resources = &container["resources"];
            let figure = resources["requests"].get(resource).or_else(|| resources["limits"].get(resource))?;
            Some(asked(figure))
        })
        .collect();
    if declared.is_empty() && resource == "memory" {
        return Quantity::read(&Value::String(UNDECLARED_MEMORY.to_owned())).map_or(0, Quantity::nano);
    }
    declared.into_iter().sum()
}

/// A figure as this scheduler reads it: with a suffix that it does not know it counts 0 (SCHED-20).
fn asked(figure: &Value) -> i128 {
    let suffix =
        figure.as_str().map_or("", |text| text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
    if !matches!(suffix, "" | "Ki" | "Mi" | "Gi" | "k" | "M" | "G" | "m") {
        return 0;
    }
    Quantity::read(figure).map_or(0, Quantity::nano)
}

fn shown(nano: i128) -> String {
    (nano / 1_000_000_000).to_string()
}
