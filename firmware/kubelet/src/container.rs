//! One container of a pod: started, ended, started again after a back-off (KLET-02). It knows its
//! workload and the rules of restarting, not its pod's memory, claims or status.

use alloc::string::String;

use crate::wire::{ContainerSpec, ContainerStatus, RestartPolicy};
use crate::workload::{STOPPED_CODE, Workload, WorkloadError};

/// First back-off, in milliseconds; each further one is twice as long.
const FIRST_BACKOFF: u64 = 10_000;
/// Longest back-off, in milliseconds.
const LAST_BACKOFF: u64 = 300_000;
/// A container that ran this long, in milliseconds, starts over without a back-off.
const CALM: u64 = 600_000;
/// How long an image that cannot be had shows ErrImagePull before ImagePullBackOff, in milliseconds.
const PULL_ERROR_SHOWN: u64 = 1000;
/// How a container ended that lost its board: 255, as Kubernetes says where nobody saw the end.
const LOST_CODE: i32 = 255;

/// How a run of a container ended. Times as the API writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Termination {
    pub(crate) id: String,
    pub(crate) exit_code: i32,
    pub(crate) reason: &'static str,
    pub(crate) started: String,
    pub(crate) finished: String,
}

/// Where a container is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// To be started as soon as its turn has come.
    Created,
    /// Cannot start, and why; `until` the next look, in milliseconds.
    Blocked { reason: &'static str, message: String, until: u64 },
    /// Runs; `end` is when and how it ends by itself.
    Running { id: String, started: String, since: u64, end: Option<(u64, i32)> },
    /// Waits for its back-off of so many milliseconds to end.
    BackOff { until: u64, length: u64 },
    /// Has ended for good.
    Ended(Termination),
}

/// What a look at a container brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// It should start now.
    Start,
    /// It ended with this code.
    Exited(i32),
    /// It ended with this code and waits.
    BackedOff(i32),
    /// Its image or arguments are no good.
    Blocked,
    /// Something else that shows in the status.
    Changed,
}

/// One container.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) image: String,
    workload: Result<Workload, WorkloadError>,
    pub(crate) state: State,
    pub(crate) restart_count: u32,
    pub(crate) last: Option<Termination>,
    backoff: u64,
}

impl Container {
    /// A container that has not run on this board since its boot; `known` is what the API says of earlier runs
    /// (KLET-05). `finished` is the time a run is said to have ended when nobody saw it end.
    pub(crate) fn new(spec: &ContainerSpec, known: Option<&ContainerStatus>, finished: &str) -> Container {
        let mut container = Container {
            name: spec.name.clone(),
            image: spec.image.clone(),
            workload: Workload::of(&spec.image, &spec.args),
            state: State::Created,
            restart_count: 0,
            last: None,
            backoff: 0,
        };
        let Some(known) = known else { return container };
        container.restart_count = known.restart_count;
        if known.container_id.is_empty() {
            return container;
        }
        let id = known.container_id.clone();
        if let Some(ended) = &known.state.terminated {
            let (started, finished) = (ended.started_at.clone(), ended.finished_at.clone());
            let reason = reason_of(ended.exit_code);
            container.last = Some(Termination { id, exit_code: ended.exit_code, reason, started, finished });
        } else {
            let started = known.state.running.as_ref().map(|run| run.started_at.clone()).unwrap_or_default();
            let finished = finished.into();
            container.last =
                Some(Termination { id, exit_code: LOST_CODE, reason: "BoardReset", started, finished });
        }
        container
    }

    /// Keeps an end that the API already knows, where the policy does not start the container again.
    pub(crate) fn keep_end(&mut self, known: Option<&ContainerStatus>, policy: RestartPolicy, init: bool) {
        let Some(ended) = known.and_then(|known| known.state.terminated.as_ref()) else { return };
        if !restarts(policy, init, ended.exit_code) && self.last.is_some() {
            self.state = self.last.take().map_or(State::Created, State::Ended);
        }
    }

    /// Moves on as far as time alone can.
    pub(crate) fn step(&mut self, millis: u64, wall: &str, policy: RestartPolicy, init: bool) -> Step {
        match &self.state {
            State::Created => match &self.workload {
                Ok(_) => Step::Start,
                Err(error) => {
                    let reason = match error {
                        WorkloadError::UnknownImage(_) => "ErrImagePull",
                        WorkloadError::BadArguments(_) => "CreateContainerConfigError",
                    };
                    self.state = State::Blocked {
                        reason,
                        message: alloc::format!("{error}"),
                        until: millis + PULL_ERROR_SHOWN,
                    };
                    Step::Blocked
                }
            },
            State::Running { end: Some((at, code)), since, .. } if *at <= millis => {
                let (code, ran) = (*code, at.saturating_sub(*since));
                self.end(code, wall);
                if restarts(policy, init, code) { self.retry(millis, code, ran) } else { Step::Exited(code) }
            }
            State::BackOff { until, .. } if *until <= millis => {
                self.state = State::Created;
                Step::Start
            }
            State::Blocked { reason, message, until } if *until <= millis => {
                match (&self.workload, *reason) {
                    (Err(WorkloadError::UnknownImage(_)), "ErrImagePull") => {
                        let message = message.clone();
                        self.state = State::Blocked { reason: "ImagePullBackOff", message, until: u64::MAX };
                        Step::Changed
                    }
                    (Err(_), _) => {
                        // What is built in does not change while the board runs.
                        let (reason, message) = (*reason, message.clone());
                        self.state = State::Blocked { reason, message, until: u64::MAX };
                        Step::Nothing
                    }
                    (Ok(_), _) => {
                        self.state = State::Created;
                        Step::Start
                    }
                }
            }
            State::Running { .. } | State::BackOff { .. } | State::Blocked { .. } | State::Ended(_) => {
                Step::Nothing
            }
        }
    }

    /// Starts the workload; only after [`Step::Start`].
    pub(crate) fn start(&mut self, millis: u64, wall: &str, id: String) {
        let Ok(workload) = &self.workload else { return };
        let end = workload.end().map(|(after, code)| (millis.saturating_add(after), code));
        if self.last.is_some() {
            self.restart_count = self.restart_count.saturating_add(1);
        }
        self.state = State::Running { id, started: wall.into(), since: millis, end };
    }

    /// Cannot be started for want of memory: tried again after a while.
    pub(crate) fn starve(&mut self, millis: u64, bytes: u32) {
        let message = alloc::format!("not enough memory: {bytes} bytes are not free");
        let until = millis + FIRST_BACKOFF;
        self.state = State::Blocked { reason: "CreateContainerError", message, until };
    }

    /// Stops a running container; `true` when it ran.
    pub(crate) fn stop(&mut self, wall: &str) -> bool {
        let ran = matches!(self.state, State::Running { .. });
        if ran {
            self.end(STOPPED_CODE, wall);
        } else if let Some(last) = self.last.clone().filter(|_| !self.has_ended()) {
            // It waited to be started again; its last run stands.
            self.state = State::Ended(last);
        }
        ran
    }

    /// Whether it has ended for good.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }

    /// Whether it runs.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Whether it ended for good and well.
    pub(crate) fn has_succeeded(&self) -> bool {
        matches!(&self.state, State::Ended(end) if end.exit_code == 0)
    }

    /// When it wants to be looked at next, in milliseconds.
    pub(crate) fn deadline(&self) -> u64 {
        match &self.state {
            State::Running { end: Some((at, _)), .. } => *at,
            State::BackOff { until, .. } | State::Blocked { until, .. } => *until,
            State::Created | State::Running { end: None, .. } | State::Ended(_) => u64::MAX,
        }
    }

    /// A run is over; whether another follows is not decided here.
    fn end(&mut self, exit_code: i32, wall: &str) {
        if let State::Running { id, started, .. } = &self.state {
            self.state = State::Ended(Termination {
                id: id.clone(),
                exit_code,
                reason: reason_of(exit_code),
                started: started.clone(),
                finished: wall.into(),
            });
        }
    }

    /// The first time at once, then after 10 s, 20 s, … 5 min, as Kubernetes does.
    fn retry(&mut self, millis: u64, code: i32, ran: u64) -> Step {
        if let State::Ended(end) = &self.state {
            self.last = Some(end.clone());
        }
        if ran >= CALM {
            self.backoff = 0;
        }
        let length = self.backoff;
        self.backoff = (length * 2).clamp(FIRST_BACKOFF, LAST_BACKOFF);
        if length == 0 {
            self.state = State::Created;
            return Step::Exited(code);
        }
        self.state = State::BackOff { until: millis + length, length };
        Step::BackedOff(code)
    }
}

/// Whether a container that ended so is started again. Init containers that succeed are done.
fn restarts(policy: RestartPolicy, init: bool, exit_code: i32) -> bool {
    match policy {
        RestartPolicy::Always => !init || exit_code != 0,
        RestartPolicy::OnFailure => exit_code != 0,
        RestartPolicy::Never => false,
    }
}

fn reason_of(exit_code: i32) -> &'static str {
    if exit_code == 0 { "Completed" } else { "Error" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn container(args: &str) -> Container {
        let spec = ContainerSpec {
            name: "c".into(),
            image: "rigor.dev/builtin".into(),
            args: [args.into()].into(),
            ..ContainerSpec::default()
        };
        Container::new(&spec, None, "now")
    }

    /// Runs a container up to `until` and tells when it was started, in seconds.
    fn starts(args: &str, policy: RestartPolicy, until: u64) -> (Vec<u64>, Container) {
        let mut container = container(args);
        let (mut millis, mut started) = (0, Vec::new());
        while millis < until {
            while container.step(millis, "t", policy, false) != Step::Nothing {
                if container.state == State::Created {
                    started.push(millis / 1000);
                    container.start(millis, "t", "id".into());
                }
            }
            millis = container.deadline();
        }
        (started, container)
    }

    #[test]
    fn back_off_doubles_up_to_five_minutes() {
        let (started, container) = starts("crash", RestartPolicy::Always, 1_500_000);
        assert_eq!(started, [0, 0, 10, 30, 70, 150, 310, 610, 910, 1210]);
        assert_eq!(container.restart_count, 9);
    }

    #[test]
    fn ten_calm_minutes_end_the_back_off() {
        let (started, _) = starts("exit:1:after=10m", RestartPolicy::OnFailure, 2_000_000);
        assert_eq!(started, [0, 600, 1200, 1800]);
        let (started, _) = starts("exit:1:after=9m", RestartPolicy::OnFailure, 2_000_000);
        assert_eq!(started, [0, 540, 1090, 1650]);
    }

    #[test]
    fn the_policy_decides_whether_it_starts_again() {
        let check = |args: &str, policy, starts_seen: usize, ended: bool| {
            let (started, container) = starts(args, policy, 5000);
            assert_eq!((started.len(), container.has_ended()), (starts_seen, ended), "{args} {policy:?}");
        };
        check("exit:0", RestartPolicy::Never, 1, true);
        check("exit:1", RestartPolicy::Never, 1, true);
        check("exit:0", RestartPolicy::OnFailure, 1, true);
        check("exit:1", RestartPolicy::OnFailure, 2, false);
        check("exit:0", RestartPolicy::Always, 2, false);
        check("pause", RestartPolicy::Always, 1, false);
        check("pausing", RestartPolicy::Always, 0, false);
    }
}
