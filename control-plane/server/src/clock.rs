//! The only place that reads the time or sleeps. Everything else is told `now`, so the same code runs in virtual time.

use std::future::Future;
use std::time::{Duration, Instant};

/// Where the server gets its time from.
pub trait Clock: Send + Sync {
    /// Time since some fixed instant of this process; never goes back.
    fn mono(&self) -> Duration;

    /// The date, for what is written into objects.
    fn wall(&self) -> jiff::Timestamp;
}

/// The computer's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose [`Clock::mono`] starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Waits until [`Clock::mono`] is `due`.
    pub async fn sleep_until(&self, due: Duration) {
        tokio::time::sleep_until((self.start + due).into()).await;
    }
}

impl Clock for SystemClock {
    fn mono(&self) -> Duration {
        self.start.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    fn wall(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}

/// Lets some time pass before something is tried again.
pub async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// `work`'s result, or nothing when it takes longer than `limit`.
pub async fn within<F: Future>(limit: Duration, work: F) -> Option<F::Output> {
    tokio::time::timeout(limit, work).await.ok()
}
