//! `flash`: puts an image on a board and starts it.

use super::{BOARD, board};
use crate::scenario::read_name;
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::yaml::Node;

/// Puts an image on a board, which has no power meanwhile, and starts the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flash {
    /// The board.
    pub board: String,
    /// The image by its name in the rig file; the one that the rig's boards begin with if absent.
    pub image: Option<String>,
    /// Whether what the board has stored is erased, too.
    pub erase: bool,
}

pub(crate) static FLASH: Shape = Shape::new(
    "flash",
    "Puts an image on a board and starts it.",
    &[
        BOARD,
        Field::optional(
            "image",
            FieldType::Text,
            "Name of an image in the rig file; the one its boards begin with if left out.",
        )
        .such_as("previous"),
        Field::optional("erase", FieldType::Flag, "Whether what the board has stored is erased, too.")
            .usually("false"),
    ],
);

pub(crate) fn flash(context: &mut Context<'_, '_>, node: &Node) -> Option<Flash> {
    let fields = context.reader.open(node, &FLASH)?;
    let board = fields.get("board").and_then(|node| board(context, node));
    let image = fields.get("image").map(|node| read_name(context.reader, node));
    let erase = fields.get("erase").map_or(Some(false), |node| context.reader.flag(node));
    Some(Flash { board: board?, image: image.map_or(Some(None), |image| image.map(Some))?, erase: erase? })
}
