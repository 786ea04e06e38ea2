//! One trial from a closed rig to a report: open a world, take the steps, judge, save evidence, clean up.
//!
//! A failure of the rig is tried again, twice at most, and told; so is a trial that cannot be decided, since what stood in
//! the way (a stall of the harness, an observer too slow, a watch gap) was the rig's as well. Anything else is final at
//! once: nothing that failed is ever tried again. Evidence is saved before the cleanup changes what there is to see, and
//! thrown away where nobody will want it.

use super::act::{Moments, Stage};
use super::ready::wait_ready;
use crate::report::{TrialReport, save_evidence};
use jiff::Timestamp;
use rigor_model::act::{PlayedNode, Report};
use rigor_model::expr::Instant;
use rigor_model::{
    Action, Capability, Class, Constants, FaultName, Faults, Outcome, Rig, Scenario, Section, Step,
};
use rigor_rigs::{ApiRequest, Infra, World};
use rigor_trace::history::VIRTUAL_EPOCH;
use rigor_trace::judge::{Judge, ScenarioVerdict, StepState, Verdict};
use rigor_trace::{Fact, History, Phase, View, faults, jsonl};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a failure of the rig, or a trial that it leaves undecided, is tried again.
const MORE_ATTEMPTS: usize = 2;

/// How long a `wait` waits for its instant to be known.
const INSTANT_PATIENCE: Duration = Duration::from_secs(30);

/// Opens a world for a trial.
pub type Open<'a> = dyn Fn(&Asked<'_>) -> Result<Box<dyn World>, Infra> + Sync + 'a;

/// What a trial asks of a rig.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The constants in force.
    pub constants: &'a Constants,
    /// Names of its boards.
    pub boards: &'a [String],
    /// Bytes of PSRAM of those boards that are to have so much.
    pub psram: &'a BTreeMap<String, u32>,
    /// Flags of the control plane besides the rig's own.
    pub flags: &'a [String],
    /// Whether the control plane is to keep its state in an etcd.
    pub etcd: bool,
    /// The seed of everything drawn.
    pub seed: u64,
    /// The faults to inject.
    pub faults: &'a Faults,
    /// Faults that do not strike.
    pub without: &'a BTreeSet<FaultName>,
}

/// What is to be tried.
#[derive(Debug)]
pub struct Trial<'a> {
    /// `area/scenario` or `area/scenario/case`.
    pub name: &'a str,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The rig; its constants hold but for those that the scenario wants otherwise.
    pub rig: &'a Rig,
    /// The seed of everything drawn.
    pub seed: u64,
    /// The faults to inject.
    pub faults: Faults,
    /// Where evidence goes; the folder is this trial's own. Without one neither evidence nor the history is kept.
    pub evidence: Option<PathBuf>,
    /// Whether a passing trial's evidence is kept.
    pub keep: bool,
}

/// Runs a trial.
#[must_use]
pub fn run_trial(trial: &Trial<'_>, open: &Open<'_>) -> TrialReport {
    let mut attempts = Vec::new();
    loop {
        let (mut report, again) = match catch_unwind(AssertUnwindSafe(|| attempt(trial, open))) {
            Ok(Ok(attempted)) => attempted,
            Ok(Err(error)) => (infra(trial, &error), error.transient),
            Err(panic) => {
                (infra(trial, &Infra::transient(format!("the harness panicked: {}", said(&panic)))), false)
            }
        };
        if !again || attempts.len() == MORE_ATTEMPTS {
            report.attempts = attempts;
            return report;
        }
        attempts.push(first_line(report.reason.as_deref().or(report.text.as_deref()).unwrap_or_default()));
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn said(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it did not say why").to_owned()
}

fn blank(trial: &Trial<'_>, outcome: Outcome) -> TrialReport {
    TrialReport {
        reason: None,
        constants: trial.scenario.constants.clone(),
        ..TrialReport::unrun(trial.name, trial.scenario.requirements.clone(), outcome, String::new())
    }
}

fn infra(trial: &Trial<'_>, error: &Infra) -> TrialReport {
    TrialReport {
        reason: Some(first_line(&error.what)),
        text: Some(error.whole()),
        ..blank(trial, Outcome::InfraError)
    }
}

/// One attempt, and whether another may come out better.
fn attempt(trial: &Trial<'_>, open: &Open<'_>) -> Result<(TrialReport, bool), Infra> {
    let scenario = trial.scenario;
    let constants = trial.rig.constants.overridden(&scenario.constants);
    let without = scenario.withheld.as_ref().map(|withheld| withheld.kinds.clone()).unwrap_or_default();
    let mut world = open(&Asked {
        constants: &constants,
        boards: &scenario.boards,
        psram: &scenario.psram,
        flags: &scenario.flags,
        etcd: scenario.needs.contains(&Capability::Etcd),
        seed: trial.seed,
        faults: &trial.faults,
        without: &without,
    })?;
    world.record(Fact::TrialStarted {
        scenario: scenario.name.clone(),
        rig: trial.rig.name.clone(),
        case: scenario.case.clone(),
        seed: trial.seed,
        wall: None,
        constants,
        faults: trial.faults.level(),
    });
    let zero = zero(world.history());
    let namespace = world.history().namespace().to_owned();
    let mut stage = Stage::new(world.as_mut(), constants, &namespace, zero);
    let judge = Judge::new(scenario);
    let steps = scenario.plan.iter().enumerate();
    let (cleanup, proper): (Vec<_>, Vec<_>) = steps.partition(|(_, step)| step.section == Section::Cleanup);
    stage.heed.clone_from(&scenario.heeded);
    for kind in &scenario.own_kinds {
        stage.world.watch(kind)?;
    }
    let mut broken = wait_ready(stage.world, &scenario.boards).err();
    if broken.is_none() {
        broken = take_all(&mut stage, &judge, &proper).err();
    }
    let length = stage.world.now();
    let saved = trial.evidence.as_deref().map_or(Ok(()), |dir| save_evidence(stage.world, dir));
    // What a cleanup comes to changes no verdict; the next trial has a world of its own.
    let _ = take_all(&mut stage, &judge, &cleanup);
    linger(world.as_mut(), constants.slack);
    world.record(Fact::TrialEnded {});
    let verdict = judge.trial(world.history());
    let faults = faults::tally(world.history());
    let withheld = world.withheld();
    let history = if trial.evidence.is_some() { world.history().clone() } else { History::new() };
    world.close();
    let (mut report, again) = match broken {
        Some(error) => (infra(trial, &error), error.transient),
        None => settled(trial, &verdict),
    };
    report.length = length;
    report.steps =
        verdict.steps.iter().map(|(index, verdict)| step_report(scenario, *index, verdict)).collect();
    report.excused = verdict.steps.iter().filter_map(|(_, verdict)| verdict.excused.clone()).collect();
    report.faults = faults;
    report.withheld = withheld;
    report.history = history;
    keep_evidence(trial, &mut report, saved);
    Ok((report, again))
}

/// Wall time of microsecond 0.
fn zero(history: &History) -> Timestamp {
    let stated = history.records().iter().find_map(|record| {
        let Fact::TrialStarted { wall, .. } = &record.fact else { return None };
        wall.as_deref()?.parse().ok()
    });
    stated.or_else(|| VIRTUAL_EPOCH.parse().ok()).unwrap_or_default()
}

fn settled(trial: &Trial<'_>, verdict: &ScenarioVerdict) -> (TrialReport, bool) {
    let mut report = blank(trial, verdict.outcome);
    report.text.clone_from(&verdict.message);
    report.broke = broke(trial.scenario, verdict);
    // The first line is the step's sentence, the second what the rig did not do, the last what stands in the way of a verdict.
    let mut lines = verdict.message.as_deref().unwrap_or_default().lines();
    let why = match verdict.outcome {
        Outcome::InfraError => lines.clone().nth(1).or(lines.next()),
        Outcome::Undecided => lines.last(),
        Outcome::Pass | Outcome::Fail | Outcome::Skipped | Outcome::KnownLimitation => None,
    };
    report.reason = why.map(|line| line.trim().to_owned());
    let of_the_rig = matches!(verdict.outcome, Outcome::InfraError | Outcome::Undecided);
    (report, of_the_rig)
}

/// What was not as it must be first.
fn broke(scenario: &Scenario, verdict: &ScenarioVerdict) -> Option<String> {
    let planned = |index: usize| scenario.plan.get(index).filter(|step| step.section != Section::Cleanup);
    let bad = verdict.steps.iter().filter(|(_, verdict)| verdict.outcome != Outcome::Pass);
    let step = bad.filter_map(|(index, _)| planned(*index)).map(step_name).next();
    step.or_else(|| verdict.violations.first().map(|violation| format!("monitor {}", violation.monitor)))
}

fn step_report(
    scenario: &Scenario,
    index: usize,
    verdict: &Verdict,
) -> (String, Outcome, Option<rigor_model::Margins>) {
    let name = scenario.plan.get(index).map_or_else(String::new, step_name);
    (name, verdict.outcome, verdict.margins)
}

fn step_name(step: &Step) -> String {
    format!("{} {}", step.section.name(), step.number)
}

fn keep_evidence(trial: &Trial<'_>, report: &mut TrialReport, saved: Result<(), Infra>) {
    let Some(dir) = &trial.evidence else { return };
    if report.outcome == Outcome::Pass && !trial.keep {
        let _ = std::fs::remove_dir_all(dir);
        return;
    }
    report.evidence = Some(dir.clone());
    let written = saved.and_then(|()| {
        write_history(dir, &report.history)
            .map_err(|error| Infra::transient(format!("evidence: the history could not be written: {error}")))
    });
    if let Err(error) = written {
        let text = report.text.get_or_insert_default();
        text.push_str(&format!("\n{error}"));
    }
}

/// The trial's own history beside its evidence, for `rigor judge`.
fn write_history(dir: &Path, history: &History) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = std::io::BufWriter::new(std::fs::File::create(dir.join("events.jsonl"))?);
    jsonl::write(history, &mut file)?;
    file.flush()
}

/// Takes steps one after another until one does not pass, which ends the trial.
fn take_all(stage: &mut Stage<'_>, judge: &Judge<'_>, steps: &[(usize, &Step)]) -> Result<(), Infra> {
    for (index, step) in steps {
        if take(stage, judge, *index, step)?.outcome != Outcome::Pass {
            break;
        }
    }
    Ok(())
}

fn take(stage: &mut Stage<'_>, judge: &Judge<'_>, index: usize, step: &Step) -> Result<Verdict, Infra> {
    // What was due while the last step ended belongs before this one.
    stage.play();
    stage.world.record(Fact::Step { index, phase: Phase::Begin });
    match (&step.action, step.action.verb().class()) {
        (Action::Wait(wait), _) => pass_time(stage, judge, index, &wait.until)?,
        (Action::Advance(advance), _) => {
            let until = Instant::Plus(Box::new(Instant::Begin), advance.by.clone());
            pass_time(stage, judge, index, &until)?;
        }
        (action, Class::Act | Class::Structure) => {
            let values = judge.values(index, stage.world.history());
            let moments = moments(stage, judge, index, action)?;
            stage.perform(action, &values, &moments)?;
        }
        (_, Class::Expectation) => loop {
            if let Some(path) = judge.log_to_ask(index, stage.world.history(), stage.world.now()) {
                stage.world.request(ApiRequest::new("GET", path, None));
            }
            match judge.step(index, stage.world.history(), stage.world.now()) {
                StepState::Pending { until } => {
                    let now = stage.world.now();
                    let again = judge.log_again(index, stage.world.history(), now);
                    stage.wait(again.map_or(until, |again| again.min(until)))?;
                }
                StepState::Settled(_) => break,
            }
        },
    }
    stage.name(step);
    stage.world.record(Fact::Step { index, phase: Phase::End });
    // Judged over all that was recorded up to the step's end: the verdict that holds later, too.
    match judge.step(index, stage.world.history(), stage.world.now()) {
        StepState::Settled(verdict) => Ok(verdict),
        StepState::Pending { .. } => Err(Infra::transient(format!("{} cannot be judged", step_name(step)))),
    }
}

/// When the nodes that an act plays report, where it says so by an instant.
fn moments(stage: &Stage<'_>, judge: &Judge<'_>, index: usize, action: &Action) -> Result<Moments, Infra> {
    let mut moments = Moments::new();
    if let Action::Node(PlayedNode { name, report: Some(Report::At(at)), .. }) = action {
        let found = judge.instant(index, stage.world.history(), stage.world.now(), at);
        let found = found.map_err(|why| {
            Infra::lasting(format!("report: at {at}: {why}"), "name an instant that is known by then")
        })?;
        moments.insert(name.clone(), found.latest);
    } else if let Action::Parallel(steps) = action {
        for step in steps {
            moments.extend(self::moments(stage, judge, index, &step.action)?);
        }
    }
    Ok(moments)
}

/// In real time, waits until what had happened by now is known: a monitor judges by all that was written.
fn linger(world: &mut dyn World, lag: Duration) {
    if View::new(world.history(), usize::MAX, world.now(), lag).exact() {
        return;
    }
    let until = world.now() + lag;
    while world.now() < until {
        world.wait(until);
    }
}

/// Lets time pass until an instant is certainly over. One that cannot be told is waited for a while.
fn pass_time(stage: &mut Stage<'_>, judge: &Judge<'_>, index: usize, until: &Instant) -> Result<(), Infra> {
    let patience = stage.world.now() + INSTANT_PATIENCE;
    loop {
        let now = stage.world.now();
        let end = match judge.instant(index, stage.world.history(), now, until) {
            Ok(instant) => instant.latest,
            Err(why) if now >= patience => {
                return Err(Infra::lasting(
                    format!("wait until {until}: {why}"),
                    "wait for an instant that was",
                ));
            }
            Err(_) => patience,
        };
        if now >= end {
            return Ok(());
        }
        stage.wait(end)?;
    }
}
