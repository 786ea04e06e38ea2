//! The network of one trial: switch, DHCP server and gateway together, and the acts on boards and their links.
//!
//! Bytes that a board's stack has sent reach the control plane only while its link carries and it is in the same life:
//! nothing leaves after a cut, and a connection whose board lost its power is mute for good, though it stays open until
//! the board's next life resets it.

use crate::dhcp::Server;
use crate::gateway::{ConnectionId, Event, Gateway};
use crate::link::{Counts, Direction, Link};
use crate::pcap::Capture;
use crate::switch::{Frame, Step, Switch};
use std::collections::VecDeque;

/// Most bytes of a trial's capture.
const CAPTURE: usize = 8 << 20;

/// What a network is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The seed of everything drawn.
    pub seed: u64,
    /// Names of the boards, in the order of their places; their links' fates go by them.
    pub boards: Vec<String>,
    /// At which port of the gateway the control plane is reached.
    pub port: u16,
}

/// The network.
#[derive(Debug)]
pub struct Network {
    switch: Switch,
    dhcp: Server,
    gateway: Gateway,
    capture: Capture,
    /// How often each board has lost its power.
    lives: Vec<u64>,
    out: VecDeque<(usize, Frame)>,
}

impl Network {
    /// A network whose boards have no power yet and whose links are whole.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        Self {
            switch: Switch::new(plan.seed, &plan.boards),
            dhcp: Server::new(plan.boards.len()),
            gateway: Gateway::new(plan.seed, plan.port),
            capture: Capture::new(CAPTURE),
            lives: vec![0; plan.boards.len()],
            out: VecDeque::new(),
        }
    }

    /// A board's emulator sent a frame.
    pub fn send(&mut self, now: u64, board: usize, frame: &[u8]) {
        self.switch.send(now, board, frame);
        self.poll(now);
    }

    /// Does what is due by now. To be called after anything else, and at [`Network::poll_at`].
    pub fn poll(&mut self, now: u64) {
        loop {
            self.gateway.poll(now);
            while let Some(frame) = self.gateway.next_frame() {
                self.switch.send_from_gateway(now, frame);
            }
            let mut quiet = true;
            while let Some(step) = self.switch.next_step(now) {
                match step {
                    Step::Switched(_, frame) => self.capture.push(now, frame),
                    Step::Board(board, frame) => self.out.push_back((board, frame)),
                    Step::Gateway(board, frame) => {
                        quiet = false;
                        match self.dhcp.answer(&frame) {
                            Some(answer) => self.switch.send_from_gateway(now, answer),
                            None => self.gateway.receive(now, board, self.lives[board], &frame),
                        }
                    }
                }
            }
            if quiet {
                return;
            }
        }
    }

    /// When [`Network::poll`] has work without anything else happening; an instant in the past means at once.
    pub fn poll_at(&mut self, now: u64) -> Option<u64> {
        self.switch.next_at().into_iter().chain(self.gateway.poll_at(now)).min()
    }

    /// The next frame for a board's emulator.
    pub fn next_frame(&mut self) -> Option<(usize, Frame)> {
        self.out.pop_front()
    }

    /// The emulator did not take a frame: its queue is full.
    pub fn overflowed(&mut self, board: usize) {
        self.switch.link_mut(board).overflowed();
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<Event> {
        self.gateway.next_event()
    }

    /// How many connections there are, dead ones included.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.gateway.len()
    }

    /// The control plane took a connection.
    pub fn admit(&mut self, now: u64, id: ConnectionId) {
        self.gateway.admit(now, id);
    }

    /// The control plane refused a connection.
    pub fn refuse(&mut self, now: u64, id: ConnectionId) {
        self.gateway.refuse(now, id);
    }

    /// Gives out bytes for the control plane, unless they may not leave now; `take` says how many it took.
    pub fn take(&mut self, id: ConnectionId, take: impl FnOnce(&[u8]) -> usize) {
        if self.may_leave(id) {
            self.gateway.take(id, take);
        }
    }

    /// Whether [`Network::take`] has bytes.
    pub fn has_bytes(&mut self, id: ConnectionId) -> bool {
        self.may_leave(id) && self.gateway.has_bytes(id)
    }

    /// Whether the board has ended its side, all its bytes were taken, and the control plane may hear of it now.
    pub fn has_ended(&mut self, id: ConnectionId) -> bool {
        self.may_leave(id) && self.gateway.has_ended(id)
    }

    /// How many bytes [`Network::give`] would take.
    pub fn room(&mut self, id: ConnectionId) -> usize {
        self.gateway.room(id)
    }

    /// Bytes of the control plane, no more than there is [`Network::room`] for.
    pub fn give(&mut self, id: ConnectionId, bytes: &[u8]) {
        self.gateway.give(id, bytes);
    }

    /// The control plane has ended its side.
    pub fn finish(&mut self, id: ConnectionId) {
        self.gateway.finish(id);
    }

    /// The control plane's end of a connection is gone; there will be no [`Event::Gone`] for it.
    pub fn abort(&mut self, now: u64, id: ConnectionId) {
        self.gateway.abort(now, id);
    }

    /// Silence: nothing passes this board's link, and what is under way on it is lost.
    pub fn cut(&mut self, board: usize) {
        self.switch.link_mut(board).set_up(false);
        self.spill(board);
    }

    /// Frames pass again, without delay or loss.
    pub fn heal(&mut self, board: usize) {
        self.switch.link_mut(board).set_up(true);
    }

    /// From now on each frame takes this many microseconds longer, in either direction.
    pub fn delay(&mut self, board: usize, micros: u64) {
        self.switch.link_mut(board).set_delay(micros);
    }

    /// From now on this percentage of the frames is lost, in either direction.
    pub fn loss(&mut self, board: usize, percent: u8) {
        self.switch.link_mut(board).set_loss(percent);
    }

    /// The board is gone without a word.
    pub fn power_lost(&mut self, board: usize) {
        self.lives[board] += 1;
        self.switch.link_mut(board).set_powered(false);
        self.spill(board);
    }

    /// The board is about to start.
    pub fn power_returned(&mut self, board: usize) {
        self.switch.link_mut(board).set_powered(true);
    }

    /// What became of the frames of a board's link.
    #[must_use]
    pub fn counts(&self, board: usize, direction: Direction) -> Counts {
        self.switch.link(board).counts(direction)
    }

    /// The frames that the switch passed on, as a capture file; `zero` is the wall time of microsecond 0.
    #[must_use]
    pub fn capture(&self, zero: u64) -> Vec<u8> {
        self.capture.file(zero)
    }

    fn spill(&mut self, board: usize) {
        self.switch.spill(board);
        self.out.retain(|(to, _)| *to != board);
    }

    fn may_leave(&self, id: ConnectionId) -> bool {
        self.gateway
            .owner(id)
            .is_some_and(|(board, life)| self.lives[board] == life && Link::is_up(self.switch.link(board)))
    }
}

#[cfg(test)]
mod tests;
