//! What injected faults do: power cuts and kills with their ends, repeats of requests, connections that fall silent.
//!
//! The scenario's acts go before faults. A board that the scenario has cut or halted, and a server that it has stopped,
//! are left alone; an act on a board or server that a fault has taken down ends that fault first, so that nothing comes
//! back later that the scenario wants down, and nothing that it wants up stays away. Each fault that strikes is recorded.

use std::collections::BTreeMap;

use rigor_model::faults::{Fault, FaultKind};
use rigor_rigs::PowerAct;
use rigor_trace::history::{Fact, Phase};

use crate::link::{Carried, Connection};
use crate::server;
use crate::simulation::{Event, Simulation};

/// Faults that are not over, and what is needed to end them.
#[derive(Debug, Default)]
pub(crate) struct Struck {
    /// Boards without power, by index.
    dark: BTreeMap<usize, Fault>,
    /// The server is down.
    down: Option<Fault>,
    /// Connections that fell silent.
    silent: BTreeMap<Connection, Vec<Fault>>,
    /// Requests that come a second time: of which board, and their bytes.
    repeats: BTreeMap<u64, (usize, Vec<u8>)>,
    repeated: u64,
    spared: bool,
}

impl Struck {
    /// Whether it is a fault that the server is down.
    pub(crate) fn killed(&self) -> bool {
        self.down.is_some()
    }

    /// Whether the server is spared: the runner is reading an answer that goes on.
    pub(crate) fn spare_server(&mut self, spared: bool) {
        self.spared = spared;
    }
}

/// A request that comes a second time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repeat {
    pub(crate) number: u64,
    after: u64,
    second: bool,
}

impl Repeat {
    /// When, if the one that its client sees the answer to arrives at `at`.
    pub(crate) fn at(self, at: u64) -> u64 {
        if self.second { at.saturating_sub(self.after) } else { at + self.after }
    }
}

/// What became of a step of the server.
#[derive(Debug)]
pub(crate) enum Step<T> {
    /// It was taken.
    Taken(T),
    /// The server was killed before it, in it, or when it had just been taken.
    Killed(Option<T>),
}

impl Simulation {
    /// The same trial with faults.
    pub(crate) fn with_faults(mut self, sites: crate::faults::Sites) -> Self {
        self.sites = sites;
        self
    }

    /// Sets the clocks of all boards.
    pub(crate) fn set_clocks(&mut self) {
        for index in 0..self.seats.len() {
            let Some(fault) = self.sites.clock(index) else { continue };
            if let FaultKind::Clock { offset, ppm } = fault.kind {
                self.seats[index].board.set_drift(ppm);
                self.server.set_offset(index, offset);
            }
            self.begin(fault);
        }
    }

    fn begin(&mut self, fault: Fault) {
        self.record(Fact::Fault { fault, phase: Phase::Begin });
    }

    fn end(&mut self, fault: Fault) {
        self.record(Fact::Fault { fault, phase: Phase::End });
    }

    /// Records a fault of a message and prepares its repeat, if it is that.
    pub(crate) fn strike_message(
        &mut self,
        index: usize,
        connection: Connection,
        carried: &Carried,
        fault: &Fault,
    ) -> Option<Repeat> {
        self.begin(fault.clone());
        match (fault.kind, carried) {
            (FaultKind::Duplicate { after, second }, Carried::Bytes(bytes)) => {
                let number = self.struck.repeated;
                self.struck.repeated += 1;
                self.struck.repeats.insert(number, (index, bytes.clone()));
                Some(Repeat { number, after, second })
            }
            (FaultKind::Lose {} | FaultKind::Cut { silent: true, .. }, _) => {
                if self.seats[index].board.wants(connection) {
                    self.struck.silent.entry(connection).or_default().push(fault.clone());
                } else {
                    self.end(fault.clone());
                }
                None
            }
            (
                FaultKind::Duplicate { .. }
                | FaultKind::Delay { .. }
                | FaultKind::Reorder { .. }
                | FaultKind::Cut { silent: false, .. }
                | FaultKind::Clock { .. }
                | FaultKind::PowerCut { .. }
                | FaultKind::Kill { .. },
                _,
            ) => None,
        }
    }

    /// The board gave a connection up: whoever waited on it waits no more.
    pub(crate) fn end_silence(&mut self, connection: Connection) {
        for fault in self.struck.silent.remove(&connection).into_iter().flatten() {
            self.end(fault);
        }
    }

    /// A request comes a second time, on a connection of its own, and nobody reads the answer.
    pub(crate) fn repeat(&mut self, number: u64) -> Result<(), server::Fault> {
        let Some((index, bytes)) = self.struck.repeats.remove(&number) else { return Ok(()) };
        if !self.server.is_up() || self.seats[index].link.is_cut() {
            return Ok(());
        }
        let connection = self.numbering.next();
        let asked = self.step(|it| {
            let mut called = false;
            for carried in [Carried::Open, Carried::Bytes(bytes), Carried::Reset] {
                let who = (index, it.seats[index].board.name());
                called |= it.server.arrive(who, connection, carried)?.1;
            }
            Ok(called)
        })?;
        match asked {
            Step::Taken(true) => self.decide(),
            Step::Taken(false) | Step::Killed(_) => Ok(()),
        }
    }

    /// Between two events of a board: its power may go.
    pub(crate) fn strike_board(&mut self, index: usize) {
        let now = self.now();
        let fits = self.seats[index].board.is_running() && self.sound().is_ok();
        let Some(fault) = self.sites.power(index, now, fits) else { return };
        if let FaultKind::PowerCut { dark } = fault.kind {
            self.queue.push(now + dark, Event::PowerBack(index, fault.nth));
        }
        self.struck.dark.insert(index, fault.clone());
        self.begin(fault);
        let effects = self.seats[index].board.cut();
        self.perform(index, effects);
    }

    /// The time without power is over, unless something else ended it.
    pub(crate) fn power_back(&mut self, index: usize, number: u64) {
        if self.struck.dark.get(&index).is_some_and(|fault| fault.nth == number) {
            self.restore_power(index);
        }
    }

    fn restore_power(&mut self, index: usize) {
        let now = self.now();
        let Some(fault) = self.struck.dark.remove(&index) else { return };
        self.end(fault);
        let effects = self.seats[index].board.restore(now);
        self.perform(index, effects);
    }

    /// The scenario acts on a board's power: a power cut that is a fault ends before that.
    pub(crate) fn take_over_power(&mut self, index: usize, act: PowerAct) {
        match act {
            // The act itself does to the board what is left to do.
            PowerAct::Cut | PowerAct::Restore | PowerAct::Cycle => {
                if let Some(fault) = self.struck.dark.remove(&index) {
                    self.end(fault);
                }
            }
            // Only a board with power can be halted, or go on.
            PowerAct::Hang | PowerAct::Resume => self.restore_power(index),
        }
    }

    /// Lets the server take a step, before or in which it may be killed.
    ///
    /// # Errors
    /// What the step ran into, unless it was a kill.
    pub(crate) fn step<T>(
        &mut self,
        take: impl FnOnce(&mut Self) -> Result<T, server::Fault>,
    ) -> Result<Step<T>, server::Fault> {
        let Some((fault, writes)) = self.killing() else { return take(self).map(Step::Taken) };
        let mut taken = None;
        if writes > 0 {
            self.server.arm(writes);
            let step = take(self);
            self.server.disarm();
            taken = match step {
                Ok(step) => Some(step),
                Err(server::Fault::Killed) => None,
                Err(wrong @ server::Fault::Wrong(_)) => return Err(wrong),
            };
        }
        self.kill(fault);
        Ok(Step::Killed(taken))
    }

    /// After the last of several steps: it may be killed where nothing is to be done.
    pub(crate) fn rest(&mut self) {
        if let Some((fault, _)) = self.killing() {
            self.kill(fault);
        }
    }

    /// The kill that is due, and how many writes it still leaves room for.
    fn killing(&mut self) -> Option<(Fault, u64)> {
        let fits = self.server.is_up() && !self.struck.spared;
        let fault = self.sites.kill(self.now(), fits)?;
        let FaultKind::Kill { writes, .. } = fault.kind else { return None };
        Some((fault, writes))
    }

    fn kill(&mut self, fault: Fault) {
        if let FaultKind::Kill { down, .. } = fault.kind {
            self.queue.push(self.now() + down, Event::ServerBack(fault.nth));
        }
        self.struck.down = Some(fault.clone());
        self.look_once_more();
        self.begin(fault);
        self.end_server("killed");
    }

    /// The time without a server is over, unless something else ended it.
    pub(crate) fn server_back(&mut self, number: u64) -> Result<(), server::Fault> {
        match self.struck.down.take_if(|fault| fault.nth == number) {
            Some(fault) => self.start_server(Some(Fact::Fault { fault, phase: Phase::End })),
            None => Ok(()),
        }
    }

    /// The scenario acts on the server: an outage that is a fault ends before that, and the server is the scenario's.
    pub(crate) fn take_over_server(&mut self) {
        if let Some(fault) = self.struck.down.take() {
            self.end(fault);
        }
    }
}
