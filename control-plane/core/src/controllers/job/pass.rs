//! One pass over one Job.

use serde_json::Value;

use super::census::{Census, Wanted};
use super::end::{self, End};
use super::{MANAGED_BY, is_tracked, pods, status, untracked};
use crate::controllers::children::{self, Children, Owner};
use crate::decision::{Decision, Write};
use crate::selectors::LabelSelector;
use crate::snapshot::{Key, Object, Snapshot};
use crate::time::Now;
use crate::{json, pod};

/// One pass over one Job. Asks to be looked at again at once while one of the steps of counting is left or after it made
/// or deleted pods, and at the instants at which its deadline or its time after the end is over.
#[must_use]
pub fn decide(snapshot: &Snapshot, key: &Key, now: &Now) -> Decision {
    let Some(job) = snapshot.at("jobs", key) else {
        return Decision::nothing("the job is gone");
    };
    if json::text(job, &["spec", "managedBy"]).is_some_and(|name| name != MANAGED_BY) {
        return Decision::nothing("another controller runs it");
    }
    let own = snapshot.pods_of(json::uid(job)).filter(|(pod, _)| pod.namespace == key.namespace);
    if json::is_terminating(job) {
        return let_go(own.map(|(_, pod)| pod));
    }
    let selector = json::get(job, &["spec", "selector"]).unwrap_or(&Value::Null);
    let Ok(selector) = LabelSelector::from_object(selector) else {
        return Decision::nothing("its selector cannot be read");
    };
    let (pods, strays): (Vec<&Object>, Vec<&Object>) =
        own.map(|(_, pod)| pod).partition(|pod| selector.matches_object(pod));
    if end::finished(job).is_some() {
        return finished(snapshot, key, job, &pods, now);
    }
    let pass = Pass { snapshot, key, job, pods, strays };
    pass.decide(now)
}

/// Pods of a Job that is being deleted are not counted any more.
fn let_go<'a>(pods: impl Iterator<Item = &'a Object>) -> Decision {
    let writes = pods.filter(|pod| is_tracked(pod)).map(|pod| untracked(pod)).collect();
    Decision { writes, ..Decision::nothing("the job is being deleted") }
}

/// A finished Job has no pod that runs, and none that waits to be counted; after its time it goes.
fn finished(snapshot: &Snapshot, key: &Key, job: &Value, pods: &[&Object], now: &Now) -> Decision {
    let mut writes: Vec<Write> =
        pods.iter().filter(|pod| is_tracked(pod)).map(|pod| untracked(pod)).collect();
    writes.extend(pods.iter().filter(|pod| pod::is_active(pod)).map(|pod| children::delete(pod, None)));
    if writes.is_empty() {
        return end::ttl(snapshot, key, job, now);
    }
    Decision { writes, look_again: Some(now.mono), ..Decision::nothing("the job is finished") }
}

struct Pass<'a> {
    snapshot: &'a Snapshot,
    key: &'a Key,
    job: &'a Object,
    pods: Vec<&'a Object>,
    strays: Vec<&'a Object>,
}

impl Pass<'_> {
    fn decide(&self, now: &Now) -> Decision {
        let job = self.job;
        let wanted = Wanted::by(job);
        let census = Census::of(job, &wanted, &self.pods);
        let deadline_in = end::deadline_in(self.snapshot, self.key, job, now);
        let end = End::decided(job).or_else(|| End::of(&wanted, &census, deadline_in));
        let owner = Owner { object: job, api_version: "batch/v1", kind: "Job", component: "job-controller" };
        let mut children = Children::new(owner, self.snapshot, now);

        // The status comes first: what it notes is safe before a finalizer goes, and a pass that looked at an old version
        // of the Job fails there and touches no pod.
        let (told, events) = status::after(job, &wanted, &census, end, now);
        if told != **job {
            children.writes.push(Write::Update {
                resource: "jobs",
                subresource: Some("status"),
                object: told,
            });
        }
        let of_status = children.writes.len();
        children.writes.extend(census.to_untrack.iter().map(|pod| untracked(pod)));
        for pod in &self.strays {
            pods::release(&mut children, pod, job);
        }
        match end {
            None => pods::manage(&mut children, &owner, &wanted, &census),
            // They keep their finalizer until they are counted as failed.
            Some(_) => census.active.iter().for_each(|pod| children.delete(pod, None)),
        }
        for (kind, reason, message) in events {
            children.tell(kind, reason, message.to_owned());
        }
        let at_once =
            children.writes.len() > of_status || !census.is_counted() || of_status > 0 && end.is_some();
        let deadline = deadline_in.filter(|_| end.is_none());
        Decision {
            because: format!(
                "{} active, {} succeeded, {} failed",
                census.active.len(),
                census.succeeded(&wanted),
                census.failed()
            ),
            look_again: if at_once { Some(now.mono) } else { deadline.map(|span| now.mono + span) },
            writes: children.writes,
            events: children.events,
        }
    }
}
