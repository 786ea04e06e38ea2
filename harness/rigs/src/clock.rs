//! The one module of the harness's rigs that reads the time or sleeps.
//!
//! A trial's instants are microseconds since its clock was started; they never go back.

use rigor_trace::history::Micros;
use std::time::{Duration, Instant, SystemTime};

/// A trial's monotonic clock, with the wall time of its zero.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: Instant,
    wall: SystemTime,
}

impl Clock {
    /// Starts at zero now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn start() -> Self {
        Self { zero: Instant::now(), wall: SystemTime::now() }
    }

    /// Time since the start.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn now(&self) -> Micros {
        let passed = Instant::now().saturating_duration_since(self.zero);
        Micros(u64::try_from(passed.as_micros()).unwrap_or(u64::MAX))
    }

    /// How long until `instant`; zero when it has passed.
    #[must_use]
    pub fn until(&self, instant: Micros) -> Duration {
        Duration::from_micros(instant.0.saturating_sub(self.now().0))
    }

    /// Wall time of the start in RFC 3339.
    #[must_use]
    pub fn wall(&self) -> String {
        jiff::Timestamp::try_from(self.wall).map(|stamp| stamp.to_string()).unwrap_or_default()
    }

    /// The day of the start, `YYYY-MM-DD` in UTC.
    #[must_use]
    pub fn day(&self) -> String {
        self.wall().chars().take("YYYY-MM-DD".len()).collect()
    }

    /// Wall time of the start in microseconds since 1970.
    #[must_use]
    pub fn wall_micros(&self) -> u64 {
        let since = self.wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    /// Wall time now, as Kubernetes writes it into leases.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn stamp(&self) -> String {
        let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
        now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
    }

    /// Blocks the calling thread.
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn sleep(length: Duration) {
        std::thread::sleep(length);
    }

    /// Lets the calling task wait.
    pub async fn pause(length: Duration) {
        tokio::time::sleep(length).await;
    }
}
