//! Runs of programs that scenarios ask for, as histories hold them.

use serde::{Deserialize, Serialize};

use crate::history::Micros;

/// A run of a program, to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// When it was started.
    pub begun: Micros,
    /// Arguments after the program's name.
    pub argv: Vec<String>,
    /// Exit code; -1 when a signal ended it.
    pub status: i32,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Ran {
    /// Whether it was one of etcdctl that certainly only looked: `get` comes first. Of others that is not known.
    pub(crate) fn gets(&self) -> bool {
        self.argv.first().is_some_and(|word| word == "get")
    }
}
