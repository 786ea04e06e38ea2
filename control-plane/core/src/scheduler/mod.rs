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
mod ledger;
mod ports;
mod profile;
mod score;
mod upstream;

pub use accounting::Assumed;
pub use amounts::{Amounts, ResourceName};
pub use attempt::{Placed, SchedulerConfig, bound, decide, pending, place};
pub use choice::{Explained, Verdict, explain, fits_on, schedule};
pub use kube32::KUBE32;
pub use ledger::{Facts, Figure, KnownNode, Ledger};
pub use ports::HostPort;
pub use profile::{Candidate, Filter, Profile, Rate, Reason, ScorePlugin, Wanted};
pub use score::{Score, Share};
pub use upstream::UPSTREAM;
