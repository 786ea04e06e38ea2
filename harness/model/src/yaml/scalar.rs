//! What a bare (unquoted) scalar means, and which ones are refused because people mean something else.

use std::ops::Range;

use super::tree::Kind;
use crate::mistake::{Mistake, TRAP};

/// Reads a bare scalar. A trap yields a mistake and, so that reading can go on, a likely value.
pub(super) fn bare(text: &str, span: &Range<usize>, mistakes: &mut Vec<Mistake>) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Kind::Null,
        "true" | "True" | "TRUE" => return Kind::Bool(true),
        "false" | "False" | "FALSE" => return Kind::Bool(false),
        _ => {}
    }
    if matches!(text.to_ascii_lowercase().as_str(), "y" | "n" | "yes" | "no" | "on" | "off") {
        mistakes.push(
            Mistake::new(
                span.clone(),
                format!("{TRAP}{text}` is a boolean to some readers of YAML and a text to others"),
            )
            .remedy(format!("write \"{text}\" for the text, or true or false")),
        );
        return Kind::Text(text.to_owned());
    }
    if is_plain_decimal(text)
        && let Ok(number) = text.parse::<serde_json::Number>()
    {
        return Kind::Number(number);
    }
    if is_odd_number(text) {
        let number = plain(text).unwrap_or_else(|| "a plain decimal number".to_owned());
        mistakes.push(
            Mistake::new(
                span.clone(),
                format!("{TRAP}{text}` is not the same number to all readers of YAML"),
            )
            .remedy(format!("write {number}, or \"{text}\" for the text")),
        );
    }
    Kind::Text(text.to_owned())
}

/// `0`, `-7`, `12.5`: an optional minus, no leading zeros, an optional fraction.
fn is_plain_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && digits(fraction) && (whole == "0" || !whole.starts_with('0'))
}

/// A number in one YAML or another, but not a plain decimal: octal, hexadecimal, underscores, `+1`,
/// `.5`, `1.`, exponents, `.inf`, `.nan`.
fn is_odd_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    if matches!(lower.as_str(), ".inf" | ".nan") {
        return true;
    }
    if let Some(hex) = lower.strip_prefix("0x") {
        return !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    if let Some(octal) = lower.strip_prefix("0o") {
        return !octal.is_empty() && octal.bytes().all(|byte| byte.is_ascii_digit());
    }
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let numeric = |part: &str| {
        part.bytes().any(|byte| byte.is_ascii_digit())
            && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_' || byte == b'.')
            && part.bytes().filter(|byte| *byte == b'.').count() <= 1
    };
    numeric(mantissa) && !exponent.is_empty() && exponent.bytes().all(|byte| byte.is_ascii_digit())
}

/// An odd number as it was most likely meant, written as a plain decimal.
pub(crate) fn plain(text: &str) -> Option<String> {
    if is_plain_decimal(text) || !is_odd_number(text) {
        return None;
    }
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = unsigned.to_ascii_lowercase().replace('_', "");
    let radix = |prefix: &str, radix| {
        digits.strip_prefix(prefix).and_then(|digits| u64::from_str_radix(digits, radix).ok())
    };
    let number = match radix("0x", 16).or_else(|| radix("0o", 8)) {
        Some(number) => number.to_string(),
        None => format!("0{digits}").parse::<f64>().ok().filter(|number| number.is_finite())?.to_string(),
    };
    Some(format!("{sign}{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, kind: Kind, complaints: usize) {
        let mut mistakes = Vec::new();
        assert_eq!(bare(text, &(0..text.len()), &mut mistakes), kind, "{text}");
        assert_eq!(mistakes.len(), complaints, "{text}: {mistakes:?}");
    }

    #[test]
    fn bare_scalars_mean_what_they_look_like() {
        check("", Kind::Null, 0);
        check("True", Kind::Bool(true), 0);
        check("0", Kind::Number(0.into()), 0);
        check("-7", Kind::Number((-7).into()), 0);
        check("12.5", Kind::Number(serde_json::Number::from_f64(12.5).expect("finite")), 0);
        for text in ["a", "1.2.3.4", "10s", "16Ki", "v1", "2026-01-01T00:00:00Z", "-", "e5", "0xzz", "1e"] {
            check(text, Kind::Text(text.to_owned()), 0);
        }
    }

    #[test]
    fn odd_numbers_are_told_plainly() {
        for (text, expected) in [
            ("010", "10"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("1_000", "1000"),
            (".5", "0.5"),
            ("-1.", "-1"),
            ("+1", "1"),
            ("1e3", "1000"),
        ] {
            assert_eq!(plain(text).as_deref(), Some(expected), "{text}");
        }
        for text in [".inf", "1e999", "7", "x"] {
            assert_eq!(plain(text), None, "{text}");
        }
    }

    #[test]
    fn traps_are_refused() {
        for text in
            ["y", "NO", "On", "off", "010", "0x1F", "0o17", "1_000", ".5", "1.", "+1", "1e3", "-.inf", ".NaN"]
        {
            check(text, Kind::Text(text.to_owned()), 1);
        }
    }
}
