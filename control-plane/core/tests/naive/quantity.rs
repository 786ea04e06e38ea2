//! SCHED-19 and SCHED-20 as they are written down: what a quantity is worth, in billionths.

use serde_json::Value;

use crate::digits::Digits;

/// Digits after the point that are told apart.
const PLACES: usize = 9;

/// What `value` is worth in billionths of one; a suffix that is not in the list counts as 0.
pub fn billionths(value: &Value) -> Digits {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return Digits::default(),
    };
    let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let thousandth = suffix == "m";
    let factor: u64 = match suffix {
        "" | "m" => 1,
        "k" => 1_000,
        "M" => 1_000 * 1_000,
        "G" => 1_000 * 1_000 * 1_000,
        "Ki" => 1_024,
        "Mi" => 1_024 * 1_024,
        "Gi" => 1_024 * 1_024 * 1_024,
        _ => 0,
    };
    let places = if thousandth { PLACES - 3 } else { PLACES };
    assert!(part.len() <= places, "{text}: finer than this judge reckons");
    let zeros = "0".repeat(places - part.len());
    Digits::read(&format!("{whole}{part}{zeros}")).times(&Digits::of(factor))
}

#[test]
fn sched_19_and_20_quantities_are_worth_what_their_suffix_says() {
    for (text, worth) in [
        ("0", "0"),
        ("7", "7000000000"),
        ("16Ki", "16384000000000"),
        ("1Mi", "1048576000000000"),
        ("1Gi", "1073741824000000000"),
        ("2k", "2000000000000"),
        ("2M", "2000000000000000"),
        ("2G", "2000000000000000000"),
        ("1500m", "1500000000"),
        ("1.5", "1500000000"),
        ("0.5Ki", "512000000000"),
        ("0.000001m", "1"),
        ("1Ti", "0"),
        ("1e3", "0"),
        ("64K", "0"),
        ("", "0"),
        ("lots", "0"),
    ] {
        assert_eq!(billionths(&text.into()), Digits::read(worth), "{text}");
    }
    assert_eq!(billionths(&7.into()), Digits::read("7000000000"));
    assert_eq!(billionths(&Value::Null), Digits::default());
}
