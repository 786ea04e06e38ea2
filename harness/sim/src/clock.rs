//! Virtual time: the only time that anything in a simulated trial knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;

/// The wall clock at microsecond 0: 2026-01-01T00:00:00Z, as
/// [`rigor_trace::history::VIRTUAL_EPOCH`] promises to readers of a history. Seconds of Unix time.
const EPOCH: i64 = 1_767_225_600;

/// The trial's time in microseconds, moved by the event queue alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Time(Arc<AtomicU64>);

impl Time {
    /// Microseconds since the trial's start.
    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Moves on to `now`, never back.
    pub(crate) fn set(&self, now: u64) {
        self.0.fetch_max(now, Ordering::Relaxed);
    }

    /// The date.
    pub(crate) fn wall(&self) -> Timestamp {
        self.wall_off_by(0)
    }

    /// The date on a clock that is so many microseconds ahead, or behind.
    pub(crate) fn wall_off_by(&self, offset: i64) -> Timestamp {
        let micros = i64::try_from(self.now()).unwrap_or(i64::MAX).saturating_add(offset);
        EPOCH
            .checked_mul(1_000_000)
            .and_then(|epoch| epoch.checked_add(micros))
            .and_then(|micros| Timestamp::from_microsecond(micros).ok())
            .unwrap_or(Timestamp::MAX)
    }
}

/// The clocks of one process of the server: monotonic from its start, and the date.
#[derive(Debug)]
pub(crate) struct ProcessClock {
    time: Time,
    started: u64,
}

impl ProcessClock {
    /// The clock of a process that starts now.
    pub(crate) fn start(time: &Time) -> Self {
        Self { time: time.clone(), started: time.now() }
    }

    /// The trial's microsecond at which [`control_plane::Clock::mono`] reaches `mono`.
    pub(crate) fn instant_of(&self, mono: Duration) -> u64 {
        let micros = u64::try_from(mono.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
        self.started.saturating_add(micros)
    }
}

impl control_plane::Clock for ProcessClock {
    fn mono(&self) -> Duration {
        Duration::from_micros(self.time.now() - self.started)
    }

    fn wall(&self) -> Timestamp {
        self.time.wall()
    }
}

/// The Date header that hyper would write, kept for as long as its second lasts.
#[derive(Debug, Default)]
pub(crate) struct HttpDate {
    second: i64,
    text: String,
}

impl HttpDate {
    /// `wall` as HTTP writes it: `Thu, 01 Jan 2026 00:00:00 GMT`.
    pub(crate) fn at(&mut self, wall: Timestamp) -> &str {
        if self.second != wall.as_second() {
            self.second = wall.as_second();
            self.text = wall.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::{HttpDate, ProcessClock, Time};
    use control_plane::Clock;
    use std::time::Duration;

    #[test]
    fn the_date_begins_at_the_epoch_that_histories_promise() {
        let time = Time::default();
        assert_eq!(time.wall().to_string(), rigor_trace::history::VIRTUAL_EPOCH);
        assert_eq!(HttpDate::default().at(time.wall()), "Thu, 01 Jan 2026 00:00:00 GMT");
        time.set(86_400_000_000 + 1_500_000);
        assert_eq!(HttpDate::default().at(time.wall()), "Fri, 02 Jan 2026 00:00:01 GMT");
    }

    #[test]
    fn a_process_counts_from_its_own_start() {
        let time = Time::default();
        time.set(5_000_000);
        let clock = ProcessClock::start(&time);
        time.set(5_250_000);
        assert_eq!(clock.mono(), Duration::from_millis(250));
        assert_eq!(clock.instant_of(Duration::from_nanos(1_001)), 5_000_002);
    }
}
