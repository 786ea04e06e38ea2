//! A learning Ethernet switch: one port a board, behind a link, and one for the gateway, which has none.
//!
//! A frame first crosses the link of whoever sent it, then is copied to whoever it is for, and crosses the link of
//! each; a cut takes what is under way on its link, in both directions. No frame is handed out before it is due, twice,
//! or after its link was cut; on a link of constant delay none overtakes another.

use crate::address;
use crate::link::{Direction, Link};
use smoltcp::wire::{ETHERNET_HEADER_LEN, EthernetAddress, EthernetFrame};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longest frame that is passed on, in bytes: Ethernet's, with a VLAN tag and without check sum.
pub const LONGEST_FRAME: usize = 1518;

/// Most hardware addresses that are remembered; frames for others go to all.
const MOST_ADDRESSES: usize = 1024;

/// A frame, shared by all who get it.
pub type Frame = Arc<[u8]>;

/// An end of the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Port {
    /// The board in this place.
    Board(usize),
    /// The gateway.
    Gateway,
}

/// A frame on a link.
#[derive(Debug)]
struct UnderWay {
    board: usize,
    direction: Direction,
    frame: Frame,
}

/// What a step of the switch gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The switch has taken in a frame that came through this port, and copied it.
    Switched(Port, Frame),
    /// A frame has come to this board.
    Board(usize, Frame),
    /// A frame of this board has come to the gateway.
    Gateway(usize, Frame),
}

/// The switch.
#[derive(Debug)]
pub struct Switch {
    links: Vec<Link>,
    addresses: BTreeMap<EthernetAddress, Port>,
    /// By due instant and serial number.
    queue: BTreeMap<(u64, u64), UnderWay>,
    serial: u64,
    /// Steps that were taken but not told.
    steps: std::collections::VecDeque<Step>,
}

impl Switch {
    /// A switch with a port for each of `names`, whose boards have no power yet.
    #[must_use]
    pub fn new(seed: u64, names: &[String]) -> Self {
        let boards = (0..names.len()).map(|index| (address::board_mac(index), Port::Board(index)));
        Self {
            links: names.iter().map(|name| Link::new(seed, name)).collect(),
            addresses: boards.chain([(address::GATEWAY_MAC, Port::Gateway)]).collect(),
            queue: BTreeMap::new(),
            serial: 0,
            steps: std::collections::VecDeque::new(),
        }
    }

    /// The link of a board.
    #[must_use]
    pub fn link(&self, board: usize) -> &Link {
        &self.links[board]
    }

    pub(crate) fn link_mut(&mut self, board: usize) -> &mut Link {
        &mut self.links[board]
    }

    /// A board sends a frame.
    pub fn send(&mut self, now: u64, board: usize, frame: &[u8]) {
        if !(ETHERNET_HEADER_LEN..=LONGEST_FRAME).contains(&frame.len()) {
            self.links[board].malformed();
            return;
        }
        self.set_out(now, board, Direction::Up, || frame.into());
    }

    /// The gateway sends a frame.
    pub fn send_from_gateway(&mut self, now: u64, frame: Vec<u8>) {
        self.pass_on(now, Port::Gateway, frame.into());
    }

    /// What has come about by now, one after another.
    pub fn next_step(&mut self, now: u64) -> Option<Step> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Some(step);
            }
            let due = self.queue.first_entry().filter(|first| first.key().0 <= now)?;
            let ((at, _), UnderWay { board, direction, frame }) = due.remove_entry();
            self.links[board].arrived(direction);
            match direction {
                Direction::Down => return Some(Step::Board(board, frame)),
                // Whoever looks late must not add to the delay of the second link.
                Direction::Up => self.pass_on(at, Port::Board(board), frame),
            }
        }
    }

    /// When [`Switch::next_step`] has something next.
    #[must_use]
    pub fn next_at(&self) -> Option<u64> {
        if self.steps.is_empty() { self.queue.first_key_value().map(|(key, _)| key.0) } else { Some(0) }
    }

    /// Nothing that is under way on this board's link arrives any more.
    pub(crate) fn spill(&mut self, board: usize) {
        self.queue.retain(|_, it| it.board != board);
        self.steps.retain(|step| !matches!(step, Step::Gateway(from, _) if *from == board));
        self.links[board].spill();
    }

    fn set_out(&mut self, now: u64, board: usize, direction: Direction, frame: impl FnOnce() -> Frame) {
        if let Some(delay) = self.links[board].send(direction) {
            self.serial += 1;
            self.queue.insert(
                (now.saturating_add(delay), self.serial),
                UnderWay { board, direction, frame: frame() },
            );
        }
    }

    /// Copies a frame to whoever it is for.
    fn pass_on(&mut self, now: u64, from: Port, frame: Frame) {
        let header = EthernetFrame::new_unchecked(&frame[..]);
        let (source, destination) = (header.src_addr(), header.dst_addr());
        if !self.learn(source, from) {
            return;
        }
        self.steps.push_back(Step::Switched(from, frame.clone()));
        match self.addresses.get(&destination).filter(|_| destination.is_unicast()) {
            Some(to) if *to == from => {}
            Some(to) => self.copy(now, from, *to, &frame),
            None => {
                let boards = (0..self.links.len()).map(Port::Board);
                for to in boards.chain([Port::Gateway]).filter(|to| *to != from) {
                    self.copy(now, from, to, &frame);
                }
            }
        }
    }

    fn copy(&mut self, now: u64, from: Port, to: Port, frame: &Frame) {
        match (from, to) {
            (_, Port::Board(board)) => self.set_out(now, board, Direction::Down, || frame.clone()),
            (Port::Board(board), Port::Gateway) => self.steps.push_back(Step::Gateway(board, frame.clone())),
            (Port::Gateway, Port::Gateway) => {}
        }
    }

    /// Remembers where an address is. `false` where a board claims the gateway's: such a frame goes nowhere.
    fn learn(&mut self, source: EthernetAddress, from: Port) -> bool {
        if source == address::GATEWAY_MAC {
            return from == Port::Gateway;
        }
        let known = self.addresses.contains_key(&source);
        if source.is_unicast() && (known || self.addresses.len() < MOST_ADDRESSES) {
            self.addresses.insert(source, from);
        }
        true
    }
}

#[cfg(test)]
mod tests;
