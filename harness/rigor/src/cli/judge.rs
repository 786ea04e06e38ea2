//! `rigor judge`: the verdict over a history that was recorded before, here or elsewhere.

use super::files::histories;
use super::{Trouble, Where, say};
use crate::exit::Exit;
use crate::suite::{ScenarioFile, Suites};
use clap::Args;
use rigor_model::{Outcome, Scenario};
use rigor_trace::History;
use rigor_trace::jsonl::trial_of;
use rigor_trace::judge::{ScenarioVerdict, judge};
use std::path::{Path, PathBuf};

/// Judge a scenario over a recorded history.
#[derive(Debug, Args)]
pub(super) struct Judge {
    /// The history: an events.jsonl, which may hold many trials.
    #[arg(long, value_name = "FILE")]
    history: PathBuf,
    /// A scenario file, or the name of a trial: `area/scenario` or `area/scenario/case`.
    scenario: String,
    #[command(flatten)]
    place: Where,
}

impl Judge {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let suites = Suites::new(self.place.suites());
        let catalogue = suites.catalogue()?;
        let histories = histories(&self.history)?;
        let (file, case) = if Path::new(&self.scenario).is_file() {
            (ScenarioFile::at(Path::new(&self.scenario)), None)
        } else {
            suites.find(&self.scenario).ok_or_else(|| {
                Trouble::Input(miette::miette!(
                    help = "rigor list shows the names; a file is named by its path",
                    "there is no scenario {}",
                    self.scenario
                ))
            })?
        };
        let mut outcomes = Vec::new();
        for scenario in file.load(&catalogue)? {
            if case.is_some() && case != scenario.case {
                continue;
            }
            let Some(history) = matching(&scenario, &histories) else { continue };
            let verdict = judge(&scenario, history);
            say(&told(&file.trial(scenario.case.as_deref()), &scenario, &verdict));
            outcomes.push(verdict.outcome);
        }
        if outcomes.is_empty() {
            return Err(Trouble::Input(miette::miette!(
                help = "its TrialStarted records say which trials it holds",
                "{} holds no history of {}",
                self.history.display(),
                self.scenario
            )));
        }
        Ok(Exit::of(&outcomes))
    }
}

/// The history of this scenario; a scenario that only observes is judged over the one history there is.
fn matching<'a>(scenario: &Scenario, histories: &'a [History]) -> Option<&'a History> {
    let named = histories.iter().find(|history| {
        trial_of(history)
            .is_some_and(|(name, case, _)| name == scenario.name && case == scenario.case.as_deref())
    });
    match (named, histories) {
        (None, [only]) if scenario.observe => Some(only),
        (named, _) => named,
    }
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
