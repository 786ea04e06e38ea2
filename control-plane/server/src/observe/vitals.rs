//! The signs of life that health checks read: when the controllers last moved, whether the store takes writes, whether the
//! process is ending.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The controllers' loop turns at least every second; a pass over a slow disk moves on with each write. Silence for so long
/// means that it stands.
const STALLED: Duration = Duration::from_secs(60);

/// Signs of life.
#[derive(Debug, Default)]
pub struct Vitals {
    /// Nanoseconds of the clock's `mono` at the last sign of the controllers.
    moved: AtomicU64,
    ending: AtomicBool,
    store: Mutex<Option<String>>,
}

impl Vitals {
    /// The controllers did something at `now`, on the clock's `mono`.
    pub fn moved(&self, now: Duration) {
        self.moved.store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long the controllers have not moved, when that is too long.
    pub fn stalled(&self, now: Duration) -> Option<Duration> {
        let silent = now.saturating_sub(Duration::from_nanos(self.moved.load(Ordering::Relaxed)));
        (silent > STALLED).then_some(silent)
    }

    /// The process was asked to end.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Whether the process was asked to end.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// The store took a write.
    pub fn store_works(&self) {
        let mut failure = self.failure();
        if failure.take().is_some() {
            tracing::info!("the store takes writes again");
        }
    }

    /// The store could not make a write, for this reason.
    pub fn store_failed(&self, why: &str) {
        let mut failure = self.failure();
        if failure.is_none() {
            tracing::error!(error = why, "the store cannot be written");
        }
        *failure = Some(why.to_owned());
    }

    /// Why the store's last write failed.
    pub fn store_failure(&self) -> Option<String> {
        self.failure().clone()
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_that_stand_still_are_noticed_after_a_minute() {
        let vitals = Vitals::default();
        let at = Duration::from_secs;
        vitals.moved(at(100));
        assert_eq!(vitals.stalled(at(160)), None);
        assert_eq!(vitals.stalled(at(161)), Some(at(61)));
        vitals.moved(at(161));
        assert_eq!(vitals.stalled(at(162)), None);
    }
}
