//! Breaks the reference on purpose, and counts which breaks the suites see.
//!
//! A fault is a file below `faults`: sound code and what stands there when the fault is on. They are woven into copies of the
//! crates ([`shadow`]), so that product code knows nothing of them, one build holds them all, and `RIGOR_FAULT` chooses one
//! when a program starts. cargo-mutants adds those that nobody thinks of. What came of each is kept ([`ledger`]) for as long
//! as sources and scenarios stay what they were.
//!
//! Whoever thinks up faults must not have read the scenarios, or they would be shaped by what is looked at already.

pub mod cargo_mutants;
pub mod clock;
pub mod compile;
pub mod digest;
pub mod fault;
pub mod ledger;
pub mod mutant;
pub mod run;
pub mod shadow;
pub mod stages;
pub mod table;
pub mod trials;
pub mod weave;
