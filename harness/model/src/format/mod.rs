//! The one way that scenario and rig files are laid out.
//!
//! A file is taken apart into entries with their comments, each mapping that a [`Shape`] describes is put into the
//! shape's order, and all of it is written again. Texts, numbers and quotes stay as they were written, and so does the
//! choice between block and flow style. What was written must mean what was read, comment for comment: where it would
//! not, the file is left alone.

mod comments;
mod emit;
mod take;

use serde_json::Value;

use crate::fragment::Fragment;
use crate::mistake::{Mistake, Mistakes};
use crate::rig::Rig;
use crate::scenario::Scenario;
use crate::shape::Shape;
use crate::yaml::{self, Node};

/// Lays out a scenario or rig file; files of other kinds keep the order of their keys.
///
/// What it does: two blanks a level, lists one level below their key; one blank after `:`, `,` and before a comment (more
/// stay, where comments are aligned), none inside brackets; keys in the order of the reference, a step's verb before its
/// `as`; single quotes become double ones where nothing has to be escaped; no blank at the end of a line, no two empty
/// lines, one end of line at the end. What spans several lines inside brackets or as one text is only moved.
///
/// # Errors
/// The mistakes of a file that is no YAML, or not ours; nothing else is looked at, so a file with a wrong key is laid out.
pub fn format(file: &str, source: &str) -> Result<String, Mistakes> {
    let unix = source.replace("\r\n", "\n");
    let mut mistakes = Vec::new();
    let root = yaml::parse_one(&unix, &mut mistakes);
    let Some(root) = root.filter(|_| mistakes.is_empty()) else {
        return Err(Mistakes::new(file, &unix, mistakes));
    };
    let text = written(&unix, &root).map_err(|mistake| Mistakes::new(file, &unix, vec![mistake]))?;
    if meaning(&text).as_ref() != Some(&root.to_value()) || comments::texts(&text) != comments::texts(&unix) {
        let mistake =
            Mistake::new(0..0, "this file is written in a way that cannot be laid out without changing it")
                .remedy(
                    "write it more plainly, for example without keys that span lines; it was left as it is",
                );
        return Err(Mistakes::new(file, &unix, vec![mistake]));
    }
    Ok(text)
}

fn written(source: &str, root: &Node) -> Result<String, Mistake> {
    let shape = shape_of(root);
    let document = take::document(source, root, shape)?;
    Ok(emit::document(&document))
}

/// What a file is said to be by its `kind`.
fn shape_of(root: &Node) -> Option<&'static Shape> {
    let kind = root.get("kind").and_then(Node::as_text)?;
    [("Scenario", Scenario::shape()), ("Fragment", Fragment::shape()), ("Rig", Rig::shape())]
        .into_iter()
        .find(|(name, _)| *name == kind)
        .map(|(_, shape)| shape)
}

/// The value of a source without mistakes.
fn meaning(source: &str) -> Option<Value> {
    let mut mistakes = Vec::new();
    let root = yaml::parse_one(source, &mut mistakes)?;
    mistakes.is_empty().then(|| root.to_value())
}
