//! Many seeds of the same trials, on rigs whose every draw follows from the seed: which of them fail, how to see it again, and with
//! how few faults.
//!
//! Breadth first: each trial with the first seed, then each with the second. A trial that fails is not tried with
//! later seeds (unless that is wanted), so that what is told of it is its first failing seed whatever the number of
//! workers. Nothing of what passes is kept.

mod shrink;
mod tell;

pub use shrink::{Shrunk, shrink};
pub use tell::{
    Replay, faults as told_faults, nothing_to_shrink, progress, shrunk as told_shrunk, summary, withheld,
};

use crate::dispatch::dispatch;
use crate::report::TrialReport;
use rigor_model::Outcome;
use rigor_model::faults::Tally;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// What is searched.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// How many trials there are.
    pub trials: usize,
    /// With how many seeds each is tried.
    pub seeds: u32,
    /// Whether a trial that failed is tried with further seeds.
    pub go_on: bool,
    /// How many run side by side.
    pub workers: usize,
}

/// A trial that is not green: its index, and which of the seeds, from 0.
pub type Failing = (usize, u32);

/// What was found so far.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// How many trials were run.
    pub runs: u64,
    /// How long they took together, on the rig's clock.
    pub length: Duration,
    /// The faults that were injected.
    pub faults: Tally,
    /// The faults that scenarios kept away, by trial.
    pub withheld: BTreeMap<usize, Tally>,
    /// How many expectations were excused.
    pub excused: u64,
    /// What is not green, without its history.
    pub failing: BTreeMap<Failing, TrialReport>,
    /// For each trial a report of it that is green, if there was one: the worst.
    pub green: BTreeMap<usize, TrialReport>,
    /// With how many seeds each trial was tried.
    pub tried: BTreeMap<usize, u32>,
}

impl Found {
    fn take(&mut self, place: Failing, report: TrialReport) {
        self.runs += 1;
        *self.tried.entry(place.0).or_default() += 1;
        self.length += report.length.as_duration();
        self.faults.add(&report.faults);
        self.withheld.entry(place.0).or_default().add(&report.withheld);
        self.excused += report.excused.len() as u64;
        if !report.outcome.is_green() {
            self.failing.insert(place, report);
            return;
        }
        match self.green.get(&place.0) {
            Some(known) if known.outcome >= report.outcome => {}
            Some(_) | None => {
                self.green.insert(place.0, report);
            }
        }
    }

    /// The first failing seed of each trial.
    #[must_use]
    pub fn first(&self) -> Vec<Failing> {
        let mut first: BTreeMap<usize, u32> = BTreeMap::new();
        for (trial, seed) in self.failing.keys() {
            first.entry(*trial).or_insert(*seed);
        }
        first.into_iter().collect()
    }

    /// How bad the worst of it is.
    #[must_use]
    pub fn worst(&self) -> Outcome {
        let outcomes = self.failing.values().map(|report| report.outcome);
        outcomes.max().unwrap_or(Outcome::Pass)
    }
}

/// Runs `one` for each trial and each seed, until `stop` is set; `heard` is called after each with what was found so far and, of
/// one that is not green, where.
pub fn search(
    search: Search,
    stop: &AtomicBool,
    one: impl Fn(usize, u32) -> TrialReport + Sync,
    mut heard: impl FnMut(&Found, Option<Failing>),
) -> Found {
    let items: Vec<Failing> =
        (0..search.seeds).flat_map(|seed| (0..search.trials).map(move |trial| (trial, seed))).collect();
    // The first seed that failed, by trial. One that was begun before is still heard of, so the least one is found.
    let failed: Vec<AtomicU32> = (0..search.trials).map(|_| AtomicU32::new(u32::MAX)).collect();
    let work = |(trial, seed): &Failing| {
        let is_over = !search.go_on && failed[*trial].load(Ordering::Relaxed) < *seed;
        if is_over || stop.load(Ordering::Relaxed) {
            return Slot::default();
        }
        let report = one(*trial, *seed);
        if !report.outcome.is_green() {
            failed[*trial].fetch_min(*seed, Ordering::Relaxed);
        }
        Slot(std::cell::RefCell::new(Some(Box::new(report))))
    };
    let mut found = Found::default();
    dispatch(&items, search.workers, work, |place, slot| {
        let Some(report) = slot.0.take() else { return };
        let failing = (!report.outcome.is_green()).then_some(*place);
        found.take(*place, *report);
        heard(&found, failing);
    });
    if !search.go_on {
        let first: BTreeMap<usize, u32> = found.first().into_iter().collect();
        found.failing.retain(|(trial, seed), _| first.get(trial) == Some(seed));
    }
    found
}

/// A report on its way to whoever listens, so that no list of them all is kept.
#[derive(Debug, Default)]
struct Slot(std::cell::RefCell<Option<Box<TrialReport>>>);

#[cfg(test)]
mod tests {
    use super::*;
    use rigor_trace::Micros;
    use std::sync::Mutex;

    fn report(outcome: Outcome) -> TrialReport {
        TrialReport {
            length: Micros(1_000_000),
            excused: vec!["late".to_owned()],
            ..TrialReport::unrun("a/b", Vec::new(), outcome, String::new())
        }
    }

    /// Three trials with ten seeds: the first passes, the second fails from the seventh seed on, the third is undecided with the fourth.
    fn run(go_on: bool, workers: usize) -> (Found, Vec<Failing>) {
        let asked = Mutex::new(Vec::new());
        let one = |trial: usize, seed: u32| {
            asked.lock().unwrap().push((trial, seed));
            report(match (trial, seed) {
                (1, 7..) => Outcome::Fail,
                (2, 4) => Outcome::Undecided,
                _ => Outcome::Pass,
            })
        };
        let shape = Search { trials: 3, seeds: 10, go_on, workers };
        let found = search(shape, &AtomicBool::new(false), one, |_, _| {});
        let mut asked = asked.into_inner().unwrap();
        asked.sort_unstable();
        (found, asked)
    }

    #[test]
    fn the_first_failing_seed_of_each_trial_is_found_with_any_number_of_workers() {
        for workers in [1, 2, 8] {
            let (found, _) = run(false, workers);
            assert_eq!(found.first(), [(1, 7), (2, 4)], "{workers} workers");
            assert_eq!(found.failing.len(), 2, "{workers} workers");
            assert_eq!(found.worst(), Outcome::Fail);
        }
    }

    #[test]
    fn a_trial_that_failed_is_left_alone_unless_one_goes_on() {
        let (found, asked) = run(false, 1);
        assert!(!asked.contains(&(1, 8)) && !asked.contains(&(2, 5)) && asked.contains(&(0, 9)), "{asked:?}");
        assert_eq!((found.runs, found.length, found.excused), (23, Duration::from_secs(23), 23));
        let (found, asked) = run(true, 1);
        assert_eq!((asked.len(), found.runs), (30, 30));
        let failing: Vec<Failing> = found.failing.keys().copied().collect();
        assert_eq!(failing, [(1, 7), (1, 8), (1, 9), (2, 4)]);
        assert_eq!(found.first(), [(1, 7), (2, 4)]);
    }

    #[test]
    fn every_trial_is_heard_of_once_and_a_failing_one_with_its_place() {
        let mut told = Vec::new();
        let mut count = 0;
        let one = |trial: usize, seed: u32| {
            report(if (trial, seed) == (1, 1) { Outcome::Fail } else { Outcome::Pass })
        };
        let shape = Search { trials: 2, seeds: 3, go_on: true, workers: 2 };
        search(shape, &AtomicBool::new(false), one, |found, failing| {
            count += 1;
            assert_eq!(found.runs, count);
            told.extend(failing);
        });
        assert_eq!((count, told), (6, vec![(1, 1)]));
    }

    #[test]
    fn nothing_is_begun_once_it_is_stopped_and_what_was_tried_is_counted() {
        let stop = AtomicBool::new(false);
        let one = |trial: usize, seed: u32| {
            stop.fetch_or((trial, seed) == (1, 2), Ordering::Relaxed);
            report(Outcome::Pass)
        };
        let found = search(Search { trials: 3, seeds: 10, go_on: true, workers: 1 }, &stop, one, |_, _| {});
        assert_eq!(found.tried, BTreeMap::from([(0, 3), (1, 3), (2, 2)]));
        assert_eq!(found.runs, 8);
    }
}
