//! What a history says, ordered for asking: versions by object, blind spots by stream, pulses, steps.
//!
//! Grows with the history, a record at a time, so that the runner can ask after every fact.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::faults::Injected;
use crate::history::{Constants, DEFAULT_NAMESPACE, Fact, FaultLevel, Micros, Phase, Record, Verb};

/// Namespace (empty where there is none) and name.
pub type ObjectKey = (String, String);

/// A state of an object, or its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The record that told of it.
    pub record: usize,
    /// The record that holds the object; for an end, its last state.
    pub body: usize,
    /// The object is gone from here on.
    pub gone: bool,
    /// Its resourceVersion, if it is a number.
    pub resource_version: Option<u64>,
    /// When the harness knew.
    pub at: Micros,
    /// Since when the stream had been blind, if it was: the change may be as old as that.
    pub blind_since: Option<Micros>,
}

/// A time in which a stream did not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blind {
    /// The record of the loss.
    pub record: usize,
    /// When it began.
    pub since: Micros,
    /// Why.
    pub reason: String,
    /// The record and time at which it saw again.
    pub end: Option<(usize, Micros)>,
}

/// What is known of one stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    /// The number of each object.
    numbers: BTreeMap<ObjectKey, usize>,
    /// Name and versions of each object, by number.
    objects: Vec<(ObjectKey, Vec<Version>)>,
    /// Every version in the order of the records: the object's number, and the version's place in it.
    pub order: Vec<(usize, usize)>,
    pub blind: Vec<Blind>,
    /// Records of its first sync and later ones.
    pub syncs: Vec<usize>,
    /// What was listed since the stream went blind.
    listed: BTreeSet<ObjectKey>,
}

impl Stream {
    /// The objects with their versions, oldest first, in the order of their names.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectKey, &[Version])> {
        self.numbers.iter().map(|(key, number)| (key, self.objects[*number].1.as_slice()))
    }

    /// One object's versions, with its name as the stream keeps it.
    pub fn object(&self, key: &ObjectKey) -> Option<(&ObjectKey, &[Version])> {
        let (key, number) = self.numbers.get_key_value(key)?;
        Some((key, self.objects[*number].1.as_slice()))
    }

    /// An object by its number.
    pub fn numbered(&self, number: usize) -> (&ObjectKey, &[Version]) {
        let (key, versions) = &self.objects[number];
        (key, versions)
    }

    fn number(&mut self, key: ObjectKey) -> usize {
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.objects.len();
        self.objects.push((key.clone(), Vec::new()));
        self.numbers.insert(key, number);
        number
    }

    fn add(&mut self, number: usize, version: Version) {
        let versions = &mut self.objects[number].1;
        versions.push(version);
        self.order.push((number, versions.len() - 1));
    }
}

/// A proof about every write: those above `resource_version` were after `sent`, the others before `at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pulse {
    pub record: usize,
    pub sent: Micros,
    pub at: Micros,
    pub resource_version: u64,
}

/// Records of a step's ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StepMarks {
    pub begin: Option<usize>,
    pub end: Option<usize>,
}

/// A history, ordered for asking.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    pub streams: BTreeMap<String, Stream>,
    pub pulses: Vec<Pulse>,
    /// Whether the pulses' resourceVersions only ever rose.
    pub pulses_fell: bool,
    /// When objects were created by requests of the scenario, by resourceVersion: sent and answered.
    pub creations: BTreeMap<u64, (usize, Micros, Micros)>,
    /// Versions of leases that renewed them, by object.
    pub renewals: BTreeMap<ObjectKey, Vec<usize>>,
    /// What answers' dates say of the server's clock less ours, after each such answer: not below, not above.
    pub clock: Vec<(usize, (i64, i64))>,
    pub steps: BTreeMap<usize, StepMarks>,
    pub requests: Vec<usize>,
    pub console: BTreeMap<String, Vec<usize>>,
    /// Records of what second schedulers printed, by their names.
    pub printed: BTreeMap<String, Vec<usize>>,
    /// Power, link and control plane acts, and runs of programs.
    pub acts: Vec<usize>,
    pub serving: Vec<usize>,
    pub marks: Vec<usize>,
    pub stalls: Vec<usize>,
    /// Faults that were injected, in the order in which they began.
    pub faults: Vec<Injected>,
    /// How bad they are meant to be.
    pub level: FaultLevel,
    /// Times are not exact: the history has a wall clock.
    pub real_time: bool,
    pub wall: Option<String>,
    pub delivery: Option<Micros>,
    pub constants: Option<Constants>,
    pub namespace: Option<String>,
    /// Nodes of boards that are called otherwise, by the board.
    pub nodes: BTreeMap<String, String>,
}

impl Index {
    /// Takes in the last record.
    pub fn note(&mut self, records: &[Record]) {
        let Some((record, entry)) = records.len().checked_sub(1).zip(records.last()) else { return };
        let at = entry.at;
        match &entry.fact {
            Fact::TrialStarted { wall, constants, faults, .. } => {
                self.level = *faults;
                self.real_time = wall.is_some();
                self.wall.clone_from(wall);
                self.constants = Some(*constants);
            }
            Fact::Namespace { name } => self.namespace = Some(name.clone()),
            Fact::Board { board, node } => {
                self.nodes.insert(board.clone(), node.clone());
            }
            Fact::Delivery { at_most } => self.delivery = Some(*at_most),
            Fact::Object { stream, verb, object } => {
                let renewed = self.renewed(records, stream, *verb, object);
                let added = self.note_object(record, at, stream, *verb, object);
                if let (true, Some((key, version))) = (renewed, added) {
                    self.renewals.entry(key).or_default().push(version);
                }
            }
            Fact::Synced { stream } => self.note_synced(record, at, stream),
            Fact::Gap { stream, reason } => {
                let stream = self.streams.entry(stream.clone()).or_default();
                if stream.blind.last().is_none_or(|blind| blind.end.is_some()) {
                    stream.blind.push(Blind { record, since: at, reason: reason.clone(), end: None });
                    stream.listed.clear();
                }
            }
            Fact::Pulse { sent, resource_version } => {
                self.note_pulse(Pulse { record, sent: *sent, at, resource_version: *resource_version });
            }
            Fact::Request { sent, method, status, response, date, .. } => {
                self.requests.push(record);
                self.note_date(record, *sent, at, date.as_deref());
                if method == "POST"
                    && *status == 201
                    && let Some(created) = response.as_ref().and_then(resource_version)
                {
                    self.creations.insert(created, (record, *sent, at));
                }
            }
            Fact::Console { board, .. } => self.console.entry(board.clone()).or_default().push(record),
            Fact::SchedulerLine { name, .. } => self.printed.entry(name.clone()).or_default().push(record),
            Fact::Kubectl(_)
            | Fact::Etcdctl(_)
            | Fact::Power { .. }
            | Fact::Link { .. }
            | Fact::ControlPlane { .. }
            | Fact::Scheduler { .. }
            | Fact::Flash { .. }
            | Fact::Sent { .. } => {
                self.acts.push(record);
            }
            Fact::ControlPlaneReady {} => self.serving.push(record),
            Fact::Step { index, phase } => {
                let marks = self.steps.entry(*index).or_default();
                match phase {
                    Phase::Begin => marks.begin = Some(record),
                    Phase::End => marks.end = Some(record),
                }
            }
            Fact::Mark { .. } => self.marks.push(record),
            Fact::Stall { .. } => self.stalls.push(record),
            Fact::Fault { fault, phase: Phase::Begin } => {
                self.faults.push(Injected::new(fault.clone(), record, at));
            }
            Fact::Fault { fault, phase: Phase::End } => {
                let open = self.faults.iter_mut().rev();
                let mut open = open.filter(|injected| injected.end.is_none() && injected.fault == *fault);
                if let Some(injected) = open.next() {
                    injected.end = Some((record, at));
                }
            }
            Fact::Process { .. } | Fact::Instant { .. } | Fact::TrialEnded {} => {}
        }
    }

    fn note_pulse(&mut self, pulse: Pulse) {
        if self.pulses.last().is_some_and(|last| last.resource_version > pulse.resource_version) {
            self.pulses_fell = true;
        }
        self.pulses.push(pulse);
    }

    /// Whether a version of a lease says another time of renewal than the one before.
    fn renewed(&self, records: &[Record], stream: &str, verb: Verb, object: &Value) -> bool {
        if stream != "leases" || verb == Verb::Deleted || object["spec"]["renewTime"].is_null() {
            return false;
        }
        let Some((_, versions)) = self.streams.get(stream).and_then(|stream| stream.object(&key_of(object)))
        else {
            return true;
        };
        // A renewal is told from the last one that was not null, as long as the lease is there.
        let known = versions.iter().rev().take_while(|version| !version.gone).find_map(|version| {
            let Fact::Object { object, .. } = &records[version.body].fact else { return None };
            Some(&object["spec"]["renewTime"]).filter(|renewed| !renewed.is_null())
        });
        known != Some(&object["spec"]["renewTime"])
    }

    /// The server's clock, as an answer's date tells it to the second.
    fn note_date(&mut self, record: usize, sent: Micros, at: Micros, date: Option<&str>) {
        let Some(date) = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()) else { return };
        let second = date.timestamp().as_microsecond();
        let signed = |at: Micros| i64::try_from(at.0).unwrap_or(i64::MAX);
        let (low, high) = (second - signed(at), second + 999_999 - signed(sent));
        // Answers that contradict each other mean that the clock was set: the newest counts.
        let told = match self.clock.last() {
            Some((_, (known_low, known_high))) if low.max(*known_low) <= high.min(*known_high) => {
                (low.max(*known_low), high.min(*known_high))
            }
            Some(_) | None => (low, high),
        };
        self.clock.push((record, told));
    }

    /// Takes in a version; nothing if it was known already.
    fn note_object(
        &mut self,
        record: usize,
        at: Micros,
        stream: &str,
        verb: Verb,
        object: &Value,
    ) -> Option<(ObjectKey, usize)> {
        let key = key_of(object);
        let resource_version = resource_version(object);
        let stream = entry(&mut self.streams, stream);
        let blind_since = match verb {
            Verb::Listed if stream.syncs.is_empty() => Some(Micros::ZERO),
            Verb::Listed => stream.blind.last().filter(|blind| blind.end.is_none()).map(|blind| blind.since),
            Verb::Added | Verb::Modified | Verb::Deleted => None,
        };
        if verb == Verb::Listed {
            stream.listed.insert(key.clone());
        }
        let number = stream.number(key);
        let known = stream.objects[number].1.last().is_some_and(|last| {
            !last.gone && last.resource_version.is_some() && last.resource_version == resource_version
        });
        if known && verb != Verb::Deleted {
            return None;
        }
        let gone = verb == Verb::Deleted;
        stream.add(number, Version { record, body: record, gone, resource_version, at, blind_since });
        let (key, versions) = stream.numbered(number);
        Some((key.clone(), versions.len() - 1))
    }

    fn note_synced(&mut self, record: usize, at: Micros, stream: &str) {
        let stream = self.streams.entry(stream.to_owned()).or_default();
        stream.syncs.push(record);
        let listed = std::mem::take(&mut stream.listed);
        let Some(blind) = stream.blind.last_mut().filter(|blind| blind.end.is_none()) else { return };
        blind.end = Some((record, at));
        let since = blind.since;
        let missing: Vec<(usize, usize)> = stream
            .numbers
            .iter()
            .filter(|(key, _)| !listed.contains(*key))
            .filter_map(|(_, number)| {
                let last = stream.objects[*number].1.last()?;
                (!last.gone && last.record < record).then_some((*number, last.body))
            })
            .collect();
        for (number, body) in missing {
            let version =
                Version { record, body, gone: true, resource_version: None, at, blind_since: Some(since) };
            stream.add(number, version);
        }
    }

    /// The trial's own namespace.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }
}

/// The stream of that name, without making a name of it each time.
fn entry<'s>(streams: &'s mut BTreeMap<String, Stream>, name: &str) -> &'s mut Stream {
    if !streams.contains_key(name) {
        streams.insert(name.to_owned(), Stream::default());
    }
    streams.get_mut(name).unwrap_or_else(|| unreachable!("it was put in"))
}

/// Namespace and name of an object.
pub(crate) fn key_of(object: &Value) -> ObjectKey {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// The resourceVersion of an object, if it is a number.
pub(crate) fn resource_version(object: &Value) -> Option<u64> {
    object.get("metadata")?.get("resourceVersion")?.as_str()?.parse().ok()
}
