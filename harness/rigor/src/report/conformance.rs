//! `report.yaml`: the conformance report, in the manner of the Gateway API's.
//!
//! It states the rig, the firmware, every constant and the slack in force, each cited requirement with the worst
//! outcome of the scenarios that cite it, and the core requirements of the profile that nothing cites.

use crate::plan::applies;
use crate::report::trial::RunReport;
use rigor_model::catalogue::{Catalogue, Feature};
use rigor_model::report::{Report, ScenarioReport, roll_up, summarise};
use rigor_model::scenario::API_VERSION;

/// The conformance report of a run.
#[must_use]
pub fn conformance(run: &RunReport, catalogue: &Catalogue) -> Report {
    let scenarios: Vec<ScenarioReport> = run.trials.iter().map(super::TrialReport::summary).collect();
    let requirements = roll_up(catalogue, &scenarios);
    let not_shown = catalogue
        .iter()
        .filter(|requirement| {
            requirement.feature == Feature::Core && applies(requirement.profile, run.profile)
        })
        .filter(|requirement| requirements.iter().all(|shown| shown.id != requirement.id))
        .map(|requirement| requirement.id.clone())
        .collect();
    Report {
        api_version: API_VERSION.to_owned(),
        kind: "ConformanceReport".to_owned(),
        date: run.started.clone(),
        profile: Some(run.profile),
        seed: run.seed,
        faults: run.faults,
        search: run.search.clone(),
        rig: run.rig.clone(),
        constants: run.constants,
        summary: summarise(&scenarios),
        scenarios,
        requirements,
        not_shown,
        limitations: run.limitations.clone(),
    }
}
