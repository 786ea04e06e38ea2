//! Whether a report is good enough: for a change (against a baseline), for a profile, for a release.
//!
//! Pure: a function of reports and the catalogue. Every refusal is a sentence that names the trial or the field and says
//! what to do.

mod against;
mod release;
#[cfg(test)]
mod tests;

pub use against::incomparable;

use crate::exit::Exit;
use crate::plan::applies;
use rigor_model::catalogue::{Catalogue, Feature};
use rigor_model::report::{Report, ScenarioReport};
use rigor_model::{Outcome, Profile};

/// What a report has to stand.
#[derive(Debug, Clone, Copy)]
pub struct Gate<'a> {
    /// What is required, and of whom.
    pub catalogue: &'a Catalogue,
    /// An earlier report that nothing may be worse than.
    pub baseline: Option<&'a Report>,
    /// The profile whose core requirements must each have a passing trial.
    pub require: Option<Profile>,
    /// Whether it is to stand for a release.
    pub release: bool,
}

/// What a refusal is about; it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// The implementation, or the report as a proof of it.
    Conformance,
    /// The rig, or nothing passed.
    Infra,
    /// What stayed undecided.
    Undecided,
    /// An entry of known limitations or quarantine that is out of date.
    Stale,
}

/// Why a report is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What it is about.
    pub sort: Sort,
    /// The trial or the field, what is wrong with it, and what to do.
    pub said: String,
}

impl Refusal {
    fn new(sort: Sort, what: impl AsRef<str>, remedy: &str) -> Self {
        Self { sort, said: format!("{}; {remedy}", what.as_ref()) }
    }
}

impl Gate<'_> {
    /// Why the report is refused; empty if it is accepted.
    #[must_use]
    pub fn refusals(&self, report: &Report) -> Vec<Refusal> {
        let mut refusals = outcomes(report);
        if let Some(baseline) = self.baseline {
            refusals.extend(against::regressions(report, baseline));
        }
        if let Some(profile) = self.require {
            refusals.extend(self.required(report, profile));
        }
        if self.release {
            refusals.extend(release::refusals(report));
        }
        refusals
    }

    /// The core requirements of a profile that no trial of the report passed for.
    fn required(&self, report: &Report, profile: Profile) -> Vec<Refusal> {
        let core =
            self.catalogue.iter().filter(|row| row.feature == Feature::Core && applies(row.profile, profile));
        let mut refusals = Vec::new();
        for row in core {
            let citing: Vec<&ScenarioReport> =
                report.scenarios.iter().filter(|trial| trial.requirements.contains(&row.id)).collect();
            if citing.iter().any(|trial| trial.outcome == Outcome::Pass) {
                continue;
            }
            let (what, remedy) = match citing.as_slice() {
                [] => (
                    "no trial of the report cites it".to_owned(),
                    "run the suites whole, or write a scenario that shows it",
                ),
                citing => {
                    let told: Vec<String> = citing
                        .iter()
                        .map(|trial| format!("{} {}", trial.name, trial.outcome.name()))
                        .collect();
                    (
                        format!("no trial of the report passed for it ({})", told.join(", ")),
                        "make one pass, on a rig that has what it needs",
                    )
                }
            };
            refusals.push(Refusal::new(
                Sort::Conformance,
                format!("{}, core for {}: {what}", row.id, profile.name()),
                remedy,
            ));
        }
        refusals
    }
}

/// What every gate refuses, as the run's own exit code does.
fn outcomes(report: &Report) -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = report
        .scenarios
        .iter()
        .filter(|trial| trial.quarantined.is_none())
        .filter_map(|trial| {
            let (sort, what, remedy) = match trial.outcome {
                Outcome::Pass | Outcome::Skipped | Outcome::KnownLimitation => return None,
                Outcome::Fail => (
                    Sort::Conformance,
                    "failed",
                    "mend it, or state it as a known limitation (docs/limitations.md)",
                ),
                Outcome::InfraError => (Sort::Infra, "was not tried: its rig failed", "run it again"),
                Outcome::Undecided => {
                    (Sort::Undecided, "stayed undecided", "run it again on a quieter machine")
                }
            };
            Some(Refusal::new(sort, format!("{} {what}{}", trial.name, because(trial)), remedy))
        })
        .collect();
    if refusals.is_empty() && !report.scenarios.iter().any(|trial| trial.outcome == Outcome::Pass) {
        refusals.push(Refusal::new(
            Sort::Infra,
            "scenarios: nothing passed",
            "choose trials that this rig can run",
        ));
    }
    for entry in report.limitations.iter().filter(|entry| entry.state.is_stale()) {
        refusals.push(Refusal::new(
            Sort::Stale,
            format!(
                "the limitation of {} (line {}) is out of date: {}",
                entry.about,
                entry.line,
                entry.state.name()
            ),
            "take the entry out of its file",
        ));
    }
    refusals
}

/// The first line of a trial's reason, in brackets.
fn because(trial: &ScenarioReport) -> String {
    let reason = trial.reason.as_deref().and_then(|reason| reason.lines().next());
    reason.map(|reason| format!(" ({reason})")).unwrap_or_default()
}

/// What a gate ends with, as a run does: a failure goes before a failed rig before undecided before stale.
#[must_use]
pub fn exit(refusals: &[Refusal]) -> Exit {
    let any = |sort| refusals.iter().any(|refusal| refusal.sort == sort);
    if any(Sort::Conformance) {
        Exit::Failed
    } else if any(Sort::Infra) {
        Exit::Infra
    } else if any(Sort::Undecided) {
        Exit::Undecided
    } else if any(Sort::Stale) {
        Exit::Stale
    } else {
        Exit::Passed
    }
}
