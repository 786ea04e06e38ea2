//! Runs the scenarios with one fault on, and reads off the report what turned red.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::compile::Programs;
use crate::ledger::How;

/// What ends a process that used up its time.
const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;

/// The seed of all trials.
pub const SEED: u64 = 1;

/// How scenarios are run.
#[derive(Debug, Clone)]
pub struct Bench {
    /// The repository.
    pub root: PathBuf,
    /// What runs them, and what is tried.
    pub programs: Programs,
    /// Where reports go; what was there is replaced.
    pub reports: PathBuf,
}

/// How many seconds of a processor all scenarios may take on the simulated rig; they take a few. Not of the clock: on a
/// busy machine a slow run is no endless one.
const WORK_SIM: u64 = 60;
/// How many seconds of the clock those may take that need processes; and, as a last resort, those of the simulated rig.
const PATIENCE: u64 = 1200;

/// Which trials, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The rig's name.
    pub rig: &'a str,
    /// Names of trials; all if there are none.
    pub names: &'a [String],
    /// Only trials that this expression matches.
    pub filter: Option<&'a str>,
    /// After so many seconds of a processor a process is ended.
    pub work: u64,
}

impl<'a> Asked<'a> {
    /// All trials of the simulated rig.
    #[must_use]
    pub fn sim() -> Self {
        Self { rig: "sim", names: &[], filter: None, work: WORK_SIM }
    }

    /// These trials, with processes.
    #[must_use]
    pub fn host(names: &'a [String]) -> Self {
        Self { rig: "host", names, filter: None, work: PATIENCE }
    }
}

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// How it differs from a green run; `None` where it does not.
    pub how: Option<How>,
    /// The trials that are not green, by name.
    pub trials: Vec<String>,
    /// The requirements that they name.
    pub broke: Vec<String>,
    /// The trials that passed.
    pub passed: Vec<Trial>,
    /// The trials that the rig cannot run.
    pub skipped: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Report {
    #[serde(default)]
    scenarios: Vec<Trial>,
}

/// A trial of a report.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Trial {
    /// Its name.
    pub name: String,
    /// What came of it.
    pub outcome: String,
    /// The requirements that it names.
    pub requirements: Vec<String>,
}

impl Trial {
    /// Whether it names one of these.
    #[must_use]
    pub fn names_one_of<'a>(&self, ids: impl IntoIterator<Item = &'a String>) -> bool {
        ids.into_iter().any(|id| self.requirements.contains(id))
    }
}

impl Seen {
    /// This and what came of other trials with the same fault. A trial that failed says more than one that stayed undecided or
    /// took the rig with it: where only one of the two runs has such, its trials count.
    #[must_use]
    pub fn and(mut self, mut other: Self) -> Self {
        let rank = |seen: &Self| seen.how.map_or((1, None), |how| (0, Some(how)));
        if rank(&other) < rank(&self) {
            std::mem::swap(&mut self, &mut other);
        }
        if self.how == other.how {
            self.trials.append(&mut other.trials);
            self.broke.append(&mut other.broke);
            for list in [&mut self.trials, &mut self.broke] {
                list.sort_unstable();
                list.dedup();
            }
        }
        self.passed.append(&mut other.passed);
        self.skipped.append(&mut other.skipped);
        self
    }
}

impl Bench {
    /// Runs trials with a fault on, or with none.
    ///
    /// # Errors
    /// The harness cannot be run, refuses what it was asked, or leaves a report that cannot be read.
    pub fn run(&self, fault: Option<&str>, asked: &Asked<'_>) -> Result<Seen> {
        let report = self.reports.join(asked.rig);
        if report.exists() {
            fs::remove_dir_all(&report).with_context(|| format!("{} cannot be removed", report.display()))?;
        }
        let filter = asked.filter.map(|filter| ["--filter", filter]);
        let output = Command::new("timeout")
            .args(["--kill-after=10", &PATIENCE.to_string(), "prlimit"])
            .arg(format!("--cpu={}", asked.work))
            .arg(&self.programs.rigor)
            // Each scenario is for one profile and says itself what it needs of it.
            .args(["run", "--profile", "both", "--rig", asked.rig])
            .args(["--seed", &SEED.to_string(), "--report-dir"])
            .arg(&report)
            .args(filter.iter().flatten())
            .args(asked.names)
            .current_dir(&self.root)
            .env("RIGOR_FAULT", fault.unwrap_or_default())
            .env("RIGOR_CONTROL_PLANE", &self.programs.control_plane)
            .env("RIGOR_KUBELET_HOST", &self.programs.kubelet_host)
            .env("RIGOR_TOY_SCHEDULER", &self.programs.toy_scheduler)
            .env_remove("RIGOR_KEEP")
            .stdin(Stdio::null())
            .output()
            .context("`timeout` cannot be run: install coreutils and util-linux")?;
        if output.status.signal().is_some_and(|signal| [SIGKILL, SIGXCPU].contains(&signal)) {
            return Ok(Seen { how: Some(How::Timeout), ..Seen::default() });
        }
        match output.status.code() {
            Some(124 | 137 | 152) => return Ok(Seen { how: Some(How::Timeout), ..Seen::default() }),
            Some(0 | 1 | 3 | 4 | 5) => {}
            Some(2) => {
                bail!("rigor refuses the run: {}", String::from_utf8_lossy(&output.stderr).trim())
            }
            Some(_) | None => return Ok(Seen { how: Some(How::Exit), ..Seen::default() }),
        }
        let path = report.join("report.yaml");
        if !path.is_file() {
            // Where there is no rig there is no report.
            bail!("rigor left no report: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        read(&path)
    }
}

fn read(path: &Path) -> Result<Seen> {
    let text = fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let report: Report = match serde_saphyr::from_str(&text) {
        Ok(report) => report,
        Err(error) => bail!("{} cannot be read: {}", path.display(), error.without_snippet()),
    };
    Ok(seen(&report.scenarios))
}

fn seen(trials: &[Trial]) -> Seen {
    let named = |outcomes: &[&str]| -> Vec<String> {
        let found = trials.iter().filter(|trial| outcomes.contains(&trial.outcome.as_str()));
        found.map(|trial| trial.name.clone()).collect()
    };
    let worst = [("fail", How::Red), ("infra-error", How::Panic), ("undecided", How::Undecided)];
    let how = worst.into_iter().find(|(outcome, _)| !named(&[outcome]).is_empty()).map(|(_, how)| how);
    let reds = named(&worst.map(|(outcome, _)| outcome));
    let broken = trials.iter().filter(|trial| reds.contains(&trial.name));
    let mut broke: Vec<String> = broken.flat_map(|trial| trial.requirements.iter().cloned()).collect();
    broke.sort_unstable();
    broke.dedup();
    let passed = trials.iter().filter(|trial| trial.outcome == "pass").cloned().collect();
    Seen { how, trials: reds, broke, passed, skipped: named(&["skipped"]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_outcome_says_how_it_was_seen() {
        let trial = |name: &str, outcome: &str| Trial {
            name: name.into(),
            outcome: outcome.into(),
            requirements: vec!["B-02".into(), format!("A-{name}")],
        };
        for (outcomes, how, reds, broke) in [
            (&["pass", "skipped"][..], None, &[][..], &[][..]),
            (&["pass", "known-limitation"], None, &[], &[]),
            (&["undecided", "pass"], Some(How::Undecided), &["0"], &["A-0", "B-02"]),
            (&["undecided", "infra-error"], Some(How::Panic), &["0", "1"], &["A-0", "A-1", "B-02"]),
            (&["infra-error", "fail"], Some(How::Red), &["0", "1"], &["A-0", "A-1", "B-02"]),
        ] {
            let trials: Vec<Trial> =
                (0..).zip(outcomes).map(|(n, outcome)| trial(&n.to_string(), outcome)).collect();
            let seen = seen(&trials);
            assert_eq!((seen.how, seen.trials.as_slice()), (how, &reds.map_strings()[..]), "{outcomes:?}");
            assert_eq!(seen.broke, broke.map_strings());
        }
    }

    #[test]
    fn of_two_runs_the_worse_one_says_how_it_was_seen() {
        let seen = |how, trial: &str, broke: &str| Seen {
            how,
            trials: vec![trial.into()],
            broke: vec![broke.into()],
            ..Seen::default()
        };
        let green = Seen::default();
        let red = seen(Some(How::Red), "b", "A-01");
        let undecided = seen(Some(How::Undecided), "a", "B-01");
        assert_eq!(green.clone().and(green.clone()), green);
        for (one, other) in
            [(&red, &undecided), (&undecided, &red), (&red, &green), (&green, &red), (&red, &red)]
        {
            assert_eq!(one.clone().and(other.clone()), red, "{one:?} {other:?}");
        }
        let both = red.and(seen(Some(How::Red), "a", "C-01"));
        assert_eq!(
            (both.trials, both.broke),
            (vec!["a".into(), "b".into()], vec!["A-01".into(), "C-01".into()])
        );
    }

    trait Strings {
        fn map_strings(&self) -> Vec<String>;
    }

    impl Strings for &[&str] {
        fn map_strings(&self) -> Vec<String> {
            self.iter().map(|text| (*text).to_owned()).collect()
        }
    }
}
