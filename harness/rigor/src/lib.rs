//! The harness: runs scenarios on rigs, judges them, writes reports.

pub mod cli;
pub mod coverage;
pub mod dispatch;
pub mod exit;
pub mod filter;
pub mod gate;
pub mod ground;
pub mod import;
pub mod limits;
pub mod lint;
pub mod listing;
pub mod plan;
pub mod report;
pub mod runner;
pub mod search;
pub mod suite;
pub mod terminal;
pub mod timeline;

pub use rigor_rigs::process::end_with_parent;
