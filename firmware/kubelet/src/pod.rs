//! One pod on this board, from admission to its end (KLET-02, KLET-04): its containers in order, the
//! memory they hold, and the stage it is in. It decides what runs; what the API is told of it is
//! `pod_status`, when it is told is `kubelet`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::container::{Container, State, Step};
use crate::heap::{Heap, Reservation};
use crate::posting::Posting;
use crate::wire::{Pod, RestartPolicy};

/// Memory of a pod that declares none, in bytes (SCHED-14).
const UNDECLARED_MEMORY: u64 = 16 * 1024;
/// How long a pod waits for its ContainerCreating status to be taken before it starts anyway, in milliseconds.
const CREATING_SHOWN: u64 = 1000;

/// Where a pod is in its life on this board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Admitted; its Pending status is told first, until that is taken or this instant has come.
    Creating { until: u64 },
    /// Its containers run, wait or end.
    Active,
    /// Succeeded or Failed; stays until the API shows it.
    Terminal,
    /// Deleted by someone and stopped; its last status is to be told first.
    Stopping,
    /// Stopped and told: the object is to be removed.
    Deleting,
    /// Nothing is left but the memory that it is not ours any more.
    Tombstone,
}

/// Why a pod was refused at admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// `status.reason`.
    pub(crate) reason: String,
    /// `status.message`.
    pub(crate) message: String,
}

/// Something the console and the events should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    Started { container: String },
    Exited { container: String, code: i32 },
    BackedOff { container: String, code: i32 },
    Blocked { container: String, reason: &'static str, message: String },
    Ended { succeeded: bool },
}

/// What a pod needs of its surroundings to move on.
pub(crate) struct Surroundings<'a> {
    pub(crate) millis: u64,
    pub(crate) wall: &'a str,
    pub(crate) heap: &'a mut Heap,
    /// Draws the id of a container that starts.
    pub(crate) next_id: &'a mut dyn FnMut() -> String,
}

/// A pod this board runs, ran, or refused.
#[derive(Debug)]
pub(crate) struct PodWorker {
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) policy: RestartPolicy,
    pub(crate) init: Vec<Container>,
    pub(crate) containers: Vec<Container>,
    pub(crate) stage: Stage,
    pub(crate) rejection: Option<Rejection>,
    pub(crate) start_time: String,
    pub(crate) posting: Posting,
    /// Memory asked for, in bytes; more than 4 GiB is as good as 4 GiB.
    pub(crate) memory: u32,
    reservation: Reservation,
    /// Found in the list that is being read.
    pub(crate) listed: bool,
    /// Its removal is not to be asked for before, in milliseconds.
    pub(crate) delete_after: u64,
}

impl PodWorker {
    /// A pod the API shows bound to this board, nothing of which runs yet.
    pub(crate) fn new(pod: &Pod, millis: u64, wall: &str) -> PodWorker {
        let (spec, status) = (&pod.spec, &pod.status);
        let build = |specs: &[crate::wire::ContainerSpec], known: &[crate::wire::ContainerStatus], init| {
            let containers = specs.iter().map(|spec| {
                let known = known.iter().find(|status| status.name == spec.name);
                let mut container = Container::new(spec, known, wall);
                container.keep_end(known, spec_policy(pod), init);
                container
            });
            containers.collect::<Vec<_>>()
        };
        let start_time = if status.start_time.is_empty() { wall } else { &status.start_time };
        PodWorker {
            uid: pod.metadata.uid.clone(),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            policy: spec.restart_policy,
            init: build(&spec.init_containers, &status.init_container_statuses, true),
            containers: build(&spec.containers, &status.container_statuses, false),
            stage: Stage::Creating { until: millis + CREATING_SHOWN },
            rejection: None,
            start_time: start_time.to_string(),
            posting: Posting::new(pod),
            memory: u32::try_from(memory_asked(pod)).unwrap_or(u32::MAX),
            reservation: Reservation::default(),
            listed: false,
            delete_after: 0,
        }
    }

    /// Refused at admission: Failed, and nothing else of it ever happens.
    pub(crate) fn reject(&mut self, rejection: Rejection) {
        self.rejection = Some(rejection);
        self.init.clear();
        self.containers.clear();
        self.stage = Stage::Terminal;
        self.posting.touch();
    }

    /// `NAMESPACE/NAME`, as the console shows it.
    pub(crate) fn full_name(&self) -> String {
        alloc::format!("{}/{}", self.namespace, self.name)
    }

    /// Memory it holds now, in bytes.
    pub(crate) fn held(&self) -> u32 {
        self.reservation.bytes()
    }

    /// Memory it was promised at admission and does not hold at the moment, in bytes.
    pub(crate) fn promised(&self) -> u32 {
        match self.stage {
            Stage::Creating { .. } | Stage::Active => self.memory.saturating_sub(self.held()),
            Stage::Terminal | Stage::Stopping | Stage::Deleting | Stage::Tombstone => 0,
        }
    }

    /// Whether its init containers are all done.
    pub(crate) fn initialized(&self) -> bool {
        self.init.iter().all(Container::has_succeeded)
    }

    /// Whether any of its containers ever ran, here or before a reset.
    pub(crate) fn ever_ran(&self) -> bool {
        let ran = |c: &Container| c.last.is_some() || c.runs() || c.has_ended();
        self.init.iter().chain(&self.containers).any(ran)
    }

    /// Moves on as far as time and memory allow.
    pub(crate) fn advance(&mut self, around: &mut Surroundings<'_>) -> Vec<Happening> {
        let mut happenings = Vec::new();
        if let Stage::Creating { until } = self.stage
            && (self.posting.is_settled() || around.millis >= until)
        {
            self.stage = Stage::Active;
        }
        if self.stage != Stage::Active {
            return happenings;
        }
        let init_count = self.init.len();
        let mut index = 0;
        while index < init_count + self.containers.len() {
            let init = index < init_count;
            if !init && !self.initialized() {
                break;
            }
            self.advance_one(index, init, around, &mut happenings);
            if init && !self.init[index].has_succeeded() {
                break;
            }
            index += 1;
        }
        let any_runs = self.init.iter().chain(&self.containers).any(Container::runs);
        if !any_runs {
            around.heap.release(&mut self.reservation);
        }
        let failed_init = self.init.iter().any(|c| c.has_ended() && !c.has_succeeded());
        if failed_init || self.containers.iter().all(Container::has_ended) {
            self.stage = Stage::Terminal;
            self.posting.touch();
            happenings.push(Happening::Ended { succeeded: !failed_init && self.all_succeeded() });
        }
        happenings
    }

    fn all_succeeded(&self) -> bool {
        self.containers.iter().all(Container::has_succeeded)
    }

    fn advance_one(
        &mut self,
        index: usize,
        init: bool,
        around: &mut Surroundings<'_>,
        out: &mut Vec<Happening>,
    ) {
        // A workload may end at once and start again at once: each round either waits or has moved on.
        loop {
            let policy = self.policy;
            let memory = self.memory;
            let container =
                if init { &mut self.init[index] } else { &mut self.containers[index - self.init.len()] };
            let step = container.step(around.millis, around.wall, policy, init);
            let name = container.name.clone();
            match step {
                Step::Nothing => return,
                Step::Changed => {}
                Step::Start => {
                    if self.reservation.bytes() < memory {
                        match around.heap.reserve(memory) {
                            Some(reservation) => self.reservation = reservation,
                            None => {
                                container.starve(around.millis, memory);
                                self.posting.touch();
                                return;
                            }
                        }
                    }
                    container.start(around.millis, around.wall, (around.next_id)());
                    out.push(Happening::Started { container: name });
                }
                Step::Exited(code) => out.push(Happening::Exited { container: name, code }),
                Step::BackedOff(code) => out.push(Happening::BackedOff { container: name, code }),
                Step::Blocked => {
                    if let State::Blocked { reason, message, .. } = &container.state {
                        let (reason, message) = (*reason, message.clone());
                        out.push(Happening::Blocked { container: name, reason, message });
                    }
                }
            }
            self.posting.touch();
        }
    }

    /// Stops every container and gives the memory back; the names of those that ran.
    pub(crate) fn stop(&mut self, wall: &str, heap: &mut Heap) -> Vec<String> {
        let containers = self.init.iter_mut().chain(&mut self.containers);
        let stopped = containers.filter_map(|c| c.stop(wall).then(|| c.name.clone())).collect();
        heap.release(&mut self.reservation);
        self.posting.touch();
        stopped
    }

    /// When it wants to be looked at next, in milliseconds.
    pub(crate) fn deadline(&self) -> u64 {
        match self.stage {
            Stage::Creating { until } => until,
            Stage::Active => {
                self.init.iter().chain(&self.containers).map(Container::deadline).min().unwrap_or(u64::MAX)
            }
            Stage::Terminal | Stage::Stopping | Stage::Deleting | Stage::Tombstone => u64::MAX,
        }
    }
}

fn spec_policy(pod: &Pod) -> RestartPolicy {
    pod.spec.restart_policy
}

/// Memory a pod asks for, in bytes, as the scheduler counts it (SCHED-14).
fn memory_asked(pod: &Pod) -> u64 {
    let of = |container: &crate::wire::ContainerSpec| container.resources.asked("memory");
    let sum = pod.spec.containers.iter().filter_map(of).fold(0, u64::saturating_add);
    let largest_init = pod.spec.init_containers.iter().filter_map(of).max();
    let declared = largest_init.is_some() || pod.spec.containers.iter().any(|c| of(c).is_some());
    if declared { sum.max(largest_init.unwrap_or(0)) } else { UNDECLARED_MEMORY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_as_the_scheduler_counts_it() {
        let check = |spec: &str, expected: u64| {
            let pod: Pod = serde_json::from_str(&alloc::format!("{{\"spec\":{spec}}}")).unwrap();
            assert_eq!(memory_asked(&pod), expected, "{spec}");
        };
        check(r#"{"containers":[{}]}"#, 16_384);
        check(r#"{"containers":[{"resources":{"limits":{"memory":"4Ki"}}},{}]}"#, 4096);
        check(
            r#"{"containers":[{"resources":{"requests":{"memory":"1Ki"},"limits":{"memory":"4Ki"}}}]}"#,
            1024,
        );
        check(r#"{"containers":[{"resources":{"requests":{"memory":"0"}}}]}"#, 0);
        check(
            r#"{"containers":[{"resources":{"requests":{"memory":"2Ki"}}},{"resources":{"requests":{"memory":"3Ki"}}}],
               "initContainers":[{"resources":{"requests":{"memory":"4Ki"}}},{"resources":{"requests":{"memory":"6Ki"}}}]}"#,
            6144,
        );
    }
}
