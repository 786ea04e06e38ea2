//! The command line: reads flags, calls the library, says what came of it, ends with the right code.

mod clean;
mod coverage;
mod explain;
mod files;
mod fmt;
mod gate;
mod judge;
mod lint;
mod list;
mod new;
mod run;
mod schema;
mod search;
mod trace;
mod watch;

use crate::exit::Exit;
use crate::filter::Filter;
use clap::{Args, Parser, Subcommand, ValueEnum};
use rigor_model::Profile;
use rigor_model::catalogue::Catalogue;
use rigor_rigs::Infra;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs conformance scenarios against a control plane and its boards, and judges what was recorded.
///
/// Exit codes: 0 at least one pass and nothing worse than skipped or a known limitation; 1 a conformance failure;
/// 2 bad input; 3 the rig failed, or nothing passed; 4 something stayed undecided; 5 nothing is wrong but an entry of
/// known limitations or quarantine that is out of date.
#[derive(Debug, Parser)]
#[command(name = "rigor", version, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run scenarios on a rig and write a report.
    Run(run::Run),
    /// List the trials, and why the rig cannot run some.
    List(list::List),
    /// Check scenario and rig files without running anything.
    Lint(lint::Lint),
    /// Lay out scenario and rig files; what they mean, and their comments, stay.
    Fmt(fmt::Fmt),
    /// Write the skeleton of a scenario: commented, without a mistake, ready to run.
    New(new::New),
    /// Judge a scenario over a recorded history.
    Judge(judge::Judge),
    /// Print the JSON Schema of a kind of file, for editors.
    Schema(schema::Schema),
    /// Show a run's history as a timeline.
    Trace(trace::Trace),
    /// Show what shows each requirement: scenarios, rigs, tests, mutants; and what is missing.
    Coverage(coverage::CoverageCommand),
    /// Tell all that is known of a requirement.
    Explain(explain::Explain),
    /// Say whether a report is good enough: for a change, for a profile, for a release.
    Gate(gate::GateCommand),
    /// Take away what killed runs left on a cluster that was there already.
    Clean(clean::Clean),
    /// Turn a history that was recorded elsewhere into ours.
    Import(files::Import),
}

pub(crate) use lint::rig_files;

/// Where scenarios and rigs are.
#[derive(Debug, Args)]
struct Where {
    /// Folder of the suites; found from the working directory upwards if left out.
    #[arg(long, value_name = "DIR")]
    suites: Option<PathBuf>,
}

/// A profile by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProfileName {
    Kube32,
    Upstream,
    Both,
    Kubelet,
    External,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Kube32 => Self::Kube32,
            ProfileName::Upstream => Self::Upstream,
            ProfileName::Both => Self::Both,
            ProfileName::Kubelet => Self::Kubelet,
            ProfileName::External => Self::External,
        }
    }
}

impl Where {
    /// The folder that holds `suites/` and `rigs/`.
    fn root(&self) -> PathBuf {
        if let Some(suites) = &self.suites {
            let parent = suites.parent().filter(|parent| !parent.as_os_str().is_empty());
            return parent.unwrap_or(Path::new(".")).to_owned();
        }
        let working = std::env::current_dir().unwrap_or_default();
        let above = working.ancestors().find(|dir| dir.join("suites/requirements.yaml").is_file());
        match above {
            Some(dir) if dir != working => dir.to_owned(),
            Some(_) | None => PathBuf::new(),
        }
    }

    fn suites(&self) -> PathBuf {
        self.suites.clone().unwrap_or_else(|| self.root().join("suites"))
    }

    fn rigs(&self) -> PathBuf {
        self.root().join("rigs")
    }
}

/// Why a command ended early.
#[derive(Debug)]
enum Trouble {
    /// Something a person wrote is wrong.
    Input(miette::Report),
    /// The rig cannot be used.
    Infra(Infra),
}

impl Trouble {
    fn input(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Input(miette::Report::msg(error.to_string()))
    }
}

impl From<crate::suite::SuiteError> for Trouble {
    fn from(error: crate::suite::SuiteError) -> Self {
        match error {
            crate::suite::SuiteError::Mistakes(mistakes) => Self::Input(mistakes.into()),
            other @ crate::suite::SuiteError::Unreadable { .. } => Self::input(other),
        }
    }
}

impl From<crate::ground::RigError> for Trouble {
    fn from(error: crate::ground::RigError) -> Self {
        match error {
            crate::ground::RigError::Mistakes(mistakes) => Self::Input(mistakes.into()),
            other @ crate::ground::RigError::Missing { .. } => Self::input(other),
        }
    }
}

impl From<Infra> for Trouble {
    fn from(error: Infra) -> Self {
        Self::Infra(error)
    }
}

/// Reads `--filter`; a requirement that the catalogue does not have is a mistake, not a filter that matches nothing.
fn filter_of(expression: Option<&str>, catalogue: &Catalogue) -> Result<Filter, Trouble> {
    let filter = expression.map_or(Ok(Filter::All), |expression| Filter::known(expression, catalogue));
    filter.map_err(Trouble::input)
}

/// Runs the program with the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    // Paths and names stay whole: the terminal wraps where it must.
    let _ =
        miette::set_hook(Box::new(|_| Box::new(miette::MietteHandlerOpts::new().wrap_lines(false).build())));
    let outcome = match Cli::parse().command {
        Command::Run(run) => run.run(),
        Command::List(list) => list.run(),
        Command::Lint(lint) => lint.run(),
        Command::Fmt(fmt) => fmt.run(),
        Command::New(new) => new.run(),
        Command::Judge(judge) => judge.run(),
        Command::Trace(trace) => trace.run(),
        Command::Schema(schema) => schema.run(),
        Command::Coverage(coverage) => coverage.run(),
        Command::Explain(explain) => explain.run(),
        Command::Gate(gate) => gate.run(),
        Command::Clean(clean) => clean.run(),
        Command::Import(import) => import.run(),
    };
    let exit = match outcome {
        Ok(exit) => exit,
        Err(Trouble::Input(report)) => {
            eprintln!("{report:?}");
            Exit::BadInput
        }
        Err(Trouble::Infra(error)) => {
            eprintln!("rigor: {}", error.whole());
            Exit::Infra
        }
    };
    ExitCode::from(exit.code())
}

/// Writes to standard output; one that was closed (`rigor list | head`) ends nothing.
fn tell(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// [`tell`], a line.
fn say(line: &str) {
    tell(&format!("{line}\n"));
}
