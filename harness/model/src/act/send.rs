//! `send`: a line to a board's console.

use super::api::text;
use super::{BOARD, board};
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::yaml::Node;

/// Longest line that can be sent, in bytes: what a pipe takes whole or not at all.
pub const LONGEST_LINE: usize = 1024;

/// Sends a line to a board's console, as typed there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Send {
    /// The board.
    pub board: String,
    /// The line without its end, which is a line feed.
    pub line: String,
}

pub(crate) static SEND: Shape = Shape::new(
    "send",
    "Sends a line to a board's console.",
    &[BOARD, Field::required("line", FieldType::Text, "The line, without its end.").such_as("reboot")],
);

pub(crate) fn send(context: &mut Context<'_, '_>, node: &Node) -> Option<Send> {
    let fields = context.reader.open(node, &SEND)?;
    let board = fields.get("board").and_then(|node| board(context, node));
    let line_node = fields.get("line")?;
    let line = text(context, line_node)?;
    if line.contains(['\n', '\r']) {
        context.reader.wrong(
            &line_node.span,
            "there is a line break in the line",
            "write a `send` for each line",
        );
    } else if line.len() > LONGEST_LINE {
        context.reader.wrong(
            &line_node.span,
            format!("the line has {} bytes, and a console takes {LONGEST_LINE} at once", line.len()),
            "send it in several lines",
        );
    }
    Some(Send { board: board?, line })
}
