//! Mistakes in files that people write: where, what, and what would be right.
//!
//! Readers collect mistakes and go on, so that a person sees all of a file's mistakes at once.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};

/// So many mistakes of a file are told. Whoever has more of them mends the first ones first.
pub const MAX_TOLD: usize = 100;

/// The message about the first anchor, alias or merge of a file.
pub(crate) const ANCHORS: &str = "anchors, aliases and merges (`&`, `*`, `<<`) are not used in these files";

/// No message is longer, in bytes: what stands in a file may be.
const MAX_MESSAGE: usize = 1000;

/// How a message about a bare word begins that is a boolean to some readers of YAML.
pub(crate) const TRAP: &str = "a bare `";

/// One mistake, at a range of bytes of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub remedy: Option<String>,
}

impl Mistake {
    /// A mistake without a remedy yet.
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Mistake {
        Mistake { span, message: shortened(harmless(&message.into())), remedy: None }
    }

    /// Whether it is about a bare word that YAML's readers take for different things.
    fn is_trap(&self) -> bool {
        self.message.starts_with(TRAP)
    }

    /// Says what would be right.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Mistake {
        self.remedy = Some(shortened(harmless(&remedy.into())));
        self
    }
}

/// The text, or its begin where it is too long.
fn shortened(mut text: String) -> String {
    if text.len() > MAX_MESSAGE {
        let end = (0..=MAX_MESSAGE).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The text with stand-ins, of as many bytes, for signs that a terminal obeys instead of showing them.
fn harmless(text: &str) -> String {
    let mut signs = text.chars().peekable();
    let mut shown = String::with_capacity(text.len());
    while let Some(sign) = signs.next() {
        shown.push(match sign {
            '\n' | '\t' => sign,
            '\r' if signs.peek() == Some(&'\n') => sign,
            // The direction of writing.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
            sign if sign.is_control() => {
                if sign.len_utf8() == 1 {
                    '?'
                } else {
                    '¿'
                }
            }
            sign => sign,
        });
    }
    shown
}

/// All mistakes of one file. As a miette diagnostic it shows each with the source around it. As plain
/// text it says how many there are (`{}`), or each on a line of its own (`{:#}`):
/// `FILE:LINE:COLUMN: what is wrong; what would be right`.
///
/// The same for what is probably not meant so: warnings.
#[derive(Debug, Clone)]
pub struct Mistakes {
    file: String,
    source: String,
    severity: Severity,
    list: Vec<Shown>,
}

/// A mistake together with its source, as miette wants it.
#[derive(Debug, Clone)]
struct Shown {
    mistake: Mistake,
    severity: Severity,
    source: Arc<NamedSource<String>>,
}

impl Mistakes {
    /// Sorts mistakes by place, drops repetitions and leaves out what is beyond [`MAX_TOLD`], saying so. Where there is
    /// none, one says that.
    pub fn new(file: &str, source: &str, mistakes: Vec<Mistake>) -> Mistakes {
        Mistakes::of(Severity::Error, file, source, mistakes)
    }

    /// The same of what is probably not meant so.
    pub fn warnings(file: &str, source: &str, mistakes: Vec<Mistake>) -> Mistakes {
        Mistakes::of(Severity::Warning, file, source, mistakes)
    }

    fn of(severity: Severity, file: &str, source: &str, mut mistakes: Vec<Mistake>) -> Mistakes {
        mistakes.sort_by(|a, b| {
            (a.span.start, a.span.end, &a.message).cmp(&(b.span.start, b.span.end, &b.message))
        });
        mistakes.dedup();
        if mistakes.is_empty() {
            mistakes.push(
                Mistake::new(
                    0..0,
                    "this file is not taken, and why cannot be told: that is a fault of rigor",
                )
                .remedy("leave parts of the file out until it is taken, and report the part"),
            );
        }
        // What an anchor stands for is read even so; it says nothing of its own.
        let anchor =
            mistakes.iter().find(|mistake| mistake.message == ANCHORS).map(|found| found.span.clone());
        mistakes.retain(|mistake| anchor.as_ref() != Some(&mistake.span) || mistake.message == ANCHORS);
        // What is wrong with a word in its place says more than that readers of YAML disagree about it.
        let places: BTreeSet<(usize, usize)> = mistakes
            .iter()
            .filter(|mistake| !mistake.is_trap())
            .map(|mistake| (mistake.span.start, mistake.span.end))
            .collect();
        mistakes.retain(|mistake| {
            !(mistake.is_trap() && places.contains(&(mistake.span.start, mistake.span.end)))
        });
        if mistakes.len() > MAX_TOLD {
            let next = mistakes[MAX_TOLD].span.clone();
            mistakes.truncate(MAX_TOLD);
            let what = match severity {
                Severity::Error => "mistakes",
                Severity::Warning | Severity::Advice => "warnings",
            };
            mistakes.push(
                Mistake::new(
                    next,
                    format!("there are more than {MAX_TOLD} {what}; from here on they are not told"),
                )
                .remedy("mend those above first: often many come from one"),
            );
        }
        let named = Arc::new(NamedSource::new(file, harmless(source)).with_language("yaml"));
        let list = mistakes
            .into_iter()
            .map(|mistake| Shown { mistake, severity, source: Arc::clone(&named) })
            .collect();
        Mistakes { file: file.to_owned(), source: source.to_owned(), severity, list }
    }

    /// The mistakes in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.list.iter().map(|shown| &shown.mistake)
    }

    /// The file's name as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Line and column of a byte offset, both from 1; columns count characters.
    pub fn place(&self, offset: usize) -> (usize, usize) {
        place(&self.source, offset)
    }
}

/// Line and column of a byte offset of `source`, both from 1; columns count characters.
pub fn place(source: &str, offset: usize) -> (usize, usize) {
    let before = source.get(..offset.min(source.len())).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (line, column)
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            let what = match self.severity {
                Severity::Error => "mistake",
                Severity::Warning | Severity::Advice => "warning",
            };
            return match self.list.len() {
                1 => write!(f, "{} has a {what}", self.file),
                many => write!(f, "{} has {many} {what}s", self.file),
            };
        }
        for (index, mistake) in self.iter().enumerate() {
            let (line, column) = self.place(mistake.span.start);
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:{line}:{column}: {}", self.file, mistake.message)?;
            if let Some(remedy) = &mistake.remedy {
                write!(f, "; {remedy}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

impl Diagnostic for Mistakes {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.list.iter().map(|shown| shown as &dyn Diagnostic)))
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mistake.message)
    }
}

impl std::error::Error for Shown {}

impl Diagnostic for Shown {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.mistake.remedy.as_ref().map(|remedy| Box::new(remedy) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.source.as_ref())
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.mistake.span.start..self.mistake.span.end;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some("here".to_owned()), span))))
    }
}

/// The candidate nearest to `word`, if one is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= candidate.chars().count().max(3) / 3)
        .map(|(_, candidate)| candidate)
}

/// `did you mean …?`, or else all the candidates.
pub fn suggestion(word: &str, candidates: &[&str]) -> String {
    match nearest(word, candidates.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if candidates.is_empty() => "there is none here".to_owned(),
        None => format!("known are {}", candidates.join(", ")),
    }
}

/// Edits between two words: inserted, dropped, changed or swapped characters.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found() {
        let names = ["expect", "never", "always"];
        assert_eq!(nearest("exepct", names), Some("expect"));
        assert_eq!(nearest("Nevr", names), Some("never"));
        assert_eq!(nearest("cordon", names), None);
        assert_eq!(suggestion("cordon", &names), "known are expect, never, always");
    }

    #[test]
    fn a_file_that_is_not_taken_has_a_mistake() {
        let told = Mistakes::new("f", "x", Vec::new());
        assert_eq!(told.to_string(), "f has a mistake");
        assert!(told.iter().all(|mistake| mistake.remedy.is_some()));
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_told() {
        let odd = "a\u{1b}[31m\u{7f}\u{9b}\u{202e}\rb\r\n\tä";
        assert_eq!(harmless(odd), "a?[31m?¿\u{fffd}?b\r\n\tä");
        assert_eq!(harmless(odd).len(), odd.len());
        let told = Mistakes::new("f", odd, vec![Mistake::new(0..1, odd).remedy(odd)]);
        let told = format!("{told:#}{:?}", miette::Report::from(told.clone()));
        assert!(!told.contains(['\u{7f}', '\u{9b}', '\u{202e}']) && !told.contains("[31m\u{7f}"), "{told:?}");
    }

    #[test]
    fn what_is_beyond_a_hundred_is_left_out_and_said_to_be() {
        let source = "x\n".repeat(300);
        let many = (0..300).map(|line| Mistake::new(2 * line..2 * line + 1, "wrong").remedy("be right"));
        let told = Mistakes::new("f", &source, many.rev().collect());
        let last = told.iter().last().expect("the note");
        assert_eq!((told.iter().count(), told.place(last.span.start)), (MAX_TOLD + 1, (MAX_TOLD + 1, 1)));
        assert_eq!(last.message, "there are more than 100 mistakes; from here on they are not told");
        let few = Mistakes::warnings("f", &source, vec![Mistake::new(0..1, "odd")]);
        assert_eq!((few.to_string().as_str(), few.severity()), ("f has a warning", Some(Severity::Warning)));
    }

    #[test]
    fn places_count_from_one_and_in_characters() {
        assert_eq!(place("a\nbüc", 5), (2, 3));
        assert_eq!(place("", 0), (1, 1));
        assert_eq!(place("ab", 99), (1, 3));
    }
}
