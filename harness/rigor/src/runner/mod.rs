//! Runs one trial: a world, the scenario's steps, the judge, the evidence, the cleanup.

mod act;
mod fill;
mod played;
mod ready;
mod requests;
#[cfg(test)]
mod tests;
mod trial;

pub use trial::{Asked, Open, Trial, run_trial};

/// The seed of one trial: of the run's seed and the trial's name, so that it does not depend on what else runs.
#[must_use]
pub fn seed_of(seed: u64, trial: &str) -> u64 {
    // FNV-1a: small, and the same everywhere and for good.
    trial.bytes().fold(BASIS ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// The run's seed with which the trial of that name has this seed: what [`seed_of`] was given.
#[must_use]
pub fn given_seed(own: u64, trial: &str) -> u64 {
    // Each step of FNV-1a can be undone: its factor is odd.
    trial.bytes().rev().fold(own, |hash, byte| hash.wrapping_mul(INVERSE) ^ u64::from(byte)) ^ BASIS
}

/// FNV-1a's beginning and its factor, and what undoes that factor.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;
const INVERSE: u64 = 0xce96_5057_aff6_957b;
