//! `rigor run`: plan, prepare the rig, run, report.

use super::search::{Draws, Field};
use super::watch::watch;
use super::{ProfileName, Trouble, Where, filter_of, say, tell};
use crate::dispatch::dispatch_until;
use crate::exit::Exit;
use crate::ground::{Ground, asked, find_rig};
use crate::limits::{self, Limits};
use crate::lint::refused_flags;
use crate::plan::{Planned, plan};
use crate::report::{Folder, RunReport, TrialReport};
use crate::runner::{Trial, run_trial, seed_of};
use crate::suite::{SuiteError, Suites, read};
use crate::terminal::{Style, beginning, finished, many, summary};
use clap::Args;
use rigor_model::catalogue::Catalogue;
use rigor_model::report::SearchReport;
use rigor_model::{Faults, Limitations, Mistakes, Outcome, Profile, Rig, RigKind, Scenario, yaml};
use rigor_rigs::clock::Clock;
use rigor_rigs::signals;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

/// Run scenarios on a rig and write a report.
#[derive(Debug, Args)]
pub(super) struct Run {
    /// Areas, folders, files or names of trials; everything if left out.
    #[arg(value_name = "SUITE|FILE")]
    what: Vec<String>,
    /// The rig's name, or the path of its file.
    #[arg(
        long,
        value_name = "FILE|NAME",
        required = false,
        required_unless_present = "watch",
        default_value_if("watch", clap::builder::ArgPredicate::IsPresent, "sim")
    )]
    rig: String,
    /// Lint and run again on each change of the files or of what they name, on the simulated rig unless --rig names another;
    /// ends on Ctrl-C.
    #[arg(long)]
    watch: bool,
    /// Whose behaviour is looked at; scenarios for others are skipped.
    #[arg(long, value_enum, default_value = "kube32")]
    profile: ProfileName,
    /// Only trials that an expression matches: `tag:power & !name:hang`, `req:NODE-03`, `area:node-lifecycle`.
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// Seed of everything that is drawn.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Where the report goes; what an earlier run left there is replaced.
    #[arg(long, default_value = "report", value_name = "DIR")]
    report_dir: PathBuf,
    /// How many trials run side by side; if left out, as many as the machine has processors, in real time twice as
    /// many, because boards wait most of the time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// Keep the evidence of passing trials, too.
    #[arg(long)]
    keep: bool,
    /// Known limitations and quarantine of what is tested, instead of those that the rig file names.
    #[arg(long, value_name = "FILE")]
    limitations: Option<PathBuf>,
    #[command(flatten)]
    draws: Draws,
    #[command(flatten)]
    place: Where,
}

impl Run {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        if self.watch { watch(self, &self.what, &self.place) } else { self.once() }
    }

    /// Runs what was asked for, once.
    pub(super) fn once(&self) -> Result<Exit, Trouble> {
        self.draws.refuse_past_the_last(self.seed)?;
        let suites = Suites::new(self.place.suites());
        let catalogue = suites.catalogue()?;
        let rig = asked(find_rig(&self.rig, &self.place.rigs())?)?;
        let filter = filter_of(self.filter.as_deref(), &catalogue)?;
        let mut planned = Vec::new();
        for file in suites.chosen(&self.what)? {
            planned.extend(plan(&file, &catalogue, &rig, &[self.profile.into()], &filter));
        }
        let planned = readable(planned)?;
        let limits = self.limits(&rig, &suites, &catalogue)?;
        let faults = self.draws.faults(&rig)?;
        self.draws.refuse_unfit(&faults, &planned)?;
        let ground = Ground::prepare(rig)?;
        refuse_flags(&planned, &ground)?;
        let folder = Folder::make(&self.report_dir).map_err(Trouble::input)?;
        let report = self.all(&planned, &ground, &folder, &limits, &faults, &catalogue)?;
        leave(&report, &folder, &catalogue)?;
        if planned.is_empty() {
            eprintln!("no trial matches: rigor list shows what there is");
        }
        Ok(Exit::of(&report.outcomes()).or_stale(report.has_stale_entries()))
    }

    /// The flags that decide what a trial is, as words, for commands that run one again.
    fn more(&self) -> Vec<String> {
        let profile = Profile::from(self.profile);
        let profile =
            (profile != Profile::Kube32).then(|| ["--profile".to_owned(), profile.name().to_owned()]);
        let suites = &self.place.suites;
        let suites = suites.as_ref().map(|dir| ["--suites".to_owned(), dir.display().to_string()]);
        let limitations = &self.limitations;
        let limitations =
            limitations.as_ref().map(|file| ["--limitations".to_owned(), file.display().to_string()]);
        [profile, suites, limitations].into_iter().flatten().flatten().collect()
    }

    /// What is known of the implementation under test.
    fn limits(&self, rig: &Rig, suites: &Suites, catalogue: &Catalogue) -> Result<Limits, Trouble> {
        let file = self.limitations.clone().or_else(|| rig.limitations.clone().map(PathBuf::from));
        let known = file.map_or(Ok(Limitations::default()), |file| limits::load(&file, suites, catalogue))?;
        Ok(Limits::of_today(known))
    }

    /// Runs what can run, telling of each trial as it ends. An interruption ends the program with a report of what there is.
    fn all(
        &self,
        planned: &[(String, Scenario, Option<String>)],
        ground: &Ground,
        folder: &Folder,
        limits: &Limits,
        faults: &Faults,
        catalogue: &Catalogue,
    ) -> Result<RunReport, Trouble> {
        let rig_report = ground.report()?;
        let clock = Clock::start();
        let style =
            Style { colour: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() };
        let workers = self.jobs.map_or_else(|| workers(ground.rig()), usize::from);
        let skipped = planned.iter().filter(|(_, _, skip)| skip.is_some()).count();
        tell(&beginning(planned.len() - skipped, skipped, &ground.rig().name, workers, style));
        let one = |(name, scenario, skip): &(String, Scenario, Option<String>)| match skip {
            Some(reason) => {
                TrialReport::unrun(name, scenario.requirements.clone(), Outcome::Skipped, reason.clone())
            }
            None => {
                let trial = Trial {
                    name,
                    scenario,
                    rig: ground.rig(),
                    seed: seed_of(self.seed, name),
                    faults: faults.clone(),
                    evidence: Some(folder.evidence(name)),
                    keep: self.keep || keeps(),
                };
                let mut report = run_trial(&trial, &|asked| ground.open(asked));
                limits.apply(&mut report);
                report
            }
        };
        let report = |mut trials: Vec<TrialReport>, search: Option<SearchReport>| {
            trials.sort_by(|one, other| one.name.cmp(&other.name));
            RunReport {
                started: (!ground.rig().kind.virtual_time()).then(|| clock.wall()),
                rig: rig_report.clone(),
                constants: ground.rig().constants,
                seed: self.seed,
                faults: faults.level(),
                search,
                profile: self.profile.into(),
                // Only where everything was asked for is an entry without a trial a mistake.
                limitations: limits.audit(&trials, self.what.is_empty() && self.filter.is_none()),
                trials,
            }
        };
        let report = if self.draws.is_search() {
            let more = self.more();
            let (rig, seed) = (self.rig.as_str(), self.seed);
            let suites = &Suites::new(self.place.suites());
            let more = &more;
            let field =
                Field { planned, ground, folder, limits, faults, seed, workers, style, rig, more, suites };
            let (stop, (left, has_left)) = (Arc::new(AtomicBool::new(false)), channel::<()>());
            let asked = Arc::clone(&stop);
            signals::before_the_end(Some(Box::new(move || {
                asked.store(true, Ordering::Relaxed);
                let _ = has_left.recv();
            })));
            let (trials, search) = self.draws.search(&field, &stop)?;
            let report = report(trials, Some(search));
            signals::before_the_end(None);
            if stop.load(Ordering::Relaxed) {
                interrupted(&report, folder, catalogue);
                drop(left);
                rest();
            }
            report
        } else {
            let (left, has_left) = channel();
            let trials = dispatch_until(
                planned,
                workers,
                one,
                |_, report| tell(&finished(report, style)),
                |stop| {
                    signals::before_the_end(Some(Box::new(move || {
                        stop.now();
                        let _ = has_left.recv();
                    })));
                },
                |ended| {
                    interrupted(&report(as_far_as(planned, ended), None), folder, catalogue);
                    let _ = left.send(());
                    rest();
                },
            );
            signals::before_the_end(None);
            report(trials, None)
        };
        tell(&summary(&report, clock.now().as_duration(), style));
        Ok(report)
    }
}

/// Writes the report, and says where it is.
fn leave(report: &RunReport, folder: &Folder, catalogue: &Catalogue) -> Result<(), Trouble> {
    folder.write(report, catalogue).map_err(Trouble::input)?;
    say(&format!("{:>12} {}", "Report", folder.path().display()));
    Ok(())
}

/// Leaves the report of a run that was interrupted.
fn interrupted(report: &RunReport, folder: &Folder, catalogue: &Catalogue) {
    eprintln!("rigor: interrupted; the report tells of what had ended");
    if let Err(Trouble::Input(error)) = leave(report, folder, catalogue) {
        eprintln!("{error:?}");
    }
}

/// Waits for the end of the process: nothing comes after the report of a run that was interrupted.
fn rest() -> ! {
    loop {
        std::thread::park();
    }
}

/// The trials of a run that was interrupted: what had not ended was not tried.
fn as_far_as(
    planned: &[(String, Scenario, Option<String>)],
    ended: &[Option<TrialReport>],
) -> Vec<TrialReport> {
    let unrun = |(name, scenario, skip): &(String, Scenario, Option<String>)| {
        let (outcome, reason) = match skip {
            Some(reason) => (Outcome::Skipped, reason.clone()),
            None => (Outcome::InfraError, "the run was interrupted before it had ended".to_owned()),
        };
        TrialReport::unrun(name, scenario.requirements.clone(), outcome, reason)
    };
    planned
        .iter()
        .zip(ended)
        .map(|(planned, ended)| ended.clone().unwrap_or_else(|| unrun(planned)))
        .collect()
}

/// The trials, if every file could be read: all mistakes are told at once.
fn readable(planned: Vec<Planned>) -> Result<Vec<(String, Scenario, Option<String>)>, Trouble> {
    let mut trials = Vec::new();
    let mut mistakes: Vec<SuiteError> = Vec::new();
    for planned in planned {
        match planned.scenario {
            Ok(scenario) => trials.push((planned.name, scenario, planned.skip)),
            Err(error) => mistakes.push(error),
        }
    }
    let count = mistakes.len();
    let Some(last) = mistakes.pop() else { return Ok(trials) };
    if count > 1 {
        eprintln!("{} cannot be read, so nothing was run:", many(count, "file"));
    }
    for error in mistakes {
        if let Trouble::Input(report) = Trouble::from(error) {
            eprintln!("{report:?}");
        }
    }
    Err(last.into())
}

/// Refuses flags of scenarios that their control plane does not take, which no trial has to show.
fn refuse_flags(planned: &[(String, Scenario, Option<String>)], ground: &Ground) -> Result<(), Trouble> {
    for (_, scenario, _) in
        planned.iter().filter(|(_, scenario, skip)| skip.is_none() && !scenario.flags.is_empty())
    {
        let Ok(source) = read(Path::new(&scenario.file)) else { continue };
        let root = yaml::parse_one(&source, &mut Vec::new());
        let check = |flags: &[String]| ground.check_flags(flags);
        if let Some(mistake) = root.and_then(|root| refused_flags(&root, [scenario], &check)) {
            return Err(Trouble::Input(Mistakes::new(&scenario.file, &source, vec![mistake]).into()));
        }
    }
    Ok(())
}

/// Whether the environment asks for the evidence of passing trials.
fn keeps() -> bool {
    std::env::var("RIGOR_KEEP").is_ok_and(|value| value == "1")
}

fn workers(rig: &Rig) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    match rig.kind {
        RigKind::Sim => processors,
        RigKind::Host | RigKind::Qemu => processors * 2,
        // A cluster has one scheduler, so its trials take turns.
        RigKind::External => 1,
    }
}
