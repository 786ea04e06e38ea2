//! A cluster that others can use has to be quiet before a trial begins: a pod of theirs that waits for a node would be
//! bound to one of the trial's, and a board that is already in trouble proves nothing.

use super::connection::Connection;
use crate::clock::Clock;
use crate::world::{ApiAnswer, Infra};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a cluster may take to become quiet.
const PATIENCE: Duration = Duration::from_secs(45);

const LOOK: Duration = Duration::from_millis(500);

/// Waits until the cluster is quiet; the boards' Nodes as they are then.
pub(crate) async fn wait(
    connection: &Connection,
    boards: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Value>, Infra> {
    let clock = Clock::start();
    loop {
        match look(connection, boards).await {
            Ok(nodes) => return Ok(nodes),
            Err(why) if clock.now().as_duration() >= PATIENCE => {
                return Err(Infra::transient(format!("the cluster is not quiet: {why}")));
            }
            Err(_) => Clock::pause(LOOK).await,
        }
    }
}

async fn look(
    connection: &Connection,
    boards: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Value>, String> {
    let pending = "/api/v1/pods?fieldSelector=spec.nodeName=,status.phase=Pending&limit=50";
    let pods = answered(connection.own("GET", pending, None).await)?;
    if let Some(pod) = pods["items"].as_array().and_then(|items| items.iter().find(|pod| waits(pod))) {
        let text = |key: &str| pod["metadata"][key].as_str().unwrap_or_default().to_owned();
        return Err(format!("the pod {}/{} waits for a node", text("namespace"), text("name")));
    }
    let mut nodes = BTreeMap::new();
    for node in boards.values() {
        let object = answered(connection.own("GET", &format!("/api/v1/nodes/{node}"), None).await)?;
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}");
        let answer = connection.own("GET", &path, None).await;
        let date = answer.headers.get("date").cloned();
        let lease = answered(answer)?;
        if let Some(trouble) = trouble(&object, &lease, date.as_deref()) {
            return Err(format!("the Node {node} {trouble}"));
        }
        nodes.insert(node.clone(), object);
    }
    Ok(nodes)
}

fn answered(answer: ApiAnswer) -> Result<Value, String> {
    match (answer.status, answer.body) {
        (200, Some(body)) => Ok(body),
        (status, _) => Err(answer.error.unwrap_or_else(|| format!("a read was answered {status}"))),
    }
}

/// Whether a pod could be bound at any time. A gated one, or one that is on its way out, cannot.
fn waits(pod: &Value) -> bool {
    let gated = pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty()
        && pod["metadata"]["deletionTimestamp"].is_null()
        && !gated
}

/// What is wrong with a board's Node, if anything.
fn trouble(node: &Value, lease: &Value, date: Option<&str>) -> Option<String> {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions
        .filter(|condition| condition["type"] == "Ready")
        .map(|condition| &condition["status"])
        .next();
    if ready != Some(&Value::from("True")) {
        return Some("is not Ready".to_owned());
    }
    if let Some(taint) = node["spec"]["taints"].as_array().and_then(|taints| taints.first()) {
        return Some(format!("has the taint {}", taint["key"].as_str().unwrap_or_default()));
    }
    if node["spec"]["unschedulable"] == true {
        return Some("is cordoned".to_owned());
    }
    let renewed = lease["spec"]["renewTime"].as_str()?.parse::<Timestamp>().ok()?;
    let length = Duration::from_secs(lease["spec"]["leaseDurationSeconds"].as_u64()?);
    let now = jiff::fmt::rfc2822::parse(date?).ok()?.timestamp();
    let over = renewed.checked_add(length).is_ok_and(|end| end < now);
    over.then(|| format!("has a lease that was last renewed at {renewed}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_board_in_trouble_is_told_by_its_trouble() {
        let node = |ready: &str, spec: Value| json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}, "spec": spec});
        let lease = json!({"spec": {"renewTime": "2026-11-30T12:00:00.000000Z", "leaseDurationSeconds": 40}});
        let date = Some("Mon, 30 Nov 2026 12:00:30 GMT");
        for (node, date, expected) in [
            (node("True", json!({})), date, None),
            (node("False", json!({})), date, Some("is not Ready")),
            (json!({}), date, Some("is not Ready")),
            (node("True", json!({"taints": [{"key": "k"}]})), date, Some("has the taint k")),
            (node("True", json!({"unschedulable": true})), date, Some("is cordoned")),
            (
                node("True", json!({})),
                Some("Mon, 30 Nov 2026 12:00:41 GMT"),
                Some("has a lease that was last renewed at 2026-11-30T12:00:00Z"),
            ),
        ] {
            assert_eq!(trouble(&node, &lease, date).as_deref(), expected, "{node}");
        }
    }

    #[test]
    fn only_a_pod_that_could_be_bound_disturbs() {
        for (pod, expected) in [
            (json!({"spec": {}}), true),
            (json!({"spec": {"nodeName": "n"}}), false),
            (json!({"spec": {"schedulingGates": [{"name": "g"}]}}), false),
            (json!({"metadata": {"deletionTimestamp": "t"}, "spec": {}}), false),
        ] {
            assert_eq!(waits(&pod), expected, "{pod}");
        }
    }
}
