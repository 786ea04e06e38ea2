//! Second schedulers as processes: clients of the control plane like any other, with an identity of their own.

use crate::binaries::{Artifact, find, on_path};
use crate::ledger::Ledger;
use crate::log::{Log, Start};
use crate::process::{Input, Process};
use crate::world::{Infra, SchedulerAct};
use rigor_model::duration;
use rigor_model::equipment::{KUBECONFIG, NAME, SchedulerProgram};
use rigor_trace::Fact;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Longest time from start to the line that says it is ready.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Longest time from SIGTERM to the end.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// The program that a rig starts as a second scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerBench {
    /// Where it is, or why it is not: only trials that start one need it.
    program: Result<PathBuf, Infra>,
    /// Its arguments; `${kubeconfig}` and `${name}` stand in them.
    arguments: Vec<String>,
    /// Its further arguments for a dry run, if it has such a thing.
    dry_run: Option<Vec<String>>,
    /// A part of the line that says it is ready, if it says so.
    ready: Option<String>,
}

impl SchedulerBench {
    /// The program of the rig file, or `toy-scheduler`.
    #[must_use]
    pub fn find(stated: Option<&SchedulerProgram>) -> Self {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match stated {
            None => Self {
                program: find(Artifact::ToyScheduler),
                arguments: words(&["--kubeconfig", "${kubeconfig}", "--scheduler-name", "${name}"]),
                dry_run: Some(words(&["--dry-run"])),
                ready: Some("ready: schedules for ".to_owned()),
            },
            Some(stated) => {
                let (name, arguments) =
                    stated.command.split_first().map_or(("", &[][..]), |(name, rest)| (name, rest));
                let program = on_path(name).ok_or_else(|| {
                    Infra::lasting(
                        format!("the scheduler {name} is not installed"),
                        "install it, or correct spec.scheduler of the rig file",
                    )
                });
                let (dry_run, ready) = (stated.dry_run.clone(), stated.ready.clone());
                Self { program, arguments: arguments.to_vec(), dry_run, ready }
            }
        }
    }

    fn command(&self, name: &str, kubeconfig: &Path, dry_run: bool) -> Result<Command, Infra> {
        let mut command = Command::new(self.program.clone()?);
        let file = kubeconfig.display().to_string();
        let further = match (&self.dry_run, dry_run) {
            (_, false) => &[][..],
            (Some(further), true) => further,
            (None, true) => {
                return Err(Infra::lasting(
                    "this rig's scheduler has no dry run",
                    "state the arguments that make one: spec.scheduler.dryRun of the rig file",
                ));
            }
        };
        for argument in self.arguments.iter().chain(further) {
            let argument = argument.replace(&hole(KUBECONFIG), &file).replace(&hole(NAME), name);
            command.arg(argument);
        }
        command.env("KUBECONFIG", kubeconfig);
        Ok(command)
    }
}

fn hole(name: &str) -> String {
    format!("${{{name}}}")
}

/// That a scheduler cannot be started twice.
#[must_use]
pub fn scheduler_runs(name: &str) -> Infra {
    Infra::lasting(
        format!("the scheduler {name} runs already"),
        "stop it before it is started again, or give the second one another name",
    )
}

/// That a scheduler cannot be stopped.
#[must_use]
pub fn no_scheduler(name: &str) -> Infra {
    Infra::lasting(format!("no scheduler {name} runs"), "start it before it is stopped")
}

/// The second schedulers of a trial. Those that run end when this is dropped.
#[derive(Debug)]
pub(crate) struct Schedulers {
    bench: SchedulerBench,
    /// Whose credentials they have.
    kubeconfig: PathBuf,
    ledger: Arc<Ledger>,
    running: BTreeMap<String, Process>,
    /// What each of them wrote, over all its starts.
    logs: BTreeMap<String, Arc<Log>>,
}

impl Schedulers {
    /// None runs yet.
    pub(crate) fn new(bench: SchedulerBench, kubeconfig: PathBuf, ledger: Arc<Ledger>) -> Self {
        Self { bench, kubeconfig, ledger, running: BTreeMap::new(), logs: BTreeMap::new() }
    }

    pub(crate) fn act(&mut self, name: &str, act: SchedulerAct) -> Result<(), Infra> {
        let begun = self.ledger.now();
        match act {
            SchedulerAct::Start | SchedulerAct::DryRun => self.start(name, act == SchedulerAct::DryRun)?,
            SchedulerAct::Stop => self.stop(name)?,
            SchedulerAct::Kill => self.running.remove(name).ok_or_else(|| no_scheduler(name))?.kill(),
        }
        self.ledger.note(Fact::Scheduler { name: name.to_owned(), act, begun });
        Ok(())
    }

    /// What each of them wrote, by name.
    pub(crate) fn logs(&self) -> impl Iterator<Item = (&str, String)> {
        self.logs.iter().map(|(name, log)| (name.as_str(), log.text()))
    }

    /// Ends them all.
    pub(crate) fn end(&mut self) {
        while let Some((_, process)) = self.running.pop_first() {
            process.kill();
        }
    }

    fn start(&mut self, name: &str, dry_run: bool) -> Result<(), Infra> {
        if self.running.get(name).is_some_and(Process::running) {
            return Err(scheduler_runs(name));
        }
        let command = self.bench.command(name, &self.kubeconfig, dry_run)?;
        let program = command.get_program().to_string_lossy().into_owned();
        let ready = self.bench.ready.clone().unwrap_or_default();
        let log = self
            .logs
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(Log::of_scheduler(name, &ready, self.ledger.clone())));
        log.rearm();
        let process = Process::start(command, Input::Nothing, log.clone()).map_err(|error| {
            Infra::lasting(
                format!("{program} could not be started: {error}"),
                "check that it is a program for this machine",
            )
        })?;
        if ready.is_empty() {
            self.running.insert(name.to_owned(), process);
            return Ok(());
        }
        let problem = match log.wait_ready(START_LIMIT) {
            Start::Ready => {
                self.running.insert(name.to_owned(), process);
                return Ok(());
            }
            Start::Ended => "ended before it was ready".to_owned(),
            Start::Waiting => format!("did not say `{ready}` within {}", duration::format(START_LIMIT)),
        };
        process.kill();
        Err(Infra::transient(format!("the scheduler {name} {problem}; its last line: {}", log.last_line())))
    }

    fn stop(&mut self, name: &str) -> Result<(), Infra> {
        let process = self.running.remove(name).ok_or_else(|| no_scheduler(name))?;
        process.signal(Signal::TERM);
        match process.wait(STOP_LIMIT) {
            Some(_) => Ok(()),
            None => Err(Infra::transient(format!(
                "the scheduler {name} did not end within {} of SIGTERM",
                duration::format(STOP_LIMIT)
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use std::sync::mpsc::Receiver;

    /// A scheduler that is a line of shell, and says `up` when it is ready.
    fn schedulers(script: &str, ready: Option<&str>) -> (Schedulers, Receiver<crate::ledger::Noted>) {
        let dry_run = || Some(vec!["dry".to_owned(), "${name}".to_owned()]);
        let command = ["/bin/sh", "-c", script, "sh", "${name}", "${kubeconfig}"].map(str::to_owned).to_vec();
        let program = SchedulerProgram { command, dry_run: dry_run(), ready: ready.map(str::to_owned) };
        let (ledger, facts) = Ledger::new(Clock::start());
        (Schedulers::new(SchedulerBench::find(Some(&program)), "/k".into(), Arc::new(ledger)), facts)
    }

    fn acts(facts: &Receiver<crate::ledger::Noted>) -> Vec<String> {
        let told = |fact: Fact| match fact {
            Fact::Scheduler { name, act, .. } => Some(format!("{name} {}", act.name())),
            Fact::Process { who, status, .. } => Some(format!("{who} ended with {status}")),
            Fact::SchedulerLine { .. } => None,
            other => Some(format!("{other:?}")),
        };
        facts.try_iter().filter_map(|(_, fact)| told(fact)).collect()
    }

    /// Acts, and the lines that were printed, as they were noted.
    fn printed(facts: &Receiver<crate::ledger::Noted>) -> Vec<String> {
        let told = |fact: Fact| match fact {
            Fact::Scheduler { name, act, .. } => Some(format!("-- {name} {}", act.name())),
            Fact::SchedulerLine { name, line } => Some(format!("{name}: {line}")),
            _ => None,
        };
        facts.try_iter().filter_map(|(_, fact)| told(fact)).collect()
    }

    const WAITS: &str =
        "trap 'echo bye; exit 0' TERM; echo \"up $1 $2 $KUBECONFIG\"; while :; do sleep 0.01; done";

    #[test]
    fn one_is_started_stopped_and_started_again_and_its_words_are_kept() {
        let (mut schedulers, facts) = schedulers(WAITS, Some("up"));
        schedulers.act("toy", SchedulerAct::Start).unwrap();
        let twice = schedulers.act("toy", SchedulerAct::Start).unwrap_err();
        assert_eq!(twice.to_string(), "the scheduler toy runs already");
        schedulers.act("other", SchedulerAct::Start).unwrap();
        schedulers.act("toy", SchedulerAct::Stop).unwrap();
        let gone = schedulers.act("toy", SchedulerAct::Stop).unwrap_err();
        assert_eq!(gone.to_string(), "no scheduler toy runs");
        schedulers.act("toy", SchedulerAct::Start).unwrap();
        schedulers.act("toy", SchedulerAct::Kill).unwrap();
        assert!(schedulers.act("toy", SchedulerAct::Kill).is_err());
        assert_eq!(acts(&facts), ["toy start", "other start", "toy stop", "toy start", "toy kill"]);
        let logs: BTreeMap<&str, String> = schedulers.logs().collect();
        assert_eq!(logs["toy"].matches("up toy /k /k").count(), 2, "{}", logs["toy"]);
        assert_eq!(logs["toy"].matches("bye").count(), 1, "{}", logs["toy"]);
        assert!(logs["other"].contains("up other /k /k"));
    }

    #[test]
    fn what_is_printed_on_either_output_is_a_fact_by_the_schedulers_name() {
        let script =
            "trap 'echo bye >&2; exit 0' TERM; echo first >&2; echo \"up $1\"; while :; do sleep 0.01; done";
        let (mut schedulers, facts) = schedulers(script, Some("up"));
        schedulers.act("toy", SchedulerAct::Start).unwrap();
        schedulers.act("toy", SchedulerAct::Stop).unwrap();
        schedulers.act("other", SchedulerAct::Start).unwrap();
        schedulers.act("other", SchedulerAct::Kill).unwrap();
        let all = printed(&facts);
        assert_eq!(all.len(), 9, "{all:?}");
        let place = |told: &str| {
            all.iter().position(|line| line == told).unwrap_or_else(|| panic!("{told}: {all:?}"))
        };
        // The two outputs are read each by itself, and both to their end before an act that ends the scheduler is done.
        assert!(place("toy: up toy") < place("-- toy start"), "{all:?}");
        assert!(place("toy: first").max(place("toy: bye")) < place("-- toy stop"), "{all:?}");
        assert!(place("other: up other") < place("-- other start"), "{all:?}");
        assert!(place("-- toy stop") < place("other: first"), "{all:?}");
        assert!(place("other: first") < place("-- other kill"), "{all:?}");
        // It is kept for the evidence all the same.
        let kept: String = schedulers.logs().map(|(_, log)| log).collect();
        assert!(["first", "up toy", "bye", "up other"].iter().all(|line| kept.contains(line)), "{kept}");
    }

    #[test]
    fn a_dry_run_is_a_start_with_further_arguments_for_those_that_have_one() {
        let script = "echo \"up $*\"; while :; do sleep 0.01; done";
        let (mut toy, facts) = schedulers(script, Some("up"));
        toy.act("toy", SchedulerAct::DryRun).unwrap();
        assert_eq!(acts(&facts), ["toy dry-run"]);
        let said: String = toy.logs().map(|(_, log)| log).collect();
        assert!(said.trim_end().ends_with("up toy /k dry toy"), "{said}");
        toy.end();
        toy.bench.dry_run = None;
        let error = toy.act("other", SchedulerAct::DryRun).unwrap_err();
        assert_eq!(error.to_string(), "this rig's scheduler has no dry run");
        assert!(error.remedy.is_some_and(|remedy| remedy.contains("spec.scheduler.dryRun")));
    }

    #[test]
    fn one_that_does_not_come_up_is_told_with_its_last_words() {
        let (mut schedulers, facts) = schedulers("echo no such cluster >&2; exit 3", Some("up"));
        let error = schedulers.act("toy", SchedulerAct::Start).unwrap_err().to_string();
        assert!(error.starts_with("the scheduler toy ended before it was ready; its last line:"), "{error}");
        assert!(schedulers.act("toy", SchedulerAct::Stop).is_err(), "it does not run");
        assert!(!acts(&facts).iter().any(|act| act.contains("start")));
    }

    #[test]
    fn one_that_says_nothing_is_ready_once_it_runs_and_its_end_is_a_fact() {
        let (mut schedulers, facts) = schedulers("exit 4", None);
        schedulers.act("toy", SchedulerAct::Start).unwrap();
        let mut told = Vec::new();
        while !told.iter().any(|fact| fact == "scheduler:toy ended with 4") {
            let (_, fact) = facts.recv_timeout(Duration::from_secs(60)).unwrap();
            if let Fact::Process { who, status, .. } = fact {
                told.push(format!("{who} ended with {status}"));
            }
        }
        // It has ended by itself: that is known, and no reason not to stop it.
        schedulers.act("toy", SchedulerAct::Stop).unwrap();
    }

    #[test]
    fn a_program_that_is_not_there_is_told_when_it_is_needed() {
        let program =
            SchedulerProgram { command: vec!["scheduler-of-nobody".to_owned()], dry_run: None, ready: None };
        let (ledger, _facts) = Ledger::new(Clock::start());
        let bench = SchedulerBench::find(Some(&program));
        let mut schedulers = Schedulers::new(bench, "/k".into(), Arc::new(ledger));
        let error = schedulers.act("toy", SchedulerAct::Start).unwrap_err();
        assert_eq!(error.to_string(), "the scheduler scheduler-of-nobody is not installed");
        assert!(error.remedy.is_some() && !error.transient);
    }
}
