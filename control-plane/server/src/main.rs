//! The binary: flags to configuration, then the library.

use std::process::ExitCode;

use clap::Parser;
use control_plane::cli;

fn main() -> ExitCode {
    let cli::Flags { command, serve } = cli::Flags::parse();
    if let Some(cli::Command::ExplainSchedule { pod, namespace, kubeconfig, output }) = command {
        return control_plane::explain::run(&pod, namespace.as_deref(), &kubeconfig, output);
    }
    let config = match serve.config() {
        Ok(config) => config,
        Err(problem) => return control_plane::serve::fail(&problem),
    };
    control_plane::serve::run(config)
}
