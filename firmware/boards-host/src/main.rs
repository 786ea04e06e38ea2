//! `kubelet-host --config FILE`: a board as a process. Ends only by a signal; 2 for a bad configuration,
//! 101 after a panic.

use std::path::PathBuf;
use std::process::ExitCode;

use boards_host::{Clock, Console, load, run};
use clap::Parser;

/// A board as a process of this host.
#[derive(Parser)]
#[command(name = "kubelet-host", version)]
struct Flags {
    /// The board's configuration, as JSON.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let console = Console;
    console.catch_panics();
    let config = match load(&flags.config) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("kubelet-host: {error:#}");
            return ExitCode::from(2);
        }
    };
    match run(config, Clock::start(), console) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("kubelet-host: {error:#}");
            ExitCode::FAILURE
        }
    }
}
