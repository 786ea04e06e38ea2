//! Each fact as lines, and which facts a filter lets through.

use super::diff::changes;
use super::{Row, Wanted};
use crate::runner::given_seed;
use crate::suite::ScenarioFile;
use rigor_model::Scenario;
use rigor_model::act::Tool;
use rigor_model::kinds::{KINDS, ObjectKind};
use rigor_trace::history::{flash_words, link_words};
use rigor_trace::{Fact, Micros, Phase, ProcessEvent, Ran, Verb};
use serde_json::Value;
use std::path::Path;

const ACT: &str = "36;1";
const STEP: &str = "1";
const OBJECT: &str = "32";
const EVENT: &str = "35";
const LINE: &str = "34";
const BAD: &str = "31;1";
const QUIET: &str = "2";

/// Whether what is asked for has to do with an object.
pub(super) fn concerns_object(stream: &str, object: &Value, wanted: &Wanted) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let kind = ObjectKind::of_stream(stream).map_or(stream, |kind| kind.kind);
    let is = |kind_wanted: &str, name_wanted: &str| {
        let same_kind = kind_wanted.eq_ignore_ascii_case(kind) || kind_wanted.eq_ignore_ascii_case(stream);
        // An Event is of the object that it is about, too.
        let about = &object["involvedObject"];
        let about_it = about["kind"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case(kind_wanted))
            && about["name"] == name_wanted;
        same_kind && name == name_wanted || about_it
    };
    let object = wanted.object.as_ref().is_none_or(|(kind, name)| is(kind, name));
    let board = wanted.node.as_ref().is_none_or(|node| is("Node", node) || is("Lease", node));
    object && board
}

/// Whether what is asked for has to do with a fact that is no object's version.
pub(super) fn concerns(fact: &Fact, wanted: &Wanted) -> bool {
    let quiet = match fact {
        Fact::Pulse { .. } | Fact::Synced { .. } | Fact::Delivery { .. } | Fact::TrialEnded {} => !wanted.all,
        _ => false,
    };
    if quiet {
        return false;
    }
    match fact {
        Fact::TrialStarted { .. }
        | Fact::Step { .. }
        | Fact::Instant { .. }
        | Fact::Gap { .. }
        | Fact::Stall { .. } => true,
        Fact::Console { board, .. }
        | Fact::Power { board, .. }
        | Fact::Link { board, .. }
        | Fact::Flash { board, .. }
        | Fact::Sent { board, .. }
        | Fact::Board { board, .. } => {
            wanted.object.is_none() && wanted.board.as_ref().is_none_or(|wanted| wanted == board)
        }
        Fact::Fault { fault, .. } => {
            let about = |board: &String| {
                fault.site.rsplit(':').next() == Some(board.as_str()) || fault.site == "server"
            };
            wanted.object.is_none() && wanted.board.as_ref().is_none_or(about)
        }
        Fact::Process { who, .. } => {
            wanted.object.is_none()
                && wanted
                    .board
                    .as_ref()
                    .is_none_or(|board| !who.starts_with("board:") || *who == format!("board:{board}"))
        }
        Fact::Request { path, body, .. } => {
            let body = body.as_ref();
            let has = |word: &str| path.split(['/', '?']).any(|part| part.eq_ignore_ascii_case(word));
            let named = |name: &str| {
                path.split(['/', '?']).any(|part| part == name)
                    || body.is_some_and(|body| body["metadata"]["name"] == name)
            };
            // A Pod and a Node may have one name. Of a kind that is in no table only the name is known.
            let of_kind = |wanted: &str| match plural(wanted) {
                Some(plural) => has(plural),
                None => true,
            };
            wanted.object.as_ref().is_none_or(|(kind, name)| named(name) && of_kind(kind))
                && wanted.node.as_ref().is_none_or(|node| named(node))
        }
        Fact::Mark { subject, .. } => {
            let is = |name: &String| subject.as_ref().is_none_or(|subject| subject == name);
            wanted.object.as_ref().is_none_or(|(_, name)| is(name)) && wanted.node.as_ref().is_none_or(is)
        }
        Fact::ControlPlane { .. } | Fact::ControlPlaneReady {} => true,
        _ => wanted.object.is_none() && wanted.board.is_none(),
    }
}

/// The plural of a kind that is given by its name or its plural.
fn plural(wanted: &str) -> Option<&'static str> {
    let is = |kind: &&ObjectKind| {
        kind.kind.eq_ignore_ascii_case(wanted) || kind.plural.eq_ignore_ascii_case(wanted)
    };
    KINDS.iter().find(is).map(|kind| kind.plural)
}

/// A version of an object: what changed since `before`.
pub(super) fn object(
    at: Micros,
    stream: &str,
    verb: Verb,
    before: Option<&Value>,
    object: &Value,
    all: bool,
) -> Vec<Row> {
    let kind = ObjectKind::of_stream(stream).map_or(stream, |kind| kind.kind).to_lowercase();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let row = |text: String| Row { at, colour: OBJECT, subject: format!("{kind} {name}"), text };
    if stream == "events" {
        return event(at, verb, object).into_iter().collect();
    }
    match (verb, before) {
        (Verb::Deleted, _) => vec![row("deleted".to_owned())],
        (Verb::Listed, _) if !all => match before {
            Some(before) => changes(before, object, all).into_iter().map(row).collect(),
            None => Vec::new(),
        },
        (Verb::Modified | Verb::Listed, Some(before)) => {
            changes(before, object, all).into_iter().map(row).collect()
        }
        (Verb::Added | Verb::Modified | Verb::Listed, _) => vec![row(format!("there{}", traits(object)))],
    }
}

/// What one wants to know of an object that is new.
fn traits(object: &Value) -> String {
    let paths = [
        "/spec/nodeName",
        "/status/phase",
        "/spec/replicas",
        "/spec/unschedulable",
        "/status/allocatable/memory",
        "/spec/holderIdentity",
        "/spec/leaseDurationSeconds",
    ];
    let told: Vec<String> = paths
        .iter()
        .filter_map(|path| {
            let value = object.pointer(path)?;
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some(format!("{} {text}", path.rsplit('/').next().unwrap_or_default()))
        })
        .collect();
    if told.is_empty() { String::new() } else { format!(": {}", told.join(", ")) }
}

fn event(at: Micros, verb: Verb, object: &Value) -> Option<Row> {
    if matches!(verb, Verb::Deleted | Verb::Listed) {
        return None;
    }
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let about = &object["involvedObject"];
    let times = object["count"]
        .as_u64()
        .filter(|count| *count > 1)
        .map(|count| format!(" ×{count}"))
        .unwrap_or_default();
    Some(Row {
        at,
        colour: EVENT,
        subject: format!("event {}", word(&about["name"])),
        text: format!(
            "{} {}{times} ({}): {}",
            word(&object["type"]),
            word(&object["reason"]),
            word(&about["kind"]).to_lowercase(),
            word(&object["message"]),
        ),
    })
}

/// The seed with which the trial is run again, which follows from its name; where nothing tells that, its own.
fn seed_words(own: u64, scenario: Option<&Scenario>) -> String {
    let Some(scenario) = scenario else { return format!("seed {own} of its own") };
    let trial = ScenarioFile::at(Path::new(&scenario.file)).trial(scenario.case.as_deref());
    format!("seed {}", given_seed(own, &trial))
}

/// A run of a program; `since` says when it began, where that was earlier.
fn ran_row(at: Micros, tool: Tool, ran: &Ran, since: &str) -> Option<Row> {
    let Ran { argv, status, stdout, stderr, .. } = ran;
    let (colour, said) = if *status == 0 { (ACT, stdout) } else { (BAD, stderr) };
    let text = format!("{} → {status}{since}: {}", argv.join(" "), said.trim());
    Some(Row { at, colour, subject: tool.name().to_owned(), text })
}

/// A fact that is no object's version.
pub(super) fn fact(at: Micros, fact: &Fact, told_by: Option<&Scenario>, all: bool) -> Option<Row> {
    let row = |colour, subject: String, text: String| Some(Row { at, colour, subject, text });
    let since = |begun: &Micros| {
        if *begun == at { String::new() } else { format!(" (begun {begun})") }
    };
    match fact {
        Fact::TrialStarted { scenario, rig, case, seed, faults, .. } => {
            let case = case.as_ref().map(|case| format!("/{case}")).unwrap_or_default();
            let faults = if faults.is_none() { String::new() } else { format!(", {faults} faults") };
            let seed = seed_words(*seed, told_by);
            row(STEP, "trial".to_owned(), format!("{scenario}{case} on rig {rig}, {seed}{faults}"))
        }
        Fact::Namespace { name } => row(QUIET, "namespace".to_owned(), name.clone()),
        Fact::Board { board, node } => row(QUIET, format!("board {board}"), format!("its Node is {node}")),
        Fact::Delivery { at_most } => row(QUIET, "delivery".to_owned(), format!("at most {at_most}")),
        Fact::Object { .. } => None,
        Fact::Synced { stream } => row(QUIET, "synced".to_owned(), stream.clone()),
        Fact::Gap { stream, reason } => row(BAD, "gap".to_owned(), format!("{stream}: {reason}")),
        Fact::Pulse { sent, resource_version } => {
            row(QUIET, "pulse".to_owned(), format!("resourceVersion {resource_version}, sent {sent}"))
        }
        Fact::Request { id, sent, as_user, method, path, status, error, response, body, .. } => {
            let answer = match (status, error) {
                (0, error) => format!("no answer: {}", error.as_deref().unwrap_or("it did not say why")),
                (status, _) => {
                    let message = response
                        .as_ref()
                        .filter(|_| *status >= 400)
                        .and_then(|body| body["message"].as_str());
                    format!("{status}{}", message.map(|message| format!(" {message}")).unwrap_or_default())
                }
            };
            let colour = if *status == 0 || *status >= 400 { BAD } else { ACT };
            let user = if as_user == "admin" { String::new() } else { format!(" as {as_user}") };
            let body = body.as_ref().filter(|_| all).map(|body| format!(" {body}")).unwrap_or_default();
            row(
                colour,
                format!("request {id}"),
                format!("{method} {path}{user} → {answer}{}{body}", since(sent)),
            )
        }
        Fact::Kubectl(ran) => ran_row(at, Tool::Kubectl, ran, &since(&ran.begun)),
        Fact::Etcdctl(ran) => ran_row(at, Tool::Etcdctl, ran, &since(&ran.begun)),
        Fact::Console { board, line } => row(LINE, format!("console {board}"), line.clone()),
        // Its acts are of `scheduler NAME`.
        Fact::SchedulerLine { name, line } => row(LINE, format!("output {name}"), line.clone()),
        Fact::Power { board, act, begun } => {
            row(ACT, format!("power {board}"), format!("{}{}", act.name(), since(begun)))
        }
        Fact::Link { board, act, begun, micros, percent } => row(
            ACT,
            format!("link {board}"),
            format!("{}{}", link_words(*act, *micros, *percent), since(begun)),
        ),
        Fact::ControlPlane { act, begun } => {
            row(ACT, "control plane".to_owned(), format!("{}{}", act.name(), since(begun)))
        }
        Fact::Scheduler { name, act, begun } => {
            row(ACT, format!("scheduler {name}"), format!("{}{}", act.name(), since(begun)))
        }
        Fact::Flash { board, image, sha256, erased, begun } => row(
            ACT,
            format!("flash {board}"),
            format!("{}{}", flash_words(image.as_deref(), sha256, *erased), since(begun)),
        ),
        Fact::Sent { board, line } => row(ACT, format!("send {board}"), line.clone()),
        Fact::ControlPlaneReady {} => row(ACT, "control plane".to_owned(), "serves".to_owned()),
        Fact::Fault { fault, phase } => {
            let end = match phase {
                Phase::Begin => "",
                Phase::End => " is over",
            };
            row(
                BAD,
                "fault".to_owned(),
                format!("{} at {} ({}){end}", fault.kind.name(), fault.site, fault.nth),
            )
        }
        Fact::Process { who, event: ProcessEvent::Exited, status } => {
            row(BAD, "process".to_owned(), format!("{who} ended unasked with {status}"))
        }
        Fact::Step { index, phase } => {
            let step = told_by.and_then(|scenario| scenario.plan.get(*index));
            let number = step.map_or_else(|| (index + 1).to_string(), |step| step.number.clone());
            let subject = match step {
                Some(step) if step.section.name() != "steps" => format!("{} {number}", step.section.name()),
                Some(_) | None => format!("step {number}"),
            };
            match phase {
                Phase::Begin => {
                    let text = step.map_or_else(|| "begins".to_owned(), |step| step.sentence.clone());
                    row(STEP, subject, text)
                }
                Phase::End => row(QUIET, subject, "settled".to_owned()),
            }
        }
        Fact::Instant { name } => row(STEP, "instant".to_owned(), name.clone()),
        Fact::Mark { name, subject } => {
            let of = subject.as_ref().map(|subject| format!(" of {subject}")).unwrap_or_default();
            row(ACT, "mark".to_owned(), format!("{name}{of}"))
        }
        Fact::Stall { length } => {
            row(BAD, "stall".to_owned(), format!("the harness was held up for {length}"))
        }
        Fact::TrialEnded {} => row(STEP, "trial".to_owned(), "ended".to_owned()),
    }
}
