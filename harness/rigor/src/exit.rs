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
    }
}
