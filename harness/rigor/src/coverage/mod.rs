//! What shows each requirement of the catalogue: scenarios, on which rigs they can run, tests of the running programs, and
//! the mutants that turn them red.
//!
//! Everything is read from the tree: heads of scenarios, comments and names of tests, the ledger that a run of mutants left.
//! Nothing here runs anything.

mod check;
mod explain;
mod ledger;
mod page;
mod proofs;
mod table;
#[cfg(test)]
mod tests;

pub use check::{Gap, gaps};
pub use explain::{LastRun, explain, near_ids};
pub use ledger::{Ledger, LedgerError, Mutant, Standing, VerdictOfMutant};
pub use page::{markdown, object, text};
pub use proofs::{Proof, elsewhere};
pub use table::{Coverage, Row, ShownBy, level};
