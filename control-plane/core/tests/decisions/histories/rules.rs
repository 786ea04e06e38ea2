//! What holds at every moment of a history, whatever happens in it. Reads the accepted writes and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use control_plane_core::{Key, conditions};
use jiff::Timestamp;
use serde_json::Value;

use super::acts::{BOARDS, CHECK, Kind, LEASE, NOT_READY};
use super::boards::asked;
use super::printed;
use super::views::{host, is_finished, is_of, is_terminating, node_of, owner, stay, taint, text, uid};
use crate::world::World;

/// A kept instant is taken to be 20 ms later than it says, and no write is later than this.
const SLACK: i64 = 50;

/// What must not have been seen, and how a scenario says so.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The row of the catalogue.
    pub requirement: &'static str,
    pub sentence: String,
    /// A step of a scenario, in YAML, that fails where this is seen.
    pub expectation: String,
}

impl Violation {
    pub fn new(
        requirement: &'static str,
        sentence: impl Into<String>,
        expectation: impl Into<String>,
    ) -> Self {
        Self { requirement, sentence: sentence.into(), expectation: expectation.into() }
    }
}

/// What is known of a node; instants in milliseconds of the wall.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    created: i64,
    renewed: Option<i64>,
    pub(super) unknown: Option<i64>,
    no_schedule: bool,
    no_execute: Option<i64>,
    /// Workloads look for its label.
    pub(super) labelled: bool,
    /// It was Ready when the server started anew.
    spared: bool,
    /// What it reported, in KiB and pins, and the pods that the report covers.
    offered: (u32, u32),
    covered: BTreeSet<String>,
}

/// What a job's passes have said.
#[derive(Debug, Clone, Default)]
struct Counted {
    succeeded: u64,
    finished: bool,
}

pub struct Rules {
    pub(super) nodes: BTreeMap<String, Known>,
    pub(super) pods: BTreeMap<String, Arc<Value>>,
    /// When each pod was bound, by uid.
    bound: BTreeMap<String, i64>,
    /// Numbers of the pods of nobody that exist, or are to go.
    wanted: BTreeSet<usize>,
    /// Since when each pod is ready, by uid, and what it says of that.
    pub(super) ready: BTreeMap<String, (i64, String)>,
    jobs: BTreeMap<String, Counted>,
    succeeded: BTreeSet<String>,
    serving: i64,
    followed: usize,
    written: usize,
}

impl Rules {
    pub fn new(start: Timestamp) -> Self {
        Self {
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            bound: BTreeMap::new(),
            ready: BTreeMap::new(),
            wanted: BTreeSet::new(),
            jobs: BTreeMap::new(),
            succeeded: BTreeSet::new(),
            serving: start.as_millisecond(),
            followed: 0,
            written: 0,
        }
    }

    /// Someone makes pod number `pod`, or deletes it.
    pub fn made(&mut self, pod: usize) {
        self.wanted.insert(pod);
    }

    pub fn unmade(&mut self, pod: usize) {
        self.wanted.remove(&pod);
    }

    pub fn wanted(&self) -> impl Iterator<Item = String> + '_ {
        self.wanted.iter().map(|number| format!("p{number}"))
    }

    /// The node has written its status: what runs there now is in its figures.
    pub fn reported(&mut self, node: &str, world: &World) {
        let Some(known) = self.nodes.get_mut(node) else { return };
        let allocatable = &world.node(node)["status"]["allocatable"];
        let figure = |name: &str| text(allocatable, name).trim_end_matches("Ki").parse().unwrap_or(0);
        known.offered = (figure("/memory"), figure("/esp32.io~1gpio"));
        let runs = |pod: &&Arc<Value>| node_of(pod) == node && text(pod, "/status/phase") == "Running";
        known.covered = self.pods.values().filter(runs).map(|pod| uid(pod).to_owned()).collect();
    }

    pub fn restarted(&mut self, world: &World) {
        self.serving = world.now.wall.as_millisecond();
        for known in self.nodes.values_mut() {
            known.spared = known.unknown.is_none();
        }
    }

    /// How many writes there were but for renewals of leases.
    pub fn written(&self) -> usize {
        self.written
    }

    /// Takes in what was written since the last call.
    pub fn follow(&mut self, world: &World) -> Result<(), Violation> {
        let news = world.history.get(self.followed..).unwrap_or_default();
        self.followed = world.history.len();
        for (at, resource, key, object) in news {
            let at = at.as_millisecond();
            self.written += usize::from(*resource != "leases");
            match *resource {
                "nodes" => self.node(&key.name, object.as_deref(), at)?,
                "leases" => {
                    if let Some(known) = self.nodes.get_mut(&key.name) {
                        known.renewed = Some(at);
                        known.spared = false;
                    }
                }
                "pods" => self.pod(key, object.as_ref(), at)?,
                "jobs" => self.job(object.as_deref())?,
                _ => {}
            }
        }
        Ok(())
    }

    fn node(&mut self, name: &str, node: Option<&Value>, at: i64) -> Result<(), Violation> {
        let Some(node) = node else {
            self.nodes.remove(name);
            return Ok(());
        };
        let serving = self.serving;
        let fresh = Known { created: at, ..Known::default() };
        let known = self.nodes.entry(name.to_owned()).or_insert(fresh);
        let unknown = conditions::status(node, "Ready") == Some("Unknown");
        let no_schedule = taint(node, "NoSchedule").is_some();
        if (unknown && known.unknown.is_none()) || (no_schedule && !known.no_schedule) {
            let counted = known.counted_from(serving);
            if at < counted + LEASE {
                let sentence =
                    format!("node {name} is Unknown or tainted {} ms after {counted}", at - counted);
                return Err(Violation::new("NODE-03", sentence, printed::never_unknown(name)));
            }
        }
        let no_execute = taint(node, "NoExecute").is_some();
        let is_due = known.unknown.is_some_and(|unknown| at >= unknown + NOT_READY);
        if no_execute && known.no_execute.is_none() && !is_due {
            let sentence = format!(
                "node {name} is tainted NoExecute too early: it is Unknown since {:?}",
                known.unknown
            );
            return Err(Violation::new("NODE-07", sentence, printed::never_no_execute(name)));
        }
        known.unknown = if unknown { known.unknown.or(Some(at)) } else { None };
        known.no_schedule = no_schedule;
        known.labelled = text(node, "/metadata/labels/place") == "board";
        known.no_execute = if no_execute { known.no_execute.or(Some(at)) } else { None };
        Ok(())
    }

    fn pod(&mut self, key: &Key, pod: Option<&Arc<Value>>, at: i64) -> Result<(), Violation> {
        let old = self.pods.get(&key.name).cloned();
        let Some(pod) = pod else {
            let old = self.pods.remove(&key.name);
            let number = key.name.strip_prefix('p').and_then(|number| number.parse().ok());
            if number.is_some_and(|number| self.wanted.contains(&number)) {
                let sentence = format!("pod {} is lost: nobody deleted it", key.name);
                return Err(Violation::new("NODE-23", sentence, printed::exists(&key.name)));
            }
            if let Some(old) = old {
                self.bound.remove(uid(&old));
                self.ready.remove(uid(&old));
            }
            return Ok(());
        };
        let before = old.as_deref().filter(|old| uid(old) == uid(pod));
        let (from, to) = (before.map(node_of).unwrap_or_default(), node_of(pod));
        if before.is_none() {
            self.begins(pod)?;
        }
        if text(pod, "/status/phase") == "Succeeded" && is_of(pod, Kind::Job) {
            self.succeeded.insert(uid(pod).to_owned());
        }
        if conditions::is_true(pod, "Ready") {
            let since = conditions::get(pod, "Ready").map_or("", |ready| text(ready, "/lastTransitionTime"));
            if self.ready.get(uid(pod)).is_none_or(|(_, known)| known != since) {
                self.ready.insert(uid(pod).to_owned(), (at, since.to_owned()));
            }
        } else {
            self.ready.remove(uid(pod));
        }
        self.pods.insert(key.name.clone(), pod.clone());
        if from.is_empty() && !to.is_empty() {
            self.bound.insert(uid(pod).to_owned(), at);
            return self.is_within(to, pod);
        }
        if !from.is_empty() && from != to {
            return self.leaves(before.unwrap_or(pod), pod, at);
        }
        Ok(())
    }

    /// SCHED-56: what is bound and not covered by the last report is within that report.
    fn is_within(&self, name: &str, pod: &Value) -> Result<(), Violation> {
        let Some(known) = self.nodes.get(name) else { return Ok(()) };
        let counts = |other: &&Arc<Value>| {
            node_of(other) == name && !is_finished(other) && !known.covered.contains(uid(other))
        };
        let (mut memory, mut gpio) = (0, 0);
        for other in self.pods.values().filter(counts) {
            let (more_memory, more_gpio) = asked(other);
            (memory, gpio) = (memory + more_memory, gpio + more_gpio);
        }
        let (own_memory, own_gpio) = asked(pod);
        if (own_memory > 0 && memory > known.offered.0) || (own_gpio > 0 && gpio > known.offered.1) {
            let sentence = format!(
                "{memory} KiB and {gpio} pins are promised on {name}, which reported {:?}, with pod {}",
                known.offered,
                text(pod, "/metadata/name")
            );
            return Err(Violation::new("SCHED-56", sentence, printed::never_on(pod, name)));
        }
        Ok(())
    }

    /// NODE-08, NODE-16, NODE-18, NODE-20: a pod leaves its node by eviction only, and not before its time.
    fn leaves(&self, old: &Value, pod: &Value, at: i64) -> Result<(), Violation> {
        let (name, node) = (text(pod, "/metadata/name"), node_of(old));
        let fail = |requirement, what: String| Err(Violation::new(requirement, what, printed::unmoved(old)));
        if !node_of(pod).is_empty() || text(pod, "/status/reason") != "Evicted" {
            return fail("NODE-18", format!("pod {name} went from {node} without an eviction"));
        }
        if is_finished(old) {
            return fail("NODE-20", format!("pod {name} was finished and left {node}"));
        }
        let Some(tainted) = self.nodes.get(node).and_then(|known| known.no_execute) else {
            return fail(
                "NODE-08",
                format!("pod {name} was evicted from {node}, which has no NoExecute taint"),
            );
        };
        match stay(old) {
            None => {
                fail("NODE-16", format!("pod {name} tolerates the taint of {node} for ever and was evicted"))
            }
            Some(stay) if at < tainted + stay => {
                let late = at - tainted;
                fail(
                    "NODE-08",
                    format!("pod {name} was evicted {late} ms after the taint, it stays for {stay} ms"),
                )
            }
            Some(_) => Ok(()),
        }
    }

    /// A pod is made: one a node of a daemon set, none of a job that is over or has enough.
    fn begins(&self, pod: &Value) -> Result<(), Violation> {
        if is_of(pod, Kind::DaemonSet) {
            let same = |other: &&Arc<Value>| {
                is_of(other, Kind::DaemonSet) && host(other) == host(pod) && owner(other) == owner(pod)
            };
            if let Some(other) = self.pods.values().find(same) {
                let sentence =
                    format!("a second pod for {} while {} is there", host(pod), other["metadata"]["name"]);
                return Err(Violation::new(
                    "DS-04",
                    sentence,
                    printed::at_most(Kind::DaemonSet, BOARDS.len()),
                ));
            }
        }
        if is_of(pod, Kind::Job) && self.jobs.get(owner(pod)).is_some_and(|job| job.finished) {
            let sentence = "a pod is made for a job that is finished";
            return Err(Violation::new("JOB-01", sentence, printed::at_most(Kind::Job, 0)));
        }
        Ok(())
    }

    fn job(&mut self, job: Option<&Value>) -> Result<(), Violation> {
        let Some(job) = job else { return Ok(()) };
        let known = self.jobs.entry(uid(job).to_owned()).or_default();
        let succeeded = job["status"]["succeeded"].as_u64().unwrap_or(0);
        let completions = job["spec"]["completions"].as_u64().unwrap_or(1);
        let ever = self.succeeded.len() as u64;
        let fail = |what: String| Err(Violation::new("JOB-07", what, printed::succeeded(completions)));
        if succeeded < known.succeeded {
            return fail(format!("a job's count of successes went from {} to {succeeded}", known.succeeded));
        }
        if succeeded > ever || succeeded > completions {
            return fail(format!(
                "{succeeded} of {completions} successes are counted, {ever} pods ever succeeded"
            ));
        }
        let finished = conditions::is_true(job, "Complete") || conditions::is_true(job, "Failed");
        *known = Counted { succeeded, finished: known.finished || finished };
        Ok(())
    }

    /// The end of a moment: nothing is late either.
    pub fn in_time(&self, world: &World) -> Result<(), Violation> {
        let now = world.now.wall.as_millisecond();
        let late = |due: i64| now > due.max(self.serving) + CHECK + SLACK;
        for (name, known) in &self.nodes {
            let fail = |requirement, what: &str, wanted: String| {
                Err(Violation::new(requirement, format!("node {name} {what}"), wanted))
            };
            let silent = known.counted_from(self.serving).max(self.serving);
            match known.unknown {
                None if late(silent + LEASE) => {
                    return fail("NODE-03", "is silent and not Unknown", printed::unknown(name));
                }
                Some(unknown) => {
                    let renewed = known.renewed.filter(|renewed| *renewed > unknown && now < renewed + LEASE);
                    if renewed.is_some_and(late) {
                        return fail("NODE-09", "renews its lease and is still Unknown", printed::well(name));
                    }
                    if renewed.is_none() && known.no_execute.is_none() && late(unknown + NOT_READY) {
                        return fail(
                            "NODE-07",
                            "is not tainted NoExecute in time",
                            printed::no_execute(name),
                        );
                    }
                }
                None => {}
            }
        }
        for pod in self.pods.values().filter(|pod| !is_finished(pod)) {
            let Some(known) = self.nodes.get(node_of(pod)) else { continue };
            let silent_since = known.unknown.filter(|unknown| known.renewed.is_none_or(|at| at < *unknown));
            if silent_since.is_some_and(late) && conditions::is_true(pod, "Ready") {
                let sentence =
                    format!("pod {} is Ready on {}, which is Unknown", pod["metadata"]["name"], node_of(pod));
                return Err(Violation::new("NODE-27", sentence, printed::not_ready(pod)));
            }
            let (Some(tainted), Some(stay)) = (known.no_execute, stay(pod)) else { continue };
            let bound = self.bound.get(uid(pod)).copied().unwrap_or(0);
            if known.renewed.is_none_or(|renewed| renewed < tainted) && late(bound.max(tainted + stay)) {
                let requirement = if is_terminating(pod) { "NODE-19" } else { "NODE-08" };
                let sentence = format!("pod {} is still on {}", pod["metadata"]["name"], node_of(pod));
                return Err(Violation::new(requirement, sentence, printed::evicted(pod)));
            }
        }
        Ok(())
    }
}

impl Known {
    /// The instant that the lease is counted from (NODE-03, NODE-11, NODE-26).
    fn counted_from(&self, serving: i64) -> i64 {
        let counted = self.created.max(self.renewed.unwrap_or(i64::MIN));
        if self.spared { counted.max(serving) } else { counted }
    }
}
