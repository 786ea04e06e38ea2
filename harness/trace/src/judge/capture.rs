//! `capture`: values of an object, of an answer or of a line become names.

use rigor_model::expect::{Capture, CaptureFrom, Subject};
use rigor_model::path::Path;
use rigor_model::{Outcome, Section};
use serde_json::Value;

use super::message::{Window, evidence, listed};
use super::{Bench, StepState, Unresolved, Verdict};
use crate::history::{Fact, Micros, Record};
use crate::index::Version;
use crate::interval::Interval;
use crate::matching::Matcher;
use crate::timeline::{Asked, CannotLook, Look, Selection, Source, Values, Watch, log_answer};

/// What was found, or why nothing was.
type Sought = Result<Verdict, String>;

impl Bench<'_, '_> {
    pub(super) fn capture(&self, capture: &Capture) -> StepState {
        let values = self.judge.values(self.index, self.history);
        let within = capture.within.resolve(&self.constants);
        let until = self.late_edge(Interval::exactly(self.begin + within), within).latest;
        let window = Window::Capture { until };
        let found = match &capture.from {
            CaptureFrom::Object { of, pattern, cel, fields } => {
                let prepared = Selection::new(of, &self.view, &values).and_then(|selection| {
                    Ok((selection, Matcher::with(pattern.as_ref(), cel.as_ref(), &values)?))
                });
                prepared.map(|(selection, matcher)| {
                    let look = Look::State { selection, matcher, pattern: pattern.clone(), count: None };
                    (self.in_object(&look, fields), Some(look))
                })
            }
            CaptureFrom::Answer { request, fields, sent, groups } => {
                Asked::new(request, &values).map(|asked| (self.in_answer(&asked, fields, sent, groups), None))
            }
            CaptureFrom::Mark { name, node, fields } => {
                Ok((self.in_mark(name, node.as_deref(), fields), None))
            }
            CaptureFrom::Line { of, groups } => self.in_line(of, groups, &values),
        };
        let (found, look) = match found {
            Ok(found) => found,
            Err(error) => return self.cannot_tell(&Unresolved::new(error.to_string())),
        };
        let why = match found {
            Ok(verdict) => return StepState::Settled(verdict),
            Err(why) => why,
        };
        if self.view.now() < until && !self.ended {
            return StepState::Pending { until };
        }
        let edge = Interval::exactly(until);
        if let Some(look) = &look
            && let Err(until) = self.known_of(look, edge)
            && !self.ended
        {
            return StepState::Pending { until };
        }
        let doubt = look
            .as_ref()
            .and_then(|look| self.blind_spot(look, self.begin, until))
            .or_else(|| self.stalled(self.begin, until));
        let unread = look.as_ref().and_then(|look| self.unread(look, self.begin));
        StepState::Settled(match (unread, doubt) {
            (Some(unread), _) => Verdict::because(Outcome::Fail, self.explain(window, &unread)),
            (None, Some(doubt)) => Verdict::because(Outcome::Undecided, self.explain(window, &doubt)),
            (None, None) => Verdict::because(Outcome::Fail, self.explain(window, &why)),
        })
    }

    /// Whether a capture takes what is there now; an observed scenario's steps look back, as they do over a history from elsewhere.
    fn is_now(&self) -> bool {
        self.staged && !(self.judge.scenario.observe && self.step.section == Section::Steps)
    }

    fn in_object(&self, look: &Look, fields: &[(String, Path)]) -> Sought {
        let Look::State { selection, matcher, .. } = look else { return Err(String::new()) };
        let is_meant = |version: &&Version| {
            let object = self.view.object(version);
            !version.gone
                && selection.selects(object)
                && matcher.as_ref().is_none_or(|matcher| matcher.matches(Some(object)))
        };
        let found: Vec<&Version> = selection
            .objects(&self.view)
            .into_iter()
            .filter_map(|(_, versions)| {
                // While a trial runs, what is there now; in a history from elsewhere, what ever was.
                if self.is_now() { versions.last().filter(is_meant) } else { versions.iter().rfind(is_meant) }
            })
            .collect();
        match found.as_slice() {
            [version] => {
                let captured = fields_of(self.view.object(version), fields, "object")
                    .map_err(|why| format!("{why}{}", evidence(Some(version.record))))?;
                let verdict = Verdict { captured, ..Verdict::pass() };
                Ok(verdict.with_found(self.view.interval(version), Some(version.record)))
            }
            [] => {
                let nearest =
                    self.closest(look, Interval::exactly(Micros::ZERO), Interval::exactly(self.view.now()));
                Err(match nearest {
                    Some((version, differences)) => format!(
                        "there is no such object; closest was {}, at {}, which differs:{}{}",
                        self.described(version.record),
                        self.view.interval(version),
                        listed(&differences),
                        evidence(Some(version.record))
                    ),
                    None => {
                        format!("there is no such object: no {} of that selection was there", selection.kind)
                    }
                })
            }
            several => {
                let names: Vec<String> =
                    several.iter().take(4).map(|version| self.described(version.record)).collect();
                Err(format!(
                    "{} objects are like that, and a capture takes exactly one: {}{}",
                    several.len(),
                    names.join(", "),
                    if several.len() > 4 { ", …" } else { "" }
                ))
            }
        }
    }

    /// The last mark of that name.
    fn in_mark(&self, name: &str, node: Option<&str>, fields: &[(String, Path)]) -> Sought {
        let (name, node) = (self.word(name), node.map(|node| self.word(node)).transpose());
        let (name, node) = (name.map_err(|why| why.to_string())?, node.map_err(|why| why.to_string())?);
        let last = self.view.marks().rfind(|record| {
            matches!(&record.fact, Fact::Mark { name: found, subject }
                if *found == name && (node.is_none() || *subject == node))
        });
        let Some(Record { fact: Fact::Mark { name, subject }, seq, at }) = last else {
            return Err(format!("the history has no mark `{name}`"));
        };
        let mut parts = serde_json::Map::from_iter([("name".to_owned(), Value::from(name.as_str()))]);
        parts.extend(subject.iter().map(|node| ("node".to_owned(), Value::from(node.as_str()))));
        let captured = fields_of(&Value::Object(parts), fields, "mark")?;
        let verdict = Verdict { captured, ..Verdict::pass() };
        Ok(verdict.with_found(Interval::exactly(*at), usize::try_from(*seq).ok()))
    }

    fn in_answer(
        &self,
        asked: &Asked,
        fields: &[(String, Path)],
        sent: &[(String, Path)],
        groups: &[String],
    ) -> Sought {
        let numbers = self.view.request_numbers();
        let last =
            numbers.iter().rev().map(|number| self.view.record(*number)).find(|record| asked.is(record));
        let Some(record) = last else {
            let near = numbers
                .iter()
                .rev()
                .map(|number| self.view.record(*number))
                .find(|record| asked.is_made(record));
            return Err(match near {
                Some(record) => format!(
                    "no such answer; the last to such a request was {} at {}, which differs:{}{}",
                    super::message::describe(record),
                    record.at,
                    listed(&asked.differences(record)),
                    evidence(usize::try_from(record.seq).ok())
                ),
                None => "no such request was made".to_owned(),
            });
        };
        let Fact::Request { response, body, path, .. } = &record.fact else { return Err(String::new()) };
        let seq = usize::try_from(record.seq).ok();
        let told = |why: String| format!("{why}{}", evidence(seq));
        let mut captured =
            fields_of(response.as_ref().unwrap_or(&Value::Null), fields, "answer").map_err(told)?;
        captured.extend(fields_of(body.as_ref().unwrap_or(&Value::Null), sent, "request").map_err(told)?);
        let found = asked.groups(path, groups).ok_or_else(|| {
            let groups = groups.join(", ");
            told(format!("the path `{path}` has nothing for one of the groups {groups}"))
        })?;
        captured.extend(found);
        let verdict = Verdict { captured, ..Verdict::pass() };
        Ok(verdict.with_found(self.view.fact_interval(record), seq))
    }

    fn in_line(
        &self,
        of: &Subject,
        groups: &[String],
        values: &Values,
    ) -> Result<(Sought, Option<Look>), CannotLook> {
        let source = Source::lines(of, &self.view, values)?;
        let look = Look::Occurrences { of: source.clone(), count: None };
        let watch = Watch::new(look.clone());
        let since = Interval::exactly(if self.staged { self.last_act() } else { Micros::ZERO });
        let first = watch
            .occurrences(&self.view)
            .iter()
            .copied()
            .find(|occurrence| !occurrence.when.is_before(since));
        let Some(first) = first else {
            let near = self.near_misses(&source, since);
            return Ok((Err(format!("no such line came{near}")), Some(look)));
        };
        let (expression, line) = match (&source, &self.view.record(first.record).fact) {
            (Source::Console { matches, .. }, fact) => (matches, fact.line().unwrap_or_default().to_owned()),
            (Source::Log { matches, path, .. }, fact) => {
                let text = log_answer(fact, path).map(|(_, text)| text).unwrap_or_default();
                (matches, text.lines().rfind(|line| matches.is_match(line)).unwrap_or_default().to_owned())
            }
            (Source::Events { .. } | Source::Requests(_), _) => {
                return Ok((Err(String::new()), None));
            }
        };
        let found = expression.captures(&line);
        let group = |name: &String| {
            let text = found.as_ref().and_then(|found| found.name(name));
            Some((name.clone(), Value::String(text?.as_str().to_owned())))
        };
        let captured: Option<Values> = groups.iter().map(group).collect();
        let sought = match captured {
            Some(captured) => {
                let verdict = Verdict { captured, ..Verdict::pass() };
                Ok(verdict.with_found(first.when, Some(first.record)))
            }
            None => Err(format!("the line `{line}` has nothing for one of the groups {}", groups.join(", "))),
        };
        Ok((sought, Some(look)))
    }
}

/// The values at these paths, all of them.
fn fields_of(value: &Value, fields: &[(String, Path)], what: &str) -> Result<Values, String> {
    let missing: Vec<String> = fields
        .iter()
        .filter(|(_, path)| path.get(value).is_none())
        .map(|(_, path)| path.to_string())
        .collect();
    if !missing.is_empty() {
        return Err(format!("the {what} has nothing at {}", missing.join(", ")));
    }
    Ok(fields.iter().filter_map(|(name, path)| Some((name.clone(), path.get(value)?.clone()))).collect())
}
