//! Resource quantities as Kubernetes writes them: their syntax, their canonical text, and exact comparison.
//!
//! This is the wire form only. What a quantity is worth to the kube32 scheduler, which reads fewer suffixes, is
//! decided elsewhere.

/// Nano-units in one unit; the finest step of a quantity.
const NANO: i128 = 1_000_000_000;

/// Which family of suffixes a quantity was written with; its canonical text stays in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Binary,
    Decimal,
    Exponent,
}

/// A parsed quantity, in nano-units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quantity {
    nano: i128,
    family: Family,
}

const FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX: &str = "unable to parse quantity's suffix";
const NUMERIC: &str = "unable to parse numeric part of quantity";

impl Quantity {
    /// Parses Kubernetes' quantity syntax. Errors: the sentence that Kubernetes answers.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let split = rest.find(|ch: char| !ch.is_ascii_digit() && ch != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(split);
        if number.is_empty() || !is_suffix_text(suffix) {
            return Err(FORMAT);
        }
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(NUMERIC);
        }
        let (multiplier, family) = read_suffix(suffix).ok_or(SUFFIX)?;
        let nano = scale(whole, fraction, multiplier).ok_or(NUMERIC)?;
        Ok(Self { nano: if negative { -nano } else { nano }, family })
    }

    pub(crate) fn is_negative(self) -> bool {
        self.nano < 0
    }

    pub(crate) fn is_integer(self) -> bool {
        self.nano % NANO == 0
    }

    /// Compares two quantities by worth, whatever their suffixes.
    pub(crate) fn exceeds(self, other: Self) -> bool {
        self.nano > other.nano
    }

    pub(crate) fn equals(self, other: Self) -> bool {
        self.nano == other.nano
    }

    /// The text in which Kubernetes gives the quantity back.
    pub(crate) fn canonical(self) -> String {
        let whole = self.nano / NANO;
        if self.family == Family::Binary && whole.abs() >= 1024 && self.is_integer() {
            let (mantissa, step) = reduce(whole, 1024, 6);
            return format!("{mantissa}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][step]);
        }
        let (mantissa, step) = reduce(self.nano, 1000, 9);
        let exponent = if self.nano == 0 { 0 } else { step as i32 * 3 - 9 };
        match (self.family, exponent) {
            (Family::Exponent, 0) => mantissa.to_string(),
            (Family::Exponent, exponent) => format!("{mantissa}e{exponent}"),
            (Family::Binary | Family::Decimal, exponent) => {
                let suffix = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][((exponent + 9) / 3) as usize];
                format!("{mantissa}{suffix}")
            }
        }
    }
}

fn is_suffix_text(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|ch: char| "eEinumkKMGTP".contains(ch));
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    rest.chars().all(|ch| ch.is_ascii_digit())
}

/// What a suffix multiplies by, in nano-units, as a power of ten (`Err`) or of two (`Ok`).
fn read_suffix(suffix: &str) -> Option<(Multiplier, Family)> {
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|known| *known == suffix);
    if let Some(step) = binary {
        return Some((Multiplier::Two(10 * (step as u32 + 1)), Family::Binary));
    }
    let decimal =
        [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15)];
    if let Some((_, power)) = decimal.iter().find(|(known, _)| *known == suffix) {
        return Some((Multiplier::Ten(*power), Family::Decimal));
    }
    if suffix == "E" {
        return Some((Multiplier::Ten(18), Family::Decimal));
    }
    let power = suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
    Some((Multiplier::Ten(power), Family::Exponent))
}

#[derive(Debug, Clone, Copy)]
enum Multiplier {
    Ten(i32),
    Two(u32),
}

/// `whole.fraction` times the multiplier in nano-units, rounded up; `None` beyond what fits.
fn scale(whole: &str, fraction: &str, multiplier: Multiplier) -> Option<i128> {
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let mantissa: i128 = match digits.trim_start_matches('0') {
        "" => 0,
        digits => digits.parse().ok()?,
    };
    let tens = 9 - i32::try_from(fraction.len()).ok()?;
    let (twos, tens) = match multiplier {
        Multiplier::Ten(power) => (1, tens.checked_add(power)?),
        Multiplier::Two(power) => (1_i128 << power, tens),
    };
    let value = mantissa.checked_mul(twos)?;
    if value == 0 {
        return Some(0);
    }
    let factor = 10_i128.checked_pow(tens.unsigned_abs());
    if tens >= 0 {
        value.checked_mul(factor?)
    } else {
        Some(factor.map_or(1, |factor| value / factor + i128::from(value % factor != 0)))
    }
}

/// Divides by `base` while it divides evenly, at most `limit` times.
fn reduce(mut value: i128, base: i128, limit: usize) -> (i128, usize) {
    let mut step = 0;
    while step < limit && value != 0 && value % base == 0 {
        value /= base;
        step += 1;
    }
    (value, step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn canonical_text_is_that_of_kubernetes() {
        let cases = [
            ("0", "0"),
            ("100m", "100m"),
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("64Mi", "64Mi"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1023Ki", "1023Ki"),
            ("512", "512"),
            ("0.5Ki", "512"),
            ("0.0005Ki", "512m"),
            ("1e3", "1e3"),
            ("12e-1", "1200e-3"),
            ("2E", "2E"),
            ("-1", "-1"),
            ("+5k", "5k"),
            ("1.", "1"),
            (".5", "500m"),
            ("0.1n", "1n"),
        ];
        for (text, canonical) in cases {
            assert_eq!(Quantity::parse(text).map(Quantity::canonical).as_deref(), Ok(canonical), "{text}");
        }
    }

    #[test]
    fn malformed_text_is_refused() {
        for (text, message) in [
            ("abc", FORMAT),
            ("", FORMAT),
            ("1Foo", FORMAT),
            ("1 ", FORMAT),
            ("1iK", SUFFIX),
            ("1.2.3", NUMERIC),
            (".", NUMERIC),
        ] {
            assert_eq!(Quantity::parse(text), Err(message), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "[-+0-9.eEinumkKMGTPx]{0,40}") {
            let _ = Quantity::parse(&text);
        }

        #[test]
        fn canonical_text_is_worth_the_same(text in "[0-9]{1,6}(\\.[0-9]{1,3})?(m|k|M|G|Ki|Mi|Gi|e3)?") {
            let quantity = Quantity::parse(&text).unwrap();
            let again = Quantity::parse(&quantity.canonical()).unwrap();
            prop_assert!(quantity.equals(again), "{text} {}", quantity.canonical());
            prop_assert_eq!(again.canonical(), quantity.canonical());
        }
    }
}
