//! What a person sees of a search: how far it is, what failed and how to see it again, and what it came to. Pure text.

use super::{Found, Search, Shrunk};
use crate::terminal::many;
use rigor_model::faults::Tally;
use rigor_model::report::{SearchReport, Withholding};
use rigor_model::{Fault, FaultLevel};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// The command that runs a trial again.
#[derive(Debug, Clone)]
pub struct Replay<'a> {
    /// The trial, as `rigor list` shows it, or its file.
    pub trial: &'a str,
    /// The rig, as it was named.
    pub rig: &'a str,
    /// The seed.
    pub seed: u64,
    /// Flags that were given besides, word by word: `--profile`, `--suites`.
    pub more: &'a [String],
    /// The faults as the command line names them: a level, or a file of a schedule.
    pub faults: &'a str,
    /// Where its report goes; `None`: the usual place.
    pub report_dir: Option<&'a Path>,
}

impl std::fmt::Display for Replay<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rigor run {} --rig {} --seed {}", quoted(self.trial), quoted(self.rig), self.seed)?;
        for word in self.more {
            write!(f, " {}", quoted(word))?;
        }
        if self.faults != FaultLevel::None.name() {
            write!(f, " --faults {}", quoted(self.faults))?;
        }
        if let Some(dir) = self.report_dir {
            write!(f, " --report-dir {}", quoted(&dir.display().to_string()))?;
        }
        Ok(())
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// How far a search is, on one line.
#[must_use]
pub fn progress(search: Search, found: &Found, took: Duration) -> String {
    let all = search.trials as u64 * u64::from(search.seeds);
    format!(
        "{:>12} [{:>8.1}s] {} of {} run, {} failing, {}",
        "Seeds",
        took.as_secs_f64(),
        found.runs,
        many(all, "trial"),
        found.failing.len(),
        speed(found.length, took)
    )
}

/// What a search came to.
#[must_use]
pub fn summary(search: Search, first_seed: u64, level: FaultLevel, found: &Found, took: Duration) -> String {
    let last = first_seed.saturating_add(u64::from(search.seeds)).saturating_sub(1);
    let mut text = format!(
        "{:>12} {} x {} ({}): {}, {} failing\n",
        "Seeds",
        many(search.trials, "trial"),
        many(search.seeds, "seed"),
        if last == first_seed { format!("{first_seed}") } else { format!("{first_seed} to {last}") },
        many(found.runs, "run"),
        found.failing.len()
    );
    let virtual_time = found.length.as_secs_f64();
    let _ = writeln!(
        text,
        "{:>12} {virtual_time:.0} s of virtual time in {:.1} s: {}",
        "Time",
        took.as_secs_f64(),
        speed(found.length, took)
    );
    if !level.is_none() {
        text.push_str(&faults(level, &found.faults));
        let _ = writeln!(
            text,
            "{:>12} {} (faults in their windows)",
            "Excused",
            if found.excused == 0 { "no expectation".to_owned() } else { many(found.excused, "expectation") }
        );
    }
    text
}

/// How many faults were injected.
#[must_use]
pub fn faults(level: FaultLevel, faults: &Tally) -> String {
    let none = if faults.total() == 0 { "; nothing was disturbed, so nothing is shown" } else { "" };
    format!("{:>12} {} ({level}): {faults}{none}\n", "Faults", faults.total())
}

/// Which faults did not strike, in which trials, and why; empty where no trial keeps any away.
#[must_use]
pub fn withheld(report: &SearchReport) -> String {
    let Some(all) = &report.withheld else { return String::new() };
    let mut text = format!("{:>12} {all}, in trials that are not for them:\n", "Withheld");
    for Withholding { trial, without, because, withheld } in &report.withholding {
        let without: Vec<&str> = without.iter().map(|kind| kind.name()).collect();
        let _ = writeln!(text, "{:>12} {trial} without {}: {withheld}; {because}", "", without.join(", "));
    }
    text
}

/// What `--shrink` came to where it had nothing to do: why, and what would give it something.
#[must_use]
pub fn nothing_to_shrink(level: FaultLevel) -> String {
    let why = if level.is_none() {
        "nothing: no faults were injected, so there is none to leave out; --faults mild or harsh injects some"
    } else {
        "nothing: no trial failed"
    };
    format!("{:>12} {why}\n", "Shrunk")
}

fn speed(length: Duration, took: Duration) -> String {
    let factor = length.as_secs_f64() / took.as_secs_f64().max(1e-6);
    format!("{factor:.0} times real time")
}

/// What came of shrinking the faults of a failure.
#[must_use]
pub fn shrunk(before: usize, shrunk: &Shrunk<Fault>) -> String {
    let ran_out = if shrunk.ran_out { ", where the tries ran out" } else { "" };
    let mut text = format!(
        "{:>12} from {} to {} in {}{ran_out}\n",
        "Shrunk",
        many(before, "fault"),
        shrunk.kept.len(),
        many(shrunk.tries, "run")
    );
    for fault in shrunk.kept.iter().take(20) {
        let kind = serde_json::to_string(&fault.kind).unwrap_or_default();
        let _ = writeln!(text, "{:>12} {} at its opportunity {}: {kind}", "", fault.site, fault.nth);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigor_model::FaultKind;

    #[test]
    fn a_replay_is_a_command_for_a_shell() {
        let replay =
            Replay { trial: "node/loss", rig: "sim", seed: 7, more: &[], faults: "none", report_dir: None };
        assert_eq!(replay.to_string(), "rigor run node/loss --rig sim --seed 7");
        let more = ["--suites".to_owned(), "my suites".to_owned()];
        let again = Replay { more: &more, faults: "harsh", report_dir: Some(Path::new("it's")), ..replay };
        assert_eq!(
            again.to_string(),
            r"rigor run node/loss --rig sim --seed 7 --suites 'my suites' --faults harsh --report-dir 'it'\''s'"
        );
    }

    #[test]
    fn what_a_search_came_to_reads_like_this() {
        let mut found =
            Found { runs: 400, length: Duration::from_secs(100_000), excused: 1, ..Found::default() };
        let search = Search { trials: 4, seeds: 100, go_on: false, workers: 2 };
        let took = Duration::from_secs(50);
        assert_eq!(
            summary(search, 7, FaultLevel::None, &found, took),
            "       Seeds 4 trials x 100 seeds (7 to 106): 400 runs, 0 failing\n        Time 100000 s of virtual time in 50.0 s: 2000 times real time\n"
        );
        let said = summary(search, 7, FaultLevel::Mild, &found, took);
        assert!(said.contains("Faults 0 (mild): none; nothing was disturbed"), "{said}");
        found.faults.count(&FaultKind::Lose {});
        let said = summary(search, 7, FaultLevel::Harsh, &found, took);
        assert!(said.contains("Faults 1 (harsh): 1 loss\n"), "{said}");
        assert!(said.contains("Excused 1 expectation (faults"), "{said}");
        assert_eq!(
            progress(search, &found, took),
            "       Seeds [    50.0s] 400 of 400 trials run, 0 failing, 2000 times real time"
        );
        let (search, found) =
            (Search { trials: 1, seeds: 1, ..search }, Found { runs: 1, ..Found::default() });
        let said = summary(search, 7, FaultLevel::None, &found, took);
        assert!(said.contains("Seeds 1 trial x 1 seed (7): 1 run, 0 failing"), "{said}");
    }

    #[test]
    fn a_shrinking_that_had_nothing_to_do_says_why() {
        assert!(nothing_to_shrink(FaultLevel::None).contains("--faults mild or harsh"));
        assert!(nothing_to_shrink(FaultLevel::Mild).contains("no trial failed"));
    }
}
