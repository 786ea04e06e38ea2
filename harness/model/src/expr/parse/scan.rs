//! Going through the text of an expression, sign by sign.

use std::ops::Range;

use super::{ExprError, Parser};

impl<'a> Parser<'a> {
    pub(super) fn comma(&mut self) -> bool {
        self.skip_spaces();
        let found = self.peek() == Some(',');
        self.at += usize::from(found);
        found
    }

    pub(super) fn close(&mut self, opened: usize) -> Result<(), ExprError> {
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

    pub(super) fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// Goes past spaces and returns the new place.
    pub(super) fn skip_spaces(&mut self) -> usize {
        self.take_while(char::is_whitespace);
        self.at
    }

    pub(super) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    pub(super) fn wrong(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> ExprError {
        ExprError { span, message: message.into(), remedy: remedy.into() }
    }
}
