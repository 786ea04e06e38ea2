//! The trial begins when each board's Node is Ready. A board that does not come up is the rig's failure.

use rigor_rigs::{Infra, World};
use rigor_trace::{Fact, History, Micros, Verb};
use std::collections::BTreeSet;
use std::time::Duration;

/// Longest time from power-on to Ready.
const LIMIT: Duration = Duration::from_secs(30);

/// How many of a console's last lines are shown.
const TAIL: usize = 5;

/// Waits until every board's Node is Ready.
///
/// # Errors
/// One is not within 30 s of the trial's time, or of the last fault that was injected.
pub(super) fn wait_ready(world: &mut dyn World, boards: &[String]) -> Result<(), Infra> {
    let begun = world.now();
    loop {
        let deadline = begun.max(last_fault(world.history())) + LIMIT;
        let ready = ready(world.history());
        let Some(missing) = boards.iter().find(|board| !ready.contains(world.history().node_of(board)))
        else {
            return Ok(());
        };
        if world.now() >= deadline {
            return Err(Infra::transient(format!(
                "board {missing} did not become Ready within {} s; {}",
                LIMIT.as_secs(),
                tail(world.history(), missing)
            )));
        }
        world.wait(deadline);
    }
}

/// When a fault last began or ended.
fn last_fault(history: &History) -> Micros {
    let fault = history.records().iter().rev().find(|record| matches!(record.fact, Fact::Fault { .. }));
    fault.map_or(Micros::ZERO, |record| record.at)
}

/// Names of the nodes whose last known Ready condition is True.
fn ready(history: &History) -> BTreeSet<&str> {
    let mut ready = BTreeSet::new();
    for record in history.records() {
        let Fact::Object { stream, verb, object } = &record.fact else { continue };
        let (true, Some(name)) = (stream == "nodes", object["metadata"]["name"].as_str()) else { continue };
        let is_ready = *verb != Verb::Deleted
            && object["status"]["conditions"].as_array().is_some_and(|conditions| {
                conditions
                    .iter()
                    .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
            });
        if is_ready {
            ready.insert(name);
        } else {
            ready.remove(name);
        }
    }
    ready
}

fn tail(history: &History, wanted: &str) -> String {
    let lines: Vec<&str> = history
        .records()
        .iter()
        .filter_map(|record| {
            let Fact::Console { board, line } = &record.fact else { return None };
            (board == wanted).then_some(line.as_str())
        })
        .collect();
    if lines.is_empty() {
        return "its console is silent".to_owned();
    }
    format!("its console ends:\n{}", lines[lines.len().saturating_sub(TAIL)..].join("\n"))
}
