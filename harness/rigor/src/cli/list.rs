//! `rigor list`: what there is, and what the rig cannot run.

use super::{ProfileName, Trouble, Where, filter_of, say};
use crate::exit::Exit;
use crate::ground::{Ground, asked, find_rig};
use crate::plan::plan;
use crate::suite::Suites;
use clap::Args;

/// List the trials, and why the rig cannot run some.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Areas, folders, files or names of trials; everything if left out.
    #[arg(value_name = "SUITE|FILE")]
    what: Vec<String>,
    /// The rig's name, or the path of its file.
    #[arg(long, default_value = "sim", value_name = "FILE|NAME")]
    rig: String,
    /// Whose behaviour is looked at.
    #[arg(long, value_enum, default_value = "kube32")]
    profile: ProfileName,
    /// Only trials that an expression matches: `tag:power & !name:hang`, `req:NODE-03`, `area:node-lifecycle`.
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    #[command(flatten)]
    place: Where,
}

impl List {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let suites = Suites::new(self.place.suites());
        let catalogue = suites.catalogue()?;
        let rig = asked(find_rig(&self.rig, &self.place.rigs())?)?;
        let filter = filter_of(self.filter.as_deref(), &catalogue)?;
        let (mut count, mut skipped, mut broken) = (0, 0, 0);
        for file in suites.chosen(&self.what)? {
            for planned in plan(&file, &catalogue, &rig, &[self.profile.into()], &filter) {
                count += 1;
                match (&planned.scenario, &planned.skip) {
                    (Err(_), _) => {
                        broken += 1;
                        say(&format!("{} (cannot be read: rigor lint)", planned.name));
                    }
                    (Ok(_), Some(reason)) => {
                        skipped += 1;
                        say(&format!("{} (skipped: {reason})", planned.name));
                    }
                    (Ok(scenario), None) => {
                        say(&format!("{} [{}]", planned.name, scenario.requirements.join(", ")));
                    }
                }
            }
        }
        let trials = if count == 1 { "trial" } else { "trials" };
        eprintln!("{count} {trials} on rig {}: {skipped} skipped, {broken} cannot be read", rig.name);
        // What the rig starts is looked for, so that a listing does not promise what no run can do here.
        if let Err(error) = Ground::prepare(rig).and_then(|ground| ground.report()) {
            eprintln!("none of them can run here: {}", error.whole());
        }
        Ok(if broken == 0 { Exit::Passed } else { Exit::BadInput })
    }
}
