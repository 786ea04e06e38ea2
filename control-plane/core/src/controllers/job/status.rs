//! The status that follows from the pods of a pass (JOB-06).

use serde_json::{Map, Value};

use super::census::{Census, Wanted};
use super::end::{End, SUSPENDED, say};
use super::indexes;
use crate::conditions::{self, Saying};
use crate::decision::EventKind;
use crate::json;
use crate::time::Now;

/// An event of a Job: kind, reason, message.
pub(super) type Told = (EventKind, &'static str, &'static str);

/// The Job with its new status, and what there is to tell of it.
pub(super) fn after(
    job: &Value,
    wanted: &Wanted,
    census: &Census<'_>,
    end: Option<End>,
    now: &Now,
) -> (Value, Vec<Told>) {
    let mut told = job.clone();
    let mut events = Vec::new();
    let status = json::object_mut(&mut told, &["status"]);
    if !wanted.suspended && !status.contains_key("startTime") {
        status.insert("startTime".to_owned(), now.stamp().into());
    }
    figures(status, wanted, census);
    match end {
        Some(end) => events.extend(conclude(&mut told, end, census, now)),
        None => events.extend(suspension(&mut told, wanted, now)),
    }
    (told, events)
}

fn figures(status: &mut Map<String, Value>, wanted: &Wanted, census: &Census<'_>) {
    // Of an Indexed Job nothing but its indexes counts, and each index once.
    let succeeded = if wanted.indexed { census.succeeded_indexes.len() } else { census.counted_succeeded };
    for (name, figure) in
        [("active", census.active.len()), ("succeeded", succeeded), ("failed", census.counted_failed)]
    {
        if figure == 0 {
            status.remove(name);
        } else {
            status.insert(name.to_owned(), figure.into());
        }
    }
    status.insert("ready".to_owned(), census.ready.into());
    status.insert("terminating".to_owned(), census.terminating.into());
    let mut uncounted = Map::new();
    for (name, noted) in [("succeeded", &census.noted_succeeded), ("failed", &census.noted_failed)] {
        if !noted.is_empty() {
            uncounted.insert(name.to_owned(), noted.as_slice().into());
        }
    }
    status.insert("uncountedTerminatedPods".to_owned(), uncounted.into());
    let completed = indexes::format(&census.succeeded_indexes);
    if completed.is_empty() {
        status.remove("completedIndexes");
    } else {
        status.insert("completedIndexes".to_owned(), completed.into());
    }
}

/// Says how the Job ends, and that it has ended once nothing of it is left to be counted or to end.
fn conclude(told: &mut Value, end: End, census: &Census<'_>, now: &Now) -> Option<Told> {
    let [decided, ended] = end.conditions();
    let saying = |kind| Saying { kind, status: "True", reason: end.reason(), message: end.message() };
    say(told, saying(decided), now);
    if !census.is_counted() || !census.active.is_empty() || census.terminating > 0 {
        return None;
    }
    say(told, saying(ended), now);
    if end == End::Completed {
        json::object_mut(told, &["status"]).insert("completionTime".to_owned(), now.stamp().into());
    }
    Some(end.event())
}

/// Says whether the Job is suspended, where it is or was; one that resumes starts anew.
fn suspension(told: &mut Value, wanted: &Wanted, now: &Now) -> Option<Told> {
    let (status, reason, message) = if wanted.suspended {
        ("True", "JobSuspended", "Job suspended")
    } else if conditions::get(told, SUSPENDED).is_some() {
        ("False", "JobResumed", "Job resumed")
    } else {
        return None;
    };
    let was = conditions::status(told, SUSPENDED).map(str::to_owned);
    say(told, Saying { kind: SUSPENDED, status, reason, message }, now);
    if was.as_deref() == Some(status) {
        return None;
    }
    if !wanted.suspended {
        json::object_mut(told, &["status"]).insert("startTime".to_owned(), now.stamp().into());
    }
    let event = if wanted.suspended { "Suspended" } else { "Resumed" };
    Some((EventKind::Normal, event, message))
}
