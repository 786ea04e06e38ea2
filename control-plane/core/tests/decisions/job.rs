//! JOB: pods that run to their end, each counted once, and how Jobs end.

use control_plane_core::controllers::{job, node_lifecycle};
use control_plane_core::{Decision, Key, conditions};
use serde_json::{Value, json};

use crate::world::{World, condition, node, pod, s};

pub fn work(spec: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "work", "namespace": "default", "generation": 1},
        "spec": {
            "parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
            "podReplacementPolicy": "TerminatingOrFailed",
            "selector": {"matchLabels": {"job-name": "work"}},
            "template": {
                "metadata": {"labels": {"job-name": "work"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "rigor.dev/pause"}]},
            },
        },
    });
    for (field, value) in spec.as_object().expect("an object") {
        job["spec"][field] = value.clone();
    }
    job
}

pub fn world_with(spec: Value) -> World {
    let mut world = World::new();
    world.register(node("a", json!({"memory": "1Gi", "esp32.io/gpio": "10"})));
    world.put("jobs", work(spec));
    world
}

pub fn tend(world: &mut World) -> Vec<Decision> {
    let decisions = world.workload(job::decide, "work");
    world.retry_pending();
    decisions
}

/// The pods that are neither finished nor terminating.
pub fn active(world: &World) -> Vec<String> {
    let pods = world.snapshot.list_in("pods", "default");
    let is_active = |pod: &Value| {
        pod["metadata"]["deletionTimestamp"].is_null()
            && !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
    };
    pods.filter(|(_, pod)| is_active(pod)).map(|(key, _)| key.name.clone()).collect()
}

/// The board says that a pod has ended.
pub fn end(world: &mut World, name: &str, phase: &str) {
    world.change("pods", "default", name, |pod| {
        pod["status"]["phase"] = phase.into();
        pod["status"]["conditions"] = json!([]);
    });
}

pub fn end_all(world: &mut World, phase: &str) {
    for name in active(world) {
        end(world, &name, phase);
    }
}

pub fn stored(world: &World) -> Value {
    world.get("jobs", "default", "work").expect("the job")
}

fn figures(world: &World) -> Value {
    let mut status = stored(world)["status"].clone();
    let status_map = status.as_object_mut().expect("a status");
    status_map.remove("conditions");
    status_map.remove("startTime");
    status_map.remove("completionTime");
    status
}

fn true_conditions(world: &World) -> Vec<(String, String)> {
    let job = stored(world);
    let conditions = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |condition: &Value, field: &str| condition[field].as_str().expect(field).to_owned();
    conditions
        .iter()
        .filter(|condition| condition["status"] == "True")
        .map(|condition| (text(condition, "type"), text(condition, "reason")))
        .collect()
}

fn messages(world: &World, reason: &str) -> Vec<String> {
    world.told(reason).iter().map(|told| told.event.message.clone()).collect()
}

fn change_spec(world: &mut World, change: impl FnOnce(&mut Value)) {
    world.change("jobs", "default", "work", |job| change(&mut job["spec"]));
}

fn tracked(world: &World, name: &str) -> bool {
    world.pod(name)["metadata"]["finalizers"] == json!([job::TRACKING])
}

#[test]
fn job_01_and_06_so_many_succeed_so_many_at_once() {
    let mut world = world_with(json!({"completions": 5, "parallelism": 2}));
    tend(&mut world);
    assert_eq!(
        figures(&world),
        json!({"active": 2, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}})
    );
    let first = active(&world)[0].clone();
    let made = world.pod(&first);
    assert!(first.starts_with("work-") && tracked(&world, &first), "{made}");
    let uid = &stored(&world)["metadata"]["uid"];
    let owner = json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": uid, "controller": true, "blockOwnerDeletion": true,
    });
    assert_eq!(made["metadata"]["ownerReferences"], json!([owner]));
    assert_eq!(made["metadata"]["labels"], json!({"job-name": "work"}));
    let mut made = 2;
    for (succeeded, active_then) in [(2, 2), (4, 1)] {
        end_all(&mut world, "Succeeded");
        tend(&mut world);
        made += active_then;
        assert_eq!(
            (active(&world).len(), figures(&world)["succeeded"].clone()),
            (active_then, json!(succeeded))
        );
        assert_eq!(world.snapshot.list("pods").count(), made);
    }
    assert!(true_conditions(&world).is_empty());
    world.pass(s(1.0));
    end_all(&mut world, "Succeeded");
    tend(&mut world);
    assert_eq!(
        figures(&world),
        json!({"succeeded": 5, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}})
    );
    let reached = "CompletionsReached".to_owned();
    assert_eq!(
        true_conditions(&world),
        [("SuccessCriteriaMet".to_owned(), reached.clone()), ("Complete".to_owned(), reached)]
    );
    let job = stored(&world);
    let complete = conditions::get(&job, "Complete").expect("it");
    assert_eq!(complete["message"], "Reached expected number of succeeded pods");
    assert_eq!(
        (&job["status"]["completionTime"], &complete["lastProbeTime"], &complete["lastTransitionTime"]),
        (&world.now.stamp().into(), &world.now.stamp().into(), &world.now.stamp().into())
    );
    assert_eq!(messages(&world, "Completed"), ["Job completed"]);
    assert_eq!(messages(&world, "SuccessfulCreate").len(), 5);
    assert!(messages(&world, "SuccessfulCreate").contains(&format!("Created pod: {first}")));
    for _ in 0..3 {
        world.pass(s(1.0));
        assert!(tend(&mut world).iter().all(Decision::is_idle), "nothing is made after that");
    }
    assert_eq!(
        world.snapshot.list("pods").filter(|(_, pod)| pod["metadata"]["finalizers"].is_array()).count(),
        0
    );
    assert_eq!(world.snapshot.list("pods").count(), 5, "JOB-05: they stay to be seen");
}

#[test]
fn job_01_without_completions_the_first_success_is_the_last_pod() {
    let mut world = world_with(json!({"parallelism": 3}));
    change_spec(&mut world, |spec| spec["completions"] = Value::Null);
    tend(&mut world);
    let names = active(&world);
    assert_eq!(names.len(), 3);
    end(&mut world, &names[0], "Failed");
    tend(&mut world);
    assert_eq!(active(&world).len(), 3, "none has succeeded yet");
    end(&mut world, &names[1], "Succeeded");
    tend(&mut world);
    assert_eq!(
        (active(&world).len(), condition(&stored(&world), "Complete")),
        (2, None),
        "those that run may end"
    );
    end_all(&mut world, "Succeeded");
    tend(&mut world);
    assert_eq!(condition(&stored(&world), "Complete").as_deref(), Some("True"));
    assert_eq!(figures(&world)["succeeded"], 3);
}

#[test]
fn job_01_parallelism_may_change() {
    let mut world = world_with(json!({"completions": 9, "parallelism": 3}));
    tend(&mut world);
    let names = active(&world);
    world.start(&names[1]);
    change_spec(&mut world, |spec| spec["parallelism"] = 1.into());
    tend(&mut world);
    assert_eq!(active(&world), [names[1].clone()], "the one that runs is missed most");
    tend(&mut world);
    assert_eq!(figures(&world).get("failed"), None, "those that were too many did not fail");
    assert_eq!(messages(&world, "SuccessfulDelete").len(), 2);
    change_spec(&mut world, |spec| spec["parallelism"] = 0.into());
    tend(&mut world);
    assert_eq!(active(&world).len(), 0);
    change_spec(&mut world, |spec| spec["parallelism"] = 2.into());
    tend(&mut world);
    assert_eq!(active(&world).len(), 2);
}

#[test]
fn job_02_and_08_failed_pods_are_retried_up_to_the_limit() {
    let mut world = world_with(json!({"completions": 4, "parallelism": 2, "backoffLimit": 2}));
    tend(&mut world);
    for failed in 1..=2 {
        let name = active(&world)[0].clone();
        end(&mut world, &name, "Failed");
        tend(&mut world);
        assert_eq!(
            (active(&world).len(), figures(&world)["failed"].clone()),
            (2, json!(failed)),
            "retried in the same pass"
        );
    }
    assert!(true_conditions(&world).is_empty());
    let names = active(&world);
    world.start(&names[1]);
    end(&mut world, &names[0], "Failed");
    tend(&mut world);
    assert!(world.pod(&names[1])["metadata"]["deletionTimestamp"].is_string(), "the active one is deleted");
    let exceeded = "BackoffLimitExceeded".to_owned();
    assert_eq!(
        true_conditions(&world),
        [("FailureTarget".to_owned(), exceeded.clone())],
        "while a pod is going"
    );
    assert_eq!(
        (figures(&world)["terminating"].clone(), figures(&world)["failed"].clone()),
        (json!(1), json!(4))
    );
    world.remove("pods", &Key::new("default", names[1].as_str()));
    tend(&mut world);
    assert_eq!(
        true_conditions(&world),
        [("FailureTarget".to_owned(), exceeded.clone()), ("Failed".to_owned(), exceeded)]
    );
    let job = stored(&world);
    let failed = conditions::get(&job, "Failed").expect("it");
    assert_eq!(failed["message"], "Job has reached the specified backoff limit");
    assert_eq!(job["status"].get("completionTime"), None);
    let warned = world.told("BackoffLimitExceeded");
    assert_eq!((warned.len(), warned[0].event.kind.as_str()), (1, "Warning"));
    assert_eq!(warned[0].event.message, "Job has reached the specified backoff limit");
    world.pass(s(1.0));
    tend(&mut world);
    assert_eq!(active(&world).len(), 0);
}

#[test]
fn job_02_no_failure_is_allowed_where_the_limit_is_zero() {
    let mut world = world_with(json!({"backoffLimit": 0}));
    tend(&mut world);
    end_all(&mut world, "Failed");
    tend(&mut world);
    assert_eq!(condition(&stored(&world), "Failed").as_deref(), Some("True"));
    assert_eq!((figures(&world)["failed"].clone(), world.snapshot.list("pods").count()), (json!(1), 1));
}

#[test]
fn job_03_containers_that_restart_in_place_are_no_failures() {
    let mut world = world_with(json!({"backoffLimit": 0}));
    tend(&mut world);
    let name = active(&world)[0].clone();
    world.start(&name);
    world.change("pods", "default", &name, |pod| {
        pod["status"]["containerStatuses"][0]["restartCount"] = 20.into()
    });
    tend(&mut world);
    assert_eq!((active(&world).len(), figures(&world).get("failed")), (1, None));
    assert_eq!(figures(&world)["ready"], 1);
}

#[test]
fn job_05_pods_of_a_job_that_is_gone_are_let_go_of() {
    let mut world = world_with(json!({"completions": 2, "parallelism": 2}));
    tend(&mut world);
    let names = active(&world);
    assert_eq!(job::orphans(&world.snapshot), [] as [Key; 0]);
    world.remove("jobs", &Key::new("default", "work"));
    for key in job::orphans(&world.snapshot) {
        let decision = job::decide_orphan(&world.snapshot, &key);
        world.apply(decision);
    }
    assert!(!tracked(&world, &names[0]) && !tracked(&world, &names[1]));
    assert_eq!(job::orphans(&world.snapshot), [] as [Key; 0]);
    assert!(job::decide_orphan(&world.snapshot, &Key::new("default", "absent")).is_idle());

    // one that nobody owns any more, and one that another controller owns
    let mut left = pod("left", json!({}));
    left["metadata"]["finalizers"] = json!(["example.com/f", job::TRACKING]);
    let mut theirs = left.clone();
    theirs["metadata"]["name"] = "theirs".into();
    theirs["metadata"]["ownerReferences"] = json!([{"kind": "Task", "uid": "t", "controller": true}]);
    world.put("pods", left);
    world.put("pods", theirs);
    assert_eq!(job::orphans(&world.snapshot), [Key::new("default", "left")]);
    let decision = job::decide_orphan(&world.snapshot, &Key::new("default", "left"));
    world.apply(decision);
    assert_eq!(world.pod("left")["metadata"]["finalizers"], json!(["example.com/f"]));
}

#[test]
fn job_05_a_job_that_is_going_counts_no_more() {
    let mut world = world_with(json!({"parallelism": 2, "completions": 4}));
    tend(&mut world);
    let names = active(&world);
    end(&mut world, &names[0], "Succeeded");
    world.change("jobs", "default", "work", |job| {
        job["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into();
        job["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    });
    tend(&mut world);
    assert!(!tracked(&world, &names[0]) && !tracked(&world, &names[1]));
    assert_eq!(world.snapshot.list("pods").count(), 2, "and makes nothing");
}

#[test]
fn job_07_an_evicted_pod_is_the_same_pod_and_counts_once() {
    let mut world = world_with(json!({"completions": 2, "parallelism": 1}));
    tend(&mut world);
    let name = active(&world)[0].clone();
    world.start(&name);
    tend(&mut world);
    let evicted = node_lifecycle::evicted(&world.pod(&name), "why", &world.now);
    world.put("pods", evicted);
    for _ in 0..3 {
        world.workload(job::decide, "work");
        world.pass(s(1.0));
    }
    assert_eq!((active(&world), figures(&world)["active"].clone()), (vec![name.clone()], json!(1)));
    world.retry_pending();
    world.start(&name);
    end(&mut world, &name, "Succeeded");
    tend(&mut world);
    assert_eq!(figures(&world)["succeeded"], 1);
}

#[test]
fn job_07_a_success_counts_once_though_its_pod_is_deleted_or_the_server_crashes() {
    // after so many writes of the pass that counts the server crashes; None: it does not
    for crash in [None, Some(0), Some(1), Some(2), Some(3)] {
        for indexed in [false, true] {
            let mode = if indexed { "Indexed" } else { "NonIndexed" };
            let mut world = world_with(json!({"completions": 3, "parallelism": 1, "completionMode": mode}));
            tend(&mut world);
            let name = active(&world)[0].clone();
            end(&mut world, &name, "Succeeded");
            let uid = world.pod(&name)["metadata"]["uid"].as_str().expect("a uid").to_owned();
            world.apply(Decision {
                writes: vec![control_plane_core::Write::Delete {
                    resource: "pods",
                    namespace: "default".into(),
                    name: name.clone(),
                    uid: Some(uid),
                    resource_version: None,
                    grace_seconds: None,
                }],
                ..Decision::nothing("someone deletes it before it is counted")
            });
            assert!(tracked(&world, &name), "it waits");
            if let Some(writes) = crash {
                let key = Key::new("default", "work");
                for _ in 0..2 {
                    let decision = job::decide(&world.snapshot, &key, &world.now);
                    world.apply_some(decision, writes);
                    world.restart(s(2.0));
                }
            }
            tend(&mut world);
            tend(&mut world);
            assert_eq!(figures(&world)["succeeded"], 1, "{crash:?} {mode}");
            assert_eq!(
                world.get("pods", "default", &name),
                None,
                "{crash:?} {mode}: it is counted, and gone"
            );
            assert_eq!(active(&world).len(), 1, "{crash:?} {mode}");
        }
    }
}

#[test]
fn a_deleted_pod_counts_as_failed_and_is_replaced() {
    for (policy, replaced_while_going) in [("TerminatingOrFailed", true), ("Failed", false)] {
        let mut world = world_with(json!({"podReplacementPolicy": policy}));
        tend(&mut world);
        let name = active(&world)[0].clone();
        world.start(&name);
        world.change("pods", "default", &name, |pod| {
            pod["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into();
            pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        });
        tend(&mut world);
        assert_eq!(active(&world).len(), usize::from(replaced_while_going), "{policy}");
        world
            .change("pods", "default", &name, |pod| pod["metadata"]["deletionGracePeriodSeconds"] = 0.into());
        tend(&mut world);
        assert_eq!((active(&world).len(), figures(&world)["failed"].clone()), (1, json!(1)), "{policy}");
    }
}

#[test]
fn the_deadline_has_two_edges() {
    for restart in [false, true] {
        let mut world = world_with(json!({"activeDeadlineSeconds": 5}));
        world.pass(s(0.6));
        let started = world.now.mono;
        let decisions = tend(&mut world);
        let name = active(&world)[0].clone();
        world.start(&name);
        assert_eq!(decisions.last().and_then(|it| it.look_again), Some(started + s(5.0)));
        let late = if restart {
            world.restart(s(0.0));
            s(1.0)
        } else {
            s(0.0)
        };
        world.pass(s(4.99));
        tend(&mut world);
        assert!(true_conditions(&world).is_empty(), "not early");
        world.pass(s(0.01) + late);
        tend(&mut world);
        let exceeded = "DeadlineExceeded".to_owned();
        assert_eq!(true_conditions(&world), [("FailureTarget".to_owned(), exceeded.clone())]);
        world.remove("pods", &Key::new("default", name));
        tend(&mut world);
        assert_eq!(true_conditions(&world)[1], ("Failed".to_owned(), exceeded));
        assert_eq!(messages(&world, "DeadlineExceeded"), ["Job was active longer than specified deadline"]);
        assert_eq!((active(&world).len(), figures(&world)["failed"].clone()), (0, json!(1)));
    }
}

#[test]
fn a_suspended_job_has_no_pods_and_starts_anew() {
    let mut world = world_with(json!({"suspend": true, "activeDeadlineSeconds": 10}));
    tend(&mut world);
    assert_eq!((active(&world).len(), stored(&world)["status"].get("startTime").cloned()), (0, None));
    assert_eq!(true_conditions(&world), [("Suspended".to_owned(), "JobSuspended".to_owned())]);
    world.pass(s(100.0));
    tend(&mut world);
    change_spec(&mut world, |spec| spec["suspend"] = false.into());
    let started = world.now.stamp();
    tend(&mut world);
    assert_eq!((active(&world).len(), stored(&world)["status"]["startTime"].clone()), (1, started.into()));
    assert_eq!(condition(&stored(&world), "Suspended").as_deref(), Some("False"));
    world.pass(s(5.0));
    change_spec(&mut world, |spec| spec["suspend"] = true.into());
    tend(&mut world);
    tend(&mut world);
    assert_eq!((active(&world).len(), figures(&world).get("failed").cloned()), (0, None));
    world.pass(s(100.0));
    change_spec(&mut world, |spec| spec["suspend"] = false.into());
    let decisions = tend(&mut world);
    assert_eq!(active(&world).len(), 1, "the deadline counts from here");
    assert_eq!(decisions.last().and_then(|it| it.look_again), Some(world.now.mono + s(10.0)));
    assert_eq!(messages(&world, "Suspended"), ["Job suspended"; 2]);
    assert_eq!(messages(&world, "Resumed"), ["Job resumed"; 2]);
}

#[test]
fn a_finished_job_goes_when_its_time_is_over() {
    for phase in ["Succeeded", "Failed"] {
        let mut world = world_with(json!({"ttlSecondsAfterFinished": 7, "backoffLimit": 0}));
        tend(&mut world);
        world.pass(s(0.4));
        end_all(&mut world, phase);
        let decisions = tend(&mut world);
        assert_eq!(decisions.last().and_then(|it| it.look_again), Some(world.now.mono + s(7.0)), "{phase}");
        world.pass(s(6.99));
        tend(&mut world);
        assert!(world.get("jobs", "default", "work").is_some());
        world.pass(s(0.01));
        tend(&mut world);
        assert_eq!(world.get("jobs", "default", "work"), None, "{phase}");
    }
}

#[test]
fn an_indexed_job_has_a_pod_for_each_index() {
    let mut world = world_with(json!({"completions": 4, "parallelism": 3, "completionMode": "Indexed"}));
    tend(&mut world);
    let index = |world: &World, name: &str| -> String {
        let pod = world.pod(name);
        let key = "batch.kubernetes.io/job-completion-index";
        assert_eq!(pod["metadata"]["labels"][key], pod["metadata"]["annotations"][key]);
        pod["metadata"]["annotations"][key].as_str().expect("an index").to_owned()
    };
    let indexes =
        |world: &World| -> Vec<String> { active(world).iter().map(|name| index(world, name)).collect() };
    assert_eq!(indexes(&world), ["0", "1", "2"]);
    let names = active(&world);
    let pod = world.pod(&names[1]);
    assert_eq!(
        (&pod["spec"]["hostname"], &pod["metadata"]["generateName"]),
        (&json!("work-1"), &json!("work-1-"))
    );
    let from = json!({"fieldRef": {
        "apiVersion": "v1", "fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']",
    }});
    assert_eq!(
        pod["spec"]["containers"][0]["env"],
        json!([{"name": "JOB_COMPLETION_INDEX", "valueFrom": from}])
    );
    end(&mut world, &names[2], "Succeeded");
    end(&mut world, &names[0], "Failed");
    tend(&mut world);
    assert_eq!(indexes(&world), ["0", "1", "3"], "the failed one again, and the next");
    assert_eq!(
        figures(&world),
        json!({
            "active": 3, "succeeded": 1, "failed": 1, "ready": 0, "terminating": 0, "completedIndexes": "2",
            "uncountedTerminatedPods": {},
        })
    );
    // of two pods of an index one is too many
    let mut twin = world.pod(&active(&world)[1]);
    twin["metadata"]["name"] = "zz-twin".into();
    twin["metadata"]["uid"] = "twin".into();
    world.put("pods", twin);
    tend(&mut world);
    assert_eq!(indexes(&world), ["0", "1", "3"]);
    world.remove("pods", &Key::new("default", "zz-twin"));
    end_all(&mut world, "Succeeded");
    tend(&mut world);
    assert_eq!(
        (figures(&world)["completedIndexes"].clone(), figures(&world)["succeeded"].clone()),
        (json!("0-3"), json!(4))
    );
    assert_eq!(condition(&stored(&world), "Complete").as_deref(), Some("True"));
}

#[test]
fn an_indexed_job_may_become_narrower() {
    let mut world = world_with(json!({"completions": 4, "parallelism": 4, "completionMode": "Indexed"}));
    tend(&mut world);
    let names = active(&world);
    end(&mut world, &names[3], "Succeeded");
    tend(&mut world);
    change_spec(&mut world, |spec| {
        spec["completions"] = 2.into();
        spec["parallelism"] = 2.into();
    });
    tend(&mut world);
    assert_eq!(active(&world), names[..2]);
    assert_eq!(figures(&world).get("succeeded"), None, "index 3 is asked for no more");
    world.remove("pods", &Key::new("default", names[2].as_str()));
    end_all(&mut world, "Succeeded");
    tend(&mut world);
    assert_eq!(figures(&world)["completedIndexes"], "0,1");
    assert_eq!(condition(&stored(&world), "Complete").as_deref(), Some("True"));
}

#[test]
fn pods_of_others_and_strangers_do_not_count() {
    let mut world = world_with(json!({}));
    let mut free = pod("free", json!({}));
    free["metadata"]["labels"] = json!({"job-name": "work"});
    free["status"] = json!({"phase": "Succeeded"});
    world.put("pods", free);
    tend(&mut world);
    assert_eq!((active(&world).len(), figures(&world).get("succeeded").cloned()), (1, None));
    let name = active(&world)[0].clone();
    world.change("pods", "default", &name, |pod| pod["metadata"]["labels"] = json!({"job-name": "debug"}));
    tend(&mut world);
    assert_eq!(
        (world.pod(&name)["metadata"].get("ownerReferences").cloned(), tracked(&world, &name)),
        (None, false)
    );
    assert_eq!(active(&world).len(), 2, "and another one is made");
}

#[test]
fn a_pod_that_lost_its_finalizer_is_not_counted_on() {
    let mut world = world_with(json!({}));
    tend(&mut world);
    let name = active(&world)[0].clone();
    world.change("pods", "default", &name, |pod| pod["metadata"]["finalizers"] = json!([]));
    tend(&mut world);
    assert!(!active(&world).contains(&name) && active(&world).len() == 1);
}

#[test]
fn a_job_of_another_controller_is_left_alone() {
    let mut world = world_with(json!({"managedBy": "example.com/controller"}));
    assert!(tend(&mut world).iter().all(Decision::is_idle));
    let mut world = world_with(json!({"managedBy": "kubernetes.io/job-controller"}));
    tend(&mut world);
    assert_eq!(active(&world).len(), 1);
    assert!(world.workload(job::decide, "absent").iter().all(Decision::is_idle));
}
