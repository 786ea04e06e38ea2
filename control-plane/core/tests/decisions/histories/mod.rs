//! Whole histories: boards that lose power and links, nodes that come and go, pods, workloads, a server that ends and starts
//! anew from its store, all at random, on a virtual clock, through the same functions that the server calls.
//!
//! What must hold is in [`rules`]. A history that breaks it is shrunk and printed as a scenario ([`printed`]), to be pasted into a
//! file of `suites/`. `PROPTEST_CASES` sets the number of histories, `PROPTEST_RNG_SEED` draws others.

mod acts;
mod boards;
mod passes;
mod plant;
mod printed;
mod rest;
mod rules;
mod run;
mod views;
