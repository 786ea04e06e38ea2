//! The hand-written parser of instant and duration expressions. It never panics on any text.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = [ WHOLE "*" ] operand
//! operand = DURATION | NAME | NAME "(" arguments ")" | "(" sum ")"
//! ```

mod call;
mod scan;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Expr, Instant, Length};
use crate::constants::Constant;
use crate::duration::DurationError;

use call::usage;

/// Expressions longer than this, in bytes, are refused unread.
const MAX_BYTES: usize = 1000;
/// Nesting of parentheses and functions that is accepted.
const MAX_DEPTH: usize = 32;

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExprError {
    /// Where, in bytes of the expression.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub remedy: String,
}

/// Reads an expression. `names` are the names of steps it may refer to; `None` accepts any name.
///
/// # Errors
/// [`ExprError`] with the place of the first mistake.
pub fn parse(text: &str, names: Option<&BTreeSet<String>>) -> Result<Expr, ExprError> {
    let mut parser = Parser { text, at: 0, names, depth: 0 };
    if text.len() > MAX_BYTES {
        let message = format!("an expression of more than {MAX_BYTES} bytes");
        return Err(parser.wrong(0..text.len(), message, "write it more simply"));
    }
    let expr = parser.sum()?;
    parser.skip_spaces();
    if parser.at < text.len() {
        let rest = parser.at..text.len();
        let remedy = factor_remedy(&expr, &text[rest.clone()])
            .unwrap_or_else(|| "after a complete expression only + or - may follow".to_owned());
        return Err(parser.wrong(rest.clone(), format!("`{}` is too much here", &text[rest]), remedy));
    }
    Ok(expr)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    names: Option<&'a BTreeSet<String>>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<Expr, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong(self.at..self.at, "too deeply nested", "write it more simply"));
        }
        let begin = self.at;
        let mut left = self.product()?;
        loop {
            self.skip_spaces();
            let plus = match self.peek() {
                Some('+') => true,
                Some('-') => false,
                Some(_) | None => break,
            };
            self.at += 1;
            let right_begin = self.skip_spaces();
            let right = self.product()?;
            left = self.combine(left, plus, right, begin, right_begin)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn combine(
        &self,
        left: Expr,
        plus: bool,
        right: Expr,
        begin: usize,
        right_begin: usize,
    ) -> Result<Expr, ExprError> {
        match (left, right) {
            (Expr::Instant(from), Expr::Length(by)) if plus => {
                Ok(Expr::Instant(Instant::Plus(Box::new(from), by)))
            }
            (Expr::Instant(from), Expr::Length(by)) => Ok(Expr::Instant(Instant::Minus(Box::new(from), by))),
            (Expr::Length(a), Expr::Length(b)) if plus => {
                Ok(Expr::Length(Length::Sum(Box::new(a), Box::new(b))))
            }
            (Expr::Length(a), Expr::Length(b)) => {
                Ok(Expr::Length(Length::Difference(Box::new(a), Box::new(b))))
            }
            (Expr::Instant(_), Expr::Instant(second)) => Err(self.wrong(
                right_begin..self.at,
                format!("`{second}` is an instant; only a duration can be added to or taken from an instant"),
                "use one instant, and durations such as 5s or slack after it",
            )),
            (Expr::Length(_), Expr::Instant(instant)) => Err(self.wrong(
                begin..self.at,
                format!("a duration comes before the instant `{instant}`"),
                format!("write the instant first: {instant} + …"),
            )),
        }
    }

    fn product(&mut self) -> Result<Expr, ExprError> {
        let begin = self.skip_spaces();
        let digits = self.take_while(|c| c.is_ascii_digit());
        if !digits.is_empty() {
            self.skip_spaces();
            if self.peek() == Some('*') {
                self.at += 1;
                let count = digits.parse().map_err(|_| {
                    self.wrong(begin..begin + digits.len(), "the factor is too large", "use a smaller one")
                })?;
                let operand_begin = self.skip_spaces();
                return match self.operand()? {
                    Expr::Length(length) => Ok(Expr::Length(Length::Times(count, Box::new(length)))),
                    Expr::Instant(instant) => Err(self.wrong(
                        operand_begin..self.at,
                        format!("`{instant}` is an instant and cannot be multiplied"),
                        "multiply a duration: 2 * tolerationSeconds",
                    )),
                };
            }
            self.at = begin;
        }
        self.operand()
    }

    fn operand(&mut self) -> Result<Expr, ExprError> {
        let begin = self.skip_spaces();
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.close(begin)?;
                Ok(inner)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.duration(begin),
            Some(c) if c.is_alphabetic() || c == '_' => {
                let name = self.take_while(|c| c.is_alphanumeric() || c == '_');
                let after_name = self.at;
                self.skip_spaces();
                if self.peek() == Some('(') {
                    self.at += 1;
                    self.call(name, begin)
                } else {
                    self.at = after_name;
                    self.name(name, begin)
                }
            }
            Some('$') if self.text[begin..].starts_with("${") => {
                let end = self.text[begin..].find('}').map_or(self.text.len(), |length| begin + length + 1);
                let name = self.text[begin + 2..end].trim_end_matches('}');
                Err(self.wrong(
                    begin..end,
                    format!("`{name}` has no value before the trial runs, and none can be put in here"),
                    "rows of a table, `round` and names of forEach have one; a captured value stands inside lastRenewal(…), mark(…), request(…)",
                ))
            }
            Some(c) => {
                let end = self.at + c.len_utf8();
                Err(self.wrong(
                    begin..end,
                    format!("`{c}` is unexpected here"),
                    "an instant or a duration belongs here: outage, lastRenewal(a), 5s, slack",
                ))
            }
            None => Err(self.wrong(
                begin..self.text.len(),
                "the expression ends too early",
                "an instant or a duration belongs here; inside {…} and […] an expression with a comma needs quotes",
            )),
        }
    }

    fn duration(&mut self, begin: usize) -> Result<Expr, ExprError> {
        let text = self.take_while(|c| c.is_alphanumeric() || matches!(c, '.' | '_'));
        let error = match crate::duration::parse(text) {
            Ok(length) => return Ok(Expr::Length(Length::Fixed(length))),
            Err(error) => error,
        };
        let end = self.at;
        self.skip_spaces();
        let unit = self.take_while(char::is_alphabetic);
        if text.bytes().all(|byte| byte.is_ascii_digit()) && crate::duration::unit_of(unit).is_some() {
            let remedy = duration_remedy(&format!("{text}{unit}"));
            let message = format!("a blank stands between `{text}` and its unit `{unit}`");
            return Err(self.wrong(begin..self.at, message, remedy));
        }
        self.at = end;
        if let Some(error) = self.clock(begin, end) {
            return Err(error);
        }
        let (message, remedy) = match error {
            DurationError::OutOfRange { .. } => (error.to_string(), "write one between these".to_owned()),
            DurationError::NoNumber { .. } => (format!("`{text}` is no duration"), duration_remedy(text)),
            DurationError::BareNumber { .. } | DurationError::UnknownUnit { .. } => {
                (error.to_string(), duration_remedy(text))
            }
        };
        Err(self.wrong(begin..end, message, remedy))
    }

    /// What is wrong with `1:30` or a date, of which only the first number was read.
    fn clock(&mut self, begin: usize, end: usize) -> Option<ExprError> {
        let whole = self.text[begin..].split_whitespace().next().unwrap_or_default();
        let number = |text: &str| text.parse::<u64>().ok();
        let parts: Vec<&str> = whole.split(':').collect();
        let (message, remedy) = match parts.as_slice() {
            [first, second] if number(first).is_some() && number(second).is_some() => (
                format!("`{whole}` is no duration"),
                format!("write {first}m{second}s, or {first}h{second}m"),
            ),
            [first, second, third] if [first, second, third].iter().all(|part| number(part).is_some()) => {
                (format!("`{whole}` is no duration"), format!("write {first}h{second}m{third}s"))
            }
            _ if end == begin + 4 && is_date(whole) => (
                format!("`{whole}` is a date, and a trial knows none"),
                "write how long after a step: outage + 3s, or start + 3s".to_owned(),
            ),
            _ => return None,
        };
        Some(self.wrong(begin..begin + whole.len(), message, remedy))
    }

    fn name(&mut self, name: &str, begin: usize) -> Result<Expr, ExprError> {
        if let Some(constant) = Constant::named(name) {
            return Ok(Expr::Length(Length::Constant(constant)));
        }
        match name {
            "start" => return Ok(Expr::Instant(Instant::Start)),
            "begin" => return Ok(Expr::Instant(Instant::Begin)),
            "serving" => return Ok(Expr::Instant(Instant::Serving)),
            "lastRenewal" | "stamp" | "mark" | "request" | "max" | "min" => {
                return Err(self.wrong(
                    begin..self.at,
                    format!("`{name}` needs arguments"),
                    format!("write {}", usage(name)),
                ));
            }
            _ => {}
        }
        self.step_name(name, begin)?;
        Ok(Expr::Instant(Instant::Named(name.to_owned())))
    }

    /// Checks that a step bears the name.
    fn step_name(&self, name: &str, begin: usize) -> Result<(), ExprError> {
        let Some(names) = self.names else { return Ok(()) };
        if names.contains(name) {
            return Ok(());
        }
        let named: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut known = named.clone();
        known.extend(["start", "begin", "serving"]);
        known.extend(Constant::ALL.map(Constant::name));
        let hint = if matches!(name, "L" | "N" | "T" | "C" | "R" | "W" | "S") {
            "constants are words: leaseDuration, noExecuteDelay, tolerationSeconds, checkPeriod, retryPeriod, controllerPeriod, slack".to_owned()
        } else if let Some(duration) = iso_duration(name) {
            format!("write {duration}")
        } else {
            match crate::mistake::nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "no step has a name; give one with `as:`".to_owned(),
                None => format!("named steps are {}; durations need a unit", named.join(", ")),
            }
        };
        Err(self.wrong(
            begin..begin + name.len(),
            format!("`{name}` is neither a step's name nor a constant"),
            hint,
        ))
    }
}

/// What to do about a factor or a divisor behind a duration: `10s * 2`, `10s / 2`.
fn factor_remedy(expr: &Expr, rest: &str) -> Option<String> {
    let Expr::Length(length) = expr else { return None };
    let rest = rest.trim();
    if let Some(factor) = rest.strip_prefix('*') {
        let whole = factor.trim().parse::<u32>().is_ok();
        let factor = if whole { factor.trim() } else { "2" };
        return Some(format!("a factor stands in front, and is whole: {factor} * {length}"));
    }
    let divisor = rest.strip_prefix('/')?.trim().parse::<u32>();
    Some(match (length, divisor) {
        (Length::Fixed(length), Ok(divisor)) if divisor > 0 && *length / divisor * divisor == *length => {
            format!("nothing is divided here: write {}", crate::duration::format(*length / divisor))
        }
        _ => "nothing is divided here: write the duration itself, such as 5s".to_owned(),
    })
}

/// Whether a text begins as dates do: `2026-01-31`.
fn is_date(text: &str) -> bool {
    let shape = text.bytes().take(10).map(|byte| if byte.is_ascii_digit() { '0' } else { char::from(byte) });
    shape.eq("0000-00-00".chars())
}

/// A duration as ISO 8601 writes it, in ours: `PT1M30S`.
fn iso_duration(name: &str) -> Option<String> {
    let text = name.strip_prefix("PT")?.to_lowercase();
    crate::duration::parse(&text).ok().map(|_| text)
}

/// A duration as it was most likely meant.
fn duration_remedy(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    match (number.parse::<u64>(), crate::duration::unit_of(unit)) {
        (Ok(number), _) if unit.is_empty() => format!("write {number}s or {number}ms"),
        (Ok(number), Some((many, unit))) => format!("write {}{unit}", number.saturating_mul(many)),
        // What follows a unit is the next smaller one: `5m30`.
        (Ok(_), None) if crate::duration::parse(&format!("{text}s")).is_ok() => format!("write {text}s"),
        (Ok(_) | Err(_), _) => "write for example 15s, 500ms or 1m30s".to_owned(),
    }
}
