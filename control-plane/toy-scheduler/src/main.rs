//! `toy-scheduler`: places the pods that name it (EXT-01 … EXT-10). 2 for flags or a kubeconfig that cannot be used.

use std::process::ExitCode;

use clap::Parser;
use toy_scheduler::{cli, run};

fn main() -> ExitCode {
    let flags = cli::Flags::parse();
    run::log(flags.verbose);
    match run::until_signalled(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toy-scheduler: {error}");
            ExitCode::from(2)
        }
    }
}
