//! The pods of this board: seen, admitted, moved on, stopped and dropped. A pod that is bound elsewhere,
//! or gone, is stopped here without a word to the API (NODE-24); one that is deleted is stopped, told, and
//! only then removed (KLET-04).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::events::Regarding;
use crate::flight::Listing;
use crate::kubelet::Kubelet;
use crate::node::MAX_PODS;
use crate::pod::{Happening, PodWorker, Rejection, Stage, Surroundings};
use crate::pod_status::{differs, tell_again};
use crate::wire::{Metadata, Pod};

/// Pods remembered at once, ended and refused ones included.
const MAX_RECORDS: usize = 2 * MAX_PODS;

impl Kubelet {
    pub(crate) fn pod_mut(&mut self, uid: &str) -> Option<&mut PodWorker> {
        self.pods.iter_mut().find(|pod| pod.uid == uid)
    }

    /// One pod of a list: known ones are looked at at once, others when the list is complete.
    pub(crate) fn list_pod(&mut self, listing: &mut Listing, pod: Pod) {
        if let Some(known) = self.pod_mut(&pod.metadata.uid) {
            known.listed = true;
            known.posting.make_sure();
            self.see_pod(&pod, true);
        } else if listing.unknown.len() < MAX_PODS {
            if !pod.status.is_terminal() || pod.metadata.deletion_timestamp.is_some() {
                listing.unknown.push(pod);
            }
        } else {
            self.sync.relist_later = true;
        }
    }

    /// A list is complete: new pods are admitted, those that ran before first, and what it does not show
    /// is not ours any more.
    pub(crate) fn take_list(&mut self, listing: Listing) {
        let Listing { mut unknown, incomplete, version, .. } = listing;
        if !incomplete {
            let gone: Vec<String> =
                self.pods.iter().filter(|pod| !pod.listed).map(|pod| pod.uid.clone()).collect();
            for uid in gone {
                self.forget_pod(&uid, "not bound to this node any more");
            }
        }
        // Picked out one by one: few they are, and a sort would cost more flash than all of this.
        while let Some((first, _)) = unknown.iter().enumerate().min_by_key(|(_, pod)| order_of_admission(pod))
        {
            let pod = unknown.swap_remove(first);
            self.see_pod(&pod, true);
        }
        self.sync.take_list(version, incomplete, self.millis);
    }

    /// A list is about to be asked for.
    pub(crate) fn begin_list(&mut self) {
        for pod in &mut self.pods {
            pod.listed = false;
            // Versions may have started over with the server's store.
            pod.posting.version = 0;
        }
    }

    /// A pod as the API shows it now. `fresh` says that it came into our sight just now (ADDED, or a list).
    pub(crate) fn see_pod(&mut self, pod: &Pod, fresh: bool) {
        let metadata = &pod.metadata;
        if metadata.uid.is_empty() || metadata.name.is_empty() {
            return;
        }
        if pod.spec.node_name != self.config.node_name {
            return self.forget_pod(&metadata.uid, "not bound to this node any more");
        }
        let Some(index) = self.pods.iter().position(|known| known.uid == metadata.uid) else {
            return self.see_new_pod(pod);
        };
        let known = &mut self.pods[index];
        let stale = known.posting.is_stale(pod);
        known.posting.learn(pod);
        match known.stage {
            Stage::Tombstone if fresh && metadata.deletion_timestamp.is_none() => {
                self.pods.remove(index);
                self.see_new_pod(pod);
            }
            Stage::Tombstone | Stage::Stopping | Stage::Deleting => {}
            Stage::Creating { .. } | Stage::Active | Stage::Terminal if stale => {}
            Stage::Creating { .. } | Stage::Active | Stage::Terminal => {
                if metadata.deletion_timestamp.is_some() {
                    self.stop_pod(index);
                } else if pod.status.is_terminal() {
                    let uid = metadata.uid.clone();
                    self.forget_pod(&uid, "ended");
                } else if known.stage == Stage::Terminal {
                    // The API has lost our word that it ended.
                    if known.posting.is_settled() {
                        known.posting.forget();
                    }
                } else if differs(known, pod) {
                    tell_again(known, pod);
                    // The control plane may have thought us dead.
                    self.doubt_lease();
                }
            }
        }
    }

    fn see_new_pod(&mut self, pod: &Pod) {
        let metadata = &pod.metadata;
        let deleted = metadata.deletion_timestamp.is_some();
        if pod.status.is_terminal() && !deleted {
            return;
        }
        if deleted && metadata.deletion_grace_period_seconds == Some(0) {
            // Only its finalizers keep it.
            return;
        }
        if self.pods.len() >= MAX_RECORDS {
            self.sync.relist_later = true;
            return;
        }
        let wall = self.wall();
        let mut worker = PodWorker::new(pod, self.millis, &wall);
        if deleted {
            worker.stage = Stage::Deleting;
        } else if let Err(rejection) = self.admit(&worker, pod) {
            let Rejection { reason, message } = rejection.clone();
            self.log(format!("pod {} rejected: {reason} {message}", worker.full_name()));
            self.note_event(&worker, (true, &reason), message);
            worker.reject(rejection);
        } else {
            self.log(format!("pod {} admitted memory={}", worker.full_name(), worker.memory));
        }
        self.pods.push(worker);
    }

    /// Whether the board has what the pod asks for; what it claims is its own afterwards (KLET-03, KLET-07).
    fn admit(&mut self, worker: &PodWorker, pod: &Pod) -> Result<(), Rejection> {
        let active =
            self.pods.iter().filter(|pod| matches!(pod.stage, Stage::Creating { .. } | Stage::Active));
        if active.count() >= MAX_PODS {
            let message = format!("Pod was rejected: this board runs at most {MAX_PODS} pods");
            return Err(Rejection { reason: "OutOfpods".into(), message });
        }
        let promised = self.pods.iter().map(PodWorker::promised).fold(0, u32::saturating_add);
        let available = self.heap.free().saturating_sub(promised);
        if worker.memory > available {
            let asked = worker.memory;
            let message =
                format!("Pod was rejected: memory requested {asked} bytes, available {available} bytes");
            return Err(Rejection { reason: "OutOfMemory".into(), message });
        }
        let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
        self.ledger.claim(&worker.uid, &worker.full_name(), containers).map_err(|error| Rejection {
            reason: error.reason(),
            message: format!("Pod was rejected: {error}"),
        })
    }

    /// Someone deleted the pod: it stops, its pins are free, its last status is told.
    fn stop_pod(&mut self, index: usize) {
        let wall = self.wall();
        let pod = &mut self.pods[index];
        let stopped = pod.stop(&wall, &mut self.heap);
        pod.stage = if pod.ever_ran() || pod.rejection.is_some() { Stage::Stopping } else { Stage::Deleting };
        let (name, uid) = (pod.full_name(), pod.uid.clone());
        let regarding = regarding(pod);
        self.ledger.release(&uid);
        for container in stopped {
            self.log(format!("pod {name} container {container} stopped"));
            let id = self.random.next();
            let message = format!("Stopping container {container}");
            self.events.note(regarding.clone(), (false, "Killing"), message, &wall, id);
        }
    }

    /// The local copy stops for good; a tombstone keeps late words about it from starting it again.
    pub(crate) fn drop_copy(&mut self, uid: &str, why: &str) {
        let wall = self.wall();
        let Some(pod) = self.pods.iter_mut().find(|pod| pod.uid == uid) else { return };
        let _stopped = pod.stop(&wall, &mut self.heap);
        pod.stage = Stage::Tombstone;
        let name = pod.full_name();
        self.ledger.release(uid);
        self.log(format!("pod {name} dropped: {why}"));
    }

    /// The pod is not ours any more: the local copy stops, and nothing of it is remembered.
    pub(crate) fn forget_pod(&mut self, uid: &str, why: &str) {
        let wall = self.wall();
        let Some(index) = self.pods.iter().position(|pod| pod.uid == uid) else { return };
        let mut pod = self.pods.remove(index);
        let running = !pod.stop(&wall, &mut self.heap).is_empty();
        self.ledger.release(uid);
        if running || matches!(pod.stage, Stage::Creating { .. } | Stage::Active) {
            self.log(format!("pod {} dropped: {why}", pod.full_name()));
        }
    }

    /// Time passed: containers end, wait and start.
    pub(crate) fn advance_pods(&mut self) {
        let wall = self.wall();
        for index in 0..self.pods.len() {
            let Kubelet { pods, heap, boot_id, containers_started, millis, .. } = self;
            let mut next_id = || {
                *containers_started += 1;
                format!("rigor://{boot_id:016x}-{containers_started}")
            };
            let mut around = Surroundings { millis: *millis, wall: &wall, heap, next_id: &mut next_id };
            let happenings = pods[index].advance(&mut around);
            for happening in happenings {
                self.tell(index, happening);
            }
        }
    }

    /// One line for the console, and an event where Kubernetes has one.
    fn tell(&mut self, index: usize, happening: Happening) {
        let pod = &self.pods[index];
        let (name, uid) = (pod.full_name(), pod.uid.clone());
        let (line, event) = match happening {
            Happening::Started { container } => (
                format!("pod {name} container {container} started"),
                Some((false, "Started", format!("Started container {container}"))),
            ),
            Happening::Exited { container, code } => {
                (format!("pod {name} container {container} exited code={code}"), None)
            }
            Happening::BackedOff { container, code } => (
                format!("pod {name} container {container} exited code={code}, backing off"),
                Some((
                    true,
                    "BackOff",
                    format!("Back-off restarting failed container {container} in pod {name}"),
                )),
            ),
            Happening::Blocked { container, reason, message } => (
                format!("pod {name} container {container} cannot start: {reason} {message}"),
                Some((true, "Failed", format!("Error: {reason}: {message}"))),
            ),
            Happening::Ended { succeeded } => {
                self.ledger.release(&uid);
                (format!("pod {name} {}", if succeeded { "succeeded" } else { "failed" }), None)
            }
        };
        self.log(line);
        if let Some((warning, reason, message)) = event {
            let (regarding, wall, id) = (regarding(&self.pods[index]), self.wall(), self.random.next());
            self.events.note(regarding, (warning, reason), message, &wall, id);
        }
    }

    fn note_event(&mut self, pod: &PodWorker, kind: (bool, &str), message: String) {
        let (wall, id) = (self.wall(), self.random.next());
        self.events.note(regarding(pod), kind, message, &wall, id);
    }
}

/// What ran before comes first, then the older.
fn order_of_admission(pod: &Pod) -> (bool, &str, &str) {
    let Metadata { creation_timestamp, name, .. } = &pod.metadata;
    (pod.status.container_statuses.is_empty(), creation_timestamp, name)
}

fn regarding(pod: &PodWorker) -> Regarding {
    Regarding { namespace: pod.namespace.to_string(), name: pod.name.to_string(), uid: pod.uid.to_string() }
}
