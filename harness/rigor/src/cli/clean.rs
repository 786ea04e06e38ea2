//! `rigor clean`: takes away what runs that were killed left on a cluster.

use super::{Trouble, Where, say};
use crate::exit::Exit;
use crate::ground::{Ground, find_rig};
use clap::Args;

/// Take away what killed runs left on a cluster that was there already: what bears the label rigor.dev/trial.
#[derive(Debug, Args)]
pub(super) struct Clean {
    /// The rig's name, or the path of its file.
    #[arg(long, value_name = "FILE|NAME")]
    rig: String,
    #[command(flatten)]
    place: Where,
}

impl Clean {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let ground = Ground::prepare(find_rig(&self.rig, &self.place.rigs())?)?;
        let removed = ground.clean()?;
        for what in &removed {
            say(&format!("removed {what}"));
        }
        if removed.is_empty() {
            say("nothing was left");
        }
        Ok(Exit::Passed)
    }
}
