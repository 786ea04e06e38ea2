//! Addresses and durations, and the refusal of what is none.

use std::net::SocketAddr;
use std::time::Duration;

/// A flag value that cannot be used; the message says which and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(pub(crate) String);

impl BadValue {
    /// A refusal in these words.
    pub fn new(message: String) -> Self {
        Self(message)
    }
}

/// Reads `--listen`.
///
/// # Errors
/// [`BadValue`] for a name instead of an address, or a missing port.
pub fn address(text: &str) -> Result<SocketAddr, BadValue> {
    text.parse().map_err(|_| {
        BadValue(format!(
            "`{text}` is not an address with a port: write one such as 127.0.0.1:6443 or [::1]:6443"
        ))
    })
}

/// Reads a duration as Go writes them: `15s`, `500ms`, `1m30s`, `1.5h`. More than zero.
///
/// # Errors
/// [`BadValue`] for a missing or unknown unit, a sign, or nothing at all.
pub fn duration(text: &str) -> Result<Duration, BadValue> {
    let bad = || {
        BadValue(format!(
            "`{text}` is not a duration: write a number with a unit, such as 500ms, 15s or 1m30s"
        ))
    };
    let mut rest = text;
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
        let number: f64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let seconds = match &rest[..letters] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return Err(bad()),
        };
        rest = &rest[letters..];
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| bad())?;
        total = total.checked_add(part).ok_or_else(bad)?;
    }
    if total.is_zero() {
        return Err(BadValue(format!(
            "`{text}` is no time at all: write a duration above zero, such as 500ms or 15s"
        )));
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let check =
            |text: &str, millis: u64| assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        check("15s", 15_000);
        check("500ms", 500);
        check("1m30s", 90_000);
        check("1.5h", 5_400_000);
        check("0.25s", 250);
        check("1h0m5s", 3_605_000);
    }

    #[test]
    fn what_is_no_duration_is_refused_with_an_example() {
        for text in
            ["", "15", "s", "-5s", "1d", "5 s", "1..5s", "0s", "1e400s", "9999999999999999999h", "5s3"]
        {
            let message = duration(text).unwrap_err().to_string();
            assert!(message.contains("15s"), "{text}: {message}");
        }
    }

    #[test]
    fn addresses_have_a_number_and_a_port() {
        assert_eq!(address("127.0.0.1:0"), Ok(SocketAddr::from(([127, 0, 0, 1], 0))));
        assert!(address("[::1]:80").is_ok_and(|address| address.ip().is_loopback()));
        for text in ["localhost:80", "127.0.0.1", ":80", "127.0.0.1:99999"] {
            assert!(address(text).unwrap_err().to_string().contains("127.0.0.1:6443"), "{text}");
        }
    }
}
