//! The table: requirement by scenario, by rig and by mutant.

use super::ledger::{Ledger, Mutant};
use super::proofs::{Proof, elsewhere, proofs};
use crate::plan::{applies, only_observes};
use crate::suite::{SuiteError, Suites};
use rigor_model::catalogue::{Feature, Requirement};
use rigor_model::rig::BoardProfile;
use rigor_model::{Constants, Profile, Rig, RigKind, Scenario};
use std::collections::BTreeMap;
use std::path::Path;

/// What shows the requirements.
#[derive(Debug, Clone)]
pub struct Coverage {
    /// The requirements in the order of their areas and ids.
    pub rows: Vec<Row>,
    /// What is known of mutants, if anything is.
    pub ledger: Option<Ledger>,
    /// Ids that tests name and the catalogue does not have.
    pub strangers: Vec<String>,
}

/// What shows one requirement.
#[derive(Debug, Clone)]
pub struct Row {
    /// The requirement.
    pub requirement: Requirement,
    /// The scenarios that cite it, by name.
    pub scenarios: Vec<ShownBy>,
    /// The tests of running programs that name it.
    pub tests: Vec<Proof>,
    /// Why nothing here can show it.
    pub elsewhere: Option<&'static str>,
}

/// A scenario that cites a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownBy {
    /// `area/scenario`.
    pub name: String,
    /// Its file.
    pub path: String,
    /// The first line of what it says of itself.
    pub says: Option<String>,
    /// The sorts of rigs that can run it, or a row of its table, by what they can offer.
    pub rigs: Vec<RigKind>,
    /// Ids of the mutants that turn it red.
    pub kills: Vec<String>,
}

/// Whether a trial (`area/scenario/case`) is of that scenario (`area/scenario`).
pub(super) fn is_trial_of(trial: &str, scenario: &str) -> bool {
    trial.strip_prefix(scenario).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// How much a profile asks for a requirement: core, extended, or not at all.
#[must_use]
pub fn level(requirement: &Requirement, profile: Profile) -> Option<Feature> {
    applies(requirement.profile, profile).then_some(requirement.feature)
}

impl Row {
    /// Whether a trial is of one of its scenarios.
    #[must_use]
    pub fn has_trial(&self, trial: &str) -> bool {
        self.scenarios.iter().any(|one| is_trial_of(trial, &one.name))
    }

    /// Ids of the mutants that turn a scenario of it red, each once.
    #[must_use]
    pub fn kills(&self) -> Vec<&str> {
        let mut kills: Vec<&str> =
            self.scenarios.iter().flat_map(|one| &one.kills).map(String::as_str).collect();
        kills.sort_unstable();
        kills.dedup();
        kills
    }

    /// The sorts of rigs that can run a scenario of it.
    #[must_use]
    pub fn rigs(&self) -> Vec<RigKind> {
        let runs = |kind: &RigKind| self.scenarios.iter().any(|one| one.rigs.contains(kind));
        RigKind::ALL.into_iter().filter(runs).collect()
    }
}

impl Coverage {
    /// Reads the table from the tree at `root`, whose suites are `suites`.
    ///
    /// # Errors
    /// The catalogue or a scenario cannot be read.
    pub fn read(root: &Path, suites: &Suites, ledger: Option<Ledger>) -> Result<Self, SuiteError> {
        let catalogue = suites.catalogue()?;
        let rigs = RigKind::ALL.map(utmost);
        let mut shown: BTreeMap<String, Vec<ShownBy>> = BTreeMap::new();
        for file in suites.files()? {
            let scenarios = file.load(&catalogue)?;
            let by = ShownBy {
                name: file.name(),
                path: file.path().display().to_string(),
                says: scenarios.iter().find_map(|scenario| first_line(scenario.description.as_deref()?)),
                rigs: rigs.iter().filter(|rig| runs(rig, &scenarios)).map(|rig| rig.kind).collect(),
                kills: killed(ledger.as_ref(), &file.name()),
            };
            for id in scenarios.first().map(|scenario| scenario.requirements.clone()).unwrap_or_default() {
                shown.entry(id).or_default().push(by.clone());
            }
        }
        let mut proofs = proofs(root);
        let mut rows: Vec<Row> = catalogue
            .iter()
            .map(|requirement| Row {
                requirement: requirement.clone(),
                scenarios: shown.remove(&requirement.id).unwrap_or_default(),
                tests: proofs.remove(&requirement.id).unwrap_or_default().into_iter().collect(),
                elsewhere: elsewhere(&requirement.id),
            })
            .collect();
        rows.sort_by(|one, other| one.requirement.area.cmp(&other.requirement.area));
        Ok(Self { rows, ledger, strangers: proofs.into_keys().collect() })
    }

    /// The row of that id.
    #[must_use]
    pub fn row(&self, id: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.requirement.id == id)
    }

    /// The mutants of the ledgers.
    pub fn mutants(&self) -> impl Iterator<Item = &Mutant> {
        self.ledger.iter().flat_map(|ledger| &ledger.mutants)
    }
}

/// A rig of that sort with everything that such a rig can offer.
fn utmost(kind: RigKind) -> Rig {
    Rig {
        name: kind.name().to_owned(),
        kind,
        machine: kind.name().to_owned(),
        boards: 26,
        constants: Constants::default(),
        capabilities: kind.possible(),
        absent: BTreeMap::new(),
        board: BoardProfile::default(),
        emulator: Vec::new(),
        equipment: rigor_model::equipment::Equipment::default(),
        limitations: None,
        external: None,
    }
}

fn runs(rig: &Rig, scenarios: &[Scenario]) -> bool {
    let lacks = |scenario: &Scenario| rig.lacks(scenario.boards.len(), &scenario.needs);
    scenarios.iter().any(|scenario| !only_observes(scenario) && lacks(scenario).is_none())
}

fn killed(ledger: Option<&Ledger>, scenario: &str) -> Vec<String> {
    let mutants = ledger.iter().flat_map(|ledger| &ledger.mutants);
    mutants.filter(|mutant| mutant.is_killed_by(scenario)).map(|mutant| mutant.id.clone()).collect()
}

fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}
