//! Runs one trial: a world, the scenario's steps, the judge, the evidence, the cleanup.

mod played;
mod requests;
