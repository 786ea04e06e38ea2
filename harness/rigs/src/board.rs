//! One board of a rig of processes: power, link and console over whatever machine plays it.
//!
//! The machine (a process of the host shell, an emulator) only says how it is started and halted, the cable what its
//! link can do; what power and link mean is the same for all and lies here. Silence comes first and sound last: the
//! cable is dead before a process is killed and alive before one is started.

use crate::ledger::Ledger;
use crate::log::Log;
use crate::process::{Input, Process, Unsaid};
use crate::qemu::sha256;
use crate::world::{Infra, LinkChange, PowerAct};
use rigor_trace::Fact;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

/// A way to play a board.
pub(crate) trait Machine: Send {
    /// The command that is the board with power on. Its standard output is the console.
    fn command(&self) -> Command;

    /// Stops or resumes the processor.
    fn halt(&mut self, process: &Process, halted: bool) -> Result<(), Infra>;

    /// Whether lines that are sent to its console reach it.
    fn listens(&self) -> bool {
        false
    }

    /// The image of that name, or the one that boards begin with.
    fn image(&self, name: Option<&str>) -> Result<PathBuf, Infra> {
        let _ = name;
        Err(Infra::lasting("boards of this rig have no image", "run the scenario on a rig that offers flash"))
    }

    /// Puts an image on it while it has no power, and erases what it stored where that is asked for.
    fn flash(&mut self, image: PathBuf, erase: bool) -> Result<(), Infra> {
        let _ = (image, erase);
        Ok(())
    }
}

/// A board's way to the control plane.
pub(crate) trait Cable: Send {
    /// Cuts, heals, delays or thins the link; done when it returns.
    fn change(&mut self, change: LinkChange) -> Result<(), Infra>;

    /// The board is about to be gone without a word.
    fn power_lost(&mut self) -> Result<(), Infra>;

    /// The board is about to start anew.
    fn power_returned(&mut self) -> Result<(), Infra>;
}

/// One board.
pub(crate) struct Board {
    name: String,
    machine: Box<dyn Machine>,
    cable: Box<dyn Cable>,
    process: Option<Process>,
    log: Arc<Log>,
    ledger: Arc<Ledger>,
}

impl Board {
    /// A board without power.
    pub(crate) fn new(
        name: &str,
        machine: Box<dyn Machine>,
        cable: Box<dyn Cable>,
        ledger: Arc<Ledger>,
    ) -> Self {
        let log = Arc::new(Log::of_board(name, ledger.clone()));
        Self { name: name.to_owned(), machine, cable, process: None, log, ledger }
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
            PowerAct::Cut => self.off()?,
            PowerAct::Restore => self.on()?,
            PowerAct::Cycle => {
                self.off()?;
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
        self.cable.change(change)?;
        self.ledger.note(Fact::link(&self.name, change, begun));
        Ok(())
    }

    /// Puts an image on the board, and starts it.
    pub(crate) fn flash(&mut self, image: Option<&str>, erase: bool) -> Result<(), Infra> {
        let begun = self.ledger.now();
        let file = self.machine.image(image)?;
        let sha256 = sha256(&file)?;
        self.off()?;
        self.machine.flash(file, erase)?;
        self.on()?;
        let (board, image) = (self.name.clone(), image.map(str::to_owned));
        self.ledger.note(Fact::Flash { board, image, sha256, erased: erase, begun });
        Ok(())
    }

    /// Sends a line to the console.
    pub(crate) fn send(&mut self, line: &str) -> Result<(), Infra> {
        let said = self.process.as_ref().map_or(Err(Unsaid::Deaf), |process| process.say(line));
        said.map_err(|unsaid| match unsaid {
            Unsaid::Unread => Infra::lasting(
                format!("board {} leaves unread what was sent to its console before", self.name),
                "send less, or flash an image that reads its console",
            ),
            Unsaid::Deaf => Infra::lasting(
                format!("board {} has no power: nobody reads its console", self.name),
                "restore its power first",
            ),
        })?;
        self.ledger.note(Fact::Sent { board: self.name.clone(), line: line.to_owned() });
        Ok(())
    }

    /// Ends the board.
    pub(crate) fn off(&mut self) -> Result<(), Infra> {
        // Silence first: what the dying process or the kernel says for it must not reach the server.
        let silenced = self.cable.power_lost();
        if let Some(process) = self.process.take() {
            process.kill();
        }
        silenced
    }

    fn on(&mut self) -> Result<(), Infra> {
        if self.process.as_ref().is_some_and(Process::running) {
            return Ok(());
        }
        self.process = None;
        self.cable.power_returned()?;
        let command = self.machine.command();
        let program = command.get_program().to_string_lossy().into_owned();
        let input = if self.machine.listens() { Input::Open } else { Input::Nothing };
        let process = Process::start(command, input, self.log.clone()).map_err(|error| {
            Infra::lasting(
                format!("board {}: {program} could not be started: {error}", self.name),
                "check that it is a program for this machine",
            )
        })?;
        self.process = Some(process);
        Ok(())
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
        // Nothing is left to tell it to.
        let _ = self.off();
    }
}
