//! JOB rows that need the API, the store and the scheduler together; the decision's own tables are core's.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{PASS, PODS, Rig, board, condition};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const SLACK: Duration = Duration::from_millis(50);

fn work(spec: &Value) -> Value {
    let mut job = json!({
        "metadata": {"name": "work"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "rigor.dev/pause"}],
        }}},
    });
    for (field, value) in spec.as_object().unwrap() {
        job["spec"][field] = value.clone();
    }
    job
}

fn running(spec: &Value) -> Rig {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.create(JOBS, &work(spec));
    rig.pass(PASS);
    rig
}

fn names(rig: &Rig) -> Vec<String> {
    let is_active = |pod: &Value| matches!(pod["status"]["phase"].as_str(), Some("Pending" | "Running"));
    let pods = rig.list(PODS).into_iter().filter(is_active);
    pods.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// The board says that a pod has ended.
fn end(rig: &Rig, name: &str, phase: &str) {
    let path = format!("{PODS}/{name}/status");
    rig.call_as("a-token", "PATCH", &path, &json!({"status": {"phase": phase}})).expect(200);
}

fn stored(rig: &Rig) -> Value {
    rig.get(&format!("{JOBS}/work"))
}

#[test]
fn job_01_to_08_runs_to_its_end() {
    let rig = running(&json!({"completions": 3, "parallelism": 2}));
    assert_eq!(names(&rig).len(), 2);
    let made = rig.pod(&names(&rig)[0]);
    assert_eq!(made["spec"]["tolerations"].as_array().unwrap().len(), 2, "NODE-14");
    assert_eq!(made["metadata"]["labels"]["job-name"], "work");
    let first = names(&rig);
    end(&rig, &first[0], "Failed");
    rig.until(PASS + SLACK, |rig| names(rig).len() == 2);
    for _ in 0..3 {
        for name in names(&rig) {
            end(&rig, &name, "Succeeded");
        }
        rig.pass(PASS);
    }
    let job = stored(&rig);
    let status = &job["status"];
    assert_eq!(
        (&status["succeeded"], &status["failed"], &status["active"]),
        (&json!(3), &json!(1), &Value::Null)
    );
    assert_eq!(condition(&job, "Complete"), "True");
    assert!(status["completionTime"].is_string() && status["startTime"].is_string());
    assert_eq!(rig.events("work", "Completed").len(), 1);
    assert_eq!(rig.events("work", "SuccessfulCreate").len(), 4);
    assert_eq!(rig.list(PODS).len(), 4, "JOB-05: finished pods stay");
}

#[test]
fn job_05_pods_go_with_their_job_or_are_let_go_of() {
    for (how, left) in [("Background", 0), ("Foreground", 0), ("Orphan", 2), ("", 0)] {
        let rig = running(&json!({"completions": 3, "parallelism": 1}));
        end(&rig, &names(&rig)[0], "Succeeded");
        rig.pass(PASS);
        rig.run("a", &names(&rig)[0]);
        rig.pass(PASS);
        assert_eq!(rig.list(PODS).len(), 2);
        let query = if how.is_empty() { String::new() } else { format!("?propagationPolicy={how}") };
        rig.delete(&format!("{JOBS}/work{query}"));
        for _ in 0..3 {
            for pod in rig.list(PODS).iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_string()) {
                let name = pod["metadata"]["name"].as_str().unwrap();
                rig.call("DELETE", &format!("{PODS}/{name}?gracePeriodSeconds=0"), &Value::Null);
            }
            rig.pass(PASS);
        }
        let pods = rig.list(PODS);
        assert_eq!(pods.len(), left, "{how}: {pods:#?}");
        for pod in pods {
            let metadata = &pod["metadata"];
            assert_eq!((&metadata["ownerReferences"], &metadata["finalizers"]), (&Value::Null, &Value::Null));
        }
        assert_eq!(rig.list(JOBS).len(), 0, "{how}");
    }
}

#[test]
fn job_07_a_board_that_lost_power_costs_time_and_nothing_else() {
    let mut rig = Rig::with(|config| config.eviction_timeout = Duration::from_secs(5));
    rig.join("a", &board());
    rig.create(JOBS, &work(&json!({"completions": 2, "backoffLimit": 0})));
    rig.pass(PASS);
    let name = names(&rig)[0].clone();
    rig.run("a", &name);
    let uid = rig.pod(&name)["metadata"]["uid"].clone();
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.pod(&name)["spec"]["nodeName"], Value::Null, "evicted");
    rig.restart_after(Duration::from_secs(3));
    rig.join("b", &board());
    rig.pass_alive(Duration::from_secs(5), &["b"]);
    let pod = rig.pod(&name);
    assert_eq!(
        (&pod["metadata"]["uid"], &pod["spec"]["nodeName"], names(&rig).len()),
        (&uid, &json!("b"), 1)
    );
    for succeeded in 1..=2 {
        let name = names(&rig)[0].clone();
        let path = format!("{PODS}/{name}/status");
        rig.call_as("b-token", "PATCH", &path, &json!({"status": {"phase": "Succeeded"}})).expect(200);
        rig.pass_alive(PASS, &["b"]);
        assert_eq!(stored(&rig)["status"]["succeeded"], succeeded);
    }
    assert_eq!(condition(&stored(&rig), "Complete"), "True");
    assert_eq!(stored(&rig)["status"]["failed"], Value::Null);
}

#[test]
fn a_success_that_is_deleted_before_it_is_counted_counts() {
    let rig = running(&json!({"completions": 2}));
    let name = names(&rig)[0].clone();
    end(&rig, &name, "Succeeded");
    rig.delete(&format!("{PODS}/{name}"));
    assert!(rig.pod(&name)["metadata"]["deletionTimestamp"].is_string(), "it waits");
    rig.pass(PASS);
    assert_eq!(stored(&rig)["status"]["succeeded"], 1);
    rig.call("GET", &format!("{PODS}/{name}"), &Value::Null).expect(404);
}

#[test]
fn deadlines_and_times_to_live_come_by_themselves() {
    let rig = running(&json!({"activeDeadlineSeconds": 5, "ttlSecondsAfterFinished": 7}));
    let name = names(&rig)[0].clone();
    rig.pass(Duration::from_secs(6));
    rig.delete(&format!("{PODS}/{name}?gracePeriodSeconds=0"));
    rig.pass(PASS);
    let job = stored(&rig);
    assert_eq!(condition(&job, "Failed"), "True", "{}", job["status"]);
    assert_eq!(rig.events("work", "DeadlineExceeded").len(), 1);
    rig.pass(Duration::from_secs(8));
    rig.call("GET", &format!("{JOBS}/work"), &Value::Null).expect(404);
    assert_eq!(rig.list(PODS).len(), 0);
}

#[test]
fn what_the_controller_does_not_do_is_refused_by_name() {
    for (field, value) in [
        (
            "podFailurePolicy",
            json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}),
        ),
        ("successPolicy", json!({"rules": [{"succeededCount": 1}]})),
        ("backoffLimitPerIndex", json!(1)),
    ] {
        let body = work(&json!({"completionMode": "Indexed", "completions": 2, field: value}));
        let rig = Rig::new();
        let message = rig.call("POST", JOBS, &body).refused(422);
        let words =
            format!("spec.{field}: Forbidden: the job controller of this control plane does not support it");
        assert!(message.contains(&words), "{message}");
        let foreign = Rig::with(|config| config.controllers = "*,-job".parse().unwrap());
        foreign.call("POST", JOBS, &body).expect(201);
    }
}

#[test]
fn finished_pods_beyond_the_threshold_and_deleted_pods_of_absent_nodes_go() {
    let rig = Rig::with(|config| config.terminated_pod_gc_threshold = 2);
    rig.join("a", &board());
    rig.create(JOBS, &work(&json!({"completions": 4})));
    for _ in 0..4 {
        rig.pass(PASS);
        end(&rig, &names(&rig)[0], "Succeeded");
    }
    let mut ghost = crate::rig::pod("ghost", &json!({}));
    ghost["spec"]["nodeName"] = json!("nowhere");
    rig.create(PODS, &ghost);
    rig.pass(Duration::from_secs(25));
    assert_eq!(rig.list(PODS).len(), 3, "two of the Job's, and the one that nobody has deleted");
    assert_eq!(stored(&rig)["status"]["succeeded"], 4);
    rig.delete(&format!("{PODS}/ghost"));
    rig.pass(Duration::from_secs(60));
    rig.call("GET", &format!("{PODS}/ghost"), &Value::Null).expect(404);
}
