//! What a history says of the faults that were injected into its trial.

use rigor_model::faults::{FaultKind, FaultLevel, Schedule, Tally};

use crate::history::{Fact, Fault, History, Micros, Phase};

/// No mild delay is longer, in microseconds: half the largest slack that a gate accepts.
const LONGEST_MILD: u64 = 250_000;

/// A fault that was injected, as the history's index keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injected {
    /// Which.
    pub fault: Fault,
    /// The record of its begin.
    pub record: usize,
    /// When it began.
    pub at: Micros,
    /// The record and time of its end.
    pub end: Option<(usize, Micros)>,
    /// Whether it has an end that comes later than its begin.
    pub lasts: bool,
}

impl Injected {
    pub(crate) fn new(fault: Fault, record: usize, at: Micros) -> Injected {
        let lasts = match fault.kind {
            FaultKind::Lose {}
            | FaultKind::Cut { silent: true, .. }
            | FaultKind::PowerCut { .. }
            | FaultKind::Kill { .. } => true,
            FaultKind::Delay { .. }
            | FaultKind::Reorder { .. }
            | FaultKind::Duplicate { .. }
            | FaultKind::Cut { silent: false, .. }
            | FaultKind::Clock { .. } => false,
        };
        Injected { fault, record, at, end: None, lasts }
    }

    /// Whether it ended the server's process.
    pub fn is_kill(&self) -> bool {
        matches!(self.fault.kind, FaultKind::Kill { .. })
    }

    /// The board whose power it cut.
    pub fn unpowered(&self) -> Option<&str> {
        match self.fault.kind {
            FaultKind::PowerCut { .. } => self.fault.site.strip_prefix("board:"),
            FaultKind::Lose {}
            | FaultKind::Cut { .. }
            | FaultKind::Kill { .. }
            | FaultKind::Delay { .. }
            | FaultKind::Reorder { .. }
            | FaultKind::Duplicate { .. }
            | FaultKind::Clock { .. } => None,
        }
    }

    /// Whether it is more than a healthy network does, so that a scenario need not go as it does without.
    pub fn is_harsh(&self) -> bool {
        match self.fault.kind {
            FaultKind::Lose {}
            | FaultKind::Cut { .. }
            | FaultKind::PowerCut { .. }
            | FaultKind::Kill { .. } => true,
            FaultKind::Delay { micros: length } | FaultKind::Reorder { at_most: length } => {
                length > LONGEST_MILD
            }
            FaultKind::Duplicate { second, .. } => second,
            FaultKind::Clock { .. } => false,
        }
    }

    /// When it did its harm to the last, where that is known from its begin.
    pub fn over(&self) -> Micros {
        Micros(self.at.0.saturating_add(self.fault.kind.length()))
    }
}

/// The faults that were injected, oldest first.
pub fn injected(history: &History) -> impl Iterator<Item = &Fault> {
    history.records().iter().filter_map(|record| {
        let Fact::Fault { fault, phase: Phase::Begin } = &record.fact else { return None };
        Some(fault)
    })
}

/// The schedule that does to the same trial what was done to this one.
pub fn schedule(history: &History) -> Schedule {
    let level = history.records().iter().find_map(|record| {
        let Fact::TrialStarted { faults, .. } = &record.fact else { return None };
        Some(*faults)
    });
    Schedule { level: level.unwrap_or(FaultLevel::None), faults: injected(history).cloned().collect() }
}

/// How many faults of each kind there were.
pub fn tally(history: &History) -> Tally {
    let mut tally = Tally::default();
    injected(history).for_each(|fault| tally.count(&fault.kind));
    tally
}

#[cfg(test)]
mod tests {
    use rigor_model::Constants;
    use rigor_model::faults::FaultKind;
    use serde_json::json;

    use super::*;
    use crate::history::Micros;

    #[test]
    fn a_fault_counts_once_and_stands_in_the_schedule_once() {
        let fault =
            |nth| Fault { site: "server".to_owned(), nth, kind: FaultKind::Kill { down: 5, writes: 0 } };
        let mut history = History::new();
        history.push(
            Micros(0),
            Fact::TrialStarted {
                scenario: "s".to_owned(),
                rig: "sim".to_owned(),
                case: None,
                seed: 1,
                wall: None,
                constants: Constants::default(),
                faults: FaultLevel::Harsh,
            },
        );
        for nth in [3, 8] {
            history.push(Micros(nth), Fact::Fault { fault: fault(nth), phase: Phase::Begin });
        }
        history.push(Micros(9), Fact::Fault { fault: fault(3), phase: Phase::End });
        let schedule = schedule(&history);
        assert_eq!(schedule, Schedule { level: FaultLevel::Harsh, faults: vec![fault(3), fault(8)] });
        assert_eq!(tally(&history).to_string(), "2 server kills");
        assert_eq!(
            serde_json::to_value(&history.records()[3]).expect("json"),
            json!({"seq": 3, "at": 9, "kind": "Fault", "phase": "end",
                "fault": {"site": "server", "nth": 3, "kind": {"kill": {"down": 5}}}})
        );
    }
}
