//! Durations as people write them: a number with a unit, never a bare number.
//!
//! `15s`, `500ms`, `1m30s`, `2h`. Grains below a microsecond are refused, because the history counts
//! in microseconds. The same text form is used in scenarios, rig files, histories and reports.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Digits without a unit.
    #[error("a duration needs a unit; `{text}` is a bare number")]
    BareNumber {
        /// What was written.
        text: String,
    },
    /// A unit that does not exist.
    #[error("`{unit}` is no unit of time; write h, m, s, ms or us")]
    UnknownUnit {
        /// What stood where a unit belongs.
        unit: String,
    },
    /// No digits where a number belongs.
    #[error("`{text}` is no duration; write for example 15s, 500ms or 1m30s")]
    NoNumber {
        /// What was written.
        text: String,
    },
    /// More than fits, or finer than a microsecond.
    #[error("`{text}` is out of range; durations go from 1us to 10000h")]
    OutOfRange {
        /// What was written.
        text: String,
    },
}

/// The longest duration that is accepted.
const MAX: Duration = Duration::from_secs(10_000 * 3600);

/// Reads a duration such as `15s`, `500ms`, `1m30s` or `1.5s`. `0s` is allowed.
///
/// # Errors
/// [`DurationError`] when a unit is missing or unknown, or the length is out of range.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(DurationError::NoNumber { text: text.to_owned() });
    }
    let mut total = 0_u64;
    let mut rest = trimmed;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        if number.is_empty() || number.starts_with('.') || number.ends_with('.') {
            return Err(DurationError::NoNumber { text: trimmed.to_owned() });
        }
        let unit_len = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_len);
        let micros = match unit {
            "" => return Err(DurationError::BareNumber { text: trimmed.to_owned() }),
            "h" => 3_600_000_000,
            "m" => 60_000_000,
            "s" => 1_000_000,
            "ms" => 1_000,
            "us" | "µs" => 1,
            other => return Err(DurationError::UnknownUnit { unit: other.to_owned() }),
        };
        let part =
            scaled(number, micros).ok_or_else(|| DurationError::OutOfRange { text: trimmed.to_owned() })?;
        total =
            total.checked_add(part).ok_or_else(|| DurationError::OutOfRange { text: trimmed.to_owned() })?;
        rest = next;
    }
    let length = Duration::from_micros(total);
    if length > MAX {
        return Err(DurationError::OutOfRange { text: trimmed.to_owned() });
    }
    Ok(length)
}

/// What a unit of time is in ours, as people and other programs write it: how many of which.
pub(crate) fn unit_of(text: &str) -> Option<(u64, &'static str)> {
    Some(match text.to_lowercase().as_str() {
        "w" | "wk" | "week" | "weeks" => (7 * 24, "h"),
        "d" | "day" | "days" => (24, "h"),
        "h" | "hr" | "hrs" | "hour" | "hours" => (1, "h"),
        "m" | "min" | "mins" | "minute" | "minutes" => (1, "m"),
        "s" | "sec" | "secs" | "second" | "seconds" => (1, "s"),
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => (1, "ms"),
        "us" | "µs" | "usec" | "micros" | "microsecond" | "microseconds" => (1, "us"),
        _ => return None,
    })
}

/// `number` (digits with at most one point) times `unit`, exact, or nothing.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut micros = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let mut grain = unit;
    for digit in fraction.chars() {
        let digit = u64::from(digit.to_digit(10)?);
        if !grain.is_multiple_of(10) && digit != 0 {
            return None;
        }
        grain /= 10;
        micros = micros.checked_add(digit.checked_mul(grain)?)?;
    }
    Some(micros)
}

/// Writes a duration so that [`parse`] reads it back: `15s`, `1m30s`, `500ms`, `0s`.
pub fn format(length: Duration) -> String {
    Written(length).to_string()
}

/// Shows a duration in its text form.
struct Written(Duration);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut micros = self.0.as_micros();
        if micros == 0 {
            return f.write_str("0s");
        }
        for (unit, grain) in
            [("h", 3_600_000_000_u128), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)]
        {
            let count = micros / grain;
            if count > 0 {
                write!(f, "{count}{unit}")?;
                micros -= count * grain;
            }
        }
        Ok(())
    }
}

/// For `#[serde(with = "rigor_model::duration")]`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    format(*length).serialize(serializer)
}

/// For `#[serde(with = "rigor_model::duration")]`.
///
/// # Errors
/// When the text is no duration.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, micros: u64) {
        assert_eq!(parse(text), Ok(Duration::from_micros(micros)), "{text}");
        assert_eq!(parse(&format(Duration::from_micros(micros))), Ok(Duration::from_micros(micros)));
    }

    #[test]
    fn durations_are_read_exactly() {
        check("15s", 15_000_000);
        check("500ms", 500_000);
        check("1m30s", 90_000_000);
        check("1.5s", 1_500_000);
        check("0.05s", 50_000);
        check("2h", 7_200_000_000);
        check("0s", 0);
        check("7us", 7);
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        let refused = |text: &str| parse(text).expect_err(text).to_string();
        assert_eq!(refused("5"), "a duration needs a unit; `5` is a bare number");
        assert_eq!(refused("5 s"), "` s` is no unit of time; write h, m, s, ms or us");
        assert_eq!(refused("5d"), "`d` is no unit of time; write h, m, s, ms or us");
        assert_eq!(refused("fast"), "`fast` is no duration; write for example 15s, 500ms or 1m30s");
        assert_eq!(refused("-1s"), "`-1s` is no duration; write for example 15s, 500ms or 1m30s");
        assert_eq!(refused("0.5us"), "`0.5us` is out of range; durations go from 1us to 10000h");
        assert_eq!(refused("99999999h"), "`99999999h` is out of range; durations go from 1us to 10000h");
    }
}
