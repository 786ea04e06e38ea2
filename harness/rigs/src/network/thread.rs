//! The thread: waits for sockets, deadlines and commands, and moves frames and bytes between them and the network.
//!
//! One turn looks at everything once and never blocks on a single socket, so that a slow emulator or a busy control
//! plane holds up nobody else.

use super::carrier::{Carrier, State};
use super::handle::Act;
use super::port::Port;
use crate::clock::Clock;
use rigor_switch::link::Direction;
use rigor_switch::{ConnectionId, Event, Network, Plan};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

/// Shortest wait for a deadline; one that has passed was met just before, so there is no hurry.
const BREATH: Duration = Duration::from_micros(500);

/// Most lines kept about what went wrong.
const COMPLAINTS: usize = 100;

/// What the thread is asked.
pub(super) enum Command {
    /// To do something to a board's place.
    Act { board: usize, act: Act, done: Sender<()> },
    /// For the files of the evidence.
    Evidence(Sender<Vec<(&'static str, Vec<u8>)>>),
    /// To end.
    End,
}

/// What a file descriptor that is waited for stands for.
#[derive(Debug, Clone, Copy)]
enum Token {
    Wake,
    Listener(usize),
    Emulator(usize),
    Carrier(ConnectionId),
}

/// The thread's state.
pub(super) struct Thread {
    network: Network,
    names: Vec<String>,
    ports: Vec<Port>,
    carriers: BTreeMap<ConnectionId, Carrier>,
    upstream: SocketAddr,
    clock: Clock,
    commands: Receiver<Command>,
    woken: UnixStream,
    complaints: Vec<String>,
}

impl Thread {
    pub(super) fn new(
        plan: &Plan,
        ports: Vec<Port>,
        upstream: SocketAddr,
        clock: Clock,
        commands: Receiver<Command>,
        woken: UnixStream,
    ) -> Self {
        Self {
            network: Network::new(plan),
            names: plan.boards.clone(),
            ports,
            carriers: BTreeMap::new(),
            upstream,
            clock,
            commands,
            woken,
            complaints: Vec::new(),
        }
    }

    pub(super) fn run(mut self) {
        let mut ready = Vec::new();
        while self.obey() {
            self.take_in(&ready);
            self.hand_out();
            ready = self.wait();
        }
    }

    fn now(&self) -> u64 {
        self.clock.now().0
    }

    /// Carries out what is asked; `false` when the end is.
    fn obey(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(Command::Act { board, act, done }) => {
                    self.act(board, act);
                    // Whoever asked may have given up.
                    let _ = done.send(());
                }
                Ok(Command::Evidence(files)) => {
                    let _ = files.send(self.evidence());
                }
                Err(TryRecvError::Empty) => return true,
                Ok(Command::End) | Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn act(&mut self, board: usize, act: Act) {
        match act {
            Act::Cut => {
                self.network.cut(board);
                self.ports[board].spill();
            }
            Act::Heal => self.network.heal(board),
            Act::Delay(micros) => self.network.delay(board, micros),
            Act::Loss(percent) => self.network.loss(board, percent),
            Act::PowerLost => {
                self.network.power_lost(board);
                self.ports[board].close();
            }
            Act::PowerReturned => {
                self.ports[board].close();
                self.network.power_returned(board);
            }
        }
    }

    /// Reads from what is ready.
    fn take_in(&mut self, ready: &[(Token, PollFlags)]) {
        for (token, flags) in ready {
            match *token {
                Token::Wake => while self.woken.read(&mut [0; 64]).is_ok_and(|length| length > 0) {},
                Token::Listener(board) => self.ports[board].accept(),
                Token::Emulator(board) => {
                    let now = self.now();
                    let network = &mut self.network;
                    if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
                        && let Err(absurd) = self.ports[board].read(|frame| network.send(now, board, frame))
                    {
                        self.complain(format!("board {}: {absurd}", self.names[board]));
                    }
                }
                Token::Carrier(id) => self.look_at(id, *flags),
            }
        }
    }

    fn look_at(&mut self, id: ConnectionId, flags: PollFlags) {
        let now = self.now();
        // It may have gone since it was waited for.
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        if carrier.is_connecting() {
            match carrier.connected() {
                Ok(()) => self.network.admit(now, id),
                Err(_) => {
                    self.carriers.remove(&id);
                    self.network.refuse(now, id);
                }
            }
        } else if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
            && carrier.read(&mut self.network) == State::Lost
        {
            self.lose(now, id);
        }
    }

    /// Lets the network do what is due, and writes what comes of it.
    fn hand_out(&mut self) {
        let now = self.now();
        self.network.poll(now);
        while let Some(event) = self.network.next_event() {
            match event {
                Event::Asked(id) => self.open(now, id),
                Event::Gone(id) => {
                    if let Some(carrier) = self.carriers.remove(&id) {
                        carrier.close();
                    }
                }
            }
        }
        let lost: Vec<ConnectionId> = self
            .carriers
            .values_mut()
            .filter_map(|carrier| (carrier.write(&mut self.network) == State::Lost).then_some(carrier.id()))
            .collect();
        for id in lost {
            self.lose(now, id);
        }
        self.network.poll(now);
        while let Some((board, frame)) = self.network.next_frame() {
            if !self.ports[board].send(&frame) {
                self.network.overflowed(board);
            }
        }
        self.ports.iter_mut().for_each(Port::flush);
    }

    fn open(&mut self, now: u64, id: ConnectionId) {
        match Carrier::open(id, self.upstream) {
            Ok(carrier) => {
                if !carrier.is_connecting() {
                    self.network.admit(now, id);
                }
                self.carriers.insert(id, carrier);
            }
            Err(error) => {
                if error.kind() != std::io::ErrorKind::ConnectionRefused {
                    self.complain(format!("no socket to the control plane: {error}"));
                }
                self.network.refuse(now, id);
            }
        }
    }

    fn lose(&mut self, now: u64, id: ConnectionId) {
        self.carriers.remove(&id);
        self.network.abort(now, id);
    }

    /// Waits until a socket is ready, a deadline has come or a command was given.
    fn wait(&mut self) -> Vec<(Token, PollFlags)> {
        let now = self.now();
        let timeout = self.network.poll_at(now).map(|at| timespec(at.saturating_sub(now)));
        let mut tokens = vec![Token::Wake];
        let mut fds = vec![PollFd::new(&self.woken, PollFlags::IN)];
        for (board, port) in self.ports.iter().enumerate() {
            tokens.push(Token::Listener(board));
            fds.push(PollFd::new(port.listener(), PollFlags::IN));
            if let Some(socket) = port.socket() {
                let out = if port.wants_out() { PollFlags::OUT } else { PollFlags::empty() };
                tokens.push(Token::Emulator(board));
                fds.push(PollFd::new(socket, PollFlags::IN | out));
            }
        }
        for (id, carrier) in &self.carriers {
            // An end that nobody waits for would be told again and again.
            let interest = carrier.interest(&mut self.network);
            if !interest.is_empty() {
                tokens.push(Token::Carrier(*id));
                fds.push(PollFd::new(carrier.socket(), interest));
            }
        }
        // An interrupted wait is one that has ended.
        let _ = poll(&mut fds, timeout.as_ref());
        tokens
            .into_iter()
            .zip(fds.iter().map(PollFd::revents))
            .filter(|(_, flags)| !flags.is_empty())
            .collect()
    }

    fn complain(&mut self, what: String) {
        if self.complaints.len() < COMPLAINTS {
            self.complaints.push(format!("{:>12} {what}", self.clock.now().to_string()));
        }
    }

    fn evidence(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut text = String::new();
        for (board, name) in self.names.iter().enumerate() {
            for (way, direction) in [("from", Direction::Up), ("to", Direction::Down)] {
                let counts = self.network.counts(board, direction);
                let _ = writeln!(
                    text,
                    "frames {way} board {name}: {} sent, of these {} lost by the link's loss, {} by cuts and outages, {} by \
                     full queues; {} malformed",
                    counts.sent, counts.lost, counts.cut, counts.full, counts.malformed
                );
            }
        }
        let _ = writeln!(text, "open connections: {}", self.network.connections());
        self.complaints.iter().for_each(|line| text.extend([line.as_str(), "\n"]));
        let capture = self.network.capture(self.clock.wall_micros());
        vec![("network.pcap", capture), ("network.log", text.into_bytes())]
    }
}

fn timespec(micros: u64) -> Timespec {
    let length = Duration::from_micros(micros).max(BREATH);
    Timespec {
        tv_sec: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: length.subsec_nanos().into(),
    }
}
