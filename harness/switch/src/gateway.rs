//! The gateway: ends the boards' TCP connections to the control plane, so that their bytes can go on over a real
//! socket; answers ARP and ICMP echo. One smoltcp interface, one socket a connection, no I/O.
//!
//! A connection is one to the boards only once whoever carries the bytes on says that the control plane took it
//! ([`Gateway::admit`]); one that it refused is reset. A board that falls silent keeps its connections until its new
//! life answers with a reset, or the gateway gives up as Linux does. Fragments are ignored.

use crate::address;
use crate::switch::Frame;
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpAddress, IpEndpoint, IpProtocol, Ipv4Packet, TcpPacket,
};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of a connection that the control plane has not taken yet.
const FROM_BOARD: usize = 16 * 1024;

/// Bytes of a connection that the board has not acknowledged yet.
const TO_BOARD: usize = 32 * 1024;

/// How often an idle board is asked for a sign of life, as servers do.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// After how long without one a connection is given up: what Linux's retransmissions come to.
const GIVE_UP: Duration = Duration::from_secs(924);

/// How long an aborted connection may take to say so to a board that does not answer ARP, in microseconds.
const LAST_WORDS: u64 = 5_000_000;

/// Most connections of one board, dead ones included; for a further one the oldest of them gives way.
pub const MOST_CONNECTIONS: usize = 32;

/// Names a connection; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// What happened to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A board asks for one: to be answered with [`crate::Network::admit`] or [`crate::Network::refuse`].
    Asked(ConnectionId),
    /// It is no more: ended on both sides, reset by the board, given up, or made to give way.
    Gone(ConnectionId),
}

/// A connection, asked for or there.
#[derive(Debug)]
struct Connection {
    /// The board's end.
    peer: IpEndpoint,
    /// Whose it is.
    board: usize,
    /// Which of the board's lives it belongs to.
    life: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The control plane has not said yet whether it takes it; the board's first segment waits.
    Asked(Frame),
    /// The stack has it.
    There(SocketHandle),
    /// Aborted here; the stack still owes the board a reset, until this instant.
    Aborted(SocketHandle, u64),
}

/// The gateway.
pub struct Gateway {
    interface: Interface,
    sockets: SocketSet<'static>,
    device: Queues,
    port: u16,
    connections: BTreeMap<ConnectionId, Connection>,
    /// By the board's end: those that are not aborted.
    ends: BTreeMap<IpEndpoint, ConnectionId>,
    events: VecDeque<Event>,
    next: u64,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("connections", &self.connections).finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway whose control plane is reached at `port`.
    #[must_use]
    pub fn new(seed: u64, port: u16) -> Self {
        let mut device = Queues::default();
        let mut config = Config::new(address::GATEWAY_MAC.into());
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses.push(address::gateway().into()).expect("the list holds at least one");
        });
        Self {
            interface,
            sockets: SocketSet::new(Vec::new()),
            device,
            port,
            connections: BTreeMap::new(),
            ends: BTreeMap::new(),
            events: VecDeque::new(),
            next: 0,
        }
    }

    /// A frame has come from a board in its present life.
    pub fn receive(&mut self, now: u64, board: usize, life: u64, frame: &Frame) {
        match classify(frame, self.port) {
            Class::Ignored => {}
            Class::Opens(peer) if !self.ends.contains_key(&peer) => self.ask(board, life, peer, frame),
            // Repeated while the control plane is being asked.
            Class::Opens(peer) if self.is_asked(peer) => {}
            Class::Opens(_) | Class::Other => self.feed(now, frame),
        }
    }

    /// Sends what is due, and finds connections that are no more.
    pub fn poll(&mut self, now: u64) {
        self.interface.poll_maintenance(instant(now));
        while self.interface.poll_egress(instant(now), &mut self.device, &mut self.sockets)
            != PollResult::None
        {}
        self.reap(now);
    }

    /// When [`Gateway::poll`] has work without anything else happening.
    pub fn poll_at(&mut self, now: u64) -> Option<u64> {
        let stack = self.interface.poll_at(instant(now), &self.sockets);
        let stack = stack.map(|at| u64::try_from(at.total_micros()).unwrap_or(0));
        let aborted = self.connections.values().filter_map(|connection| match connection.stage {
            Stage::Aborted(_, until) => Some(until),
            Stage::Asked(_) | Stage::There(_) => None,
        });
        stack.into_iter().chain(aborted).min()
    }

    /// The next frame for the boards.
    pub fn next_frame(&mut self) -> Option<Vec<u8>> {
        self.device.out.pop_front()
    }

    /// The next thing that happened to a connection.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whose a connection is, and of which life.
    #[must_use]
    pub fn owner(&self, id: ConnectionId) -> Option<(usize, u64)> {
        self.connections.get(&id).map(|connection| (connection.board, connection.life))
    }

    /// How many connections there are, dead ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// The control plane took the connection.
    pub fn admit(&mut self, now: u64, id: ConnectionId) {
        let Some(frame) = self.asked(id) else { return };
        let handle = self.sockets.add(socket(self.port));
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.stage = Stage::There(handle);
        }
        self.feed(now, &frame);
        // A segment that the stack does not take leaves the socket listening.
        if self.sockets.get::<Socket>(handle).state() == State::Listen {
            self.forget(id);
        }
    }

    /// The control plane refused the connection, and the board shall hear so.
    pub fn refuse(&mut self, now: u64, id: ConnectionId) {
        let Some(frame) = self.asked(id) else { return };
        self.drop_connection(id);
        // Nobody listens: the stack answers with a reset.
        self.feed(now, &frame);
    }

    /// Gives out bytes of the board for the control plane; `take` says how many it took.
    pub fn take(&mut self, id: ConnectionId, take: impl FnOnce(&[u8]) -> usize) {
        if let Some(socket) = self.socket(id)
            && socket.can_recv()
        {
            // It can receive, as was just asked.
            let _ = socket.recv(|bytes| (take(bytes), ()));
        }
    }

    /// Whether [`Gateway::take`] has bytes.
    pub fn has_bytes(&mut self, id: ConnectionId) -> bool {
        self.socket(id).is_some_and(|socket| socket.can_recv())
    }

    /// Whether the board has ended its side and all its bytes were taken.
    pub fn has_ended(&mut self, id: ConnectionId) -> bool {
        self.socket(id).is_some_and(|socket| match socket.state() {
            State::CloseWait | State::LastAck | State::Closing | State::TimeWait | State::Closed => {
                !socket.can_recv()
            }
            State::Listen | State::SynSent | State::SynReceived | State::Established => false,
            State::FinWait1 | State::FinWait2 => false,
        })
    }

    /// How many bytes [`Gateway::give`] would take.
    pub fn room(&mut self, id: ConnectionId) -> usize {
        self.socket(id).map_or(0, |socket| {
            if socket.may_send() { socket.send_capacity() - socket.send_queue() } else { 0 }
        })
    }

    /// Bytes of the control plane for the board; no more than there is [`Gateway::room`] for.
    pub fn give(&mut self, id: ConnectionId, bytes: &[u8]) {
        if let Some(socket) = self.socket(id) {
            let sent = socket.send_slice(bytes);
            debug_assert_eq!(sent, Ok(bytes.len()), "given more than there is room for");
        }
    }

    /// The control plane has ended its side.
    pub fn finish(&mut self, id: ConnectionId) {
        if let Some(socket) = self.socket(id) {
            socket.close();
        }
    }

    /// The control plane's end is gone: the board's is reset.
    pub fn abort(&mut self, now: u64, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match connection.stage {
            Stage::Asked(_) => self.drop_connection(id),
            Stage::There(handle) => {
                connection.stage = Stage::Aborted(handle, now + LAST_WORDS);
                self.sockets.get_mut::<Socket>(handle).abort();
                self.ends.remove(&self.connections[&id].peer);
            }
            Stage::Aborted(..) => {}
        }
    }

    fn ask(&mut self, board: usize, life: u64, peer: IpEndpoint, frame: &Frame) {
        self.make_room(board);
        let id = ConnectionId(self.next);
        self.next += 1;
        let stage = Stage::Asked(frame.clone());
        self.connections.insert(id, Connection { peer, board, life, stage });
        self.ends.insert(peer, id);
        self.events.push_back(Event::Asked(id));
    }

    /// The oldest connections of a board that has too many are no more: those of former lives first, as ids grow.
    fn make_room(&mut self, board: usize) {
        let ours: Vec<_> =
            self.connections.iter().filter(|(_, it)| it.board == board).map(|(id, _)| *id).collect();
        let surplus = (ours.len() + 1).saturating_sub(MOST_CONNECTIONS);
        for id in ours.into_iter().take(surplus) {
            // Without a reset: should the board still use it, the stack answers with one.
            self.forget(id);
        }
    }

    fn is_asked(&self, peer: IpEndpoint) -> bool {
        self.ends.get(&peer).is_some_and(|id| self.asked(*id).is_some())
    }

    fn asked(&self, id: ConnectionId) -> Option<Frame> {
        match &self.connections.get(&id)?.stage {
            Stage::Asked(frame) => Some(frame.clone()),
            Stage::There(_) | Stage::Aborted(..) => None,
        }
    }

    fn socket(&mut self, id: ConnectionId) -> Option<&mut Socket<'static>> {
        match self.connections.get(&id)?.stage {
            Stage::There(handle) => Some(self.sockets.get_mut(handle)),
            Stage::Asked(_) | Stage::Aborted(..) => None,
        }
    }

    /// Hands a frame to the stack, which answers at once or with the next poll.
    fn feed(&mut self, now: u64, frame: &Frame) {
        self.device.arrived = Some(frame.clone());
        let outcome = self.interface.poll_ingress_single(instant(now), &mut self.device, &mut self.sockets);
        debug_assert_ne!(outcome, PollIngressSingleResult::None, "the stack takes every frame");
    }

    /// Finds connections that the stack has ended.
    fn reap(&mut self, now: u64) {
        let over: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, connection)| match connection.stage {
                Stage::Asked(_) => false,
                Stage::There(handle) => match self.sockets.get::<Socket>(handle).state() {
                    // A board that resets what it has just asked for sends the socket back to listening.
                    State::Closed | State::Listen => true,
                    State::SynSent | State::SynReceived | State::Established | State::FinWait1 => false,
                    State::FinWait2
                    | State::CloseWait
                    | State::Closing
                    | State::LastAck
                    | State::TimeWait => false,
                },
                Stage::Aborted(handle, until) => {
                    now >= until || self.sockets.get::<Socket>(handle).remote_endpoint().is_none()
                }
            })
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            self.forget(id);
        }
    }

    /// Ends a connection and says so, unless whoever is told has ended it.
    fn forget(&mut self, id: ConnectionId) {
        if let Some(Connection { stage: Stage::There(_) | Stage::Asked(_), .. }) = self.connections.get(&id) {
            self.events.push_back(Event::Gone(id));
        }
        self.drop_connection(id);
    }

    fn drop_connection(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id) else { return };
        match connection.stage {
            Stage::Asked(_) => {
                self.ends.remove(&connection.peer);
            }
            Stage::There(handle) => {
                self.ends.remove(&connection.peer);
                self.sockets.remove(handle);
            }
            Stage::Aborted(handle, _) => {
                self.sockets.remove(handle);
            }
        }
    }
}

/// What a frame is to the gateway.
enum Class {
    /// A fragment, or broken.
    Ignored,
    /// The first segment of a connection to the control plane, from this end.
    Opens(IpEndpoint),
    /// Anything else.
    Other,
}

fn classify(frame: &Frame, port: u16) -> Class {
    let frame = EthernetFrame::new_unchecked(&frame[..]);
    if frame.ethertype() != EthernetProtocol::Ipv4 {
        return Class::Other;
    }
    let Ok(packet) = Ipv4Packet::new_checked(frame.payload()) else { return Class::Ignored };
    if packet.more_frags() || packet.frag_offset() != 0 || !packet.verify_checksum() {
        return Class::Ignored;
    }
    if packet.next_header() != IpProtocol::Tcp || packet.dst_addr() != address::GATEWAY {
        return Class::Other;
    }
    let (source, destination) = (IpAddress::from(packet.src_addr()), IpAddress::from(packet.dst_addr()));
    let Ok(segment) = TcpPacket::new_checked(packet.payload()) else { return Class::Ignored };
    if !segment.verify_checksum(&source, &destination) {
        return Class::Ignored;
    }
    let opens = segment.syn() && !segment.ack() && !segment.rst() && !segment.fin();
    if opens && segment.dst_port() == port && segment.src_port() != 0 {
        Class::Opens(IpEndpoint::new(source, segment.src_port()))
    } else {
        Class::Other
    }
}

fn socket(port: u16) -> Socket<'static> {
    let buffer = |bytes| SocketBuffer::new(vec![0; bytes]);
    let mut socket = Socket::new(buffer(FROM_BOARD), buffer(TO_BOARD));
    socket.set_keep_alive(Some(KEEP_ALIVE));
    socket.set_timeout(Some(GIVE_UP));
    // Requests and answers alternate: a held-back segment or acknowledgement only adds latency.
    socket.set_nagle_enabled(false);
    socket.set_ack_delay(None);
    socket
        .listen((IpAddress::from(address::GATEWAY), port))
        .expect("a new socket can listen at a port that is not 0");
    socket
}

fn instant(micros: u64) -> Instant {
    Instant::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// The card of the gateway: one frame in, any number out.
#[derive(Debug, Default)]
struct Queues {
    arrived: Option<Frame>,
    out: VecDeque<Vec<u8>>,
}

struct Arrived(Frame);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Leave<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Leave<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = vec![0; length];
        let result = fill(&mut frame);
        self.0.push_back(frame);
        result
    }
}

impl Device for Queues {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leave<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Leave<'_>)> {
        Some((Arrived(self.arrived.take()?), Leave(&mut self.out)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leave<'_>> {
        Some(Leave(&mut self.out))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}
