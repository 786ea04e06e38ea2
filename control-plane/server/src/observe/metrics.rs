//! The counters, gauges and histograms, under Kubernetes' names where it has one and under `rigor_` where not.
//!
//! Each control plane has a registry of its own: several live in one process under test.

use std::time::Duration;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// Seconds: Kubernetes' bounds of request durations, with finer ones below, where a small server answers.
const REQUEST_SECONDS: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0,
    3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];
/// Seconds: a write to memory takes microseconds, an fsync on a busy disk a fifth of a second.
const WRITE_SECONDS: &[f64] =
    &[0.00001, 0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// How a decision of a controller ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was nothing to write.
    Idle,
    /// Everything was written.
    Applied,
    /// Someone else wrote first; it is made anew.
    Stale,
    /// A write was refused or failed.
    Refused,
}

impl Outcome {
    fn label(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Applied => "applied",
            Self::Stale => "stale",
            Self::Refused => "refused",
        }
    }
}

/// Everything that is counted.
#[derive(Debug)]
pub struct Metrics {
    /// Where all of it is registered.
    pub registry: Registry,
    /// Requests answered, watches when they end.
    pub requests: IntCounterVec,
    /// Their durations.
    pub durations: HistogramVec,
    /// Requests being answered, watches apart.
    pub inflight: IntGaugeVec,
    /// Open watches.
    pub long_running: IntGaugeVec,
    /// Requests whose client left before the answer.
    pub aborted: IntCounter,
    /// Requests that ended in a panic.
    pub panics: IntCounter,
    /// Lines sent to watches.
    pub watch_events: IntCounterVec,
    /// What audit events became of: all, and those lost.
    pub audit_events: IntCounter,
    /// Audit events that could not be written.
    pub audit_lost: IntCounterVec,
    /// Durations of the store's writes.
    pub store_writes: HistogramVec,
    /// Writes that the store could not make.
    pub store_failures: IntCounter,
    /// Turns of the controllers' loop.
    pub turns: IntCounter,
    /// Decisions by controller and outcome.
    pub decisions: IntCounterVec,
    /// Writes by controller.
    pub controller_writes: IntCounterVec,
    /// Durations from decision to its last write, by controller.
    pub controller_seconds: HistogramVec,
    /// Durations of looks at which nothing was to be done, by controller.
    pub look_seconds: HistogramVec,
    /// Attempts to find a node for a pod.
    pub schedule_attempts: IntCounterVec,
    /// Their durations.
    pub schedule_seconds: HistogramVec,
    /// Pods that wait for a node.
    pub pending_pods: IntGaugeVec,
    /// Objects by resource, set when scraped.
    pub objects: IntGaugeVec,
    /// The newest revision, set when scraped.
    pub revision: IntGauge,
    /// Changes remembered for watches, set when scraped.
    pub history: IntGauge,
    /// Transactions of the store, set when scraped.
    pub commits: IntGauge,
    /// Writes in them, set when scraped.
    pub committed_writes: IntGauge,
    /// Connections being served.
    pub connections: IntGauge,
    /// Connections that were closed because of what the client did or failed to do.
    pub connections_refused: IntCounterVec,
}

/// Registers under constant names, so nothing here can fail once the tests pass.
struct Register(Registry);

impl Register {
    fn add<C: prometheus::core::Collector + Clone + 'static>(&self, made: prometheus::Result<C>) -> C {
        let made = made.expect("names and labels are constants that Prometheus takes");
        self.0.register(Box::new(made.clone())).expect("each name is registered once");
        made
    }

    fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.add(IntCounter::new(name, help))
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.add(IntCounterVec::new(Opts::new(name, help), labels))
    }

    fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.add(IntGauge::new(name, help))
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.add(IntGaugeVec::new(Opts::new(name, help), labels))
    }

    fn histograms(&self, name: &str, help: &str, bounds: &[f64], labels: &[&str]) -> HistogramVec {
        let options = HistogramOpts::new(name, help).buckets(bounds.to_vec());
        self.add(HistogramVec::new(options, labels))
    }
}

/// The labels of a request, but for its code; `component` is Kubernetes' and always the same.
const REQUEST: &[&str] =
    &["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"];

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics that stand at zero, in a registry of their own.
    #[expect(clippy::too_many_lines, reason = "one line a metric")]
    pub fn new() -> Self {
        let all = Register(Registry::new());
        let build = all.gauges(
            "kubernetes_build_info",
            "The Kubernetes version whose behaviour is served; always 1.",
            &["git_version", "major", "minor", "platform"],
        );
        let version = control_plane_api::discovery::version();
        let told = ["gitVersion", "major", "minor", "platform"].map(|field| version[field].as_str());
        build.with_label_values(&told.map(Option::unwrap_or_default)).set(1);
        let own = all.gauges("rigor_build_info", "The version of this program; always 1.", &["version"]);
        own.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        Self {
            requests: all.counters(
                "apiserver_request_total",
                "Requests answered, by verb, resource and HTTP code; a watch counts when it ends.",
                &[REQUEST, &["code"]].concat(),
            ),
            durations: all.histograms(
                "apiserver_request_duration_seconds",
                "Seconds from a request's arrival to its answer; for a watch, to its end.",
                REQUEST_SECONDS,
                REQUEST,
            ),
            inflight: all.gauges(
                "apiserver_current_inflight_requests",
                "Requests being answered, without open watches.",
                &["request_kind"],
            ),
            long_running: all.gauges("apiserver_longrunning_requests", "Open watches.", REQUEST),
            aborted: all.counter(
                "apiserver_request_aborts_total",
                "Requests whose client left before they were answered.",
            ),
            panics: all
                .counter("rigor_request_panics_total", "Requests that ended in a panic, answered with 500."),
            watch_events: all.counters(
                "apiserver_watch_events_total",
                "Events sent to watches, bookmarks and errors among them.",
                &["group", "version", "kind"],
            ),
            audit_events: all.counter(
                "apiserver_audit_event_total",
                "Audit events made, whether or not they could be written.",
            ),
            audit_lost: all.counters(
                "apiserver_audit_error_total",
                "Audit events that were lost because the log could not be written or its queue was full.",
                &["plugin"],
            ),
            store_writes: all.histograms(
                "rigor_store_write_duration_seconds",
                "Seconds from a write's arrival at the store to its acknowledgement.",
                WRITE_SECONDS,
                &["operation"],
            ),
            store_failures: all.counter(
                "rigor_store_write_failures_total",
                "Writes that the store could not make; lost preconditions are not among them.",
            ),
            turns: all
                .counter("rigor_controller_turns_total", "Turns of the loop that runs the controllers."),
            decisions: all.counters(
                "rigor_controller_decisions_total",
                "Decisions by controller and by how they ended.",
                &["controller", "outcome"],
            ),
            controller_writes: all.counters(
                "rigor_controller_writes_total",
                "Writes that decisions asked for and that were made.",
                &["controller"],
            ),
            controller_seconds: all.histograms(
                "rigor_controller_duration_seconds",
                "Seconds from a decision to its last write, where it had one.",
                WRITE_SECONDS,
                &["controller"],
            ),
            look_seconds: all.histograms(
                "rigor_controller_look_duration_seconds",
                "Seconds that the snapshot was held to find out which of some objects need something.",
                WRITE_SECONDS,
                &["controller"],
            ),
            schedule_attempts: all.counters(
                "scheduler_schedule_attempts_total",
                "Attempts to find a node for a pod.",
                &["result", "profile"],
            ),
            schedule_seconds: all.histograms(
                "scheduler_scheduling_attempt_duration_seconds",
                "Seconds of an attempt to find a node, with the binding's write.",
                WRITE_SECONDS,
                &["result", "profile"],
            ),
            pending_pods: all.gauges(
                "scheduler_pending_pods",
                "Pods that wait for a node, at the end of the last turn.",
                &["queue"],
            ),
            objects: all.gauges("apiserver_storage_objects", "Stored objects.", &["resource"]),
            revision: all.gauge("rigor_store_revision", "The newest resourceVersion."),
            history: all.gauge("rigor_store_history_length", "Changes remembered for watches."),
            commits: all.gauge(
                "rigor_store_commits",
                "Transactions of the store since its start, each of one or more writes.",
            ),
            committed_writes: all
                .gauge("rigor_store_committed_writes", "Writes in the store's transactions since its start."),
            connections: all.gauge("rigor_connections", "Open connections."),
            connections_refused: all.counters(
                "rigor_connections_cut_total",
                "Connections that were closed for a reason of the client's.",
                &["reason"],
            ),
            registry: all.0,
        }
    }

    /// Adds what the operating system counts of this process: CPU seconds, memory, file descriptors, start time.
    pub fn watch_process(&self) {
        // A second registration is refused and changes nothing.
        drop(self.registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self())));
    }

    /// Counts a decision and its writes.
    pub fn decided(&self, controller: &str, outcome: Outcome, writes: usize, took: Duration) {
        self.decisions.with_label_values(&[controller, outcome.label()]).inc();
        if outcome == Outcome::Applied && writes > 0 {
            self.controller_writes
                .with_label_values(&[controller])
                .inc_by(u64::try_from(writes).unwrap_or(u64::MAX));
            self.controller_seconds.with_label_values(&[controller]).observe(took.as_secs_f64());
        }
    }

    /// Counts decisions from which nothing followed, made in one look.
    pub fn looked_at(&self, controller: &str, idle: usize, took: Duration) {
        let idle = u64::try_from(idle).unwrap_or(u64::MAX);
        self.decisions.with_label_values(&[controller, Outcome::Idle.label()]).inc_by(idle);
        self.look_seconds.with_label_values(&[controller]).observe(took.as_secs_f64());
    }

    /// Counts an attempt to find a node; `result` is Kubernetes' `scheduled`, `unschedulable` or `error`.
    pub fn scheduled(&self, result: &'static str, took: Duration) {
        let labels = [result, PROFILE];
        self.schedule_attempts.with_label_values(&labels).inc();
        self.schedule_seconds.with_label_values(&labels).observe(took.as_secs_f64());
    }

    /// The counter of lines sent to watches of a kind.
    pub fn watched(&self, group: &str, version: &str, kind: &str) -> IntCounter {
        self.watch_events.with_label_values(&[group, version, kind])
    }

    /// The histogram of one operation of the store.
    pub fn store_operation(&self, operation: &str) -> Histogram {
        self.store_writes.with_label_values(&[operation])
    }
}

/// The scheduler's name in its metrics.
const PROFILE: &str = "default-scheduler";
