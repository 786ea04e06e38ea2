//! What the API is told of a pod: phase, conditions, container statuses, and which parts of it the API
//! has taken already, so that a patch carries only what changed. Conditions are merged by type (a
//! strategic merge patch), so those of the scheduler and of the controllers stay untouched.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::container::{Container, State, Termination};
use crate::json::Json;
use crate::pod::{PodWorker, Stage};
use crate::wire::Pod;

/// The parts a patch is made of.
const PARTS: usize = 8;
/// Which of them are conditions: Initialized, Ready, ContainersReady, PodScheduled.
const CONDITION_PARTS: core::ops::Range<usize> = 2..6;

/// Whether and what the API has taken.
#[derive(Debug)]
pub(crate) struct Posting {
    /// Something may have changed since the last patch was built.
    changed: bool,
    /// A patch is on its way.
    on_its_way: bool,
    /// Hash of each part the API has taken; 0 for none.
    taken: [u32; PARTS],
    /// Failures in a row.
    pub(crate) failures: u8,
    /// Not to be tried before, in milliseconds.
    not_before: u64,
    /// The resourceVersion of the last patch that was taken.
    pub(crate) version: u64,
    /// The address the API shows, to replace it where it is another board's or boot's.
    known_ip: String,
    /// Whether a scheduler has set PodScheduled.
    scheduled: bool,
}

impl Posting {
    /// Nothing of ours is known to the API.
    pub(crate) fn new(pod: &Pod) -> Posting {
        Posting {
            changed: true,
            on_its_way: false,
            taken: [0; PARTS],
            failures: 0,
            not_before: 0,
            version: 0,
            known_ip: pod.status.pod_ip.clone(),
            scheduled: pod.status.condition_is_true("PodScheduled"),
        }
    }

    /// Something may have changed.
    pub(crate) fn touch(&mut self) {
        self.changed = true;
    }

    /// The API may have lost what it had taken: all of it is told again.
    pub(crate) fn forget(&mut self) {
        self.taken = [0; PARTS];
        self.version = 0;
        self.changed = true;
    }

    /// Whether the API has taken all there is.
    pub(crate) fn is_settled(&self) -> bool {
        !self.changed && !self.on_its_way
    }

    /// Whether a patch is due at `millis`.
    pub(crate) fn is_due(&self, millis: u64) -> bool {
        self.changed && !self.on_its_way && self.not_before <= millis
    }

    /// When a patch that waits is due, in milliseconds.
    pub(crate) fn deadline(&self) -> u64 {
        if self.changed && !self.on_its_way { self.not_before } else { u64::MAX }
    }

    /// The patch got lost or was refused: it is tried again at `not_before`.
    pub(crate) fn postpone(&mut self, not_before: u64) {
        (self.on_its_way, self.changed, self.not_before) = (false, true, not_before);
    }

    /// The patch with these hashes was taken, as this version (0 when the answer did not say).
    pub(crate) fn accept(&mut self, hashes: [u32; PARTS], version: u64, ip: &str) {
        self.taken = hashes;
        self.version = self.version.max(version);
        self.known_ip = ip.to_string();
        (self.failures, self.not_before, self.on_its_way) = (0, 0, false);
    }
}

/// When each condition of ours last changed.
#[derive(Debug)]
pub(crate) struct Conditions {
    initialized: (bool, String),
    ready: (bool, String),
}

impl Conditions {
    /// All False since `wall`.
    pub(crate) fn new(wall: &str) -> Conditions {
        Conditions { initialized: (false, wall.to_string()), ready: (false, wall.to_string()) }
    }

    /// Takes in how the pod is at `wall`.
    fn update(&mut self, initialized: bool, ready: bool, wall: &str) {
        for (slot, value) in [(&mut self.initialized, initialized), (&mut self.ready, ready)] {
            if slot.0 != value {
                *slot = (value, wall.to_string());
            }
        }
    }
}

/// A patch of a pod's status, and the hashes of the whole status it leads to.
#[derive(Debug)]
pub(crate) struct StatusPatch {
    pub(crate) body: String,
    pub(crate) hashes: [u32; PARTS],
}

/// The phase of a pod.
pub(crate) fn phase(pod: &PodWorker) -> &'static str {
    if pod.rejection.is_some() {
        return "Failed";
    }
    if matches!(pod.stage, Stage::Terminal | Stage::Stopping | Stage::Deleting | Stage::Tombstone) {
        let well = pod.initialized() && pod.containers.iter().all(Container::has_succeeded);
        return if well { "Succeeded" } else { "Failed" };
    }
    let never_ran = |c: &Container| c.last.is_none() && !c.runs() && !c.has_ended();
    if !pod.initialized() || pod.containers.iter().any(never_ran) { "Pending" } else { "Running" }
}

/// Whether all containers run.
pub(crate) fn is_ready(pod: &PodWorker) -> bool {
    pod.rejection.is_none() && pod.initialized() && pod.containers.iter().all(Container::runs)
}

/// Whether the API shows something else than what it has taken from us (NODE-27): then all is to be told
/// again. A version older than what was taken says nothing, nor does any while a patch is due or on its way.
pub(crate) fn differs(worker: &PodWorker, seen: &Pod) -> bool {
    let version = seen.metadata.version();
    if !worker.posting.is_settled() || (version != 0 && version < worker.posting.version) {
        return false;
    }
    let status = &seen.status;
    let statuses = &status.container_statuses;
    status.phase != phase(worker)
        || status.condition_is_true("Ready") != is_ready(worker)
        || (!worker.containers.is_empty() && status.pod_ip != worker.posting.known_ip)
        || statuses.len() != worker.containers.len()
        || worker.containers.iter().any(|own| {
            !statuses.iter().any(|theirs| {
                theirs.name == own.name
                    && theirs.restart_count == own.restart_count
                    && theirs.state.running.is_some() == own.runs()
            })
        })
}

/// All is to be told again; a Ready that the API shows otherwise changes now.
pub(crate) fn tell_again(worker: &mut PodWorker, seen: &Pod, wall: &str) {
    if seen.status.condition_is_true("Ready") != is_ready(worker) {
        worker.conditions.ready.1 = wall.to_string();
    }
    worker.posting.scheduled = seen.status.condition_is_true("PodScheduled");
    worker.posting.known_ip = seen.status.pod_ip.clone();
    worker.posting.forget();
}

/// The patch that tells the API what it has not taken yet; `None` when there is nothing.
pub(crate) fn patch(pod: &mut PodWorker, ip: &str, wall: &str) -> Option<StatusPatch> {
    pod.posting.changed = false;
    let ready = is_ready(pod);
    pod.conditions.update(pod.initialized(), ready, wall);
    let parts = parts(pod, ip, ready);
    let mut hashes = [0; PARTS];
    for (hash, part) in hashes.iter_mut().zip(&parts) {
        *hash = if part.is_empty() { 0 } else { fnv(part) };
    }
    let fresh = |index: usize| hashes[index] != 0 && hashes[index] != pod.posting.taken[index];
    if !(0..PARTS).any(fresh) {
        return None;
    }
    pod.posting.on_its_way = true;
    let body = Json::document(|j| {
        j.key("metadata").object(|j| j.field("uid", &pod.uid));
        j.key("status").object(|j| {
            for index in (0..PARTS).filter(|i| !CONDITION_PARTS.contains(i) && fresh(*i)) {
                // Each part is the inside of an object.
                j.raw(&parts[index]);
            }
            if CONDITION_PARTS.clone().any(fresh) {
                j.key("conditions").array(|j| {
                    for index in CONDITION_PARTS.clone().filter(|i| fresh(*i)) {
                        j.raw(&parts[index]);
                    }
                });
            }
        });
    });
    Some(StatusPatch { body, hashes })
}

fn parts(pod: &PodWorker, ip: &str, ready: bool) -> [String; PARTS] {
    let phase_now = phase(pod);
    let told = fields(|j| {
        j.field("phase", phase_now);
        for (key, value) in [
            ("reason", pod.rejection.as_ref().map(|r| &r.reason)),
            ("message", pod.rejection.as_ref().map(|r| &r.message)),
        ] {
            // A null takes away what an eviction left behind (NODE-18).
            match value {
                Some(value) => j.field(key, value),
                None => j.key(key).null(),
            }
        }
    });
    let place = fields(|j| {
        j.field("startTime", &pod.start_time);
        if pod.rejection.is_some() {
            return;
        }
        j.field("hostIP", ip);
        j.field("podIP", ip);
        for key in ["hostIPs", "podIPs"] {
            j.key(key).array(|j| {
                j.object(|j| j.field("ip", ip));
                let old = &pod.posting.known_ip;
                if !old.is_empty() && old != ip {
                    j.object(|j| {
                        j.field("ip", old);
                        j.field("$patch", "delete");
                    });
                }
            });
        }
    });
    let why_not = unready_reason(pod, phase_now, ready);
    let condition = |kind: &str, (value, since): &(bool, String), why: Option<&(&str, String)>| {
        Json::document(|j| {
            j.field("type", kind);
            j.field("status", if *value { "True" } else { "False" });
            j.field("lastTransitionTime", since);
            match why.filter(|_| !*value) {
                Some((reason, message)) => {
                    j.field("reason", reason);
                    if !message.is_empty() {
                        j.field("message", message);
                    }
                }
                None => ["reason", "message"].into_iter().for_each(|key| j.key(key).null()),
            }
        })
    };
    let conditions = &pod.conditions;
    let init_message = ("ContainersNotInitialized", "containers with incomplete status".to_string());
    let scheduled = if pod.posting.scheduled {
        String::new()
    } else {
        condition("PodScheduled", &(true, pod.start_time.clone()), None)
    };
    let statuses = |key: &str, containers: &[Container], init: bool| {
        if containers.is_empty() {
            return String::new();
        }
        fields(|j| j.key(key).array(|j| containers.iter().for_each(|c| container_status(j, pod, c, init))))
    };
    [
        told,
        place,
        condition("Initialized", &conditions.initialized, Some(&init_message)),
        condition("Ready", &conditions.ready, Some(&why_not)),
        condition("ContainersReady", &conditions.ready, Some(&why_not)),
        scheduled,
        statuses("containerStatuses", &pod.containers, false),
        statuses("initContainerStatuses", &pod.init, true),
    ]
}

/// The inside of an object.
fn fields(write: impl FnOnce(&mut Json)) -> String {
    let mut text = Json::document(write);
    text.pop();
    text.remove(0);
    text
}

fn unready_reason(pod: &PodWorker, phase: &str, ready: bool) -> (&'static str, String) {
    if phase == "Succeeded" {
        return ("PodCompleted", String::new());
    }
    if phase == "Failed" {
        return ("PodFailed", String::new());
    }
    if ready {
        return ("", String::new());
    }
    let names: Vec<&str> = pod.containers.iter().filter(|c| !c.runs()).map(|c| c.name.as_str()).collect();
    ("ContainersNotReady", format!("containers with unready status: [{}]", names.join(" ")))
}

fn container_status(j: &mut Json, pod: &PodWorker, container: &Container, init: bool) {
    j.object(|j| {
        j.field("name", &container.name);
        j.field("image", &container.image);
        j.field("imageID", "");
        let id = match &container.state {
            State::Running { id, .. } => Some(id),
            State::Ended(end) => Some(&end.id),
            State::Created | State::Blocked { .. } | State::BackOff { .. } => {
                container.last.as_ref().map(|l| &l.id)
            }
        };
        if let Some(id) = id {
            j.field("containerID", id);
        }
        j.key("ready").boolean(if init { container.has_succeeded() } else { container.runs() });
        j.key("started").boolean(container.runs());
        j.key("restartCount").number(i64::from(container.restart_count));
        j.key("state").object(|j| match &container.state {
            State::Created => waiting(j, creating_reason(pod, init), ""),
            State::Blocked { reason, message, .. } => waiting(j, reason, message),
            State::BackOff { length, .. } => {
                let (seconds, name) = (length / 1000, &container.name);
                let who = format!("{}_{}({})", pod.name, pod.namespace, pod.uid);
                let message = format!("back-off {seconds}s restarting failed container={name} pod={who}");
                waiting(j, "CrashLoopBackOff", &message);
            }
            State::Running { started, .. } => {
                j.key("running").object(|j| j.field("startedAt", started));
            }
            State::Ended(end) => terminated(j, end),
        });
        j.key("lastState").object(|j| {
            if let Some(last) = &container.last {
                terminated(j, last);
            }
        });
    });
}

fn creating_reason(pod: &PodWorker, init: bool) -> &'static str {
    if init || pod.initialized() { "ContainerCreating" } else { "PodInitializing" }
}

fn waiting(j: &mut Json, reason: &str, message: &str) {
    j.key("waiting").object(|j| {
        j.field("reason", reason);
        if !message.is_empty() {
            j.field("message", message);
        }
    });
}

fn terminated(j: &mut Json, end: &Termination) {
    j.key("terminated").object(|j| {
        j.key("exitCode").number(i64::from(end.exit_code));
        j.field("reason", end.reason);
        for (key, time) in [("startedAt", &end.started), ("finishedAt", &end.finished)] {
            if !time.is_empty() {
                j.field(key, time);
            }
        }
        j.field("containerID", &end.id);
    });
}

/// FNV-1a: tells one version of a part from the next.
fn fnv(text: &str) -> u32 {
    let hash = text.bytes().fold(0x811C_9DC5, |hash: u32, b| (hash ^ u32::from(b)).wrapping_mul(0x0100_0193));
    hash.max(1)
}
