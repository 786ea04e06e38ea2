//! Tokens of a label selector in a query string.

/// A token; `In` and `NotIn` are ordinary words where a key or a value is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Word,
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    GreaterThan,
    LessThan,
    Not,
    Open,
    Close,
    Comma,
    End,
}

const SYMBOLS: [(&str, Token); 9] = [
    // longer ones first: the longest match is taken
    ("==", Token::DoubleEquals),
    ("!=", Token::NotEquals),
    ("=", Token::Equals),
    ("!", Token::Not),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
    (">", Token::GreaterThan),
    ("<", Token::LessThan),
];

/// What the parser expects next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// A key or a value: `in` and `notin` are words.
    Values,
    /// An operator.
    Operator,
}

/// Reads tokens off a selector, with one token of lookahead.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// The next token and its text, which stays to be read.
    pub(super) fn peek(&self, context: Context) -> (Token, &'a str) {
        self.clone().next(context)
    }

    /// Takes the next token and its text; at the end [`Token::End`] and nothing, again and again.
    pub(super) fn next(&mut self, context: Context) -> (Token, &'a str) {
        let text = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if text.is_empty() {
            self.rest = text;
            return (Token::End, "");
        }
        if let Some((symbol, token)) = SYMBOLS.iter().find(|(symbol, _)| text.starts_with(symbol)) {
            let (symbol, rest) = text.split_at(symbol.len());
            self.rest = rest;
            return (*token, symbol);
        }
        let end = text.find([' ', '\t', '\r', '\n', '=', '!', '(', ')', ',', '>', '<']).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        let token = match (word, context) {
            ("in", Context::Operator) => Token::In,
            ("notin", Context::Operator) => Token::NotIn,
            _ => Token::Word,
        };
        (token, word)
    }
}
