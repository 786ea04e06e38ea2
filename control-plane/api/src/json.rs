//! A JSON reader that keeps what `serde_json::Value` forgets: the order of fields, and fields that occur twice.
//!
//! Strict decoding reports unknown and duplicate fields in document order, and syntax errors are part of the wire
//! dialect too: they are worded as Go's scanner words them. Also short paths into JSON values.

use std::str::FromStr;

use serde_json::{Map, Number, Value};

/// How deeply arrays and objects may nest; real objects stay far below.
pub(crate) const MAX_DEPTH: usize = 128;

/// A JSON value in document order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// What Go calls this value in `cannot unmarshal …`.
    pub(crate) fn go_kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// The last value of a field, as decoding sees it.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        match self {
            Self::Object(fields) => fields.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => None,
        }
    }

    /// The plain value; of fields that occur twice the last one stays.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(flag),
            Self::Number(number) => Value::Number(number),
            Self::Text(text) => Value::String(text),
            Self::List(items) => items.into_iter().map(Node::into_value).collect(),
            Self::Object(fields) => {
                Value::Object(fields.into_iter().map(|(key, value)| (key, value.into_value())).collect())
            }
        }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(flag),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Node::from).collect()),
            Value::Object(fields) => {
                Self::Object(fields.into_iter().map(|(key, value)| (key, Node::from(value))).collect())
            }
        }
    }
}

/// Reads one JSON document. Errors are sentences of Go's `encoding/json`.
pub(crate) fn parse(body: &[u8]) -> Result<Node, String> {
    let text = String::from_utf8_lossy(body);
    let mut reader = Reader { text: &text, at: 0 };
    let node = reader.value(0)?;
    reader.space();
    match reader.peek() {
        None => Ok(node),
        Some(ch) => Err(reader.unexpected(ch, "after top-level value")),
    }
}

/// Why bytes are no JSON, as Go says it; nothing when they are. Go reads bytes, so one outside ASCII stands for a character alone.
pub fn syntax_error(bytes: &[u8]) -> Option<String> {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    parse(text.as_bytes()).err()
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Result<char, String> {
        let ch = self.peek().ok_or_else(end_of_input)?;
        self.at += ch.len_utf8();
        Ok(ch)
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|ch| matches!(ch, ' ' | '\t' | '\r' | '\n')) {
            self.at += 1;
        }
    }

    /// The next character that is not white space.
    fn token(&mut self) -> Result<char, String> {
        self.space();
        self.next()
    }

    fn unexpected(&self, ch: char, context: &str) -> String {
        format!("invalid character {} {context}", quote_char(ch))
    }

    fn value(&mut self, depth: usize) -> Result<Node, String> {
        if depth > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        match self.token()? {
            '{' => self.object(depth),
            '[' => self.list(depth),
            '"' => Ok(Node::Text(self.string()?)),
            't' => self.literal("true", Node::Bool(true)),
            'f' => self.literal("false", Node::Bool(false)),
            'n' => self.literal("null", Node::Null),
            ch @ ('-' | '0'..='9') => self.number(ch),
            ch => Err(self.unexpected(ch, "looking for beginning of value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Node, String> {
        let mut fields = Vec::new();
        loop {
            match self.token()? {
                '"' => {}
                '}' if fields.is_empty() => return Ok(Node::Object(fields)),
                ch => return Err(self.unexpected(ch, "looking for beginning of object key string")),
            }
            let key = self.string()?;
            match self.token()? {
                ':' => {}
                ch => return Err(self.unexpected(ch, "after object key")),
            }
            fields.push((key, self.value(depth + 1)?));
            match self.token()? {
                ',' => {}
                '}' => return Ok(Node::Object(fields)),
                ch => return Err(self.unexpected(ch, "after object key:value pair")),
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Node, String> {
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(Node::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.token()? {
                ',' => {}
                ']' => return Ok(Node::List(items)),
                ch => return Err(self.unexpected(ch, "after array element")),
            }
        }
    }

    fn literal(&mut self, word: &str, node: Node) -> Result<Node, String> {
        for expected in word.chars().skip(1) {
            let ch = self.next()?;
            if ch != expected {
                return Err(self.unexpected(ch, &format!("in literal {word} (expecting '{expected}')")));
            }
        }
        Ok(node)
    }

    fn string(&mut self) -> Result<String, String> {
        let mut out = String::new();
        loop {
            match self.next()? {
                '"' => return Ok(out),
                '\\' => out.push(self.escape()?),
                ch if (ch as u32) < 0x20 => return Err(self.unexpected(ch, "in string literal")),
                ch => out.push(ch),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        Ok(match self.next()? {
            ch @ ('"' | '\\' | '/') => ch,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.unicode()?,
            ch => return Err(self.unexpected(ch, "in string escape code")),
        })
    }

    /// The character of a `\u` escape; halves of a pair that stand alone become U+FFFD.
    fn unicode(&mut self) -> Result<char, String> {
        let first = self.hex()?;
        if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            let back = self.at;
            self.at += 2;
            let second = self.hex()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..4 {
            let ch = self.next()?;
            let digit = ch.to_digit(16);
            code = code * 16
                + digit.ok_or_else(|| self.unexpected(ch, "in \\u hexadecimal character escape"))?;
        }
        Ok(code)
    }

    fn number(&mut self, first: char) -> Result<Node, String> {
        let start = self.at - 1;
        let lead = if first == '-' { self.digit("in numeric literal")? } else { first };
        if lead != '0' {
            self.digits();
        }
        if self.peek() == Some('.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        let text = &self.text[start..self.at];
        Number::from_str(text).map(Node::Number).map_err(|_| format!("number {text} out of range"))
    }

    fn digit(&mut self, context: &str) -> Result<char, String> {
        let ch = self.next()?;
        if ch.is_ascii_digit() { Ok(ch) } else { Err(self.unexpected(ch, context)) }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|ch| ch.is_ascii_digit()) {
            self.at += 1;
        }
    }
}

fn end_of_input() -> String {
    "unexpected end of JSON input".to_owned()
}

/// A character as Go's scanner quotes it.
fn quote_char(ch: char) -> String {
    match ch {
        '\'' => "'\\''".to_owned(),
        '"' => "'\"'".to_owned(),
        ch => {
            let quoted = crate::status::quote(&ch.to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

/// The value at a path of field names.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// The text at a path; empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The integer at a path.
pub(crate) fn int(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path).and_then(Value::as_i64)
}

/// The flag at a path; false where there is none.
pub(crate) fn flag(value: &Value, path: &[&str]) -> bool {
    at(value, path).and_then(Value::as_bool).unwrap_or_default()
}

/// The list at a path; empty where there is none.
pub(crate) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The object at a path, where there is one.
pub(crate) fn object<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Map<String, Value>> {
    at(value, path).and_then(Value::as_object)
}

/// The object at a path, made where it is missing; anything else in its place is replaced.
pub(crate) fn object_mut<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    let mut here = value;
    for name in path {
        here = as_object(here).entry(*name).or_insert_with(|| Value::Object(Map::new()));
    }
    as_object(here)
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            unreachable!("made an object above")
        }
    }
}

/// Sets a field that is missing or null.
pub(crate) fn set_default(map: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    if map.get(name).is_none_or(Value::is_null) {
        map.insert(name.to_owned(), value.into());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn syntax_errors_are_worded_as_go_words_them() {
        let cases = [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("{\"a\":1,", "unexpected end of JSON input"),
            ("hello", "invalid character 'h' looking for beginning of value"),
            ("{a", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 2}", "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("tru!", "invalid character '!' in literal true (expecting 'e')"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("\"\\q\"", "invalid character 'q' in string escape code"),
            ("\"\\u12x\"", "invalid character 'x' in \\u hexadecimal character escape"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("01", "invalid character '1' after top-level value"),
            ("'a'", "invalid character '\\'' looking for beginning of value"),
        ];
        for (body, message) in cases {
            assert_eq!(parse(body.as_bytes()).unwrap_err(), message, "{body}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(deep.as_bytes()).unwrap_err(), "exceeded max depth");
    }

    #[test]
    fn order_and_repeats_are_kept() {
        let node = parse(br#"{"b":1,"a":2,"b":"\u00e9\ud83d\ude00\ud800"}"#).unwrap();
        let Node::Object(fields) = &node else { panic!("{node:?}") };
        assert_eq!(fields.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["b", "a", "b"]);
        assert_eq!(node.get("b"), Some(&Node::Text("é😀\u{fffd}".to_owned())));
        assert_eq!(node.into_value(), json!({"a": 2, "b": "é😀\u{fffd}"}));
    }

    pub(crate) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~é\"\\\\]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-z$]{1,6}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_what_serde_writes(value in any_json()) {
            prop_assert_eq!(parse(value.to_string().as_bytes()).map(Node::into_value), Ok(value));
        }

        #[test]
        fn agrees_with_serde_on_what_is_json(body in "[\\[\\]{}\":,0-9a-z .+\\-\\\\\n]{0,24}") {
            prop_assert_eq!(parse(body.as_bytes()).is_ok(), serde_json::from_str::<Value>(&body).is_ok());
        }
    }
}
