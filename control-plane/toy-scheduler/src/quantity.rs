//! Kubernetes quantities as whole numbers of nano-units, as fine as their grammar goes. Exact: nothing is a float.

const NANOS: i128 = 1_000_000_000;
/// No quantity is larger, in Kubernetes either.
const LIMIT: i128 = i64::MAX as i128 * NANOS;

/// The amount that `text` states, rounded away from zero to nano-units; nothing where it is no quantity.
pub fn nanos(text: &str) -> Option<i128> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (binary, decimal) = scale(suffix)?;
    let (digits, places) = digits(number)?;
    let power = 9 + decimal - places;
    let factor = 10i128.checked_pow(power.unsigned_abs()).unwrap_or(i128::MAX);
    let amount = digits.saturating_mul(1 << binary);
    let amount = if power < 0 { divide(amount, factor) } else { amount.saturating_mul(factor) };
    Some(amount.clamp(-LIMIT, LIMIT))
}

/// Away from zero.
fn divide(amount: i128, by: i128) -> i128 {
    amount / by + (amount % by).signum()
}

/// The powers of two and of ten that a suffix stands for.
fn scale(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        exponent => (0, exponent.strip_prefix(['e', 'E'])?.parse().ok().filter(|e| (-99..=99).contains(e))?),
    })
}

/// `-1.25` as -125 and 2 places.
fn digits(number: &str) -> Option<(i128, i32)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let unsigned = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    let all_digits = unsigned.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !all_digits || (unsigned.is_empty() && fraction.is_empty()) {
        return None;
    }
    let places = i32::try_from(fraction.len()).ok()?;
    Some((format!("{whole}{fraction}").parse().ok()?, places))
}

#[cfg(test)]
mod tests {
    use super::{LIMIT, NANOS, nanos};

    #[test]
    fn amounts_are_read_exactly() {
        let table: &[(&str, Option<i128>)] = &[
            ("0", Some(0)),
            ("2", Some(2 * NANOS)),
            ("500m", Some(NANOS / 2)),
            ("0.5", Some(NANOS / 2)),
            (".5", Some(NANOS / 2)),
            ("5.", Some(5 * NANOS)),
            ("+1", Some(NANOS)),
            ("-1", Some(-NANOS)),
            ("1n", Some(1)),
            ("0.1n", Some(1)),
            ("-0.1n", Some(-1)),
            ("250u", Some(250_000)),
            ("1k", Some(1_000 * NANOS)),
            ("1Ki", Some(1_024 * NANOS)),
            ("1.5Gi", Some(1_610_612_736 * NANOS)),
            ("1e3", Some(1_000 * NANOS)),
            ("1E3", Some(1_000 * NANOS)),
            ("12e-3", Some(12_000_000)),
            ("1E", Some(1_000_000_000_000_000_000 * NANOS)),
            ("16Ei", Some(LIMIT)),
            ("-16Ei", Some(-LIMIT)),
            ("1e99", Some(LIMIT)),
            ("1e-99", Some(1)),
            ("", None),
            (".", None),
            ("-", None),
            ("1 Gi", None),
            ("1gi", None),
            ("Gi", None),
            ("1e", None),
            ("1e100", None),
            ("1.2.3", None),
            ("--1", None),
            ("1-", None),
        ];
        for (text, expected) in table {
            assert_eq!(nanos(text), *expected, "{text:?}");
        }
    }
}
