//! Scenarios that expect nothing: they pass whatever the cluster does.

use rigor_model::mistake::Mistake;
use rigor_model::yaml::Node;
use rigor_model::{Action, Class, Scenario, Section, Step};

/// That nothing of the scenario is judged but that its requests were taken.
///
/// What an act says of its answer is judged, and so is the exit code of a program that is run. Of the rows of a table the first
/// stands for all; what is in the cleanup never changes the verdict.
pub(super) fn expects_nothing(root: &Node, scenarios: &[Scenario]) -> Option<Mistake> {
    let scenario = scenarios.first()?;
    let judged = |step: &Step| step.section != Section::Cleanup && is_judged(step);
    if scenario.plan.is_empty() || scenario.plan.iter().any(judged) {
        return None;
    }
    let start = root.get("spec").and_then(|spec| spec.get("steps")).map_or(0, |steps| steps.span.start);
    Some(
        Mistake::new(start..start, "the scenario expects nothing, so it passes whatever happens")
            .remedy("say with expect, always, never or unchanged what must be seen, or with `answer` what the API must answer"),
    )
}

fn is_judged(step: &Step) -> bool {
    match &step.action {
        Action::Kubectl(_) | Action::Etcdctl(_) => true,
        Action::Parallel(steps) => steps.iter().any(is_judged),
        action => action.verb().class() == Class::Expectation || step.sentence.contains("answer:"),
    }
}
