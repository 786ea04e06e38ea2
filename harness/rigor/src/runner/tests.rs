//! The runner over a made-up world: no processes, no sockets, time that moves when it is waited for.

use super::*;
use rigor_model::act::Tool;
use rigor_model::catalogue::Catalogue;
use rigor_model::kinds::ObjectKind;
use rigor_model::{FaultLevel, Faults, Outcome, Rig, Scenario};
use rigor_rigs::processes::request_fact;
use rigor_rigs::world::{
    ApiAnswer, ApiRequest, ControlPlaneAct, Infra, LinkChange, PowerAct, SchedulerAct, ToolOutcome, World,
};
use rigor_trace::{Fact, History, Micros, Phase, Verb};
use serde_json::json;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

const SECOND: u64 = 1_000_000;

/// How the next worlds behave, and what was asked of all of them.
#[derive(Default)]
struct Script {
    /// Facts that come by themselves.
    facts: Vec<(Micros, Fact)>,
    /// Those that come in the next worlds instead, one entry a world.
    first: Mutex<VecDeque<Vec<(Micros, Fact)>>>,
    /// What switching power comes to, one entry a time; afterwards it works.
    power: Mutex<VecDeque<Infra>>,
    /// What opening comes to, one entry a time; afterwards it works.
    opening: Mutex<VecDeque<Infra>>,
    panics: bool,
    frozen: bool,
    asked: Mutex<Vec<String>>,
    /// What a log holds from an instant on.
    log: Option<(Micros, &'static str)>,
}

impl Script {
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn note(&self, what: impl Into<String>) {
        self.asked.lock().unwrap().push(what.into());
    }
}

struct Fake {
    script: Arc<Script>,
    coming: VecDeque<(Micros, Fact)>,
    now: Micros,
    history: History,
    requests: u32,
}

impl World for Fake {
    fn watch(&mut self, kind: &ObjectKind) -> Result<(), Infra> {
        self.script.note(format!("watch {}", kind.stream));
        Ok(())
    }
    fn now(&self) -> Micros {
        self.now
    }
    fn history(&self) -> &History {
        &self.history
    }
    fn record(&mut self, fact: Fact) {
        if let Fact::Step { index, phase: Phase::Begin } = fact {
            self.script.note(format!("step {index}"));
        }
        self.history.push(self.now, fact);
    }
    fn request(&mut self, request: ApiRequest) -> ApiAnswer {
        self.requests(vec![request]).remove(0)
    }
    fn requests(&mut self, requests: Vec<ApiRequest>) -> Vec<ApiAnswer> {
        let lines: Vec<String> =
            requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect();
        self.script.note(lines.join(" with "));
        let mut answers = Vec::new();
        for request in requests {
            let status = if request.path.ends_with("/refused") { 409 } else { 201 };
            let mut answer = ApiAnswer { status, body: Some(json!({})), ..ApiAnswer::default() };
            if request.path.contains("/log") {
                let text =
                    self.script.log.filter(|(since, _)| *since <= self.now).map_or("", |(_, text)| text);
                answer = ApiAnswer { status: 200, text: text.to_owned(), ..ApiAnswer::default() };
            }
            self.history.push(self.now, request_fact(self.requests, self.now, &request, &answer));
            self.requests += 1;
            answers.push(answer);
        }
        answers
    }
    fn power(&mut self, board: &str, act: PowerAct) -> Result<(), Infra> {
        assert!(!self.script.panics, "on purpose");
        if let Some(error) = self.script.power.lock().unwrap().pop_front() {
            return Err(error);
        }
        self.script.note(format!("power {board} {act:?}"));
        self.history.push(self.now, Fact::Power { board: board.to_owned(), act, begun: self.now });
        Ok(())
    }
    fn link(&mut self, board: &str, change: LinkChange) -> Result<(), Infra> {
        self.script.note(format!("link {board} {change:?}"));
        self.history.push(self.now, Fact::link(board, change, self.now));
        Ok(())
    }
    fn control_plane(&mut self, act: ControlPlaneAct) -> Result<(), Infra> {
        self.history.push(self.now, Fact::ControlPlane { act, begun: self.now });
        Ok(())
    }
    fn scheduler(&mut self, name: &str, act: SchedulerAct) -> Result<(), Infra> {
        self.script.note(format!("scheduler {name} {act:?}"));
        self.history.push(self.now, Fact::Scheduler { name: name.to_owned(), act, begun: self.now });
        Ok(())
    }
    fn flash(&mut self, board: &str, image: Option<&str>, erase: bool) -> Result<(), Infra> {
        self.script.note(format!("flash {board} {image:?} {erase}"));
        let (board, image, sha256) = (board.to_owned(), image.map(str::to_owned), "00".to_owned());
        self.history.push(self.now, Fact::Flash { board, image, sha256, erased: erase, begun: self.now });
        Ok(())
    }
    fn send(&mut self, board: &str, line: &str) -> Result<(), Infra> {
        self.script.note(format!("send {board} {line}"));
        self.history.push(self.now, Fact::Sent { board: board.to_owned(), line: line.to_owned() });
        Ok(())
    }
    fn wait(&mut self, until: Micros) {
        if self.script.frozen {
            return;
        }
        match self.coming.front() {
            Some((at, _)) if *at <= until => {
                let (at, fact) = self.coming.pop_front().unwrap();
                self.now = self.now.max(at);
                self.history.push(self.now, fact);
            }
            Some(_) | None => self.now = self.now.max(until.min(Micros(1_000 * SECOND))),
        }
    }
    fn boards(&self) -> Vec<String> {
        vec!["a".to_owned()]
    }
    fn run(&mut self, tool: Tool, argv: &[String], _: Option<&str>) -> Result<ToolOutcome, Infra> {
        Err(Infra::lasting(format!("no {} for {argv:?}", tool.name()), "none"))
    }
    fn save_evidence(&mut self, dir: &Path) -> Result<(), Infra> {
        self.script.note("evidence");
        std::fs::write(dir.join("control-plane.log"), "log")
            .map_err(|error| Infra::transient(error.to_string()))
    }
    fn close(self: Box<Self>) {
        self.script.note("closed");
    }
}

fn node(at: u64, status: &str) -> (Micros, Fact) {
    let object = json!({
        "kind": "Node", "metadata": {"name": "a", "resourceVersion": at.to_string(), "uid": "u"},
        "status": {"conditions": [{"type": "Ready", "status": status}]}
    });
    (Micros(at), Fact::Object { stream: "nodes".to_owned(), verb: Verb::Modified, object })
}

fn synced() -> (Micros, Fact) {
    (Micros(1), Fact::Synced { stream: "nodes".to_owned() })
}

/// A board that is Ready 100 ms after its start.
fn coming_up() -> Vec<(Micros, Fact)> {
    vec![synced(), node(100_000, "True")]
}

struct Ran {
    report: crate::report::TrialReport,
    asked: Vec<String>,
    evidence: Vec<String>,
}

fn run(script: Script, keep: bool, spec: &str) -> Ran {
    let script = Arc::new(script);
    let text = format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: s, requirements: [NODE-03], profile: kube32}}\nspec:\n{spec}"
    );
    let catalogue = Catalogue::parse(
        "requirements.yaml",
        "version: 2\nareas:\n  node:\n  - {id: NODE-03, profile: kube32, must: \"be so\"}\n",
    )
    .unwrap();
    let scenario = Scenario::parse("s.yaml", &text, &catalogue, &|_| Err("none".to_owned()))
        .unwrap_or_else(|mistakes| panic!("{mistakes}"))
        .remove(0);
    let rigs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rigs/sim.yaml");
    let rig = Rig::parse("sim.yaml", &std::fs::read_to_string(rigs).unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let trial = Trial {
        name: "area/s",
        scenario: &scenario,
        rig: &rig,
        seed: 1,
        faults: Faults::Drawn(FaultLevel::Mild),
        evidence: Some(dir.path().join("evidence")),
        keep,
    };
    let open = |asked: &Asked<'_>| -> Result<Box<dyn World>, Infra> {
        assert_eq!(*asked.faults, Faults::Drawn(FaultLevel::Mild));
        script.note("opened");
        match script.opening.lock().unwrap().pop_front() {
            Some(error) => Err(error),
            None => Ok(Box::new(Fake {
                script: script.clone(),
                coming: script
                    .first
                    .lock()
                    .unwrap()
                    .pop_front()
                    .unwrap_or_else(|| script.facts.clone())
                    .into(),
                now: Micros::ZERO,
                history: History::new(),
                requests: 0,
            })),
        }
    };
    let report = run_trial(&trial, &open);
    let mut evidence: Vec<String> = std::fs::read_dir(dir.path().join("evidence"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    evidence.sort();
    Ran { report, asked: script.asked(), evidence }
}

const ONE_BOARD: &str = "  rig: {boards: 1, needs: [power]}\n";

fn with_board(steps: &str) -> String {
    format!("{ONE_BOARD}{steps}")
}

#[test]
fn a_passing_trial_takes_all_steps_and_leaves_no_evidence() {
    let spec = with_board(
        "  setup: [{wait: 1s}]\n  steps: [{power: {board: a, do: cut}, as: outage}, {wait: outage + 2s}]\n  cleanup: [{wait: 1ms}]\n",
    );
    let ran = run(Script { facts: coming_up(), ..Script::default() }, false, &spec);
    assert_eq!(ran.report.outcome, Outcome::Pass, "{:?}", ran.report.text);
    assert_eq!(
        ran.asked,
        ["opened", "step 0", "step 1", "power a Cut", "step 2", "evidence", "step 3", "closed"]
    );
    assert!(ran.evidence.is_empty(), "{:?}", ran.evidence);
    assert_eq!(ran.report.length, Micros(3 * SECOND + 100_000));
    let steps: Vec<&str> = ran.report.steps.iter().map(|(step, ..)| step.as_str()).collect();
    assert_eq!(steps, ["setup 1", "steps 1", "steps 2", "cleanup 1"]);
    let facts: Vec<&Fact> = ran.report.history.records().iter().map(|record| &record.fact).collect();
    assert!(
        matches!(
            facts.first(),
            Some(Fact::TrialStarted { seed: 1, wall: None, faults: FaultLevel::Mild, .. })
        ),
        "{:?}",
        facts.first()
    );
    assert!(matches!(facts.last(), Some(Fact::TrialEnded {})));
}

#[test]
fn evidence_of_a_passing_trial_is_kept_when_asked_for() {
    let ran =
        run(Script { facts: coming_up(), ..Script::default() }, true, &with_board("  steps: [{wait: 1s}]\n"));
    assert_eq!(ran.report.outcome, Outcome::Pass);
    assert_eq!(
        ran.evidence,
        ["console-a.log", "control-plane.log", "events.jsonl", "events.txt", "objects.yaml"]
    );
}

#[test]
fn a_failing_step_ends_the_trial_but_not_the_cleanup() {
    let spec = "  steps:\n  - request: {method: POST, path: /refused}\n  - request: {method: POST, path: /never}\n  cleanup: [{request: {method: POST, path: /swept}}]\n";
    let ran = run(Script::default(), false, spec);
    assert_eq!(ran.report.outcome, Outcome::Fail);
    assert_eq!(
        ran.asked,
        ["opened", "step 0", "POST /refused", "evidence", "step 2", "POST /swept", "closed"]
    );
    assert!(
        ran.report.text.as_deref().unwrap_or_default().contains("POST /refused"),
        "{:?}",
        ran.report.text
    );
    assert!(ran.evidence.contains(&"events.jsonl".to_owned()));
}

#[test]
fn a_cleanup_that_fails_changes_no_verdict() {
    let spec = "  steps: [{wait: 1s}]\n  cleanup: [{request: {method: POST, path: /refused}}]\n";
    let ran = run(Script::default(), false, spec);
    assert_eq!(ran.report.outcome, Outcome::Pass, "{:?}", ran.report.text);
}

#[test]
fn an_expectation_is_waited_for_and_settles_with_the_fact() {
    let mut facts = coming_up();
    facts.push(node(3 * SECOND, "Unknown"));
    let spec = with_board(
        "  steps:\n  - expect: {of: {kind: Node, name: a}, match: {status: {conditions: [{type: Ready, status: Unknown}]}}, within: 10s}\n",
    );
    let ran = run(Script { facts, ..Script::default() }, false, &spec);
    assert_eq!(ran.report.outcome, Outcome::Pass, "{:?}", ran.report.text);
    assert!(
        ran.report.length >= Micros(3 * SECOND) && ran.report.length < Micros(4 * SECOND),
        "{}",
        ran.report.length
    );
    let ran = run(Script { facts: coming_up(), ..Script::default() }, false, &spec);
    assert_eq!(ran.report.outcome, Outcome::Fail, "{:?}", ran.report.text);
}

#[test]
fn a_rig_that_fails_is_tried_again_twice_at_most() {
    let spec = with_board("  steps: [{power: {board: a, do: cut}}]\n");
    let check =
        |troubles: &[Infra], opening: &[Infra], outcome: Outcome, attempts: &[&str], opened: usize| {
            let script = Script {
                facts: coming_up(),
                power: Mutex::new(troubles.iter().cloned().collect()),
                opening: Mutex::new(opening.iter().cloned().collect()),
                ..Script::default()
            };
            let ran = run(script, false, &spec);
            assert_eq!(ran.report.outcome, outcome, "{:?}", ran.report.text);
            assert_eq!(ran.report.attempts, attempts);
            assert_eq!(ran.asked.iter().filter(|asked| *asked == "opened").count(), opened);
            ran
        };
    let glitch = Infra::transient("the emulator ended");
    let missing = Infra::lasting("no emulator", "install it");
    check(&[], &[], Outcome::Pass, &[], 1);
    check(std::slice::from_ref(&glitch), &[], Outcome::Pass, &["the emulator ended"], 2);
    check(&[], &[glitch.clone(), glitch.clone()], Outcome::Pass, &["the emulator ended"; 2], 3);
    let thrice = vec![glitch.clone(); 3];
    check(&thrice, &[], Outcome::InfraError, &["the emulator ended"; 2], 3);
    check(&[glitch], &[Infra::transient("no port")], Outcome::Pass, &["no port", "the emulator ended"], 3);
    let ran = check(&[missing], &[], Outcome::InfraError, &[], 1);
    assert_eq!(ran.report.text.as_deref(), Some("no emulator\nremedy: install it"));
    assert!(ran.evidence.contains(&"control-plane.log".to_owned()), "{:?}", ran.evidence);
}

#[test]
fn what_a_stall_leaves_undecided_is_tried_again_and_what_failed_is_not() {
    let spec = with_board(
        "  steps:\n  - expect: {of: {kind: Node, name: a}, match: {status: {conditions: [{type: Ready, status: Unknown}]}}, within: 10s}\n",
    );
    let on_time = [coming_up(), vec![node(3 * SECOND, "Unknown")]].concat();
    let late = [coming_up(), vec![node(12 * SECOND, "Unknown")]].concat();
    let stalled = [coming_up(), vec![(Micros(5 * SECOND), Fact::Stall { length: Micros(600_000) })]].concat();
    let why = "the harness itself was held up for 600ms in the window";
    let check = |first: &[Vec<(Micros, Fact)>], outcome: Outcome, attempts: &[&str], reason: Option<&str>| {
        let first = Mutex::new(first.to_vec().into());
        let ran = run(Script { facts: on_time.clone(), first, ..Script::default() }, false, &spec);
        assert_eq!(ran.report.outcome, outcome, "{:?}", ran.report.text);
        assert_eq!(ran.report.attempts, attempts);
        assert_eq!(ran.report.reason.as_deref(), reason);
        assert_eq!(ran.asked.iter().filter(|asked| *asked == "opened").count(), attempts.len() + 1);
    };
    check(&[], Outcome::Pass, &[], None);
    check(std::slice::from_ref(&stalled), Outcome::Pass, &[why], None);
    check(&[(); 3].map(|()| stalled.clone()), Outcome::Undecided, &[why, why], Some(why));
    check(std::slice::from_ref(&late), Outcome::Fail, &[], None);
    check(&[stalled, late], Outcome::Fail, &[why], None);
}

#[test]
fn a_board_that_does_not_come_up_is_the_rigs_failure() {
    let console =
        |at: u64, line: &str| (Micros(at), Fact::Console { board: "a".to_owned(), line: line.to_owned() });
    let facts = vec![synced(), console(50_000, "rigor kubelet 0.1.0"), console(60_000, "PANIC out of heap")];
    let ran = run(Script { facts, ..Script::default() }, false, &with_board("  steps: [{wait: 1s}]\n"));
    assert_eq!(ran.report.outcome, Outcome::InfraError);
    assert_eq!(
        ran.report.text.as_deref(),
        Some(
            "board a did not become Ready within 30 s; its console ends:\nrigor kubelet 0.1.0\nPANIC out of heap"
        )
    );
    assert_eq!(ran.report.attempts.len(), 2);
}

#[test]
fn played_nodes_go_on_while_the_scenario_waits() {
    let ran = run(Script::default(), false, "  steps: [{node: {name: n1, renew: 5s}}, {wait: 12s}]\n");
    assert_eq!(ran.report.outcome, Outcome::Pass, "{:?}", ran.report.text);
    let renewals: Vec<&Micros> = ran
        .report
        .history
        .records()
        .iter()
        .filter(|record| matches!(&record.fact, Fact::Request { method, path, .. } if method == "PATCH" && path.ends_with("/leases/n1")))
        .map(|record| &record.at)
        .collect();
    assert_eq!(renewals, [&Micros(5 * SECOND), &Micros(10 * SECOND)]);
}

#[test]
fn acts_in_parallel_begin_together() {
    let spec = "  steps:\n  - parallel:\n    - request: {method: POST, path: /one}\n    - power: {board: a, do: cut}\n    - request: {method: POST, path: /two}\n";
    let ran = run(Script { facts: coming_up(), ..Script::default() }, false, &with_board(spec));
    assert_eq!(ran.report.outcome, Outcome::Pass, "{:?}", ran.report.text);
    assert_eq!(ran.asked[1..4], ["step 0", "POST /one with POST /two", "power a Cut"]);
}

#[test]
fn a_link_is_made_worse_by_what_the_step_says() {
    let spec = with_board(
        "  steps:\n  - link: {board: a, do: delay, by: 2 * slack}\n  - link: {board: a, do: loss, percent: 20}\n  - link: {board: a, do: heal}\n",
    );
    let ran = run(Script { facts: coming_up(), ..Script::default() }, false, &spec);
    assert_eq!(ran.report.outcome, Outcome::Pass, "{:?}", ran.report.text);
    let links: Vec<&String> = ran.asked.iter().filter(|asked| asked.starts_with("link")).collect();
    assert_eq!(links, ["link a Delay(100ms)", "link a Loss(20)", "link a Heal"]);
}

#[test]
fn a_panic_or_a_standstill_is_the_harness_own_failure() {
    let spec = with_board("  steps: [{power: {board: a, do: cut}}, {wait: 1s}]\n");
    let ran = run(Script { facts: coming_up(), panics: true, ..Script::default() }, false, &spec);
    assert_eq!(ran.report.outcome, Outcome::InfraError);
    assert_eq!(ran.report.reason.as_deref(), Some("the harness panicked: on purpose"));
    let ran = run(Script { frozen: true, ..Script::default() }, false, "  steps: [{wait: 1s}]\n");
    assert_eq!(ran.report.outcome, Outcome::InfraError);
    assert_eq!(ran.report.reason.as_deref(), Some("the rig stands still at 0.000 s"));
}

#[test]
fn a_trials_seed_depends_on_its_name_and_the_runs_seed_alone() {
    assert_eq!(seed_of(1, "node/a"), seed_of(1, "node/a"));
    assert_ne!(seed_of(1, "node/a"), seed_of(2, "node/a"));
    assert_ne!(seed_of(1, "node/a"), seed_of(1, "node/b"));
    for seed in [0, 1, 417, u64::MAX] {
        for name in ["", "node/a", "node-lifecycle/power-cut-unknown/short"] {
            assert_eq!(given_seed(seed_of(seed, name), name), seed, "{name}");
        }
    }
}

#[test]
fn a_log_is_asked_for_until_its_expectation_is_settled() {
    let spec = "  steps: [{expect: {log: {pod: lamp, matches: ready}, within: 2s}, as: logged}, {wait: logged + 1s}]\n";
    let log = Some((Micros(300_000), "boot\nready\n"));
    let ran = run(Script { log, ..Script::default() }, false, spec);
    assert_eq!(ran.report.outcome, Outcome::Pass, "{:?}", ran.report.text);
    let path = "GET /api/v1/namespaces/default/pods/lamp/log";
    let questions = ran.asked.iter().filter(|asked| *asked == path).count();
    assert!(questions > 10, "{:?}", ran.asked);
    let ran = run(Script::default(), false, spec);
    assert_eq!(ran.report.outcome, Outcome::Fail);
    let text = ran.report.text.unwrap_or_default();
    assert!(text.contains("the log was empty at 2."), "{text}");
}

#[test]
fn kinds_of_the_scenarios_own_are_watched_before_the_first_step() {
    let spec = "  steps: [{expect: {of: {kind: Widget, apiVersion: example.com/v1, plural: widgets}, within: 1s}}]\n";
    let widget =
        json!({"kind": "Widget", "metadata": {"name": "w", "namespace": "default", "resourceVersion": "5"}});
    let stream = "widgets.example.com".to_owned();
    let facts = vec![
        (Micros(1), Fact::Synced { stream: stream.clone() }),
        (Micros(100_000), Fact::Object { stream, verb: Verb::Added, object: widget }),
    ];
    let ran = run(Script { facts, ..Script::default() }, false, spec);
    assert_eq!(ran.report.outcome, Outcome::Pass, "{:?}", ran.report.text);
    assert_eq!(ran.asked, ["opened", "watch widgets.example.com", "step 0", "evidence", "closed"]);
}

#[test]
fn schedulers_images_and_console_lines_reach_the_world_filled_in() {
    let spec = with_board(
        "  steps:\n    - scheduler: {do: start}\n      as: started\n    - scheduler: {do: stop}\n    - flash: {board: a, image: old, erase: true}\n      as: flashed\n    - flash: {board: a}\n    - send: {board: a, line: \"name ${a}\"}\n      as: sent\n    - order: [started, flashed, sent]\n",
    );
    let ran = run(Script { facts: coming_up(), ..Script::default() }, true, &spec);
    assert_eq!(ran.report.outcome, Outcome::Pass, "{:?}", ran.report.text);
    let acts: Vec<&String> = ran.asked.iter().filter(|asked| !asked.starts_with("step ")).collect();
    assert_eq!(
        acts[1..6],
        [
            "scheduler second-scheduler Start",
            "scheduler second-scheduler Stop",
            "flash a Some(\"old\") true",
            "flash a None false",
            "send a name a"
        ]
    );
}
