//! Kubernetes quantities, exact, for comparison. Written from the API's documentation, not shared with
//! the control plane under test.

use std::cmp::Ordering;

use serde_json::Value;

use crate::reader::Reader;
use crate::template;
use crate::yaml::Node;

/// A quantity in thousand-millionths of its unit (the API's grain is the nano).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

impl Quantity {
    /// Reads a text or a number: `16Ki`, `100m`, `1.5`, `2e3`, `7`. Nothing if it is no quantity or too large.
    pub fn read(value: &Value) -> Option<Quantity> {
        match value {
            Value::String(text) => Quantity::parse(text),
            Value::Number(number) => Quantity::parse(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// In thousand-millionths of its unit.
    pub fn nano(self) -> i128 {
        self.0
    }

    /// As a whole number, if it is one.
    pub(crate) fn whole(self) -> Option<i128> {
        (self.0 % 1_000_000_000 == 0).then_some(self.0 / 1_000_000_000)
    }

    /// Of so many thousand-millionths.
    pub(crate) fn of_nano(nano: i128) -> Quantity {
        Quantity(nano)
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Option<Quantity> {
        let text = text.trim();
        let end = text
            .char_indices()
            .find(|(at, c)| !(c.is_ascii_digit() || *c == '.' || (*at == 0 && matches!(c, '+' | '-'))))
            .map_or(text.len(), |(at, _)| at);
        let (number, suffix) = text.split_at(end);
        let negative = number.starts_with('-');
        let number = number.trim_start_matches(['+', '-']);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let (factor, shift) = scale(suffix)?;
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let decimals = i32::try_from(fraction.len()).ok()?;
        let nano = shifted(digits.checked_mul(factor)?, shift + 9 - decimals)?;
        Some(Quantity(if negative { -nano } else { nano }))
    }

    /// How two values compare as quantities.
    pub fn compare(left: &Value, right: &Value) -> Option<Ordering> {
        Some(Quantity::read(left)?.cmp(&Quantity::read(right)?))
    }
}

/// Notes a text that is no quantity. What is filled in later is not known yet, and what a row of a table or a parameter
/// puts in may be wrong on purpose.
pub(crate) fn check(reader: &mut Reader<'_>, node: &Node) {
    let text = node.as_text().unwrap_or_default();
    let written = reader.source().get(node.span.clone()).unwrap_or_default();
    let put_in = [text, written].iter().any(|text| !template::names(text).is_empty());
    if put_in || Quantity::read(&node.to_value()).is_some() {
        return;
    }
    let example = "64Ki (times 1024), 64k (times 1000), 100m (thousandths) or 4";
    let right = meant(text).unwrap_or_else(|| example.to_owned());
    let remedy = format!("write {right}; what is wrong on purpose is put in from a row of a table");
    reader.wrong(&node.span, format!("{} is no quantity", node.describe()), remedy);
}

/// Notes a quantity with a suffix that an operator would compare as a text, by its bytes.
pub(crate) fn check_plain(reader: &mut Reader<'_>, operator: &str, node: &Node) {
    let Some(text) = node.as_text() else { return };
    let suffixed = text.ends_with(|c: char| c.is_ascii_alphabetic());
    if suffixed && Quantity::parse(text).is_some() {
        let message = format!("`{text}` would be compared as a text, by its bytes");
        reader.wrong(&node.span, message, format!("write {{$quantity: {{{operator}: {text}}}}}"));
    }
}

/// A quantity as it was most likely meant: `64KB`, `64 kb`, `1.5gb`.
fn meant(text: &str) -> Option<String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().to_lowercase();
    let unit = ["bytes", "byte", "b"].iter().find_map(|tail| unit.strip_suffix(tail)).unwrap_or(&unit);
    let (decimal, binary) = match unit.strip_suffix('i').unwrap_or(unit) {
        "" => return Quantity::parse(number).map(|_| number.to_owned()),
        "k" => ("k", "Ki"),
        "m" => ("M", "Mi"),
        "g" => ("G", "Gi"),
        "t" => ("T", "Ti"),
        _ => return None,
    };
    Quantity::parse(number)?;
    Some(format!("{number}{binary} (times 1024) or {number}{decimal} (times 1000)"))
}

/// A suffix as a binary factor and a decimal shift.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        other => {
            let exponent = other.strip_prefix(['e', 'E'])?;
            (1, exponent.parse::<i32>().ok().filter(|exponent| exponent.abs() <= 18)?)
        }
    })
}

/// `number` times ten to the `shift`; what is below the grain is rounded up, as the API does.
fn shifted(number: i128, shift: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(shift.unsigned_abs())?;
    if shift >= 0 { number.checked_mul(factor) } else { Some((number + factor - 1).div_euclid(factor)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_compare_by_value() {
        let check = |left: Value, right: Value, expected: Option<Ordering>| {
            assert_eq!(Quantity::compare(&left, &right), expected, "{left} {right}");
        };
        check(json!("16Ki"), json!(16384), Some(Ordering::Equal));
        check(json!("1k"), json!("1000"), Some(Ordering::Equal));
        check(json!("1500m"), json!(1.5), Some(Ordering::Equal));
        check(json!("1e3"), json!("1k"), Some(Ordering::Equal));
        check(json!("0.5Mi"), json!("512Ki"), Some(Ordering::Equal));
        check(json!("64Ki"), json!("64k"), Some(Ordering::Greater));
        check(json!("-1"), json!(0), Some(Ordering::Less));
        for wrong in ["", "Ki", "1.2.3", "5x", "--1", "1e99", "five"] {
            check(json!(wrong), json!(1), None);
        }
        check(json!(null), json!(1), None);
    }

    #[test]
    fn what_is_no_quantity_is_told_as_it_was_meant() {
        let both = |number: &str, two: &str, ten: &str| {
            Some(format!("{number}{two} (times 1024) or {number}{ten} (times 1000)"))
        };
        for (text, expected) in [
            ("64KB", both("64", "Ki", "k")),
            ("64K", both("64", "Ki", "k")),
            ("64 kib", both("64", "Ki", "k")),
            ("1.5gb", both("1.5", "Gi", "G")),
            ("5bytes", Some("5".to_owned())),
            ("5lamps", None),
            ("lots", None),
            (".b", None),
        ] {
            assert_eq!(meant(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_quantity_or_nothing(text in "[-+0-9.eEKMGimnu]{0,20}|.{0,10}") {
            let _ = Quantity::parse(&text);
        }
    }
}
