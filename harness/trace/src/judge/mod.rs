//! Verdicts: a pure function of scenario and history.
//!
//! [`judge`] judges a whole trial, [`judge_step`] one step while the trial still runs; both are the same
//! code over the same records, so a verdict does not change when a history is judged again. A step is
//! judged over what was recorded up to its end.

mod acts;
mod away;
mod capture;
mod concern;
mod edges;
mod expect;
mod faults;
mod gaps;
mod logs;
mod message;
mod nearest;
mod resolve;
mod reversed;
mod span;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use rigor_model::expect::Observation;
use rigor_model::expr::Instant;
use rigor_model::{Action, Class, Constants, Margins, Outcome, Scenario, Section, Step};
use serde_json::Value;

use crate::history::{History, Micros};
use crate::interval::Interval;
use crate::monitors::{self, Violation};
use crate::timeline::{CannotLook, FieldWatch, Look, Values, Watch};
use crate::view::View;

pub use resolve::Unresolved;

/// How long an expectation waits for an instant that cannot be told yet.
const PATIENCE: Duration = Duration::from_secs(30);

/// What came of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What came of it.
    pub outcome: Outcome,
    /// Why, where it is not a pass.
    pub message: Option<String>,
    /// How far inside its window it was.
    pub margins: Option<Margins>,
    /// What was found, and when.
    pub found: Option<Found>,
    /// Values that it gave names to.
    pub captured: Values,
    /// What would be a failure, if no fault had been injected that may rightly have brought it about; it is a pass then.
    pub excused: Option<String>,
}

/// What an expectation found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// When it came to be.
    pub when: Interval,
    /// The record that shows it.
    pub record: Option<usize>,
}

/// How a step stands while a trial runs.
#[derive(Debug, Clone, PartialEq)]
pub enum StepState {
    /// It is not settled; without new facts nothing changes before `until`.
    Pending {
        /// When to ask again.
        until: Micros,
    },
    /// It is settled.
    Settled(Verdict),
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioVerdict {
    /// The trial's name.
    pub title: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Why, where it is not a pass: the first step that is none, and what monitors saw.
    pub message: Option<String>,
    /// The steps that were reached, with their index in the plan.
    pub steps: Vec<(usize, Verdict)>,
    /// What monitors saw.
    pub violations: Vec<Violation>,
}

impl Verdict {
    /// As it must be.
    pub(crate) fn pass() -> Verdict {
        Verdict {
            outcome: Outcome::Pass,
            message: None,
            margins: None,
            found: None,
            captured: Values::new(),
            excused: None,
        }
    }

    /// Anything else, and why.
    pub(crate) fn because(outcome: Outcome, message: impl Into<String>) -> Verdict {
        Verdict { outcome, message: Some(message.into()), ..Verdict::pass() }
    }

    /// The same as a pass.
    pub(crate) fn passed(self) -> Verdict {
        Verdict { outcome: Outcome::Pass, message: None, ..self }
    }

    pub(crate) fn with_found(mut self, when: Interval, record: Option<usize>) -> Verdict {
        self.found = Some(Found { when, record });
        self
    }

    pub(crate) fn with_margins(mut self, margins: Margins) -> Verdict {
        self.margins = Some(margins);
        self
    }
}

/// Judges a whole trial.
pub fn judge(scenario: &Scenario, history: &History) -> ScenarioVerdict {
    Judge::new(scenario).trial(history)
}

/// Judges one step of the plan at `now`.
pub fn judge_step(scenario: &Scenario, index: usize, history: &History, now: Micros) -> StepState {
    Judge::new(scenario).step(index, history, now)
}

/// Judges the steps of one trial, remembering those that are over.
#[derive(Debug)]
pub struct Judge<'s> {
    scenario: &'s Scenario,
    over: RefCell<BTreeMap<usize, Verdict>>,
    /// What pending steps have seen so far.
    watches: RefCell<BTreeMap<usize, Rc<Watch>>>,
    fields: RefCell<BTreeMap<usize, Rc<FieldWatch>>>,
    /// When acts that have ended were, by step and name.
    acts: RefCell<BTreeMap<(usize, String), Shown>>,
}

/// An instant, and the record that shows it.
type Shown = (Interval, Option<usize>);

impl<'s> Judge<'s> {
    /// For a trial of that scenario; it must always be asked about the same history.
    pub fn new(scenario: &'s Scenario) -> Judge<'s> {
        Judge {
            scenario,
            over: RefCell::default(),
            watches: RefCell::default(),
            fields: RefCell::default(),
            acts: RefCell::default(),
        }
    }

    fn scenario(&self) -> &'s Scenario {
        self.scenario
    }

    /// Remembers what came of a step; what it has seen is not needed any more.
    fn is_over(&self, index: usize, verdict: &Verdict) {
        self.over.borrow_mut().insert(index, verdict.clone());
        self.watches.borrow_mut().remove(&index);
        self.fields.borrow_mut().remove(&index);
    }

    /// How a step stands at `now`.
    pub fn step(&self, index: usize, history: &History, now: Micros) -> StepState {
        if let Some(verdict) = self.over.borrow().get(&index) {
            return StepState::Settled(verdict.clone());
        }
        let Some(step) = self.scenario.plan.get(index) else {
            return StepState::Settled(Verdict::because(Outcome::InfraError, "the plan has no such step"));
        };
        let bench = self.bench(index, step, history, now);
        let over = bench.ended;
        let state = bench.state();
        match state {
            StepState::Pending { .. } if over => {
                // The step was ended without being settled: the trial ended, or the runner gave up.
                let message = format!("{}\n  the recording ends before it was settled", bench.sentence());
                let verdict = Verdict::because(Outcome::Undecided, message);
                self.is_over(index, &verdict);
                StepState::Settled(verdict)
            }
            StepState::Settled(verdict) if over => {
                self.is_over(index, &verdict);
                StepState::Settled(verdict)
            }
            state @ (StepState::Pending { .. } | StepState::Settled(_)) => state,
        }
    }

    /// The values that `${NAME}` has at a step.
    pub fn values(&self, index: usize, history: &History) -> Values {
        let node = |board: &String| Value::String(history.node_of(board).to_owned());
        let boards = self.scenario.boards.iter();
        let mut values: Values = boards.map(|board| (board.clone(), node(board))).collect();
        values.insert("namespace".to_owned(), Value::String(history.namespace().to_owned()));
        let staged = !history.index().steps.is_empty();
        for (earlier, step) in self.scenario.plan.iter().enumerate().take(index) {
            if self.leaves_out(step, staged) {
                continue;
            }
            if let Action::Capture(_) = step.action
                && let StepState::Settled(verdict) = self.step(earlier, history, history.last_at())
            {
                values.extend(verdict.captured);
            }
        }
        values
    }

    /// When an instant was, or is expected to be, as far as is known at `now` in that step.
    ///
    /// # Errors
    /// [`Unresolved`] while it cannot be told.
    pub fn instant(
        &self,
        index: usize,
        history: &History,
        now: Micros,
        instant: &Instant,
    ) -> Result<Interval, Unresolved> {
        let Some(step) = self.scenario.plan.get(index) else {
            return Err(Unresolved::new("the plan has no such step"));
        };
        self.bench(index, step, history, now).resolve(instant)
    }

    /// Judges the whole trial.
    pub fn trial(&self, history: &History) -> ScenarioVerdict {
        let staged = !history.index().steps.is_empty();
        let mut steps = Vec::new();
        let mut outcome = Outcome::Pass;
        let mut messages = Vec::new();
        for (index, step) in self.scenario.plan.iter().enumerate() {
            if self.leaves_out(step, staged) {
                continue;
            }
            let reached = history.index().steps.get(&index).is_some_and(|marks| marks.begin.is_some());
            if staged && !reached {
                if outcome == Outcome::Pass && step.section != Section::Cleanup {
                    outcome = Outcome::Undecided;
                    messages.push(format!("{} was not reached", place(step)));
                }
                continue;
            }
            let verdict = match self.step(index, history, history.last_at()) {
                StepState::Settled(verdict) => verdict,
                StepState::Pending { .. } => Verdict::because(
                    Outcome::Undecided,
                    format!("{}: {}\n  the recording ends before it was settled", place(step), step.sentence),
                ),
            };
            if step.section != Section::Cleanup
                && outcome == Outcome::Pass
                && verdict.outcome != Outcome::Pass
            {
                outcome = verdict.outcome;
                messages.extend(verdict.message.clone());
            }
            steps.push((index, verdict));
        }
        let violations = monitors::all(self.scenario, history);
        for violation in &violations {
            messages.push(violation.to_string());
            outcome = outcome.max(violation.outcome());
        }
        let message = (!messages.is_empty()).then(|| messages.join("\n"));
        ScenarioVerdict { title: self.scenario.title(), outcome, message, steps, violations }
    }

    /// Whether a step is no part of what is judged: over a history from elsewhere, what an observed scenario does to bring the
    /// situation about on a rig.
    fn leaves_out(&self, step: &Step, staged: bool) -> bool {
        self.scenario.observe && !staged && step.section != Section::Steps
    }

    fn bench<'h>(&'h self, index: usize, step: &'h Step, history: &'h History, now: Micros) -> Bench<'h, 's> {
        let marks = history.index().steps.get(&index).copied().unwrap_or_default();
        let staged = !history.index().steps.is_empty();
        let (end, now) = match marks.end {
            Some(end) => (end + 1, history.records()[end].at),
            None => (history.len(), now),
        };
        let constants = history
            .index()
            .constants
            .unwrap_or_else(|| Constants::default().overridden(&self.scenario.constants));
        let begin = marks.begin.map_or(Micros::ZERO, |record| history.records()[record].at);
        Bench {
            judge: self,
            index,
            step,
            history,
            view: View::new(history, end, now, constants.slack),
            constants,
            begin,
            // Without marks of steps (a history from elsewhere) nothing more will be recorded.
            ended: marks.end.is_some() || !staged,
            staged,
        }
    }
}

/// Everything that judging one step needs.
pub(crate) struct Bench<'h, 's> {
    judge: &'h Judge<'s>,
    index: usize,
    step: &'h Step,
    history: &'h History,
    view: View<'h>,
    constants: Constants,
    begin: Micros,
    ended: bool,
    /// Whether the history is that of a trial of this scenario, with marks of its steps.
    staged: bool,
}

impl Bench<'_, '_> {
    /// The look of this step, with what it has seen.
    fn watch(&self, what: &Observation) -> Result<Rc<Watch>, CannotLook> {
        if let Some(watch) = self.judge.watches.borrow().get(&self.index) {
            return Ok(Rc::clone(watch));
        }
        let values = self.judge.values(self.index, self.history);
        let watch = Rc::new(Watch::new(Look::new(what, &self.view, &values)?));
        self.judge.watches.borrow_mut().insert(self.index, Rc::clone(&watch));
        Ok(watch)
    }

    fn state(&self) -> StepState {
        match &self.step.action {
            Action::Expect(expect) => self.given(expect.given, self.expect(expect)),
            Action::Never(never) => self.never(never),
            Action::Always(always) => self.always(always),
            Action::Unchanged(unchanged) => self.unchanged(unchanged),
            Action::Order(order) => self.order(order),
            Action::Capture(capture) => self.given(capture.given, self.capture(capture)),
            Action::Apply(_)
            | Action::Create(_)
            | Action::Replace(_)
            | Action::Patch(_)
            | Action::Delete(_)
            | Action::Scale(_)
            | Action::Cordon(_)
            | Action::Uncordon(_)
            | Action::Bind(_)
            | Action::Request(_)
            | Action::Power(_)
            | Action::Link(_)
            | Action::ControlPlane(_)
            | Action::Scheduler(_)
            | Action::Flash(_)
            | Action::Send(_)
            | Action::Mark(_)
            | Action::Node(_)
            | Action::Kubectl(_)
            | Action::Etcdctl(_)
            | Action::Wait(_)
            | Action::Advance(_)
            | Action::Parallel(_) => self.act(),
        }
    }

    /// What a premise amounts to: where it is not so, nothing is said.
    fn given(&self, given: bool, state: StepState) -> StepState {
        match state {
            StepState::Settled(verdict) if given && verdict.outcome == Outcome::Fail => {
                let why = verdict.message.unwrap_or_default();
                let text = format!("{why}\n  the history does not hold what is given");
                StepState::Settled(Verdict::because(Outcome::Undecided, text))
            }
            state @ (StepState::Pending { .. } | StepState::Settled(_)) => state,
        }
    }

    /// The sentence that is judged, with its place.
    fn sentence(&self) -> String {
        format!("{}: {}", place(self.step), self.step.sentence)
    }

    /// Where occurrences are looked for if nothing else is said: since the last act began.
    fn last_act(&self) -> Micros {
        let plan = &self.judge.scenario.plan[..self.index];
        let act = plan.iter().rposition(|step| {
            step.action.verb().class() == Class::Act
                && !matches!(step.action, Action::Wait(_) | Action::Advance(_))
        });
        let begin = act.and_then(|index| self.view.step(index).begin);
        begin.map_or(Micros::ZERO, |record| self.history.records()[record].at)
    }

    /// Pending while an instant cannot be told, undecided when that lasts too long.
    fn cannot_tell(&self, why: &Unresolved) -> StepState {
        let until = self.begin + PATIENCE;
        if self.view.now() <= until && !self.ended {
            return StepState::Pending { until: until + Duration::from_micros(1) };
        }
        StepState::Settled(Verdict::because(Outcome::Undecided, format!("{}\n  {why}", self.sentence())))
    }
}

/// Where a step stands, for people: `steps 4 (line 31)`.
fn place(step: &Step) -> String {
    let file = step.fragment.as_ref().map(|file| format!("{file} "));
    format!("{} {} ({}line {})", step.section.name(), step.number, file.unwrap_or_default(), step.line)
}
