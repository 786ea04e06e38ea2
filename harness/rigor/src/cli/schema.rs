//! `rigor schema`: what a kind of file looks like, for editors and other programs.

use super::{Trouble, say};
use crate::exit::Exit;
use clap::{Args, ValueEnum};
use rigor_model::{Fragment, Limitations, Rig, Scenario};

/// Print the JSON Schema of a kind of file, for editors.
#[derive(Debug, Args)]
pub(super) struct Schema {
    /// Whose.
    #[arg(value_enum, default_value = "scenario")]
    of: Subject,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Subject {
    /// A scenario: what is done to a cluster, and what must be seen.
    Scenario,
    /// A rig: what trials run on.
    Rig,
    /// A fragment: steps that scenarios include.
    Fragment,
    /// Known limitations and quarantine of an implementation.
    Limitations,
}

impl Schema {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let schema = match self.of {
            Subject::Scenario => Scenario::schema(),
            Subject::Rig => Rig::schema(),
            Subject::Fragment => Fragment::schema(),
            Subject::Limitations => Limitations::schema(),
        };
        say(&format!("{schema:#}"));
        Ok(Exit::Passed)
    }
}
