//! Histories that someone else recorded, turned into ours: `watch-jsonl`, one fact a line with times in seconds.
//!
//! `RecordingStarted` (wall time of zero), `Observed` (a watch event), `Request` (with its answer) and `Mark`
//! (something done outside the API). Such recordings have no pulses, so an observation is taken to arrive within a
//! stated time after the write.

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use rigor_model::{Constants, FaultLevel};
use rigor_trace::{Fact, History, Micros, Verb};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// An observation is taken to arrive at most this long after the write it shows.
const DELIVERY: Micros = Micros(100_000);

/// No recording goes on for longer: about three years, in seconds.
const LONGEST: f64 = 1e8;

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ImportError {
    /// Line of the recording, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
enum Line {
    RecordingStarted {
        wall: String,
    },
    Observed {
        at: f64,
        watch: String,
        r#type: String,
        object: Value,
    },
    Request {
        sent: f64,
        answered: f64,
        method: String,
        path: String,
        #[serde(default)]
        body: Option<Value>,
        status: u16,
        #[serde(default)]
        date: Option<String>,
        #[serde(default)]
        answer: Option<Value>,
    },
    Mark {
        at: f64,
        name: String,
        #[serde(default)]
        node: Option<String>,
    },
}

/// The history of a recording; `name` is what its trial is called.
///
/// # Errors
/// A line is no fact of a recording, or the recording does not say when it began.
pub fn import(name: &str, recording: &str, constants: &Constants) -> Result<History, ImportError> {
    let mut wall = None;
    let mut facts: Vec<(Micros, Fact)> = Vec::new();
    let mut streams = BTreeSet::new();
    let mut requests = 0;
    for (index, text) in recording.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
        let wrong = |problem: String| ImportError { line: index + 1, problem };
        let line: Line = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        match line {
            Line::RecordingStarted { wall: stated } => {
                if wall.is_some() || !facts.is_empty() {
                    return Err(wrong("RecordingStarted stands once, before all else".to_owned()));
                }
                if stated.parse::<Timestamp>().is_err() {
                    let like = "2026-11-29T12:58:51.568908Z";
                    return Err(wrong(format!("wall: `{stated}` is no time; write it as {like}")));
                }
                wall = Some(stated);
            }
            Line::Observed { at, watch, r#type, object } => {
                let stream =
                    stream_of(&watch).ok_or_else(|| wrong(format!("`{watch}` is no collection's path")))?;
                let verb =
                    verb_of(&r#type).ok_or_else(|| wrong(format!("`{}` is no watch event", r#type)))?;
                streams.insert(stream.clone());
                facts.push((micros("at", at).map_err(wrong)?, Fact::Object { stream, verb, object }));
            }
            Line::Request { sent, answered, method, path, body, status, date, answer } => {
                let (sent, answered) =
                    (micros("sent", sent).map_err(&wrong)?, micros("answered", answered).map_err(&wrong)?);
                if answered < sent {
                    return Err(wrong(format!("answered at {answered}, before it was sent at {sent}")));
                }
                if let Some(date) = date.as_deref().filter(|date| rfc2822::parse(date).is_err()) {
                    return Err(wrong(format!(
                        "date: `{date}` is not the Date of an HTTP answer; leave it out"
                    )));
                }
                let fact = Fact::Request {
                    id: requests,
                    sent,
                    as_user: "admin".to_owned(),
                    method,
                    path,
                    body,
                    status,
                    response: answer,
                    date,
                    headers: BTreeMap::new(),
                    error: None,
                };
                requests += 1;
                facts.push((answered, fact));
            }
            Line::Mark { at, name, node } => {
                facts.push((micros("at", at).map_err(wrong)?, Fact::Mark { name, subject: node }));
            }
        }
    }
    let Some(wall) = wall else {
        return Err(ImportError {
            line: 1,
            problem: "there is no RecordingStarted with the wall time of zero".to_owned(),
        });
    };
    // Facts of one instant keep the recording's order.
    facts.sort_by_key(|(at, _)| *at);
    let started = Fact::TrialStarted {
        scenario: name.to_owned(),
        rig: "import".to_owned(),
        case: None,
        seed: 0,
        wall: Some(wall),
        constants: *constants,
        faults: FaultLevel::None,
    };
    let end = facts.last().map_or(Micros::ZERO, |(at, _)| *at);
    let mut history = History::new();
    history.push(Micros::ZERO, started);
    history.push(Micros::ZERO, Fact::Delivery { at_most: DELIVERY });
    for stream in streams {
        history.push(Micros::ZERO, Fact::Synced { stream });
    }
    for (at, fact) in facts {
        history.push(at, fact);
    }
    history.push(end, Fact::TrialEnded {});
    Ok(history)
}

fn micros(key: &str, seconds: f64) -> Result<Micros, String> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if seconds <= LONGEST => Ok(Micros::from_duration(duration)),
        Ok(_) | Err(_) => {
            Err(format!("{key}: {seconds} is no time of a recording; write seconds from its start"))
        }
    }
}

/// The resource of a watched collection: the last part of its path.
fn stream_of(watch: &str) -> Option<String> {
    let path = watch.split('?').next()?;
    let below = path.strip_prefix("/api/").or_else(|| path.strip_prefix("/apis/"))?;
    let (_, plural) = below.rsplit_once('/')?;
    (!plural.is_empty()).then(|| plural.to_owned())
}

fn verb_of(event: &str) -> Option<Verb> {
    match event {
        "ADDED" => Some(Verb::Added),
        "MODIFIED" => Some(Verb::Modified),
        "DELETED" => Some(Verb::Deleted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDING: &str = concat!(
        "{\"kind\":\"RecordingStarted\",\"wall\":\"2026-11-29T12:58:51.5Z\",\"note\":\"n\"}\n",
        "{\"kind\":\"Observed\",\"at\":0.5,\"watch\":\"/api/v1/pods\",\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\"}}\n",
        "\n",
        "{\"kind\":\"Mark\",\"at\":0.25,\"name\":\"heartbeats-stopped\",\"node\":\"n1\"}\n",
        "{\"kind\":\"Request\",\"sent\":0.1,\"answered\":0.75,\"method\":\"GET\",\"path\":\"/x\",\"status\":200,\"answer\":{}}\n",
    );

    #[test]
    fn a_recording_becomes_a_history_in_the_order_of_time() {
        let history = import("power", RECORDING, &Constants::default()).unwrap();
        let lines: Vec<String> =
            history.records().iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn what_is_no_recording_is_refused_with_its_line() {
        let refused = |text: &str| import("x", text, &Constants::default()).unwrap_err().to_string();
        assert!(refused("{}").starts_with("line 1: missing field `kind`"), "{}", refused("{}"));
        assert_eq!(refused(""), "line 1: there is no RecordingStarted with the wall time of zero");
        let odd = RECORDING.replace("ADDED", "GONE");
        assert_eq!(refused(&odd), "line 2: `GONE` is no watch event");
        for (from, to, said) in [
            ("2026-11-29T", "2026-13-29T", "line 1: wall: `2026-13-29T12:58:51.5Z` is no time; write it as "),
            ("/api/v1/pods", "pods", "line 2: `pods` is no collection's path"),
            (
                "\"at\":0.5",
                "\"at\":-1",
                "line 2: at: -1 is no time of a recording; write seconds from its start",
            ),
            ("\"at\":0.25", "\"at\":1e30", "line 4: at: 1"),
            ("\"sent\":0.1", "\"sent\":0.8", "line 5: answered at 0.750 s, before it was sent at 0.800 s"),
            (
                "\"status\"",
                "\"date\":\"soon\",\"status\"",
                "line 5: date: `soon` is not the Date of an HTTP answer",
            ),
        ] {
            let wrong = RECORDING.replace(from, to);
            assert_ne!(wrong, RECORDING);
            assert!(refused(&wrong).starts_with(said), "{}", refused(&wrong));
        }
        let started = RECORDING.lines().next().unwrap();
        for late in [format!("{RECORDING}{started}"), RECORDING.replacen(started, "", 1) + started] {
            let said = refused(&late);
            assert!(said.ends_with(": RecordingStarted stands once, before all else"), "{said}");
        }
    }
}
