//! `power`: what is done to a board's power.

use super::{BOARD, board};
use crate::reader::word;
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::yaml::Node;

/// What is done to a board's power.
#[derive(Debug, Clone, PartialEq)]
pub struct Power {
    /// The board.
    pub board: String,
    /// What is done.
    pub act: PowerAct,
}

super::words! {
    /// What can be done to a board's power.
    PowerAct {
        /// Power off.
        Cut "cut";
        /// Power on.
        Restore "restore";
        /// Off and on again.
        Cycle "cycle";
        /// The processor stops.
        Hang "hang";
        /// It goes on.
        Resume "resume";
    }
}

pub(crate) static POWER: Shape = Shape::new(
    "power",
    "Switches a board's power, or stops its processor.",
    &[BOARD, Field::required("do", FieldType::Word(PowerAct::WORDS), "What is done.")],
);

pub(crate) fn power(context: &mut Context<'_, '_>, node: &Node) -> Option<Power> {
    let fields = context.reader.open(node, &POWER)?;
    let board = fields.get("board").and_then(|node| board(context, node));
    let act = word(context.reader, fields.get("do")?, &PowerAct::ALL, PowerAct::name);
    Some(Power { board: board?, act: act? })
}
