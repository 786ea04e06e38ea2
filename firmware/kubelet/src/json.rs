//! Writes JSON straight into a string: requests are a few hundred bytes, and a tree of values would
//! cost a board more heap than the text. Commas and escapes are its business, nesting the caller's.

use alloc::format;
use alloc::string::String;

/// A JSON text in the making.
#[derive(Debug, Default)]
pub(crate) struct Json {
    out: String,
    comma: bool,
}

impl Json {
    /// One object, written by `fields`.
    pub(crate) fn document(fields: impl FnOnce(&mut Json)) -> String {
        let mut json = Json::default();
        json.object(fields);
        json.out
    }

    /// An object as a value.
    pub(crate) fn object(&mut self, fields: impl FnOnce(&mut Json)) {
        self.open('{');
        fields(self);
        self.close('}');
    }

    /// An array as a value.
    pub(crate) fn array(&mut self, items: impl FnOnce(&mut Json)) {
        self.open('[');
        items(self);
        self.close(']');
    }

    /// The key of the value that is written next.
    pub(crate) fn key(&mut self, key: &str) -> &mut Json {
        self.string(key);
        self.out.push(':');
        self.comma = false;
        self
    }

    /// A string value.
    pub(crate) fn string(&mut self, value: &str) {
        self.separate();
        self.out.push('"');
        for c in value.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                c if (c as u32) < 0x20 => self.out.push_str(&format!("\\u{:04x}", c as u32)),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    /// A number.
    pub(crate) fn number(&mut self, value: i64) {
        self.raw(&format!("{value}"));
    }

    /// A boolean.
    pub(crate) fn boolean(&mut self, value: bool) {
        self.raw(if value { "true" } else { "false" });
    }

    /// A null: in a merge patch it removes the field.
    pub(crate) fn null(&mut self) {
        self.raw("null");
    }

    /// A field whose value is a string.
    pub(crate) fn field(&mut self, key: &str, value: &str) {
        self.key(key).string(value);
    }

    /// Text that is JSON already.
    pub(crate) fn raw(&mut self, value: &str) {
        self.separate();
        self.out.push_str(value);
    }

    fn separate(&mut self) {
        if self.comma {
            self.out.push(',');
        }
        self.comma = true;
    }

    fn open(&mut self, bracket: char) {
        self.separate();
        self.out.push(bracket);
        self.comma = false;
    }

    fn close(&mut self, bracket: char) {
        self.out.push(bracket);
        self.comma = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn objects_arrays_and_scalars_nest() {
        let text = Json::document(|j| {
            j.field("a", "x\"\\\n\u{1}é");
            j.key("b").array(|j| {
                j.number(-1);
                j.object(|_| {});
                j.boolean(true);
            });
            j.key("c").null();
        });
        assert_eq!(text, "{\"a\":\"x\\\"\\\\\\n\\u0001é\",\"b\":[-1,{},true],\"c\":null}");
    }

    proptest! {
        #[test]
        fn any_string_comes_back(value in ".*") {
            let text = Json::document(|j| j.field("k", &value));
            let read: alloc::collections::BTreeMap<String, String> = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read["k"], &value);
        }
    }
}
