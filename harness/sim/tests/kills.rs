//! The real server, killed at every write of what one request brings about: it comes back to what was written, and finishes it.

use std::collections::BTreeSet;

use rigor_model::faults::{Fault, FaultKind, FaultLevel, Schedule};
use rigor_model::{Constants, Faults};
use rigor_rigs::{ApiRequest, BoardSpec, World};
use rigor_trace::history::{Fact, Micros, Phase, Verb};
use serde_json::{Value, json};

const NO_BOARDS: [BoardSpec; 0] = [];
const REPLICAS: usize = 3;

fn pass(world: &mut dyn World, seconds: u64) {
    let until = Micros(seconds * 1_000_000);
    while world.now() < until {
        world.wait(until);
    }
}

/// A Deployment of three pods in a trial whose server is killed at this opportunity after so many writes: how many pods there
/// were when it died, if it did, and how many there are at last.
fn killed(nth: u64, writes: u64) -> (Option<usize>, usize) {
    let fault = Fault { site: "server".to_owned(), nth, kind: FaultKind::Kill { down: 1_000_000, writes } };
    let faults = Faults::Listed(Schedule { level: FaultLevel::Harsh, faults: vec![fault] });
    let mut world = rigor_sim::open(&Constants::default(), &NO_BOARDS, 1, &faults).unwrap();
    let deployment: Value = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "rigor.dev/pause"}]},
            },
        },
    });
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let answer = world.request(ApiRequest::new("POST", path, Some(&deployment)));
    assert_eq!(answer.status, 201, "{}", answer.text);
    pass(world.as_mut(), 30);
    let mut pods = BTreeSet::new();
    let mut at_death = None;
    for record in world.history().records() {
        match &record.fact {
            Fact::Object { stream, verb, object } if stream == "pods" => {
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                if *verb == Verb::Deleted {
                    pods.remove(&name)
                } else {
                    pods.insert(name)
                };
            }
            Fact::Fault { phase: Phase::Begin, .. } => at_death = Some(pods.len()),
            _ => {}
        }
    }
    (at_death, pods.len())
}

#[test]
fn a_pass_that_died_after_any_of_its_writes_is_finished_by_the_next_process() {
    let mut seen = BTreeSet::new();
    for nth in 0..6 {
        for writes in 0..6 {
            let (at_death, at_last) = killed(nth, writes);
            assert_eq!(at_last, REPLICAS, "opportunity {nth}, {writes} writes");
            seen.extend(at_death);
        }
    }
    assert_eq!(seen, (0..=REPLICAS).collect(), "it died with each number of pods");
}
