//! The hand-written parser of instant and duration expressions. It never panics on any text.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = [ WHOLE "*" ] operand
//! operand = DURATION | NAME | NAME "(" arguments ")" | "(" sum ")"
//! ```

use std::ops::Range;

use super::{Expr, Instant, Length};
use crate::constants::Constant;
use crate::expect::look::METHODS;
use crate::path::Path;

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
pub fn parse(text: &str, names: Option<&[&str]>) -> Result<Expr, ExprError> {
    let mut parser = Parser { text, at: 0, names, depth: 0 };
    let expr = parser.sum()?;
    parser.skip_spaces();
    if parser.at < text.len() {
        let rest = parser.at..text.len();
        return Err(parser.wrong(
            rest.clone(),
            format!("`{}` is too much here", &text[rest]),
            "after a complete expression only + or - may follow",
        ));
    }
    Ok(expr)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    names: Option<&'a [&'a str]>,
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
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
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
        let text = self.take_while(|c| c.is_alphanumeric() || c == '.');
        crate::duration::parse(text)
            .map(|length| Expr::Length(Length::Fixed(length)))
            .map_err(|error| self.wrong(begin..self.at, error.to_string(), duration_remedy(text)))
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
        if names.contains(&name) {
            return Ok(());
        }
        let mut known: Vec<&str> = names.to_vec();
        known.extend(["start", "begin", "serving"]);
        known.extend(Constant::ALL.map(Constant::name));
        let hint = if matches!(name, "L" | "N" | "T" | "C" | "R" | "W" | "S") {
            "constants are words: leaseDuration, noExecuteDelay, tolerationSeconds, checkPeriod, retryPeriod, controllerPeriod, slack".to_owned()
        } else {
            match crate::mistake::nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "no step has a name; give one with `as:`".to_owned(),
                None => format!("named steps are {}; durations need a unit", names.join(", ")),
            }
        };
        Err(self.wrong(
            begin..begin + name.len(),
            format!("`{name}` is neither a step's name nor a constant"),
            hint,
        ))
    }

    fn call(&mut self, function: &str, begin: usize) -> Result<Expr, ExprError> {
        match function {
            "lastRenewal" => {
                let node = self.word(function)?;
                let before = if self.comma() {
                    let before_begin = self.skip_spaces();
                    match self.sum()? {
                        Expr::Instant(before) => Some(Box::new(before)),
                        Expr::Length(length) => {
                            return Err(self.wrong(
                                before_begin..self.at,
                                format!("`{length}` is a duration; lastRenewal takes an instant here"),
                                "write lastRenewal(a, outage)",
                            ));
                        }
                    }
                } else {
                    None
                };
                self.close(begin)?;
                Ok(Expr::Instant(Instant::LastRenewal { node, before }))
            }
            "stamp" => {
                let name_begin = self.skip_spaces();
                let name = self.word(function)?;
                self.step_name(&name, name_begin)?;
                if !self.comma() {
                    return Err(self.wrong(
                        begin..self.at,
                        "stamp needs a path",
                        format!("write {}", usage("stamp")),
                    ));
                }
                let path_begin = self.skip_spaces();
                let text = self.raw_path();
                let path = Path::parse(text).map_err(|error| {
                    self.wrong(path_begin..self.at, error.to_string(), format!("write {}", usage("stamp")))
                })?;
                self.close(begin)?;
                Ok(Expr::Instant(Instant::Stamp { name, path }))
            }
            "mark" => {
                let name = self.word(function)?;
                let subject = if self.comma() { Some(self.word(function)?) } else { None };
                self.close(begin)?;
                Ok(Expr::Instant(Instant::Mark { name, subject }))
            }
            "request" => self.request(begin),
            "max" | "min" => self.extreme(function, begin),
            other => {
                let known = ["lastRenewal", "stamp", "mark", "request", "max", "min"];
                let remedy = crate::mistake::suggestion(other, &known);
                Err(self.wrong(begin..begin + other.len(), format!("there is no function `{other}`"), remedy))
            }
        }
    }

    /// `request(METHOD, path)`.
    fn request(&mut self, begin: usize) -> Result<Expr, ExprError> {
        let method_begin = self.skip_spaces();
        let method = self.word("request")?;
        if !METHODS.contains(&method.as_str()) {
            return Err(self.wrong(
                method_begin..self.at,
                format!("`{method}` is no method"),
                crate::mistake::suggestion(&method, METHODS),
            ));
        }
        if !self.comma() {
            return Err(self.wrong(
                begin..self.at,
                "request needs a path",
                format!("write {}", usage("request")),
            ));
        }
        let path_begin = self.skip_spaces();
        let path = self.raw_path().to_owned();
        if !path.starts_with(['/', '$']) || path.contains(char::is_whitespace) {
            return Err(self.wrong(
                path_begin..self.at,
                format!("`{path}` is no path of a request"),
                format!("write {}", usage("request")),
            ));
        }
        self.close(begin)?;
        Ok(Expr::Instant(Instant::Request { method, path }))
    }

    fn extreme(&mut self, function: &str, begin: usize) -> Result<Expr, ExprError> {
        let mut all = vec![self.sum()?];
        while self.comma() {
            all.push(self.sum()?);
        }
        self.close(begin)?;
        let mut instants = Vec::new();
        let mut lengths = Vec::new();
        for expr in all {
            match expr {
                Expr::Instant(instant) => instants.push(instant),
                Expr::Length(length) => lengths.push(length),
            }
        }
        match (function, instants.is_empty(), lengths.is_empty()) {
            ("max", false, true) => Ok(Expr::Instant(Instant::Latest(instants))),
            ("max", true, false) => Ok(Expr::Length(Length::Longest(lengths))),
            (_, false, true) => Ok(Expr::Instant(Instant::Earliest(instants))),
            (_, true, false) => Ok(Expr::Length(Length::Shortest(lengths))),
            (_, _, _) => Err(self.wrong(
                begin..self.at,
                format!("{function} mixes instants and durations"),
                "compare instants with instants: max(serving, outage + 5s)",
            )),
        }
    }

    /// A name such as a board's, a mark's or a step's.
    fn word(&mut self, function: &str) -> Result<String, ExprError> {
        let begin = self.skip_spaces();
        // A captured value's name stands as `${name}`.
        let word = self.take_while(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '$' | '{' | '}'));
        if word.is_empty() {
            return Err(self.wrong(
                begin..self.at,
                format!("a name is missing in {function}(…)"),
                format!(
                    "write {}; inside {{…}} and […] an expression with a comma needs quotes",
                    usage(function)
                ),
            ));
        }
        Ok(word.to_owned())
    }

    /// Everything up to the closing parenthesis that is not inside brackets.
    fn raw_path(&mut self) -> &'a str {
        let begin = self.at;
        let (mut brackets, mut quoted) = (0_usize, false);
        while let Some(c) = self.peek() {
            match c {
                '"' => quoted = !quoted,
                '[' if !quoted => brackets += 1,
                ']' if !quoted => brackets = brackets.saturating_sub(1),
                ')' if !quoted && brackets == 0 => break,
                _ => {}
            }
            self.at += c.len_utf8();
        }
        self.text[begin..self.at].trim_end()
    }

    fn comma(&mut self) -> bool {
        self.skip_spaces();
        let found = self.peek() == Some(',');
        self.at += usize::from(found);
        found
    }

    fn close(&mut self, opened: usize) -> Result<(), ExprError> {
        self.skip_spaces();
        if self.peek() == Some(')') {
            self.at += 1;
            return Ok(());
        }
        Err(self.wrong(
            opened..self.at,
            "a closing parenthesis is missing",
            "close it; inside {…} and […] an expression with a comma needs quotes",
        ))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// Goes past spaces and returns the new place.
    fn skip_spaces(&mut self) -> usize {
        self.take_while(char::is_whitespace);
        self.at
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn wrong(&self, span: Range<usize>, message: impl Into<String>, remedy: impl Into<String>) -> ExprError {
        ExprError { span, message: message.into(), remedy: remedy.into() }
    }
}

/// How a function is written.
fn usage(function: &str) -> &'static str {
    match function {
        "lastRenewal" => "lastRenewal(a) or lastRenewal(a, outage)",
        "stamp" => "stamp(tainted, spec.taints[effect=NoExecute].timeAdded)",
        "mark" => "mark(heartbeats-stopped, hollow-1)",
        "request" => "request(POST, /api/v1/namespaces/default/pods)",
        _ => "max(x, y) or min(x, y)",
    }
}

fn duration_remedy(text: &str) -> String {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("write {text}s or {text}ms")
    } else {
        "write for example 15s, 500ms or 1m30s".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: &[&str] = &["outage", "tainted"];

    #[test]
    fn expressions_are_read_and_written_back() {
        let check = |text: &str, expected: &str| {
            let shown = match parse(text, Some(NAMES)).expect(text) {
                Expr::Instant(instant) => format!("instant {instant}"),
                Expr::Length(length) => format!("length {length}"),
            };
            assert_eq!(shown, expected, "{text}");
        };
        check("outage", "instant outage");
        check("lastRenewal(a)+leaseDuration", "instant lastRenewal(a) + leaseDuration");
        check(" lastRenewal( n-1 , outage ) - 500ms", "instant lastRenewal(n-1, outage) - 500ms");
        check(
            "stamp(tainted, spec.taints[key=a.b/c,effect=NoExecute].timeAdded) + 2 * tolerationSeconds",
            "instant stamp(tainted, spec.taints[key=a.b/c,effect=NoExecute].timeAdded) + 2 * tolerationSeconds",
        );
        check("max(serving, outage + 5s) + (slack + 1s)", "instant max(serving, outage + 5s) + (slack + 1s)");
        check("retryPeriod + slack", "length retryPeriod + slack");
        check("2 * (checkPeriod - slack)", "length 2 * (checkPeriod - slack)");
        check("min(1s, 2s)", "length min(1s, 2s)");
        check("mark(heartbeats-stopped, hollow-1)", "instant mark(heartbeats-stopped, hollow-1)");
        check(
            "request( POST , /api/v1/namespaces/*/pods?x=1 )+1s",
            "instant request(POST, /api/v1/namespaces/*/pods?x=1) + 1s",
        );
        check("lastRenewal(${node}) + 1s", "instant lastRenewal(${node}) + 1s");
        check("mark(stopped, ${node})", "instant mark(stopped, ${node})");
        check("1m30s", "length 1m30s");
        check("begin + 1s - 2s", "instant begin + 1s - 2s");
    }

    #[test]
    fn mistakes_say_where_and_what_would_be_right() {
        let mut gallery = String::new();
        for text in [
            "",
            "5",
            "5 + slack",
            "outage + outage",
            "5s + outage",
            "2 * outage",
            "outrage",
            "outage 5s",
            "L + slack",
            "lastRenewal",
            "lastRenewal()",
            "lastRenewal(a",
            "stamp(tainted)",
            "stamp(tainted, spec..x)",
            "max(1s, outage)",
            "leaseduration",
            "later(outage)",
            "5sec",
            "(outage",
            "outage + ",
            "99999999999 * 1s",
            "+ 5s",
            "stamp(x, a)",
            "request(FETCH, /api)",
            "request(GET)",
            "request(GET, api)",
            "request(GET, /a b)",
        ] {
            let error = parse(text, Some(NAMES)).expect_err(text);
            gallery += &format!(
                "{text:28} {:>2}..{:<2} {error}; {}\n",
                error.span.start, error.span.end, error.remedy
            );
        }
        insta::assert_snapshot!(gallery);
    }

    #[test]
    fn deep_nesting_is_refused() {
        let text = "(".repeat(100_000);
        assert_eq!(parse(&text, None).expect_err("too deep").message, "too deeply nested");
    }

    proptest! {
        #[test]
        fn any_text_is_an_expression_or_an_error(text in ".{0,60}") {
            let _ = parse(&text, None);
        }

        #[test]
        fn texts_of_the_right_words_too(words in proptest::collection::vec(
            proptest::sample::select(vec!["outage", "+", "-", "5s", "*", "2", "(", ")", ",", "max(", "stamp(", "lastRenewal(a", "slack", "[", "]", "\"", "é"]),
            0..12,
        )) {
            let text = words.join(" ");
            if let Ok(Expr::Instant(instant)) = parse(&text, None) {
                prop_assert_eq!(parse(&instant.to_string(), None), Ok(Expr::Instant(instant)));
            }
        }
    }
}
