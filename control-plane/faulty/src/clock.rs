//! The one place of this program that reads the time.

use std::time::{Duration, Instant};

/// A clock that runs from its making.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// Starts at nothing.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the program's clock module")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// How long it has run.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Today, `YYYY-MM-DD`, UTC.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the program's clock module")]
pub fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}
