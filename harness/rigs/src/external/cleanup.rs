//! Takes away what trials made on somebody else's cluster: at a trial's end from what it knows, and before the next
//! trial by the label, where a run was killed. Only under the cluster's lock, so that what bears the label is nobody's.

use super::connection::Connection;
use super::scope::{BOARDS_ANNOTATION, Scope, TRIAL_LABEL};
use crate::clock::Clock;
use rigor_model::kinds::LEASE_NAMESPACE;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a namespace may take to go.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long boards get to stop their pods before the pods are deleted without them.
const GRACE: Duration = Duration::from_secs(8);

const LOOK: Duration = Duration::from_millis(200);

/// What was taken away, and what could not be.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// `node n1`, `namespace rigor-1`.
    pub(crate) removed: Vec<String>,
    /// The same with the reason.
    pub(crate) left: Vec<String>,
}

impl Outcome {
    async fn delete(&mut self, connection: &Connection, what: String, path: &str) {
        let answer = connection.own("DELETE", path, None).await;
        match answer.status {
            200..=299 => self.removed.push(what),
            404 => {}
            status => {
                let why = answer.error.unwrap_or_else(|| format!("answered {status}"));
                self.left.push(format!("{what} ({why})"));
            }
        }
    }
}

fn namespace_path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}")
}

fn lease_path(name: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases/{name}")
}

/// What of a board's Node a scenario may change and its kubelet does not put right.
pub(crate) fn kept(node: &Value) -> Value {
    let taints: Vec<Value> = node["spec"]["taints"]
        .as_array()
        .into_iter()
        .flatten()
        // These follow the node's condition and are their controller's.
        .filter(|taint| !taint["key"].as_str().unwrap_or_default().starts_with("node.kubernetes.io/"))
        .cloned()
        .collect();
    json!({
        "labels": node["metadata"]["labels"],
        "annotations": node["metadata"]["annotations"],
        "unschedulable": node["spec"]["unschedulable"],
        "taints": taints,
    })
}

/// The merge patch that makes a mapping what it was; empty where it still is.
fn back(before: &Value, now: &Value) -> Map<String, Value> {
    let none = Map::new();
    let (before, now) = (before.as_object().unwrap_or(&none), now.as_object().unwrap_or(&none));
    let gone = now.keys().filter(|key| !before.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let other = before.iter().filter(|(key, value)| now.get(*key) != Some(value));
    gone.chain(other.map(|(key, value)| (key.clone(), value.clone()))).collect()
}

/// The patch that puts a board's Node right; `None` where nothing is to be done.
pub(crate) fn restoring(before: &Value, node: &Value) -> Option<Value> {
    let now = kept(node);
    let mut metadata = Map::new();
    for key in ["labels", "annotations"] {
        let patch = back(&before[key], &now[key]);
        if !patch.is_empty() {
            metadata.insert(key.to_owned(), Value::Object(patch));
        }
    }
    let mut spec = Map::new();
    if before["unschedulable"] != now["unschedulable"] {
        spec.insert("unschedulable".to_owned(), before["unschedulable"].clone());
    }
    if before["taints"] != now["taints"] {
        let of_conditions = node["spec"]["taints"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|taint| taint["key"].as_str().unwrap_or_default().starts_with("node.kubernetes.io/"));
        let taints: Vec<Value> =
            before["taints"].as_array().into_iter().flatten().chain(of_conditions).cloned().collect();
        spec.insert("taints".to_owned(), if taints.is_empty() { Value::Null } else { taints.into() });
    }
    if metadata.is_empty() && spec.is_empty() {
        return None;
    }
    Some(json!({"metadata": metadata, "spec": spec}))
}

/// Takes away what a trial made.
pub(crate) async fn after_trial(
    connection: &Connection,
    scope: &Scope,
    before: &BTreeMap<String, Value>,
) -> Outcome {
    let mut outcome = Outcome::default();
    for path in scope.others.iter().rev() {
        outcome.delete(connection, path.clone(), path).await;
    }
    for board in &scope.touched {
        if let Some(before) = before.get(board) {
            put_right(connection, board, before, &mut outcome).await;
        }
    }
    let boards: BTreeSet<String> = scope.boards.values().cloned().collect();
    empty(connection, &scope.namespace, &boards, &mut outcome).await;
    nodes(connection, &scope.nodes, &mut outcome).await;
    for lease in &scope.leases {
        outcome.delete(connection, format!("lease {lease}"), &lease_path(lease)).await;
    }
    outcome
}

/// Makes a board's Node what it was.
async fn put_right(connection: &Connection, board: &str, before: &Value, outcome: &mut Outcome) {
    let path = format!("/api/v1/nodes/{board}");
    let now = connection.own("GET", &path, None).await;
    if now.status == 404 {
        return;
    }
    let Some(patch) = restoring(before, &now.body.unwrap_or_default()) else { return };
    let answer = connection.own("PATCH", &path, Some(&patch)).await;
    match answer.status {
        200 => outcome.removed.push(format!("changes of the Node {board}")),
        status => outcome.left.push(format!("changes of the Node {board} (answered {status})")),
    }
}

/// Takes away what bears the label.
pub(crate) async fn sweep(connection: &Connection) -> Outcome {
    let mut outcome = Outcome::default();
    let listed = |plural: &'static str| async move {
        let answer = connection.own("GET", &format!("{plural}?labelSelector={TRIAL_LABEL}"), None).await;
        let items = answer.body.and_then(|mut body| body["items"].as_array_mut().map(std::mem::take));
        items.unwrap_or_default()
    };
    let names = |items: &[Value]| -> BTreeSet<String> {
        items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
    };
    let namespaces = listed("/api/v1/namespaces").await;
    for namespace in &namespaces {
        let text = namespace["metadata"]["annotations"][BOARDS_ANNOTATION].as_str().unwrap_or_default();
        let boards: BTreeMap<String, Value> = serde_json::from_str(text).unwrap_or_default();
        for (board, before) in &boards {
            put_right(connection, board, before, &mut outcome).await;
        }
    }
    for namespace in names(&namespaces) {
        empty(connection, &namespace, &BTreeSet::new(), &mut outcome).await;
    }
    nodes(connection, &names(&listed("/api/v1/nodes").await), &mut outcome).await;
    let leases = listed("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases").await;
    for lease in names(&leases) {
        outcome.delete(connection, format!("lease {lease}"), &lease_path(&lease)).await;
    }
    outcome
}

/// Deletes a namespace and waits until it is gone. Pods whose node has nobody who could confirm their end (a played one)
/// would hold it up for good, so they are deleted without.
async fn empty(connection: &Connection, namespace: &str, boards: &BTreeSet<String>, outcome: &mut Outcome) {
    let path = namespace_path(namespace);
    let clock = Clock::start();
    let first = connection.own("DELETE", &path, None).await;
    if first.status == 404 {
        return;
    }
    let mut said = first.error.unwrap_or_else(|| format!("answered {}", first.status));
    while clock.now().as_duration() < PATIENCE {
        let answer = connection.own("GET", &path, None).await;
        match answer.status {
            404 => return outcome.removed.push(format!("namespace {namespace}")),
            0 => {
                outcome.left.push(format!("namespace {namespace} ({})", answer.error.unwrap_or(said)));
                return;
            }
            _ => {}
        }
        if answer.body.is_some_and(|body| body["metadata"]["deletionTimestamp"].is_null()) {
            let again = connection.own("DELETE", &path, None).await;
            said = again.error.unwrap_or_else(|| format!("answered {}", again.status));
        }
        let pods = connection.own("GET", &format!("{path}/pods"), None).await.body.unwrap_or_default();
        for pod in pods["items"].as_array().into_iter().flatten() {
            let on_board = pod["spec"]["nodeName"].as_str().is_some_and(|node| boards.contains(node));
            if on_board && clock.now().as_duration() < GRACE {
                continue;
            }
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
            connection.own("DELETE", &format!("{path}/pods/{name}"), Some(&options)).await;
        }
        Clock::pause(LOOK).await;
    }
    outcome
        .left
        .push(format!("namespace {namespace} (it did not go within {} s; {said})", PATIENCE.as_secs()));
}

/// Deletes nodes with their leases and with the events about them, which are in `default`.
async fn nodes(connection: &Connection, names: &BTreeSet<String>, outcome: &mut Outcome) {
    if names.is_empty() {
        return;
    }
    for name in names {
        outcome.delete(connection, format!("node {name}"), &format!("/api/v1/nodes/{name}")).await;
        outcome.delete(connection, format!("lease {name}"), &lease_path(name)).await;
    }
    let path = "/api/v1/namespaces/default/events";
    let events =
        connection.own("GET", &format!("{path}?fieldSelector=involvedObject.kind=Node"), None).await.body;
    for event in events.unwrap_or_default()["items"].as_array().into_iter().flatten() {
        let about = event["involvedObject"]["name"].as_str().unwrap_or_default();
        let name = event["metadata"]["name"].as_str().unwrap_or_default();
        if event["involvedObject"]["kind"] == "Node" && names.contains(about) {
            // Events go by themselves after a while, and who may not delete them leaves them to that.
            connection.own("DELETE", &format!("{path}/{name}"), None).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boards_node_is_put_right_and_what_its_condition_says_is_left_alone() {
        let before = json!({"metadata": {"labels": {"k": "v", "zone": "x"}, "annotations": {"heap": "1"}}, "spec": {"taints": [{"key": "own"}]}});
        let kept = kept(&before);
        assert_eq!(restoring(&kept, &before), None);
        let now = json!({
            "metadata": {"labels": {"k": "w", "new": "n"}, "annotations": {"heap": "1"}},
            "spec": {"unschedulable": true, "taints": [{"key": "node.kubernetes.io/unreachable"}, {"key": "test"}]},
        });
        assert_eq!(
            restoring(&kept, &now),
            Some(json!({
                "metadata": {"labels": {"k": "v", "zone": "x", "new": null}},
                "spec": {"unschedulable": null, "taints": [{"key": "own"}, {"key": "node.kubernetes.io/unreachable"}]},
            }))
        );
        let only_condition = json!({
            "metadata": {"labels": {"k": "v", "zone": "x"}, "annotations": {"heap": "1"}},
            "spec": {"taints": [{"key": "own"}, {"key": "node.kubernetes.io/not-ready"}]},
        });
        assert_eq!(restoring(&kept, &only_condition), None);
    }
}
