//! A run: build, see that nothing is red without a fault, try each mutant that has no line that stands, tell.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;

use crate::clock::{Clock, today};
use crate::compile::{Built, Yard};
use crate::fault::{self, Fault, Kind};
use crate::ledger::{self, Ledger, Line, Verdict};
use crate::mutant::{self, Mutant, Shadow};
use crate::stages::Stages;
use crate::table::table;
use crate::trials::{Asked, Bench, SEED, Seen, Trial};
use crate::{digest, shadow};

/// Breaks the reference on purpose and counts which breaks the suites see.
///
/// Exit codes: 0 every mutant was tried; 1 some were not, for want of time, or the build without a fault differs from the
/// sound one; 2 something could not be built or run, or is red without a fault.
#[derive(Debug, Parser)]
#[command(name = "ci/mutants", max_term_width = 110)]
pub struct Flags {
    /// Only these, by id; all if left out.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// How many of cargo-mutants to draw.
    #[arg(long, default_value_t = 48, value_name = "N")]
    sample: usize,
    /// What draws them; the date as a number if left out.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The day of the ledger; today if left out.
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
    /// Try again what has a line that stands.
    #[arg(long)]
    again: bool,
    /// Run every trial with every mutant, to list all that turn red; otherwise those that name the requirements which a fault
    /// is meant to break come first, and the others only where these stay green.
    #[arg(long)]
    all: bool,
    /// Leave out the trials that need processes.
    #[arg(long)]
    no_host: bool,
    /// Compare the build without a fault with the sound one, trial by trial and byte by byte, and try no mutant.
    #[arg(long)]
    identity: bool,
    /// List the hand-made faults, and the requirements that none is meant to break; try no mutant.
    #[arg(long)]
    list: bool,
    /// After so many minutes no further mutant is begun; what was tried is kept, and the next run goes on from there.
    #[arg(long, default_value_t = 60, value_name = "N")]
    minutes: u64,
}

/// Does what the flags say.
///
/// # Errors
/// Something could not be built or run, or is red without a fault.
pub fn run(flags: &Flags) -> Result<ExitCode> {
    let clock = Clock::start();
    let root = std::env::current_dir().context("the working directory cannot be found")?;
    ensure!(root.join("suites/requirements.yaml").is_file(), "run this at the root of the repository");
    let faults = fault::load(&root)?;
    if flags.list {
        let woven = shadow::Woven::of(&root, &faults)?;
        let wrong: Vec<String> = woven
            .edits
            .keys()
            .filter_map(|file| woven.source(&root, file).err().map(|error| format!("{error:#}")))
            .collect();
        ensure!(wrong.is_empty(), "faults that cannot stand together:\n  {}", wrong.join("\n  "));
        print!("{}", listed(&root, &faults)?);
        return Ok(ExitCode::SUCCESS);
    }
    let place = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(target) => root.join(target),
        None => root.join("target"),
    };
    let place = place.join("mutants");
    let _alone = alone(&place)?;
    if flags.identity {
        return identity(&root, &place, &faults);
    }
    let mut run = Run::begin(flags, clock, root, place, &faults)?;
    run.all()
}

/// Holds off other runs in the same place until it is dropped: they would exchange the programs under each other.
fn alone(place: &Path) -> Result<File> {
    std::fs::create_dir_all(place).with_context(|| format!("{} cannot be made", place.display()))?;
    let path = place.join("lock");
    let lock = File::create(&path).with_context(|| format!("{} cannot be made", path.display()))?;
    if lock.try_lock().is_err() {
        println!("waiting for another run in {}", place.display());
        lock.lock().with_context(|| format!("{} cannot be locked", path.display()))?;
    }
    Ok(lock)
}

fn yard(place: &Path, suffix: &'static str) -> Yard {
    Yard { shadow: place.join(suffix), target: place.join("target"), suffix }
}

struct Run {
    clock: Clock,
    minutes: u64,
    ledger: Ledger,
    bench: Bench,
    mutants: Vec<Mutant>,
    known: BTreeMap<String, Line>,
    stages: Stages,
    again: bool,
    every_trial: bool,
    root: PathBuf,
}

impl Run {
    fn begin(flags: &Flags, clock: Clock, root: PathBuf, place: PathBuf, faults: &[Fault]) -> Result<Self> {
        let date = flags.date.clone().unwrap_or_else(today);
        let seed = match flags.seed {
            Some(seed) => seed,
            None => date.replace('-', "").parse().context("--date is no day like 2026-11-30")?,
        };
        let suites = digest::of_suites(&root)?;
        let ledgers = ledger::all(&root)?;
        let known = ledger::newest(&ledgers);
        let mut ledger = Ledger::of_day(&ledgers, &date, seed, &suites);
        let wants_drawn = flags.sample > 0 && flags.ids.is_empty();
        let drawn = if wants_drawn {
            mutant::shard(&root, seed, flags.sample, &elsewhere(&ledgers, &root, &date))?
        } else {
            Vec::new()
        };
        println!("building with {} hand-made faults", faults.len());
        let count = if wants_drawn { flags.sample } else { 0 };
        let Shadow { programs, woven, refused } =
            mutant::build(&root, &yard(&place, "faulty"), faults, drawn, count)?;
        println!("[{:>5.0} s] built, with {} of cargo-mutants", clock.elapsed().as_secs_f64(), woven.len());
        let reasons = mutant::equivalent(&root)?;
        for (drawn, words) in &refused {
            let line = Mutant::of_drawn(&root, drawn, &reasons)?.line(&suites, SEED);
            let reason = Some(words.clone());
            ledger.take(&root, Line { verdict: Verdict::Invalid, reason, ..line })?;
        }
        let asked = |id: &str| flags.ids.is_empty() || flags.ids.iter().any(|it| it == id);
        let chosen: Vec<&Fault> = faults.iter().filter(|fault| asked(&fault.id)).collect();
        if let Some(unknown) = flags.ids.iter().find(|id| chosen.iter().all(|fault| fault.id != **id)) {
            bail!("{unknown} is no fault: --list names them");
        }
        let mut mutants =
            chosen.iter().map(|fault| Mutant::of_fault(&root, fault)).collect::<Result<Vec<_>>>()?;
        for drawn in &woven {
            mutants.push(Mutant::of_drawn(&root, drawn, &reasons)?);
        }
        mutants.sort_by_key(|mutant| mutant.kind);
        let bench = Bench { root: root.clone(), programs, reports: place.join("reports") };
        let mut run = Self {
            clock,
            minutes: flags.minutes,
            ledger,
            bench,
            mutants,
            known,
            stages: Stages::default(),
            again: flags.again,
            every_trial: flags.all,
            root,
        };
        run.baseline(flags.no_host)?;
        Ok(run)
    }

    /// Without a fault everything is green; notes the trials that only processes can run.
    fn baseline(&mut self, no_host: bool) -> Result<()> {
        let sim = self.bench.run(None, &Asked::sim())?;
        ensure_green(&sim, "sim")?;
        println!(
            "{} trials pass on sim without a fault, {} are skipped",
            sim.passed.len(),
            sim.skipped.len()
        );
        let second = requirements(&self.root, &["external"])?;
        let racing = self.mutants.iter().filter(|mutant| mutant.overlapping);
        let racing: Vec<String> = racing.flat_map(|mutant| mutant.requirements.clone()).collect();
        let twice = |trial: &&Trial| trial.names_one_of(second.iter().chain(&racing));
        let mut asked: Vec<String> =
            sim.passed.iter().filter(twice).map(|trial| trial.name.clone()).collect();
        asked.extend(sim.skipped);
        if no_host || asked.is_empty() {
            return Ok(());
        }
        let mut host = self.bench.run(None, &Asked::host(&asked))?;
        if !host.trials.is_empty() {
            // In real time a busy machine is late, too.
            let again = self.bench.run(None, &Asked::host(&host.trials))?;
            host.passed.extend(again.passed);
            (host.how, host.trials) = (again.how, again.trials);
        }
        ensure_green(&host, "host")?;
        let (passed, asked) = (host.passed.len(), asked.len());
        println!(
            "{passed} of {asked} pass on host without a fault: those, the second scheduler's, and what overlapping requests break"
        );
        self.stages = Stages::new(&sim.passed, host.passed, &second, &racing);
        Ok(())
    }

    fn all(&mut self) -> Result<ExitCode> {
        let limit = self.minutes * 60;
        let mutants = self.mutants.clone();
        let mut untried = 0;
        for (number, mutant) in mutants.iter().enumerate() {
            let standing = self
                .known
                .get(&mutant.id)
                .filter(|line| !self.again && line.stands(&self.root, &self.ledger.suites, &mutant.digest));
            if let Some(line) = standing {
                // An old verdict under a reason that was given since.
                let line = judged(line.clone(), mutant);
                self.ledger.take(&self.root, line)?;
                continue;
            }
            if self.clock.elapsed().as_secs() >= limit {
                untried += 1;
                continue;
            }
            let line = self.tried(mutant)?;
            let at = self.clock.elapsed().as_secs_f64();
            println!("[{at:>5.0} s] {}/{} {}", number + 1, mutants.len(), told(&line));
            self.ledger.take(&self.root, line)?;
        }
        let ids: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.id.as_str()).collect();
        let lines: Vec<Line> = self
            .ledger
            .lines
            .iter()
            .filter(|line| ids.contains(line.id.as_str()) || line.verdict == Verdict::Invalid)
            .cloned()
            .collect();
        print!("\n{}", table(&lines));
        println!("{} holds {} lines", self.ledger.path().display(), self.ledger.lines.len());
        if untried == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        println!("{untried} were not tried in {} minutes: run this again to go on", self.minutes);
        Ok(ExitCode::FAILURE)
    }

    fn tried(&self, mutant: &Mutant) -> Result<Line> {
        let begun = self.clock.elapsed();
        let fault = Some(mutant.id.as_str());
        let mut tried = self.stages.first(mutant);
        let mut told = Told::default();
        told.take("host", self.on_host(fault, &tried)?);
        let filter: Vec<String> = mutant.requirements.iter().map(|id| format!("req:{id}")).collect();
        if !self.every_trial && !filter.is_empty() {
            let filter = filter.join(" | ");
            told.take("sim", self.bench.run(fault, &Asked { filter: Some(&filter), ..Asked::sim() })?);
        }
        let second = self.stages.second(mutant, &told.seen.broke, &tried);
        told.take("host", self.on_host(fault, &second)?);
        tried.extend(second);
        if self.every_trial || told.seen.how.is_none() {
            told.take("sim", self.bench.run(fault, &Asked::sim())?);
        }
        if told.seen.how.is_none() {
            told.take("host", self.on_host(fault, &self.stages.last(mutant, &tried))?);
        }
        let Told { seen, rigs } = told;
        let line = mutant.line(&self.ledger.suites, SEED);
        let taken = self.clock.elapsed().saturating_sub(begun).as_secs_f64();
        let line = Line {
            verdict: if seen.how.is_some() { Verdict::Killed } else { Verdict::Survived },
            how: seen.how,
            trials: seen.trials,
            broke: seen.broke,
            rig: rigs.join(", "),
            seconds: (taken * 10.0).round() / 10.0,
            ..line
        };
        Ok(judged(line, mutant))
    }

    /// Runs these trials with processes; what turned red has to do so again, since in real time a busy machine is late, too.
    fn on_host(&self, fault: Option<&str>, names: &[String]) -> Result<Seen> {
        if names.is_empty() {
            return Ok(Seen::default());
        }
        let seen = self.bench.run(fault, &Asked::host(names))?;
        match seen.trials.is_empty() {
            true => Ok(seen),
            false => self.bench.run(fault, &Asked::host(&seen.trials)),
        }
    }
}

/// What trials of a mutant have told so far, and on which rigs: those of the red ones, and where there are none the last one.
#[derive(Debug, Default)]
struct Told {
    seen: Seen,
    rigs: Vec<&'static str>,
}

impl Told {
    fn take(&mut self, rig: &'static str, seen: Seen) {
        if seen == Seen::default() {
            return;
        }
        let red = seen.how.is_some();
        if self.seen.how.is_none() {
            self.rigs.clear();
        }
        if (red || self.seen.how.is_none()) && !self.rigs.contains(&rig) {
            self.rigs.push(rig);
        }
        self.seen = std::mem::take(&mut self.seen).and(seen);
    }
}

/// A survivor of which a person has said why nothing can see it is equivalent, and no other is.
fn judged(line: Line, mutant: &Mutant) -> Line {
    match (line.verdict, &mutant.equivalent) {
        (Verdict::Survived | Verdict::Equivalent, Some(reason)) => {
            Line { verdict: Verdict::Equivalent, reason: Some(reason.clone()), ..line }
        }
        (Verdict::Survived | Verdict::Equivalent, None) => {
            Line { verdict: Verdict::Survived, reason: None, ..line }
        }
        (Verdict::Killed | Verdict::Invalid, _) => line,
    }
}

fn told(line: &Line) -> String {
    match line.verdict {
        Verdict::Killed if line.trials.is_empty() => format!("killed {}: {:?}", line.id, line.how),
        Verdict::Killed => format!("killed {}: {} trials, {:?}", line.id, line.trials.len(), line.how),
        Verdict::Survived => format!("SURVIVED {}", line.id),
        Verdict::Equivalent => format!("equivalent {}", line.id),
        Verdict::Invalid => format!("invalid {}", line.id),
    }
}

fn ensure_green(seen: &Seen, rig: &str) -> Result<()> {
    ensure!(
        seen.how.is_none(),
        "on {rig} something is not green without a fault ({:?}), so nothing can be learned: {}",
        seen.how,
        seen.trials.join(", ")
    );
    ensure!(rig == "host" || !seen.passed.is_empty(), "on {rig} nothing passed");
    Ok(())
}

/// Mutants of cargo-mutants that another day has a line for which stands, and ones that do not compile.
fn elsewhere(ledgers: &[Ledger], root: &Path, date: &str) -> BTreeSet<String> {
    let unchanged = |line: &Line| line.stands(root, &line.suites, &line.mutant);
    let lines = ledgers.iter().flat_map(|ledger| ledger.lines.iter().map(move |line| (ledger, line)));
    lines
        .filter(|(ledger, line)| {
            line.kind == Kind::Cargo && unchanged(line) && {
                line.verdict == Verdict::Invalid || ledger.date != date
            }
        })
        .map(|(_, line)| line.id.clone())
        .collect()
}

/// Whether the build without a fault does what the sound one does, byte by byte.
fn identity(root: &Path, place: &Path, faults: &[Fault]) -> Result<ExitCode> {
    let faulty = mutant::build(root, &yard(place, "faulty"), faults, Vec::new(), 0)?;
    let sound_yard = yard(place, "sound");
    shadow::write(root, &sound_yard.shadow, &shadow::Woven::default(), sound_yard.suffix)?;
    let Built::Programs(sound) = sound_yard.build()? else { bail!("nothing is woven into the sound build") };
    let mut differing = Vec::new();
    let mut reports = Vec::new();
    for (name, programs) in [("faulty", faulty.programs), ("sound", sound)] {
        let bench = Bench { root: root.to_owned(), programs, reports: place.join("identity").join(name) };
        let seen = bench.run(None, &Asked::sim())?;
        reports.push((bench.reports.join("sim"), seen));
    }
    let [(one, seen), (other, _)] = reports.as_slice() else { bail!("there are two reports to compare") };
    for file in ["report.yaml", "events.jsonl"] {
        if digest::of_file(&one.join(file))? != digest::of_file(&other.join(file))? {
            differing.push(file);
        }
    }
    if differing.is_empty() {
        println!("{} trials: report and history are the same, byte by byte", seen.passed.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "without a fault the faulty build differs from the sound one in {}: compare {} and {}",
        differing.join(" and "),
        one.display(),
        other.display()
    );
    Ok(ExitCode::FAILURE)
}

/// The faults, and the requirements that none is meant to break.
fn listed(root: &Path, faults: &[Fault]) -> Result<String> {
    let mut text: String = faults
        .iter()
        .map(|fault| format!("{:<44} {:<9} {}\n", fault.id, fault.kind, fault.breaks.join(" ")))
        .collect();
    let broken: BTreeSet<&str> = faults.iter().flat_map(|fault| &fault.breaks).map(String::as_str).collect();
    let without: Vec<String> =
        requirements(root, OURS)?.into_iter().filter(|id| !broken.contains(id.as_str())).collect();
    text.push_str(&format!("{} faults; without one: {}\n", faults.len(), without.join(" ")));
    Ok(text)
}

/// The profiles of what is here: the small control plane, its boards, its profile of Kubernetes' scheduler and the second one.
const OURS: &[&str] = &["kube32", "both", "kubelet", "upstream", "external"];

/// Ids of the requirements of these profiles.
fn requirements(root: &Path, profiles: &[&str]) -> Result<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Catalogue {
        areas: BTreeMap<String, Vec<Row>>,
    }
    #[derive(serde::Deserialize)]
    struct Row {
        id: String,
        profile: String,
    }
    let text = std::fs::read_to_string(root.join("suites/requirements.yaml"))
        .context("suites/requirements.yaml cannot be read")?;
    let catalogue: Catalogue = match serde_saphyr::from_str(&text) {
        Ok(catalogue) => catalogue,
        Err(error) => bail!("suites/requirements.yaml: {}", error.without_snippet()),
    };
    let rows = catalogue.areas.into_values().flatten();
    let chosen = rows.filter(|row| profiles.contains(&row.profile.as_str()));
    Ok(chosen.map(|row| row.id).collect())
}
