//! `report.yaml`: the conformance report, in the manner of the Gateway API's.
//!
//! It states the rig, the firmware, every constant and the slack in force, and each cited requirement with the worst
//! outcome of the scenarios that cite it.

use crate::outcome::Outcome;
use crate::report::trial::{RunReport, StepReport, TrialReport};
use rigor_model::Constants;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Conformance<'a> {
    api_version: &'static str,
    kind: &'static str,
    date: &'a str,
    rig: Rig<'a>,
    constants: &'a Constants,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'a str>,
    summary: BTreeMap<&'static str, usize>,
    requirements: BTreeMap<&'a str, Outcome>,
    trials: Vec<Trial<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rig<'a> {
    name: &'a str,
    kind: &'a str,
    machine: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    emulator: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    firmware_sha256: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Trial<'a> {
    name: &'a str,
    outcome: Outcome,
    seconds: String,
    requirements: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    constants: Option<&'a Constants>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    failed_attempts: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Step<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<String>,
}

#[derive(Serialize)]
struct Step<'a> {
    step: &'a str,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    margin: Option<&'a str>,
}

/// The text of `report.yaml`.
///
/// # Errors
/// Those of the YAML writer.
pub fn conformance(run: &RunReport) -> Result<String, serde_saphyr::ser_error::Error> {
    serde_saphyr::to_string(&Conformance {
        api_version: "rigor.dev/v1alpha1",
        kind: "ConformanceReport",
        date: &run.started,
        rig: Rig {
            name: &run.rig.name,
            kind: &run.rig.kind,
            machine: &run.rig.machine,
            emulator: run.rig.emulator.as_deref(),
            firmware_sha256: run.rig.firmware_sha256.as_deref(),
        },
        constants: &run.constants,
        seed: run.seed,
        profile: run.profile.as_deref(),
        summary: run.counts().into_iter().map(|(outcome, count)| (outcome.word(), count)).collect(),
        requirements: requirements(&run.trials),
        trials: run.trials.iter().map(trial).collect(),
    })
}

fn trial(trial: &TrialReport) -> Trial<'_> {
    Trial {
        name: &trial.name,
        outcome: trial.outcome,
        seconds: format!("{:.3}", trial.passed.as_secs_f64()),
        requirements: &trial.requirements,
        reason: trial.reason.as_deref(),
        constants: trial.constants.as_ref(),
        failed_attempts: &trial.attempts,
        steps: trial.steps.iter().map(step).collect(),
        text: trial.text.as_deref(),
        evidence: trial.evidence.as_ref().map(|path| path.display().to_string()),
    }
}

fn step(step: &StepReport) -> Step<'_> {
    Step { step: &step.sentence, outcome: step.outcome, margin: step.margin.as_deref() }
}

/// Each requirement's worst outcome: a failure hides nothing, and a pass is one only if nothing else came out.
fn requirements(trials: &[TrialReport]) -> BTreeMap<&str, Outcome> {
    let mut worst = BTreeMap::new();
    for trial in trials {
        for id in &trial.requirements {
            let entry = worst.entry(id.as_str()).or_insert(trial.outcome);
            if severity(trial.outcome) > severity(*entry) {
                *entry = trial.outcome;
            }
        }
    }
    worst
}

/// A skipped trial says nothing, so that any other outcome goes before it.
fn severity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Skipped => 0,
        Outcome::Pass => 1,
        Outcome::KnownLimitation => 2,
        Outcome::InfraError => 3,
        Outcome::Undecided => 4,
        Outcome::Fail => 5,
    }
}
