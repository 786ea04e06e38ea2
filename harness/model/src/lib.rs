//! Scenarios, rigs and reports: raw YAML with spans, resolved to types that cannot be wrong.
//!
//! Pure: nothing here reads a clock or talks to a network. Every mistake in a file is reported with
//! its place and a remedy.

pub mod act;
mod borrowed;
pub mod capability;
pub mod catalogue;
pub mod cel;
pub mod constants;
pub mod duration;
pub mod equipment;
mod examples;
pub mod expect;
pub mod expr;
pub mod faults;
pub mod foreign;
pub mod format;
pub mod fragment;
pub mod kinds;
mod letters;
pub mod limitations;
pub mod mistake;
pub mod path;
pub mod pattern;
pub mod quantity;
mod reader;
pub mod report;
pub mod rig;
pub mod scenario;
pub mod shape;
mod step;
mod stranger;
mod strings;
pub mod template;
mod verbs;
pub mod yaml;

pub use capability::Capability;
pub use catalogue::{Catalogue, Profile};
pub use constants::{Constant, Constants};
pub use faults::{Fault, FaultKind, FaultLevel, FaultName, Faults, Schedule, Withheld};
pub use fragment::Fragment;
pub use limitations::Limitations;
pub use mistake::{Mistake, Mistakes};
pub use report::{Margins, Outcome};
pub use rig::{Rig, RigKind};
pub use scenario::{Head, Scenario};
pub use step::{Files, Section, Step};
pub use verbs::{Action, Class, Verb};
