//! SCHED-01 … SCHED-05 and SCHED-50 … SCHED-56: binding at creation, and the retries.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use control_plane::config::Controllers;
use control_plane::store::{RedbStore, Scope, Store};
use control_plane::{Config, ControlPlane, SystemClock};
use control_plane_core::reports;
use futures_util::FutureExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::rig::{PODS, RETRY, Rig, board, condition, foreign, pod};

#[test]
fn sched_01_a_pod_is_bound_inside_the_create_request() {
    let rig = Rig::new();
    rig.join("a", &board());
    let made = rig.create(PODS, &pod("p", &json!({"memory": "64Ki"})));
    assert_eq!(made["spec"]["nodeName"], "a");
    assert_eq!(condition(&made, "PodScheduled"), "True");
    assert_eq!(made, rig.pod("p"));
}

#[test]
fn sched_54_a_binding_is_told_by_an_event() {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.create(PODS, &pod("p", &json!({})));
    let events = rig.events("p", "Scheduled");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["message"], "Successfully assigned default/p to a");
    assert_eq!(events[0]["type"], "Normal");
}

#[test]
fn sched_04_a_pod_with_a_node_never_passes_the_scheduler() {
    let rig = Rig::new();
    let mut own = pod("p", &json!({"memory": "900Mi"}));
    own["spec"]["nodeName"] = json!("absent");
    rig.create(PODS, &own);
    rig.pass(Duration::from_secs(5));
    assert_eq!(rig.events("p", "FailedScheduling").len(), 0);
    assert_eq!(rig.pod("p")["spec"]["nodeName"], "absent");
}

#[test]
fn sched_05_a_foreign_schedulers_pod_is_left_alone() {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.create(PODS, &foreign("p"));
    rig.pass(Duration::from_secs(5));
    let left = rig.pod("p");
    assert_eq!(left["spec"]["nodeName"], Value::Null);
    assert_eq!(condition(&left, "PodScheduled"), "");
    assert_eq!(left["status"]["phase"], "Pending");
    assert_eq!(rig.events("p", "FailedScheduling").len(), 0);
}

#[test]
fn ghost_01_without_a_scheduler_a_pod_stays_pending() {
    let rig = Rig::with(|config| config.controllers = "*,-scheduler".parse::<Controllers>().unwrap());
    rig.join("a", &board());
    rig.create(PODS, &pod("p", &json!({})));
    rig.pass_alive(Duration::from_secs(10), &["a"]);
    assert_eq!(rig.pod("p")["spec"]["nodeName"], Value::Null);
    assert_eq!(rig.list("/api/v1/events?fieldSelector=involvedObject.name%3Dp").len(), 0);
}

#[test]
fn sched_50_and_51_a_pod_that_fits_nowhere_says_why() {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.join("b", &json!({"memory": "10Ki", "esp32.io/gpio": "10"}));
    rig.patch("/api/v1/nodes/b", &json!({"spec": {"unschedulable": true}}));
    let made = rig.create(PODS, &pod("p", &json!({"memory": "300Ki"})));
    let message = "0/2 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable.";
    assert_eq!(made["spec"]["nodeName"], Value::Null);
    assert_eq!(made["status"]["phase"], "Pending");
    let conditions = made["status"]["conditions"].as_array().unwrap();
    let scheduled = conditions.iter().find(|one| one["type"] == "PodScheduled").unwrap();
    assert_eq!(scheduled["status"], "False");
    assert_eq!(scheduled["reason"], "Unschedulable");
    assert_eq!(scheduled["message"], message);
    let events = rig.events("p", "FailedScheduling");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["message"], message);
    assert_eq!(events[0]["type"], "Warning");
}

#[test]
fn sched_52_without_nodes_the_message_is_kubernetes_own() {
    let rig = Rig::new();
    rig.create(PODS, &pod("p", &json!({})));
    assert_eq!(rig.events("p", "FailedScheduling")[0]["message"], "no nodes available to schedule pods");
}

#[test]
fn sched_03_and_53_the_count_rises_once_a_period() {
    let rig = Rig::new();
    rig.create(PODS, &pod("p", &json!({})));
    let count = |rig: &Rig| rig.events("p", "FailedScheduling")[0]["count"].as_u64().unwrap();
    assert_eq!(count(&rig), 1);
    for expected in 2..6 {
        let took = rig.until(RETRY * 2, |rig| count(rig) == expected);
        assert!(
            took >= RETRY - Duration::from_millis(50) && took <= RETRY + Duration::from_millis(50),
            "{took:?}"
        );
    }
    assert_eq!(rig.events("p", "FailedScheduling").len(), 1);
    let event = &rig.events("p", "FailedScheduling")[0];
    assert_ne!(event["firstTimestamp"], event["lastTimestamp"]);
}

#[test]
fn sched_53_a_restart_goes_on_counting_the_same_event() {
    let mut rig = Rig::new();
    rig.create(PODS, &pod("p", &json!({})));
    let before = rig.events("p", "FailedScheduling");
    rig.restart();
    rig.pass(RETRY);
    let after = rig.events("p", "FailedScheduling");
    assert_eq!((before.len(), after.len()), (1, 1));
    assert_eq!(after[0]["metadata"]["uid"], before[0]["metadata"]["uid"]);
    assert!(after[0]["count"].as_u64() > before[0]["count"].as_u64(), "{after:?}");
}

#[test]
fn sched_02_and_55_whatever_makes_it_fit_rescues_a_pending_pod() {
    let rescued = |change: &dyn Fn(&Rig)| {
        let rig = Rig::new();
        rig.join("a", &board());
        rig.patch("/api/v1/nodes/a", &json!({"spec": {"unschedulable": true}}));
        let mut wanting = pod("p", &json!({"memory": "150Ki"}));
        wanting["spec"]["nodeSelector"] = json!({"kind": "wanted"});
        rig.create(PODS, &wanting);
        rig.pass(RETRY * 2);
        change(&rig);
        rig.until(RETRY + Duration::from_millis(50), |rig| rig.pod("p")["spec"]["nodeName"].is_string());
    };
    rescued(&|rig| {
        rig.join("b", &board());
        rig.patch("/api/v1/nodes/b", &json!({"metadata": {"labels": {"kind": "wanted"}}}));
    });
    rescued(&|rig| {
        let change = json!({"metadata": {"labels": {"kind": "wanted"}}, "spec": {"unschedulable": null}});
        rig.patch("/api/v1/nodes/a", &change);
    });
}

#[test]
fn sched_55_room_that_becomes_free_is_used() {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.create(PODS, &pod("first", &json!({"memory": "150Ki"})));
    rig.create(PODS, &pod("second", &json!({"memory": "150Ki"})));
    assert_eq!(rig.pod("second")["spec"]["nodeName"], Value::Null);
    rig.call("DELETE", &format!("{PODS}/first?gracePeriodSeconds=0"), &Value::Null).expect(200);
    rig.until(RETRY + Duration::from_millis(50), |rig| rig.pod("second")["spec"]["nodeName"] == "a");
}

/// A board of 200 KiB that runs a pod of 100 KiB and has reported nothing since.
fn with_a_running_pod() -> Rig {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.pass(Duration::from_secs(1));
    rig.create(PODS, &pod("runs", &json!({"memory": "100Ki"})));
    rig.run("a", "runs");
    rig
}

/// What the board reports once the pod has taken its memory.
fn half() -> Value {
    json!({"memory": "100Ki", "esp32.io/gpio": "10"})
}

/// Whether a pod that asks for this much is bound at once.
fn fits(rig: &Rig, name: &str, memory: &str) -> bool {
    rig.create(PODS, &pod(name, &json!({"memory": memory})))["spec"]["nodeName"] == "a"
}

#[test]
fn sched_22_a_pod_that_a_report_covers_is_not_subtracted_again() {
    let rig = with_a_running_pod();
    rig.pass(Duration::from_secs(1));
    rig.report("a", &half());
    assert!(!fits(&rig, "more", "101Ki"));
    assert!(fits(&rig, "exact", "100Ki"));
}

#[test]
fn sched_23_and_25_pods_that_no_report_covers_are_subtracted() {
    let rig = with_a_running_pod();
    assert!(!fits(&rig, "more", "101Ki"), "it runs, and the last report is older");
    assert!(fits(&rig, "exact", "100Ki"));
    rig.report("a", &half());
    assert!(!fits(&rig, "third", "1Ki"), "`exact` is bound and pending");
}

#[test]
fn sched_26_a_label_or_cordon_is_no_report() {
    let rig = with_a_running_pod();
    rig.patch("/api/v1/nodes/a", &json!({"metadata": {"labels": {"x": "y"}}}));
    rig.patch("/api/v1/nodes/a", &json!({"spec": {"unschedulable": true}}));
    rig.patch("/api/v1/nodes/a", &json!({"spec": {"unschedulable": null}}));
    assert!(!fits(&rig, "more", "101Ki"));
    assert!(fits(&rig, "exact", "100Ki"));
}

#[test]
fn a_report_that_repeats_the_last_one_is_a_report() {
    let rig = with_a_running_pod();
    rig.report("a", &half());
    rig.patch(&format!("{PODS}/runs"), &json!({"metadata": {"labels": {"touched": "1"}}}));
    assert!(!fits(&rig, "first", "100Ki"), "the pod was modified after the report");
    rig.report("a", &half());
    let first = rig.pod("first");
    assert_eq!(first["spec"]["nodeName"], "a", "nothing changed, and yet the board has said so again");
}

#[test]
fn sched_22_what_a_report_covers_outlives_the_server() {
    let mut rig = with_a_running_pod();
    rig.report("a", &half());
    rig.restart();
    assert!(!fits(&rig, "more", "101Ki"));
    assert!(fits(&rig, "exact", "100Ki"));
}

#[test]
fn sched_25_and_26_what_no_report_covers_is_subtracted_by_the_next_server_too() {
    let mut rig = with_a_running_pod();
    rig.report("a", &half());
    rig.patch(&format!("{PODS}/runs"), &json!({"metadata": {"labels": {"touched": "1"}}}));
    rig.restart();
    assert!(!fits(&rig, "first", "1Ki"), "the pod was modified after the report");
    rig.patch("/api/v1/nodes/a", &json!({"metadata": {"labels": {"x": "y"}}}));
    rig.restart();
    assert!(!fits(&rig, "second", "1Ki"), "a label is no report");
}

#[test]
fn sched_22_what_others_write_to_a_node_leaves_its_report_as_it_was() {
    let mut rig = with_a_running_pod();
    rig.report("a", &half());
    let kept = |rig: &Rig| rig.node("a")["metadata"]["annotations"][reports::ANNOTATION].clone();
    assert_eq!(kept(&rig), Value::Null, "the node's own resourceVersion tells");
    let version = rig.node("a")["metadata"]["resourceVersion"].clone();
    // Neither a client, nor one who writes back what it read, nor a deletion that waits says what a report covers.
    let claim =
        json!({"metadata": {"annotations": {reports::ANNOTATION: "999999"}, "finalizers": ["x.y/z"]}});
    rig.patch("/api/v1/nodes/a", &claim);
    assert_eq!(kept(&rig), version);
    let mut without = rig.node("a");
    without["metadata"]["annotations"] = Value::Null;
    rig.call("PUT", "/api/v1/nodes/a", &without).expect(200);
    assert_eq!(kept(&rig), version);
    rig.delete("/api/v1/nodes/a");
    assert_eq!(kept(&rig), version);
    rig.restart();
    assert!(!fits(&rig, "more", "101Ki"));
    assert!(fits(&rig, "exact", "100Ki"));
    rig.report("a", &json!({"memory": "1Ki"}));
    assert_eq!(kept(&rig), Value::Null);
}

#[test]
fn sched_22_a_report_that_repeats_the_last_one_outlives_the_server_too() {
    let mut rig = with_a_running_pod();
    rig.report("a", &half());
    rig.patch(&format!("{PODS}/runs"), &json!({"metadata": {"labels": {"touched": "1"}}}));
    rig.report("a", &half());
    let version = |rig: &Rig| rig.node("a")["metadata"]["resourceVersion"].clone();
    let written = version(&rig);
    rig.report("a", &half());
    assert_eq!(version(&rig), written, "nothing happened since");
    rig.restart();
    assert!(fits(&rig, "exact", "100Ki"));
}

#[test]
fn sched_22_a_node_is_not_made_with_what_another_one_reported() {
    let mut rig = Rig::new();
    let made = json!({"metadata": {"name": "a", "annotations": {reports::ANNOTATION: "999999"}}, "status": {
        "allocatable": board(), "conditions": [{"type": "Ready", "status": "True"}],
    }});
    assert_eq!(rig.create("/api/v1/nodes", &made)["metadata"]["annotations"], Value::Null);
    rig.create(PODS, &pod("runs", &json!({"memory": "100Ki"})));
    rig.run("a", "runs");
    rig.restart();
    assert!(!fits(&rig, "more", "101Ki"));
}

#[test]
fn sched_27_finished_pods_are_not_subtracted() {
    let rig = with_a_running_pod();
    let done = json!({"status": {"phase": "Succeeded"}});
    rig.call_as("a-token", "PATCH", &format!("{PODS}/runs/status"), &done).expect(200);
    assert!(fits(&rig, "all", "200Ki"));
}

#[test]
fn sched_56_concurrent_creates_never_over_commit() {
    let rig = Rig::new();
    for name in ["a", "b", "c"] {
        rig.join(name, &board());
    }
    let router = rig.plane.router();
    for n in 0..200 {
        let request = http::Request::post(PODS)
            .header("authorization", "Bearer admin-token")
            .body(Body::from(
                pod(&format!("p{n}"), &json!({"memory": "16Ki", "esp32.io/gpio": "1"})).to_string(),
            ))
            .unwrap();
        assert_eq!(router.clone().oneshot(request).now_or_never().unwrap().unwrap().status(), 201);
    }
    for node in ["a", "b", "c"] {
        let bound = rig.list(&format!("{PODS}?fieldSelector=spec.nodeName%3D{node}"));
        assert_eq!(bound.len(), 10, "{node}: ten pins, and memory for twelve");
    }
}

/// A control plane over the store that really waits, on the real clock, whose controllers follow every change.
struct Real {
    plane: ControlPlane,
    store: Arc<dyn Store>,
    _dir: tempfile::TempDir,
}

impl Real {
    async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(RedbStore::open(&dir.path().join("store.redb"), 8192).unwrap());
        let mut config = Config { no_auth: true, plain_http: true, ..Config::default() };
        change(&mut config);
        let clock = Arc::new(SystemClock::start());
        let plane = ControlPlane::open(config, Arc::clone(&store), clock, 1).await.unwrap();
        Self { plane, store, _dir: dir }
    }

    async fn list(&self, resource: &str) -> Vec<Arc<Value>> {
        let listing = self.store.list(Scope { resource, namespace: None }, None).await.unwrap();
        listing.entries.into_iter().map(|(_, entry)| entry.object).collect()
    }
}

/// Sends a creation; answers its status.
fn create(plane: &ControlPlane, path: &str, object: &Value) -> impl Future<Output = u16> + Send + use<> {
    let request = http::Request::post(path).body(Body::from(object.to_string())).unwrap();
    let answer = plane.router().oneshot(request);
    async move { answer.await.unwrap().status().as_u16() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sched_53_creations_and_passes_that_cross_tell_once() {
    const PODS_AT_ONCE: usize = 60;
    // No retry is due while this runs, so that each pod is looked at once and its event counts 1.
    let real = Real::start(|config| config.reconcile_interval = Duration::from_secs(3600)).await;
    let plane = real.plane.clone();
    // A pass is never broken off, as none is while the process lives: between its write and its event it would be half a pass.
    let (all_made, mut ending) = tokio::sync::oneshot::channel();
    let passes = tokio::spawn(async move {
        loop {
            let changed = plane.changed();
            plane.reconcile().await;
            tokio::select! {
                () = changed => {}
                _ = &mut ending => return,
            }
        }
    });
    let creates = (0..PODS_AT_ONCE)
        .map(|n| tokio::spawn(create(&real.plane, PODS, &pod(&format!("p{n}"), &json!({})))));
    for created in futures_util::future::join_all(creates).await {
        assert_eq!(created.unwrap(), 201);
    }
    all_made.send(()).unwrap();
    passes.await.unwrap();
    real.plane.reconcile().await;
    let events = real.list("events").await;
    let failed = events.iter().filter(|event| event["reason"] == "FailedScheduling");
    let mut told: Vec<String> =
        failed.map(|event| format!("{} x{}", event["involvedObject"]["name"], event["count"])).collect();
    told.sort();
    let mut expected: Vec<String> = (0..PODS_AT_ONCE).map(|n| format!("\"p{n}\" x1")).collect();
    expected.sort();
    assert_eq!(told, expected);
}

/// The same with real concurrency, over the store that really waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sched_56_holds_over_a_store_that_waits() {
    let real = Real::start(|_| {}).await;
    let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    for name in ["a", "b"] {
        let status = json!({"allocatable": board(), "conditions": ready});
        let node = json!({"metadata": {"name": name}, "status": status});
        assert_eq!(create(&real.plane, "/api/v1/nodes", &node).await, 201);
    }
    let asking = json!({"memory": "16Ki", "esp32.io/gpio": "1"});
    let creates = (0..200).map(|n| tokio::spawn(create(&real.plane, PODS, &pod(&format!("p{n}"), &asking))));
    for created in futures_util::future::join_all(creates).await {
        assert_eq!(created.unwrap(), 201);
    }
    let pods = real.list("pods").await;
    for node in ["a", "b"] {
        let bound = pods.iter().filter(|pod| pod["spec"]["nodeName"] == node).count();
        assert_eq!(bound, 10, "{node}");
    }
}
