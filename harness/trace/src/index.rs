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
    pub objects: BTreeMap<ObjectKey, Vec<Version>>,
    pub blind: Vec<Blind>,
    /// Records of its first sync and later ones.
    pub syncs: Vec<usize>,
    /// What was listed since the stream went blind.
    listed: BTreeSet<ObjectKey>,
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
    pub steps: BTreeMap<usize, StepMarks>,
    pub requests: Vec<usize>,
    pub console: BTreeMap<String, Vec<usize>>,
    /// Power, link and control plane acts, and kubectl runs.
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
            Fact::Object { stream, verb, object } => self.note_object(record, at, stream, *verb, object),
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
            Fact::Request { sent, method, status, response, .. } => {
                self.requests.push(record);
                if method == "POST"
                    && *status == 201
                    && let Some(created) = response.as_ref().and_then(resource_version)
                {
                    self.creations.insert(created, (record, *sent, at));
                }
            }
            Fact::Console { board, .. } => self.console.entry(board.clone()).or_default().push(record),
            Fact::Kubectl { .. } | Fact::Power { .. } | Fact::Link { .. } | Fact::ControlPlane { .. } => {
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

    fn note_object(&mut self, record: usize, at: Micros, stream: &str, verb: Verb, object: &Value) {
        let key = key_of(object);
        let resource_version = resource_version(object);
        let stream = self.streams.entry(stream.to_owned()).or_default();
        let blind_since = match verb {
            Verb::Listed if stream.syncs.is_empty() => Some(Micros::ZERO),
            Verb::Listed => stream.blind.last().filter(|blind| blind.end.is_none()).map(|blind| blind.since),
            Verb::Added | Verb::Modified | Verb::Deleted => None,
        };
        if verb == Verb::Listed {
            stream.listed.insert(key.clone());
        }
        let versions = stream.objects.entry(key).or_default();
        let known = versions.last().is_some_and(|last| {
            !last.gone && last.resource_version.is_some() && last.resource_version == resource_version
        });
        if known && verb != Verb::Deleted {
            return;
        }
        versions.push(Version {
            record,
            body: record,
            gone: verb == Verb::Deleted,
            resource_version,
            at,
            blind_since,
        });
    }

    fn note_synced(&mut self, record: usize, at: Micros, stream: &str) {
        let stream = self.streams.entry(stream.to_owned()).or_default();
        stream.syncs.push(record);
        let listed = std::mem::take(&mut stream.listed);
        let Some(blind) = stream.blind.last_mut().filter(|blind| blind.end.is_none()) else { return };
        blind.end = Some((record, at));
        let since = blind.since;
        for (key, versions) in &mut stream.objects {
            let Some(last) = versions.last() else { continue };
            if !last.gone && !listed.contains(key) && last.record < record {
                let body = last.body;
                versions.push(Version {
                    record,
                    body,
                    gone: true,
                    resource_version: None,
                    at,
                    blind_since: Some(since),
                });
            }
        }
    }

    /// The trial's own namespace.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }
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
