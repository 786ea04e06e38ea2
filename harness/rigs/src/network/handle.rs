//! The trial's end of the network's thread: acts, and what evidence is saved.

use super::port::Port;
use super::thread::{Command, Thread};
use crate::board::Cable;
use crate::clock::Clock;
use crate::world::{Infra, LinkChange};
use rigor_switch::Plan;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// What can be done to a board's place in the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Nothing passes its link.
    Cut,
    /// Its link is whole, without delay or loss.
    Heal,
    /// Frames on its link take this many microseconds longer, one way.
    Delay(u64),
    /// This percentage of the frames on its link is lost.
    Loss(u8),
    /// It is gone without a word.
    PowerLost,
    /// Its emulator is about to be started.
    PowerReturned,
}

/// The network; its thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Network {
    commands: Sender<Command>,
    /// A byte written here makes the thread look at its commands.
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Network {
    /// Listens for the emulators at `sockets`, one a board of the plan, and carries connections on to `upstream`.
    pub(crate) fn start(
        plan: &Plan,
        sockets: &[PathBuf],
        upstream: SocketAddr,
        clock: Clock,
    ) -> io::Result<Self> {
        let ports = sockets.iter().map(|path| Port::listen(path)).collect::<io::Result<Vec<_>>>()?;
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let (commands, queue) = channel();
        let thread = Thread::new(plan, ports, upstream, clock, queue, woken);
        // One process may have several; what they serve tells them apart.
        let name = format!("network {}", upstream.port());
        let thread = std::thread::Builder::new().name(name).spawn(move || thread.run())?;
        Ok(Self { commands, wake, thread: Some(thread) })
    }

    /// Does something to the board in this place; done when it returns.
    pub(crate) fn act(&self, board: usize, act: Act) -> Result<(), Infra> {
        self.ask(|done| Command::Act { board, act, done })
    }

    /// Files for the evidence: name and content.
    pub(crate) fn evidence(&self) -> Result<Vec<(&'static str, Vec<u8>)>, Infra> {
        self.ask(Command::Evidence)
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Result<T, Infra> {
        let (answer, answered) = channel();
        let sent = self.commands.send(command(answer));
        self.wake();
        sent.ok()
            .and_then(|()| answered.recv().ok())
            .ok_or_else(|| Infra::transient("the thread of the boards' network has ended"))
    }

    fn wake(&self) {
        // A full pipe has woken it already.
        let _ = (&self.wake).write(&[0]);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::End);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One board's place in the network.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) network: Arc<Network>,
    /// Which board it is.
    pub(crate) board: usize,
}

impl Cable for Seat {
    fn change(&mut self, change: LinkChange) -> Result<(), Infra> {
        let act = match change {
            LinkChange::Cut => Act::Cut,
            LinkChange::Heal => Act::Heal,
            LinkChange::Delay(length) => Act::Delay(u64::try_from(length.as_micros()).unwrap_or(u64::MAX)),
            LinkChange::Loss(percent) => Act::Loss(percent),
            LinkChange::Garbage(_) => {
                return Err(Infra::lasting(
                    "the switch of this rig passes frames on as they are",
                    "run the scenario on a rig that offers link-garbage",
                ));
            }
        };
        self.network.act(self.board, act)
    }

    fn power_lost(&mut self) -> Result<(), Infra> {
        self.network.act(self.board, Act::PowerLost)
    }

    fn power_returned(&mut self) -> Result<(), Infra> {
        self.network.act(self.board, Act::PowerReturned)
    }
}
