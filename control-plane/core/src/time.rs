//! The two clocks that every decision is told, and stamps in whole seconds.
//!
//! Nothing here reads a clock. Delays inside one process are counted on `mono`; `wall` makes stamps and is the
//! fallback after a restart. Kubernetes' stamps (`timeAdded`, `lastTransitionTime`) cut the fraction of a second
//! off, so a stamp `s` says that the true instant lay in `[s, s + 1 s)`; see [`crate::snapshot::Snapshot::since`].

use std::time::Duration;

use jiff::Timestamp;

/// The present, as the binary's clock module (or the simulator) tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Time since the process started; never goes back.
    pub mono: Duration,
    /// Time of day; may step.
    pub wall: Timestamp,
}

impl Now {
    /// `wall` as Kubernetes writes a `metav1.Time`: UTC, whole seconds, the fraction cut off.
    #[must_use]
    pub fn stamp(&self) -> String {
        stamp(self.wall)
    }

    /// The instant on the monotonic clock that lies `wall_instant - self.wall` from now; clamped at zero.
    #[must_use]
    pub fn mono_of(&self, wall_instant: Timestamp) -> Duration {
        let ahead = wall_instant.as_nanosecond() - self.wall.as_nanosecond();
        let step = nanos(ahead.unsigned_abs());
        if ahead >= 0 { self.mono.saturating_add(step) } else { self.mono.saturating_sub(step) }
    }
}

/// `instant` in whole seconds (`2026-11-29T12:00:00Z`), the fraction cut off.
#[must_use]
pub fn stamp(instant: Timestamp) -> String {
    floor(instant).to_string()
}

/// `instant` in microseconds (`2026-11-29T12:00:00.123456Z`), as a `metav1.MicroTime`.
#[must_use]
pub fn micro_stamp(instant: Timestamp) -> String {
    let micros = instant.as_microsecond().rem_euclid(1_000_000);
    let whole = floor(instant).to_string();
    format!("{}.{micros:06}Z", whole.trim_end_matches('Z'))
}

/// Reads a stamp of either kind; `None` for anything that is not RFC 3339.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// `instant` without its fraction of a second.
#[must_use]
pub fn floor(instant: Timestamp) -> Timestamp {
    let seconds = instant.as_nanosecond().div_euclid(1_000_000_000);
    i64::try_from(seconds).ok().and_then(|s| Timestamp::from_second(s).ok()).unwrap_or(instant)
}

/// `a - b` where `a` is later, else zero.
#[must_use]
pub fn elapsed(a: Timestamp, b: Timestamp) -> Duration {
    nanos(u128::try_from(a.as_nanosecond() - b.as_nanosecond()).unwrap_or(0))
}

fn nanos(n: u128) -> Duration {
    let seconds = u64::try_from(n / 1_000_000_000).unwrap_or(u64::MAX);
    let rest = u32::try_from(n % 1_000_000_000).unwrap_or(0);
    Duration::new(seconds, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn stamps_cut_the_fraction_off() {
        for (instant, whole, micro) in [
            ("2026-11-29T12:00:00Z", "2026-11-29T12:00:00Z", "2026-11-29T12:00:00.000000Z"),
            ("2026-11-29T12:00:00.999999999Z", "2026-11-29T12:00:00Z", "2026-11-29T12:00:00.999999Z"),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.500000Z"),
        ] {
            assert_eq!(stamp(at(instant)), whole);
            assert_eq!(micro_stamp(at(instant)), micro);
        }
        assert_eq!(parse("yesterday"), None);
    }

    #[test]
    fn wall_instants_translate_to_the_monotonic_clock() {
        let now = Now { mono: Duration::from_secs(10), wall: at("2026-11-29T12:00:00Z") };
        assert_eq!(now.mono_of(at("2026-11-29T12:00:01.5Z")), Duration::from_millis(11_500));
        assert_eq!(now.mono_of(at("2026-11-29T11:59:58Z")), Duration::from_secs(8));
        assert_eq!(now.mono_of(at("2026-11-29T11:00:00Z")), Duration::ZERO);
        assert_eq!(elapsed(at("2026-11-29T12:00:00Z"), at("2026-11-29T12:00:01Z")), Duration::ZERO);
    }
}
