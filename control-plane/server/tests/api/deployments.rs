//! DEPL rows that need the API, the store and the scheduler together; the decision's own tables are core's.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{DEPLOYMENTS, PASS, PODS, Rig, board, condition};

const SLACK: Duration = Duration::from_millis(50);

fn deployment(replicas: u64) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "rigor.dev/pause"}]},
            },
        },
    })
}

fn pods(rig: &Rig) -> Vec<Value> {
    rig.list(&format!("{PODS}?labelSelector=app%3Dweb"))
}

fn web(rig: &Rig) -> Value {
    rig.get(&format!("{DEPLOYMENTS}/web"))
}

fn run_all(rig: &Rig) {
    for pod in pods(rig) {
        let (name, node) = (pod["metadata"]["name"].as_str().unwrap(), pod["spec"]["nodeName"].as_str());
        if let Some(node) = node
            && pod["status"]["phase"] == "Pending"
        {
            rig.run(node, name);
        }
    }
}

fn running(replicas: u64) -> Rig {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.join("b", &board());
    rig.create(DEPLOYMENTS, &deployment(replicas));
    rig.until(PASS + SLACK, |rig| pods(rig).len() as u64 == replicas);
    run_all(&rig);
    rig.pass(PASS * 2);
    rig
}

#[test]
fn depl_01_missing_pods_are_made_and_owned() {
    let rig = Rig::new();
    rig.join("a", &board());
    let made = rig.create(DEPLOYMENTS, &deployment(3));
    let took = rig.until(PASS + SLACK, |rig| pods(rig).len() == 3);
    assert!(took <= PASS + SLACK, "{took:?}");
    for pod in pods(&rig) {
        let owner = &pod["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], made["metadata"]["uid"]);
        assert_eq!((&owner["kind"], &owner["controller"]), (&json!("Deployment"), &json!(true)));
        assert!(pod["metadata"]["labels"]["pod-template-hash"].is_string());
        assert_eq!(pod["spec"]["nodeName"], "a");
    }
    assert_eq!(rig.list("/apis/apps/v1/replicasets").len(), 0);
}

#[test]
fn node_14_a_deployments_pods_carry_the_default_tolerations() {
    let rig = running(1);
    let tolerations = pods(&rig)[0]["spec"]["tolerations"].as_array().unwrap().len();
    assert_eq!(tolerations, 2);
}

#[test]
fn depl_02_and_07_scaling_goes_down_to_nothing_and_back() {
    let rig = running(3);
    let scale = format!("{DEPLOYMENTS}/web/scale");
    assert_eq!(rig.get(&scale)["spec"]["replicas"], 3);
    assert_eq!(rig.get(&scale)["status"]["selector"], "app=web");
    rig.patch(&scale, &json!({"spec": {"replicas": 0}}));
    let live =
        |rig: &Rig| pods(rig).iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).count();
    rig.until(PASS + SLACK, |rig| live(rig) == 0);
    let mut whole = rig.get(&scale);
    whole["spec"]["replicas"] = json!(2);
    rig.call("PUT", &scale, &whole).expect(200);
    rig.until(PASS * 2 + SLACK, |rig| live(rig) == 2);
}

#[test]
fn depl_05_generation_follows_the_spec_and_is_observed() {
    let rig = running(1);
    let path = format!("{DEPLOYMENTS}/web");
    assert_eq!(web(&rig)["metadata"]["generation"], 1);
    rig.patch(&path, &json!({"metadata": {"labels": {"x": "y"}}}));
    assert_eq!(web(&rig)["metadata"]["generation"], 1);
    rig.patch(&path, &json!({"spec": {"replicas": 2}}));
    assert_eq!(web(&rig)["metadata"]["generation"], 2);
    rig.until(PASS + SLACK, |rig| web(rig)["status"]["observedGeneration"] == 2);
}

#[test]
fn depl_06_and_12_the_status_tells_what_is_available() {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.create(DEPLOYMENTS, &deployment(2));
    rig.pass(PASS * 2);
    assert_eq!(condition(&web(&rig), "Available"), "False");
    assert_eq!(web(&rig)["status"]["unavailableReplicas"], 2);
    run_all(&rig);
    rig.pass(PASS * 2);
    let status = web(&rig)["status"].clone();
    for field in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
        assert_eq!(status[field], 2, "{field}");
    }
    assert_eq!(status["unavailableReplicas"], Value::Null);
    assert_eq!(condition(&web(&rig), "Available"), "True");
    assert_eq!(condition(&web(&rig), "Progressing"), "True");
}

#[test]
fn depl_04_a_new_template_replaces_one_pod_a_pass() {
    let rig = running(3);
    let old: BTreeSet<String> = pods(&rig).iter().map(|pod| pod["metadata"]["uid"].to_string()).collect();
    let image = json!([{"name": "c", "image": "rigor.dev/builtin"}]);
    rig.patch(&format!("{DEPLOYMENTS}/web"), &json!({"spec": {"template": {"spec": {"containers": image}}}}));
    for _ in 0..40 {
        rig.pass(PASS / 2);
        let now = pods(&rig);
        let live = now.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        assert!(live.count() >= 2, "never more than one below");
        // The boards do their part: what is being deleted goes, what is bound runs.
        for pod in now.iter().filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null()) {
            let (name, node) =
                (pod["metadata"]["name"].as_str().unwrap(), pod["spec"]["nodeName"].as_str().unwrap());
            let path = format!("{PODS}/{name}?gracePeriodSeconds=0");
            rig.call_as(&format!("{node}-token"), "DELETE", &path, &Value::Null).expect(200);
        }
        run_all(&rig);
    }
    let now = pods(&rig);
    assert_eq!(now.len(), 3);
    assert!(now.iter().all(|pod| !old.contains(&pod["metadata"]["uid"].to_string())));
    assert_eq!(web(&rig)["status"]["updatedReplicas"], 3);
}

#[test]
fn depl_03_pods_go_with_their_deployment_unless_orphaned() {
    let rig = running(2);
    let orphan = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"});
    rig.call("DELETE", &format!("{DEPLOYMENTS}/web"), &orphan).expect(200);
    rig.pass(PASS * 2);
    assert_eq!(rig.call("GET", &format!("{DEPLOYMENTS}/web"), &Value::Null).status, 404);
    assert_eq!(pods(&rig).len(), 2);
    assert!(pods(&rig).iter().all(|pod| pod["metadata"]["ownerReferences"].is_null()));

    let rig = running(2);
    rig.delete(&format!("{DEPLOYMENTS}/web"));
    rig.pass(PASS * 2);
    assert!(pods(&rig).iter().all(|pod| pod["metadata"]["deletionTimestamp"].is_string()));
}

#[test]
fn depl_09_the_selector_must_match_and_stays() {
    let rig = Rig::new();
    let mut wrong = deployment(1);
    wrong["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    let message = rig.call("POST", DEPLOYMENTS, &wrong).refused(422);
    assert!(message.contains("`selector` does not match template `labels`"), "{message}");
    rig.create(DEPLOYMENTS, &deployment(1));
    let change = json!({"spec": {"selector": {"matchLabels": {"app": "web", "x": "y"}}}});
    assert_eq!(rig.call("PATCH", &format!("{DEPLOYMENTS}/web"), &change).status, 422);
}

#[test]
fn depl_10_a_pod_deleted_by_hand_is_replaced_and_an_evicted_one_is_not() {
    let rig = running(2);
    let name = pods(&rig)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    rig.call("DELETE", &format!("{PODS}/{name}?gracePeriodSeconds=0"), &Value::Null).expect(200);
    rig.until(PASS + SLACK, |rig| pods(rig).len() == 2);

    let rig = Rig::with(|config| config.eviction_timeout = Duration::from_secs(5));
    rig.join("a", &board());
    rig.create(DEPLOYMENTS, &deployment(2));
    rig.pass(PASS * 2);
    run_all(&rig);
    let uids =
        |rig: &Rig| pods(rig).iter().map(|pod| pod["metadata"]["uid"].to_string()).collect::<BTreeSet<_>>();
    let before = uids(&rig);
    rig.pass(Duration::from_secs(60));
    assert!(pods(&rig).iter().all(|pod| pod["spec"]["nodeName"].is_null()), "evicted");
    assert_eq!(uids(&rig), before);
}

#[test]
fn depl_11_and_13_pods_of_others_are_left_alone() {
    let rig = Rig::new();
    rig.join("a", &board());
    let bare = |name: &str, owners: Value| {
        let mut pod = crate::rig::pod(name, &json!({}));
        pod["metadata"]["labels"] = json!({"app": "web"});
        pod["metadata"]["ownerReferences"] = owners;
        rig.create(PODS, &pod);
    };
    bare("bare", Value::Null);
    rig.create("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "boss"}}));
    let boss = rig.get("/api/v1/namespaces/default/configmaps/boss");
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "uid": boss["metadata"]["uid"], "controller": true});
    bare("owned", json!([owner]));
    rig.create(DEPLOYMENTS, &deployment(2));
    rig.pass(PASS * 3);
    assert_eq!(pods(&rig).len(), 4);
    assert_eq!(rig.pod("bare")["metadata"]["ownerReferences"], Value::Null);
    assert_eq!(rig.pod("owned")["metadata"]["ownerReferences"][0]["kind"], "ConfigMap");
    assert_eq!(web(&rig)["status"]["replicas"], 2);
}
