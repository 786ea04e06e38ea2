//! The shell's loop: carry out what the kubelet wants, wait for a socket or its deadline, tell it. It
//! decides nothing.

use std::convert::Infallible;
use std::path::Path;

use anyhow::Context;
use kubelet::{Boot, Config, Input, Kubelet, Now, Output, ResetReason};

use crate::clock::Clock;
use crate::console::Console;
use crate::model::free_heap;
use crate::sockets::{Happened, Sockets};

/// Reads a configuration file.
///
/// # Errors
/// A file that cannot be read or is not a configuration; the message names it.
pub fn load(path: &Path) -> anyhow::Result<Config> {
    let json = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Config::from_json(&json).with_context(|| format!("in {}", path.display()))
}

/// Is a board until the process ends.
///
/// # Errors
/// Only when the host refuses to poll at all.
pub fn run(config: Config, clock: Clock, console: Console) -> anyhow::Result<Infallible> {
    let boot = Boot { reason: ResetReason::PowerOn, seed: Clock::boot_seed() };
    let sockets = Sockets::new(config.server.clone());
    let address = sockets.local_address();
    let mut board = Board { kubelet: Kubelet::new(config, boot), sockets, clock, console };
    board.tell(Input::NetworkUp { address });
    loop {
        let deadline = board.kubelet.deadline();
        let timeout = (deadline != u64::MAX).then(|| deadline.saturating_sub(clock.millis()));
        for id in board.sockets.wait(timeout).context("cannot wait for sockets")? {
            match board.sockets.take(id) {
                Some(Happened::Connected) => board.tell(Input::Connected(id)),
                Some(Happened::Received(bytes)) => board.tell(Input::Received(id, &bytes)),
                Some(Happened::Closed) => board.tell(Input::Closed(id)),
                None => {}
            }
        }
        if clock.millis() >= board.kubelet.deadline() {
            board.tell(Input::Tick);
        }
    }
}

struct Board {
    kubelet: Kubelet,
    sockets: Sockets,
    clock: Clock,
    console: Console,
}

impl Board {
    fn tell(&mut self, input: Input<'_>) {
        let free_heap = free_heap(self.kubelet.config(), &self.kubelet);
        self.kubelet.handle(Now { millis: self.clock.millis(), free_heap }, input);
        while let Some(output) = self.kubelet.next_output() {
            match output {
                Output::Open(id) => self.sockets.open(id),
                Output::Send(id, bytes) => self.sockets.send(id, &bytes),
                Output::Close(id) => self.sockets.close(id),
                Output::Log(line) => self.console.line(&line),
            }
        }
    }
}
