//! A recorded history as lines that a person reads from top to bottom: what was done, what changed, what was said.
//!
//! Pure: a line is a function of the records and of what was asked for. An object is told by what changed since its last
//! version; renewals of leases and other heartbeats are left out unless everything is asked for.

mod diff;
mod held;
mod told;

pub use held::missing;

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
    /// The name of that board's Node, which the history knows: [`timeline`] fills it in.
    pub node: Option<String>,
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
    let node = wanted.board.as_ref().map(|board| history.node_of(board).to_owned());
    let wanted = &Wanted { node, ..wanted.clone() };
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

#[cfg(test)]
mod tests {
    use super::*;
    use rigor_model::act::{ControlPlaneAct, LinkAct, PowerAct, SchedulerAct};
    use rigor_model::{Constants, Fault, FaultKind, FaultLevel};
    use rigor_trace::{ProcessEvent, Ran};
    use serde_json::json;

    const PLAIN: Layout = Layout { style: Style { colour: false }, width: None };

    fn pod(phase: &str, version: &str) -> Value {
        json!({"kind": "Pod", "metadata": {"name": "lamp", "namespace": "default", "resourceVersion": version}, "status": {"phase": phase}})
    }

    /// Something of everything that can be recorded.
    fn history() -> History {
        let mut history = History::new();
        let seen = |verb, object| Fact::Object { stream: "pods".to_owned(), verb, object };
        let text = str::to_owned;
        let fault = Fault { site: text("link:a"), nth: 4, kind: FaultKind::Delay { micros: 9 } };
        let facts = [
            Fact::TrialStarted {
                scenario: text("tale"),
                rig: text("sim"),
                case: Some(text("short")),
                seed: 7,
                wall: None,
                constants: Constants::default(),
                faults: FaultLevel::Mild,
            },
            Fact::Namespace { name: text("default") },
            Fact::Delivery { at_most: Micros(5) },
            Fact::Board { board: text("a"), node: text("esp-1") },
            Fact::Synced { stream: text("pods") },
            Fact::Step { index: 0, phase: Phase::Begin },
            seen(Verb::Added, pod("Pending", "1")),
            seen(Verb::Modified, pod("Pending", "2")),
            seen(Verb::Modified, pod("Running", "3")),
            Fact::Step { index: 0, phase: Phase::End },
            Fact::Instant { name: text("outage") },
            Fact::Power { board: text("a"), act: PowerAct::Cut, begun: Micros(1) },
            Fact::Link {
                board: text("b"),
                act: LinkAct::Delay,
                begun: Micros(1),
                micros: Some(200_000),
                percent: None,
            },
            Fact::Console { board: text("b"), line: text("kubelet ready") },
            Fact::ControlPlane { act: ControlPlaneAct::Kill, begun: Micros(1) },
            Fact::Scheduler { name: text("toy"), act: SchedulerAct::Start, begun: Micros(1) },
            Fact::SchedulerLine { name: text("toy"), line: text("ready: schedules for toy") },
            Fact::Flash {
                board: text("b"),
                image: Some(text("previous")),
                sha256: text("0f1e"),
                erased: true,
                begun: Micros(1),
            },
            Fact::Sent { board: text("b"), line: text("reboot") },
            Fact::Gap { stream: text("pods"), reason: text("connection lost") },
            Fact::Fault { fault: fault.clone(), phase: Phase::Begin },
            Fact::Fault { fault, phase: Phase::End },
            Fact::ControlPlaneReady {},
            Fact::Pulse { sent: Micros(2), resource_version: 9 },
            Fact::Process { who: text("board:b"), event: ProcessEvent::Exited, status: -1 },
            Fact::Stall { length: Micros(250_000) },
            Fact::Mark { name: text("heartbeats-stopped"), subject: Some(text("esp-1")) },
            Fact::Kubectl(Ran {
                begun: Micros(1),
                argv: vec![text("get"), text("pods")],
                status: 1,
                stdout: String::new(),
                stderr: text("refused\n"),
            }),
            Fact::Etcdctl(Ran {
                begun: Micros(1),
                argv: vec![text("get"), text("/registry/pods/default/p")],
                status: 0,
                stdout: text("{}\n"),
                stderr: String::new(),
            }),
            seen(Verb::Deleted, pod("Running", "4")),
            Fact::TrialEnded {},
        ];
        for (index, fact) in facts.into_iter().enumerate() {
            history.push(Micros(index as u64 * 100_000), fact);
        }
        history
    }

    #[test]
    fn every_fact_has_its_line() {
        let all = Wanted { all: true, ..Wanted::default() };
        insta::assert_snapshot!(timeline(&history(), None, &all, PLAIN));
        let usual = timeline(&history(), None, &Wanted::default(), PLAIN);
        assert!(!usual.contains("pulse") && !usual.contains("resourceVersion"), "{usual}");
        assert!(usual.contains("gap") && usual.contains("stall") && usual.contains("fault"), "{usual}");
    }

    #[test]
    fn filters_leave_what_they_are_about() {
        let shown = |wanted: Wanted| timeline(&history(), None, &wanted, PLAIN);
        let pod = shown(Wanted { object: Some(("Pod".to_owned(), "lamp".to_owned())), ..Wanted::default() });
        assert!(pod.contains("\"Pending\" → \"Running\"") && !pod.contains("power a"), "{pod}");
        let board = shown(Wanted { board: Some("b".to_owned()), ..Wanted::default() });
        assert!(
            board.contains("link b") && board.contains("board:b ended") && !board.contains("power a"),
            "{board}"
        );
        let step = shown(Wanted { step: Some("1".to_owned()), ..Wanted::default() });
        assert!(step.starts_with("     0.500 s  step 1") && step.ends_with("settled\n"), "{step}");
        let node = json!({"metadata": {"name": "esp-1"}});
        let mut history = history();
        history.push(
            Micros(9_000_000),
            Fact::Object { stream: "nodes".to_owned(), verb: Verb::Added, object: node },
        );
        let board = Wanted { board: Some("a".to_owned()), ..Wanted::default() };
        assert!(timeline(&history, None, &board, PLAIN).contains("node esp-1"), "a's Node has another name");
        // What was seen before the window is known inside of it: a change is a change.
        let late = shown(Wanted { from: Micros(800_000), to: Some(Micros(800_000)), ..Wanted::default() });
        assert_eq!(late, "     0.800 s  pod lamp       status.phase: \"Pending\" → \"Running\"\n");
    }

    #[test]
    fn lines_fit_and_colours_are_only_where_they_are_wanted() {
        let narrow = Layout { width: Some(60), ..PLAIN };
        let text = timeline(&history(), None, &Wanted::default(), narrow);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(text.contains('…') && !text.contains('\u{1b}'), "{text}");
        let colourful = Layout { style: Style { colour: true }, width: None };
        assert!(timeline(&history(), None, &Wanted::default(), colourful).contains("\u{1b}[31;1m"));
    }
}
