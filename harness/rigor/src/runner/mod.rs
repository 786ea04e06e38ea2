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
    trial.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
