//! What a history holds that can be asked for, so that a question about something else is told from one without an answer.

use super::Wanted;
use super::told::{concerns, concerns_object};
use rigor_model::Scenario;
use rigor_model::kinds::ObjectKind;
use rigor_trace::{Fact, History};
use std::collections::BTreeSet;

/// How many names are told before the rest is only counted.
const TOLD: usize = 20;

/// Why nothing can be shown of what is asked for: what is not there, and what is. `None` if each part of the question has
/// something in one of the histories. Each history comes with its scenario, where that is at hand.
#[must_use]
pub fn missing(histories: &[(&History, Option<&Scenario>)], wanted: &Wanted) -> Option<(String, String)> {
    let all = |of: &dyn Fn(&History, Option<&Scenario>) -> Vec<String>| -> Vec<String> {
        let mut seen = BTreeSet::new();
        let names = histories.iter().flat_map(|(history, scenario)| of(history, *scenario));
        names.filter(|name| seen.insert(name.clone())).collect()
    };
    if let Some(step) = &wanted.step {
        let steps = all(&steps);
        if !steps.contains(step) {
            return Some((format!("no step {step} was begun"), told("those that were begun are", &steps)));
        }
    }
    if let Some((kind, name)) = &wanted.object {
        let only = Wanted { object: wanted.object.clone(), ..Wanted::default() };
        let about = |fact: &Fact| match fact {
            Fact::Object { stream, object, .. } => concerns_object(stream, object, &only),
            Fact::Request { .. } => concerns(fact, &only),
            _ => false,
        };
        if !histories.iter().any(|(history, _)| history.records().iter().any(|record| about(&record.fact))) {
            let mut objects = all(&|history, _| objects(history));
            objects.sort();
            return Some((
                format!("no object {kind}/{name} was seen or asked for"),
                told("those that were seen are", &objects),
            ));
        }
    }
    if let Some(board) = &wanted.board {
        let mut boards = all(&boards);
        boards.sort();
        if !boards.contains(board) {
            return Some((format!("there is no board {board}"), told("the boards are", &boards)));
        }
    }
    let end =
        histories.iter().filter_map(|(history, _)| history.records().last()).map(|record| record.at).max();
    let end = end.unwrap_or_default();
    if wanted.from > end {
        return Some((
            format!("nothing was recorded from {} on", wanted.from),
            format!("the last record is at {end}"),
        ));
    }
    match wanted.to {
        Some(to) if to < wanted.from => Some((
            format!("nothing lies between {} and {to}", wanted.from),
            "--from comes before --to".to_owned(),
        )),
        Some(_) | None => None,
    }
}

fn told(what: &str, names: &[String]) -> String {
    match names {
        [] => format!("{what}: none"),
        names if names.len() <= TOLD => format!("{what} {}", names.join(", ")),
        names => format!("{what} {} and {} more", names[..TOLD].join(", "), names.len() - TOLD),
    }
}

/// The numbers of the steps that were begun, as the scenario counts them, in their order.
fn steps(history: &History, scenario: Option<&Scenario>) -> Vec<String> {
    let began = history.records().iter().filter_map(|record| match &record.fact {
        Fact::Step { index, .. } => Some(*index),
        _ => None,
    });
    let mut indices: Vec<usize> = began.collect();
    indices.dedup();
    let number =
        |index: usize| scenario.and_then(|scenario| scenario.plan.get(index)).map(|step| step.number.clone());
    indices.into_iter().map(|index| number(index).unwrap_or_else(|| (index + 1).to_string())).collect()
}

/// The objects of which a version, or an Event, is there: `Node/a`.
fn objects(history: &History) -> Vec<String> {
    let mut objects = Vec::new();
    for record in history.records() {
        let Fact::Object { stream, object, .. } = &record.fact else { continue };
        let word = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let kind = ObjectKind::of_stream(stream).map_or(stream.as_str(), |kind| kind.kind);
        let about = &object["involvedObject"];
        // Events bear names that nobody gave them: what they are about is what is asked for.
        objects.extend(match (word(&about["kind"]), word(&about["name"])) {
            (Some(kind), Some(name)) => Some(format!("{kind}/{name}")),
            _ => word(&object["metadata"]["name"]).map(|name| format!("{kind}/{name}")),
        });
    }
    objects
}

/// The boards by the names that the scenario gives them.
fn boards(history: &History, scenario: Option<&Scenario>) -> Vec<String> {
    let mut boards: Vec<String> = scenario.map(|scenario| scenario.boards.clone()).unwrap_or_default();
    boards.extend(history.records().iter().filter_map(|record| match &record.fact {
        Fact::Board { board, .. }
        | Fact::Console { board, .. }
        | Fact::Power { board, .. }
        | Fact::Link { board, .. } => Some(board.clone()),
        _ => None,
    }));
    boards
}
