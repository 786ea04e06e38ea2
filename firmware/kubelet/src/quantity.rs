//! Kubernetes quantities as far as a board needs them (SCHED-19, SCHED-20): bytes and counts with the
//! suffixes Ki Mi Gi k M G m. Anything else counts as 0, as it does in the scheduler.

use alloc::string::String;
use core::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// A quantity in whole units, rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Quantity(pub(crate) u64);

impl Quantity {
    /// Reads the text form; what cannot be read counts 0.
    pub(crate) fn parse(text: &str) -> Quantity {
        Self::try_parse(text).unwrap_or_default()
    }

    fn try_parse(text: &str) -> Option<Quantity> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (multiply, divide): (u128, u128) = match suffix {
            "" => (1, 1),
            "Ki" => (1 << 10, 1),
            "Mi" => (1 << 20, 1),
            "Gi" => (1 << 30, 1),
            "k" => (1000, 1),
            "M" => (1_000_000, 1),
            "G" => (1_000_000_000, 1),
            "m" => (1, 1000),
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || whole.len() > 19 || fraction.len() > 9 {
            return None;
        }
        let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u128>().ok() };
        let scale = 10u128.pow(fraction.len() as u32);
        let scaled = digits(whole)? * scale + digits(fraction)?;
        let units = (scaled * multiply).div_ceil(scale * divide);
        u64::try_from(units).ok().map(Quantity)
    }
}

/// The API sends strings; a server that keeps what it was given may send numbers.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity::parse(text))
            }
            fn visit_string<E: Error>(self, text: String) -> Result<Quantity, E> {
                Ok(Quantity::parse(&text))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Quantity, E> {
                Ok(Quantity(value))
            }
            fn visit_i64<E: Error>(self, _negative: i64) -> Result<Quantity, E> {
                Ok(Quantity(0))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Quantity, E> {
                let whole = value as u64;
                Ok(Quantity(whole + u64::from(value > whole as f64)))
            }
            fn visit_unit<E: Error>(self) -> Result<Quantity, E> {
                Ok(Quantity(0))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities() {
        let check = |text: &str, expected: u64| assert_eq!(Quantity::parse(text).0, expected, "{text}");
        check("16Ki", 16_384);
        check("1.5Mi", 1_572_864);
        check("2G", 2_000_000_000);
        check("1500m", 2);
        check("64k", 64_000);
        check("7", 7);
        check(".5Gi", 536_870_912);
        check("1Ti", 0);
        check("-1", 0);
        check("", 0);
        check(".", 0);
        check("1.2.3", 0);
        check("99999999999999999999", 0);
    }

    #[test]
    fn numbers_are_taken_as_well() {
        let check = |json: &str, expected: u64| {
            assert_eq!(serde_json::from_str::<Quantity>(json).unwrap().0, expected, "{json}");
        };
        check("12", 12);
        check("-3", 0);
        check("1.5", 2);
        check("null", 0);
        check("\"4Ki\"", 4096);
    }

    proptest! {
        #[test]
        fn any_text_counts_something(text in "[0-9.]{0,30}[A-Za-z]{0,2}") {
            let _counted = Quantity::parse(&text);
        }
    }
}
