//! What a person at a terminal sees of a run: a line a trial, failures whole, a summary.
//!
//! Pure text; who writes it where is the command line's affair.

use crate::report::{RunReport, TrialReport};
use crate::search::told_faults;
use rigor_model::Outcome;
use rigor_model::faults::Tally;
use rigor_model::report::{EntryState, LimitationReport};
use std::fmt::Write;
use std::time::Duration;

/// How text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// With ANSI colours.
    pub colour: bool,
}

impl Style {
    pub(crate) fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn outcome(self, outcome: Outcome, text: &str) -> String {
        let code = match outcome {
            Outcome::Pass => "32;1",
            Outcome::Fail | Outcome::InfraError => "31;1",
            Outcome::Undecided => "35;1",
            Outcome::Skipped | Outcome::KnownLimitation => "33;1",
        };
        self.paint(code, text)
    }
}

/// The word in a trial's line.
fn short(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "PASS",
        Outcome::Fail => "FAIL",
        Outcome::Skipped => "SKIP",
        Outcome::KnownLimitation => "KNOWN",
        Outcome::Undecided => "UNDECIDED",
        Outcome::InfraError => "INFRA",
    }
}

/// A count with its noun: `1 trial`, `2 trials`.
pub(crate) fn many(count: impl std::fmt::Display, what: &str) -> String {
    let count = count.to_string();
    format!("{count} {what}{}", if count == "1" { "" } else { "s" })
}

/// The line that begins a run.
#[must_use]
pub fn beginning(run: usize, skipped: usize, rig: &str, workers: usize, style: Style) -> String {
    let skipped = if skipped == 0 { String::new() } else { format!(" ({skipped} skipped)") };
    format!(
        "{:>12} {} on rig {rig}{skipped}, {}\n",
        style.paint("32;1", "    Starting"),
        many(run, "trial"),
        many(workers, "worker")
    )
}

/// A finished trial: its line, and the whole text when it is not green.
#[must_use]
pub fn finished(trial: &TrialReport, style: Style) -> String {
    let word = style.outcome(trial.outcome, &format!("{:>12}", short(trial.outcome)));
    let mut text = match trial.outcome {
        Outcome::Skipped => format!("{word} [         ] {}", trial.name),
        Outcome::Pass
        | Outcome::Fail
        | Outcome::KnownLimitation
        | Outcome::Undecided
        | Outcome::InfraError => {
            format!("{word} [{:>8}s] {}", seconds(trial.length.as_duration()), trial.name)
        }
    };
    if let Some(quarantined) = &trial.quarantined {
        let _ = write!(text, ": {quarantined}");
    } else if let Some(reason) = &trial.reason {
        let _ = write!(text, ": {}", reason.lines().next().unwrap_or_default());
    }
    if !trial.excused.is_empty() {
        let _ = write!(text, " ({} excused: faults in the window)", many(trial.excused.len(), "expectation"));
    }
    if trial.withheld.total() > 0 {
        let _ = write!(text, " ({} withheld)", trial.withheld);
    }
    text.push('\n');
    for (index, failed) in trial.attempts.iter().enumerate() {
        let _ = writeln!(text, "{:>12} attempt {} failed: {failed}", "", index + 1);
    }
    if !trial.outcome.is_green() {
        for line in trial.text.as_deref().unwrap_or_default().lines() {
            let _ = writeln!(text, "    {line}");
        }
        if let Some(evidence) = &trial.evidence {
            let _ = writeln!(text, "    evidence: {}", evidence.display());
        }
    }
    text
}

/// The end of a run: counts, and again the names of what is not green.
#[must_use]
pub fn summary(run: &RunReport, took: Duration, style: Style) -> String {
    let counts: Vec<String> = Outcome::ALL
        .into_iter()
        .map(|outcome| (outcome, run.trials.iter().filter(|trial| trial.outcome == outcome).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(outcome, count)| style.outcome(outcome, &format!("{count} {}", outcome.name())))
        .collect();
    let counts = if counts.is_empty() { "nothing ran".to_owned() } else { counts.join(", ") };
    let mut text = format!(
        "{:->12}\n{:>12} [{:>8}s] {}: {counts}\n",
        "",
        "Summary",
        seconds(took),
        many(run.trials.len(), "trial")
    );
    text.push_str(&injected(run));
    for trial in run.trials.iter().filter(|trial| !trial.outcome.is_green()) {
        let word = style.outcome(trial.outcome, &format!("{:>12}", short(trial.outcome)));
        let quarantined = if trial.quarantined.is_some() { " (quarantined)" } else { "" };
        let length = seconds(trial.length.as_duration());
        let _ = writeln!(text, "{word} [{length:>8}s] {}{quarantined}", trial.name);
    }
    for entry in &run.limitations {
        text.push_str(&limitation(entry, style));
    }
    text
}

/// How many faults were injected, where they were asked for. A search has told already.
fn injected(run: &RunReport) -> String {
    if run.faults.is_none() || run.search.is_some() {
        return String::new();
    }
    let mut faults = Tally::default();
    run.trials.iter().for_each(|trial| faults.add(&trial.faults));
    told_faults(run.faults, &faults)
}

/// What came of an entry of known limitations or quarantine; nothing of one whose trials did not run.
fn limitation(entry: &LimitationReport, style: Style) -> String {
    let sort = if entry.until.is_some() { "quarantine" } else { "known limitation" };
    let (code, said) = match entry.state {
        EntryState::NotRun => return String::new(),
        EntryState::InForce => ("33;1", "in force".to_owned()),
        EntryState::Passed => ("33;1", "passed".to_owned()),
        EntryState::Unsettled => ("33;1", "neither passed nor failed".to_owned()),
        EntryState::PassedUnexpectedly => ("31;1", "passed unexpectedly: remove the entry".to_owned()),
        EntryState::MatchesNothing => ("31;1", "no trial is like that: remove the entry".to_owned()),
        EntryState::Expired => {
            let until = entry.until.as_deref().unwrap_or_default();
            ("31;1", format!("expired after {until}: remove the entry or find out why it is still there"))
        }
    };
    let word = style.paint(code, if entry.state.is_stale() { "       STALE" } else { "      Listed" });
    format!("{word} {sort} {} (line {}, {}): {said}\n", entry.about, entry.line, entry.reference)
}

fn seconds(length: Duration) -> String {
    format!("{:.3}", length.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigor_model::report::RigReport;
    use rigor_model::{Constants, FaultLevel, Profile, RigKind};
    use rigor_trace::Micros;

    const PLAIN: Style = Style { colour: false };

    fn trial(name: &str, outcome: Outcome, reason: Option<&str>) -> TrialReport {
        TrialReport {
            reason: reason.map(str::to_owned),
            length: Micros(12_345_000),
            ..TrialReport::unrun(name, Vec::new(), outcome, String::new())
        }
    }

    #[test]
    fn a_run_reads_like_this() {
        let mut failed = trial("node/power-loss", Outcome::Fail, None);
        failed.text = Some("step 3: Node a becomes Unknown\n  2.31 s too early".to_owned());
        failed.evidence = Some("target/rigor/evidence/node/power-loss".into());
        let mut unsteady = trial("sched/unsteady", Outcome::Fail, None);
        unsteady.quarantined = Some("quarantined until 2027-03-31: now and then (tickets/7)".to_owned());
        let entry = |about: &str, until: Option<&str>, state| LimitationReport {
            about: about.to_owned(),
            line: 7,
            until: until.map(str::to_owned),
            reference: "tickets/7".to_owned(),
            reason: "it is slow".to_owned(),
            state,
        };
        let mut retried = trial("node/hang", Outcome::Pass, None);
        retried.attempts = vec!["the emulator ended".to_owned()];
        let run = RunReport {
            started: None,
            rig: RigReport {
                name: "qemu-short".to_owned(),
                kind: RigKind::Qemu,
                machine: "qemu-virt".to_owned(),
                emulator: None,
                firmware_sha256: None,
                control_plane: None,
            },
            constants: Constants::default(),
            seed: 1,
            faults: FaultLevel::None,
            search: None,
            profile: Profile::Kube32,
            trials: vec![
                trial("binding/raw", Outcome::Skipped, Some("the rig has no kubectl")),
                retried,
                failed,
                trial("sched/slow", Outcome::Undecided, Some("observer too slow")),
                trial("sched/known", Outcome::KnownLimitation, Some("it is slow (tickets/7)")),
                unsteady,
            ],
            limitations: vec![
                entry("sched/known", None, EntryState::InForce),
                entry("requirement NODE-03", None, EntryState::PassedUnexpectedly),
                entry("sched/unsteady", Some("2027-03-31"), EntryState::InForce),
                entry("sched/old", Some("2026-03-31"), EntryState::Expired),
                entry("sched/other", None, EntryState::NotRun),
            ],
        };
        let mut text = beginning(3, 1, &run.rig.name, 1, PLAIN);
        for trial in &run.trials {
            text.push_str(&finished(trial, PLAIN));
        }
        text.push_str(&summary(&run, Duration::from_secs(40), PLAIN));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn colours_are_only_where_they_are_wanted() {
        let trial = trial("a/b", Outcome::Pass, None);
        assert!(!finished(&trial, PLAIN).contains('\u{1b}'));
        assert!(finished(&trial, Style { colour: true }).contains("\u{1b}[32;1m"));
    }
}
