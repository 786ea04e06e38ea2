//! A run and its trials as reports see them.

use crate::outcome::Outcome;
use rigor_model::Constants;
use rigor_trace::History;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// One finished (or skipped) trial.
#[derive(Debug, Clone)]
pub struct TrialReport {
    /// `area/scenario` or `area/scenario/case`.
    pub name: String,
    /// Requirement ids the scenario cites.
    pub requirements: Vec<String>,
    /// How it came out.
    pub outcome: Outcome,
    /// One line: why it was skipped, which limitation it is, what the rig failed at.
    pub reason: Option<String>,
    /// The explanation of what is not green, whole.
    pub text: Option<String>,
    /// How long it took on the trial's own clock, virtual on the simulated rig.
    pub passed: Duration,
    /// What earlier attempts failed at; only failures of the rig are tried again.
    pub attempts: Vec<String>,
    /// Constants in force, where the scenario overrides the rig's.
    pub constants: Option<Constants>,
    /// Its steps, in order, as far as it came.
    pub steps: Vec<StepReport>,
    /// What was recorded; empty where nothing ran.
    pub history: History,
    /// Folder with the evidence, where it was kept.
    pub evidence: Option<PathBuf>,
}

impl TrialReport {
    /// A trial of which nothing ran.
    #[must_use]
    pub fn unrun(
        name: impl Into<String>,
        requirements: Vec<String>,
        outcome: Outcome,
        reason: String,
    ) -> Self {
        Self {
            name: name.into(),
            requirements,
            outcome,
            reason: Some(reason),
            text: None,
            passed: Duration::ZERO,
            attempts: Vec::new(),
            constants: None,
            steps: Vec::new(),
            history: History::new(),
            evidence: None,
        }
    }

    /// The area: what stands before the first slash.
    #[must_use]
    pub fn area(&self) -> &str {
        self.name.split_once('/').map_or("", |(area, _)| area)
    }
}

/// One step of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    /// What was done or expected, as a sentence.
    pub sentence: String,
    /// How it came out.
    pub outcome: Outcome,
    /// For what is timed: how far from the edges of its window, with the uncertainty.
    pub margin: Option<String>,
}

/// What ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RigReport {
    /// The rig's name.
    pub name: String,
    /// `sim`, `host` or `qemu`.
    pub kind: String,
    /// Machine of the boards, such as `qemu-virt`.
    pub machine: String,
    /// First line of the emulator's `--version`.
    pub emulator: Option<String>,
    /// SHA-256 of the firmware image, in hex.
    pub firmware_sha256: Option<String>,
}

/// A whole run.
#[derive(Debug, Clone)]
pub struct RunReport {
    /// RFC 3339 wall time of the begin.
    pub started: String,
    /// What ran.
    pub rig: RigReport,
    /// The rig's constants.
    pub constants: Constants,
    /// The seed of everything drawn.
    pub seed: u64,
    /// Requirement profile that was chosen, if one was.
    pub profile: Option<String>,
    /// The trials, sorted by name.
    pub trials: Vec<TrialReport>,
}

impl RunReport {
    /// The outcomes, in the trials' order.
    #[must_use]
    pub fn outcomes(&self) -> Vec<Outcome> {
        self.trials.iter().map(|trial| trial.outcome).collect()
    }

    /// How many trials came out each way; every outcome is there.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<Outcome, usize> {
        let mut counts: BTreeMap<_, _> = Outcome::ALL.into_iter().map(|outcome| (outcome, 0)).collect();
        for trial in &self.trials {
            *counts.entry(trial.outcome).or_default() += 1;
        }
        counts
    }
}
