//! Windows that close before they open: a mistake of the scenario, about which no history says anything.

use rigor_model::Outcome;

use super::message::Window;
use super::{Bench, StepState, Verdict};
use crate::interval::Interval;
use crate::timeline::Look;

/// What may be done about such a window.
const REMEDY: &str = "nothing can be seen in it, so it says nothing of an implementation: say an end that comes later, or swap the two";

/// That a window is no window.
fn why(from: Interval, until: Interval) -> String {
    format!("the window closed before it opened: from at {from}, until at {until}")
}

impl Bench<'_, '_> {
    /// The verdict on what is said of a window that certainly closed before it opened: that something was not, or stayed, in no time
    /// at all. Nothing where it did not. An instant may move as long as the end is not past (the last renewal), so it is
    /// waited for.
    pub(super) fn reversed(
        &self,
        look: &Look,
        (from, until): (Interval, Interval),
        window: Window<'_>,
    ) -> Option<StepState> {
        if !until.is_before(from) {
            return None;
        }
        if let Err(until) = self.known_of(look, until) {
            return Some(StepState::Pending { until });
        }
        let text = self.explain(window, &format!("{}; {REMEDY}", why(from, until)));
        let unclear = Verdict::because(Outcome::Undecided, text);
        // A fault may have moved either end.
        Some(StepState::Settled(Self::unless_excused(unclear, self.excuse(from, until))))
    }

    /// The same of something that is to come in such a window: it cannot, so what is said is not so, whatever was seen.
    pub(super) fn never_open(
        &self,
        look: &Look,
        (opens, closes): (Interval, Interval),
        window: Window<'_>,
    ) -> Option<StepState> {
        if !closes.is_before(opens) {
            return None;
        }
        if let Err(until) = self.known_of(look, closes) {
            return Some(StepState::Pending { until });
        }
        let text = self.explain(window, &format!("{}; nothing can come in it", why(opens, closes)));
        Some(StepState::Settled(Verdict::because(Outcome::Fail, text)))
    }
}
