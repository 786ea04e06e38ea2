//! What the tests put around a network: boards ([`crate::stack`]), a control plane that keeps what it hears, and a
//! clock that jumps from deadline to deadline.

use crate::gateway::{ConnectionId, Event};
use crate::network::{Network, Plan};
use crate::stack::{Stack, instant};
use std::collections::BTreeMap;

pub(crate) use crate::stack::PORT;
pub(crate) const SECOND: u64 = 1_000_000;

/// The control plane's end of a connection.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) heard: Vec<u8>,
    pub(crate) ended: bool,
    pub(crate) gone: bool,
}

/// A network with boards and a control plane.
pub(crate) struct Bench {
    pub(crate) now: u64,
    pub(crate) network: Network,
    pub(crate) boards: Vec<Option<Stack>>,
    lives: u16,
    pub(crate) served: BTreeMap<ConnectionId, Served>,
    pub(crate) refusing: bool,
    /// Takes no bytes while set.
    pub(crate) busy: bool,
}

impl Bench {
    /// With this many boards, all without power.
    pub(crate) fn new(boards: usize) -> Self {
        let names = (0..boards).map(|index| format!("board{index}")).collect();
        Self {
            now: 0,
            network: Network::new(&Plan { seed: 7, boards: names, port: PORT }),
            boards: (0..boards).map(|_| None).collect(),
            lives: 0,
            served: BTreeMap::new(),
            refusing: false,
            busy: false,
        }
    }

    pub(crate) fn on(&mut self, board: usize) {
        self.network.power_returned(board);
        self.lives += 1;
        self.boards[board] = Some(Stack::new(board, self.lives, self.now));
    }

    pub(crate) fn off(&mut self, board: usize) {
        self.network.power_lost(board);
        self.boards[board] = None;
    }

    /// Powers a board and waits for its address.
    pub(crate) fn boot(&mut self, board: usize) {
        self.on(board);
        self.run(5 * SECOND);
        assert!(self.board(board).leased.is_some(), "board {board} has an address");
    }

    pub(crate) fn board(&mut self, board: usize) -> &mut Stack {
        self.boards[board].as_mut().unwrap()
    }

    /// The control plane's end of the connection that was asked for last.
    pub(crate) fn last(&self) -> (ConnectionId, &Served) {
        let (id, served) = self.served.last_key_value().expect("one was asked for");
        (*id, served)
    }

    pub(crate) fn last_heard(&self) -> String {
        String::from_utf8(self.last().1.heard.clone()).unwrap()
    }

    /// Lets this many microseconds pass.
    pub(crate) fn run(&mut self, length: u64) {
        let end = self.now + length;
        loop {
            self.settle();
            let now = self.now;
            if now == end {
                return;
            }
            let boards = self.boards.iter_mut().flatten();
            let next = boards
                .filter_map(|board| board.interface.poll_at(instant(now), &board.sockets))
                .map(|at| at.total_micros() as u64)
                .chain(self.network.poll_at(now))
                .min();
            self.now = next.unwrap_or(end).max(now + 1).min(end);
        }
    }

    /// Does what is due at this instant.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut moved = false;
            for index in 0..self.boards.len() {
                let Some(board) = &mut self.boards[index] else { continue };
                board.poll(self.now);
                while let Some(frame) = board.card.outbox.pop_front() {
                    moved = true;
                    self.network.send(self.now, index, &frame);
                }
            }
            self.network.poll(self.now);
            self.serve();
            self.network.poll(self.now);
            while let Some((board, frame)) = self.network.next_frame() {
                moved = true;
                if let Some(board) = &mut self.boards[board] {
                    board.card.inbox.push_back(frame.to_vec());
                }
            }
            if !moved {
                return;
            }
        }
        panic!("the network does not come to rest");
    }

    fn serve(&mut self) {
        while let Some(event) = self.network.next_event() {
            match event {
                Event::Asked(id) if self.refusing => self.network.refuse(self.now, id),
                Event::Asked(id) => {
                    self.served.insert(id, Served::default());
                    self.network.admit(self.now, id);
                }
                Event::Gone(id) => self.served.get_mut(&id).expect("it was asked for").gone = true,
            }
        }
        for (id, served) in &mut self.served {
            if !self.busy {
                self.network.take(*id, |bytes| {
                    served.heard.extend(bytes);
                    bytes.len()
                });
                served.ended |= self.network.has_ended(*id);
            }
        }
    }
}
