//! A board for tests: a smoltcp stack that asks for an address and opens connections, one life long.

use crate::address;
use smoltcp::iface::{Config, Interface, PollResult, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::{dhcpv4, tcp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{IpCidr, Ipv4Address, Ipv4Cidr};
use std::collections::VecDeque;

pub use smoltcp::iface::SocketHandle;
pub use smoltcp::socket::tcp::State;

/// The port of the gateway that tests connect to.
pub const PORT: u16 = 6443;

/// The board's network card.
#[derive(Debug, Default)]
pub struct Card {
    /// Frames that have come.
    pub inbox: VecDeque<Vec<u8>>,
    /// Frames that are to leave.
    pub outbox: VecDeque<Vec<u8>>,
}

/// A frame that has come.
#[derive(Debug)]
pub struct Rx(Vec<u8>);

/// Leave to send a frame.
#[derive(Debug)]
pub struct Tx<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Rx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl TxToken for Tx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = vec![0; length];
        let result = fill(&mut frame);
        self.0.push_back(frame);
        result
    }
}

impl Device for Card {
    type RxToken<'a> = Rx;
    type TxToken<'a> = Tx<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Rx, Tx<'_>)> {
        Some((Rx(self.inbox.pop_front()?), Tx(&mut self.outbox)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Tx<'_>> {
        Some(Tx(&mut self.outbox))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}

/// One life of a board.
pub struct Stack {
    /// Its network card.
    pub card: Card,
    /// Its network interface.
    pub interface: Interface,
    /// Its sockets.
    pub sockets: SocketSet<'static>,
    dhcp: SocketHandle,
    /// Its address and its router, once it has them.
    pub leased: Option<(Ipv4Cidr, Option<Ipv4Address>)>,
    next_port: u16,
}

impl Stack {
    /// The board in place `index`, switched on at `now` for the `life`th time.
    #[must_use]
    pub fn new(index: usize, life: u16, now: u64) -> Self {
        let mut card = Card::default();
        let mut config = Config::new(address::board_mac(index).into());
        config.random_seed = (u64::from(life) << 8) | index as u64;
        let interface = Interface::new(config, &mut card, instant(now));
        let mut sockets = SocketSet::new(Vec::new());
        let dhcp = sockets.add(dhcpv4::Socket::new());
        Self { card, interface, sockets, dhcp, leased: None, next_port: 50_000 + life * 100 }
    }

    /// Takes frames in, answers them, and does what is due.
    pub fn poll(&mut self, now: u64) {
        while self.interface.poll(instant(now), &mut self.card, &mut self.sockets) != PollResult::None {}
        match self.sockets.get_mut::<dhcpv4::Socket>(self.dhcp).poll() {
            Some(dhcpv4::Event::Configured(config)) => {
                self.leased = Some((config.address, config.router));
                self.interface.update_ip_addrs(|addresses| {
                    addresses.clear();
                    addresses.push(IpCidr::Ipv4(config.address)).expect("the list holds at least one");
                });
            }
            Some(dhcpv4::Event::Deconfigured) => self.leased = None,
            None => {}
        }
    }

    /// Opens a connection to the gateway.
    pub fn connect(&mut self) -> SocketHandle {
        let buffer = || tcp::SocketBuffer::new(vec![0; 4096]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_keep_alive(Some(Duration::from_secs(10)));
        socket.set_timeout(Some(Duration::from_secs(30)));
        let handle = self.sockets.add(socket);
        self.next_port += 1;
        let port = self.next_port;
        let socket = self.sockets.get_mut::<tcp::Socket>(handle);
        socket
            .connect(self.interface.context(), (address::GATEWAY, PORT), port)
            .expect("the board has an address");
        handle
    }

    /// The socket of a connection.
    pub fn tcp(&mut self, handle: SocketHandle) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// Sends text.
    pub fn say(&mut self, handle: SocketHandle, text: &str) {
        assert_eq!(self.tcp(handle).send_slice(text.as_bytes()), Ok(text.len()), "the send buffer is full");
    }

    /// The text that has come since last asked.
    pub fn heard(&mut self, handle: SocketHandle) -> String {
        let mut bytes = vec![0; 4096];
        let length = self.tcp(handle).recv_slice(&mut bytes).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}

/// An instant in microseconds.
#[must_use]
pub fn instant(micros: u64) -> Instant {
    Instant::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}
