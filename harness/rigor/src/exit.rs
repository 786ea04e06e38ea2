//! What a run ends with, for shells and CI.

use rigor_model::Outcome;

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
    /// Nothing is wrong but an entry of known limitations or quarantine that is out of date.
    Stale = 5,
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

    /// The same, if entries of known limitations and quarantine are out of date: that is said only where nothing is worse.
    #[must_use]
    pub fn or_stale(self, stale: bool) -> Self {
        match self {
            Self::Passed if stale => Self::Stale,
            Self::Passed | Self::Failed | Self::BadInput | Self::Infra | Self::Undecided | Self::Stale => {
                self
            }
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
    use super::*;
    use rigor_model::Outcome::{Fail, InfraError, KnownLimitation, Pass, Skipped, Undecided};

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
        assert_eq!(Exit::Passed.or_stale(true).code(), 5);
        assert_eq!(Exit::Passed.or_stale(false).code(), 0);
        assert_eq!(Exit::Failed.or_stale(true).code(), 1);
    }
}
