//! `rigor coverage`: requirement by scenario, by rig and by mutant; and what is missing.

use super::{Trouble, Where, say, tell};
use crate::coverage::{Coverage, Ledger, gaps, markdown, object, text};
use crate::exit::Exit;
use crate::suite::Suites;
use crate::terminal::many;
use clap::{Args, ValueEnum};

/// Show what shows each requirement: scenarios, the rigs that can run them, tests, and the mutants that turn them red.
///
/// Mutants are those of the ledgers in ci/ledger that still count: the file that was changed, the change and the suites are
/// what they were then.
#[derive(Debug, Args)]
pub(super) struct CoverageCommand {
    /// How it is told.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Only name the requirements that no scenario shows, and end with 1 if there is one.
    #[arg(long)]
    check: bool,
    /// With --check also name those whose scenarios no mutant turns red; with --format markdown, a column of mutants.
    #[arg(long)]
    mutants: bool,
    #[command(flatten)]
    place: Where,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines, and a summary.
    Text,
    /// One object: requirements, and mutants where there is a ledger; with --check how many requirements there are, and gaps.
    Json,
    /// docs/requirements.md.
    Markdown,
}

impl CoverageCommand {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let coverage = read(&self.place)?;
        if self.mutants && coverage.ledger.is_none() {
            return Err(Trouble::Input(miette::miette!(
                help = "run ci/mutants, which leaves one there, or leave --mutants out",
                "there is no ledger ci/ledger/mutants-DATE.json"
            )));
        }
        if self.check {
            return Ok(self.checked(&coverage));
        }
        match self.format {
            Format::Text => tell(&text(&coverage)),
            Format::Json => say(&format!("{:#}", object(&coverage))),
            Format::Markdown => tell(&markdown(&coverage, self.mutants)),
        }
        Ok(Exit::Passed)
    }

    fn checked(&self, coverage: &Coverage) -> Exit {
        let gaps = gaps(coverage, self.mutants);
        match self.format {
            Format::Text | Format::Markdown => {
                for gap in &gaps {
                    say(&format!("{}: {}", gap.id, gap.said));
                }
                let rows = many(coverage.rows.len(), "requirement");
                let what = if self.mutants { "a scenario that a mutant turns red" } else { "a scenario" };
                say(&match gaps.len() {
                    0 => format!("{rows}: each has {what}, or a reason for none"),
                    lacking => format!("{rows}: {lacking} without {what}"),
                });
            }
            Format::Json => {
                let gaps: Vec<_> =
                    gaps.iter().map(|gap| serde_json::json!({"id": gap.id, "missing": gap.said})).collect();
                let object = serde_json::json!({"requirements": coverage.rows.len(), "gaps": gaps});
                say(&format!("{object:#}"));
            }
        }
        if gaps.is_empty() { Exit::Passed } else { Exit::Failed }
    }
}

/// The table of the tree that is worked in.
pub(super) fn read(place: &Where) -> Result<Coverage, Trouble> {
    let ledger = Ledger::read(&place.root(), &place.suites()).map_err(Trouble::input)?;
    Ok(Coverage::read(&place.root(), &Suites::new(place.suites()), ledger)?)
}
