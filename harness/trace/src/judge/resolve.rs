//! What an instant amounts to in a trial.

use rigor_model::expr::{Instant, is_path_of};
use rigor_model::kinds::LEASE_NAMESPACE;
use rigor_model::path::Path;
use rigor_model::template;
use rigor_model::{Action, Class};
use serde_json::Value;

use super::{Bench, StepState};
use crate::history::{Fact, Micros};
use crate::index::{Version, key_of};
use crate::interval::Interval;

/// Why an instant cannot be told (yet).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unresolved(String);

impl Unresolved {
    pub(super) fn new(why: impl Into<String>) -> Unresolved {
        Unresolved(why.into())
    }
}

impl Bench<'_, '_> {
    /// When an instant is.
    pub(super) fn resolve(&self, instant: &Instant) -> Result<Interval, Unresolved> {
        match instant {
            Instant::Start => Ok(Interval::exactly(Micros::ZERO)),
            Instant::Begin => Ok(Interval::exactly(self.begin)),
            Instant::Serving => {
                self.view.serving().ok_or_else(|| Unresolved::new("the control plane never began to serve"))
            }
            Instant::Named(name) => Ok(self.named(name)?.0),
            Instant::LastRenewal { node, before } => self.last_renewal(node, before.as_deref()),
            Instant::Stamp { name, path } => self.stamp(name, path),
            Instant::Mark { name, subject } => self.mark(name, subject.as_deref()),
            Instant::Request { method, path } => self.request(method, path),
            Instant::Plus(from, length) => Ok(self.resolve(from)?.plus(length.resolve(&self.constants))),
            Instant::Minus(from, length) => Ok(self.resolve(from)?.minus(length.resolve(&self.constants))),
            Instant::Latest(all) => self.extreme(all, Interval::later),
            Instant::Earliest(all) => self.extreme(all, Interval::earlier),
        }
    }

    fn extreme(
        &self,
        all: &[Instant],
        pick: fn(Interval, Interval) -> Interval,
    ) -> Result<Interval, Unresolved> {
        let mut resolved = all.iter().map(|instant| self.resolve(instant));
        let first = resolved.next().unwrap_or_else(|| Err(Unresolved::new("nothing to choose from")))?;
        resolved.try_fold(first, |chosen, next| Ok(pick(chosen, next?)))
    }

    /// The earliest of the instants that an instant is computed from.
    pub(super) fn base(&self, instant: &Instant) -> Result<Interval, Unresolved> {
        let bases: Vec<Instant> = instant.bases().into_iter().cloned().collect();
        self.extreme(&bases, Interval::earlier)
    }

    /// The instant of the last step of that name before this one, and the record that shows it.
    pub(super) fn named(&self, name: &str) -> Result<(Interval, Option<usize>), Unresolved> {
        let plan = &self.judge.scenario.plan;
        for (index, step) in plan.iter().enumerate().take(self.index).rev() {
            if step.name.as_deref() == Some(name) {
                return self.of_step(index, name);
            }
            if let Action::Parallel(acts) = &step.action
                && let Some(act) = acts.iter().find(|act| act.name.as_deref() == Some(name))
            {
                return self.instant_of_act(index, &act.action, name);
            }
        }
        Err(Unresolved::new(format!("no step before this one is called `{name}`")))
    }

    fn of_step(&self, index: usize, name: &str) -> Result<(Interval, Option<usize>), Unresolved> {
        let step = &self.judge.scenario.plan[index];
        if step.action.verb().class() == Class::Act {
            return self.instant_of_act(index, &step.action, name);
        }
        match self.judge.step(index, self.history, self.view.now()) {
            StepState::Settled(verdict) => match verdict.found {
                Some(found) => Ok((found.when, found.record)),
                None => Err(Unresolved::new(format!("`{name}` has no instant: that step found nothing"))),
            },
            StepState::Pending { .. } => Err(Unresolved::new(format!("`{name}` has not happened yet"))),
        }
    }

    fn instant_of_act(
        &self,
        index: usize,
        action: &Action,
        name: &str,
    ) -> Result<(Interval, Option<usize>), Unresolved> {
        let marks = self.view.step(index);
        let (Some(begin), Some(end)) = (marks.begin, marks.end) else {
            return Err(Unresolved::new(format!("`{name}` has not happened yet")));
        };
        let key = (index, name.to_owned());
        if let Some(shown) = self.judge.acts.borrow().get(&key) {
            return Ok(*shown);
        }
        let shown = self.shown_by(action, begin, end);
        self.judge.acts.borrow_mut().insert(key, shown);
        Ok(shown)
    }

    /// When an act was, from the facts between its ends.
    fn shown_by(&self, action: &Action, begin: usize, end: usize) -> (Interval, Option<usize>) {
        let records = self.history.records();
        if let Action::Wait(_) | Action::Advance(_) = action {
            return (Interval::exactly(records[end].at), None);
        }
        let facts = self.facts_of(action, begin, end);
        let whole = Interval::new(records[begin].at, records[end].at);
        let hull = facts
            .iter()
            .map(|record| self.view.fact_interval(record))
            .reduce(|all, next| Interval::new(all.earliest.min(next.earliest), all.latest.max(next.latest)));
        let last = facts.last().and_then(|record| usize::try_from(record.seq).ok());
        (hull.unwrap_or(whole), last)
    }

    /// A name in an expression: as it stands, or a captured value.
    pub(super) fn word(&self, text: &str) -> Result<String, Unresolved> {
        if template::names(text).is_empty() {
            return Ok(text.to_owned());
        }
        let values = self.judge.values(self.index, self.history);
        template::fill_text(text, &values).map_err(|error| Unresolved::new(error.to_string()))
    }

    /// The last request of a kind, from sending to answer.
    fn request(&self, method: &str, path: &str) -> Result<Interval, Unresolved> {
        let path = self.word(path)?;
        let numbers = self.view.request_numbers().iter().rev();
        let found = numbers.map(|number| self.view.record(*number)).find(|record| {
            matches!(&record.fact, Fact::Request { method: made, path: to, .. }
                if made == method && is_path_of(&path, to))
        });
        match found {
            Some(record) => Ok(self.view.fact_interval(record)),
            None => Err(Unresolved::new(format!("request({method}, {path}) was not made"))),
        }
    }

    /// When the server accepted the last renewal of a node's lease.
    fn last_renewal(&self, node: &str, before: Option<&Instant>) -> Result<Interval, Unresolved> {
        let before = before.map(|instant| self.resolve(instant)).transpose()?;
        let node = self.word(node)?;
        let key = (LEASE_NAMESPACE.to_owned(), self.history.node_of(&node).to_owned());
        let last = match before {
            None => self.view.renewals(&key).next_back().map(|version| self.view.interval(version)),
            Some(before) => self.view.last_renewal_before(&key, before.latest),
        };
        last.ok_or_else(|| {
            Unresolved::new(format!("lastRenewal({node}) cannot be told: no renewal of its lease was seen"))
        })
    }

    /// A time stamp in the object that a named expectation found.
    fn stamp(&self, name: &str, path: &Path) -> Result<Interval, Unresolved> {
        let (_, record) = self.named(name)?;
        let shown = record.map(|record| &self.history.records()[record].fact);
        let (what, body) = match shown {
            Some(Fact::Object { object, .. }) => ("object", object),
            Some(Fact::Request { response: Some(body), .. }) => ("answer", body),
            Some(_) | None => {
                return Err(Unresolved::new(format!("`{name}` found no object, so it has no stamp")));
            }
        };
        let Some(Value::String(text)) = path.get(body) else {
            return Err(Unresolved::new(format!("the {what} that `{name}` found has no text at {path}")));
        };
        let told = self.view.stamp(text).ok_or_else(|| {
            Unresolved::new(format!("`{text}` at {path} is no time stamp, or the server's clock is unknown"))
        })?;
        let Some(Fact::Object { stream, object, .. }) = shown else {
            // An answer shows that the stamp was made before it was sent back.
            let answered = record.map(|record| Interval::new(Micros::ZERO, self.view.record(record).at));
            return Ok(answered.and_then(|answered| answered.intersection(told)).unwrap_or(told));
        };
        // When the stamp was first seen is known better than the second that it tells.
        let versions = self.view.versions(stream, &key_of(object));
        let shows = |version: &&Version| !version.gone && stamped(self.view.object(version), path, text);
        let seen = versions.iter().find(shows).map(|version| self.view.interval(version));
        Ok(seen.and_then(|seen| seen.intersection(told)).unwrap_or(told))
    }

    fn mark(&self, name: &str, subject: Option<&str>) -> Result<Interval, Unresolved> {
        let subject = subject.map(|subject| self.word(subject)).transpose()?;
        let subject = subject.as_deref();
        let found = self.view.marks().rfind(|record| {
            matches!(&record.fact, Fact::Mark { name: found, subject: of }
                if found == name && (subject.is_none() || of.as_deref() == subject))
        });
        match found {
            Some(record) => Ok(Interval::exactly(record.at)),
            None => Err(Unresolved::new(format!("the history has no mark `{name}`"))),
        }
    }
}

/// Whether an object carries that stamp at that place.
fn stamped(object: &Value, path: &Path, text: &str) -> bool {
    path.get(object).and_then(Value::as_str) == Some(text)
}
