//! Second schedulers in virtual time: they place what is theirs once, whenever the server dies, and stand still without one.

use std::collections::BTreeMap;

use rigor_model::faults::{Fault, FaultKind, FaultLevel, Schedule};
use rigor_model::{Constants, Faults};
use rigor_rigs::{ApiRequest, BoardSpec, ControlPlaneAct, SchedulerAct, World};
use rigor_trace::history::{Fact, Micros, Phase};
use serde_json::{Value, json};

const NO_BOARDS: [BoardSpec; 0] = [];

fn open(faults: &Faults) -> Box<dyn World> {
    rigor_sim::open(&Constants::default(), &NO_BOARDS, 1, faults).unwrap()
}

fn pass(world: &mut dyn World, seconds: u64) {
    let until = Micros(world.now().0 + seconds * 1_000_000);
    while world.now() < until {
        world.wait(until);
    }
}

fn post(world: &mut dyn World, path: &str, object: &Value) {
    let answer = world.request(ApiRequest::new("POST", path, Some(object)));
    assert_eq!(answer.status, 201, "{}", answer.text);
}

fn node(world: &mut dyn World, name: &str, memory: &str) {
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"allocatable": {"memory": memory, "cpu": "4", "pods": "10"}},
    });
    post(world, "/api/v1/nodes", &node);
}

fn pod(world: &mut dyn World, name: &str, scheduler: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"schedulerName": scheduler, "containers": [{"name": "main", "image": "rigor.dev/pause"}]},
    });
    post(world, "/api/v1/namespaces/default/pods", &pod);
}

/// Where each pod is at last, and of which pods events say that they were placed.
fn placed(world: &dyn World) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut pods, mut events) = (BTreeMap::new(), BTreeMap::new());
    for record in world.history().records() {
        let Fact::Object { stream, object, .. } = &record.fact else { continue };
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let name = text(&object["metadata"]["name"]);
        if stream == "pods" {
            pods.insert(name, text(&object["spec"]["nodeName"]));
        } else if stream == "events" && object["reason"] == "Scheduled" {
            assert_eq!(object["count"], 1, "{object}");
            events.insert(name, text(&object["involvedObject"]["name"]));
        }
    }
    let mut told: Vec<String> = events.into_values().collect();
    told.sort();
    (pods, told)
}

#[test]
fn a_server_that_dies_at_any_write_leaves_no_pod_behind_and_none_told_twice() {
    let mut deaths = 0;
    for nth in 0..14 {
        for writes in 0..3 {
            let kill =
                Fault { site: "server".to_owned(), nth, kind: FaultKind::Kill { down: 1_000_000, writes } };
            let schedule = Schedule { level: FaultLevel::Harsh, faults: vec![kill] };
            let mut world = open(&Faults::Listed(schedule));
            let world = world.as_mut();
            node(world, "n1", "64Ki");
            world.scheduler("second", SchedulerAct::Start).unwrap();
            pod(world, "p", "second");
            pod(world, "q", "second");
            pass(world, 30);
            let (pods, told) = placed(world);
            let expected = [("p".to_owned(), "n1".to_owned()), ("q".to_owned(), "n1".to_owned())];
            assert_eq!(pods, expected.into(), "opportunity {nth}, {writes} writes");
            assert_eq!(told, ["p", "q"], "opportunity {nth}, {writes} writes");
            let died = |fact: &Fact| matches!(fact, Fact::Fault { phase: Phase::Begin, .. });
            deaths += world.history().records().iter().filter(|record| died(&record.fact)).count();
        }
    }
    assert!(deaths >= 20, "the server died {deaths} times");
}

#[test]
fn each_places_its_own_while_it_runs() {
    let mut world = open(&Faults::None);
    let world = world.as_mut();
    node(world, "n1", "64Ki");
    for (name, scheduler) in [("p", "one"), ("q", "two"), ("r", "three")] {
        pod(world, name, scheduler);
    }
    for name in ["one", "two"] {
        world.scheduler(name, SchedulerAct::Start).unwrap();
    }
    let twice = world.scheduler("one", SchedulerAct::Start).unwrap_err();
    assert_eq!(twice.to_string(), "the scheduler one runs already");
    pass(world, 5);
    let (pods, told) = placed(world);
    assert_eq!((pods["p"].as_str(), pods["q"].as_str(), pods["r"].as_str()), ("n1", "n1", "-"));
    assert_eq!(told, ["p", "q"]);
    world.scheduler("one", SchedulerAct::Kill).unwrap();
    let gone = world.scheduler("one", SchedulerAct::Stop).unwrap_err();
    assert_eq!(gone.to_string(), "no scheduler one runs");
    pod(world, "late", "one");
    pass(world, 5);
    assert_eq!(placed(world).0["late"], "-");
}

#[test]
fn one_that_finds_no_server_does_not_come_up() {
    let mut world = open(&Faults::None);
    let world = world.as_mut();
    world.control_plane(ControlPlaneAct::Stop).unwrap();
    let error = world.scheduler("one", SchedulerAct::Start).unwrap_err();
    assert_eq!(error.to_string(), "the scheduler one did not see the cluster within 30 s");
    assert!(!world.history().records().iter().any(|record| matches!(record.fact, Fact::Scheduler { .. })));
}

#[test]
fn a_dry_run_binds_nothing_and_tells_of_what_fits_nowhere() {
    let mut world = open(&Faults::None);
    let world = world.as_mut();
    node(world, "n1", "64Ki");
    world.scheduler("one", SchedulerAct::DryRun).unwrap();
    pod(world, "p", "one");
    pass(world, 5);
    let (pods, told) = placed(world);
    assert_eq!((pods["p"].as_str(), told.len()), ("-", 0));
    world.scheduler("one", SchedulerAct::Stop).unwrap();
    world.scheduler("one", SchedulerAct::Start).unwrap();
    pass(world, 5);
    assert_eq!(placed(world).0["p"], "n1", "what a dry run would have bound is not held");
}
