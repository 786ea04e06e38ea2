//! The recorded history of a run, and the pure judgement of expectations over it.
//!
//! Pure: a verdict is a function of scenario and history, so that judging later, elsewhere, or over a
//! history that someone else recorded gives the same result.

pub mod history;

pub use history::{
    Constants, ControlPlaneAct, Fact, History, LinkAct, Micros, Phase, PowerAct, ProcessEvent, Record, Verb,
};
