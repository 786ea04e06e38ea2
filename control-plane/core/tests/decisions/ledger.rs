//! What schedulers keep of a snapshot is what the snapshot says, whatever happened to it.

use control_plane_core::scheduler::{Assumed, KUBE32, Ledger, Profile, SchedulerConfig, UPSTREAM, schedule};
use control_plane_core::{Key, Snapshot};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, node, pod, s};

const NODES: [&str; 3] = ["a", "b", "c"];
const PHASES: [&str; 4] = ["Pending", "Running", "Succeeded", "Failed"];

#[derive(Debug, Clone)]
enum Change {
    Node { name: usize, memory: u64, cordoned: bool, ready: bool },
    NodeGone { name: usize },
    Pod { name: usize, node: Option<usize>, memory: u64, phase: usize, waiting: bool },
    PodGone { name: usize },
    Reported { name: usize },
}

fn change() -> impl Strategy<Value = Change> {
    let (name, of_pod) = (0..NODES.len(), 0..6_usize);
    prop_oneof![
        3 => (name.clone(), 1..9_u64, any::<bool>(), any::<bool>())
            .prop_map(|(name, memory, cordoned, ready)| Change::Node { name, memory, cordoned, ready }),
        1 => name.clone().prop_map(|name| Change::NodeGone { name }),
        6 => (of_pod.clone(), prop::option::of(name.clone()), 0..4_u64, 0..PHASES.len(), any::<bool>())
            .prop_map(|(name, node, memory, phase, waiting)| Change::Pod { name, node, memory, phase, waiting }),
        2 => of_pod.prop_map(|name| Change::PodGone { name }),
        2 => name.prop_map(|name| Change::Reported { name }),
    ]
}

fn happen(snapshot: &mut Snapshot, world: &World, version: u64, change: &Change) {
    let now = &world.now;
    match change {
        Change::Node { name, memory, cordoned, ready } => {
            let mut object = node(NODES[*name], json!({"memory": memory, "cpu": memory, "pods": 3}));
            object["spec"]["unschedulable"] = (*cordoned).into();
            object["status"]["conditions"][0]["status"] = if *ready { "True" } else { "False" }.into();
            snapshot.observe("nodes", Key::new("", NODES[*name]), Some(object.into()), now);
        }
        Change::NodeGone { name } => snapshot.observe("nodes", Key::new("", NODES[*name]), None, now),
        Change::Pod { name, node, memory, phase, waiting } => {
            let mut object = pod(&format!("p{name}"), json!({"requests": {"memory": memory}}));
            object["metadata"]["uid"] = format!("p{name}").into();
            object["metadata"]["resourceVersion"] = version.to_string().into();
            if let Some(node) = node {
                object["spec"]["nodeName"] = NODES[*node].into();
            }
            let waits = if *waiting { json!([{"state": {"waiting": {}}}]) } else { Value::Null };
            object["status"] = json!({"phase": PHASES[*phase], "containerStatuses": waits});
            snapshot.observe("pods", Key::of(&object), Some(object.into()), now);
        }
        Change::PodGone { name } => {
            snapshot.observe("pods", Key::new("default", format!("p{name}")), None, now);
        }
        Change::Reported { name } => snapshot.status_reported(NODES[*name], version),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_kept_ledger_is_one_made_anew(changes in prop::collection::vec(change(), 1..60), ask in 0..9_u64) {
        let world = World::new();
        let profiles: [&'static Profile; 2] = [&KUBE32, &UPSTREAM];
        let mut snapshot = Snapshot::default();
        for profile in profiles {
            snapshot.keep_ledger(profile);
        }
        let mut plain = Snapshot::default();
        let wanted = pod("wanted", json!({"requests": {"memory": ask}}));
        for (version, change) in (1..).zip(&changes) {
            happen(&mut snapshot, &world, version, change);
            happen(&mut plain, &world, version, change);
            for profile in profiles {
                let kept = snapshot.ledger(profile);
                prop_assert_eq!(kept.as_ref(), &Ledger::of(profile, &snapshot), "{:?}", change);
                prop_assert_eq!(
                    schedule(profile, &wanted, &snapshot, &Assumed::default()),
                    schedule(profile, &wanted, &plain, &Assumed::default())
                );
            }
        }
    }
}

#[test]
fn the_waiting_are_listed_by_their_scheduler_and_oldest_first() {
    let mut snapshot = Snapshot::default();
    let waiting = |name: &str, created: &str, change: &dyn Fn(&mut Value)| {
        let mut object = pod(name, json!({}));
        object["metadata"]["creationTimestamp"] = created.into();
        change(&mut object);
        object
    };
    for object in [
        waiting("young", "2026-01-01T00:00:03Z", &|_| {}),
        waiting("old", "2026-01-01T00:00:01Z", &|_| {}),
        waiting("twin", "2026-01-01T00:00:03Z", &|_| {}),
        waiting("theirs", "2026-01-01T00:00:02Z", &|pod| pod["spec"]["schedulerName"] = "other".into()),
        waiting("gated", "2026-01-01T00:00:02Z", &|pod| {
            pod["spec"]["schedulingGates"] = json!([{"name": "g"}])
        }),
        waiting("bound", "2026-01-01T00:00:02Z", &|pod| pod["spec"]["nodeName"] = "a".into()),
        waiting("over", "2026-01-01T00:00:02Z", &|pod| pod["status"]["phase"] = "Failed".into()),
    ] {
        snapshot.apply("pods", Key::of(&object), Some(object.into()));
    }
    let config = SchedulerConfig::new(&KUBE32, s(1.0));
    let pending = |snapshot: &Snapshot| -> Vec<String> {
        control_plane_core::scheduler::pending(snapshot, &config).into_iter().map(|key| key.name).collect()
    };
    assert_eq!(pending(&snapshot), ["old", "twin", "young"]);
    snapshot.apply("pods", Key::new("default", "twin"), None);
    let mut bound = snapshot.get("pods", "default", "old").unwrap().as_ref().clone();
    bound["spec"]["nodeName"] = "a".into();
    snapshot.apply("pods", Key::new("default", "old"), Some(bound.into()));
    assert_eq!(pending(&snapshot), ["young"]);
    assert_eq!(snapshot.waiting_for("other").count(), 1);
}
