//! Acts: what a scenario does to the API and to the rig.
//!
//! A file an operation, with its type, its shape and its reading; the acts on the API have their types in `requests` and
//! are read in `api`. Texts may hold `${NAME}`, which the runner fills in when it acts.

/// Declares what an operation can do: the enumeration, all of it, and the words for schemas and messages from one table.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$each:meta])* $variant:ident $word:literal;)* }) => {
        $(#[$about])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        pub enum $name {
            $($(#[$each])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every one.
            pub const ALL: [$name; $name::WORDS.len()] = [$($name::$variant,)*];

            /// The words in scenarios, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

            /// The word for it.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }
    };
}
use words;

pub(crate) mod api;
pub(crate) mod control_plane;
pub(crate) mod flash;
pub(crate) mod link;
mod manifest;
pub(crate) mod mark;
pub(crate) mod path;
pub(crate) mod played;
pub(crate) mod power;
mod requests;
pub(crate) mod scheduler;
pub(crate) mod send;
pub(crate) mod time;
pub(crate) mod tool;

use crate::shape::{Field, FieldType};
use crate::step::Context;
use crate::yaml::{Kind, Node};

pub use control_plane::ControlPlaneAct;
pub use flash::Flash;
pub use link::{Garbage, Link, LinkAct, LinkChange};
pub use mark::Mark;
pub use played::{NodeState, PlayedNode, Renew, Report};
pub use power::{Power, PowerAct};
pub use requests::{
    Answer, Api, Apply, Bind, Cordon, Create, Delete, Patch, PatchType, Propagation, Replace, RequestAct,
    Scale, Target, User,
};
pub(crate) use scheduler::started_scheduler;
pub use scheduler::{Scheduler, SchedulerAct};
pub use send::{LONGEST_LINE, Send};
pub use time::{Advance, Wait};
pub use tool::{Tool, ToolRun};

/// The key of acts on one board.
const BOARD: Field = Field::required("board", FieldType::Text, "The board: a, b, c ….").such_as("a");

/// A board of the trial.
pub(crate) fn board(context: &mut Context<'_, '_>, node: &Node) -> Option<String> {
    let remedy = match &node.kind {
        Kind::Number(_) | Kind::Bool(_) | Kind::Null | Kind::Map(_) => {
            "the first board is a, the second b: write board: a"
        }
        Kind::List(_) => "make a step for each, or forEach: {name: x, in: [a, b], steps: [… board: ${x} …]}",
        Kind::Text(_) => {
            let board = context.reader.text(node)?;
            context.check_board(&node.span, &board);
            return Some(board);
        }
    };
    context.reader.wrong(&node.span, format!("one board belongs here, not {}", node.describe()), remedy);
    None
}
