//! What is worse than in an earlier report.

use super::{Refusal, Sort, because};
use rigor_model::Outcome;
use rigor_model::catalogue::Feature;
use rigor_model::report::Report;

/// Each trial and requirement that is worse: passed and is not green, was there and is missing, is skipped for the first
/// time.
pub(super) fn regressions(report: &Report, baseline: &Report) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut regression = |what: String, remedy| {
        refusals.push(Refusal::new(Sort::Conformance, format!("regression: {what}"), remedy));
    };
    for before in &baseline.scenarios {
        let Some(now) = report.scenarios.iter().find(|trial| trial.name == before.name) else {
            regression(
                format!(
                    "{} is in the baseline ({}) and not in the report",
                    before.name,
                    before.outcome.name()
                ),
                "run it, too; if it is gone on purpose, take a new baseline",
            );
            continue;
        };
        if before.outcome == Outcome::Pass && !now.outcome.is_green() {
            regression(
                format!(
                    "{} passed in the baseline and is {} now{}",
                    now.name,
                    now.outcome.name(),
                    because(now)
                ),
                "mend what has changed since",
            );
        }
    }
    let skipped = |row: &&rigor_model::report::RequirementReport| {
        row.feature == Feature::Core && row.outcome == Outcome::Skipped
    };
    for row in report.requirements.iter().filter(skipped) {
        let before = baseline.requirements.iter().find(|before| before.id == row.id);
        if before.is_none_or(|before| before.outcome != Outcome::Skipped) {
            regression(
                format!(
                    "{} is core and every trial of it is skipped now ({}), which was not so in the baseline",
                    row.id,
                    row.scenarios.join(", ")
                ),
                "run on a rig that has what they need: each trial's reason in report.yaml says what is lacking",
            );
        }
    }
    refusals
}

/// Why two reports cannot be compared, if they cannot.
#[must_use]
pub fn incomparable(report: &Report, baseline: &Report) -> Option<String> {
    (report.rig.kind != baseline.rig.kind).then(|| {
        format!(
            "the baseline is of a rig of kind {} ({}) and the report of one of kind {} ({})",
            baseline.rig.kind.name(),
            baseline.rig.name,
            report.rig.kind.name(),
            report.rig.name
        )
    })
}
