//! Whole histories of Jobs: pods that end, vanish and are evicted, boards and servers that fail in between.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_core::controllers::{job, node_lifecycle};
use control_plane_core::{Key, conditions};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::job::{active, end, end_all, stored, tend, world_with};
use crate::world::{World, delete, s};

#[derive(Debug, Clone)]
enum Step {
    Start(usize),
    End(usize, &'static str),
    /// Someone deletes a pod, with its grace or at once.
    Delete(usize, bool),
    /// The boards end what is going.
    LetGo,
    Evict(usize),
    Suspend(bool),
    Parallelism(usize),
    /// The server performs so many writes of its next decision, and starts anew.
    Crash(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let pod = 0_usize..4;
    prop_oneof![
        pod.clone().prop_map(Step::Start),
        (pod.clone(), prop::sample::select(vec!["Succeeded", "Succeeded", "Failed"]))
            .prop_map(|(pod, phase)| Step::End(pod, phase)),
        (pod.clone(), any::<bool>()).prop_map(|(pod, at_once)| Step::Delete(pod, at_once)),
        Just(Step::LetGo),
        pod.prop_map(Step::Evict),
        any::<bool>().prop_map(Step::Suspend),
        (0_usize..5).prop_map(Step::Parallelism),
        (0_usize..5).prop_map(Step::Crash),
    ]
}

/// What is going ends on its board: the object goes, or waits for its finalizers.
fn let_go(world: &mut World) {
    let pods: Vec<Value> = world.snapshot.list("pods").map(|(_, pod)| Value::clone(pod)).collect();
    for pod in pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_string()) {
        world.apply(delete(pod, Some(0)));
    }
}

fn perform(world: &mut World, step: &Step) {
    let some = |world: &World, number: usize| {
        let active = active(world);
        active.get(number % active.len().max(1)).cloned()
    };
    match step {
        Step::Start(number) => {
            if let Some(name) =
                some(world, *number).filter(|name| world.pod(name)["spec"]["nodeName"].is_string())
            {
                world.start(&name);
            }
        }
        Step::End(number, phase) => {
            if let Some(name) = some(world, *number) {
                end(world, &name, phase);
            }
        }
        Step::Delete(number, at_once) => {
            let names: Vec<String> = world.snapshot.list("pods").map(|(key, _)| key.name.clone()).collect();
            if let Some(name) = names.get(number % names.len().max(1)) {
                world.apply(delete(&world.pod(name), at_once.then_some(0)));
            }
        }
        Step::LetGo => let_go(world),
        Step::Evict(number) => {
            if let Some(name) = some(world, *number) {
                let evicted = node_lifecycle::evicted(&world.pod(&name), "why", &world.now);
                world.put("pods", evicted);
            }
        }
        Step::Suspend(on) => {
            world.change("jobs", "default", "work", |job| job["spec"]["suspend"] = (*on).into())
        }
        Step::Parallelism(number) => {
            world.change("jobs", "default", "work", |job| job["spec"]["parallelism"] = (*number).into());
        }
        Step::Crash(writes) => {
            let decision = job::decide(&world.snapshot, &Key::new("default", "work"), &world.now);
            world.apply_some(decision, *writes);
            world.restart(s(2.0));
        }
    }
}

/// The pods that have ever said that they succeeded while nothing had deleted them, by uid, with their index.
fn successes(world: &World) -> BTreeMap<String, String> {
    let versions = world.history.iter().filter(|(_, resource, _, _)| *resource == "pods");
    let pods = versions.filter_map(|(_, _, _, pod)| pod.as_deref());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    pods.filter(|pod| pod["status"]["phase"] == "Succeeded")
        .map(|pod| {
            let index = &pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"];
            (text(&pod["metadata"]["uid"]), text(index))
        })
        .collect()
}

fn figure(job: &Value, field: &str) -> usize {
    usize::try_from(job["status"][field].as_u64().unwrap_or(0)).expect("a figure")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn job_01_02_and_07_any_history_counts_each_success_once_and_comes_to_an_end(
        steps in prop::collection::vec(step(), 1..60),
        completions in 1_usize..6,
        backoff_limit in 0_usize..8,
        indexed in any::<bool>(),
    ) {
        let mode = if indexed { "Indexed" } else { "NonIndexed" };
        let mut world = world_with(json!({
            "completions": completions, "parallelism": 2, "backoffLimit": backoff_limit, "completionMode": mode,
        }));
        let mut before = stored(&world);
        let mut known = BTreeSet::new();
        for step in steps {
            perform(&mut world, &step);
            world.pass(s(1.0));
            let was_finished = is_finished(&before);
            tend(&mut world);
            let job = stored(&world);
            let parallelism = job["spec"]["parallelism"].as_u64().expect("a number") as usize;
            let active = active(&world).len();
            prop_assert!(active <= parallelism, "{} of {} are active", active, parallelism);
            prop_assert_eq!(figure(&job, "active"), active, "the status says what is");
            let pods: BTreeSet<String> = world.snapshot.list("pods").map(|(key, _)| key.name.clone()).collect();
            prop_assert!(!was_finished || pods.is_subset(&known), "made after the end");
            known.extend(pods);
            check_counts(&world, &before, &job, completions, indexed)?;
            before = job;
        }
        // Inputs stop: whatever is left succeeds, and boards end what they are to end.
        perform(&mut world, &Step::Suspend(false));
        perform(&mut world, &Step::Parallelism(2));
        for _ in 0..20 {
            tend(&mut world);
            end_all(&mut world, "Succeeded");
            let_go(&mut world);
            world.pass(s(1.0));
        }
        tend(&mut world);
        let job = stored(&world);
        check_counts(&world, &before, &job, completions, indexed)?;
        prop_assert!(is_finished(&job), "{}", job["status"]);
        if conditions::is_true(&job, "Complete") {
            prop_assert_eq!(figure(&job, "succeeded"), completions);
        } else {
            prop_assert!(figure(&job, "failed") > backoff_limit);
        }
        prop_assert_eq!(active(&world).len(), 0);
        prop_assert_eq!(&job["status"]["uncountedTerminatedPods"], &json!({}));
        let tracked = world.snapshot.list("pods").filter(|(_, pod)| pod["metadata"]["finalizers"].is_array()).count();
        prop_assert_eq!(tracked, 0, "every pod is counted");
    }
}

fn is_finished(job: &Value) -> bool {
    conditions::is_true(job, "Complete") || conditions::is_true(job, "Failed")
}

fn check_counts(
    world: &World,
    before: &Value,
    job: &Value,
    completions: usize,
    indexed: bool,
) -> Result<(), TestCaseError> {
    for field in ["succeeded", "failed"] {
        prop_assert!(figure(job, field) >= figure(before, field), "{} went back", field);
    }
    let successes = successes(world);
    let most = if indexed { successes.values().collect::<BTreeSet<_>>().len() } else { successes.len() };
    let succeeded = figure(job, "succeeded");
    prop_assert!(succeeded <= completions, "{} of {} succeeded", succeeded, completions);
    prop_assert!(succeeded <= most, "{} were counted, {} succeeded", succeeded, most);
    let waiting =
        |pod: &Value| pod["status"]["phase"] == "Succeeded" && !pod["metadata"]["finalizers"].is_null();
    let uncounted = world.snapshot.list("pods").filter(|(_, pod)| waiting(pod)).count();
    prop_assert_eq!(uncounted, 0, "a pass counts all");
    Ok(())
}
