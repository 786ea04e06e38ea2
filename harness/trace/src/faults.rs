//! What a history says of the faults that were injected into its trial.

use rigor_model::faults::{FaultLevel, Schedule, Tally};

use crate::history::{Fact, Fault, History, Phase};

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
        let fault = |nth| Fault { site: "server".to_owned(), nth, kind: FaultKind::Kill { down: 5 } };
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
