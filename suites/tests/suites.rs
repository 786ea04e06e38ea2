//! Every scenario as a test of its own: `cargo nextest run -p suites` lists and runs them.
//!
//! Names come from paths (`area/scenario`, `area/scenario/case`), so that a run of one test reads one file.
//! `RIGOR_RIG` chooses the rig (default: sim), `RIGOR_KEEP=1` keeps the evidence of passing trials, reports go to
//! `target/rigor/RIG/TRIAL`. What the rig cannot run is listed as ignored; `rigor list --rig RIG` says why.

use libtest_mimic::{Arguments, Failed, Trial};
use rigor::filter::Filter;
use rigor::ground::{Ground, asked, find_rig};
use rigor::limits::{self, Limits};
use rigor::plan::{Planned, plan};
use rigor::report::{Folder, RunReport, TrialReport};
use rigor::runner::{self, run_trial, seed_of};
use rigor::suite::{ScenarioFile, Suites};
use rigor::terminal::{Style, finished};
use rigor_model::catalogue::Catalogue;
use rigor_model::{FaultLevel, Faults, Limitations, Outcome, Profile, Rig, Scenario};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The seed of every trial: a test that failed once fails again.
const SEED: u64 = 1;

/// What all trials share.
struct Shared {
    catalogue: Catalogue,
    rig: Rig,
    limits: Limits,
}

fn main() -> ExitCode {
    rigor::end_with_parent();
    let arguments = Arguments::from_args();
    match trials(&arguments) {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            eprintln!("suites: {error}");
            ExitCode::from(2)
        }
    }
}

fn trials(arguments: &Arguments) -> Result<Vec<Trial>, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let suites = Suites::new(root);
    let rig = std::env::var("RIGOR_RIG").unwrap_or_else(|_| "sim".to_owned());
    let rig = asked(find_rig(&rig, &root.join("../rigs"))?).map_err(|error| error.whole())?;
    let catalogue = suites.catalogue()?;
    let known = match &rig.limitations {
        Some(file) => limits::load(Path::new(file), &suites, &catalogue)?,
        None => Limitations::default(),
    };
    let limits = Limits::of_today(known);
    let shared = Arc::new(Shared { catalogue, rig, limits });
    let planned = files(&suites, arguments)?
        .iter()
        .flat_map(|file| plan(file, &shared.catalogue, &shared.rig, Profile::Kube32, &Filter::All))
        .map(|planned| trial(planned, &shared))
        .collect();
    Ok(planned)
}

/// The files to read: the one that is meant, or all.
fn files(suites: &Suites, arguments: &Arguments) -> Result<Vec<ScenarioFile>, Box<dyn Error>> {
    let named = arguments.filter.as_deref().filter(|_| arguments.exact);
    match named.and_then(|name| suites.find(name)) {
        Some((file, _)) => Ok(vec![file]),
        None => Ok(suites.files()?),
    }
}

fn trial(planned: Planned, shared: &Arc<Shared>) -> Trial {
    let Planned { name, scenario, skip } = planned;
    let shared = shared.clone();
    let ignored = skip.is_some();
    let own = name.clone();
    let run = move || match (scenario, skip) {
        (Err(error), _) => Err(Failed::from(error.to_string())),
        (Ok(_), Some(reason)) => Err(Failed::from(reason)),
        (Ok(scenario), None) => {
            run(&own, &scenario, &shared).map_err(|error| Failed::from(error.to_string()))?
        }
    };
    Trial::test(name, run).with_ignored_flag(ignored)
}

fn run(name: &str, scenario: &Scenario, shared: &Shared) -> Result<Result<(), Failed>, Box<dyn Error>> {
    let ground = Ground::prepare(shared.rig.clone()).map_err(|error| error.whole())?;
    let folder = Folder::make(&target()?.join("rigor").join(&shared.rig.name).join(name))?;
    let trial = runner::Trial {
        name,
        scenario,
        rig: &shared.rig,
        seed: seed_of(SEED, name),
        faults: Faults::None,
        evidence: Some(folder.path().join("evidence")),
        keep: std::env::var("RIGOR_KEEP").is_ok_and(|value| value == "1"),
    };
    let mut report = run_trial(&trial, &|asked| ground.open(asked));
    shared.limits.apply(&mut report);
    let text = finished(&report, Style { colour: false });
    let counts = report.quarantined.is_none();
    let outcome = report.outcome;
    folder.write(&run_report(&ground, report)?, &shared.catalogue)?;
    match outcome {
        Outcome::Pass | Outcome::Skipped | Outcome::KnownLimitation => {
            println!("{text}");
            Ok(Ok(()))
        }
        // It does not count until its day: told, and no more.
        Outcome::Fail | Outcome::Undecided | Outcome::InfraError if !counts => {
            println!("{text}");
            Ok(Ok(()))
        }
        Outcome::Fail | Outcome::Undecided | Outcome::InfraError => Ok(Err(Failed::from(text))),
    }
}

fn run_report(ground: &Ground, trial: TrialReport) -> Result<RunReport, Box<dyn Error>> {
    Ok(RunReport {
        started: None,
        rig: ground.report()?,
        constants: ground.rig().constants,
        seed: SEED,
        faults: FaultLevel::None,
        search: None,
        profile: Profile::Kube32,
        limitations: Vec::new(),
        trials: vec![trial],
    })
}

/// The cargo target directory: three levels above this executable.
fn target() -> Result<PathBuf, Box<dyn Error>> {
    let executable = std::env::current_exe()?;
    Ok(executable.ancestors().nth(3).ok_or("the executable is not in a target directory")?.to_owned())
}
