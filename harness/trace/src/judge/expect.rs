//! `expect`: it becomes so inside the window; and `order`.

use std::time::Duration;

use rigor_model::Outcome;
use rigor_model::expect::{Expect, ExpectWindow, Order};
use rigor_model::expr::Instant;
use rigor_model::pattern::Count;

use super::edges::{self, Edge};
use super::message::{Window, evidence};
use super::reversed::why_reversed;
use super::{Bench, StepState, Unresolved, Verdict};
use crate::history::{Fact, Micros};
use crate::index::resource_version;
use crate::interval::Interval;
use crate::timeline::{Change, Look, Occurrence};

/// A window with its edges resolved.
#[derive(Debug, Clone, Copy)]
struct Edges {
    /// From here on things are looked at.
    from: Interval,
    /// Too early before it.
    not_before: Option<Interval>,
    /// Too late after it.
    not_after: Interval,
}

impl Bench<'_, '_> {
    pub(super) fn expect(&self, expect: &Expect) -> StepState {
        let watch = match self.watch(&expect.what) {
            Ok(watch) => watch,
            Err(error) => return self.cannot_tell(&Unresolved::new(error.to_string())),
        };
        let look = &watch.look;
        let edges = match self.edges(&expect.window, look) {
            Ok(edges) => edges,
            Err(why) => return self.cannot_tell(&why),
        };
        let window = Window::Expect {
            window: &expect.window,
            not_before: edges.not_before,
            not_after: edges.not_after,
        };
        // That nothing is so proves nothing if it could not be told.
        let of_absence = expect.what.count.as_ref().is_some_and(|count| count.holds(0, 0));
        if let Some(opens) = edges.not_before
            && let Some(state) = self.reversed(look, (opens, edges.not_after), window)
        {
            return state;
        }
        let state = match look {
            Look::State { .. } => self.expect_state(look, &watch.changes(&self.view), edges, window),
            Look::Occurrences { count, .. } => {
                let all = watch.occurrences(&self.view);
                match count {
                    Some(count) => self.expect_count(look, &all, count, edges, window),
                    None => self.expect_occurrence(look, &all, edges, window),
                }
            }
        };
        if of_absence { self.unless_broken(look, state, window) } else { state }
    }

    /// A pass that rests on a condition's not holding is none if the condition could not be evaluated.
    pub(super) fn unless_broken(&self, look: &Look, state: StepState, window: Window<'_>) -> StepState {
        match (&state, look.broken()) {
            (StepState::Settled(verdict), Some(why)) if verdict.outcome == Outcome::Pass => {
                let why = format!("the condition cannot be evaluated, so nothing can be said: {why}");
                StepState::Settled(Verdict::because(Outcome::Fail, self.explain(window, &why)))
            }
            (StepState::Settled(_) | StepState::Pending { .. }, _) => state,
        }
    }

    fn edges(&self, window: &ExpectWindow, look: &Look) -> Result<Edges, Unresolved> {
        match window {
            ExpectWindow::Within { from, length } => {
                let from_resolved = self.resolve(from)?;
                // What an act brought about may have happened before its answer was in.
                let looked_from = match (look, from) {
                    (Look::Occurrences { .. }, Instant::Begin) => Interval::exactly(self.last_act()),
                    (Look::Occurrences { .. } | Look::State { .. }, _) => from_resolved,
                };
                let own = length.resolve(&self.constants);
                let not_after = self.late_edge(from_resolved.plus(own), own);
                Ok(Edges { from: looked_from, not_before: None, not_after })
            }
            ExpectWindow::Between { not_before, not_after } => Ok(Edges {
                from: self.base(not_before)?,
                not_before: Some(self.resolve(not_before)?),
                not_after: self.late_edge(self.resolve(not_after)?, self.own_time(not_after)?),
            }),
        }
    }

    fn expect_state(&self, look: &Look, changes: &[Change], edges: Edges, window: Window<'_>) -> StepState {
        let mut doubt = None;
        for (position, onset) in changes.iter().enumerate().filter(|(_, change)| change.holds) {
            let end = changes.get(position + 1).map(|change| change.when);
            if end.is_some_and(|end| end.is_before(edges.from)) {
                continue;
            }
            if edges.not_before.is_none() {
                // What already is so when the window opens is fine.
                if end.is_some_and(|end| end.latest < edges.from.earliest) {
                    continue;
                }
                return self.placed(onset.when, onset.record, edges, window);
            }
            let not_before = edges.not_before.unwrap_or(edges.from);
            // It was so before the base: too early if it certainly was still so when the window opened. One that ended about then
            // is passed over, as one that ended before.
            if let Some(end) =
                end.filter(|end| onset.when.is_before(edges.from) && !not_before.is_before(*end))
            {
                if end.latest > not_before.earliest {
                    doubt = Some(end.width() + not_before.width());
                }
                continue;
            }
            let state = self.placed(onset.when, onset.record, edges, window);
            return self.unless_lasting(state, doubt, window);
        }
        self.not_yet(look, edges, window)
    }

    /// A pass is none if it may have been so all the time from before the window, and what is known is too coarse to say.
    fn unless_lasting(&self, state: StepState, doubt: Option<Duration>, window: Window<'_>) -> StepState {
        let Some(doubt) = doubt.filter(|doubt| *doubt > self.view.slack()) else { return state };
        match state {
            StepState::Settled(verdict) if verdict.outcome == Outcome::Pass => {
                let why = format!(
                    "the observer was too slow: it was so before, and whether it still was when the window opened is uncertain by {} where the slack is {}",
                    seconds(doubt),
                    seconds(self.view.slack())
                );
                StepState::Settled(Verdict::because(Outcome::Undecided, self.explain(window, &why)))
            }
            StepState::Settled(_) | StepState::Pending { .. } => state,
        }
    }

    fn expect_occurrence(
        &self,
        look: &Look,
        all: &[Occurrence],
        edges: Edges,
        window: Window<'_>,
    ) -> StepState {
        match all.iter().find(|occurrence| !occurrence.when.is_before(edges.from)) {
            Some(first) => self.placed(first.when, Some(first.record), edges, window),
            None => self.not_yet(look, edges, window),
        }
    }

    /// The verdict on something that was found at `when`.
    fn placed(&self, when: Interval, record: Option<usize>, edges: Edges, window: Window<'_>) -> StepState {
        let place = |when| edges::place(when, edges.not_before, Some(edges.not_after), self.view.slack());
        let parts = self.possible(when);
        // Where an end of the interval is in an outage, it is known better.
        let when = match parts.as_slice() {
            [part] => *part,
            _ => when,
        };
        let (edge, away) = match (place(when), parts.as_slice()) {
            (Edge::Unclear(doubt), [_, _, ..]) => {
                let (agreed, away) = Self::in_parts(&parts, place);
                (agreed.unwrap_or(Edge::Unclear(doubt)), away)
            }
            (edge, _) => (edge, String::new()),
        };
        let settled = match edge {
            Edge::Inside(margins) => Verdict::pass().with_margins(margins).with_found(when, record),
            Edge::TooEarly(by) => {
                let text = self.found_outside(record, when, &format!("{} too early", seconds(by)), window);
                let failure = Verdict::because(Outcome::Fail, text).with_found(when, record);
                // Too early is never excused, but it may have been so already before the base from which it counts.
                let before = when.is_before(edges.from);
                Self::unless_excused(failure, before.then(|| self.excuse(when, edges.from)).flatten())
            }
            Edge::TooLate(_) | Edge::Outside => {
                match self.stalled(edges.from.earliest, edges.not_after.latest) {
                    Some(stall) => Verdict::because(Outcome::Undecided, self.explain(window, &stall))
                        .with_found(when, record),
                    None => {
                        let how = match edge {
                            Edge::TooLate(by) => format!("{} too late", seconds(by)),
                            _ => format!("too early or too late ({away})"),
                        };
                        let text = self.found_outside(record, when, &how, window);
                        Verdict::because(Outcome::Fail, text).with_found(when, record)
                    }
                }
            }
            Edge::Unclear(doubt) => {
                let away = match away.as_str() {
                    "" => away,
                    _ => format!("; {away}, and it matters whether it came before that or after"),
                };
                let why = format!(
                    "the observer was too slow: it came at {when}, and that is uncertain by {} where the slack is {}{away}",
                    seconds(doubt),
                    seconds(self.view.slack())
                );
                let doubt = Verdict::because(Outcome::Undecided, self.explain(window, &why));
                Self::unless_excused(doubt.with_found(when, record), self.blinded(when))
            }
        };
        StepState::Settled(settled)
    }

    /// It was not found: pending until the window is past, and then a failure unless something stood in the way.
    fn not_yet(&self, look: &Look, edges: Edges, window: Window<'_>) -> StepState {
        if let Err(until) = self.known_of(look, edges.not_after) {
            return StepState::Pending { until };
        }
        let from = edges.from.earliest;
        if let Some(why) = self.unread(look, from) {
            return StepState::Settled(Verdict::because(Outcome::Fail, self.explain(window, &why)));
        }
        let doubt = self
            .blind_spot(look, from, edges.not_after.latest)
            .or_else(|| self.stalled(from, edges.not_after.latest));
        StepState::Settled(match doubt {
            Some(why) => Verdict::because(Outcome::Undecided, self.explain(window, &why)),
            None => {
                let reversed = edges.not_before.and_then(|opens| why_reversed(opens, edges.not_after));
                let text = match reversed {
                    Some(why) => self.explain(window, &format!("{why}; nothing can come in it")),
                    None => self.never_came(look, edges.from, edges.not_after, window),
                };
                Verdict::because(Outcome::Fail, text)
            }
        })
    }

    /// So many occurrences in the window, judged when it is past.
    fn expect_count(
        &self,
        look: &Look,
        all: &[Occurrence],
        count: &Count,
        edges: Edges,
        window: Window<'_>,
    ) -> StepState {
        if let Err(until) = self.known_of(look, edges.not_after) {
            // More than enough cannot become right again, but at least so many can be settled at once.
            if edges.not_before.is_none() && only_grows_true(count) {
                let so_far = counted(all, edges.from, edges.not_after);
                if count.holds(so_far.0, so_far.0) {
                    return self.count_settled(all, edges, so_far);
                }
            }
            return StepState::Pending { until };
        }
        let opens = edges.not_before.unwrap_or(edges.from);
        let (certain, possible) = counted(all, opens, edges.not_after);
        if let Some(why) = self.unread(look, opens.earliest).filter(|_| !count.holds(0, 0)) {
            return StepState::Settled(Verdict::because(Outcome::Fail, self.explain(window, &why)));
        }
        if let Some(why) = self.blind_spot(look, opens.earliest, edges.not_after.latest) {
            return StepState::Settled(Verdict::because(Outcome::Undecided, self.explain(window, &why)));
        }
        // So many at least must come, whatever happens; an exact number need not be kept.
        let excuse = || (!only_grows_true(count)).then(|| self.excuse(edges.not_after, opens)).flatten();
        let right: Vec<u64> = (certain..=possible).filter(|number| count.holds(*number, *number)).collect();
        if right.is_empty() {
            // More of them may have been held up with the harness; fewer cannot.
            let more = (possible + 1..=possible + MOST_MISSING).any(|number| count.holds(number, number));
            if let Some(stall) = self.stalled(opens.earliest, edges.not_after.latest).filter(|_| more) {
                return StepState::Settled(Verdict::because(
                    Outcome::Undecided,
                    self.explain(window, &stall),
                ));
            }
            let text = self.miscounted(look, all, count, (certain, possible), opens, edges.not_after, window);
            let failure = Verdict::because(Outcome::Fail, text);
            return StepState::Settled(Self::unless_excused(failure, excuse()));
        }
        let doubtful = all.iter().filter(|occurrence| on_edge(occurrence, opens, edges.not_after));
        let doubt = doubtful
            .map(|occurrence| occurrence.when.width() + opens.width().max(edges.not_after.width()))
            .max();
        match doubt
            .filter(|doubt| *doubt > self.view.slack() && (right.len() as u64) < possible - certain + 1)
        {
            Some(doubt) => {
                let why = format!(
                    "the observer was too slow: from {certain} to {possible} are in the window, uncertain by {}",
                    seconds(doubt)
                );
                let unclear = Verdict::because(Outcome::Undecided, self.explain(window, &why));
                StepState::Settled(Self::unless_excused(unclear, excuse()))
            }
            None => self.count_settled(all, edges, (certain, possible)),
        }
    }

    fn count_settled(&self, all: &[Occurrence], edges: Edges, numbers: (u64, u64)) -> StepState {
        let opens = edges.not_before.unwrap_or(edges.from);
        let inside = all.iter().find(|occurrence| {
            !occurrence.when.is_before(opens) && !edges.not_after.is_before(occurrence.when)
        });
        let mut verdict = Verdict::pass();
        if let Some(first) = inside {
            verdict = verdict.with_found(first.when, Some(first.record));
            if let Edge::Inside(margins) =
                edges::place(first.when, edges.not_before, Some(edges.not_after), self.view.slack())
            {
                verdict = verdict.with_margins(margins);
            }
        }
        debug_assert!(numbers.0 <= numbers.1);
        StepState::Settled(verdict)
    }

    pub(super) fn order(&self, order: &Order) -> StepState {
        let mut previous: Option<(&String, Interval, Option<usize>)> = None;
        for name in &order.names {
            let (when, record) = match self.named(name) {
                Ok(found) => found,
                Err(why) => return self.cannot_tell(&why),
            };
            if let Some((earlier, before, earlier_record)) = previous {
                // Two object versions of one instant are told apart by the order in which they were written.
                let written_before = match (self.version_of(earlier_record), self.version_of(record)) {
                    (Some(first), Some(second)) => second < first,
                    (_, _) => false,
                };
                if when.is_before(before) || written_before {
                    let shown: Vec<String> = [record, earlier_record]
                        .into_iter()
                        .flatten()
                        .map(|record| format!("\n  {}{}", self.described(record), evidence(Some(record))))
                        .collect();
                    let text = format!(
                        "{}\n  `{name}` was at {when}, before `{earlier}` at {before}{}",
                        self.sentence(),
                        shown.concat()
                    );
                    return StepState::Settled(Verdict::because(Outcome::Fail, text));
                }
            }
            previous = Some((name, when, record));
        }
        StepState::Settled(Verdict::pass())
    }

    /// The resourceVersion of the object in a record.
    fn version_of(&self, record: Option<usize>) -> Option<u64> {
        let Fact::Object { object, .. } = &self.history.records()[record?].fact else { return None };
        resource_version(object)
    }
}

/// How many occurrences may be missing for a stall of the harness to excuse it.
const MOST_MISSING: u64 = 10_000;

/// Occurrences that are certainly inside, and those that may be.
fn counted(all: &[Occurrence], opens: Interval, closes: Interval) -> (u64, u64) {
    let mut certain = 0;
    let mut possible = 0;
    for occurrence in all {
        if occurrence.when.is_before(opens) || closes.is_before(occurrence.when) {
            continue;
        }
        possible += occurrence.times;
        if !on_edge(occurrence, opens, closes) {
            certain += occurrence.times;
        }
    }
    (certain, possible)
}

/// Whether an occurrence may be inside or outside.
fn on_edge(occurrence: &Occurrence, opens: Interval, closes: Interval) -> bool {
    let outside = occurrence.when.is_before(opens) || closes.is_before(occurrence.when);
    let inside = occurrence.when.earliest >= opens.latest && occurrence.when.latest <= closes.earliest;
    !outside && !inside
}

/// Whether a count that is right stays right when more come.
fn only_grows_true(count: &Count) -> bool {
    use rigor_model::pattern::Comparison;
    match count {
        Count::All => false,
        Count::Compared(conditions) => conditions
            .iter()
            .all(|(comparison, _)| matches!(comparison, Comparison::AtLeast | Comparison::Greater)),
    }
}

/// Seconds with milliseconds: `2.310 s`.
pub(super) fn seconds(length: Duration) -> String {
    Micros::from_duration(length).to_string()
}
