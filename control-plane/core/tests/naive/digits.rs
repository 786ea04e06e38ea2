//! Natural numbers of any size, as a row of decimal digits, reckoned as on paper: exact, and nothing overflows.

use std::cmp::Ordering;
use std::fmt;

/// Digits, the lowest first, without zeros at the high end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digits(Vec<u8>);

impl Digits {
    /// The number that `text`, which holds decimal digits and nothing else, writes down.
    pub fn read(text: &str) -> Self {
        Self(text.bytes().rev().map(|digit| digit - b'0').collect()).trimmed()
    }

    pub fn of(number: u64) -> Self {
        Self::read(&number.to_string())
    }

    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    fn at(&self, place: usize) -> u8 {
        self.0.get(place).copied().unwrap_or(0)
    }

    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = Vec::new();
        let mut carry = 0;
        for place in 0..=self.0.len().max(other.0.len()) {
            let here = self.at(place) + other.at(place) + carry;
            sum.push(here % 10);
            carry = here / 10;
        }
        Self(sum).trimmed()
    }

    /// `self - other`; nothing where that would be below zero.
    pub fn minus(&self, other: &Self) -> Option<Self> {
        if other > self {
            return None;
        }
        let mut rest = Vec::new();
        let mut borrowed = 0;
        for place in 0..self.0.len() {
            let (here, less) = (self.at(place), other.at(place) + borrowed);
            borrowed = u8::from(here < less);
            rest.push(here + 10 * borrowed - less);
        }
        Some(Self(rest).trimmed())
    }

    pub fn times(&self, other: &Self) -> Self {
        let mut product = Self::default();
        for (place, digit) in other.0.iter().enumerate() {
            let mut row = Self(std::iter::repeat_n(0, place).chain(self.0.iter().copied()).collect());
            row = row.trimmed();
            for _ in 0..*digit {
                product = product.plus(&row);
            }
        }
        product
    }
}

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits: String = self.0.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
        f.pad_integral(true, "", if digits.is_empty() { "0" } else { &digits })
    }
}

impl Ord for Digits {
    fn cmp(&self, other: &Self) -> Ordering {
        let from_the_high_end = || self.0.iter().rev().cmp(other.0.iter().rev());
        self.0.len().cmp(&other.0.len()).then_with(from_the_high_end)
    }
}

impl PartialOrd for Digits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[test]
fn digits_reckon_as_machines_do() {
    let numbers = [0, 1, 9, 10, 99, 100, 12_345, 99_999, 100_000, 4_294_967_295];
    for a in numbers {
        for b in numbers {
            let (left, right) = (Digits::of(a), Digits::of(b));
            assert_eq!(left.plus(&right), Digits::of(a + b), "{a} + {b}");
            assert_eq!(
                left.times(&right),
                Digits::read(&(u128::from(a) * u128::from(b)).to_string()),
                "{a} * {b}"
            );
            assert_eq!(left.minus(&right), a.checked_sub(b).map(Digits::of), "{a} - {b}");
            assert_eq!(left.cmp(&right), a.cmp(&b), "{a} <=> {b}");
        }
    }
    assert_eq!(Digits::read("000"), Digits::default());
}
