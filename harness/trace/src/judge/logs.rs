//! Logs: an answer tells what a container had written when the log was asked for, so the runner asks again
//! and again while an expectation over a log is pending, and once more when its window is past.

use std::time::Duration;

use rigor_model::Action;
use rigor_model::expect::{LogFilter, Subject};

use super::{Bench, Judge};
use crate::history::{Fact, History, Micros, Record};
use crate::interval::Interval;
use crate::timeline::{Look, Source, log_answer};

/// The longest and the shortest time between two questions.
const BETWEEN: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

impl Judge<'_> {
    /// The path of the log that a step is about, if it is time to ask for it. Asking adds a request and its
    /// answer to the history.
    pub fn log_to_ask(&self, index: usize, history: &History, now: Micros) -> Option<String> {
        let (path, due) = self.next_question(index, history, now)?;
        (due <= now).then_some(path)
    }

    /// When it is time to ask again for the log that a step is about.
    pub fn log_again(&self, index: usize, history: &History, now: Micros) -> Option<Micros> {
        self.next_question(index, history, now).map(|(_, due)| due)
    }

    fn next_question(&self, index: usize, history: &History, now: Micros) -> Option<(String, Micros)> {
        let step = self.scenario().plan.get(index)?;
        let log = log_of(&step.action)?;
        let values = self.values(index, history);
        let path = log.path(&values, history.index().namespace()).ok()?;
        let bench = self.bench(index, step, history, now);
        let due = bench.asked(&path).map_or(now, |asked| asked + bench.log_period());
        Some((path, due))
    }
}

fn log_of(action: &Action) -> Option<&LogFilter> {
    match action.subject()? {
        Subject::Log(log) => Some(log),
        Subject::Objects(_) | Subject::Console { .. } | Subject::Requests(_) => None,
    }
}

impl Bench<'_, '_> {
    /// How long after a question a log is asked for again: so often that the slack tells two lines apart.
    fn log_period(&self) -> Duration {
        (self.view.slack() / 4).clamp(BETWEEN.0, BETWEEN.1)
    }

    /// The answers to questions for a log, newest first.
    fn log_answers<'b>(&'b self, path: &'b str) -> impl Iterator<Item = &'b Record> {
        let numbers = self.view.request_numbers().iter().rev();
        numbers.map(|number| self.view.record(*number)).filter(move |record| {
            matches!(&record.fact, Fact::Request { method, path: to, .. } if method == "GET" && to == path)
        })
    }

    /// When a log was last asked for in this step.
    fn asked(&self, path: &str) -> Option<Micros> {
        let last = self.log_answers(path).next()?;
        let Fact::Request { sent, .. } = &last.fact else { return None };
        (*sent >= self.begin).then_some(*sent)
    }

    /// Whether everything that the look may show up to an instant is known by now.
    pub(super) fn known_of(&self, look: &Look, instant: Interval) -> Result<(), Micros> {
        self.known_until(instant)?;
        if let Some(until) = self.waits_to_see(look, instant) {
            return Err(until);
        }
        let Look::Occurrences { of: Source::Log { path, .. }, .. } = look else { return Ok(()) };
        match self.asked(path) {
            _ if self.ended => Ok(()),
            Some(asked) if asked >= instant.latest => Ok(()),
            Some(_) | None => Err(self.view.now() + self.log_period()),
        }
    }

    /// Why the look's log tells nothing, if it looks at one that nobody could read.
    pub(super) fn unread(&self, look: &Look, from: Micros) -> Option<String> {
        match look {
            Look::Occurrences { of: Source::Log { path, .. }, .. } => self.unread_log(path, from),
            Look::State { .. } | Look::Occurrences { .. } => None,
        }
    }

    /// Why a log tells nothing: nobody could read it.
    pub(super) fn unread_log(&self, path: &str, from: Micros) -> Option<String> {
        let read = self
            .log_answers(path)
            .take_while(|record| record.at >= from)
            .any(|record| log_answer(&record.fact, path).is_some());
        (!read).then(|| self.why_unread(path))
    }

    /// What was answered to the last question for a log.
    pub(super) fn why_unread(&self, path: &str) -> String {
        match self.log_answers(path).next().map(|record| &record.fact) {
            Some(Fact::Request { status: 0, error, .. }) => {
                format!(
                    "the log could not be read: GET {path} had no answer: {}",
                    error.as_deref().unwrap_or("?")
                )
            }
            Some(Fact::Request { status, response, .. }) => {
                let said = super::acts::said(response.as_ref());
                format!("the log could not be read: GET {path} was answered {status}: {said}")
            }
            Some(_) | None => format!("the log could not be read: nobody asked for {path}"),
        }
    }
}
