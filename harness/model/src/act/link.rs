//! `link`: what is done to a board's link.

use std::time::Duration;

use super::{BOARD, board};
use crate::constants::Constants;
use crate::expr::Length;
use crate::reader::word;
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::yaml::Node;

/// What is done to a board's link.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// The board.
    pub board: String,
    /// What is done; a delay may be stated by constants.
    pub change: LinkChange<Length>,
}

super::words! {
    /// What can be done to a board's link.
    LinkAct {
        /// Nothing passes.
        Cut "cut";
        /// It passes again, as fast and as surely as before.
        Heal "heal";
        /// What passes takes longer.
        Delay "delay";
        /// Some of what is sent is lost.
        Loss "loss";
        /// What the board is sent becomes noise: no HTTP.
        Noise "noise";
        /// What the board is sent becomes HTTP whose bodies are no JSON.
        Garble "garble";
        /// What the board is sent becomes answers too large to be held.
        Swell "swell";
    }
}

/// What can be done to a board's link, with its amount.
///
/// A delay and a loss may be in force together, and with either of them garbage; each replaces what was said of it before, and
/// none mends a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkChange<D = Duration> {
    /// Nothing passes.
    Cut,
    /// It passes again; a delay, a loss and garbage end, too.
    Heal,
    /// Each packet takes so much longer, in each direction.
    Delay(D),
    /// So many percent of the packets are lost, in each direction; 0 to 100.
    Loss(u8),
    /// What the board is sent is garbage; what it sends is not.
    Garbage(Garbage),
}

/// What becomes of the bytes that a board is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Garbage {
    /// Noise: no HTTP.
    Noise,
    /// HTTP as it was, with bodies that are no JSON.
    Bodies,
    /// HTTP and JSON as they were, with bodies and objects that are larger than the whole memory of a board.
    Swollen,
}

impl<D> LinkChange<D> {
    /// The word for it.
    pub fn act(&self) -> LinkAct {
        match self {
            LinkChange::Cut => LinkAct::Cut,
            LinkChange::Heal => LinkAct::Heal,
            LinkChange::Delay(_) => LinkAct::Delay,
            LinkChange::Loss(_) => LinkAct::Loss,
            LinkChange::Garbage(Garbage::Noise) => LinkAct::Noise,
            LinkChange::Garbage(Garbage::Bodies) => LinkAct::Garble,
            LinkChange::Garbage(Garbage::Swollen) => LinkAct::Swell,
        }
    }
}

impl LinkChange<Length> {
    /// With the delay that these constants make of it.
    pub fn resolve(&self, constants: &Constants) -> LinkChange {
        match self {
            LinkChange::Cut => LinkChange::Cut,
            LinkChange::Heal => LinkChange::Heal,
            LinkChange::Delay(by) => LinkChange::Delay(by.resolve(constants)),
            LinkChange::Loss(percent) => LinkChange::Loss(*percent),
            LinkChange::Garbage(garbage) => LinkChange::Garbage(*garbage),
        }
    }
}

pub(crate) static LINK: Shape = Shape::new(
    "link",
    "Cuts, delays, thins or heals a board's link, or makes garbage of what the board is sent.",
    &[
        BOARD,
        Field::required("do", FieldType::Word(LinkAct::WORDS), "What is done."),
        Field::optional("by", FieldType::Duration, "With delay: how much longer a packet takes, one way."),
        Field::optional(
            "percent",
            FieldType::Whole { min: 0, max: 100 },
            "With loss: how many percent of the packets are lost.",
        ),
    ],
);

pub(crate) fn link(context: &mut Context<'_, '_>, node: &Node) -> Option<Link> {
    let fields = context.reader.open(node, &LINK)?;
    let board = fields.get("board").and_then(|node| board(context, node));
    let act = word(context.reader, fields.get("do")?, &LinkAct::ALL, LinkAct::name)?;
    for (key, of) in [("by", LinkAct::Delay), ("percent", LinkAct::Loss)] {
        match fields.get(key) {
            Some(node) if act != of => {
                let message = format!("`{key}` says nothing about {}", act.name());
                context.reader.wrong(
                    &node.span,
                    message,
                    format!("leave it out, or write do: {}", of.name()),
                );
            }
            None if act == of => {
                let example = if act == LinkAct::Delay { "by: 200ms" } else { "percent: 20" };
                let message = format!("{} needs the key `{key}`", act.name());
                context.reader.wrong(&node.span, message, format!("write for example {example}"));
            }
            Some(_) | None => {}
        }
    }
    let change = match act {
        LinkAct::Cut => LinkChange::Cut,
        LinkAct::Heal => LinkChange::Heal,
        LinkAct::Delay => LinkChange::Delay(context.length(fields.get("by")?)?),
        LinkAct::Loss => {
            let percent = context.reader.whole(fields.get("percent")?, 0..=100)?;
            LinkChange::Loss(u8::try_from(percent).ok()?)
        }
        LinkAct::Noise => LinkChange::Garbage(Garbage::Noise),
        LinkAct::Garble => LinkChange::Garbage(Garbage::Bodies),
        LinkAct::Swell => LinkChange::Garbage(Garbage::Swollen),
    };
    Some(Link { board: board?, change })
}
