//! Windows that close before they open. Where that is the scenario's own doing no history says anything about them; where an end is
//! what an implementation decides (the onset that an expectation found), such a window can rightly be empty.

use rigor_model::expr::Instant;
use rigor_model::{Action, Class, Outcome};

use super::message::Window;
use super::{Bench, StepState, Verdict};
use crate::interval::Interval;
use crate::timeline::Look;

/// What may be done about such a window.
const REMEDY: &str = "nothing can be seen in it, so it says nothing of an implementation: say an end that comes later, or swap the two";

/// That a window is no window, if it certainly is none.
pub(super) fn why_reversed(from: Interval, until: Interval) -> Option<String> {
    let reversed = until.is_before(from);
    reversed.then(|| format!("the window closed before it opened: from at {from}, until at {until}"))
}

impl Bench<'_, '_> {
    /// The verdict on what is said of a window that certainly closed before it opened, by the scenario's own doing. An instant may
    /// move as long as the end is not past (the last renewal), so it is waited for.
    pub(super) fn reversed(
        &self,
        look: &Look,
        (from, until): (Interval, Interval),
        window: Window<'_>,
    ) -> Option<StepState> {
        let why = why_reversed(from, until).filter(|_| self.is_own_doing(&window.edges()))?;
        if let Err(until) = self.known_of(look, until) {
            return Some(StepState::Pending { until });
        }
        let text = self.explain(window, &format!("{why}; {REMEDY}"));
        let unclear = Verdict::because(Outcome::Undecided, text);
        // A fault may have moved either end.
        Some(StepState::Settled(Self::unless_excused(unclear, self.excuse(from, until))))
    }

    /// Whether instants lie to each other as the scenario has it: all count from the same one, or from what it does itself.
    fn is_own_doing(&self, edges: &[&Instant]) -> bool {
        let bases: Vec<&Instant> = edges.iter().flat_map(|edge| edge.bases()).collect();
        bases.windows(2).all(|pair| pair[0] == pair[1]) || bases.iter().all(|base| self.is_own(base))
    }

    /// Whether an instant is that of an act, or of the trial or the step itself.
    fn is_own(&self, base: &Instant) -> bool {
        let name = match base {
            Instant::Start | Instant::Begin => return true,
            Instant::Named(name) => name,
            _ => return false,
        };
        let earlier = self.judge.scenario.plan.iter().take(self.index).rev();
        let is_called = |step: &rigor_model::Step| step.name.as_ref() == Some(name);
        earlier
            .filter_map(|step| match &step.action {
                Action::Parallel(acts) if acts.iter().any(is_called) => Some(true),
                action => is_called(step).then(|| action.verb().class() == Class::Act),
            })
            .next()
            .unwrap_or(false)
    }
}
