//! Acts are judged too: what the server answered must be what the step allows.

use rigor_model::act::{Answer, Api, Tool, ToolRun};
use rigor_model::pattern::{Operator, Pattern};
use rigor_model::template;
use rigor_model::{Action, Outcome};
use serde_json::Value;

use super::message::evidence;
use super::{Bench, StepState, Verdict};
use crate::history::{Fact, Ran, Record};
use crate::interval::Interval;
use crate::matching::{Difference, Matcher};

impl Bench<'_, '_> {
    /// Pending until the step has ended; then what its facts say.
    pub(super) fn act(&self) -> StepState {
        let marks = self.view.step(self.index);
        let (Some(begin), Some(end)) = (marks.begin, marks.end) else {
            return StepState::Pending { until: crate::history::Micros::MAX };
        };
        StepState::Settled(self.act_verdict(&self.step.action, begin, end))
    }

    fn act_verdict(&self, action: &Action, begin: usize, end: usize) -> Verdict {
        let facts = self.facts_of(action, begin, end);
        match action {
            Action::Wait(_) => Verdict::pass(),
            Action::Advance(advance) => {
                let records = self.history.records();
                let passed = records[end].at.since(records[begin].at);
                if passed < advance.by.resolve(&self.constants) {
                    let text = format!("{}\n  only {passed:?} passed", self.sentence());
                    return Verdict::because(Outcome::InfraError, text);
                }
                Verdict::pass()
            }
            Action::Parallel(acts) => {
                let verdicts = acts.iter().map(|act| self.act_verdict(&act.action, begin, end));
                verdicts.max_by_key(|verdict| verdict.outcome).unwrap_or_else(Verdict::pass)
            }
            Action::Power(_)
            | Action::Link(_)
            | Action::ControlPlane(_)
            | Action::Scheduler(_)
            | Action::Flash(_)
            | Action::Send(_)
            | Action::Mark(_) => self.done(&facts),
            Action::Kubectl(run) => self.ran(Tool::Kubectl, run, &facts),
            Action::Etcdctl(run) => self.ran(Tool::Etcdctl, run, &facts),
            Action::Node(_) => self.played(&facts),
            Action::Apply(act) => self.answered(&act.api, &facts),
            Action::Create(act) => self.answered(&act.api, &facts),
            Action::Replace(act) => self.answered(&act.api, &facts),
            Action::Patch(act) => self.answered(&act.api, &facts),
            Action::Delete(act) => self.answered(&act.api, &facts),
            Action::Scale(act) => self.answered(&act.api, &facts),
            Action::Cordon(act) | Action::Uncordon(act) => self.answered(&act.api, &facts),
            Action::Bind(act) => self.answered(&act.api, &facts),
            Action::Request(act) => self.answered(&act.api, &facts),
            Action::Expect(_)
            | Action::Never(_)
            | Action::Always(_)
            | Action::Unchanged(_)
            | Action::Order(_)
            | Action::Capture(_) => Verdict::pass(),
        }
    }

    fn done(&self, facts: &[&Record]) -> Verdict {
        match facts.last().and_then(|record| Some((record, usize::try_from(record.seq).ok()?))) {
            Some((record, number)) => {
                Verdict::pass().with_found(self.view.fact_interval(record), Some(number))
            }
            None => {
                Verdict::because(Outcome::InfraError, format!("{}\n  the rig did not do it", self.sentence()))
            }
        }
    }

    /// Whether each answer is what the step allows.
    fn answered(&self, api: &Api, facts: &[&Record]) -> Verdict {
        if facts.is_empty() {
            let text = format!("{}\n  the request was not made", self.sentence());
            return Verdict::because(Outcome::InfraError, text);
        }
        for record in facts {
            let Fact::Request { method, path, status, response, error, headers, .. } = &record.fact else {
                continue;
            };
            let place = format!("{}\n  {method} {path} at {}", self.sentence(), record.at);
            if *status == 0 {
                let why = error.as_deref().unwrap_or("the connection ended");
                return Verdict::because(Outcome::InfraError, format!("{place} had no answer: {why}"));
            }
            if !api.answer.accepts(*status) {
                let wanted = match api.answer.status.as_slice() {
                    [] => "a success".to_owned(),
                    codes => codes.iter().map(u16::to_string).collect::<Vec<_>>().join(" or "),
                };
                let text = format!(
                    "{place} was answered {status}, not {wanted}: {}{}",
                    said(response.as_ref()),
                    told(record)
                );
                return self.answered_otherwise(text, method == "GET", record);
            }
            if let Some(difference) = self.answer_difference(&api.answer, *status, response.as_ref()) {
                let text = format!("{place} was answered {status}, but {difference}{}", told(record));
                return self.answered_otherwise(text, true, record);
            }
            for (name, pattern) in &api.answer.headers {
                let Some(value) = headers.get(name) else {
                    let text = format!("{place}: the history does not hold the header field {name}");
                    return Verdict::because(Outcome::Undecided, text);
                };
                let value = value.clone().map(Value::String);
                if let Some(difference) = self.difference(pattern, value.as_ref()) {
                    let text =
                        format!("{place} was answered {status}, but the header field {name}: {difference}");
                    return Verdict::because(Outcome::Fail, text);
                }
            }
        }
        self.done(facts)
    }

    /// An answer that the step does not allow. It may rightly show what a fault did, if it was a read or did what it was to do; an act
    /// that was refused is not excused.
    fn answered_otherwise(&self, text: String, done: bool, record: &Record) -> Verdict {
        let failure = Verdict::because(Outcome::Fail, text);
        let at = Interval::exactly(record.at);
        let excuse = done.then(|| self.excuse(at, at)).flatten();
        Self::unless_excused(failure, excuse)
    }

    fn played(&self, facts: &[&Record]) -> Verdict {
        for record in facts {
            let Fact::Request { method, path, status, response, error, .. } = &record.fact else { continue };
            if *status == 0 || (*status >= 400 && *status != 409) {
                let said = error.clone().unwrap_or_else(|| said(response.as_ref()));
                let text = format!(
                    "{}\n  the node cannot be played: {method} {path} at {} was answered {status}: {said}",
                    self.sentence(),
                    record.at
                );
                return Verdict::because(
                    if *status == 0 { Outcome::InfraError } else { Outcome::Fail },
                    text,
                );
            }
        }
        Verdict::pass()
    }

    /// Whether a program ended and said as the step has it.
    fn ran(&self, tool: Tool, wanted: &ToolRun, facts: &[&Record]) -> Verdict {
        let (sentence, name) = (self.sentence(), tool.name());
        let values = self.judge.values(self.index, self.history);
        let args: Vec<String> =
            wanted.args.iter().map(|arg| template::fill_text(arg, &values).unwrap_or_default()).collect();
        let found = facts.iter().rev().find_map(|record| match &record.fact {
            Fact::Kubectl(ran) | Fact::Etcdctl(ran) if ran.argv.ends_with(&args) => Some((ran, *record)),
            _ => None,
        });
        let Some((Ran { status, stdout, stderr, .. }, record)) = found else {
            return Verdict::because(Outcome::InfraError, format!("{sentence}\n  {name} was not run"));
        };
        let ended = format!("{sentence}\n  {name} {} ended with {status}", args.join(" "));
        let streams =
            format!("\n  stdout: {}\n  stderr: {}{}", stdout.trim_end(), stderr.trim_end(), told(record));
        if *status != wanted.exit_code {
            return Verdict::because(Outcome::Fail, format!("{ended}, not {}{streams}", wanted.exit_code));
        }
        for (name, pattern, text) in [("stdout", &wanted.stdout, stdout), ("stderr", &wanted.stderr, stderr)]
        {
            let Some(pattern) = pattern else { continue };
            if let Some(difference) = self.output_difference(pattern, text) {
                return Verdict::because(Outcome::Fail, format!("{ended}, but {name} {difference}{streams}"));
            }
        }
        self.done(facts)
    }

    /// A plain text must be contained; anything else must match.
    fn output_difference(&self, pattern: &Pattern, text: &str) -> Option<String> {
        if let Pattern::Scalar(Value::String(part)) = pattern {
            let values = self.judge.values(self.index, self.history);
            let part = template::fill_text(part, &values).unwrap_or_default();
            return (!text.contains(&part)).then(|| format!("lacks `{part}`"));
        }
        let mut pattern = pattern.clone();
        if let Pattern::Operators(all) = &mut pattern {
            // A regular expression may look for something on one of many lines.
            for operator in all {
                if let Operator::Regex(text) = operator {
                    *text = format!("(?m){text}");
                }
            }
        }
        self.difference(&pattern, Some(&Value::String(text.to_owned())))
    }

    /// Where an answer is not as the step says.
    fn answer_difference(&self, answer: &Answer, status: u16, body: Option<&Value>) -> Option<String> {
        if answer.body.is_none() && answer.cel.is_none() {
            return None;
        }
        let values = self.judge.values(self.index, self.history);
        match Matcher::with(answer.body.as_ref(), answer.cel.as_ref(), &values) {
            Ok(matcher) => first_of(&matcher?.answer_differences(status, body)),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Where a value is not as a pattern says.
    fn difference(&self, pattern: &Pattern, value: Option<&Value>) -> Option<String> {
        let values = self.judge.values(self.index, self.history);
        let pattern = match pattern.fill(&values) {
            Ok(pattern) => pattern,
            Err(error) => return Some(error.to_string()),
        };
        let matcher = match Matcher::new(&pattern) {
            Ok(matcher) => matcher,
            Err(error) => return Some(error.to_string()),
        };
        first_of(&matcher.differences(value))
    }
}

/// The first of several differences.
fn first_of(found: &[Difference]) -> Option<String> {
    let first = found.first()?;
    let at = if first.path.is_empty() { String::new() } else { format!("{}: ", first.path) };
    Some(format!("{at}expected {}, found {}", first.expected, first.found))
}

/// Where a record stands.
fn told(record: &Record) -> String {
    evidence(usize::try_from(record.seq).ok())
}

/// What an answer says, in few words.
pub(super) fn said(response: Option<&Value>) -> String {
    let text = match response {
        Some(Value::Object(object)) if object.contains_key("message") => {
            object["message"].as_str().unwrap_or_default().to_owned()
        }
        Some(other) => other.to_string(),
        None => "no body".to_owned(),
    };
    if text.chars().count() > 300 { text.chars().take(299).chain(['…']).collect() } else { text }
}
