//! `rigor gate`: whether a report is good enough.

use super::{Trouble, Where, say};
use crate::exit::Exit;
use crate::gate::{Gate, exit, incomparable};
use crate::report::read;
use crate::suite::Suites;
use crate::terminal::many;
use clap::{Args, ValueEnum};
use rigor_model::Profile;
use rigor_model::report::Report;
use std::path::PathBuf;

/// Say whether a report is good enough: nothing failed, nothing is worse than before, a profile is shown, a release stands.
///
/// Each refusal is a sentence that names the trial or the field and what to do. Exit codes are those of `rigor run`.
#[derive(Debug, Args)]
pub(super) struct GateCommand {
    /// The report: the folder that a run left, or its report.yaml.
    #[arg(long, value_name = "DIR|FILE")]
    report: PathBuf,
    /// An earlier report on a rig of the same kind. Refused is what passed there and is not green here, what is missing, and
    /// a core requirement that is skipped for the first time.
    #[arg(long, value_name = "DIR|FILE")]
    baseline: Option<PathBuf>,
    /// Refuse unless each core requirement of this profile has a trial that passed.
    #[arg(long, value_enum, value_name = "PROFILE")]
    require: Option<Plane>,
    /// Refuse what cannot stand for a release: undecided, failed rigs, quarantine, a skipped core requirement, other constants
    /// than 15 s, 15 s and 300 s, a slack above 0.5 s, rigs without an emulator or a board.
    #[arg(long)]
    release: bool,
    #[command(flatten)]
    place: Where,
}

/// A profile of control planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Plane {
    Kube32,
    Upstream,
}

impl GateCommand {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let catalogue = Suites::new(self.place.suites()).catalogue()?;
        let report = read(&self.report).map_err(Trouble::input)?;
        let baseline = self.baseline.as_deref().map(read).transpose().map_err(Trouble::input)?;
        if let Some(why) = baseline.as_ref().and_then(|baseline| incomparable(&report, baseline)) {
            return Err(Trouble::Input(miette::miette!(
                help = "name with --baseline a report of the same kind of rig",
                "{why}"
            )));
        }
        let gate = Gate {
            catalogue: &catalogue,
            baseline: baseline.as_ref(),
            require: self.require.map(|plane| match plane {
                Plane::Kube32 => Profile::Kube32,
                Plane::Upstream => Profile::Upstream,
            }),
            release: self.release,
        };
        let refusals = gate.refusals(&report);
        for refusal in &refusals {
            say(&refusal.said);
        }
        let what = self.words(&report);
        say(&match refusals.len() {
            0 => format!("accepted: {what}"),
            count => format!("refused for {}: {what}", many(count, "reason")),
        });
        Ok(exit(&refusals))
    }

    /// What was looked at.
    fn words(&self, report: &Report) -> String {
        let counts = report.summary.iter().filter(|(_, count)| **count > 0);
        let counts: Vec<String> = counts.map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let mut words = format!(
            "{} on rig {} ({})",
            many(report.scenarios.len(), "trial"),
            report.rig.name,
            counts.join(", ")
        );
        if let Some(baseline) = &self.baseline {
            words.push_str(&format!(", against {}", baseline.display()));
        }
        if let Some(plane) = self.require.and_then(|plane| plane.to_possible_value()) {
            words.push_str(&format!(", for the profile {}", plane.get_name()));
        }
        if self.release {
            words.push_str(", for a release");
        }
        words
    }
}
