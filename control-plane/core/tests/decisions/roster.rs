//! What is kept of a DaemonSet's places is what the snapshot says, whatever happened to it.

use control_plane_core::Key;
use control_plane_core::controllers::daemonset::{self, Roster};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::daemonset::agent;
use crate::world::{World, node, s};

const NODES: [&str; 4] = ["a", "b", "c", "d"];
const PHASES: [&str; 4] = ["Pending", "Running", "Succeeded", "Failed"];
/// So many pods, of which some are of another DaemonSet.
const PODS: usize = 6;

#[derive(Debug, Clone)]
enum Step {
    Node {
        name: usize,
        host: usize,
        wanted: bool,
        ready: usize,
        cordoned: bool,
    },
    NodeGone {
        name: usize,
    },
    Heartbeat {
        name: usize,
    },
    Pod {
        name: usize,
        of: PodOf,
    },
    PodGone {
        name: usize,
    },
    Spec {
        selector: bool,
        node_selector: bool,
        min_ready: u64,
        note: usize,
        max_unavailable: usize,
    },
    Away {
        gone: bool,
    },
    /// The decision is carried out.
    Tend,
    Pass {
        tenths: u32,
    },
    /// The server starts anew.
    Restart,
}

#[derive(Debug, Clone)]
struct PodOf {
    owner: usize,
    selected: bool,
    node: Option<usize>,
    host: Option<usize>,
    phase: usize,
    ready: Option<u32>,
    current: bool,
    going: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let (name, any) = (0..NODES.len(), any::<bool>);
    let of = (
        prop::sample::select(vec![0_usize, 0, 0, 1, 2]),
        prop::bool::weighted(0.8),
        prop::option::of(name.clone()),
        prop::option::of(name.clone()),
        0..PHASES.len(),
        prop::option::of(0..40_u32),
        any(),
        prop::bool::weighted(0.2),
    );
    let of = of.prop_map(|(owner, selected, node, host, phase, ready, current, going)| PodOf {
        owner,
        selected,
        node,
        host,
        phase,
        ready,
        current,
        going,
    });
    prop_oneof![
        4 => (name.clone(), name.clone(), prop::bool::weighted(0.7), 0..3_usize, any())
            .prop_map(|(name, host, wanted, ready, cordoned)| Step::Node { name, host, wanted, ready, cordoned }),
        1 => name.clone().prop_map(|name| Step::NodeGone { name }),
        1 => name.prop_map(|name| Step::Heartbeat { name }),
        6 => (0..PODS, of).prop_map(|(name, of)| Step::Pod { name, of }),
        2 => (0..PODS).prop_map(|name| Step::PodGone { name }),
        1 => (prop::bool::weighted(0.9), any(), 0..3_u64, 0..2_usize, 1..3_usize).prop_map(
            |(selector, node_selector, min_ready, note, max_unavailable)| Step::Spec {
                selector, node_selector, min_ready, note, max_unavailable,
            }
        ),
        1 => prop::bool::weighted(0.2).prop_map(|gone| Step::Away { gone }),
        6 => Just(Step::Tend),
        3 => (1..25_u32).prop_map(|tenths| Step::Pass { tenths }),
        1 => Just(Step::Restart),
    ]
}

/// The hash of the template that a DaemonSet would make its pods from now, if there is one.
fn hash(world: &World) -> String {
    let pods = daemonset::decide(&world.snapshot, &Key::new("default", "agent"), &world.now);
    let made = pods.writes.iter().find_map(|write| match write {
        control_plane_core::Write::Create { object, .. } => Some(object),
        _ => None,
    });
    let label = made.map(|pod| &pod["metadata"]["labels"]["controller-revision-hash"]);
    label.and_then(Value::as_str).unwrap_or("another").to_owned()
}

fn the_pod(world: &World, name: usize, of: &PodOf) -> Value {
    let owner = ["agent-uid", "other-uid", ""][of.owner];
    let mut labels = json!({"app": if of.selected { "agent" } else { "none" }});
    if of.current {
        labels["controller-revision-hash"] = hash(world).into();
    }
    let mut pod = json!({
        "metadata": {"name": format!("p{name}"), "namespace": "default", "uid": format!("p{name}"), "labels": labels},
        "spec": {},
        "status": {"phase": PHASES[of.phase]},
    });
    if !owner.is_empty() {
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": owner, "controller": true}]);
    }
    if let Some(node) = of.node {
        pod["spec"]["nodeName"] = NODES[node].into();
    }
    if let Some(host) = of.host {
        pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": NODES[host]});
    }
    if let Some(tenths) = of.ready {
        // Some stamps are of now, some older, some of a time to come.
        let since = world.now.wall + s(1.0) - s(f64::from(tenths) / 10.0);
        let since = control_plane_core::time::stamp(since);
        pod["status"]["conditions"] =
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]);
    }
    if of.going {
        pod["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into();
    }
    pod
}

fn set_up(world: &mut World) {
    let mut daemon_set = agent();
    daemon_set["metadata"]["uid"] = "agent-uid".into();
    world.put("daemonsets", daemon_set);
}

fn happen(world: &mut World, step: &Step) {
    match step {
        Step::Node { name, host, wanted, ready, cordoned } => {
            let mut object = node(NODES[*name], json!({"memory": "1Gi"}));
            object["metadata"]["labels"] = json!({"kubernetes.io/hostname": NODES[*host], "wanted": wanted});
            object["spec"]["unschedulable"] = (*cordoned).into();
            object["status"]["conditions"][0]["status"] = ["True", "False", "Unknown"][*ready].into();
            world.put("nodes", object);
        }
        Step::NodeGone { name } => world.remove("nodes", &Key::new("", NODES[*name])),
        Step::Heartbeat { name } => {
            if let Some(mut node) = world.get("nodes", "", NODES[*name]) {
                node["status"]["conditions"][0]["lastHeartbeatTime"] = world.now.stamp().into();
                world.put("nodes", node);
            }
        }
        Step::Pod { name, of } => {
            let pod = the_pod(world, *name, of);
            world.put("pods", pod);
        }
        Step::PodGone { name } => world.remove("pods", &Key::new("default", format!("p{name}"))),
        Step::Spec { selector, node_selector, min_ready, note, max_unavailable } => {
            let Some(mut daemon_set) = world.get("daemonsets", "default", "agent") else { return };
            let spec = &mut daemon_set["spec"];
            spec["selector"] = match selector {
                true => json!({"matchLabels": {"app": "agent"}}),
                false => json!({"matchExpressions": [{"key": "app", "operator": "NoSuch"}]}),
            };
            spec["template"]["spec"]["nodeSelector"] =
                if *node_selector { json!({"wanted": true}) } else { Value::Null };
            spec["minReadySeconds"] = (*min_ready).into();
            spec["template"]["metadata"]["annotations"]["note"] = note.to_string().into();
            spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = (*max_unavailable).into();
            world.put("daemonsets", daemon_set);
        }
        Step::Away { gone: true } => world.remove("daemonsets", &Key::new("default", "agent")),
        Step::Away { gone: false } => {
            if world.get("daemonsets", "default", "agent").is_none() {
                set_up(world);
            }
        }
        Step::Tend => {
            let decision = daemonset::decide(&world.snapshot, &Key::new("default", "agent"), &world.now);
            world.apply(decision);
        }
        Step::Pass { tenths } => world.pass(s(f64::from(*tenths) / 10.0)),
        Step::Restart => world.restart(s(0.3)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Looked at after each step, or only now and then.
    #[test]
    fn a_kept_roster_decides_as_one_made_anew(
        steps in prop::collection::vec((step(), prop::bool::weighted(0.6)), 1..60),
    ) {
        let mut world = World::new();
        set_up(&mut world);
        let key = Key::new("default", "agent");
        let mut roster = Roster::default();
        for (step, look) in &steps {
            happen(&mut world, step);
            if matches!(step, Step::Restart) {
                roster = Roster::default();
            }
            if *look {
                let kept = daemonset::decide_with(&mut roster, &world.snapshot, &key, &world.now);
                prop_assert_eq!(kept, daemonset::decide(&world.snapshot, &key, &world.now), "{:?}", step);
            }
        }
    }
}
