//! How long the judge and the monitors take over a history of 100,000 object versions, whole and asked after each
//! record as a running trial asks. It fails where the whole takes a second or more.
//!
//! `cargo run --release -p rigor-trace --example judge_speed [VERSIONS]`

use rigor_model::Scenario;
use rigor_model::catalogue::Catalogue;
use rigor_trace::history::{Fact, History, Micros, Phase, Verb};
use rigor_trace::{Judge, StepState, jsonl, judge, monitors};
use serde_json::{Value, json};

/// The bar: the judge and the monitors over the whole history.
const BAR: std::time::Duration = std::time::Duration::from_secs(1);

/// Each step with the part of the trial it is pending in, for asking step by step.
const STEPS: &str = "
    - expect: {of: {kind: Pod, labels: {app: web}}, match: {status: {phase: Running}}, count: 15, from: start, within: 2h}
      as: all
    - never: {of: {kind: Event}, match: {reason: Evicted}, from: start, for: 1h}
    - always: {of: {kind: Node, name: a}, match: {status: {conditions: [{type: Ready, status: \"True\"}]}}, from: all, for: 30m}
    - always: {of: {kind: Pod}, match: {spec: {nodeName: {$regex: '^[ab]$'}}}, cel: object.status.note >= 0, count: all, from: all, for: 30m}
    - unchanged: {of: {kind: Pod}, field: spec.nodeName, from: all, for: 30m}
    - expect: {of: {kind: Event}, match: {reason: Scheduled}, count: {$ge: 100}, from: start, within: 1h}
    - expect: {of: {kind: Event}, match: {reason: Scheduled, involvedObject: {name: web-1}}, count: {$gt: 9000}, between: [start, start + 1h]}
    - never: {of: {kind: Node}, match: {status: {conditions: {$byKey: {type: {MemoryPressure: {status: \"True\"}}}}}}, from: start, for: 1h}
    - expect: {of: {kind: Node, name: b}, match: {spec: {unschedulable: true}}, between: [\"lastRenewal(b, all)\", \"lastRenewal(b, all) + 2h\"]}
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
    for index in 0..scenario().plan.len() {
        history.push(Micros(3_700_000_000), Fact::Step { index, phase: Phase::Begin });
        history.push(
            Micros(3_700_000_000 + 3_600_000_000 * (index as u64 + 1)),
            Fact::Step { index, phase: Phase::End },
        );
    }
    history
}

/// The same records with the steps spread over them, asked after each record as the runner does.
fn step_by_step(scenario: &Scenario, whole: &History) -> (usize, usize) {
    let judge = Judge::new(scenario);
    let mut history = History::new();
    let records: Vec<_> =
        whole.records().iter().filter(|record| !matches!(record.fact, Fact::Step { .. })).collect();
    let each = records.len() / scenario.plan.len();
    let (mut asked, mut index) = (0, 0);
    for (number, record) in records.iter().enumerate() {
        if number == index * each && index < scenario.plan.len() {
            history.push(record.at, Fact::Step { index, phase: Phase::Begin });
        }
        history.push(record.at, record.fact.clone());
        if index < scenario.plan.len() {
            asked += 1;
            let state = judge.step(index, &history, record.at);
            if number + 1 == (index + 1) * each {
                history.push(record.at, Fact::Step { index, phase: Phase::End });
                let _ = (state, judge.step(index, &history, record.at));
                index += 1;
            }
        }
    }
    (asked, index)
}

/// What this thread has taken of a processor so far, so that neighbours do not count; nothing where the system does
/// not tell.
fn processor() -> Option<std::time::Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(std::time::Duration::from_nanos(told.split(' ').next()?.parse().ok()?))
}

#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> (T, std::time::Duration) {
    let (begun, taken) = (std::time::Instant::now(), processor());
    let result = work();
    let elapsed = begun.elapsed();
    let took = processor().zip(taken).map_or(elapsed, |(now, taken)| now.saturating_sub(taken));
    let millis = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
    println!("{what:32} {:8.1} ms of the processor, {:8.1} ms in all", millis(took), millis(elapsed));
    (result, took)
}

fn main() -> std::process::ExitCode {
    let versions = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let scenario = scenario();
    let (history, _) = timed("record and index", || history(versions));
    let mut file = Vec::new();
    timed("write", || jsonl::write(&history, &mut file)).0.unwrap();
    println!("{:32} {:8.1} MB", "on disk", file.len() as f64 / 1e6);
    timed("read and index", || jsonl::read(file.as_slice())).0.unwrap();
    timed("monitors", || monitors::all(&scenario, &history))
        .0
        .iter()
        .take(3)
        .for_each(|seen| println!("{seen}"));
    for index in 0..scenario.plan.len() {
        let step = &scenario.plan[index];
        let judge = Judge::new(&scenario);
        let (state, _) = timed(&format!("  step {} ({})", step.number, step.action.verb().name()), || {
            judge.step(index, &history, history.last_at())
        });
        match state {
            StepState::Settled(verdict) => println!("    {}", verdict.outcome.name()),
            StepState::Pending { .. } => println!("    pending"),
        }
    }
    timed("the same records pushed", || {
        let mut again = History::new();
        for record in history.records() {
            again.push(record.at, record.fact.clone());
        }
        again.len()
    });
    let ((asked, steps), _) = timed("asked after each record", || step_by_step(&scenario, &history));
    println!("{:32} {asked:8} times over {steps} steps", "  asked");
    let (_, took) = timed("judge (with monitors)", || judge(&scenario, &history));
    let held = took < BAR;
    println!("{:32} {:>8} (bar {} s)", "", if held { "held" } else { "MISSED" }, BAR.as_secs());
    if held { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
