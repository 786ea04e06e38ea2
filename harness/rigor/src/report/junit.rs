//! `junit.xml`: the run for tools that read JUnit's form. A suite an area, a test case a trial.

use crate::report::trial::{RunReport, TrialReport};
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use rigor_model::Outcome;
use std::collections::BTreeMap;
use std::time::Duration;

/// The text of `junit.xml`.
///
/// # Errors
/// Those of the XML writer.
pub fn junit(run: &RunReport) -> Result<String, SerializeError> {
    let mut areas: BTreeMap<&str, Vec<&TrialReport>> = BTreeMap::new();
    for trial in &run.trials {
        areas.entry(trial.area()).or_default().push(trial);
    }
    let mut report = Report::new(format!("rigor on {}", run.rig.name));
    report.set_time(total(run.trials.iter()));
    for (area, trials) in areas {
        let mut suite = TestSuite::new(area);
        suite.set_time(total(trials.iter().copied()));
        suite.add_test_cases(trials.into_iter().map(case));
        report.add_test_suite(suite);
    }
    report.to_string()
}

fn total<'a>(trials: impl Iterator<Item = &'a TrialReport>) -> Duration {
    trials.map(|trial| trial.length.as_duration()).sum()
}

fn case(trial: &TrialReport) -> TestCase {
    let mut status = match trial.outcome {
        Outcome::Pass => TestCaseStatus::success(),
        // What reads this form must not stop at what does not count.
        Outcome::Fail | Outcome::Undecided | Outcome::InfraError if trial.quarantined.is_some() => {
            TestCaseStatus::skipped()
        }
        Outcome::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Outcome::Undecided | Outcome::InfraError => TestCaseStatus::non_success(NonSuccessKind::Error),
        Outcome::Skipped | Outcome::KnownLimitation => TestCaseStatus::skipped(),
    };
    match trial.outcome {
        Outcome::Pass => {}
        Outcome::Fail
        | Outcome::Undecided
        | Outcome::InfraError
        | Outcome::Skipped
        | Outcome::KnownLimitation => {
            status.set_type(trial.outcome.name());
        }
    }
    let quarantined = trial.quarantined.as_deref();
    let first_line = trial.text.as_deref().and_then(|text| text.lines().next());
    if let Some(message) = quarantined.or(trial.reason.as_deref()).or(first_line) {
        status.set_message(message);
    }
    if let Some(text) = &trial.text {
        status.set_description(text.as_str());
    }
    let (class, name) = trial.name.split_once('/').unwrap_or(("", &trial.name));
    let mut case = TestCase::new(name, status);
    case.set_classname(class).set_time(trial.length.as_duration());
    for id in &trial.requirements {
        case.add_property(("requirement", id.as_str()));
    }
    case
}
