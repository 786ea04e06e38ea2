//! The state machine: one input in, outputs and a deadline out. This file holds the state and the order of
//! things; what is asked of the server next is `requests`, what its answers mean `answers`, the pods are in
//! `pods`, their watch in `watch`. Whatever the server or the link does, the worst that may happen here is
//! a console line and another try (KLET-06).

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::claims::{Ledger, Unit};
use crate::config::Config;
use crate::events::Events;
use crate::flight::Flight;
use crate::heap::{Heap, offered};
use crate::link::{Link, LinkState};
use crate::node::{Figures, View};
use crate::pod::PodWorker;
use crate::random::Random;
use crate::seam::{Boot, ConnId, Input, Now, Output, ResetReason};
use crate::wall::{Wall, WallClock};
use crate::watch::Sync;

/// Longest wait for an answer or a connection, in milliseconds.
const LONGEST_TIMEOUT: u64 = 4000;
/// Console lines that wait for the shell; more are dropped.
const MAX_WAITING_LINES: usize = 64;
/// Free heap may drift this far, in bytes, before it is reported out of turn.
const MEMORY_DRIFT: u32 = 4096;
/// Shortest time between two reports because of drift, in milliseconds.
const DRIFT_SPACING: u64 = 2000;
/// How long a change waits for others before it is reported, in milliseconds.
const REPORT_DELAY: u64 = 100;

/// When something that failed is tried again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Retry {
    pub(crate) failures: u8,
    /// In milliseconds; not before.
    pub(crate) due: u64,
}

impl Retry {
    /// It failed once more: 0.5 s, 1 s, … `longest` milliseconds, with jitter.
    pub(crate) fn failed(&mut self, millis: u64, longest: u64, random: &mut Random) {
        self.due = millis + random.jitter((500u64 << self.failures.min(10)).min(longest), 20);
        self.failures = self.failures.saturating_add(1);
    }

    /// It worked.
    pub(crate) fn worked(&mut self) {
        *self = Retry::default();
    }
}

/// How far the Node is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registration {
    /// To be created.
    Create,
    /// It exists; the labels are to be written.
    Adopt,
    Done,
}

/// The Node object and its status.
#[derive(Debug)]
pub(crate) struct NodeDuty {
    pub(crate) registration: Registration,
    pub(crate) retry: Retry,
    pub(crate) uid: String,
    /// What the API shows of the conditions; `None` when that has to be read first.
    pub(crate) view: Option<View>,
    /// What it showed of them before the last report, where nothing speaks for a change: it stands in for an answer that
    /// cannot be read.
    pub(crate) before: Option<View>,
    pub(crate) report_due: u64,
    pub(crate) reported_at: u64,
    /// The next report carries everything.
    pub(crate) full: bool,
    pub(crate) reported: Option<Figures>,
    /// The last report was refused because someone else had written meanwhile.
    pub(crate) contested: bool,
    pub(crate) said_ready: bool,
}

/// Whether the control plane takes this board for alive, as far as known. Unless it does, nothing is said of
/// pods: it would be contradicted as often as it is said (NODE-27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Sound,
    /// The lease may have lapsed, as was noticed at this instant: a renewal comes first.
    Doubted(u64),
    /// The lease had lapsed and was renewed: the node's report comes first.
    Returning,
}

/// The Lease.
#[derive(Debug)]
pub(crate) struct LeaseDuty {
    pub(crate) due: u64,
    pub(crate) create: bool,
    pub(crate) failures: u8,
    /// When the server last took a renewal, by its own clock.
    pub(crate) taken_at: Option<Wall>,
    pub(crate) standing: Standing,
}

/// The kubelet of one board, from boot to power-off.
#[derive(Debug)]
pub struct Kubelet {
    pub(crate) config: Config,
    /// Host and port, as the Host header has them.
    pub(crate) host: String,
    pub(crate) random: Random,
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) deadline: u64,
    pub(crate) millis: u64,
    pub(crate) heap: Heap,
    /// Heap for pods in all, in bytes, as measured first.
    pub(crate) memory_capacity: Option<u32>,
    pub(crate) clock: WallClock,
    pub(crate) reset: ResetReason,
    pub(crate) boot_id: u64,
    pub(crate) containers_started: u64,
    pub(crate) address: Option<[u8; 4]>,
    pub(crate) requests: Link,
    pub(crate) watch: Link,
    pub(crate) flight: Option<Flight>,
    /// How many requests in a row were pushed aside by a renewal.
    pub(crate) pushed_aside: u8,
    /// How long the last answer took, in milliseconds; lists do not count.
    pub(crate) took: u64,
    /// The server does not answer, since this instant.
    pub(crate) out_of_contact: Option<u64>,
    /// Some answer came since boot.
    pub(crate) heard: bool,
    pub(crate) node: NodeDuty,
    pub(crate) lease: LeaseDuty,
    pub(crate) sync: Sync,
    pub(crate) pods: Vec<PodWorker>,
    pub(crate) ledger: Ledger,
    pub(crate) events: Events,
}

impl Kubelet {
    /// A kubelet that has just booted; its first output is the banner.
    pub fn new(config: Config, boot: Boot) -> Self {
        let mut random = Random::new(boot.seed);
        let longest_wait = u64::from(config.lease.renew_millis).min(2000);
        let ledger = Ledger::new(&config);
        let mut kubelet = Kubelet {
            host: format!("{}:{}", config.server.host, config.server.port),
            boot_id: random.next(),
            random,
            outputs: VecDeque::new(),
            deadline: u64::MAX,
            millis: 0,
            heap: Heap::default(),
            memory_capacity: None,
            clock: WallClock::default(),
            reset: boot.reason,
            containers_started: 0,
            address: None,
            requests: Link::new(ConnId::REQUESTS, longest_wait),
            watch: Link::new(ConnId::WATCH, longest_wait),
            flight: None,
            pushed_aside: 0,
            took: 0,
            out_of_contact: None,
            heard: false,
            node: NodeDuty {
                registration: Registration::Create,
                retry: Retry::default(),
                uid: String::new(),
                view: None,
                before: None,
                report_due: 0,
                reported_at: 0,
                full: true,
                reported: None,
                contested: false,
                said_ready: false,
            },
            lease: LeaseDuty { due: 0, create: true, failures: 0, taken_at: None, standing: Standing::Sound },
            sync: Sync::default(),
            pods: Vec::new(),
            ledger,
            events: Events::default(),
            config,
        };
        let (version, board) = (env!("CARGO_PKG_VERSION"), &kubelet.config.board.name);
        let banner = format!("rigor kubelet {version} board={board} reset={}", kubelet.reset.as_str());
        kubelet.log(banner);
        kubelet
    }

    /// Takes one input; afterwards the shell drains [`Kubelet::next_output`] and looks at
    /// [`Kubelet::deadline`].
    pub fn handle(&mut self, now: Now, input: Input<'_>) {
        self.millis = now.millis;
        let held = self.reserved_bytes();
        let capacity = *self.memory_capacity.get_or_insert(now.free_heap.saturating_add(held));
        self.heap = Heap::measured(offered(capacity, held, now.free_heap));
        match input {
            Input::NetworkUp { address } => self.network_up(address),
            Input::NetworkDown => self.network_down(),
            Input::Connected(conn) if conn == ConnId::REQUESTS => {
                let _expected = self.requests.connected();
            }
            Input::Connected(_) => {
                if self.watch.connected() {
                    self.begin_watch();
                }
            }
            Input::Received(conn, bytes) if conn == ConnId::REQUESTS => self.received_answer(bytes),
            Input::Received(_, bytes) => self.received_watch(bytes),
            Input::Closed(conn) if conn == ConnId::REQUESTS => self.requests_closed(),
            Input::Closed(_) => self.watch_closed(),
            Input::Tick => {}
        }
        self.advance_pods();
        self.pump();
        self.note_figures();
        self.deadline = self.next_deadline().max(self.millis + 1);
    }

    /// The next thing to do, in order; `None` when there is nothing left.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the kubelet wants [`Input::Tick`], in milliseconds since boot; `u64::MAX` for never.
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Heap held for pods, in bytes, for shells that model their heap.
    pub fn reserved_bytes(&self) -> u32 {
        self.pods.iter().map(PodWorker::held).fold(0, u32::saturating_add)
    }

    /// The configuration it runs by.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// One console line; the oldest gives way when the shell does not take them.
    pub(crate) fn log(&mut self, line: String) {
        let is_line = |output: &Output| matches!(output, Output::Log(_));
        if self.outputs.iter().filter(|o| is_line(o)).count() >= MAX_WAITING_LINES
            && let Some(oldest) = self.outputs.iter().position(is_line)
        {
            let _dropped = self.outputs.remove(oldest);
        }
        self.outputs.push_back(Output::Log(line));
    }

    /// The server's time now, as the API writes it.
    pub(crate) fn wall(&self) -> String {
        self.clock.at(self.millis).rfc3339()
    }

    /// The board's address as text.
    pub(crate) fn ip(&self) -> String {
        let [a, b, c, d] = self.address.unwrap_or_default();
        format!("{a}.{b}.{c}.{d}")
    }

    /// How long to wait for an answer, in milliseconds: less where leases are short.
    pub(crate) fn timeout(&self) -> u64 {
        (u64::from(self.config.lease.duration_seconds) * 1000 / 3).clamp(1000, LONGEST_TIMEOUT)
    }

    fn network_up(&mut self, address: [u8; 4]) {
        if self.address == Some(address) {
            return;
        }
        self.network_down();
        self.address = Some(address);
        self.requests.reset();
        self.watch.reset();
        self.requests.down(self.millis, true, &mut self.outputs);
        self.watch.down(self.millis, true, &mut self.outputs);
        (self.node.full, self.node.report_due) = (true, self.millis);
        self.pods.iter_mut().for_each(|pod| pod.posting.touch());
        let line = format!("network up address={}", self.ip());
        self.log(line);
    }

    fn network_down(&mut self) {
        if self.address.take().is_some() {
            self.abandon_flight();
            self.requests.down(self.millis, false, &mut self.outputs);
            self.watch.down(self.millis, false, &mut self.outputs);
            self.out_of_contact.get_or_insert(self.millis);
            self.log("network down".into());
        }
    }

    /// Times out what is overdue, opens what is needed, sends what is due.
    fn pump(&mut self) {
        if self.address.is_none() {
            return;
        }
        let overdue = match (self.requests.state, &self.flight) {
            (LinkState::Opening { until }, _) if until <= self.millis => Some("no connection in time"),
            (LinkState::Up, Some(flight)) if flight.until <= self.millis => Some("no answer in time"),
            _ => None,
        };
        if let Some(reason) = overdue {
            self.lose_requests(false, reason);
        } else if self.renewal_preempts_at() <= self.millis {
            // A renewal waits for nobody: the slow request is made again afterwards.
            self.pushed_aside = self.pushed_aside.saturating_add(1);
            self.abandon_flight();
            self.requests.down(self.millis, false, &mut self.outputs);
        }
        let timeout = self.timeout();
        self.requests.open_if_due(self.millis, timeout, &mut self.outputs);
        if self.requests.is_up() && self.flight.is_none() {
            self.send_next();
        }
        self.pump_watch();
    }

    /// When a renewal that is due pushes the request aside that is on its way; in milliseconds.
    fn renewal_preempts_at(&self) -> u64 {
        // Where every answer takes its time, nothing but renewals would ever come through: then they wait longer, as the
        // lease allows.
        let patience = u64::from(self.config.lease.renew_millis / 10).max(300) << self.pushed_aside.min(6);
        let longest = u64::from(self.config.lease.duration_seconds) * 1000 / 4;
        let patience = patience.min(longest.max(300));
        match &self.flight {
            Some(flight) if self.heard && !flight.is_renewal() => self.lease.due.max(flight.sent + patience),
            Some(_) | None => u64::MAX,
        }
    }

    /// Whether the next renewal would find the connection taken if something else were sent now: over a slow link that would
    /// have to be pushed aside, or the renewal to wait (NODE-01). Where an answer takes half a period nothing waits for
    /// renewals, for hardly anything else would come through.
    pub(crate) fn renewal_is_near(&self) -> bool {
        let period = u64::from(self.config.lease.renew_millis);
        self.heard && self.took * 2 < period && self.lease.due < self.millis + self.took
    }

    /// Reports sooner when the figures have changed since the last report.
    fn note_figures(&mut self) {
        let Some(reported) = &self.node.reported else { return };
        let now = self.figures();
        let same_claims = now.units == reported.units
            && now.psram == reported.psram
            && now.held == reported.held
            && now.address == reported.address;
        let drift = now.memory.abs_diff(reported.memory);
        if !same_claims {
            self.report_soon();
        } else if drift >= MEMORY_DRIFT {
            let due = (self.node.reported_at + DRIFT_SPACING).max(self.millis + REPORT_DELAY);
            self.node.report_due = self.node.report_due.min(due);
        }
    }

    /// The node's status is to be reported, after what else is about to happen.
    pub(crate) fn report_soon(&mut self) {
        self.node.report_due = self.node.report_due.min(self.millis + REPORT_DELAY);
    }

    /// What a report would say now.
    pub(crate) fn figures(&self) -> Figures {
        Figures {
            memory: self.heap.free(),
            units: Unit::ALL.map(|unit| self.ledger.free(unit)),
            psram: self.ledger.psram_free(),
            held: self.reserved_bytes(),
            address: self.address.unwrap_or_default(),
        }
    }

    fn next_deadline(&self) -> u64 {
        let pods = self.pods.iter().map(PodWorker::deadline).min().unwrap_or(u64::MAX);
        if self.address.is_none() {
            return pods;
        }
        let requests = match (self.requests.state, &self.flight) {
            (LinkState::Down { retry_at }, _) => retry_at,
            (LinkState::Opening { until }, _) => until,
            (LinkState::Up, Some(flight)) => flight.until.min(self.renewal_preempts_at()),
            (LinkState::Up, None) => self.next_request_due(),
        };
        pods.min(requests).min(self.watch_deadline())
    }
}
