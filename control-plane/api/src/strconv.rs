//! Numbers and durations of query parameters, read as Go reads them and refused in its words.

use std::num::{IntErrorKind, ParseIntError};

use crate::status::quote;

/// The longest duration that Go knows, in nanoseconds.
const LONGEST: f64 = 9_223_372_036_854_775_807.0;

/// A signed number.
///
/// # Errors
/// What Go's `strconv.ParseInt` says of it.
pub fn parse_int(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error| refusal("ParseInt", text, &error))
}

/// A number without a sign.
///
/// # Errors
/// What Go's `strconv.ParseUint` says of it.
pub fn parse_uint(text: &str) -> Result<u64, String> {
    // Rust takes a plus here, Go does not.
    let digits = if text.starts_with('+') { "+" } else { text };
    digits.parse().map_err(|error| refusal("ParseUint", text, &error))
}

fn refusal(function: &str, text: &str, error: &ParseIntError) -> String {
    let why = match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{function}: parsing {}: {why}", quote(text))
}

/// Holds a duration such as `1m30s` or `-1.5h` against Go's grammar.
///
/// # Errors
/// What Go's `time.ParseDuration` says of it.
pub fn check_duration(text: &str) -> Result<(), String> {
    let invalid = || format!("time: invalid duration {}", quote(text));
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let of_number = |letter: char| letter == '.' || letter.is_ascii_digit();
        let (number, after) = rest.split_at(rest.find(|letter| !of_number(letter)).unwrap_or(rest.len()));
        // A lone point is no number to Rust either.
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let (unit, after) = after.split_at(after.find(of_number).unwrap_or(after.len()));
        let nanoseconds = match unit {
            "ns" => 1.0,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            "" => return Err(format!("time: missing unit in duration {}", quote(text))),
            other => return Err(format!("time: unknown unit {} in duration {}", quote(other), quote(text))),
        };
        total += number * nanoseconds;
        rest = after;
    }
    if total > LONGEST { Err(invalid()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_refused_as_go_does() {
        let signed = |text: &str, expected: Result<i64, &str>| {
            let expected = expected.map_err(|why| format!("strconv.ParseInt: parsing \"{text}\": {why}"));
            assert_eq!(parse_int(text), expected, "{text}");
        };
        signed("-5", Ok(-5));
        signed("+5", Ok(5));
        signed("", Err("invalid syntax"));
        signed("5.0", Err("invalid syntax"));
        signed("9223372036854775808", Err("value out of range"));
        signed("-9223372036854775809", Err("value out of range"));
        let unsigned = |text: &str, expected: Result<u64, &str>| {
            let expected = expected.map_err(|why| format!("strconv.ParseUint: parsing \"{text}\": {why}"));
            assert_eq!(parse_uint(text), expected, "{text}");
        };
        unsigned("18446744073709551615", Ok(u64::MAX));
        unsigned("18446744073709551616", Err("value out of range"));
        unsigned("+1", Err("invalid syntax"));
        unsigned("-1", Err("invalid syntax"));
    }

    #[test]
    fn durations_are_refused_as_go_refuses_them() {
        for good in ["0", "-0", "32s", "1m30s", "-1.5h", ".5s", "5.s", "1h2m3s4ms5us6ns", "7\u{b5}s"] {
            assert_eq!(check_duration(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", "invalid duration \"\""),
            ("-", "invalid duration \"-\""),
            ("abc", "invalid duration \"abc\""),
            (".s", "invalid duration \".s\""),
            ("5", "missing unit in duration \"5\""),
            ("1m5", "missing unit in duration \"1m5\""),
            ("5d", "unknown unit \"d\" in duration \"5d\""),
            ("9999999h", "invalid duration \"9999999h\""),
        ] {
            assert_eq!(check_duration(bad), Err(format!("time: {why}")));
        }
    }
}
