//! One board of a rig of processes: power, link and console over whatever machine plays it.
//!
//! The machine (a process of the host shell, an emulator) only says how it is started, halted and unplugged; what
//! power and link mean is the same for all and lies here, with the relay that keeps a cut silent.

use crate::ledger::Ledger;
use crate::log::Log;
use crate::process::Process;
use crate::relay::Relay;
use crate::world::{Infra, LinkChange, PowerAct};
use rigor_trace::Fact;
use std::process::Command;
use std::sync::Arc;

/// A way to play a board.
pub(crate) trait Machine: Send {
    /// The command that is the board with power on. Its standard output is the console.
    fn command(&self) -> Command;

    /// Called when the process runs; a link that was cut before stays cut.
    fn started(&mut self, process: &Process, link_up: bool) -> Result<(), Infra>;

    /// Stops or resumes the processor.
    fn halt(&mut self, process: &Process, halted: bool) -> Result<(), Infra>;

    /// Takes the link down or up beyond what the relay does.
    fn set_link(&mut self, up: bool) -> Result<(), Infra>;
}

/// One board.
pub(crate) struct Board {
    name: String,
    machine: Box<dyn Machine>,
    relay: Relay,
    process: Option<Process>,
    link_up: bool,
    log: Arc<Log>,
    ledger: Arc<Ledger>,
}

impl Board {
    /// A board without power.
    pub(crate) fn new(name: &str, machine: Box<dyn Machine>, relay: Relay, ledger: Arc<Ledger>) -> Self {
        let log = Arc::new(Log::of_board(name, ledger.clone()));
        Self { name: name.to_owned(), machine, relay, process: None, link_up: true, log, ledger }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What its process wrote besides the console.
    pub(crate) fn log(&self) -> String {
        self.log.text()
    }

    pub(crate) fn power(&mut self, act: PowerAct) -> Result<(), Infra> {
        let begun = self.ledger.now();
        match act {
            PowerAct::Cut => self.off(),
            PowerAct::Restore => self.on()?,
            PowerAct::Cycle => {
                self.off();
                self.on()?;
            }
            PowerAct::Hang => self.halt(true)?,
            PowerAct::Resume => self.halt(false)?,
        }
        self.ledger.note(Fact::Power { board: self.name.clone(), act, begun });
        Ok(())
    }

    pub(crate) fn link(&mut self, change: LinkChange) -> Result<(), Infra> {
        let begun = self.ledger.now();
        let up = match change {
            LinkChange::Cut => false,
            LinkChange::Heal => true,
            LinkChange::Delay(_) | LinkChange::Loss(_) => {
                return Err(Infra::lasting(
                    format!("the link of board {} can be cut and healed only", self.name),
                    "run the scenario on a rig that offers link-quality",
                ));
            }
        };
        // The relay last when healing and first when cutting: a half-cut link is a cut one.
        if !up {
            self.relay.cut();
        }
        if self.process.is_some() {
            self.machine.set_link(up)?;
        }
        if up {
            self.relay.heal();
        }
        self.link_up = up;
        self.ledger.note(Fact::link(&self.name, change, begun));
        Ok(())
    }

    /// Ends the board for good.
    pub(crate) fn off(&mut self) {
        // Silence first: the kernel's FIN for the dying process must not reach the server.
        self.relay.power_lost();
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    fn on(&mut self) -> Result<(), Infra> {
        if self.process.as_ref().is_some_and(Process::running) {
            return Ok(());
        }
        // A process that ended by itself leaves its connections to the relay's ordinary end.
        self.process = None;
        self.relay.power_returned();
        let command = self.machine.command();
        let program = command.get_program().to_string_lossy().into_owned();
        let process = Process::start(command, None, self.log.clone()).map_err(|error| {
            Infra::lasting(
                format!("board {}: {program} could not be started: {error}", self.name),
                "check that it is a program for this machine",
            )
        })?;
        let started = self.machine.started(&process, self.link_up);
        let running = process.running();
        self.process = Some(process);
        started.map_err(|error| {
            if running {
                error
            } else {
                Infra::transient(format!("board {}: {}", self.name, self.log.last_line()))
            }
        })
    }

    fn halt(&mut self, halted: bool) -> Result<(), Infra> {
        match &self.process {
            Some(process) if process.running() => self.machine.halt(process, halted),
            Some(_) | None => Err(Infra::lasting(
                format!("board {} has no power: its processor can be neither halted nor resumed", self.name),
                "restore its power first",
            )),
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.off();
    }
}
