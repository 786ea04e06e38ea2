//! What holds in every scenario.

use std::fmt;

use rigor_model::{Outcome, Scenario};

use crate::history::History;
use crate::interval::Interval;

/// Something that a monitor saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The monitor's name.
    pub monitor: &'static str,
    /// What it saw.
    pub message: String,
    /// When.
    pub when: Interval,
    /// The record that shows it.
    pub record: usize,
    /// Whether rig or harness are to blame, not the system under test.
    pub infra: bool,
}

impl Violation {
    /// What it makes of the trial.
    pub fn outcome(&self) -> Outcome {
        if self.infra { Outcome::InfraError } else { Outcome::Fail }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "monitor {}: at {}: {}\n  evidence: events.jsonl, seq {}",
            self.monitor, self.when, self.message, self.record
        )
    }
}

/// All monitors over a trial.
pub fn all(scenario: &Scenario, history: &History) -> Vec<Violation> {
    let _ = (scenario, history);
    Vec::new()
}
