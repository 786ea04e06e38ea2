//! Histories on disk: one record a line. A report's `events.jsonl` holds several trials one after another.

use std::io::{BufRead, Write};

use crate::history::{Fact, History, Record};

/// Why a history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The medium failed.
    #[error("line {line}: {error}")]
    Io {
        /// From 1.
        line: usize,
        /// What the medium said.
        error: std::io::Error,
    },
    /// A line is no record.
    #[error("line {line}: this is no record of a history: {error}")]
    NoRecord {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// Records are not numbered one after another, or not in the order of time.
    #[error("line {line}: record {found} stands where {expected} belongs; lines are missing or out of order")]
    OutOfOrder {
        /// From 1.
        line: usize,
        /// The number that belongs there.
        expected: u64,
        /// The number that stands there.
        found: u64,
    },
    /// A record is of an earlier instant than the one before it.
    #[error(
        "line {line}: record {found} is of an earlier instant than the one before; lines are out of order"
    )]
    Backwards {
        /// From 1.
        line: usize,
        /// Its number.
        found: u64,
    },
    /// There is no record at all.
    #[error("the file holds no record")]
    Empty,
}

/// Reads all trials of a file. Each begins with a record of number 0; empty lines are left out.
///
/// # Errors
/// [`ReadError`] with the number of the line.
pub fn read(source: impl BufRead) -> Result<Vec<History>, ReadError> {
    let mut histories: Vec<History> = Vec::new();
    for (index, text) in source.lines().enumerate() {
        let line = index + 1;
        let text = text.map_err(|error| ReadError::Io { line, error })?;
        if text.trim().is_empty() {
            continue;
        }
        let record: Record =
            serde_json::from_str(&text).map_err(|error| ReadError::NoRecord { line, error })?;
        if record.seq == 0 {
            histories.push(History::new());
        }
        let expected = histories.last().map_or(0, |history| history.len() as u64);
        let Some(history) = histories.last_mut().filter(|_| record.seq == expected) else {
            return Err(ReadError::OutOfOrder { line, expected, found: record.seq });
        };
        if record.at < history.last_at() {
            return Err(ReadError::Backwards { line, found: record.seq });
        }
        history.push(record.at, record.fact);
    }
    if histories.is_empty() { Err(ReadError::Empty) } else { Ok(histories) }
}

/// Writes a trial.
///
/// # Errors
/// Those of the medium.
pub fn write(history: &History, mut target: impl Write) -> std::io::Result<()> {
    for record in history.records() {
        serde_json::to_writer(&mut target, record)?;
        target.write_all(b"\n")?;
    }
    Ok(())
}

/// The scenario, the row of its table and the rig that a history says it is of.
pub fn trial_of(history: &History) -> Option<(&str, Option<&str>, &str)> {
    history.records().iter().find_map(|record| {
        let Fact::TrialStarted { scenario, case, rig, .. } = &record.fact else { return None };
        Some((scenario.as_str(), case.as_deref(), rig.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use rigor_model::Constants;
    use serde_json::json;

    use super::*;
    use crate::history::{FaultLevel, Micros, Phase, Verb};

    fn story() -> History {
        let mut history = History::new();
        let constants = Constants::default();
        let wall = Some("2026-01-01T00:00:00Z".to_owned());
        history.push(
            Micros(0),
            Fact::TrialStarted {
                scenario: "tale".into(),
                rig: "r".into(),
                case: Some("one".into()),
                seed: 7,
                wall,
                constants,
                faults: FaultLevel::None,
            },
        );
        history.push(
            Micros(5),
            Fact::Object {
                stream: "pods".into(),
                verb: Verb::Listed,
                object: json!({"kind": "Pod", "at": 3, "seq": 9}),
            },
        );
        history.push(Micros(6), Fact::Step { index: 3, phase: Phase::End });
        history
    }

    #[test]
    fn what_is_written_is_read() {
        let mut file = Vec::new();
        write(&story(), &mut file).expect("written");
        write(&story(), &mut file).expect("written");
        let read = read(file.as_slice()).expect("read");
        assert_eq!(read.len(), 2);
        assert_eq!(read[1].records(), story().records());
        assert_eq!(trial_of(&read[0]), Some(("tale", Some("one"), "r")));
    }

    #[test]
    fn mistakes_name_their_line() {
        let check = |text: &str, expected: &str| {
            let error = read(text.as_bytes()).expect_err(text).to_string();
            assert_eq!(error.split(" at line 1 ").next(), Some(expected), "{text}");
        };
        check("", "the file holds no record");
        check("\n\nnonsense", "line 3: this is no record of a history: expected ident");
        check(
            r#"{"seq":0,"at":1,"kind":"Nothing"}"#,
            "line 1: this is no record of a history: unknown variant `Nothing`, expected one of `TrialStarted`, `Namespace`, `Board`, `Delivery`, `Object`, `Synced`, `Gap`, `Pulse`, `Request`, `Kubectl`, `Etcdctl`, `Console`, `SchedulerLine`, `Power`, `Link`, `ControlPlane`, `Scheduler`, `Flash`, `Sent`, `ControlPlaneReady`, `Fault`, `Process`, `Step`, `Instant`, `Mark`, `Stall`, `TrialEnded`",
        );
        check(
            r#"{"seq":4,"at":1,"kind":"TrialEnded"}"#,
            "line 1: record 4 stands where 0 belongs; lines are missing or out of order",
        );
        check(
            "{\"seq\":0,\"at\":1,\"kind\":\"TrialEnded\"}\n{\"seq\":1,\"at\":0,\"kind\":\"TrialEnded\"}",
            "line 2: record 1 is of an earlier instant than the one before; lines are out of order",
        );
    }
}
