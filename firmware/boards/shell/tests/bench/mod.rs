//! A bench for the shell: a board with a clock that the test moves, a cable that can be cut or jammed, and a
//! peer with a DHCP server and a TCP port, itself on smoltcp.

use shell::{Board, Machine, Shell};
use smoltcp::iface::{self, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::{tcp, udp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{
    DhcpMessageType, DhcpPacket, DhcpRepr, EthernetAddress, IpAddress, IpCidr, IpEndpoint, Ipv4Address,
};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

pub const BOARD_ADDRESS: Ipv4Address = Ipv4Address::new(10, 0, 2, 15);
pub const PEER_ADDRESS: Ipv4Address = Ipv4Address::new(10, 0, 2, 2);
pub const PORT: u16 = 8080;
/// What a frame takes along the cable, in microseconds.
const LATENCY: u64 = 100;
/// Connections that may begin at once.
const BACKLOG: usize = 2;
/// Turns in one instant that show a shell which asks in a loop instead of sleeping.
const BUSY: u32 = 100;

#[derive(Default)]
pub struct Cable {
    to_board: RefCell<VecDeque<Vec<u8>>>,
    to_peer: RefCell<VecDeque<Vec<u8>>>,
    /// No carrier: frames are lost both ways.
    pub cut: Cell<bool>,
    /// Frames are lost both ways, but the carrier stays.
    pub lossy: Cell<bool>,
    /// The board's card takes no frame.
    pub jammed: Cell<bool>,
}

impl Cable {
    /// Puts `count` frames that mean nothing on the way to the board.
    pub fn flood(&self, count: usize) {
        self.to_board.borrow_mut().extend(std::iter::repeat_n(vec![0xFF; 60], count));
    }

    /// Frames on the way to the board.
    pub fn waiting(&self) -> usize {
        self.to_board.borrow().len()
    }
}

/// One end of the cable.
pub struct Card {
    cable: Rc<Cable>,
    board: bool,
}

pub struct Arrived(Vec<u8>);
pub struct Leave<'a>(&'a Card);

impl phy::RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl phy::TxToken for Leave<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = vec![0; length];
        let result = fill(&mut frame);
        let Card { cable, board } = self.0;
        if !cable.cut.get() && !cable.lossy.get() {
            let queue = if *board { &cable.to_peer } else { &cable.to_board };
            queue.borrow_mut().push_back(frame);
        }
        result
    }
}

impl Device for Card {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leave<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Leave<'_>)> {
        if self.board && self.cable.jammed.get() {
            return None;
        }
        let queue = if self.board { &self.cable.to_board } else { &self.cable.to_peer };
        let frame = queue.borrow_mut().pop_front()?;
        Some((Arrived(frame), Leave(self)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leave<'_>> {
        (!(self.board && self.cable.jammed.get())).then_some(Leave(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}

/// The board's clock and console, shared with the test.
#[derive(Clone, Default)]
pub struct Desk {
    pub time: Rc<Cell<u64>>,
    pub console: Rc<RefCell<Vec<String>>>,
    pub entropy: u64,
    cable: Rc<Cable>,
}

impl Board for Desk {
    fn now(&mut self) -> u64 {
        self.time.get()
    }

    fn idle_until(&mut self, _: Option<u64>) {
        unreachable!("the test moves the clock between turns")
    }

    fn console(&mut self, line: &str) {
        self.console.borrow_mut().push(line.into());
    }

    fn entropy(&mut self) -> u64 {
        self.entropy
    }

    fn free_heap(&mut self) -> u32 {
        200 * 1024
    }

    fn link_up(&mut self) -> bool {
        !self.cable.cut.get()
    }
}

/// One connection as the peer saw it.
pub struct Connection {
    socket: SocketHandle,
    /// The board's port.
    pub port: u16,
    pub received: Vec<u8>,
}

/// The other end: a network with one server.
pub struct Peer {
    card: Card,
    interface: Interface,
    sockets: SocketSet<'static>,
    dhcp: SocketHandle,
    listening: Vec<SocketHandle>,
    pub connections: Vec<Connection>,
}

impl Peer {
    fn new(cable: Rc<Cable>) -> Self {
        let mut card = Card { cable, board: false };
        let config = iface::Config::new(EthernetAddress([2, 0, 0, 0, 0, 0xEE]).into());
        let mut interface = Interface::new(config, &mut card, Instant::ZERO);
        interface.update_ip_addrs(|addresses| addresses.push(IpCidr::new(PEER_ADDRESS.into(), 24)).unwrap());
        let mut sockets = SocketSet::new(Vec::new());
        let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 4], vec![0; 4096]);
        let mut dhcp = udp::Socket::new(buffer(), buffer());
        dhcp.bind(67).unwrap();
        let dhcp = sockets.add(dhcp);
        let listening = (0..BACKLOG).map(|_| listen(&mut sockets)).collect();
        Self { card, interface, sockets, dhcp, listening, connections: Vec::new() }
    }

    /// Sends on connection `index`; the test's messages fit the buffer.
    pub fn send(&mut self, index: usize, bytes: &[u8]) {
        let socket = self.sockets.get_mut::<tcp::Socket>(self.connections[index].socket);
        assert_eq!(socket.send_slice(bytes), Ok(bytes.len()));
    }

    pub fn close(&mut self, index: usize) {
        self.sockets.get_mut::<tcp::Socket>(self.connections[index].socket).close();
    }

    pub fn reset(&mut self, index: usize) {
        self.sockets.get_mut::<tcp::Socket>(self.connections[index].socket).abort();
    }

    /// Whether connection `index` is over for the peer.
    pub fn is_over(&self, index: usize) -> bool {
        !self.sockets.get::<tcp::Socket>(self.connections[index].socket).may_recv()
    }

    fn turn(&mut self, now: Instant) -> Option<u64> {
        self.interface.poll(now, &mut self.card, &mut self.sockets);
        self.serve_dhcp();
        for slot in &mut self.listening {
            let socket = self.sockets.get_mut::<tcp::Socket>(*slot);
            if socket.may_send() {
                let port = socket.remote_endpoint().unwrap().port;
                let fresh = listen(&mut self.sockets);
                let socket = std::mem::replace(slot, fresh);
                self.connections.push(Connection { socket, port, received: Vec::new() });
            }
        }
        for connection in &mut self.connections {
            let socket = self.sockets.get_mut::<tcp::Socket>(connection.socket);
            while socket.can_recv() {
                socket.recv(|bytes| (bytes.len(), connection.received.extend_from_slice(bytes))).unwrap();
            }
        }
        self.interface.poll_at(now, &self.sockets).map(|at| at.total_micros() as u64)
    }

    fn serve_dhcp(&mut self) {
        let socket = self.sockets.get_mut::<udp::Socket>(self.dhcp);
        let Ok((bytes, _)) = socket.recv() else { return };
        let packet = DhcpPacket::new_checked(bytes).unwrap();
        let request = DhcpRepr::parse(&packet).unwrap();
        let answer = DhcpRepr {
            message_type: match request.message_type {
                DhcpMessageType::Discover => DhcpMessageType::Offer,
                DhcpMessageType::Request => DhcpMessageType::Ack,
                other => panic!("a client sent {other:?}"),
            },
            your_ip: BOARD_ADDRESS,
            server_identifier: Some(PEER_ADDRESS),
            router: Some(PEER_ADDRESS),
            subnet_mask: Some(Ipv4Address::new(255, 255, 255, 0)),
            lease_duration: Some(86_400),
            requested_ip: None,
            client_identifier: None,
            parameter_request_list: None,
            max_size: None,
            ..request
        };
        let mut bytes = vec![0; answer.buffer_len()];
        answer.emit(&mut DhcpPacket::new_unchecked(&mut bytes)).unwrap();
        let everyone = IpEndpoint::new(IpAddress::Ipv4(Ipv4Address::BROADCAST), 68);
        socket.send_slice(&bytes, everyone).unwrap();
    }
}

fn listen(sockets: &mut SocketSet<'static>) -> SocketHandle {
    let buffer = || tcp::SocketBuffer::new(vec![0; 16 * 1024]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.set_ack_delay(None);
    socket.listen(PORT).unwrap();
    sockets.add(socket)
}

/// Board, cable and peer on one clock.
pub struct Bench<M> {
    pub shell: Shell<Desk, Card, M>,
    pub desk: Desk,
    pub cable: Rc<Cable>,
    pub peer: Peer,
}

impl<M: Machine> Bench<M> {
    pub fn new(entropy: u64, shell: impl FnOnce(Desk, Card) -> Shell<Desk, Card, M>) -> Self {
        let cable = Rc::new(Cable::default());
        let desk = Desk { entropy, cable: cable.clone(), ..Desk::default() };
        let shell = shell(desk.clone(), Card { cable: cable.clone(), board: true });
        Self { shell, desk, peer: Peer::new(cable.clone()), cable }
    }

    pub fn lines(&self) -> Vec<String> {
        self.desk.console.borrow().clone()
    }

    /// Lets time go on until `done`, at most for `limit`; whether it was done. Fails when the shell does not
    /// sleep.
    pub fn run(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.desk.time.get() + limit.total_micros();
        let (mut instant, mut turns) = (0, 0);
        loop {
            let now = self.desk.time.get();
            turns = if now == instant { turns + 1 } else { 0 };
            instant = now;
            assert!(turns < BUSY, "the shell turns without end at {now} µs");
            let board_due = self.shell.turn();
            let peer_due = self.peer.turn(Instant::from_micros(now as i64));
            if done(self) {
                return true;
            }
            let in_flight = !self.cable.to_peer.borrow().is_empty()
                || (!self.cable.to_board.borrow().is_empty() && !self.cable.jammed.get());
            let due = [board_due, peer_due, in_flight.then_some(now + LATENCY)];
            let next = due.into_iter().flatten().min().unwrap_or(u64::MAX).max(now);
            if next > end {
                self.desk.time.set(end);
                return false;
            }
            self.desk.time.set(next);
        }
    }
}
