//! What the API is told of a pod: phase, conditions, container statuses, as a patch that carries only what
//! the API has not taken yet (`posting`). Conditions are merged by type (a strategic merge patch), so those
//! of the scheduler and of the controllers stay untouched, and so does the lastTransitionTime of one whose
//! status is to be what the API shows already.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::container::{Container, State, Termination};
use crate::json::Json;
use crate::pod::{PodWorker, Stage};
use crate::posting::{CONDITION_PARTS, CONDITIONS, PARTS, SCHEDULED, Sent, shown};
use crate::wire::Pod;

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

/// What the board says of each of [`CONDITIONS`].
fn conditions(pod: &PodWorker) -> [bool; CONDITIONS.len()] {
    let ready = is_ready(pod);
    [pod.initialized(), ready, ready, true]
}

/// Whether the API shows something else than what it has taken from us (NODE-27): then all is to be told
/// again. Nothing can be said while a patch is due or on its way.
pub(crate) fn differs(worker: &PodWorker, seen: &Pod) -> bool {
    if !worker.posting.is_settled() {
        return false;
    }
    let status = &seen.status;
    let statuses = &status.container_statuses;
    status.phase != phase(worker)
        || shown(seen) != conditions(worker).map(Some)
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

/// All is to be told again.
pub(crate) fn tell_again(worker: &mut PodWorker, seen: &Pod) {
    worker.posting.known_ip = seen.status.pod_ip.clone();
    worker.posting.forget();
}

/// The patch that tells the API what it has not taken yet; `None` when there is nothing. A condition changes
/// at `wall` if its status is another than the API shows, and else keeps its time.
pub(crate) fn patch(pod: &mut PodWorker, ip: &str, wall: &str) -> Option<(String, Sent)> {
    pod.posting.look_through();
    let conditions = conditions(pod);
    let parts = parts(pod, ip, conditions);
    let mut hashes = [0; PARTS];
    for (hash, part) in hashes.iter_mut().zip(&parts) {
        *hash = if part.is_empty() { 0 } else { fnv(part) };
    }
    let since = pod.posting.lost_since().unwrap_or(wall).to_string();
    let moved = |condition: usize| pod.posting.shown[condition] != Some(conditions[condition]);
    let fresh = |index: usize| {
        let condition = CONDITION_PARTS.clone().position(|part| part == index);
        hashes[index] != 0 && (hashes[index] != pod.posting.taken[index] || condition.is_some_and(moved))
    };
    if !(0..PARTS).any(fresh) {
        return None;
    }
    let body = Json::document(|j| {
        j.key("metadata").object(|j| {
            j.field("uid", &pod.uid);
            // One that was given up may still arrive, after what was said later: it is to be refused then.
            if pod.posting.version != 0 {
                j.field("resourceVersion", &format!("{}", pod.posting.version));
            }
        });
        j.key("status").object(|j| {
            for index in (0..PARTS).filter(|i| !CONDITION_PARTS.contains(i) && fresh(*i)) {
                j.raw(&parts[index]);
            }
            if CONDITION_PARTS.clone().any(fresh) {
                j.key("conditions").array(|j| {
                    for (condition, part) in CONDITION_PARTS.enumerate().filter(|(_, part)| fresh(*part)) {
                        j.object(|j| {
                            j.raw(&parts[part]);
                            if moved(condition) {
                                j.field("lastTransitionTime", &since);
                            }
                        });
                    }
                });
            }
        });
    });
    pod.posting.send();
    Some((body, Sent { hashes, conditions, before: pod.posting.shown, since }))
}

/// Each part is the inside of an object, empty where there is nothing to say.
fn parts(pod: &PodWorker, ip: &str, conditions: [bool; CONDITIONS.len()]) -> [String; PARTS] {
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
    let why_not = unready_reason(pod, phase_now, conditions[1]);
    let condition = |index: usize, why: Option<&(&str, String)>| {
        fields(|j| {
            j.field("type", CONDITIONS[index]);
            j.field("status", if conditions[index] { "True" } else { "False" });
            match why.filter(|_| !conditions[index]) {
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
    let init_message = ("ContainersNotInitialized", "containers with incomplete status".to_string());
    // A scheduler's word on it stands.
    let scheduled = pod.posting.shown[SCHEDULED] == Some(true);
    let statuses = |key: &str, containers: &[Container], init: bool| {
        if containers.is_empty() {
            return String::new();
        }
        fields(|j| j.key(key).array(|j| containers.iter().for_each(|c| container_status(j, pod, c, init))))
    };
    [
        told,
        place,
        condition(0, Some(&init_message)),
        condition(1, Some(&why_not)),
        condition(2, Some(&why_not)),
        if scheduled { String::new() } else { condition(SCHEDULED, None) },
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
