//! `mutants`: what `ci/mutants` runs.

use std::process::ExitCode;

use clap::Parser as _;
use control_plane_faulty::run::{Flags, run};

fn main() -> ExitCode {
    match run(&Flags::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("mutants: {error:#}");
            ExitCode::from(2)
        }
    }
}
