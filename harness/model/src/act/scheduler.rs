//! `scheduler`: a second scheduler beside the control plane's own.

use crate::mistake::nearest;
use crate::reader::word;
use crate::scenario::read_name;
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::yaml::{Kind, Node};

/// What is done to a second scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduler {
    /// Its name: the `spec.schedulerName` of the pods that are its own.
    pub name: String,
    /// What is done.
    pub act: SchedulerAct,
}

super::words! {
    /// What can be done to a second scheduler.
    SchedulerAct {
        /// A start; done when it sees the cluster.
        Start "start";
        /// A start that binds nothing, says what it would have bound, and tells of pods that fit nowhere.
        DryRun "dry-run";
        /// An orderly stop.
        Stop "stop";
        /// A stop without warning.
        Kill "kill";
    }
}

impl SchedulerAct {
    /// Whether the scheduler runs from then on.
    #[must_use]
    pub fn starts(self) -> bool {
        matches!(self, Self::Start | Self::DryRun)
    }
}

/// The name of a second scheduler that is given none.
const USUAL: &str = "second-scheduler";

pub(crate) static SCHEDULER: Shape = Shape::new(
    "scheduler",
    "Starts or stops a second scheduler.",
    &[
        Field::optional("name", FieldType::Text, "Its name: the schedulerName of the pods it places.")
            .usually(USUAL),
        Field::required("do", FieldType::Word(SchedulerAct::WORDS), "What is done."),
    ],
);

pub(crate) fn scheduler(context: &mut Context<'_, '_>, node: &Node) -> Option<Scheduler> {
    let fields = context.reader.open(node, &SCHEDULER)?;
    let name = match fields.get("name") {
        Some(node) => read_name(context.reader, node),
        None => Some(USUAL.to_owned()),
    };
    let act = fields
        .get("do")
        .and_then(|node| word(context.reader, node, &SchedulerAct::ALL, SchedulerAct::name).zip(Some(node)));
    if act.is_none_or(|(act, _)| act.starts()) {
        // Also where something is wrong with the step, which is told once, and not again wherever its scheduler is looked at.
        let name = fields.get("name").map_or(Some(USUAL), Node::as_text);
        context.scope.started.extend(name.map(str::to_owned));
    }
    let (act, act_node) = act?;
    let name = name?;
    let right = if act.starts() {
        context.scope.schedulers.insert(name.clone())
    } else {
        context.scope.schedulers.remove(&name)
    };
    // What runs where a fragment is included is known there only, and a cleanup may follow after any step.
    let known = !context.scope.lone && context.section != crate::Section::Cleanup;
    if !right && known {
        let (message, remedy) = match act {
            SchedulerAct::Start | SchedulerAct::DryRun => (
                format!("the scheduler {name} runs already"),
                "stop it first, or give the second one another name".to_owned(),
            ),
            SchedulerAct::Stop | SchedulerAct::Kill => {
                let running: Vec<&str> = context.scope.schedulers.iter().map(String::as_str).collect();
                let remedy = match running.as_slice() {
                    [] => "start one in a step further up".to_owned(),
                    names => format!("name one that does: {}", names.join(", ")),
                };
                (format!("no scheduler {name} runs here"), remedy)
            }
        };
        context.reader.wrong(&act_node.span, message, remedy);
    }
    Some(Scheduler { name, act })
}

/// The name of a second scheduler that was started before, whether it still runs or not: what it printed stays.
pub(crate) fn started_scheduler(context: &mut Context<'_, '_>, node: &Node) -> Option<String> {
    if let Kind::List(_) = node.kind {
        let message = format!("one scheduler's name belongs here, not {}", node.describe());
        context.reader.wrong(&node.span, message, "make a step for each");
        return None;
    }
    let name = context.reader.text(node)?;
    // What is started where a fragment is included is known there only.
    if context.scope.lone || context.scope.started.contains(&name) {
        return Some(name);
    }
    let started: Vec<&str> = context.scope.started.iter().map(String::as_str).collect();
    let remedy = match (nearest(&name, started.iter().copied()), started.as_slice()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => format!("start it in a step further up: scheduler: {{name: {name}, do: start}}"),
        (None, names) => format!("name one that is: {}; or start it in a step further up", names.join(", ")),
    };
    context.reader.wrong(&node.span, format!("no scheduler {name} is started before this step"), remedy);
    None
}
