//! DEPL: pods made, deleted and replaced, and the status that follows.

use control_plane_core::controllers::deployment::template_hash;
use control_plane_core::{Decision, Key, Write, conditions};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, condition, node, pod, s};

fn deployment(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "progressDeadlineSeconds": 600,
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"note": "1"}},
                "spec": {"containers": [{"name": "c", "image": "rigor.dev/pause"}]},
            },
        },
    })
}

fn world_with(deployment: Value) -> World {
    let mut world = World::new();
    world.register(node("a", json!({"memory": "1Gi", "esp32.io/gpio": "10"})));
    world.put("deployments", deployment);
    world
}

/// Names of the pods that stand, in their order.
fn standing(world: &World) -> Vec<String> {
    let pods = world.snapshot.list_in("pods", "default");
    pods.filter(|(_, pod)| pod["metadata"]["deletionTimestamp"].is_null())
        .map(|(key, _)| key.name.clone())
        .collect()
}

/// The boards start what is bound to them and finish what is to go.
fn boards_act(world: &mut World) {
    let pods: Vec<(String, bool)> = world
        .snapshot
        .list_in("pods", "default")
        .map(|(key, pod)| (key.name.clone(), pod["metadata"]["deletionTimestamp"].is_string()))
        .collect();
    for (name, going) in pods {
        if going {
            world.remove("pods", &Key::new("default", name));
        } else if world.pod(&name)["spec"]["nodeName"].is_string()
            && world.pod(&name)["status"]["phase"].is_null()
        {
            world.start(&name);
        }
    }
}

/// Passes a period apart, with boards that keep up, until a pass has nothing to do.
fn settle(world: &mut World) -> usize {
    for pass in 0..50 {
        let decision = world.deploy("web");
        boards_act(world);
        world.pass(s(1.0));
        if decision.is_idle() && world.deploy("web").is_idle() {
            return pass;
        }
    }
    panic!("it does not come to rest");
}

fn change_spec(world: &mut World, change: impl FnOnce(&mut Value)) {
    world.change("deployments", "default", "web", |deployment| {
        change(&mut deployment["spec"]);
        let generation = deployment["metadata"]["generation"].as_i64().expect("a generation");
        deployment["metadata"]["generation"] = (generation + 1).into();
    });
}

fn stored(world: &World) -> Value {
    world.get("deployments", "default", "web").expect("the deployment")
}

fn figures(world: &World) -> Value {
    let mut status = stored(world)["status"].clone();
    status.as_object_mut().expect("a status").remove("conditions");
    status
}

fn reason(world: &World, kind: &str) -> String {
    let deployment = stored(world);
    let condition = conditions::get(&deployment, kind).expect(kind);
    condition["reason"].as_str().expect("a reason").to_owned()
}

fn deleted(decision: &Decision) -> Vec<&str> {
    let names = decision.writes.iter().filter_map(|write| match write {
        Write::Delete { name, .. } => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

fn made(decision: &Decision) -> usize {
    decision.writes.iter().filter(|write| matches!(write, Write::Create { .. })).count()
}

#[test]
fn depl_01_missing_pods_are_made_from_the_template() {
    let mut world = world_with(deployment(3));
    let decision = world.deploy("web");
    assert_eq!(made(&decision), 3);
    assert!(world.snapshot.list("replicasets").next().is_none());
    let hash = template_hash(&stored(&world)["spec"]["template"]);
    let name = standing(&world)[0].clone();
    let pod = world.pod(&name);
    assert!(name.starts_with(&format!("web-{hash}-")), "{name}");
    assert_eq!(pod["metadata"]["generateName"], format!("web-{hash}-"));
    assert_eq!(pod["metadata"]["labels"], json!({"app": "web", "pod-template-hash": hash}));
    assert_eq!(pod["metadata"]["annotations"], json!({"note": "1"}));
    assert_eq!(
        pod["metadata"]["ownerReferences"],
        json!([{
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
            "uid": stored(&world)["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        }])
    );
    assert_eq!(pod["spec"]["containers"], json!([{"name": "c", "image": "rigor.dev/pause"}]));
    assert!(settle(&mut world) < 5);
    assert_eq!(standing(&world).len(), 3);
}

#[test]
fn depl_01_the_hash_depends_on_the_template_alone() {
    let template = |text: &str| template_hash(&serde_json::from_str(text).expect("JSON"));
    let plain = template(r#"{"a": {"x": 1, "y": [1, 2]}, "b": "c"}"#);
    assert_eq!(plain, template(r#"{"b": "c", "a": {"y": [1, 2], "x": 1}}"#), "not on the order of fields");
    assert_eq!(plain, template(r#"{"b": "c", "a": {"y": [1, 2], "x": 1}, "creationTimestamp": null}"#));
    for other in
        [r#"{"a": {"x": 1, "y": [2, 1]}, "b": "c"}"#, r#"{"a": {"x": 1, "y": [1, 2], "b": "c"}}"#, "{}"]
    {
        assert_ne!(plain, template(other), "{other}");
    }
    assert!(plain.bytes().all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b)), "{plain}");
}

#[test]
fn depl_02_surplus_pods_go_not_ready_ones_first_then_old_ones() {
    let mut world = world_with(deployment(4));
    settle(&mut world);
    let names = standing(&world);
    let stale = |world: &mut World, name: &str| {
        world.change("pods", "default", name, |pod| {
            pod["metadata"]["labels"]["pod-template-hash"] = "old".into()
        });
    };
    stale(&mut world, &names[1]);
    world.change("pods", "default", &names[2], |pod| pod["status"]["conditions"] = json!([]));
    change_spec(&mut world, |spec| spec["replicas"] = 3.into());
    assert_eq!(deleted(&world.deploy("web")), [names[2].as_str()], "not ready");
    boards_act(&mut world);
    change_spec(&mut world, |spec| spec["replicas"] = 2.into());
    assert_eq!(deleted(&world.deploy("web")), [names[1].as_str()], "old");
    boards_act(&mut world);
    change_spec(&mut world, |spec| spec["replicas"] = 0.into());
    assert_eq!(deleted(&world.deploy("web")).len(), 2, "DEPL-07: to 0");
    boards_act(&mut world);
    change_spec(&mut world, |spec| spec["replicas"] = 1.into());
    settle(&mut world);
    assert_eq!(standing(&world).len(), 1, "DEPL-07: and back");
}

#[test]
fn depl_04_a_template_change_replaces_one_pod_a_pass() {
    for (replicas, max_unavailable, bound) in [
        (3, json!("25%"), 1),
        (4, json!("50%"), 2),
        (3, json!(0), 1),
        (5, json!(3), 3),
        (8, Value::Null, 2),
        (1, json!("25%"), 1),
    ] {
        let mut world = world_with(deployment(replicas));
        change_spec(&mut world, |spec| {
            spec["strategy"]["rollingUpdate"]["maxUnavailable"] = max_unavailable.clone()
        });
        settle(&mut world);
        let old = standing(&world);
        change_spec(&mut world, |spec| {
            spec["template"]["spec"]["containers"][0]["image"] = "rigor.dev/crash".into()
        });
        let mut least = usize::MAX;
        for _ in 0..60 {
            let decision = world.deploy("web");
            assert!(
                deleted(&decision).len() <= 1 && made(&decision) == deleted(&decision).len(),
                "{decision:?}"
            );
            let pods: Vec<_> = standing(&world).iter().map(|name| world.pod(name)).collect();
            assert!(pods.len() <= replicas as usize, "no surge");
            least = least
                .min(pods.iter().filter(|pod| condition(pod, "Ready").as_deref() == Some("True")).count());
            // boards that take two periods to get things done
            if world.now.mono.as_secs().is_multiple_of(2) {
                boards_act(&mut world);
            }
            world.pass(s(1.0));
        }
        assert!(standing(&world).iter().all(|name| !old.contains(name)), "{replicas}: all are new");
        assert!(least + bound >= replicas as usize, "{replicas}, {max_unavailable}: down to {least}");
    }
}

#[test]
fn depl_04_a_rollout_that_does_not_work_stops_at_the_bound() {
    let mut world = world_with(deployment(4));
    settle(&mut world);
    let old = standing(&world);
    change_spec(&mut world, |spec| spec["template"]["metadata"]["annotations"]["note"] = "2".into());
    for _ in 0..20 {
        world.deploy("web");
        world.pass(s(1.0));
    }
    assert_eq!(standing(&world).iter().filter(|name| old.contains(name)).count(), 3);
    assert_eq!(figures(&world)["updatedReplicas"], 1);
}

#[test]
fn depl_04_old_pods_that_do_not_work_are_replaced_first() {
    let mut world = world_with(deployment(3));
    settle(&mut world);
    let names = standing(&world);
    world.change("pods", "default", &names[1], |pod| pod["status"]["conditions"] = json!([]));
    change_spec(&mut world, |spec| spec["template"]["metadata"]["annotations"]["note"] = "2".into());
    assert_eq!(deleted(&world.deploy("web")), [names[1].as_str()]);
    assert_eq!(deleted(&world.deploy("web")), Vec::<&str>::new(), "one is missing already");
}

#[test]
fn depl_04_recreate_ends_the_old_before_it_makes_the_new() {
    let mut world = world_with(deployment(2));
    change_spec(&mut world, |spec| spec["strategy"] = json!({"type": "Recreate"}));
    settle(&mut world);
    change_spec(&mut world, |spec| spec["template"]["metadata"]["annotations"]["note"] = "2".into());
    let decision = world.deploy("web");
    assert_eq!((deleted(&decision).len(), made(&decision)), (2, 0));
    let decision = world.deploy("web");
    assert_eq!((deleted(&decision).len(), made(&decision)), (0, 0), "they are still going");
    boards_act(&mut world);
    assert_eq!(made(&world.deploy("web")), 2);
}

#[test]
fn depl_05_and_06_status_and_conditions_follow() {
    let mut world = world_with(deployment(3));
    let decision = world.deploy("web");
    assert!(matches!(
        &decision.writes[0],
        Write::Update { resource: "deployments", subresource: Some("status"), .. }
    ));
    assert_eq!(figures(&world), json!({"observedGeneration": 1, "unavailableReplicas": 3}));
    assert_eq!(reason(&world, "Available"), "MinimumReplicasUnavailable");
    world.deploy("web");
    assert_eq!(
        figures(&world),
        json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "unavailableReplicas": 3})
    );
    assert_eq!(reason(&world, "Progressing"), "ReplicaSetUpdated");
    settle(&mut world);
    let complete = json!({
        "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
    });
    assert_eq!(figures(&world), complete);
    let deployment = stored(&world);
    let condition = |kind| {
        let condition = conditions::get(&deployment, kind).expect(kind);
        ["status", "reason", "message"].map(|field| condition[field].as_str().expect(field).to_owned())
    };
    assert_eq!(
        condition("Available"),
        ["True", "MinimumReplicasAvailable", "Deployment has minimum availability."]
    );
    assert_eq!(
        condition("Progressing"),
        ["True", "NewReplicaSetAvailable", "Deployment \"web\" has successfully progressed."]
    );
    for kind in ["Available", "Progressing"] {
        let condition = conditions::get(&deployment, kind).expect(kind);
        assert!(
            condition["lastUpdateTime"].is_string() && condition["lastTransitionTime"].is_string(),
            "{kind}"
        );
    }
    change_spec(&mut world, |spec| spec["replicas"] = 4.into());
    world.deploy("web");
    assert_eq!(figures(&world)["observedGeneration"], 2);
    assert_eq!(figures(&world)["unavailableReplicas"], 1);
}

#[test]
fn depl_06_the_progress_deadline_has_two_edges() {
    for restart in [false, true] {
        let mut world = world_with(deployment(1));
        change_spec(&mut world, |spec| spec["progressDeadlineSeconds"] = 5.into());
        world.pass(s(0.7));
        world.deploy("web");
        world.pass(s(0.01));
        world.deploy("web"); // one pod stands now: progress
        let progressed = world.now;
        if restart {
            world.restart(s(1.0));
        }
        let mut exceeded = None;
        for _ in 0..20 {
            let decision = world.deploy("web");
            if condition(&stored(&world), "Progressing").as_deref() == Some("False") {
                exceeded = exceeded.or(Some(world.now.wall));
                break;
            }
            let look_again = decision.look_again.expect("the deadline is to be kept");
            // nothing happens before that instant
            world.pass((look_again - world.now.mono).mul_f64(0.99));
            world.deploy("web");
            assert_eq!(condition(&stored(&world), "Progressing").as_deref(), Some("True"));
            world.pass(look_again - world.now.mono);
        }
        let took = control_plane_core::time::elapsed(exceeded.expect("it ends"), progressed.wall);
        let limit = if restart { 6.0 } else { 5.0 };
        assert!(took >= s(5.0) && took <= s(limit), "{took:?}");
        assert_eq!(reason(&world, "Progressing"), "ProgressDeadlineExceeded");
        let deployment = stored(&world);
        let message = &conditions::get(&deployment, "Progressing").expect("it")["message"];
        assert_eq!(message, "Deployment \"web\" has timed out progressing.");
        assert!(world.deploy("web").is_idle(), "it stays so");
        boards_act(&mut world);
        settle(&mut world);
        assert_eq!(reason(&world, "Progressing"), "NewReplicaSetAvailable", "until it does progress");
    }
}

#[test]
fn depl_06_every_progress_gives_a_full_deadline() {
    // ready and available at once, or ready long before it is available
    for (min_ready, last, end) in
        [(0, None, "NewReplicaSetAvailable"), (60, Some(s(5.0)), "ReplicaSetUpdated")]
    {
        let mut world = world_with(deployment(2));
        change_spec(&mut world, |spec| {
            spec["progressDeadlineSeconds"] = 5.into();
            spec["minReadySeconds"] = min_ready.into();
        });
        world.deploy("web");
        world.deploy("web");
        for (name, deadline) in standing(&world).into_iter().zip([Some(s(5.0)), last]) {
            world.pass(s(3.0));
            let waiting = world.deploy("web");
            assert_eq!(waiting.look_again, Some(world.now.mono + s(2.0)), "no progress");
            world.start(&name);
            let decision = world.deploy("web");
            assert_eq!(decision.look_again.map(|at| at - world.now.mono), deadline, "one more is ready");
        }
        assert_eq!(reason(&world, "Progressing"), end);
    }
}

#[test]
fn depl_06_min_ready_seconds_delay_availability() {
    let mut world = world_with(deployment(1));
    change_spec(&mut world, |spec| spec["minReadySeconds"] = 10.into());
    world.pass(s(0.9));
    world.deploy("web");
    boards_act(&mut world);
    let ready = world.now.mono;
    let decision = world.deploy("web");
    assert_eq!(decision.look_again, Some(ready + s(10.0)));
    assert_eq!(
        (figures(&world)["readyReplicas"].clone(), figures(&world).get("availableReplicas")),
        (json!(1), None)
    );
    world.pass(s(9.999));
    world.deploy("web");
    assert_eq!(figures(&world).get("availableReplicas"), None);
    world.pass(s(0.001));
    world.deploy("web");
    assert_eq!(figures(&world)["availableReplicas"], 1);
}

#[test]
fn depl_08_paused_rollouts_replace_nothing_until_resumed() {
    let mut world = world_with(deployment(2));
    settle(&mut world);
    let old = standing(&world);
    change_spec(&mut world, |spec| {
        spec["paused"] = true.into();
        spec["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = "now".into();
    });
    settle(&mut world);
    assert_eq!(standing(&world), old);
    assert_eq!(reason(&world, "Progressing"), "DeploymentPaused");
    change_spec(&mut world, |spec| spec["replicas"] = 3.into());
    settle(&mut world);
    assert_eq!(standing(&world).len(), 3, "scaling goes on");
    change_spec(&mut world, |spec| spec["paused"] = false.into());
    settle(&mut world);
    assert!(standing(&world).len() == 3 && standing(&world).iter().all(|name| !old.contains(name)));
    assert_eq!(reason(&world, "Progressing"), "NewReplicaSetAvailable");
}

#[test]
fn depl_10_a_deleted_pod_is_replaced_and_an_evicted_one_is_not() {
    let mut world = world_with(deployment(2));
    settle(&mut world);
    let name = standing(&world)[0].clone();
    world.remove("pods", &Key::new("default", name.clone()));
    assert_eq!(made(&world.deploy("web")), 1);
    settle(&mut world);
    let name = standing(&world)[0].clone();
    let before = world.pod(&name);
    let after = control_plane_core::controllers::node_lifecycle::evicted(&before, "why", &world.now);
    world.put("pods", after);
    for _ in 0..5 {
        assert_eq!(made(&world.deploy("web")), 0);
        world.pass(s(1.0));
    }
    assert_eq!(world.pod(&name)["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(reason(&world, "Available"), "MinimumReplicasUnavailable");
}

#[test]
fn depl_10_a_finished_pod_is_replaced_and_the_youngest_are_kept_to_be_seen() {
    let mut world = world_with(deployment(2));
    for _ in 0..6 {
        settle(&mut world);
        let running: Vec<_> =
            standing(&world).into_iter().filter(|n| world.pod(n)["status"]["phase"] == "Running").collect();
        assert_eq!(running.len(), 2);
        world.change("pods", "default", &running[0], |pod| {
            pod["status"]["phase"] = "Failed".into();
            pod["status"]["conditions"] = json!([]);
        });
    }
    settle(&mut world);
    let failed =
        standing(&world).iter().filter(|name| world.pod(name)["status"]["phase"] == "Failed").count();
    assert_eq!(failed, 2);
}

#[test]
fn depl_11_and_13_pods_of_others_and_of_nobody_do_not_count() {
    let mut world = world_with(deployment(1));
    let mut orphan = pod("orphan", json!({}));
    orphan["metadata"]["labels"] = json!({"app": "web"});
    let mut theirs = orphan.clone();
    theirs["metadata"]["name"] = "theirs".into();
    let other = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web2", "uid": "other", "controller": true});
    theirs["metadata"]["ownerReferences"] = json!([other]);
    world.put("pods", orphan);
    world.put("pods", theirs);
    settle(&mut world);
    assert_eq!(standing(&world).len(), 3);
    assert_eq!(figures(&world)["replicas"], 1);
    change_spec(&mut world, |spec| spec["replicas"] = 0.into());
    settle(&mut world);
    assert_eq!(standing(&world), ["orphan", "theirs"]);
    assert_eq!(world.pod("orphan")["metadata"].get("ownerReferences"), None);
}

#[test]
fn a_pod_that_no_longer_matches_is_let_go_of() {
    let mut world = world_with(deployment(1));
    settle(&mut world);
    let name = standing(&world)[0].clone();
    world.change("pods", "default", &name, |pod| pod["metadata"]["labels"]["app"] = "debug".into());
    settle(&mut world);
    assert_eq!(standing(&world).len(), 2);
    assert_eq!(world.pod(&name)["metadata"].get("ownerReferences"), None);
}

#[test]
fn a_deployment_that_is_going_is_left_alone() {
    let mut world = world_with(deployment(3));
    world.change("deployments", "default", "web", |it| {
        it["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into()
    });
    assert!(world.deploy("web").is_idle());
    assert!(world.deploy("absent").is_idle());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn depl_12_available_says_exactly_whether_enough_are_available(
        steps in prop::collection::vec((0_u8..7, 0_usize..8), 1..40),
        max_unavailable in prop::sample::select(vec![json!("25%"), json!("50%"), json!(0), json!(1), json!("100%")]),
    ) {
        let mut world = world_with(deployment(3));
        change_spec(&mut world, |spec| spec["strategy"]["rollingUpdate"]["maxUnavailable"] = max_unavailable.clone());
        for (step, number) in steps {
            let names = standing(&world);
            let some = names.get(number % names.len().max(1)).cloned();
            match (step, some) {
                (0, _) => change_spec(&mut world, |spec| spec["replicas"] = number.into()),
                (1, _) => change_spec(&mut world, |spec| {
                    spec["template"]["metadata"]["annotations"]["note"] = number.to_string().into();
                }),
                (2, Some(name)) => world.remove("pods", &Key::new("default", name)),
                (3, Some(name)) => world.change("pods", "default", &name, |pod| pod["status"]["conditions"] = json!([])),
                (4, Some(name)) => world.start(&name),
                (5, _) => boards_act(&mut world),
                _ => {}
            }
            world.pass(s(1.0));
            let before = standing(&world).len();
            world.deploy("web");
            let deployment = stored(&world);
            let figure = |name: &str| deployment["status"][name].as_u64().unwrap_or(0);
            let replicas = deployment["spec"]["replicas"].as_u64().expect("replicas");
            let floor = match max_unavailable.as_str() {
                Some(percent) => replicas * percent.trim_end_matches('%').parse::<u64>().expect("a figure") / 100,
                None => max_unavailable.as_u64().expect("a figure"),
            };
            prop_assert_eq!(&deployment["status"]["observedGeneration"], &deployment["metadata"]["generation"]);
            let expected = if figure("availableReplicas") + floor >= replicas { "True" } else { "False" };
            prop_assert_eq!(condition(&deployment, "Available"), Some(expected.to_owned()));
            prop_assert_eq!(figure("replicas"), before as u64);
            prop_assert_eq!(standing(&world).len() as u64, replicas, "a pass leaves as many as asked for");
        }
    }
}
