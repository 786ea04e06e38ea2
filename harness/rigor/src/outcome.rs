//! How a trial came out, and what that makes of a whole run.
//!
//! Six outcomes; a rig that failed is never a conformance failure and never a pass.

use serde::Serialize;
use std::fmt;

/// How one trial came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Everything expected was seen.
    Pass,
    /// Something expected did not hold.
    Fail,
    /// The rig lacks what the scenario needs.
    Skipped,
    /// It failed, as a reference says it does.
    KnownLimitation,
    /// What was seen does not settle it.
    Undecided,
    /// The rig failed.
    InfraError,
}

impl Outcome {
    /// All of them, in the order of summaries.
    pub const ALL: [Self; 6] =
        [Self::Pass, Self::Fail, Self::Skipped, Self::KnownLimitation, Self::Undecided, Self::InfraError];

    /// The word in reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skipped => "skipped",
            Self::KnownLimitation => "known-limitation",
            Self::Undecided => "undecided",
            Self::InfraError => "infra-error",
        }
    }

    /// Whether a test runner shows it green.
    #[must_use]
    pub fn green(self) -> bool {
        match self {
            Self::Pass | Self::Skipped | Self::KnownLimitation => true,
            Self::Fail | Self::Undecided | Self::InfraError => false,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Exit code of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// At least one pass, and nothing that is not green.
    Passed = 0,
    /// A conformance failure.
    Failed = 1,
    /// A file, flag or name that is wrong.
    BadInput = 2,
    /// The rig failed, or nothing passed.
    Infra = 3,
    /// Something stayed undecided.
    Undecided = 4,
}

impl Exit {
    /// What a run with these outcomes ends with: a failure goes before a failed rig before undecided.
    #[must_use]
    pub fn of(outcomes: &[Outcome]) -> Self {
        let any = |outcome| outcomes.contains(&outcome);
        if any(Outcome::Fail) {
            Self::Failed
        } else if any(Outcome::InfraError) {
            Self::Infra
        } else if any(Outcome::Undecided) {
            Self::Undecided
        } else if any(Outcome::Pass) {
            Self::Passed
        } else {
            Self::Infra
        }
    }

    /// The number for the operating system.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome::{Fail, InfraError, KnownLimitation, Pass, Skipped, Undecided};
    use super::*;

    #[test]
    fn exit_codes() {
        let cases: [(&[Outcome], u8); 12] = [
            (&[], 3),
            (&[Pass], 0),
            (&[Pass, Skipped, KnownLimitation], 0),
            (&[Skipped], 3),
            (&[KnownLimitation], 3),
            (&[Skipped, KnownLimitation], 3),
            (&[Pass, Fail], 1),
            (&[Fail, InfraError, Undecided], 1),
            (&[Pass, InfraError], 3),
            (&[InfraError, Undecided], 3),
            (&[Pass, Undecided], 4),
            (&[Undecided], 4),
        ];
        for (outcomes, code) in cases {
            assert_eq!(Exit::of(outcomes).code(), code, "{outcomes:?}");
        }
        assert_eq!(Exit::BadInput.code(), 2);
    }

    #[test]
    fn only_three_are_green() {
        let green: Vec<_> = Outcome::ALL.into_iter().filter(|outcome| outcome.green()).collect();
        assert_eq!(green, [Pass, Skipped, KnownLimitation]);
    }
}
