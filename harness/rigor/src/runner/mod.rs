//! Runs one trial: a world, the scenario's steps, the judge, the evidence, the cleanup.

mod act;
mod fill;
mod played;
mod requests;
