//! What holds in every scenario, whatever it is about.
//!
//! Monitors read a whole history once. They hold only against what is certain: what happened while a
//! watch was lost is left alone.

mod booking;
mod consoles;
mod objects;

use std::collections::BTreeMap;
use std::fmt;

use rigor_model::{Action, Constants, Outcome, Scenario};
use serde_json::Value;

use crate::history::{Fact, History};
use crate::index::{ObjectKey, Version};
use crate::interval::Interval;
use crate::view::View;

/// Something that a monitor saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The monitor's name.
    pub monitor: &'static str,
    /// What it saw.
    pub message: String,
    /// When.
    pub when: Interval,
    /// The record that shows it.
    pub record: usize,
    /// Whether rig or harness are to blame, not the system under test.
    pub infra: bool,
}

impl Violation {
    /// What it makes of the trial.
    pub fn outcome(&self) -> Outcome {
        if self.infra { Outcome::InfraError } else { Outcome::Fail }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "monitor {}: at {}: {}\n  evidence: events.jsonl, seq {}",
            self.monitor, self.when, self.message, self.record
        )
    }
}

/// All monitors over a trial.
pub fn all(scenario: &Scenario, history: &History) -> Vec<Violation> {
    let ground = Ground::new(scenario, history);
    let mut seen = Vec::new();
    objects::versions_rise(&ground, &mut seen);
    objects::transitions_move_with_status(&ground, &mut seen);
    objects::nodes_change_by_eviction(&ground, &mut seen);
    objects::taints_follow_leases(&ground, &mut seen);
    booking::nothing_overcommitted(&ground, &mut seen);
    consoles::no_panic_or_reset(&ground, &mut seen);
    consoles::no_pod_twice(&ground, &mut seen);
    consoles::no_process_ends(&ground, &mut seen);
    seen.sort_by_key(|violation| violation.record);
    seen
}

/// What all monitors need.
struct Ground<'a> {
    scenario: &'a Scenario,
    history: &'a History,
    view: View<'a>,
    constants: Constants,
}

impl<'a> Ground<'a> {
    fn new(scenario: &'a Scenario, history: &'a History) -> Ground<'a> {
        let constants =
            history.index().constants.unwrap_or_else(|| Constants::default().overridden(&scenario.constants));
        let view = View::new(history, history.len(), history.last_at(), constants.slack);
        Ground { scenario, history, view, constants }
    }

    /// The objects of a stream with their versions.
    fn objects(&self, plural: &str) -> impl Iterator<Item = (&'a ObjectKey, &'a [Version])> + use<'a> {
        let stream = self.view.stream(plural);
        stream.into_iter().flat_map(|stream| stream.objects())
    }

    /// Whether the scenario plays that node itself.
    fn is_played(&self, node: &str) -> bool {
        self.scenario
            .plan
            .iter()
            .any(|step| matches!(&step.action, Action::Node(played) if played.name == node))
    }

    /// The bodies that the scenario itself wrote, by path without the query.
    fn written(&self) -> BTreeMap<&'a str, Vec<&'a Value>> {
        let mut written: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for record in self.view.requests() {
            if let Fact::Request { method, path, body: Some(body), .. } = &record.fact
                && method != "GET"
            {
                written.entry(path.split('?').next().unwrap_or_default()).or_default().push(body);
            }
        }
        written
    }

    fn violation(&self, monitor: &'static str, version: &Version, message: String) -> Violation {
        Violation {
            monitor,
            message,
            when: self.view.interval(version),
            record: version.record,
            infra: false,
        }
    }
}
