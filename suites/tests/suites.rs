//! Every scenario as a test of its own: `cargo nextest run -p suites` lists and runs them.
//!
//! Names come from paths (`area/scenario`, `area/scenario/case`), so that a run of one test reads one file.
//! `RIGOR_RIG` chooses the rig (default: sim); of several (`sim,host,qemu-short`) each trial is listed for each, under
//! `RIG/area/scenario`. `RIGOR_PROFILE` the profiles (all on sim, else kube32), `RIGOR_FILTER` lists only what an expression matches, as `rigor run --filter` does, `RIGOR_KEEP=1` keeps
//! the evidence of passing trials, reports go to `target/rigor/RIG/TRIAL`. What the rig cannot run is listed as ignored;
//! `rigor list --rig RIG` says why.

use libtest_mimic::{Arguments, Failed, Trial};
use rigor::ground::{Ground, asked, find_rig};
use rigor::limits::{self, Limits};
use rigor::listing;
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
    let catalogue = suites.catalogue()?;
    let variable = |name| std::env::var(name).ok();
    let filter = listing::filter(variable("RIGOR_FILTER").as_deref(), &catalogue)?;
    let names = listing::rigs(variable("RIGOR_RIG").as_deref())?;
    let exact = arguments.filter.as_deref().filter(|_| arguments.exact);
    let several = names.len() > 1;
    let mut trials = Vec::new();
    for name in &names {
        let rig = find_rig(name, &root.join("../rigs"))?;
        // A run of one test asks one rig and reads one file.
        let one = exact.and_then(|exact| listing::trial_of(exact, &rig.name, several));
        if exact.is_some() && one.is_none() {
            continue;
        }
        let shared = Arc::new(shared(rig, &suites, &catalogue)?);
        let profiles = listing::profiles(variable("RIGOR_PROFILE").as_deref(), shared.rig.kind)?;
        let planned = files(&suites, one)?;
        let planned =
            planned.iter().flat_map(|file| plan(file, &shared.catalogue, &shared.rig, &profiles, &filter));
        trials.extend(planned.map(|planned| trial(planned, &shared, several)));
    }
    Ok(trials)
}

fn shared(rig: Rig, suites: &Suites, catalogue: &Catalogue) -> Result<Shared, Box<dyn Error>> {
    let rig = asked(rig).map_err(|error| error.whole())?;
    let known = match &rig.limitations {
        Some(file) => limits::load(Path::new(file), suites, catalogue)?,
        None => Limitations::default(),
    };
    Ok(Shared { catalogue: catalogue.clone(), rig, limits: Limits::of_today(known) })
}

/// The files to read: the one that is meant, or all.
fn files(suites: &Suites, one: Option<&str>) -> Result<Vec<ScenarioFile>, Box<dyn Error>> {
    match one.and_then(|name| suites.find(name)) {
        Some((file, _)) => Ok(vec![file]),
        None => Ok(suites.files()?),
    }
}

fn trial(planned: Planned, shared: &Arc<Shared>, several: bool) -> Trial {
    let Planned { name, scenario, skip } = planned;
    let listed = listing::listed(&shared.rig.name, &name, several);
    let shared = shared.clone();
    let ignored = skip.is_some();
    let run = move || match (scenario, skip) {
        (Err(error), _) => Err(Failed::from(error.to_string())),
        (Ok(_), Some(reason)) => Err(Failed::from(reason)),
        (Ok(scenario), None) => {
            run(&name, &scenario, &shared).map_err(|error| Failed::from(error.to_string()))?
        }
    };
    Trial::test(listed, run).with_ignored_flag(ignored)
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
    let profile = match scenario.profile {
        profile @ (Profile::Upstream | Profile::External) => profile,
        Profile::Kube32 | Profile::Both | Profile::Kubelet => Profile::Kube32,
    };
    folder.write(&run_report(&ground, profile, report)?, &shared.catalogue)?;
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

fn run_report(ground: &Ground, profile: Profile, trial: TrialReport) -> Result<RunReport, Box<dyn Error>> {
    Ok(RunReport {
        started: None,
        rig: ground.report()?,
        constants: ground.rig().constants,
        seed: SEED,
        faults: FaultLevel::None,
        search: None,
        profile,
        limitations: Vec::new(),
        trials: vec![trial],
    })
}

/// The cargo target directory: three levels above this executable.
fn target() -> Result<PathBuf, Box<dyn Error>> {
    let executable = std::env::current_exe()?;
    Ok(executable.ancestors().nth(3).ok_or("the executable is not in a target directory")?.to_owned())
}
