//! The program `rigor`.

use std::process::ExitCode;

fn main() -> ExitCode {
    rigor::cli::main()
}
