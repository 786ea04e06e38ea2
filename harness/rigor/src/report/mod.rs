//! What a run leaves behind: a folder with the history, the conformance report, JUnit's form of it, and evidence.
//!
//! Everything here is made from the finished trials and nothing else, so that a report never says what the history
//! does not.

mod conformance;
mod evidence;
mod folder;
mod junit;
mod read;
mod trial;

pub use conformance::conformance;
pub use evidence::{current_objects, save as save_evidence};
pub use folder::{Folder, ReportError};
pub use junit::junit;
pub use read::{ReadError, newest, read, report_file};
pub use trial::{RunReport, TrialReport};

#[cfg(test)]
mod tests;
