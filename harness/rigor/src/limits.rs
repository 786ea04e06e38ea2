//! Known limitations and quarantine over a run's trials: what they change, and which entries are out of date.
//!
//! Pure but for [`load`] and [`Limits::of_today`]. Only a failure becomes a known limitation; a quarantined trial keeps its outcome and does not
//! bear on the exit code. An entry that says what is not true stops a release (see [`EntryState::is_stale`]).

use crate::report::TrialReport;
use crate::suite::{SuiteError, Suites};
use rigor_model::catalogue::Catalogue;
use rigor_model::limitations::{About, Entry, EntrySort, Known};
use rigor_model::report::{EntryState, LimitationReport};
use rigor_model::{Limitations, Outcome};
use rigor_rigs::clock::Clock;
use std::path::Path;

/// Reads a file of limitations against the suites there are.
///
/// # Errors
/// The file cannot be read or has mistakes.
pub fn load(path: &Path, suites: &Suites, catalogue: &Catalogue) -> Result<Limitations, SuiteError> {
    let shown = path.display().to_string();
    let source = std::fs::read_to_string(path).map_err(|error| SuiteError::Unreadable {
        path: shown.clone(),
        problem: error.to_string(),
        remedy: "name a file of kind Limitations with --limitations, or correct spec.limitations of the rig"
            .into(),
    })?;
    let cases = |name: &str| {
        let (file, case) = suites.find(name)?;
        let head = file.head().ok().filter(|_| case.is_none())?;
        Some(head.cases)
    };
    let scenarios =
        || suites.files().unwrap_or_default().iter().map(crate::suite::ScenarioFile::name).collect();
    let known = Known { catalogue, cases: &cases, scenarios: &scenarios };
    Ok(Limitations::parse(&shown, &source, &known)?)
}

/// What is known, and the day on which it is asked.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// The file.
    pub known: Limitations,
    /// `YYYY-MM-DD` in UTC.
    pub today: String,
}

impl Limits {
    /// What is known, asked today.
    #[must_use]
    pub fn of_today(known: Limitations) -> Self {
        Self { known, today: Clock::start().day() }
    }

    /// Marks a trial that comes under an entry.
    pub fn apply(&self, trial: &mut TrialReport) {
        let Some(entry) = self.known.entry(&trial.name, &trial.requirements, &self.today) else { return };
        match &entry.sort {
            EntrySort::KnownLimitation if trial.outcome == Outcome::Fail => {
                trial.outcome = Outcome::KnownLimitation;
                trial.reason = Some(format!("{} ({})", entry.reason, entry.reference));
            }
            EntrySort::Quarantine { until } if !trial.outcome.is_green() => {
                trial.quarantined =
                    Some(format!("quarantined until {until}: {} ({})", entry.reason, entry.reference));
            }
            EntrySort::KnownLimitation | EntrySort::Quarantine { .. } => {}
        }
    }

    /// What came of each entry. `whole` says that every trial there is was asked for.
    #[must_use]
    pub fn audit(&self, trials: &[TrialReport], whole: bool) -> Vec<LimitationReport> {
        self.known.entries.iter().map(|entry| self.audited(entry, trials, whole)).collect()
    }

    fn audited(&self, entry: &Entry, trials: &[TrialReport], whole: bool) -> LimitationReport {
        let about: Vec<&TrialReport> =
            trials.iter().filter(|trial| entry.about.is_about(&trial.name, &trial.requirements)).collect();
        let any = |outcome: Outcome| about.iter().any(|trial| trial.outcome == outcome);
        // Of a scenario's rows, or of the trials that cite a requirement, only some may have been asked for.
        let all_asked = whole
            || match &entry.about {
                About::Scenario { case: Some(_), .. } => true,
                About::Scenario { name, case: None } => about.iter().any(|trial| trial.name == *name),
                About::Requirement(_) => false,
            };
        let troubled = any(Outcome::Undecided) || any(Outcome::InfraError);
        let state = match &entry.sort {
            sort if sort.is_expired(&self.today) => EntryState::Expired,
            _ if about.is_empty() && whole => EntryState::MatchesNothing,
            EntrySort::KnownLimitation if any(Outcome::KnownLimitation) => EntryState::InForce,
            EntrySort::Quarantine { .. } if any(Outcome::Fail) || troubled => EntryState::InForce,
            // Its failures come under a known limitation already.
            EntrySort::Quarantine { .. } if any(Outcome::KnownLimitation) => EntryState::Unsettled,
            EntrySort::KnownLimitation if troubled || any(Outcome::Fail) => EntryState::Unsettled,
            EntrySort::KnownLimitation if any(Outcome::Pass) && all_asked => EntryState::PassedUnexpectedly,
            EntrySort::KnownLimitation | EntrySort::Quarantine { .. } if any(Outcome::Pass) => {
                EntryState::Passed
            }
            EntrySort::KnownLimitation | EntrySort::Quarantine { .. } => EntryState::NotRun,
        };
        LimitationReport {
            about: entry.about.to_string(),
            line: entry.line,
            until: match &entry.sort {
                EntrySort::KnownLimitation => None,
                EntrySort::Quarantine { until } => Some(until.clone()),
            },
            reference: entry.reference.clone(),
            reason: entry.reason.clone(),
            state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(about: &str, case: Option<&str>, until: Option<&str>) -> Entry {
        let about = match about.split_once('/') {
            Some(_) => About::Scenario { name: about.to_owned(), case: case.map(str::to_owned) },
            None => About::Requirement(about.to_owned()),
        };
        let sort = until
            .map_or(EntrySort::KnownLimitation, |until| EntrySort::Quarantine { until: until.to_owned() });
        Entry { about, reference: "tickets/7".to_owned(), reason: "it is slow".to_owned(), sort, line: 7 }
    }

    fn trial(name: &str, outcome: Outcome) -> TrialReport {
        TrialReport {
            reason: None,
            ..TrialReport::unrun(name, vec!["NODE-03".to_owned()], outcome, String::new())
        }
    }

    fn run(entry: Entry, outcomes: &[(&str, Outcome)], whole: bool) -> (Vec<TrialReport>, EntryState) {
        let known = Limitations { name: "mine".to_owned(), entries: vec![entry] };
        let limits = Limits { known, today: "2026-11-30".to_owned() };
        let mut trials: Vec<TrialReport> =
            outcomes.iter().map(|(name, outcome)| trial(name, *outcome)).collect();
        trials.iter_mut().for_each(|trial| limits.apply(trial));
        let state = limits.audit(&trials, whole)[0].state;
        (trials, state)
    }

    #[test]
    fn only_a_failure_becomes_a_known_limitation() {
        for (outcome, expected, state) in [
            (Outcome::Fail, Outcome::KnownLimitation, EntryState::InForce),
            (Outcome::Undecided, Outcome::Undecided, EntryState::Unsettled),
            (Outcome::InfraError, Outcome::InfraError, EntryState::Unsettled),
            (Outcome::Pass, Outcome::Pass, EntryState::PassedUnexpectedly),
            (Outcome::Skipped, Outcome::Skipped, EntryState::NotRun),
        ] {
            let (trials, found) = run(known("node/loss", None, None), &[("node/loss", outcome)], false);
            assert_eq!((trials[0].outcome, found), (expected, state), "{outcome:?}");
            assert_eq!(trials[0].quarantined, None);
        }
        let (trials, _) = run(known("node/loss", None, None), &[("node/loss", Outcome::Fail)], false);
        assert_eq!(trials[0].reason.as_deref(), Some("it is slow (tickets/7)"));
    }

    #[test]
    fn a_quarantined_trial_keeps_its_outcome_until_the_day_has_passed() {
        for (until, outcome, marked, state) in [
            ("2026-11-30", Outcome::Fail, true, EntryState::InForce),
            ("2026-11-30", Outcome::Undecided, true, EntryState::InForce),
            ("2026-11-30", Outcome::Pass, false, EntryState::Passed),
            ("2026-11-29", Outcome::Fail, false, EntryState::Expired),
            ("2026-11-29", Outcome::Pass, false, EntryState::Expired),
        ] {
            let (trials, found) =
                run(known("node/loss", None, Some(until)), &[("node/loss", outcome)], false);
            assert_eq!(trials[0].outcome, outcome);
            assert_eq!((trials[0].quarantined.is_some(), found), (marked, state), "{until} {outcome:?}");
        }
    }

    #[test]
    fn an_entry_is_out_of_date_only_where_all_of_its_trials_were_asked_for() {
        let state = |entry: Entry, outcomes: &[(&str, Outcome)], whole| run(entry, outcomes, whole).1;
        let rows = [("node/loss/short", Outcome::Pass), ("node/loss/long", Outcome::Pass)];
        assert_eq!(state(known("node/loss", None, None), &rows, false), EntryState::Passed);
        assert_eq!(state(known("node/loss", None, None), &rows, true), EntryState::PassedUnexpectedly);
        assert_eq!(
            state(known("node/loss", Some("long"), None), &rows, false),
            EntryState::PassedUnexpectedly
        );
        assert_eq!(state(known("NODE-03", None, None), &rows, false), EntryState::Passed);
        assert_eq!(state(known("NODE-03", None, None), &rows, true), EntryState::PassedUnexpectedly);
        assert_eq!(state(known("NODE-04", None, None), &rows, true), EntryState::MatchesNothing);
        assert_eq!(state(known("NODE-04", None, None), &rows, false), EntryState::NotRun);
        let one_fails = [("node/loss/short", Outcome::Fail), ("node/loss/long", Outcome::Pass)];
        assert_eq!(state(known("NODE-03", None, None), &one_fails, true), EntryState::InForce);
    }
}
