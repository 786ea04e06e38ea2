//! DS: one pod a node, whatever joins, leaves, is lost or fails, and replacements that keep within their bound.

use std::collections::BTreeMap;

use control_plane_core::controllers::daemonset;
use control_plane_core::{Decision, Key, Write};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, node, pod, s};

pub fn agent() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {
            "name": "agent", "namespace": "default", "generation": 1,
            "annotations": {"deprecated.daemonset.template.generation": "1"},
        },
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            "template": {
                "metadata": {"labels": {"app": "agent"}, "annotations": {"note": "1"}},
                "spec": {"containers": [{"name": "c", "image": "rigor.dev/pause"}]},
            },
        },
    })
}

fn join(world: &mut World, name: &str) {
    world.register(node(name, json!({"memory": "1Gi", "esp32.io/gpio": "10"})));
}

fn world_of(nodes: &[&str], change: impl FnOnce(&mut Value)) -> World {
    let mut world = World::new();
    for name in nodes {
        join(&mut world, name);
    }
    let mut daemon_set = agent();
    change(&mut daemon_set["spec"]);
    world.put("daemonsets", daemon_set);
    world
}

fn tend(world: &mut World) -> Vec<Decision> {
    world.workload(daemonset::decide, "agent")
}

/// Every pod by the node that it is on or meant for, with whether it is on its way out.
fn placed(world: &World) -> Vec<(String, Value)> {
    let pods = world.snapshot.list_in("pods", "default");
    let host = |pod: &Value| {
        let host = [&pod["spec"]["nodeName"], &pod["spec"]["nodeSelector"]["kubernetes.io/hostname"]];
        host.iter().find_map(|it| it.as_str()).expect("a place").to_owned()
    };
    pods.map(|(_, pod)| (host(pod), Value::clone(pod))).collect()
}

fn hosts(world: &World) -> Vec<String> {
    let mut hosts: Vec<String> = placed(world).into_iter().map(|(host, _)| host).collect();
    hosts.sort();
    hosts
}

fn name_on(world: &World, host: &str) -> String {
    let (_, pod) = placed(world).into_iter().find(|(it, _)| it == host).expect("a pod there");
    pod["metadata"]["name"].as_str().expect("a name").to_owned()
}

/// Boards that answer: what is bound to them runs, what is to go is gone.
fn boards_act(world: &mut World, acts: impl Fn(&str) -> bool) {
    world.retry_pending();
    for (host, pod) in placed(world) {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        if pod["spec"]["nodeName"].is_null() || !acts(&host) {
            continue;
        }
        if pod["metadata"]["deletionTimestamp"].is_string() {
            world.remove("pods", &Key::new("default", name));
        } else if pod["status"]["phase"].as_str().is_none_or(|phase| phase == "Pending") {
            world.start(name);
        }
    }
}

fn settle(world: &mut World) {
    for _ in 0..60 {
        let idle = tend(world).iter().all(Decision::is_idle);
        boards_act(world, |_| true);
        world.pass(s(1.0));
        if idle && tend(world).iter().all(Decision::is_idle) {
            return;
        }
    }
    panic!("it does not come to rest");
}

fn change_spec(world: &mut World, change: impl FnOnce(&mut Value)) {
    world.change("daemonsets", "default", "agent", |daemon_set| {
        change(&mut daemon_set["spec"]);
        let generation = daemon_set["metadata"]["generation"].as_i64().expect("a generation");
        daemon_set["metadata"]["generation"] = (generation + 1).into();
    });
}

fn note(world: &mut World, text: &str) {
    change_spec(world, |spec| spec["template"]["metadata"]["annotations"]["note"] = text.into());
}

fn status(world: &World) -> Value {
    world.get("daemonsets", "default", "agent").expect("it")["status"].clone()
}

fn messages(world: &World, reason: &str) -> Vec<String> {
    world.told(reason).iter().map(|told| told.event.message.clone()).collect()
}

fn deleted(decisions: &[Decision]) -> Vec<String> {
    let writes = decisions.iter().flat_map(|decision| &decision.writes);
    let names = writes.filter_map(|write| match write {
        Write::Delete { name, .. } => Some(name.clone()),
        _ => None,
    });
    names.collect()
}

#[test]
fn ds_01_each_node_that_matches_has_a_pod_of_its_own() {
    let mut world = world_of(&["a", "b", "c"], |spec| {
        spec["template"]["spec"]["nodeSelector"] = json!({"role": "agent"});
    });
    tend(&mut world);
    assert_eq!(hosts(&world), [""; 0]);
    for name in ["a", "c"] {
        world.change("nodes", "", name, |node| node["metadata"]["labels"]["role"] = "agent".into());
    }
    tend(&mut world);
    assert_eq!(hosts(&world), ["a", "c"]);
    let name = name_on(&world, "a");
    let pod = world.pod(&name);
    assert!(name.starts_with("agent-") && name.len() == "agent-".len() + 5, "{name}");
    assert_eq!(pod["metadata"]["generateName"], "agent-");
    assert_eq!(pod["spec"]["nodeSelector"], json!({"role": "agent", "kubernetes.io/hostname": "a"}));
    let hash = pod["metadata"]["labels"]["controller-revision-hash"].as_str().expect("a hash");
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"app": "agent", "controller-revision-hash": hash, "pod-template-generation": "1"})
    );
    assert_eq!(pod["metadata"]["annotations"], json!({"note": "1"}));
    let uid = &world.get("daemonsets", "default", "agent").expect("it")["metadata"]["uid"];
    assert_eq!(
        pod["metadata"]["ownerReferences"],
        json!([{
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }])
    );
    let created = messages(&world, "SuccessfulCreate");
    assert!(created.len() == 2 && created.contains(&format!("Created pod: {name}")), "{created:?}");
    settle(&mut world);
    for (host, pod) in placed(&world) {
        assert_eq!(pod["spec"]["nodeName"], host);
    }
}

#[test]
fn ds_01_a_template_for_one_node_has_one_pod() {
    let mut world = world_of(&["a", "b"], |spec| spec["template"]["spec"]["nodeName"] = "b".into());
    settle(&mut world);
    assert_eq!(
        (hosts(&world), status(&world)["desiredNumberScheduled"].clone()),
        (vec!["b".to_owned()], json!(1))
    );
}

#[test]
fn ds_02_nodes_that_join_get_theirs_and_nodes_that_leave_lose_it() {
    let mut world = world_of(&["a"], |_| {});
    settle(&mut world);
    join(&mut world, "b");
    tend(&mut world);
    assert_eq!(hosts(&world), ["a", "b"]);
    settle(&mut world);
    // the Node object goes, and no board is left to end its pod
    world.remove("nodes", &Key::new("", "a"));
    let gone = name_on(&world, "a");
    tend(&mut world);
    assert_eq!(hosts(&world), ["b"]);
    assert_eq!(messages(&world, "SuccessfulDelete"), [format!("Deleted pod: {gone}")]);
    // a node that stops matching lets its board end the pod
    change_spec(&mut world, |spec| spec["template"]["spec"]["nodeSelector"] = json!({"role": "agent"}));
    tend(&mut world);
    assert!(world.pod(&name_on(&world, "b"))["metadata"]["deletionTimestamp"].is_string());
    settle(&mut world);
    assert_eq!(hosts(&world), [""; 0]);
    // and the node comes back before its pod was ever bound
    world.change("nodes", "", "b", |node| node["metadata"]["labels"]["role"] = "agent".into());
    tend(&mut world);
    assert_eq!(hosts(&world), ["b"]);
    world.remove("nodes", &Key::new("", "b"));
    tend(&mut world);
    assert_eq!(hosts(&world), [""; 0]);
}

fn ready(world: &mut World, name: &str, status: &str) {
    world.change("nodes", "", name, |node| node["status"]["conditions"][0]["status"] = status.into());
}

#[test]
fn ds_03_and_node_17_pods_on_unreachable_nodes_stay() {
    let mut world = world_of(&["a", "b"], |spec| {
        spec["template"]["spec"]["tolerations"] = json!([
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1},
        ]);
    });
    settle(&mut world);
    let name = name_on(&world, "a");
    let before = world.pod(&name);
    let tolerations = before["spec"]["tolerations"].as_array().expect("a list").clone();
    for (key, effect) in [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ] {
        let key = format!("node.kubernetes.io/{key}");
        let expected = json!({"key": key, "operator": "Exists", "effect": effect});
        let found: Vec<_> = tolerations.iter().filter(|it| it["key"] == key.as_str()).collect();
        assert_eq!(found, [&expected]);
    }
    assert_eq!(tolerations.len(), 7, "and the template's own for every taint: {tolerations:?}");
    for second in 0..400 {
        if second % 5 == 0 {
            world.renew("b", Some(15));
        }
        world.run_until(world.now.mono + s(1.0), s(0.5), s(0.0));
        tend(&mut world);
    }
    let after = world.pod(&name);
    assert_eq!(
        (&after["metadata"]["uid"], &after["spec"]["nodeName"], &after["metadata"]["deletionTimestamp"]),
        (&before["metadata"]["uid"], &json!("a"), &Value::Null)
    );
    assert_eq!((world.told("Evicted").len(), hosts(&world).len()), (0, 2));
    assert_eq!(status(&world)["numberUnavailable"], 1);
    // a rollout leaves it alone too, and waits for the node
    note(&mut world, "2");
    for _ in 0..5 {
        tend(&mut world);
        boards_act(&mut world, |host| host == "b");
        world.pass(s(1.0));
    }
    assert_eq!(status(&world).get("updatedNumberScheduled"), None, "one is away already");
    assert_eq!(world.pod(&name)["metadata"].get("deletionTimestamp"), None);
    world.renew("a", Some(15));
    world.tick();
    world.change("pods", "default", &name, |pod| {
        pod["status"]["conditions"] = before["status"]["conditions"].clone()
    });
    settle(&mut world);
    assert_eq!((hosts(&world).len(), status(&world)["updatedNumberScheduled"].clone()), (2, json!(2)));
}

#[test]
fn ds_04_a_rollout_goes_node_by_node() {
    for (bound, expected) in
        [(json!(1), 1), (json!(2), 2), (json!("30%"), 2), (json!("1%"), 1), (json!(0), 1)]
    {
        let nodes = ["a", "b", "c", "d", "e"];
        let mut world = world_of(&nodes, |spec| {
            spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = bound.clone();
        });
        settle(&mut world);
        note(&mut world, "2");
        let mut most = 0;
        for second in 0_u32..40 {
            let before: BTreeMap<String, Value> = placed(&world).into_iter().collect();
            for decision in tend(&mut world) {
                for write in &decision.writes {
                    let Write::Create { object, .. } = write else { continue };
                    let host =
                        object["spec"]["nodeSelector"]["kubernetes.io/hostname"].as_str().expect("a host");
                    assert!(!before.contains_key(host), "{host} is not free yet");
                }
            }
            let works = |pod: &Value| {
                pod["metadata"]["deletionTimestamp"].is_null()
                    && control_plane_core::conditions::is_true(pod, "Ready")
            };
            most = most.max(nodes.len() - placed(&world).iter().filter(|(_, pod)| works(pod)).count());
            // boards that take two periods to get things done
            if second.is_multiple_of(2) {
                boards_act(&mut world, |_| true);
            }
            world.pass(s(1.0));
        }
        assert_eq!(most, expected, "{bound}");
        assert_eq!(status(&world)["updatedNumberScheduled"], 5, "{bound}");
    }
}

#[test]
fn ds_04_old_pods_that_do_not_work_give_way_first() {
    let mut world = world_of(&["a", "b", "c"], |_| {});
    settle(&mut world);
    let lame = name_on(&world, "b");
    world.change("pods", "default", &lame, |pod| pod["status"]["conditions"] = json!([]));
    note(&mut world, "2");
    assert_eq!(deleted(&tend(&mut world)), [lame]);
    assert_eq!(deleted(&tend(&mut world)), [""; 0], "one is away already");
    boards_act(&mut world, |_| true);
    tend(&mut world);
    assert_eq!(deleted(&tend(&mut world)), [""; 0], "its replacement does not work yet");
    boards_act(&mut world, |_| true);
    assert_eq!(deleted(&tend(&mut world)).len(), 1);
}

#[test]
fn ds_04_min_ready_seconds_hold_a_rollout_back() {
    let mut world = world_of(&["a", "b"], |spec| spec["minReadySeconds"] = 10.into());
    tend(&mut world);
    boards_act(&mut world, |_| true);
    let decisions = tend(&mut world);
    assert_eq!(decisions.last().and_then(|it| it.look_again), Some(world.now.mono + s(10.0)));
    assert_eq!(
        (status(&world)["numberReady"].clone(), status(&world)["numberUnavailable"].clone()),
        (json!(2), json!(2))
    );
    world.pass(s(10.0));
    tend(&mut world);
    assert_eq!(status(&world)["numberAvailable"], 2);
}

#[test]
fn ds_05_on_delete_leaves_it_to_people() {
    let mut world = world_of(&["a", "b"], |spec| spec["updateStrategy"] = json!({"type": "OnDelete"}));
    settle(&mut world);
    let names = (name_on(&world, "a"), name_on(&world, "b"));
    note(&mut world, "2");
    settle(&mut world);
    assert_eq!((name_on(&world, "a"), name_on(&world, "b")), names);
    assert_eq!(status(&world).get("updatedNumberScheduled"), None);
    world.remove("pods", &Key::new("default", names.0.as_str()));
    settle(&mut world);
    assert_ne!(name_on(&world, "a"), names.0);
    assert_eq!(name_on(&world, "b"), names.1);
    assert_eq!(status(&world)["updatedNumberScheduled"], 1);
}

#[test]
fn ds_07_the_status_counts_nodes() {
    let mut world = world_of(&["a", "b", "c"], |_| {});
    tend(&mut world);
    assert_eq!(
        status(&world),
        json!({
            "currentNumberScheduled": 3, "desiredNumberScheduled": 3, "numberMisscheduled": 0, "numberReady": 0,
            "updatedNumberScheduled": 3, "numberUnavailable": 3, "observedGeneration": 1,
        }),
        "what a pass made counts at its end"
    );
    settle(&mut world);
    for name in ["a", "b"] {
        world.change("nodes", "", name, |node| node["metadata"]["labels"]["role"] = "agent".into());
    }
    change_spec(&mut world, |spec| spec["template"]["spec"]["nodeSelector"] = json!({"role": "agent"}));
    tend(&mut world);
    let figures = status(&world);
    assert_eq!(figures["numberMisscheduled"], 1, "{figures}");
    assert_eq!((&figures["desiredNumberScheduled"], &figures["observedGeneration"]), (&json!(2), &json!(2)));
    settle(&mut world);
    assert_eq!(
        status(&world),
        json!({
            "currentNumberScheduled": 2, "desiredNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 2,
            "updatedNumberScheduled": 2, "numberAvailable": 2, "observedGeneration": 2,
        })
    );
}

#[test]
fn ds_09_cordoned_and_not_ready_nodes_have_a_pod_that_waits() {
    let mut world = world_of(&["a", "b"], |_| {});
    world.change("nodes", "", "a", |node| node["spec"]["unschedulable"] = true.into());
    ready(&mut world, "b", "False");
    settle(&mut world);
    assert_eq!(hosts(&world), ["a", "b"]);
    for (_, pod) in placed(&world) {
        assert_eq!(pod["spec"].get("nodeName"), None);
    }
    world.change("nodes", "", "a", |node| node["spec"]["unschedulable"] = false.into());
    ready(&mut world, "b", "True");
    settle(&mut world);
    assert!(placed(&world).iter().all(|(host, pod)| pod["spec"]["nodeName"] == host.as_str()));
}

#[test]
fn a_daemon_that_ends_is_replaced() {
    let mut world = world_of(&["a"], |_| {});
    for (phase, reason, words) in [
        ("Failed", "FailedDaemonPod", "Found failed daemon pod default/NAME on node a, will try to kill it"),
        (
            "Succeeded",
            "SucceededDaemonPod",
            "Found succeeded daemon pod default/NAME on node a, will try to delete it",
        ),
    ] {
        settle(&mut world);
        let name = name_on(&world, "a");
        world.change("pods", "default", &name, |pod| pod["status"]["phase"] = phase.into());
        tend(&mut world);
        assert_ne!(name_on(&world, "a"), name);
        assert_eq!(hosts(&world).len(), 1);
        assert_eq!(messages(&world, reason), [words.replace("NAME", &name)]);
    }
}

#[test]
fn of_two_pods_for_a_node_the_older_stays() {
    let mut world = world_of(&["a"], |_| {});
    settle(&mut world);
    let name = name_on(&world, "a");
    let mut second = world.pod(&name);
    second["metadata"]["name"] = "aaa".into();
    second["metadata"]["uid"] = "aaa".into();
    second["metadata"]["creationTimestamp"] = "2026-11-29T13:00:00Z".into();
    world.put("pods", second);
    assert_eq!(deleted(&tend(&mut world)), ["aaa"]);
    settle(&mut world);
    assert_eq!(name_on(&world, "a"), name);
}

#[test]
fn pods_of_others_and_of_nobody_are_left_alone_and_strangers_let_go_of() {
    let mut world = world_of(&["a"], |_| {});
    let mut free = pod("free", json!({}));
    free["metadata"]["labels"] = json!({"app": "agent"});
    world.put("pods", free);
    tend(&mut world);
    world.retry_pending();
    let name = world
        .snapshot
        .list("pods")
        .map(|(key, _)| key.name.clone())
        .find(|name| name != "free")
        .expect("its own");
    world.change("pods", "default", &name, |pod| pod["metadata"]["labels"]["app"] = "debug".into());
    tend(&mut world);
    assert_eq!(world.pod(&name)["metadata"].get("ownerReferences"), None);
    assert_eq!(world.snapshot.list("pods").count(), 3, "and another one is made");
    assert_eq!(world.pod("free")["metadata"].get("deletionTimestamp"), None);
}

#[test]
fn a_daemon_set_that_is_going_is_left_alone() {
    let mut world = world_of(&["a"], |_| {});
    world.change("daemonsets", "default", "agent", |it| {
        it["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into();
    });
    assert!(tend(&mut world).iter().all(Decision::is_idle));
    assert!(world.workload(daemonset::decide, "absent").iter().all(Decision::is_idle));
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
enum Step {
    Join(usize),
    Leave(usize),
    Label(usize, bool),
    Cordon(usize, bool),
    Lose(usize, bool),
    Template(u8),
    End(usize, &'static str),
    Delete(usize),
    Boards,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES.len();
    prop_oneof![
        name.clone().prop_map(Step::Join),
        name.clone().prop_map(Step::Leave),
        (name.clone(), any::<bool>()).prop_map(|(name, on)| Step::Label(name, on)),
        (name.clone(), any::<bool>()).prop_map(|(name, on)| Step::Cordon(name, on)),
        (name.clone(), any::<bool>()).prop_map(|(name, on)| Step::Lose(name, on)),
        (0_u8..3).prop_map(Step::Template),
        (name.clone(), prop::sample::select(vec!["Failed", "Succeeded"]))
            .prop_map(|(name, end)| Step::End(name, end)),
        name.prop_map(Step::Delete),
        Just(Step::Boards),
        Just(Step::Boards),
        Just(Step::Restart),
    ]
}

fn perform(world: &mut World, step: &Step) {
    let here = |world: &World, name: &str| world.snapshot.get("nodes", "", name).is_some();
    let some_pod = |world: &World, name: &str| {
        placed(world)
            .into_iter()
            .find(|(host, _)| host == name)
            .map(|(_, pod)| pod["metadata"]["name"].as_str().expect("a name").to_owned())
    };
    match step {
        Step::Join(i) if !here(world, NAMES[*i]) => {
            join(world, NAMES[*i]);
            world.change("nodes", "", NAMES[*i], |node| node["metadata"]["labels"]["role"] = "agent".into());
        }
        Step::Leave(i) if here(world, NAMES[*i]) => world.remove("nodes", &Key::new("", NAMES[*i])),
        Step::Label(i, on) if here(world, NAMES[*i]) => world.change("nodes", "", NAMES[*i], |node| {
            node["metadata"]["labels"]["role"] = if *on { "agent" } else { "other" }.into();
        }),
        Step::Cordon(i, on) if here(world, NAMES[*i]) => {
            world.change("nodes", "", NAMES[*i], |node| node["spec"]["unschedulable"] = (*on).into());
        }
        Step::Lose(i, on) if here(world, NAMES[*i]) => {
            ready(world, NAMES[*i], if *on { "Unknown" } else { "True" })
        }
        Step::Template(version) => note(world, &version.to_string()),
        Step::End(i, phase) => {
            if let Some(name) = some_pod(world, NAMES[*i]) {
                world.change("pods", "default", &name, |pod| {
                    pod["status"]["phase"] = (*phase).into();
                    pod["status"]["conditions"] = json!([]);
                });
            }
        }
        Step::Delete(i) => {
            if let Some(name) = some_pod(world, NAMES[*i]) {
                world.remove("pods", &Key::new("default", name));
            }
        }
        Step::Boards => boards_act(world, |_| true),
        Step::Restart => world.restart(s(3.0)),
        Step::Join(_) | Step::Leave(_) | Step::Label(..) | Step::Cordon(..) | Step::Lose(..) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn ds_01_to_05_any_history_has_at_most_one_pod_a_node_and_comes_to_rest(
        steps in prop::collection::vec(step(), 1..60),
        bound in 1_usize..4,
    ) {
        let mut world = world_of(&[], |spec| {
            spec["template"]["spec"]["nodeSelector"] = json!({"role": "agent"});
            spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = bound.into();
        });
        for step in steps {
            perform(&mut world, &step);
            world.pass(s(1.0));
            let worked = |world: &World| {
                let works = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null() && control_plane_core::conditions::is_true(pod, "Ready");
                placed(world).iter().filter(|(_, pod)| works(pod)).map(|(host, _)| host.clone()).collect::<Vec<_>>()
            };
            let before = worked(&world);
            tend(&mut world);
            let all = hosts(&world);
            let mut once = all.clone();
            once.dedup();
            prop_assert_eq!(&all, &once, "a node has two");
            let wanted: Vec<&str> = NAMES.into_iter().filter(|name| {
                world.get("nodes", "", name).is_some_and(|node| node["metadata"]["labels"]["role"] == "agent")
            }).collect();
            for name in &wanted {
                prop_assert!(all.iter().any(|host| host == name), "{} has none", name);
            }
            for (host, pod) in placed(&world) {
                prop_assert!(wanted.contains(&host.as_str()) || pod["metadata"]["deletionTimestamp"].is_string(), "{} is not wanted on {}", pod, host);
            }
            // whoever stopped working in this pass was replaced, within the bound
            let after = worked(&world);
            let gave_way = before.iter().filter(|host| wanted.contains(&host.as_str()) && !after.contains(host)).count();
            let away = wanted.iter().filter(|name| !after.iter().any(|host| host == *name)).count();
            prop_assert!(gave_way == 0 || away <= bound, "{} of {:?} are away", away, wanted);
        }
        for name in NAMES {
            perform(&mut world, &Step::Lose(NAMES.iter().position(|it| *it == name).expect("it"), false));
            perform(&mut world, &Step::Cordon(NAMES.iter().position(|it| *it == name).expect("it"), false));
        }
        settle(&mut world);
        let wanted = world.snapshot.list("nodes").filter(|(_, node)| node["metadata"]["labels"]["role"] == "agent").count();
        let figures = status(&world);
        for name in ["desiredNumberScheduled", "currentNumberScheduled", "numberReady"] {
            prop_assert_eq!(figures[name].as_u64(), Some(wanted as u64), "{} of {}", name, figures);
        }
        for name in ["updatedNumberScheduled", "numberAvailable"] {
            prop_assert_eq!(figures[name].as_u64().unwrap_or(0), wanted as u64, "{} of {}", name, figures);
        }
        prop_assert_eq!(placed(&world).len(), wanted);
    }
}
