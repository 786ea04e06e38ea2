//! The scheduler: where a pod goes, why nowhere, and what to write and tell about it (SCHED-01 to SCHED-56).
//!
//! [`schedule`] is the choice alone, by a [`Profile`] that is a table of filters and scores. [`place`] binds inside
//! the create request, [`decide`] is one try of the retry loop; both go through it. Nothing here looks at anything
//! but its arguments, and ties are broken by name, so that the same input always gives the same node.

mod accounting;
mod amounts;
mod attempt;
mod choice;
mod kube32;
mod profile;
mod score;

pub use accounting::Assumed;
pub use amounts::Amounts;
pub use attempt::{Placed, SchedulerConfig, bound, decide, pending, place};
pub use choice::{Verdict, schedule};
pub use kube32::KUBE32;
pub use profile::{Candidate, Filter, Profile, ScorePlugin};
pub use score::{Score, Share};
