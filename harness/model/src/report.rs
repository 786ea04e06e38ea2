//! Reports: what a run was made of, and what came of each scenario and each requirement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::catalogue::{Catalogue, Feature, Profile};
use crate::constants::Constants;
use crate::faults::{FaultLevel, FaultName};
use crate::rig::RigKind;

/// What came of a scenario or a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As it must be.
    Pass,
    /// The rig lacks something.
    Skipped,
    /// Not as it must be, and known to be so, with a reference.
    KnownLimitation,
    /// What was recorded does not settle it.
    Undecided,
    /// Rig or harness failed.
    InfraError,
    /// Not as it must be.
    Fail,
}

impl Outcome {
    /// Every outcome, the worse the later.
    pub const ALL: [Outcome; 6] = [
        Outcome::Pass,
        Outcome::Skipped,
        Outcome::KnownLimitation,
        Outcome::Undecided,
        Outcome::InfraError,
        Outcome::Fail,
    ];

    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Skipped => "skipped",
            Outcome::KnownLimitation => "known-limitation",
            Outcome::Undecided => "undecided",
            Outcome::InfraError => "infra-error",
            Outcome::Fail => "fail",
        }
    }

    /// Whether a test runner may call it green.
    pub fn is_green(self) -> bool {
        match self {
            Outcome::Pass | Outcome::Skipped | Outcome::KnownLimitation => true,
            Outcome::Undecided | Outcome::InfraError | Outcome::Fail => false,
        }
    }
}

/// How far inside its window something was. Microseconds; negative: outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Margins {
    /// From the earliest allowed instant to the thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_micros: Option<i64>,
    /// From the thing to the latest allowed instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_micros: Option<i64>,
    /// How uncertain both are.
    pub uncertainty_micros: u64,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// `rigor.dev/v1alpha1`.
    pub api_version: String,
    /// `ConformanceReport`.
    pub kind: String,
    /// When it began, RFC 3339; absent in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The profile that was chosen; absent in reports that are older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The seed of everything drawn.
    pub seed: u64,
    /// How bad the faults were that were injected.
    #[serde(default, skip_serializing_if = "FaultLevel::is_none")]
    pub faults: FaultLevel,
    /// What a search over many seeds came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchReport>,
    /// What it ran on.
    pub rig: RigReport,
    /// Every constant in force.
    pub constants: Constants,
    /// How many scenarios came out how.
    pub summary: BTreeMap<String, usize>,
    /// Every trial, by name.
    pub scenarios: Vec<ScenarioReport>,
    /// Every requirement that a trial cites, by id.
    pub requirements: Vec<RequirementReport>,
    /// Ids of core requirements of the profile that no trial cites.
    pub not_shown: Vec<String>,
    /// What came of the entries of known limitations and quarantine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limitations: Vec<LimitationReport>,
}

/// What came of an entry of known limitations and quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitationReport {
    /// `area/scenario`, `area/scenario/case`, `requirement NODE-07`.
    pub about: String,
    /// Where it stands in its file.
    pub line: usize,
    /// The last day of a quarantine; a known limitation has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Where more is said.
    pub reference: String,
    /// Why.
    pub reason: String,
    /// What came of it.
    pub state: EntryState,
}

/// What came of an entry of known limitations and quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryState {
    /// A trial came out as it says.
    InForce,
    /// Its trials passed, and nothing is wrong with that.
    Passed,
    /// It says that they fail, and they passed.
    PassedUnexpectedly,
    /// Its day has passed.
    Expired,
    /// No trial is like that.
    MatchesNothing,
    /// They neither passed nor failed.
    Unsettled,
    /// None of its trials ran.
    NotRun,
}

impl EntryState {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            EntryState::InForce => "in-force",
            EntryState::Passed => "passed",
            EntryState::PassedUnexpectedly => "passed-unexpectedly",
            EntryState::Expired => "expired",
            EntryState::MatchesNothing => "matches-nothing",
            EntryState::Unsettled => "unsettled",
            EntryState::NotRun => "not-run",
        }
    }

    /// Whether the entry says what is not true, so that its file is to be changed.
    pub fn is_stale(self) -> bool {
        match self {
            EntryState::PassedUnexpectedly | EntryState::Expired | EntryState::MatchesNothing => true,
            EntryState::InForce | EntryState::Passed | EntryState::Unsettled | EntryState::NotRun => false,
        }
    }
}

/// What a search over many seeds came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchReport {
    /// How many seeds each trial was tried with, from the run's seed on.
    pub seeds: u32,
    /// How many trials that makes, without those that were left out after a failure.
    pub runs: u64,
    /// How long they took together, in microseconds of the rig's time.
    pub length_micros: u64,
    /// The faults that were injected, in words.
    pub injected: String,
    /// The faults, in words, that would have struck had their scenarios not kept them away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
    /// The trials that keep faults away, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withholding: Vec<Withholding>,
    /// How many expectations were excused because of faults in their windows.
    pub excused: u64,
    /// What failed, with its seed, in the order of names and seeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

/// A trial that keeps faults away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Withholding {
    /// The trial's name.
    pub trial: String,
    /// The kinds of faults that do not strike in it.
    pub without: Vec<FaultName>,
    /// The scenario's own words why.
    pub because: String,
    /// How many would have struck, in words.
    pub withheld: String,
}

/// What a run ran on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RigReport {
    /// The rig's name.
    pub name: String,
    /// Its sort.
    pub kind: RigKind,
    /// The machine its boards are.
    pub machine: String,
    /// The emulator's own words about its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<String>,
    /// SHA-256 of the firmware image, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware_sha256: Option<String>,
    /// What a control plane that was there already says of its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<String>,
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScenarioReport {
    /// The trial's name: `NAME` or `NAME/CASE`.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Ids of requirements.
    pub requirements: Vec<String>,
    /// Why, where it is not a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Until when and why its outcome does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
    /// What would be a failure, had no fault been injected that may rightly have brought it about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excused: Vec<String>,
    /// Faults, in words, that were injected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injected: Option<String>,
    /// Faults, in words, that would have struck had the scenario not kept them away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
    /// How long it took, in microseconds of the rig's time.
    pub length_micros: u64,
    /// Constants that differ from the rig's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, String>,
    /// Its steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepReport>,
    /// Files with evidence, relative to the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepReport {
    /// `steps 3`, `setup 1`.
    pub step: String,
    /// What came of it.
    pub outcome: Outcome,
    /// How far inside its window it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margins: Option<Margins>,
}

/// What came of a requirement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequirementReport {
    /// Its id.
    pub id: String,
    /// Whose behaviour it is.
    pub profile: Profile,
    /// Whether core conformance needs it.
    pub feature: Feature,
    /// The worst outcome of the trials that cite it; skipped only if all of them were.
    pub outcome: Outcome,
    /// The trials that cite it.
    pub scenarios: Vec<String>,
}

/// Rolls trials up by requirement: the worst outcome counts, and a skipped trial only where no other ran.
pub fn roll_up(catalogue: &Catalogue, scenarios: &[ScenarioReport]) -> Vec<RequirementReport> {
    catalogue
        .iter()
        .filter_map(|requirement| {
            let citing: Vec<&ScenarioReport> =
                scenarios.iter().filter(|scenario| scenario.requirements.contains(&requirement.id)).collect();
            let outcome = citing
                .iter()
                .map(|scenario| scenario.outcome)
                .filter(|outcome| *outcome != Outcome::Skipped)
                .max()
                .or_else(|| citing.first().map(|_| Outcome::Skipped))?;
            Some(RequirementReport {
                id: requirement.id.clone(),
                profile: requirement.profile,
                feature: requirement.feature,
                outcome,
                scenarios: citing.iter().map(|scenario| scenario.name.clone()).collect(),
            })
        })
        .collect()
}

/// How many trials came out how, by the outcome's word; every outcome is there.
pub fn summarise(scenarios: &[ScenarioReport]) -> BTreeMap<String, usize> {
    Outcome::ALL
        .into_iter()
        .map(|outcome| {
            (
                outcome.name().to_owned(),
                scenarios.iter().filter(|scenario| scenario.outcome == outcome).count(),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(name: &str, outcome: Outcome) -> ScenarioReport {
        ScenarioReport {
            name: name.to_owned(),
            outcome,
            requirements: vec!["NODE-03".to_owned()],
            reason: None,
            quarantined: None,
            excused: Vec::new(),
            injected: None,
            withheld: None,
            length_micros: 0,
            constants: BTreeMap::new(),
            steps: Vec::new(),
            evidence: Vec::new(),
        }
    }

    #[test]
    fn the_worst_outcome_counts_and_skipped_only_alone() {
        let source = "version: 2\nareas: {node: [{id: NODE-03, profile: kube32, must: one}, {id: NODE-04, profile: kube32, must: two}]}\n";
        let catalogue = Catalogue::parse("c.yaml", source).expect("a catalogue");
        let check = |outcomes: &[Outcome], expected: Outcome| {
            let trials: Vec<ScenarioReport> = outcomes
                .iter()
                .enumerate()
                .map(|(index, outcome)| trial(&format!("t{index}"), *outcome))
                .collect();
            let rolled = roll_up(&catalogue, &trials);
            assert_eq!(rolled.len(), 1, "NODE-04 is cited by nobody");
            assert_eq!(rolled[0].outcome, expected, "{outcomes:?}");
            assert_eq!(summarise(&trials).values().sum::<usize>(), trials.len());
        };
        check(&[Outcome::Pass, Outcome::Skipped], Outcome::Pass);
        check(&[Outcome::Skipped, Outcome::Skipped], Outcome::Skipped);
        check(&[Outcome::Pass, Outcome::Undecided], Outcome::Undecided);
        check(&[Outcome::Fail, Outcome::InfraError], Outcome::Fail);
        check(&[Outcome::KnownLimitation, Outcome::Pass], Outcome::KnownLimitation);
    }
}
