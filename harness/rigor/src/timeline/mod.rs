//! A recorded history as lines that a person reads from top to bottom: what was done, what changed, what was said.
//!
//! Pure: a line is a function of the records and of what was asked for. An object is told by what changed since its last
//! version; renewals of leases and other heartbeats are left out unless everything is asked for.

mod diff;
mod told;

use crate::terminal::Style;
use rigor_model::Scenario;
use rigor_trace::{Fact, History, Micros, Phase, Verb};
use serde_json::Value;
use std::collections::BTreeMap;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Only this object: its kind or its plural, and its name.
    pub object: Option<(String, String)>,
    /// Only this board: its console, power, link and faults, its Node and its lease.
    pub board: Option<String>,
    /// Not before.
    pub from: Micros,
    /// Not after.
    pub to: Option<Micros>,
    /// Only while this step runs, by its number in the scenario or its place in the plan, from 1.
    pub step: Option<String>,
    /// Heartbeats, polls and lists, too.
    pub all: bool,
}

/// How lines are laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// With colours or without.
    pub style: Style,
    /// Lines are cut here, if anywhere.
    pub width: Option<usize>,
}

/// One line before it is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub at: Micros,
    pub colour: &'static str,
    /// What it is of: `step 3`, `power a`, `node a`.
    pub subject: String,
    pub text: String,
}

/// The timeline of one trial. `scenario` gives the steps their words, where it is at hand.
#[must_use]
pub fn timeline(history: &History, scenario: Option<&Scenario>, wanted: &Wanted, layout: Layout) -> String {
    let mut text = String::new();
    let mut last: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut inside = wanted.step.is_none();
    for record in history.records() {
        if let (Fact::Step { index, phase }, Some(step)) = (&record.fact, &wanted.step) {
            let number =
                scenario.and_then(|scenario| scenario.plan.get(*index)).map(|step| step.number.as_str());
            if number == Some(step.as_str()) || number.is_none() && (index + 1).to_string() == *step {
                inside = *phase == Phase::Begin;
                if *phase == Phase::End && within(record.at, wanted) {
                    rows_of(record.at, &record.fact, scenario, wanted, &mut last, &mut text, layout);
                }
            }
        }
        if !inside || !within(record.at, wanted) {
            // What an object was like before is needed for what changed later.
            if let Fact::Object { stream, verb, object } = &record.fact {
                remember(&mut last, stream, *verb, object);
            }
            continue;
        }
        rows_of(record.at, &record.fact, scenario, wanted, &mut last, &mut text, layout);
    }
    text
}

fn within(at: Micros, wanted: &Wanted) -> bool {
    at >= wanted.from && wanted.to.is_none_or(|to| at <= to)
}

fn rows_of(
    at: Micros,
    fact: &Fact,
    scenario: Option<&Scenario>,
    wanted: &Wanted,
    last: &mut BTreeMap<(String, String), Value>,
    text: &mut String,
    layout: Layout,
) {
    let mut rows = Vec::new();
    if let Fact::Object { stream, verb, object } = fact {
        let before = remember(last, stream, *verb, object);
        if told::concerns_object(stream, object, wanted) {
            rows = told::object(at, stream, *verb, before.as_ref(), object, wanted.all);
        }
    } else if told::concerns(fact, wanted) {
        rows.extend(told::fact(at, fact, scenario, wanted.all));
    }
    for row in rows {
        text.push_str(&laid_out(&row, layout));
    }
}

/// Takes note of a version and returns the one before.
fn remember(
    last: &mut BTreeMap<(String, String), Value>,
    stream: &str,
    verb: Verb,
    object: &Value,
) -> Option<Value> {
    let name = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    let key = (stream.to_owned(), format!("{}/{}", name("namespace"), name("name")));
    match verb {
        Verb::Deleted => last.remove(&key),
        Verb::Added | Verb::Modified | Verb::Listed => last.insert(key, object.clone()),
    }
}

fn laid_out(row: &Row, layout: Layout) -> String {
    let subject = format!("{:<14}", row.subject);
    let mut text = row.text.replace('\n', " ⏎ ");
    if let Some(width) = layout.width {
        // Time, subject and the blanks between them.
        let room = width.saturating_sub(13 + subject.chars().count().max(14) + 2).max(20);
        if text.chars().count() > room {
            text = text.chars().take(room - 1).chain(['…']).collect();
        }
    }
    let at = layout.style.paint("2", &format!("{:>12}", row.at.to_string()));
    format!("{at}  {} {text}\n", layout.style.paint(row.colour, &subject)).trim_end().to_owned() + "\n"
}
