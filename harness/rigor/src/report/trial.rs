//! A run and its trials as reports are made from them.

use rigor_model::faults::Tally;
use rigor_model::report::{LimitationReport, Margins, RigReport, ScenarioReport, SearchReport, StepReport};
use rigor_model::{Constant, Constants, FaultLevel, Outcome, Profile, duration};
use rigor_trace::{History, Micros};
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
    /// One line: why it was skipped, which limitation it is, what the rig failed at, why it cannot be decided.
    pub reason: Option<String>,
    /// Until when and why its outcome does not count, if it is quarantined and not green.
    pub quarantined: Option<String>,
    /// What was not as it must be first, and by which a failure is known again: `steps 4`, `monitor no panic`.
    pub broke: Option<String>,
    /// What would be a failure, had no fault been injected that may rightly have brought it about.
    pub excused: Vec<String>,
    /// The faults that were injected.
    pub faults: Tally,
    /// The faults that would have been, had the scenario not kept them away.
    pub withheld: Tally,
    /// The explanation of what is not green, whole.
    pub text: Option<String>,
    /// How long it took on the trial's own clock, virtual on the simulated rig.
    pub length: Micros,
    /// What earlier attempts failed at; only failures of the rig, and what it left undecided, are tried again.
    pub attempts: Vec<String>,
    /// Constants that the scenario wants otherwise.
    pub constants: BTreeMap<Constant, Duration>,
    /// Its steps, in order, as far as it came: which, how it came out, how far from the edges of its window.
    pub steps: Vec<(String, Outcome, Option<Margins>)>,
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
            quarantined: None,
            broke: None,
            excused: Vec::new(),
            faults: Tally::default(),
            withheld: Tally::default(),
            text: None,
            length: Micros::ZERO,
            attempts: Vec::new(),
            constants: BTreeMap::new(),
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

    /// Its part of the conformance report.
    #[must_use]
    pub fn summary(&self) -> ScenarioReport {
        let attempts = self.attempts.iter().map(|attempt| format!("an attempt failed: {attempt}"));
        let text = self.text.iter().filter(|_| self.reason.is_none()).cloned();
        let reasons: Vec<String> = self.reason.iter().cloned().chain(text).chain(attempts).collect();
        ScenarioReport {
            name: self.name.clone(),
            outcome: self.outcome,
            requirements: self.requirements.clone(),
            reason: (!reasons.is_empty()).then(|| reasons.join("\n")),
            quarantined: self.quarantined.clone(),
            excused: self.excused.clone(),
            injected: (self.faults.total() > 0).then(|| self.faults.to_string()),
            withheld: (self.withheld.total() > 0).then(|| self.withheld.to_string()),
            length_micros: self.length.0,
            constants: self
                .constants
                .iter()
                .map(|(constant, length)| (constant.name().to_owned(), duration::format(*length)))
                .collect(),
            steps: self
                .steps
                .iter()
                .map(|(step, outcome, margins)| StepReport {
                    step: step.clone(),
                    outcome: *outcome,
                    margins: *margins,
                })
                .collect(),
            evidence: self.evidence.iter().map(|_| format!("evidence/{}", self.name)).collect(),
        }
    }
}

/// A whole run.
#[derive(Debug, Clone)]
pub struct RunReport {
    /// RFC 3339 wall time of the begin; absent in virtual time.
    pub started: Option<String>,
    /// What ran.
    pub rig: RigReport,
    /// The rig's constants.
    pub constants: Constants,
    /// The seed of everything drawn.
    pub seed: u64,
    /// How bad the faults were that were injected.
    pub faults: FaultLevel,
    /// What a search over many seeds came to; none where each trial ran once.
    pub search: Option<SearchReport>,
    /// The profile that was chosen.
    pub profile: Profile,
    /// The trials, sorted by name.
    pub trials: Vec<TrialReport>,
    /// What came of the entries of known limitations and quarantine.
    pub limitations: Vec<LimitationReport>,
}

impl RunReport {
    /// The outcomes that count, in the trials' order: not those of quarantined trials.
    #[must_use]
    pub fn outcomes(&self) -> Vec<Outcome> {
        let counts = self.trials.iter().filter(|trial| trial.quarantined.is_none());
        counts.map(|trial| trial.outcome).collect()
    }

    /// Whether an entry of known limitations or quarantine says what is not true.
    #[must_use]
    pub fn has_stale_entries(&self) -> bool {
        self.limitations.iter().any(|entry| entry.state.is_stale())
    }
}
