//! How long the judge and the monitors take over a history of 100,000 object versions.
//!
//! `cargo run --release -p rigor-trace --example judge_speed [VERSIONS]`

use rigor_model::Scenario;
use rigor_model::catalogue::Catalogue;
use rigor_trace::history::{Fact, History, Micros, Phase, Verb};
use rigor_trace::{StepState, jsonl, judge, monitors};
use serde_json::{Value, json};

const STEPS: &str = "
    - expect: {of: {kind: Pod, labels: {app: web}}, match: {status: {phase: Running}}, count: 15, from: start, within: 2h}
      as: all
    - never: {of: {kind: Event}, match: {reason: Evicted}, from: start, for: 1h}
    - always: {of: {kind: Node, name: a}, match: {status: {conditions: [{type: Ready, status: \"True\"}]}}, from: all, for: 30m}
    - unchanged: {of: {kind: Pod, name: web-7}, field: spec.nodeName, from: all, for: 30m}
    - expect: {of: {kind: Event}, match: {reason: Scheduled}, count: {$ge: 100}, from: start, within: 1h}
    - expect: {of: {kind: Node, name: b}, match: {spec: {unschedulable: true}}, between: [lastRenewal(b), lastRenewal(b) + 1h]}
";

fn scenario() -> Scenario {
    let catalogue =
        Catalogue::parse("c", "version: 2\nareas: {node: [{id: X-1, profile: kube32, must: one}]}\n")
            .unwrap();
    let source = format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: speed, requirements: [X-1], profile: kube32}}\nspec:\n  rig: {{boards: 2}}\n  steps:{STEPS}"
    );
    Scenario::parse("speed.yaml", &source, &catalogue, &|_| Err(String::new()))
        .unwrap_or_else(|mistakes| panic!("{mistakes:#}"))
        .remove(0)
}

fn object(number: u64) -> (&'static str, Value) {
    let version = (number + 10).to_string();
    let board = if number.is_multiple_of(2) { "a" } else { "b" };
    match number % 10 {
        0..=3 => (
            "leases",
            json!({"kind": "Lease", "metadata": {"name": board, "namespace": "kube-node-lease", "resourceVersion": version, "uid": board},
            "spec": {"renewTime": format!("t{number}"), "leaseDurationSeconds": 15}}),
        ),
        4 | 5 => (
            "nodes",
            json!({"kind": "Node", "metadata": {"name": board, "resourceVersion": version, "uid": board}, "spec": {},
            "status": {"allocatable": {"memory": "200Ki", "esp32.io/gpio": "10"}, "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "x", "lastHeartbeatTime": version},
                {"type": "MemoryPressure", "status": "False", "lastTransitionTime": "x"}]}}),
        ),
        6..=8 => {
            let pod = number % 50;
            (
                "pods",
                json!({"kind": "Pod", "metadata": {"name": format!("web-{pod}"), "namespace": "default", "labels": {"app": "web"}, "resourceVersion": version, "uid": format!("u{pod}")},
                "spec": {"nodeName": if pod.is_multiple_of(2) { "a" } else { "b" }, "containers": [{"name": "m", "resources": {"requests": {"memory": "1Ki"}}}]},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "x"}], "note": number}}),
            )
        }
        _ => {
            let event = number % 500;
            (
                "events",
                json!({"kind": "Event", "metadata": {"name": format!("e{event}"), "namespace": "default", "resourceVersion": version, "uid": format!("e{event}")},
                "reason": "Scheduled", "count": number / 500 + 1, "involvedObject": {"kind": "Pod", "name": "web-1"}}),
            )
        }
    }
}

fn history(versions: u64) -> History {
    let mut history = History::new();
    for stream in ["leases", "nodes", "pods", "events"] {
        history.push(Micros(0), Fact::Synced { stream: stream.into() });
    }
    let step = 3_600_000_000 / versions.max(1);
    for number in 0..versions {
        let (stream, object) = object(number);
        history.push(
            Micros(number * step),
            Fact::Object { stream: stream.into(), verb: Verb::Modified, object },
        );
    }
    for index in 0..6 {
        history.push(Micros(3_700_000_000), Fact::Step { index, phase: Phase::Begin });
        history.push(
            Micros(3_700_000_000 + 3_600_000_000 * (index as u64 + 1)),
            Fact::Step { index, phase: Phase::End },
        );
    }
    history
}

#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let begun = std::time::Instant::now();
    let result = work();
    println!("{what:32} {:8.1} ms", begun.elapsed().as_secs_f64() * 1000.0);
    result
}

fn main() {
    let versions = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let scenario = scenario();
    let history = timed("record and index", || history(versions));
    let mut file = Vec::new();
    timed("write", || jsonl::write(&history, &mut file)).unwrap();
    println!("{:32} {:8.1} MB", "on disk", file.len() as f64 / 1e6);
    timed("read and index", || jsonl::read(file.as_slice())).unwrap();
    timed("monitors", || monitors::all(&scenario, &history))
        .iter()
        .take(3)
        .for_each(|seen| println!("{seen}"));
    let verdict = timed("judge (with monitors)", || judge(&scenario, &history));
    for (index, verdict) in &verdict.steps {
        println!("  step {index}: {}", verdict.outcome.name());
    }
    let judge = rigor_trace::Judge::new(&scenario);
    let state = timed("one step", || judge.step(1, &history, history.last_at()));
    assert!(matches!(state, StepState::Settled(_)));
}
