//! Functions of instants, and what stands in their parentheses.

use super::{ExprError, Parser};
use crate::act::path::wrong_path;
use crate::expect::look::METHODS;
use crate::expr::{Expr, Instant, Length};
use crate::path::Path;
use crate::template;

impl<'a> Parser<'a> {
    pub(super) fn call(&mut self, function: &str, begin: usize) -> Result<Expr, ExprError> {
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
        if let Some(broken) = template::broken(&path) {
            return Err(self.wrong(
                path_begin..self.at,
                format!("`{}` stays as it is written: {}", broken.written, broken.why),
                format!("write ${{{}}}", broken.name.unwrap_or("namespace")),
            ));
        }
        if let Some((why, _)) = wrong_path(&path) {
            return Err(self.wrong(
                path_begin..self.at,
                format!("`{path}` is no path of a request: {why}"),
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
}

/// How a function is written.
pub(super) fn usage(function: &str) -> &'static str {
    match function {
        "lastRenewal" => "lastRenewal(a) or lastRenewal(a, outage)",
        "stamp" => "stamp(tainted, spec.taints[effect=NoExecute].timeAdded)",
        "mark" => "mark(heartbeats-stopped, hollow-1)",
        "request" => "request(POST, /api/v1/namespaces/default/pods)",
        _ => "max(x, y) or min(x, y)",
    }
}
