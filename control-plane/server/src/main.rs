//! The binary: flags to configuration, then the library.

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let config = match cli::Flags::parse().config() {
        Ok(config) => config,
        Err(problem) => return control_plane::serve::fail(&problem),
    };
    control_plane::serve::run(config)
}
