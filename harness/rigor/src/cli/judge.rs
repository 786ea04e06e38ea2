//! `rigor judge`: the verdict over a history that was recorded before, here or elsewhere.

use super::files::histories;
use super::trace::{history_file, title};
use super::{Trouble, Where, say};
use crate::exit::Exit;
use crate::suite::{ScenarioFile, Suites};
use crate::terminal::many;
use clap::{Args, ValueEnum};
use rigor_model::{Outcome, Scenario};
use rigor_trace::jsonl::trial_of;
use rigor_trace::judge::{ScenarioVerdict, judge};
use rigor_trace::{Fact, History};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Judge scenarios over recorded histories: the same verdicts as when they ran.
///
/// Exit codes are those of `rigor run`.
#[derive(Debug, Args)]
pub(super) struct Judge {
    /// The history: a report's folder, a trial's evidence, or an events.jsonl, which may hold many trials.
    #[arg(long, value_name = "DIR|FILE")]
    history: PathBuf,
    /// A scenario file, an area, a folder, or the name of a trial: `area/scenario` or `area/scenario/case`; if left out,
    /// every trial of the history whose scenario is among the suites.
    scenario: Option<String>,
    /// How verdicts are told: for people, or one JSON object a trial and line.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    place: Where,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Sentences.
    Text,
    /// One object a trial: trial, outcome, message, steps.
    Json,
}

impl Judge {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let suites = Suites::new(self.place.suites());
        let catalogue = suites.catalogue()?;
        let path = history_file(&self.history);
        let histories = histories(&path)?;
        let mut outcomes = Vec::new();
        for (file, case) in self.files(&suites, &histories)? {
            for scenario in file.load(&catalogue)? {
                if case.is_some() && case != scenario.case {
                    continue;
                }
                for history in matching(&scenario, &histories) {
                    let name = file.trial(scenario.case.as_deref());
                    fits(&name, &scenario, history)?;
                    let verdict = judge(&scenario, history);
                    match self.format {
                        Format::Text => say(&told(&name, &scenario, &verdict)),
                        Format::Json => say(&object(&name, &scenario, &verdict).to_string()),
                    }
                    outcomes.push(verdict.outcome);
                }
            }
        }
        if outcomes.is_empty() {
            let held: Vec<String> = histories.iter().filter_map(title).collect();
            return Err(Trouble::Input(miette::miette!(
                help = format!(
                    "it holds {}; a history of something else is judged by a scenario with `observe: true`",
                    if held.is_empty() { "no trial with a name".to_owned() } else { held.join(", ") }
                ),
                "{} holds no history of {}",
                path.display(),
                self.scenario.as_deref().unwrap_or("any scenario of the suites")
            )));
        }
        if self.format == Format::Text && outcomes.len() > 1 {
            say(&counted(&outcomes));
        }
        Ok(Exit::of(&outcomes))
    }

    /// The scenario that is asked for; or those of all trials of the histories, each once.
    fn files(
        &self,
        suites: &Suites,
        histories: &[History],
    ) -> Result<Vec<(ScenarioFile, Option<String>)>, Trouble> {
        let Some(asked) = &self.scenario else {
            let mut files = suites.files()?;
            files.retain(|file| {
                histories
                    .iter()
                    .filter_map(trial_of)
                    .any(|(name, _, _)| file.path().ends_with(format!("{name}.yaml")))
            });
            return Ok(files.into_iter().map(|file| (file, None)).collect());
        };
        if Path::new(asked).is_file() {
            return Ok(vec![(ScenarioFile::at(Path::new(asked)), None)]);
        }
        if let Some(found) = suites.find(asked) {
            return Ok(vec![found]);
        }
        let files = suites.chosen(std::slice::from_ref(asked))?;
        Ok(files.into_iter().map(|file| (file, None)).collect())
    }
}

/// Refuses a history of another version of the scenario: one that began steps which the file does not have.
fn fits(name: &str, scenario: &Scenario, history: &History) -> Result<(), Trouble> {
    let began = history.records().iter().filter_map(|record| match &record.fact {
        Fact::Step { index, .. } => Some(index + 1),
        _ => None,
    });
    let (began, planned) = (began.max().unwrap_or(0), scenario.plan.len());
    if began <= planned {
        return Ok(());
    }
    Err(Trouble::Input(miette::miette!(
        help = "judge with the file as it was when the history was recorded, or run the scenario again",
        "the history of {name} has {began} steps, and the scenario has {planned}: it was recorded with another version of it"
    )))
}

/// How many trials came out how.
fn counted(outcomes: &[Outcome]) -> String {
    let count = |outcome: &Outcome| outcomes.iter().filter(|other| *other == outcome).count();
    let counts = Outcome::ALL.iter().filter(|outcome| count(outcome) > 0);
    let counts: Vec<String> =
        counts.map(|outcome| format!("{} {}", count(outcome), outcome.name())).collect();
    format!("{}: {}", many(outcomes.len(), "trial"), counts.join(", "))
}

/// A verdict for programs.
fn object(name: &str, scenario: &Scenario, verdict: &ScenarioVerdict) -> Value {
    let steps: Vec<Value> = verdict
        .steps
        .iter()
        .filter_map(|(index, step)| {
            let planned = scenario.plan.get(*index)?;
            Some(json!({
                "section": planned.section.name(),
                "number": planned.number,
                "line": planned.line,
                "sentence": planned.sentence,
                "outcome": step.outcome.name(),
                "message": step.message,
                "margins": step.margins,
            }))
        })
        .collect();
    json!({"trial": name, "outcome": verdict.outcome.name(), "message": verdict.message, "steps": steps})
}

/// The history of this scenario; an observed scenario is judged over each history that is no trial of anything.
fn matching<'a>(scenario: &Scenario, histories: &'a [History]) -> Vec<&'a History> {
    let named = histories.iter().find(|history| {
        trial_of(history)
            .is_some_and(|(name, case, _)| name == scenario.name && case == scenario.case.as_deref())
    });
    let recorded = |history: &&History| scenario.observe && !is_staged(history);
    named.map_or_else(|| histories.iter().filter(recorded).collect(), |named| vec![named])
}

/// Whether a history is that of a trial: it tells where the scenario stood.
fn is_staged(history: &History) -> bool {
    history.records().iter().any(|record| matches!(record.fact, Fact::Step { .. }))
}

fn told(name: &str, scenario: &Scenario, verdict: &ScenarioVerdict) -> String {
    let mut text = format!("{} {name}", verdict.outcome.name());
    for (index, step) in &verdict.steps {
        let Some(planned) = scenario.plan.get(*index) else { continue };
        let margins = step.margins.as_ref().map(margins).unwrap_or_default();
        text.push_str(&format!(
            "\n  {:<9} {} {}: {}{margins}",
            step.outcome.name(),
            planned.section.name(),
            planned.number,
            planned.sentence
        ));
        for line in step.excused.iter().flat_map(|excused| excused.lines().skip(1)) {
            text.push_str(&format!("\n            {}", line.trim()));
        }
    }
    if let (Some(message), false) = (&verdict.message, verdict.outcome == Outcome::Pass) {
        text.push_str(&format!("\n{message}"));
    }
    text
}

fn margins(margins: &rigor_model::Margins) -> String {
    let seconds = |micros: i64| {
        format!(
            "{:.3} s",
            std::time::Duration::from_micros(micros.unsigned_abs()).as_secs_f64()
                * if micros < 0 { -1.0 } else { 1.0 }
        )
    };
    let edge = |name: &str, micros: Option<i64>| micros.map(|micros| format!("{} {name}", seconds(micros)));
    let edges: Vec<String> = [
        edge("after the early edge", margins.early_micros),
        edge("before the late edge", margins.late_micros),
    ]
    .into_iter()
    .flatten()
    .collect();
    if edges.is_empty() {
        return String::new();
    }
    format!(
        " ({}, ± {})",
        edges.join(", "),
        seconds(i64::try_from(margins.uncertainty_micros).unwrap_or(i64::MAX))
    )
}
