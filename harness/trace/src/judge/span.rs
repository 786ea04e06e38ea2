//! `never`, `always` and `unchanged`: over a whole span.

use std::rc::Rc;

use rigor_model::Outcome;
use rigor_model::expect::{Always, Never, Span, Unchanged};

use super::expect::seconds;
use super::message::Window;
use super::{Bench, StepState, Unresolved, Verdict};
use crate::interval::Interval;
use crate::timeline::{CannotLook, Change, FieldWatch, Look, Selection, Watch};

/// What a stretch of a state means for a span.
enum Touch {
    Certain,
    Possible(std::time::Duration),
    None,
}

impl Bench<'_, '_> {
    pub(super) fn never(&self, never: &Never) -> StepState {
        let (watch, from, until) = match self.prepared(&never.what, &never.span) {
            Ok(prepared) => prepared,
            Err(why) => return self.cannot_tell(&why),
        };
        let look = &watch.look;
        let window = Window::Span { span: &never.span, from, until };
        if let Some(state) = self.reversed(look, (from, until), window) {
            return state;
        }
        let touches: Vec<(Touch, Interval, Option<usize>)> = match look {
            Look::State { .. } => {
                let changes = watch.changes(&self.view);
                stretches(&changes, true)
                    .into_iter()
                    .map(|(onset, end)| (self.touch(onset.when, end, from, until), onset.when, onset.record))
                    .collect()
            }
            Look::Occurrences { count, .. } => {
                let all = watch.occurrences(&self.view);
                if let Some(count) = count {
                    let state = self.never_count(look, &all, count, from, until, window);
                    return self.unless_broken(look, state, window);
                }
                all.iter()
                    .map(|one| (touch_instant(one.when, from, until), one.when, Some(one.record)))
                    .collect()
            }
        };
        let state = self.span_verdict(look, touches, from, until, window, "it was so");
        self.unless_broken(look, state, window)
    }

    /// `never` with a count of occurrences: judged when the span is past.
    fn never_count(
        &self,
        look: &Look,
        all: &[crate::timeline::Occurrence],
        count: &rigor_model::pattern::Count,
        from: Interval,
        until: Interval,
        window: Window<'_>,
    ) -> StepState {
        let certain: u64 = all
            .iter()
            .filter(|one| matches!(touch_instant(one.when, from, until), Touch::Certain))
            .map(|one| one.times)
            .sum();
        let possible: u64 = all
            .iter()
            .filter(|one| !matches!(touch_instant(one.when, from, until), Touch::None))
            .map(|one| one.times)
            .sum();
        if let Err(until) = self.known_of(look, until) {
            return StepState::Pending { until };
        }
        if let Some(why) = self.blind_spot(look, from.earliest, until.latest) {
            return StepState::Settled(Verdict::because(Outcome::Undecided, self.explain(window, &why)));
        }
        let wrong = (certain..=possible).filter(|number| count.holds(*number, *number)).count() as u64;
        StepState::Settled(if wrong == possible - certain + 1 {
            let text = self.miscounted(look, all, count, (certain, possible), from, until, window);
            Self::unless_excused(Verdict::because(Outcome::Fail, text), self.excuse(until, from))
        } else if wrong > 0 {
            let why =
                format!("from {certain} to {possible} are in the window, which is too uncertain to say");
            let unclear = Verdict::because(Outcome::Undecided, self.explain(window, &why));
            Self::unless_excused(unclear, self.excuse(until, from))
        } else {
            Verdict::pass()
        })
    }

    pub(super) fn always(&self, always: &Always) -> StepState {
        let (watch, from, until) = match self.prepared(&always.what, &always.span) {
            Ok(prepared) => prepared,
            Err(why) => return self.cannot_tell(&why),
        };
        let window = Window::Span { span: &always.span, from, until };
        let look = &watch.look;
        let Look::State { .. } = look else {
            return self.cannot_tell(&Unresolved::new("occurrences are not so at every time"));
        };
        if let Some(state) = self.reversed(look, (from, until), window) {
            return state;
        }
        let changes = watch.changes(&self.view);
        let touches = stretches(&changes, false)
            .into_iter()
            .map(|(onset, end)| (self.touch(onset.when, end, from, until), onset.when, onset.record))
            .collect();
        self.span_verdict(look, touches, from, until, window, "it was not so")
    }

    /// Whether a stretch of a state touches a span, as far as is known now: the news that ended it may be on its way.
    fn touch(&self, onset: Interval, end: Option<Interval>, from: Interval, until: Interval) -> Touch {
        let lasted = self.view.now() - self.view.lag();
        if end.is_none() && (lasted <= from.latest || lasted <= onset.latest) {
            return Touch::Possible(std::time::Duration::ZERO);
        }
        touch(onset, end, from, until)
    }

    /// Fails on the first certain touch, is undecided on one that is too uncertain, and passes at the end.
    fn span_verdict(
        &self,
        look: &Look,
        touches: Vec<(Touch, Interval, Option<usize>)>,
        from: Interval,
        until: Interval,
        window: Window<'_>,
        what: &str,
    ) -> StepState {
        let mut doubt = None;
        let mut excused = None;
        // What was so before the span opened breaks it only then, and a fault may have kept it so until then.
        let breach = |when: Interval| when.later(from);
        for (touch, when, record) in &touches {
            match touch {
                Touch::Certain => {
                    let when = when.later(Interval::exactly(from.latest.min(when.latest)));
                    let text = self.happened(look, *record, when, what, window);
                    let failure = Verdict::because(Outcome::Fail, text).with_found(when, *record);
                    // What is excused does not hide what is not.
                    match self.excuse(breach(when), from) {
                        None => return StepState::Settled(failure),
                        Some(excuse) => {
                            excused.get_or_insert_with(|| Self::unless_excused(failure, Some(excuse)));
                        }
                    }
                }
                Touch::Possible(width) if *width > self.view.slack() => {
                    let why = format!(
                        "the observer was too slow: {what} at {when}, and that is uncertain by {}",
                        seconds(*width)
                    );
                    // If it certainly were so it would be excused.
                    match self.excuse(breach(*when), from) {
                        None => doubt = doubt.or(Some(why)),
                        Some(excuse) => {
                            let unclear = Verdict::because(Outcome::Undecided, self.explain(window, &why));
                            excused.get_or_insert_with(|| Self::unless_excused(unclear, Some(excuse)));
                        }
                    }
                }
                Touch::Possible(_) | Touch::None => {}
            }
        }
        if let Err(until) = self.known_of(look, until) {
            return StepState::Pending { until };
        }
        let doubt = doubt.or_else(|| self.blind_spot(look, from.earliest, until.latest));
        StepState::Settled(match doubt {
            Some(why) => {
                let doubt = Verdict::because(Outcome::Undecided, self.explain(window, &why));
                Self::unless_excused(doubt, self.blinded(Interval::new(from.earliest, until.latest)))
            }
            None => excused.unwrap_or_else(Verdict::pass),
        })
    }

    pub(super) fn unchanged(&self, unchanged: &Unchanged) -> StepState {
        let watch = match self.field_watch(unchanged) {
            Ok(watch) => watch,
            Err(error) => return self.cannot_tell(&Unresolved::new(error.to_string())),
        };
        let selection = &watch.selection;
        let (from, until) = match self.span(&unchanged.span) {
            Ok(span) => span,
            Err(why) => return self.cannot_tell(&why),
        };
        let window = Window::Span { span: &unchanged.span, from, until };
        let look = Look::State { selection: selection.clone(), matcher: None, pattern: None, count: None };
        if let Some(state) = self.reversed(&look, (from, until), window) {
            return state;
        }
        let mut seen = 0;
        let mut excused = None;
        for (key, states) in watch.values(&self.view) {
            // The last state that may have come before the span opened.
            let Some(opening) = states.iter().rposition(|state| state.when.earliest <= from.latest) else {
                continue;
            };
            let Some(first) = states.get(opening).filter(|state| state.there) else { continue };
            seen += 1;
            if first.value.is_none() {
                let text = self.explain(
                    window,
                    &format!(
                        "{} of {} was not there when the window opened, so there is nothing that could change; is the path right? (That something stays away is said by `always` with {{$is: absent}})",
                        unchanged.field, key.1
                    ),
                );
                let failure = Verdict::because(Outcome::Fail, text);
                return StepState::Settled(Self::unless_excused(failure, self.excuse(from, from)));
            }
            for state in &states[opening + 1..] {
                if state.value == first.value && state.there {
                    continue;
                }
                let (when, record) = (state.when, state.record);
                match touch_instant(when, from, until) {
                    Touch::Certain => {
                        let now = match (state.there, state.value) {
                            (false, _) => "the object is gone".to_owned(),
                            (true, None) => "it is not there".to_owned(),
                            (true, Some(value)) => value.to_string(),
                        };
                        let was = first.value.map_or("not there".to_owned(), ToString::to_string);
                        let what = format!("{} of {} changed from {was} to: {now}", unchanged.field, key.1);
                        let text = self.happened(&look, Some(record), when, &what, window);
                        let failure = Verdict::because(Outcome::Fail, text).with_found(when, Some(record));
                        match self.excuse(when, from) {
                            None => return StepState::Settled(failure),
                            Some(excuse) => {
                                excused.get_or_insert_with(|| Self::unless_excused(failure, Some(excuse)));
                            }
                        }
                    }
                    Touch::Possible(width) if width > self.view.slack() => {
                        let why = format!(
                            "the observer was too slow: the field changed at {when}, uncertain by {}",
                            seconds(width)
                        );
                        let unclear = Verdict::because(Outcome::Undecided, self.explain(window, &why));
                        match self.excuse(when, from) {
                            None => return StepState::Settled(unclear),
                            Some(excuse) => {
                                excused.get_or_insert_with(|| Self::unless_excused(unclear, Some(excuse)));
                            }
                        }
                    }
                    Touch::Possible(_) | Touch::None => {}
                }
            }
        }
        if let Err(until) = self.known_of(&look, until) {
            return StepState::Pending { until };
        }
        if let Some(why) = self.blind_spot(&look, from.earliest, until.latest) {
            return StepState::Settled(Verdict::because(Outcome::Undecided, self.explain(window, &why)));
        }
        let wanted = selection.names.as_ref().map_or(1, Vec::len);
        if seen < wanted {
            let text = self.explain(
                window,
                &format!("when the window opened {seen} of at least {wanted} such objects were there"),
            );
            let failure = Verdict::because(Outcome::Fail, text);
            return StepState::Settled(Self::unless_excused(failure, self.excuse(from, from)));
        }
        StepState::Settled(excused.unwrap_or_else(Verdict::pass))
    }

    fn span(&self, span: &Span) -> Result<(Interval, Interval), Unresolved> {
        Ok((self.resolve(&span.from)?, self.resolve(&span.until)?))
    }

    fn prepared(
        &self,
        what: &rigor_model::expect::Observation,
        span: &Span,
    ) -> Result<(Rc<Watch>, Interval, Interval), Unresolved> {
        let watch = self.watch(what).map_err(|error| Unresolved::new(error.to_string()))?;
        let (from, until) = self.span(span)?;
        Ok((watch, from, until))
    }

    fn field_watch(&self, unchanged: &Unchanged) -> Result<Rc<FieldWatch>, CannotLook> {
        if let Some(watch) = self.judge.fields.borrow().get(&self.index) {
            return Ok(Rc::clone(watch));
        }
        let values = self.judge.values(self.index, self.history);
        let selection = Selection::new(&unchanged.of, &self.view, &values)?;
        let watch = Rc::new(FieldWatch::new(selection, unchanged.field.clone()));
        self.judge.fields.borrow_mut().insert(self.index, Rc::clone(&watch));
        Ok(watch)
    }
}

/// The stretches in which a state is as `holds` says, with their ends.
fn stretches(changes: &[Change], holds: bool) -> Vec<(Change, Option<Interval>)> {
    changes
        .iter()
        .enumerate()
        .filter(|(_, change)| change.holds == holds)
        .map(|(position, change)| (*change, changes.get(position + 1).map(|next| next.when)))
        .collect()
}

/// Whether a stretch of a state has a part inside a span. A stretch without length touches nothing.
fn touch(onset: Interval, end: Option<Interval>, from: Interval, until: Interval) -> Touch {
    let begins_inside = onset.latest < until.earliest;
    let ends_inside = end.is_none_or(|end| end.earliest > from.latest && end.earliest > onset.latest);
    if begins_inside && ends_inside {
        return Touch::Certain;
    }
    let outside = onset.earliest >= until.latest || end.is_some_and(|end| end.latest <= from.earliest);
    if outside || end.is_some_and(|end| end.latest == onset.earliest) {
        return Touch::None;
    }
    // The edge that is in doubt decides how much.
    let mut doubt = std::time::Duration::ZERO;
    if !begins_inside {
        doubt = doubt.max(onset.width() + until.width());
    }
    if let Some(end) = end.filter(|_| !ends_inside) {
        doubt = doubt.max(end.width() + from.width().max(onset.width()));
    }
    Touch::Possible(doubt)
}

/// Whether an instant is inside a span.
fn touch_instant(when: Interval, from: Interval, until: Interval) -> Touch {
    if when.earliest >= from.latest && when.latest < until.earliest {
        return Touch::Certain;
    }
    if when.is_before(from) || when.earliest >= until.latest {
        return Touch::None;
    }
    Touch::Possible(when.width() + from.width().max(until.width()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Micros;

    fn at(earliest: u64, latest: u64) -> Interval {
        Interval::new(Micros(earliest), Micros(latest))
    }

    #[test]
    fn stretches_touch_a_span_only_if_it_is_certain() {
        let shown = |touch: Touch| match touch {
            Touch::Certain => "certain".to_owned(),
            Touch::Possible(width) => format!("possible {}", width.as_micros()),
            Touch::None => "none".to_owned(),
        };
        let check = |onset, end, expected: &str| {
            assert_eq!(shown(touch(onset, end, at(100, 100), at(200, 200))), expected, "{onset} {end:?}");
        };
        check(at(0, 0), None, "certain");
        check(at(0, 0), Some(at(50, 50)), "none");
        check(at(0, 0), Some(at(100, 100)), "none");
        check(at(0, 0), Some(at(90, 110)), "possible 20");
        check(at(150, 150), Some(at(150, 150)), "none");
        check(at(150, 150), Some(at(151, 151)), "certain");
        check(at(190, 210), None, "possible 20");
        check(at(199, 199), None, "certain");
        check(at(200, 200), None, "none");
        check(at(300, 300), None, "none");
    }
}
