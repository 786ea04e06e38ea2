//! Kubernetes quantities in exact integer arithmetic (SCHED-19, SCHED-20).
//!
//! A value is a whole number of nano-units, as fine as the strict grammar goes. Two readers: [`Quantity::parse`] is
//! Kubernetes' own grammar with its errors; [`Quantity::kube32`] knows `Ki Mi Gi k M G m` and plain numbers, and
//! takes everything else for 0.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;
use thiserror::Error;

const NANOS: i128 = 1_000_000_000;
/// No quantity is larger than 2^63 - 1 units in magnitude; larger ones are cut to it, as Kubernetes does.
const LIMIT: i128 = (i64::MAX as i128) * NANOS;

/// An amount. Compared and equal by value only: `1024` equals `1Ki`.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// The family of suffixes in which a quantity was written, and is written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Ki, Mi, Gi, Ti, Pi, Ei.
    BinarySi,
    /// n, u, m, none, k, M, G, T, P, E.
    DecimalSi,
    /// e3, E-6, …
    DecimalExponent,
}

/// Why a quantity is refused, in Kubernetes' words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// Not of the form number and suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number cannot be read.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is none that Kubernetes knows.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi };

    /// A whole number of units (bytes, pieces).
    #[must_use]
    pub fn units(units: i64) -> Self {
        Self { nanos: i128::from(units) * NANOS, format: Format::DecimalSi }
    }

    /// Reads `text` by Kubernetes' grammar. Finer than a nano-unit is rounded away from zero, more than 2^63 - 1
    /// units is cut to that.
    ///
    /// # Errors
    /// [`QuantityError`] where Kubernetes refuses the text.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let number = Number::split(text).ok_or(QuantityError::Format)?;
        if !has_suffix_shape(number.rest) {
            return Err(QuantityError::Format);
        }
        let (scale, format) = strict_scale(number.rest).ok_or(QuantityError::Suffix)?;
        if number.whole.is_empty() && number.fraction.is_empty() {
            return Err(QuantityError::Number);
        }
        Ok(Self { nanos: number.nanos(scale), format })
    }

    /// Reads `text` as the kube32 dialect does: a number with one of `Ki Mi Gi k M G m` or no suffix; anything else
    /// is 0, and is refused by nobody (SCHED-20).
    #[must_use]
    pub fn kube32(text: &str) -> Self {
        let Some(number) = Number::split(text) else { return Self::ZERO };
        let (scale, format) = match number.rest {
            "" => (Scale::Ten(0), Format::DecimalSi),
            "m" => (Scale::Ten(-3), Format::DecimalSi),
            "k" => (Scale::Ten(3), Format::DecimalSi),
            "M" => (Scale::Ten(6), Format::DecimalSi),
            "G" => (Scale::Ten(9), Format::DecimalSi),
            "Ki" => (Scale::Two(10), Format::BinarySi),
            "Mi" => (Scale::Two(20), Format::BinarySi),
            "Gi" => (Scale::Two(30), Format::BinarySi),
            _ => return Self::ZERO,
        };
        Self { nanos: number.nanos(scale), format }
    }

    /// [`Quantity::kube32`] of a JSON string or number; everything else is 0.
    #[must_use]
    pub fn kube32_json(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::kube32(text),
            Value::Number(number) => Self::kube32(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Self::ZERO,
        }
    }

    /// [`Quantity::parse`] of a JSON string or number.
    ///
    /// # Errors
    /// As [`Quantity::parse`]; a value that is neither string nor number is [`QuantityError::Format`].
    pub fn parse_json(value: &Value) -> Result<Self, QuantityError> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(QuantityError::Format),
        }
    }

    /// The amount in nano-units.
    #[must_use]
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// The amount in whole units, rounded up (Kubernetes' `Value()`).
    #[must_use]
    pub fn units_ceil(self) -> i64 {
        clamp(self.nanos.div_euclid(NANOS) + i128::from(self.nanos.rem_euclid(NANOS) != 0))
    }

    /// Whether the amount is nothing.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether the amount is less than nothing.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether the amount is a whole number of units.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.nanos % NANOS == 0
    }

    /// The family of suffixes that it was written in.
    #[must_use]
    pub fn format(self) -> Format {
        self.format
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// Kubernetes' canonical form: the largest suffix of the family that leaves no fraction.
impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return out.write_str("0");
        }
        let small = self.nanos.abs() < 1024 * NANOS;
        match self.format {
            Format::BinarySi if !small && self.is_whole() => {
                const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
                let (mut amount, mut step) = (self.nanos / NANOS, 0);
                while amount % 1024 == 0 && step + 1 < SUFFIXES.len() {
                    amount /= 1024;
                    step += 1;
                }
                write!(out, "{amount}{}", SUFFIXES[step])
            }
            Format::BinarySi | Format::DecimalSi => {
                const SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
                let (amount, step) = thousands(self.nanos, SUFFIXES.len() - 1);
                write!(out, "{amount}{}", SUFFIXES[step])
            }
            Format::DecimalExponent => match thousands(self.nanos, 9) {
                (amount, 3) => write!(out, "{amount}"),
                (amount, step) => write!(out, "{amount}e{}", 3 * i64::try_from(step).unwrap_or(0) - 9),
            },
        }
    }
}

/// Divides by a thousand while nothing is lost, at most `most` times; how often is the second part.
fn thousands(mut amount: i128, most: usize) -> (i128, usize) {
    let mut step = 0;
    while step < most && amount % 1000 == 0 {
        amount /= 1000;
        step += 1;
    }
    (amount, step)
}

fn clamp(units: i128) -> i64 {
    i64::try_from(units).unwrap_or(if units < 0 { i64::MIN } else { i64::MAX })
}

#[derive(Debug, Clone, Copy)]
enum Scale {
    Ten(i32),
    Two(u32),
}

/// A decimal number and what follows it.
#[derive(Debug, Clone, Copy)]
struct Number<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    rest: &'a str,
}

impl<'a> Number<'a> {
    /// `None` where `text` does not start with a number; a lone point counts as one without digits.
    fn split(text: &'a str) -> Option<Self> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, rest) = digits(unsigned);
        let (fraction, rest, point) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (fraction, rest) = digits(rest);
                (fraction, rest, true)
            }
            None => ("", rest, false),
        };
        (point || !whole.is_empty()).then_some(Self { negative, whole, fraction, rest })
    }

    /// The value in nano-units, rounded away from zero, within the limit.
    fn nanos(&self, scale: Scale) -> i128 {
        let magnitude = self.magnitude(scale).map_or(LIMIT, |nanos| nanos.min(LIMIT));
        if self.negative { -magnitude } else { magnitude }
    }

    /// `None` where the value does not fit.
    fn magnitude(&self, scale: Scale) -> Option<i128> {
        let fraction = self.fraction.trim_end_matches('0');
        let digits = [self.whole, fraction].concat();
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return Some(0);
        }
        let places = i64::try_from(fraction.len()).ok()?;
        let (ten, two) = match scale {
            Scale::Ten(power) => (i64::from(power), 0),
            Scale::Two(power) => (0, power),
        };
        // digits × 10^(ten - places) × 2^two units, that is × 10^(9 + ten - places) nano-units
        let exponent = 9 + ten - places;
        let length = i64::try_from(digits.len()).ok()?;
        if length + exponent > 40 {
            return None;
        }
        if length + exponent < -10 {
            return Some(1); // far below a nano-unit even times 2^30: rounds up to one
        }
        if exponent >= 0 {
            let value: i128 = digits.parse().ok()?;
            let power = 10_i128.checked_pow(u32::try_from(exponent).ok()?)?;
            return value.checked_mul(power)?.checked_mul(1_i128.checked_shl(two)?);
        }
        // Divide digit by digit, so that any number of digits is exact: the quotient fits by the length above.
        let cut = usize::try_from(-exponent).ok()?;
        let padded = format!("{digits:0>width$}", width = cut + 1);
        let (high, low) = padded.split_at(padded.len() - cut);
        let high: i128 = high.parse().ok()?;
        let high = high.checked_mul(1_i128.checked_shl(two)?)?;
        // low / 10^cut × 2^two, rounded up: a doubling at a time over the decimal digits
        let mut digits: Vec<u8> = low.bytes().map(|b| b - b'0').collect();
        let mut carry: i128 = 0;
        for _ in 0..two {
            let mut over = 0;
            for digit in digits.iter_mut().rev() {
                let doubled = *digit * 2 + over;
                *digit = doubled % 10;
                over = doubled / 10;
            }
            carry = carry * 2 + i128::from(over);
        }
        let up = i128::from(digits.iter().any(|digit| *digit != 0));
        high.checked_add(carry)?.checked_add(up)
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Whether `suffix` has the form of the regular expression in [`QuantityError::Format`].
fn has_suffix_shape(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    rest.bytes().all(|b| b.is_ascii_digit())
}

fn strict_scale(suffix: &str) -> Option<(Scale, Format)> {
    const DECIMAL: [(&str, i32); 10] = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("", 0),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Scale::Ten(*power), Format::DecimalSi));
    }
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((Scale::Two(*power), Format::BinarySi));
    }
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Scale::Ten(power), Format::DecimalExponent))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn sched_19_suffixes_are_powers_of_1024_and_of_1000() {
        for (text, nanos) in [
            ("0", 0),
            ("1", NANOS),
            ("4096", 4096 * NANOS),
            ("1Ki", 1024 * NANOS),
            ("3Mi", 3 * 1_048_576 * NANOS),
            ("2Gi", 2 * 1_073_741_824 * NANOS),
            ("1k", 1000 * NANOS),
            ("1M", 1_000_000 * NANOS),
            ("5G", 5_000_000_000 * NANOS),
            ("1m", 1_000_000),
            ("1500m", 1_500_000_000),
            ("1.5Ki", 1536 * NANOS),
            ("0.1Ki", 102_400_000_000),
            ("-2", -2 * NANOS),
            ("+2", 2 * NANOS),
            (".5", 500_000_000),
            ("5.", 5 * NANOS),
        ] {
            assert_eq!(Quantity::kube32(text).nanos(), nanos, "{text}");
            assert_eq!(Quantity::parse(text).map(Quantity::nanos), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn sched_20_any_other_suffix_counts_as_nothing() {
        for text in [
            "1Ti", "1Pi", "1Ei", "1T", "1P", "1E", "1n", "1u", "1e3", "1E3", "1KiB", "1K", "1 Ki", " 1", "",
            "Ki", "abc", "1.1.1", "-", "+", "--1",
        ] {
            assert_eq!(Quantity::kube32(text), Quantity::ZERO, "{text:?}");
        }
        assert_eq!(Quantity::kube32_json(&json!(64)), Quantity::units(64));
        for value in [json!(null), json!(true), json!([1]), json!({"a": 1})] {
            assert_eq!(Quantity::kube32_json(&value), Quantity::ZERO, "{value}");
        }
    }

    #[test]
    fn the_strict_grammar_knows_every_suffix_of_kubernetes() {
        for (text, nanos) in [
            ("1n", 1),
            ("1u", 1000),
            ("1Ti", (1_i128 << 40) * NANOS),
            ("1Pi", (1_i128 << 50) * NANOS),
            ("1T", 1_000_000_000_000 * NANOS),
            ("1E", 1_000_000_000_000_000_000 * NANOS),
            ("1e3", 1000 * NANOS),
            ("1E3", 1000 * NANOS),
            ("12e-3", 12_000_000),
            ("1.0e+2", 100 * NANOS),
            ("0.1n", 1),
            ("-0.1n", -1),
            ("1e-400", 1),
            ("100Ei", LIMIT),
            ("-100Ei", -LIMIT),
            ("1e400", LIMIT),
            ("0e400", 0),
            ("9223372036854775807", LIMIT),
            ("9223372036854775808", LIMIT),
            ("0.00000000009Gi", 96_636_765),
        ] {
            assert_eq!(Quantity::parse(text).map(Quantity::nanos), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn the_strict_grammar_refuses_in_the_words_of_kubernetes() {
        for (text, error) in [
            ("", QuantityError::Format),
            ("abc", QuantityError::Format),
            ("1 ", QuantityError::Format),
            ("1.1.1", QuantityError::Format),
            ("1+1", QuantityError::Suffix),
            ("1KiB", QuantityError::Format),
            ("1K", QuantityError::Suffix),
            ("1i", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("1mi", QuantityError::Suffix),
            (".", QuantityError::Number),
        ] {
            assert_eq!(Quantity::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(
            QuantityError::Format.to_string(),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        );
        assert_eq!(Quantity::parse_json(&json!(1.5)).map(Quantity::nanos), Ok(1_500_000_000));
        assert_eq!(Quantity::parse_json(&json!({})), Err(QuantityError::Format));
    }

    #[test]
    fn printing_is_canonical() {
        for (text, printed) in [
            ("0Ki", "0"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Ki", "1Mi"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("1536Mi", "1536Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.1Ki", "102400m"),
            ("1000k", "1M"),
            ("1e3", "1e3"),
            ("1e4", "10e3"),
            ("12e0", "12"),
            ("-1024Ki", "-1Mi"),
        ] {
            assert_eq!(Quantity::parse(text).expect(text).to_string(), printed, "{text}");
        }
    }

    #[test]
    fn units_round_up() {
        for (text, units) in
            [("1", 1), ("1m", 1), ("1001m", 2), ("-1500m", -1), ("0", 0), ("100Ei", i64::MAX)]
        {
            assert_eq!(Quantity::parse(text).expect(text).units_ceil(), units, "{text}");
        }
    }

    fn suffix() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["", "m", "k", "M", "G", "Ki", "Mi", "Gi"])
    }

    proptest! {
        #[test]
        fn both_grammars_agree_on_the_common_suffixes(
            whole in 0_u64..1_000_000_000, fraction in 0_u32..1000, suffix in suffix(), minus in any::<bool>(),
        ) {
            let text = format!("{}{whole}.{fraction:03}{suffix}", if minus { "-" } else { "" });
            prop_assert_eq!(Quantity::parse(&text), Ok(Quantity::kube32(&text)));
        }

        #[test]
        fn what_is_printed_reads_back_the_same(nanos in -LIMIT..=LIMIT, form in 0_u8..3, round in 0_u32..28) {
            let format = [Format::BinarySi, Format::DecimalSi, Format::DecimalExponent][usize::from(form)];
            let unit = 10_i128.pow(round);
            let quantity = Quantity { nanos: nanos / unit * unit, format };
            let printed = quantity.to_string();
            let again = Quantity::parse(&printed).expect("what it prints");
            prop_assert_eq!(again, quantity, "{}", printed);
            // without a suffix nothing tells the families apart, and the reader takes the decimal one
            prop_assert!(again.format() == Format::DecimalSi || again.to_string() == printed, "{}", printed);
        }

        #[test]
        fn the_order_is_that_of_the_values(a in 0_i64..1 << 33, b in 0_i64..1 << 33, suffix in suffix()) {
            let read = |n| Quantity::kube32(&format!("{n}{suffix}"));
            prop_assert_eq!(read(a).cmp(&read(b)), a.cmp(&b));
        }

        #[test]
        fn no_text_panics(text in "[-+.0-9eEinumkKMGTP]{0,60}|\\PC{0,12}") {
            let kube32 = Quantity::kube32(&text);
            if let (Ok(strict), false) = (Quantity::parse(&text), kube32.is_zero()) {
                prop_assert_eq!(strict, kube32);
            }
        }
    }
}
