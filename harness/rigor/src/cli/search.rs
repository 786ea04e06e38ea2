//! `rigor run` with `--faults`, `--seeds` and `--shrink`.

use super::{Trouble, tell};
use crate::ground::Ground;
use crate::limits::Limits;
use crate::report::{Folder, TrialReport};
use crate::runner::{Trial, run_trial, seed_of};
use crate::search::{
    Failing, Found, Replay, Search, nothing_to_shrink, progress, search, shrink, summary, told_shrunk,
    withheld,
};
use crate::suite::Suites;
use crate::terminal::{Style, finished};
use clap::Args;
use rigor_model::faults::Tally;
use rigor_model::report::{SearchReport, Withholding};
use rigor_model::{FaultLevel, Faults, Outcome, Rig, Scenario, Schedule};
use rigor_rigs::clock::Clock;
use rigor_trace::Micros;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// How often a failure is run again, at most, to make its list of faults smaller.
const SHRINKING: usize = 400;

/// Between two lines that say how far a search is, in microseconds.
const TOLD_EVERY: u64 = 200_000;

/// What is drawn, and how often.
#[derive(Debug, Args)]
pub(super) struct Draws {
    /// Faults to inject, on rigs of kind sim: a level (none, mild, harsh) or the file of a schedule that --shrink wrote.
    #[arg(long, default_value = "none", value_name = "LEVEL|FILE")]
    faults: String,
    /// Try each trial with so many seeds, from --seed on, on rigs of kind sim. Of what passes nothing is kept.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    seeds: Option<u32>,
    /// Go on with further seeds of a trial that failed.
    #[arg(long, requires = "seeds")]
    no_fail_fast: bool,
    /// Of each failure, leave out faults as long as it fails in the same way, and write down those that are needed.
    #[arg(long)]
    shrink: bool,
}

/// What a search stands on.
pub(super) struct Field<'a> {
    /// Name, scenario, and why the rig cannot run it.
    pub(super) planned: &'a [(String, Scenario, Option<String>)],
    pub(super) ground: &'a Ground,
    pub(super) folder: &'a Folder,
    pub(super) limits: &'a Limits,
    pub(super) faults: &'a Faults,
    pub(super) seed: u64,
    pub(super) workers: usize,
    pub(super) style: Style,
    /// The rig as it was named, and further flags, for commands that run a trial again.
    pub(super) rig: &'a str,
    pub(super) more: &'a [String],
    /// Where trials are found by their names.
    pub(super) suites: &'a Suites,
}

impl Draws {
    /// Whether each trial is to be run more than once.
    pub(super) fn is_search(&self) -> bool {
        self.seeds.is_some() || self.shrink
    }

    /// The faults that are asked for.
    pub(super) fn faults(&self, rig: &Rig) -> Result<Faults, Trouble> {
        let faults = match FaultLevel::named(&self.faults) {
            Some(FaultLevel::None) => Faults::None,
            Some(level @ (FaultLevel::Mild | FaultLevel::Harsh)) => Faults::Drawn(level),
            None => Faults::Listed(read(Path::new(&self.faults))?),
        };
        let flag = if !faults.level().is_none() {
            "--faults"
        } else if self.seeds.is_some() {
            "--seeds"
        } else if self.shrink {
            "--shrink"
        } else {
            return Ok(faults);
        };
        if !rig.kind.virtual_time() {
            return Err(Trouble::Input(miette::miette!(
                help = format!("leave {flag} out, or run on a simulated rig: --rig sim"),
                "the rig {} is of kind {}: nothing that happens on it follows from a seed, so {flag} means nothing there",
                rig.name,
                rig.kind.name()
            )));
        }
        Ok(faults)
    }

    /// Refuses more seeds than there are from the first one on.
    pub(super) fn refuse_past_the_last(&self, first: u64) -> Result<(), Trouble> {
        let seeds = self.seeds.unwrap_or(1);
        if first.checked_add(u64::from(seeds).saturating_sub(1)).is_some() {
            return Ok(());
        }
        Err(Trouble::Input(miette::miette!(
            help = format!("the last seed is {}: begin earlier, or with fewer --seeds", u64::MAX),
            "there are no {seeds} seeds from {first} on"
        )))
    }

    /// Refuses a schedule with faults that one of the trials keeps away, or at boards that it does not have: it says exactly
    /// which faults there are.
    pub(super) fn refuse_unfit(
        &self,
        faults: &Faults,
        planned: &[(String, Scenario, Option<String>)],
    ) -> Result<(), Trouble> {
        let Faults::Listed(schedule) = faults else { return Ok(()) };
        for (name, scenario, _) in planned.iter().filter(|(.., skip)| skip.is_none()) {
            let lacks = |site: &str| {
                let board = site.split_once(':').map(|(_, board)| board);
                board.is_some_and(|board| !scenario.boards.iter().any(|own| own == board))
            };
            let mut numbered = schedule.faults.iter().enumerate();
            if let Some((index, fault)) = numbered.find(|(_, it)| lacks(&it.site)) {
                let boards = match scenario.boards.join(", ") {
                    none if none.is_empty() => "none".to_owned(),
                    boards => boards,
                };
                return Err(Trouble::Input(miette::miette!(
                    help = "leave such faults out of the schedule, or run the trial that it was written for",
                    "{}: faults[{index}] is at {}, and {name} has no such board: it has {boards}",
                    self.faults,
                    fault.site,
                )));
            }
            let Some(withheld) = &scenario.withheld else { continue };
            let mut numbered = schedule.faults.iter().enumerate();
            let Some((index, fault)) = numbered.find(|(_, it)| withheld.kinds.contains(&it.kind.named()))
            else {
                continue;
            };
            let kind = fault.kind.name();
            return Err(Trouble::Input(miette::miette!(
                help = format!(
                    "leave such faults out of the schedule, run other trials, or take {kind} out of spec.faults.without"
                ),
                "{}: faults[{index}] is a {kind} at {}, and no {kind} strikes in {name} (spec.faults in {}): {}",
                self.faults,
                fault.site,
                scenario.file,
                withheld.because
            )));
        }
        Ok(())
    }

    /// Searches until `stop` is set, tells, keeps evidence of the first failing seed of each trial, shrinks. The reports are one a
    /// trial.
    pub(super) fn search(
        &self,
        field: &Field<'_>,
        stop: &AtomicBool,
    ) -> Result<(Vec<TrialReport>, SearchReport), Trouble> {
        let clock = Clock::start();
        let run: Vec<&(String, Scenario, Option<String>)> =
            field.planned.iter().filter(|(.., skip)| skip.is_none()).collect();
        let shape = Search {
            trials: run.len(),
            seeds: self.seeds.unwrap_or(1),
            go_on: self.no_fail_fast,
            workers: field.workers,
        };
        let line = Line::new();
        let mut next = Micros::ZERO;
        let one = |trial: usize, seed: u32| field.run(run[trial], seed, field.faults, None);
        let found = search(shape, stop, one, |found, failing| {
            if let Some((trial, seed)) = failing {
                line.clear();
                let told = field.told(&found.failing[&(trial, seed)], seed);
                tell(&told);
            }
            if clock.now() >= next {
                line.show(&progress(shape, found, clock.now().as_duration()));
                next = Micros(clock.now().0 + TOLD_EVERY);
            }
        });
        line.clear();
        let took = clock.now().as_duration();
        let mut trials: Vec<TrialReport> = Vec::new();
        for (name, scenario, skip) in field.planned {
            if let Some(reason) = skip {
                let ids = scenario.requirements.clone();
                trials.push(TrialReport::unrun(name, ids, Outcome::Skipped, reason.clone()));
            }
        }
        let first = found.first();
        for (trial, (name, scenario, _)) in run.iter().enumerate() {
            let tried = found.tried.get(&trial).copied().unwrap_or_default();
            if first.iter().any(|(failed, _)| *failed == trial) {
                continue;
            }
            match found.green.get(&trial) {
                Some(report) if tried == shape.seeds => trials.push(report.clone()),
                Some(_) | None => {
                    let reason = format!("the search was interrupted after {tried} of {} seeds", shape.seeds);
                    let ids = scenario.requirements.clone();
                    trials.push(TrialReport::unrun(name, ids, Outcome::InfraError, reason));
                }
            }
        }
        for place in first {
            trials.push(self.again(field, run[place.0], place, &found, stop)?);
        }
        let report = report(shape, field, &run, &found);
        tell(&summary(shape, field.seed, field.faults.level(), &found, took));
        tell(&withheld(&report));
        if self.shrink && found.failing.is_empty() {
            tell(&nothing_to_shrink(field.faults.level()));
        }
        Ok((trials, report))
    }

    /// A failure once more, with its evidence; shrunk, if that is wanted.
    fn again(
        &self,
        field: &Field<'_>,
        planned: &(String, Scenario, Option<String>),
        (trial, seed): Failing,
        found: &Found,
        stop: &AtomicBool,
    ) -> Result<TrialReport, Trouble> {
        let known = &found.failing[&(trial, seed)];
        let dir = field.folder.evidence(&planned.0);
        let report = field.run(planned, seed, field.faults, Some(dir.clone()));
        let mut text = format!("{}\n", "-".repeat(12));
        text.push_str(&finished(&report, field.style));
        if (report.outcome, &report.text) != (known.outcome, &known.text) {
            text.push_str("    run again with the same seed it came out otherwise: the rig is not a function of its seed\n");
        }
        tell(&text);
        tell(&format!("      replay: {}\n", field.replay(planned, seed, &self.faults, None)));
        if self.shrink && !stop.load(Ordering::Relaxed) {
            self.smaller(field, planned, seed, &report, &dir, stop)?;
        }
        Ok(report)
    }

    /// Leaves faults out as long as it fails in the same way, until `stop` is set.
    fn smaller(
        &self,
        field: &Field<'_>,
        planned: &(String, Scenario, Option<String>),
        seed: u32,
        report: &TrialReport,
        dir: &Path,
        stop: &AtomicBool,
    ) -> Result<(), Trouble> {
        let all = rigor_trace::faults::schedule(&report.history);
        let same = |faults: &Faults| {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            let other = field.run(planned, seed, faults, None);
            (other.outcome, &other.broke) == (report.outcome, &report.broke)
        };
        if all.faults.is_empty() || same(&Faults::None) {
            let replay = field.replay(planned, seed, FaultLevel::None.name(), None);
            tell(&format!(
                "{:>12} it fails in the same way without any fault\n      replay: {replay}\n",
                "Shrunk"
            ));
            return Ok(());
        }
        let listed = |faults: &[rigor_model::Fault]| {
            Faults::Listed(Schedule { level: all.level, faults: faults.to_vec() })
        };
        if !same(&listed(&all.faults)) {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            tell(&format!(
                "{:>12} not: its {} faults as a list do not make it fail in the same way\n",
                "Shrunk",
                all.faults.len()
            ));
            return Ok(());
        }
        let shrunk = shrink(&all.faults, SHRINKING, |faults| same(&listed(faults)));
        let path = dir.join("faults.json");
        let schedule = Schedule { level: all.level, faults: shrunk.kept.clone() };
        write(&path, &schedule)?;
        // The next report into the same folder would remove what it is to be made from.
        let mut beside = field.folder.path().as_os_str().to_owned();
        beside.push("-replay");
        let replay = field.replay(planned, seed, &path.display().to_string(), Some(Path::new(&beside)));
        tell(&format!("{}      replay: {replay}\n", told_shrunk(all.faults.len(), &shrunk)));
        Ok(())
    }
}

impl Field<'_> {
    fn run(
        &self,
        (name, scenario, _): &(String, Scenario, Option<String>),
        seed: u32,
        faults: &Faults,
        evidence: Option<PathBuf>,
    ) -> TrialReport {
        let trial = Trial {
            name,
            scenario,
            rig: self.ground.rig(),
            seed: seed_of(self.seed.wrapping_add(u64::from(seed)), name),
            faults: faults.clone(),
            evidence,
            keep: false,
        };
        let mut report = run_trial(&trial, &|asked| self.ground.open(asked));
        self.limits.apply(&mut report);
        report
    }

    /// A failing seed, in two lines.
    fn told(&self, report: &TrialReport, seed: u32) -> String {
        let seed = self.seed.wrapping_add(u64::from(seed));
        let why = report.text.as_deref().or(report.reason.as_deref()).unwrap_or_default();
        let why: Vec<&str> = why.lines().map(str::trim).collect();
        format!(
            "{:>12} [seed {seed:>5}] {}: {}\n",
            report.outcome.name().to_uppercase(),
            report.name,
            why.first().copied().unwrap_or_default()
        )
    }

    fn replay(
        &self,
        (name, scenario, _): &(String, Scenario, Option<String>),
        seed: u32,
        faults: &str,
        report_dir: Option<&Path>,
    ) -> String {
        // A file that stands elsewhere is not found by its trial's name.
        let found = self.suites.find(name).and_then(|(file, _)| file.path().canonicalize().ok());
        let own = Path::new(&scenario.file).canonicalize().ok();
        let trial = if found.is_some() && found == own { name } else { &scenario.file };
        let seed = self.seed.wrapping_add(u64::from(seed));
        Replay { trial, rig: self.rig, seed, more: self.more, faults, report_dir }.to_string()
    }
}

fn report(
    shape: Search,
    field: &Field<'_>,
    run: &[&(String, Scenario, Option<String>)],
    found: &Found,
) -> SearchReport {
    let mut failed: Vec<(&String, u64)> = found
        .failing
        .keys()
        .map(|(trial, seed)| (&run[*trial].0, field.seed.wrapping_add(u64::from(*seed))))
        .collect();
    failed.sort();
    let mut all = Tally::default();
    found.withheld.values().for_each(|tally| all.add(tally));
    let withholding = run.iter().enumerate().filter(|_| !field.faults.level().is_none());
    let withholding = withholding.filter_map(|(trial, (name, scenario, _))| {
        let withheld = scenario.withheld.as_ref()?;
        Some(Withholding {
            trial: name.clone(),
            without: withheld.kinds.iter().copied().collect(),
            because: withheld.because.clone(),
            withheld: found.withheld.get(&trial).cloned().unwrap_or_default().to_string(),
        })
    });
    let withholding: Vec<Withholding> = withholding.collect();
    SearchReport {
        seeds: shape.seeds,
        runs: found.runs,
        length_micros: Micros::from_duration(found.length).0,
        injected: found.faults.to_string(),
        withheld: (!withholding.is_empty()).then(|| all.to_string()),
        withholding,
        excused: found.excused,
        failed: failed.into_iter().map(|(name, seed)| format!("{name} seed {seed}")).collect(),
    }
}

fn read(path: &Path) -> Result<Schedule, Trouble> {
    let shown = path.display();
    let source = std::fs::read_to_string(path).map_err(|error| {
        Trouble::Input(miette::miette!(
            help = "write none, mild or harsh, or name a file that --shrink wrote",
            "--faults {shown} is no level, and no file: {error}"
        ))
    })?;
    Schedule::parse(&source).map_err(|error| {
        Trouble::Input(miette::miette!(
            help = r#"a schedule is {"level": "harsh", "faults": [{"site": "link:a", "nth": 3, "kind": {"lose": {}}}]}; --shrink writes one"#,
            "{shown} is no schedule of faults: {error}"
        ))
    })
}

fn write(path: &Path, schedule: &Schedule) -> Result<(), Trouble> {
    let text = serde_json::to_string_pretty(schedule).unwrap_or_default();
    std::fs::write(path, format!("{text}\n")).map_err(|error| {
        Trouble::Input(miette::miette!(
            help = "make the report's folder writable or name another one with --report-dir",
            "{} cannot be written: {error}",
            path.display()
        ))
    })
}

/// A line at the foot of a terminal that is written over; nothing where there is no terminal.
struct Line {
    terminal: bool,
}

impl Line {
    fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal() }
    }

    fn show(&self, text: &str) {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K{text}");
        }
    }

    fn clear(&self) {
        self.show("");
    }
}
