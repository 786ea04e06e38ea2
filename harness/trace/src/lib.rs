//! The recorded history of a run, and the pure judgement of expectations over it.
//!
//! Pure: a verdict is a function of scenario and history, so that judging later, elsewhere, or over a
//! history that someone else recorded gives the same result.

pub mod faults;
pub mod history;
mod index;
pub mod interval;
pub mod jsonl;
pub mod judge;
pub mod matching;
pub mod monitors;
mod ran;
mod timeline;
pub mod view;

pub use history::{
    Constants, ControlPlaneAct, Fact, History, LinkAct, LinkChange, Micros, Phase, PowerAct, ProcessEvent,
    Ran, Record, Verb,
};
pub use index::{Blind, ObjectKey, Version};
pub use interval::Interval;
pub use judge::{Found, Judge, ScenarioVerdict, StepState, Unresolved, Verdict, judge, judge_step};
pub use rigor_model::quantity;
pub use timeline::{CannotLook, Values};
pub use view::View;
