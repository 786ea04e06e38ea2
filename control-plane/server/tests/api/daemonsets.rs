//! DS rows that need the API, the store and the scheduler together; the decision's own tables are core's.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{PASS, PODS, RETRY, Rig, board, pod};

const DAEMONSETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
const SLACK: Duration = Duration::from_millis(50);

fn agent() -> Value {
    json!({
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "c", "image": "rigor.dev/pause"}]},
            },
        },
    })
}

/// Nodes of the pods, in order.
fn nodes(rig: &Rig) -> Vec<String> {
    let pods = rig.list(&format!("{PODS}?labelSelector=app%3Dagent"));
    let mut nodes: Vec<String> =
        pods.iter().map(|pod| pod["spec"]["nodeName"].as_str().unwrap_or("-").to_owned()).collect();
    nodes.sort();
    nodes
}

fn run_all(rig: &Rig) {
    for pod in rig.list(PODS) {
        if let Some(node) = pod["spec"]["nodeName"].as_str()
            && pod["status"]["phase"] == "Pending"
        {
            rig.run(node, pod["metadata"]["name"].as_str().unwrap());
        }
    }
}

fn two() -> Rig {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.join("b", &board());
    rig.create(DAEMONSETS, &agent());
    rig.pass(PASS);
    run_all(&rig);
    rig.pass(PASS);
    rig
}

#[test]
fn ds_01_and_02_each_node_has_its_pod_from_joining_to_leaving() {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.create(DAEMONSETS, &agent());
    rig.until(PASS + SLACK, |rig| nodes(rig) == ["a"]);
    rig.join("b", &board());
    rig.until(PASS + RETRY + SLACK, |rig| nodes(rig) == ["a", "b"]);
    run_all(&rig);
    rig.pass(PASS * 2);
    let status = rig.get(&format!("{DAEMONSETS}/agent"))["status"].clone();
    assert_eq!(
        status,
        json!({
            "currentNumberScheduled": 2, "desiredNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 2,
            "updatedNumberScheduled": 2, "numberAvailable": 2, "observedGeneration": 1,
        })
    );
    rig.delete("/api/v1/nodes/b");
    rig.until(PASS + RETRY + SLACK, |rig| nodes(rig) == ["a"]);
    let events = rig.events("agent", "SuccessfulCreate");
    assert_eq!(events.len(), 2, "each names its pod: {events:?}");
    assert_eq!(rig.events("agent", "SuccessfulDelete").len(), 1);
}

#[test]
fn ds_08_pods_go_with_their_daemon_set_or_are_let_go_of() {
    for (how, left) in [("Background", 0), ("Foreground", 0), ("Orphan", 2), ("", 0)] {
        let rig = two();
        let query = if how.is_empty() { String::new() } else { format!("?propagationPolicy={how}") };
        rig.delete(&format!("{DAEMONSETS}/agent{query}"));
        for _ in 0..3 {
            for pod in rig.list(PODS) {
                let name = pod["metadata"]["name"].as_str().unwrap();
                if pod["metadata"]["deletionTimestamp"].is_string() {
                    let path = format!("{PODS}/{name}?gracePeriodSeconds=0");
                    rig.delete(&path);
                }
            }
            rig.pass(PASS);
        }
        let pods = rig.list(PODS);
        assert_eq!(pods.len(), left, "{how}");
        assert!(pods.iter().all(|pod| pod["metadata"]["ownerReferences"].is_null()), "{how}");
        assert_eq!(rig.list(DAEMONSETS).len(), 0, "{how}");
    }
}

#[test]
fn node_17_pods_of_a_daemon_set_outlast_their_nodes_outage() {
    let rig = two();
    rig.create(PODS, &pod("other", &json!({})));
    rig.pass_alive(Duration::from_secs(400), &["b"]);
    assert_eq!(nodes(&rig), ["a", "b"]);
    assert_eq!(rig.list("/api/v1/events?fieldSelector=reason%3DEvicted").len(), 1, "of the other pod alone");
}

#[test]
fn a_pass_finds_what_happened_after_it_had_come_to_rest() {
    let rig = two();
    rig.pass(PASS * 3);
    let name = rig.list(PODS)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    rig.delete(&format!("{PODS}/{name}?gracePeriodSeconds=0"));
    rig.until(PASS + SLACK, |rig| nodes(rig).len() == 2);
    let template = json!({"spec": {"template": {"metadata": {"annotations": {"note": "2"}}}}});
    rig.patch(&format!("{DAEMONSETS}/agent"), &template);
    rig.until(PASS + SLACK, |rig| {
        rig.list(PODS).iter().any(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    });
}

/// A pod that was refused is tried again with every pass, though nothing that the pass looks at changes.
#[test]
fn a_refused_pod_is_tried_again() {
    let rig = Rig::with(|config| config.controllers = "*,-serviceaccount".parse().unwrap());
    rig.join("a", &board());
    let account = "/api/v1/namespaces/default/serviceaccounts";
    rig.call("DELETE", &format!("{account}/default"), &Value::Null);
    rig.create(DAEMONSETS, &agent());
    rig.pass(PASS * 3);
    assert_eq!(nodes(&rig), [""; 0]);
    rig.create(account, &json!({"metadata": {"name": "default"}}));
    rig.until(PASS + SLACK, |rig| nodes(rig) == ["a"]);
}
