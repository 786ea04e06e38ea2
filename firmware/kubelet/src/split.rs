//! Cuts streams of JSON into the objects a board looks at one by one: the lines of a watch and the
//! items of a list. Each holds at most one object of a stated size; a larger one is skipped and
//! counted, whatever its length (KLET-06).

use alloc::vec::Vec;

/// Largest pod that is looked at, in bytes of JSON.
pub(crate) const MAX_OBJECT: usize = 16 * 1024;
/// Largest `metadata` of a list, in bytes.
const MAX_METADATA: usize = 1024;
const MAX_KEY: usize = 16;

/// A bounded buffer that remembers that it overflowed.
#[derive(Debug, Default)]
struct Bounded {
    bytes: Vec<u8>,
    overflowed: bool,
}

impl Bounded {
    fn push(&mut self, byte: u8, limit: usize) {
        if self.bytes.len() < limit && self.bytes.try_reserve(1).is_ok() {
            self.bytes.push(byte);
        } else {
            self.overflowed = true;
            self.bytes = Vec::new();
        }
    }

    /// What was collected, `None` when it was too much; empties the buffer.
    fn take(&mut self) -> Option<Vec<u8>> {
        let bytes = core::mem::take(&mut self.bytes);
        if core::mem::take(&mut self.overflowed) { None } else { Some(bytes) }
    }
}

/// Something cut out of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// A line of a watch, or an item of a list.
    Object(Vec<u8>),
    /// The `metadata` of a list.
    Metadata(Vec<u8>),
    /// An object that was larger than a board takes, or than it had heap for.
    Oversized,
}

/// Splits a watch body into lines.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    line: Bounded,
}

impl LineSplitter {
    /// Takes bytes off the front of `input` until a line is whole; `None` once all are taken.
    pub(crate) fn next(&mut self, input: &mut &[u8]) -> Option<Cut> {
        while let Some((byte, rest)) = input.split_first() {
            *input = rest;
            if *byte != b'\n' {
                self.line.push(*byte, MAX_OBJECT);
                continue;
            }
            match self.line.take() {
                Some(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Some(line) => return Some(Cut::Object(line)),
                None => return Some(Cut::Oversized),
            }
        }
        None
    }
}

/// What the splitter is collecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Nothing,
    Item,
    Metadata,
}

/// Splits the body of a list into its items and its metadata without ever holding the whole.
#[derive(Debug)]
pub(crate) struct ListSplitter {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// The last key (or string) of the outermost object.
    key: Bounded,
    in_items: bool,
    target: Target,
    collected: Bounded,
    broken: bool,
    complete: bool,
}

impl Default for ListSplitter {
    fn default() -> Self {
        ListSplitter {
            depth: 0,
            in_string: false,
            escaped: false,
            key: Bounded::default(),
            in_items: false,
            target: Target::Nothing,
            collected: Bounded::default(),
            broken: false,
            complete: false,
        }
    }
}

impl ListSplitter {
    /// Takes bytes off the front of `input` until something is whole; `None` once all are taken.
    pub(crate) fn next(&mut self, input: &mut &[u8]) -> Option<Cut> {
        while let Some((byte, rest)) = input.split_first() {
            *input = rest;
            if let Some(cut) = self.byte(*byte) {
                return Some(cut);
            }
        }
        None
    }

    /// Whether the outermost object was closed and nothing was amiss.
    pub(crate) fn complete(&self) -> bool {
        self.complete && !self.broken
    }

    fn byte(&mut self, byte: u8) -> Option<Cut> {
        if self.target != Target::Nothing {
            let limit = if self.target == Target::Item { MAX_OBJECT } else { MAX_METADATA };
            self.collected.push(byte, limit);
        }
        if self.in_string {
            self.string_byte(byte);
            return None;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 {
                    self.key = Bounded::default();
                }
            }
            b'{' | b'[' => self.opened(byte),
            b'}' | b']' => return self.closed(),
            _ if self.complete && !byte.is_ascii_whitespace() => self.broken = true,
            _ => {}
        }
        None
    }

    fn string_byte(&mut self, byte: u8) {
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
            return;
        }
        if self.depth == 1 {
            self.key.push(byte, MAX_KEY);
        }
    }

    fn opened(&mut self, byte: u8) {
        if self.depth == 0 && (byte != b'{' || self.complete) {
            self.broken = true;
        }
        self.depth = self.depth.saturating_add(1);
        let starts = if self.depth == 2 {
            let key = if self.key.overflowed { &[] } else { self.key.bytes.as_slice() };
            self.in_items = key == b"items" && byte == b'[';
            key == b"metadata" && byte == b'{'
        } else {
            false
        };
        let wanted = match (self.depth, starts) {
            (2, true) => Target::Metadata,
            (3, _) if self.in_items && byte == b'{' => Target::Item,
            _ => return,
        };
        self.target = wanted;
        self.collected = Bounded::default();
        self.collected.push(byte, MAX_OBJECT);
    }

    fn closed(&mut self) -> Option<Cut> {
        if self.depth == 0 {
            self.broken = true;
            return None;
        }
        let cut = match (self.depth, self.target) {
            (3, Target::Item) => Some(self.collected.take().map_or(Cut::Oversized, Cut::Object)),
            (2, Target::Metadata) => Some(self.collected.take().map_or(Cut::Oversized, Cut::Metadata)),
            _ => None,
        };
        if cut.is_some() {
            self.target = Target::Nothing;
        }
        self.depth -= 1;
        self.complete = self.depth == 0;
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::{String, ToString};
    use proptest::prelude::*;

    fn show(cut: Cut) -> String {
        match cut {
            Cut::Object(bytes) => format!("object {}", String::from_utf8_lossy(&bytes)),
            Cut::Metadata(bytes) => format!("metadata {}", String::from_utf8_lossy(&bytes)),
            Cut::Oversized => "oversized".to_string(),
        }
    }

    fn list(pieces: &[&[u8]]) -> (Vec<String>, bool) {
        let mut splitter = ListSplitter::default();
        let mut cuts = Vec::new();
        for piece in pieces {
            let mut input = *piece;
            while let Some(cut) = splitter.next(&mut input) {
                cuts.push(show(cut));
            }
        }
        (cuts, splitter.complete())
    }

    #[test]
    fn lists_give_their_items() {
        let check = |text: &str, expected: &[&str], complete: bool| {
            assert_eq!(
                list(&[text.as_bytes()]),
                (expected.iter().map(|e| e.to_string()).collect(), complete)
            );
        };
        let metadata = r#"metadata {"resourceVersion":"7"}"#;
        check(r#"{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[]}"#, &[metadata], true);
        check(
            r#"{"items":[{"a":"]}\"{"},{"items":[{}]}] ,"metadata":{"resourceVersion":"7"}}"#,
            &[r#"object {"a":"]}\"{"}"#, r#"object {"items":[{}]}"#, metadata],
            true,
        );
        check(r#"{"kind":"items","x":[{"a":1}]}"#, &[], true);
        check(r#"{"items":[{"a":1},"#, &[r#"object {"a":1}"#], false);
        check("[]", &[], false);
        check("}{", &[], false);
        check("{} x", &[], false);
    }

    #[test]
    fn an_oversized_item_is_skipped_alone() {
        let long = "x".repeat(MAX_OBJECT);
        let text = format!(r#"{{"items":[{{"a":"{long}"}},{{"b":1}}]}}"#);
        assert_eq!(
            list(&[text.as_bytes()]),
            (Vec::from(["oversized".to_string(), r#"object {"b":1}"#.to_string()]), true)
        );
    }

    #[test]
    fn lines_are_cut_and_long_ones_skipped() {
        let mut splitter = LineSplitter::default();
        let text = format!("one\n\n{}\n two\nrest", "x".repeat(MAX_OBJECT + 1));
        let mut input = text.as_bytes();
        let mut cuts = Vec::new();
        while let Some(cut) = splitter.next(&mut input) {
            cuts.push(show(cut));
        }
        assert_eq!(cuts, ["object one", "oversized", "object  two"]);
    }

    proptest! {
        #[test]
        fn cuts_of_the_bytes_make_no_difference(
            text in r#"(\{"items":\[|\{|\}|\[|\]|"|\\|,|:|"items"|"metadata"|[a-z]){0,40}"#,
            at in 0usize..200,
        ) {
            let bytes = text.as_bytes();
            let (front, back) = bytes.split_at(at.min(bytes.len()));
            prop_assert_eq!(list(&[front, back]), list(&[bytes]));
        }
    }
}
