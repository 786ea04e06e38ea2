//! A look that remembers what it has seen, so that asking again costs what is new and not the whole history.
//!
//! A watch is asked again and again while its step is pending, about a history that only grows. What it keeps
//! is what the records say; when things happened is told anew each time, because a later poll of the server
//! may narrow an interval. In virtual time nothing can, and intervals are kept as well.

use std::borrow::Cow;
use std::cell::{Ref, RefCell};

use rigor_model::path::Path;
use rigor_model::pattern::Count;
use serde_json::Value;

use super::{Change, FieldState, Look, Occurrence, Selection, Source};
use crate::history::{Fact, Micros};
use crate::index::{ObjectKey, Version};
use crate::interval::Interval;
use crate::matching::Matcher;
use crate::view::View;

/// A look and what it has seen.
#[derive(Debug)]
pub(crate) struct Watch {
    pub look: Look,
    tally: RefCell<Tally>,
}

/// What a look has seen so far.
#[derive(Debug, Default)]
struct Tally {
    /// How many entries of the stream's order, or of the list of lines, are taken in.
    taken: usize,
    /// By the object's number.
    objects: Vec<Seen>,
    selected: u64,
    matching: u64,
    /// The versions that brought a change, or that are occurrences: object's number and place.
    versions: Vec<(usize, usize)>,
    changes: Vec<Change>,
    occurrences: Vec<Occurrence>,
    /// Of a log: when the last answer was asked for, and how many lines were in it.
    log: Option<(Micros, u64)>,
}

/// What is known of one object.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// Whether it may be meant at all.
    admitted: bool,
    selected: bool,
    matching: bool,
    /// How often an Event says that it happened.
    count: u64,
}

impl Watch {
    pub fn new(look: Look) -> Watch {
        Watch { look, tally: RefCell::default() }
    }

    /// How a state changes over time. The first entry is how it is at the trial's start.
    pub fn changes(&self, view: &View<'_>) -> Ref<'_, [Change]> {
        if let Look::State { selection, matcher, count, .. } = &self.look {
            self.tally.borrow_mut().states(view, selection, matcher.as_ref(), count.as_ref());
        }
        Ref::map(self.tally.borrow(), |tally| tally.changes.as_slice())
    }

    /// Everything that happened, oldest first.
    pub fn occurrences(&self, view: &View<'_>) -> Ref<'_, [Occurrence]> {
        if let Look::Occurrences { of, .. } = &self.look {
            let mut tally = self.tally.borrow_mut();
            match of {
                Source::Events { selection, matcher, .. } => tally.events(view, selection, matcher.as_ref()),
                Source::Console { of, matches } => {
                    let is_meant = |fact: &Fact| fact.line().is_some_and(|line| matches.is_match(line));
                    tally.lines(view, view.line_numbers(of), is_meant);
                }
                Source::Requests(asked) => {
                    let numbers = view.request_numbers();
                    for number in numbers.iter().skip(tally.taken) {
                        let record = view.record(*number);
                        if asked.is(record) {
                            let when = view.fact_interval(record);
                            tally.occurrences.push(Occurrence { when, times: 1, record: *number });
                        }
                    }
                    tally.taken = numbers.len();
                }
                Source::Log { path, pod, matches } => tally.log(view, path, pod, matches),
            }
        }
        Ref::map(self.tally.borrow(), |tally| tally.occurrences.as_slice())
    }
}

impl Tally {
    /// Takes in the versions of a stream that are new, and hands each that may be meant on.
    fn take_in<'a>(
        &mut self,
        view: &View<'a>,
        selection: &Selection,
        mut each: impl FnMut(&mut Tally, usize, usize, &'a Version),
    ) {
        let Some(stream) = view.stream(selection.stream) else { return };
        while let Some((number, place)) = stream.order.get(self.taken).copied() {
            let (key, versions) = stream.numbered(number);
            let version = &versions[place];
            if !view.sees(version.record) {
                break;
            }
            self.taken += 1;
            while self.objects.len() <= number {
                let (key, _) = stream.numbered(self.objects.len());
                self.objects.push(Seen { admitted: selection.admits(key), ..Seen::default() });
            }
            debug_assert_eq!(self.objects[number].admitted, selection.admits(key));
            if self.objects[number].admitted {
                each(self, number, place, version);
            }
        }
    }

    fn states(
        &mut self,
        view: &View<'_>,
        selection: &Selection,
        matcher: Option<&Matcher>,
        count: Option<&Count>,
    ) {
        let holds = |matching: u64, selected: u64| match (count, &selection.names) {
            (Some(count), _) => count.holds(matching, selected),
            (None, Some(names)) => matching == names.len() as u64,
            (None, None) => matching > 0,
        };
        if self.changes.is_empty() {
            let start = Interval::exactly(Micros::ZERO);
            self.changes.push(Change { when: start, holds: holds(0, 0), record: None, numbers: (0, 0) });
        }
        if !view.exact() {
            for (change, (number, place)) in self.changes[1..].iter_mut().zip(&self.versions) {
                change.when = interval(view, selection, *number, *place).unwrap_or(change.when);
            }
        }
        self.take_in(view, selection, |tally, number, place, version| {
            let body = view.object(version);
            let is_selected = !version.gone && selection.selects(body);
            let is_matching = is_selected && matcher.is_none_or(|matcher| matcher.matches(Some(body)));
            let seen = &mut tally.objects[number];
            tally.selected = tally.selected + u64::from(is_selected) - u64::from(seen.selected);
            tally.matching = tally.matching + u64::from(is_matching) - u64::from(seen.matching);
            (seen.selected, seen.matching) = (is_selected, is_matching);
            let is = holds(tally.matching, tally.selected);
            if tally.changes.last().is_some_and(|last| last.holds != is) {
                tally.versions.push((number, place));
                tally.changes.push(Change {
                    when: view.interval(version),
                    holds: is,
                    record: Some(version.record),
                    numbers: (tally.matching, tally.selected),
                });
            }
        });
    }

    /// Events: one occurrence for each time its count rose.
    fn events(&mut self, view: &View<'_>, selection: &Selection, matcher: Option<&Matcher>) {
        if !view.exact() {
            for (occurrence, (number, place)) in self.occurrences.iter_mut().zip(&self.versions) {
                occurrence.when = interval(view, selection, *number, *place).unwrap_or(occurrence.when);
            }
        }
        self.take_in(view, selection, |tally, number, place, version| {
            let seen = &mut tally.objects[number];
            if version.gone {
                (seen.count, seen.matching) = (0, false);
                return;
            }
            let object = view.object(version);
            let count = event_count(object);
            let does_match =
                selection.selects(object) && matcher.is_none_or(|matcher| matcher.matches(Some(object)));
            let raised = count.saturating_sub(seen.count);
            let times = if does_match && !seen.matching { raised.max(1) } else { raised };
            (seen.count, seen.matching) = (count, does_match);
            if does_match && times > 0 {
                tally.versions.push((number, place));
                let when = view.interval(version);
                tally.occurrences.push(Occurrence { when, times, record: version.record });
            }
        });
    }

    /// Records of lines, each an occurrence if it is meant.
    fn lines(&mut self, view: &View<'_>, numbers: &[usize], is_meant: impl Fn(&Fact) -> bool) {
        for number in numbers.iter().skip(self.taken) {
            let record = view.record(*number);
            if is_meant(&record.fact) {
                let when = view.fact_interval(record);
                self.occurrences.push(Occurrence { when, times: 1, record: *number });
            }
        }
        self.taken = numbers.len();
    }

    /// Lines of a log: each answer that has more of them than the last one shows new ones, which were written
    /// after that last one was asked for, and after the pod was there.
    fn log(&mut self, view: &View<'_>, path: &str, pod: &ObjectKey, matches: &regex::Regex) {
        let numbers = view.request_numbers();
        for number in numbers.iter().skip(self.taken) {
            let record = view.record(*number);
            let Some((sent, text)) = log_answer(&record.fact, path) else { continue };
            let count = text.lines().filter(|line| matches.is_match(line)).count() as u64;
            let (since, known) = self.log.unwrap_or_else(|| (pod_since(view, pod), 0));
            if count > known {
                let when = Interval::new(since, record.at);
                self.occurrences.push(Occurrence { when, times: count - known, record: *number });
            }
            self.log = Some((sent, count));
        }
        self.taken = numbers.len();
    }
}

/// What a server gave of a log, and when it was asked for it.
///
/// A log that happens to be JSON is kept as such; it is told as one line.
pub(crate) fn log_answer<'f>(fact: &'f Fact, wanted: &str) -> Option<(Micros, Cow<'f, str>)> {
    match fact {
        Fact::Request { method, path, status: 200, sent, response, .. }
            if method == "GET" && path == wanted =>
        {
            let text = match response {
                Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
                Some(other) => Cow::Owned(other.to_string()),
                None => Cow::Borrowed(""),
            };
            Some((*sent, text))
        }
        _ => None,
    }
}

/// Before this a pod was not there, so that it cannot have logged anything.
fn pod_since(view: &View<'_>, pod: &ObjectKey) -> Micros {
    let versions = view.versions("pods", pod);
    let first = versions.iter().rposition(|version| version.gone).map_or(0, |gone| gone + 1);
    versions.get(first).map_or(Micros::ZERO, |version| view.interval(version).earliest)
}

fn interval(view: &View<'_>, selection: &Selection, number: usize, place: usize) -> Option<Interval> {
    let (_, versions) = view.stream(selection.stream)?.numbered(number);
    Some(view.interval(versions.get(place)?))
}

/// How often an Event says that it happened.
fn event_count(object: &Value) -> u64 {
    object["count"].as_u64().or_else(|| object["series"]["count"].as_u64()).unwrap_or(1).max(1)
}

/// A field's values over time, object by object; only what differs from the state before is kept.
#[derive(Debug)]
pub(crate) struct FieldWatch {
    pub selection: Selection,
    field: Path,
    tally: RefCell<(Tally, Vec<Vec<usize>>)>,
}

impl FieldWatch {
    pub fn new(selection: Selection, field: Path) -> FieldWatch {
        FieldWatch { selection, field, tally: RefCell::default() }
    }

    /// How the field's value changes over time, object by object.
    pub fn values<'a>(&self, view: &View<'a>) -> Vec<(&'a ObjectKey, Vec<FieldState<'a>>)> {
        let (tally, kept) = &mut *self.tally.borrow_mut();
        let Some(stream) = view.stream(self.selection.stream) else { return Vec::new() };
        let state = |version: &'a Version| {
            let body = view.object(version);
            let there = !version.gone && self.selection.selects(body);
            (there, if there { self.field.get(body) } else { None })
        };
        tally.take_in(view, &self.selection, |_, number, place, version| {
            while kept.len() <= number {
                kept.push(Vec::new());
            }
            let (_, versions) = stream.numbered(number);
            let last = kept[number].last().map(|place| state(&versions[*place]));
            if last != Some(state(version)) {
                kept[number].push(place);
            }
        });
        let told =
            kept.iter().enumerate().filter(|(_, places)| !places.is_empty()).map(|(number, places)| {
                let (key, versions) = stream.numbered(number);
                let states = places.iter().map(|place| {
                    let version = &versions[*place];
                    let (there, value) = state(version);
                    FieldState { when: view.interval(version), record: version.record, there, value }
                });
                (key, states.collect())
            });
        told.collect()
    }
}
