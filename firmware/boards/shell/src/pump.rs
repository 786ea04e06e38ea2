//! The pump: one turn moves packets between the card and the sockets, events between the sockets and the
//! kubelet, and says until when the board may sleep. It decides nothing: requests, retries and their timing
//! are the kubelet's.

use crate::board::Board;
use crate::endpoint::{self, EndpointError};
use crate::link::{Event, Link};
use crate::machine::Machine;
use crate::network::{Change, Network};
use crate::random::{Ports, Random};
use alloc::format;
use alloc::vec::Vec;
use kubelet::{Boot, Config, ConnId, Input, Kubelet, Now, Output, ResetReason, WORKING_RESERVE};
use smoltcp::iface::{self, Interface, PollIngressSingleResult, PollResult, SocketSet};
use smoltcp::phy::Device;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpEndpoint};

/// Connections of the kubelet: 0 carries requests, 1 the watch.
const LINKS: [ConnId; 2] = [ConnId::REQUESTS, ConnId::WATCH];

/// Frames taken from the card in one turn: a network that floods must not keep the kubelet from its lease.
const BURST: usize = 16;

/// A board with its card, its network stack and its kubelet.
pub struct Shell<B, D, M = Kubelet> {
    board: B,
    device: D,
    interface: Interface,
    sockets: SocketSet<'static>,
    network: Network,
    links: [Link; LINKS.len()],
    server: IpEndpoint,
    ports: Ports,
    machine: M,
}

impl<B: Board, D: Device> Shell<B, D> {
    /// Puts a board with its kubelet together; nothing is sent before the first turn.
    ///
    /// # Errors
    /// When the configuration's server address is none that a board can reach, see [`EndpointError`].
    pub fn new(
        board: B,
        device: D,
        hardware_address: [u8; 6],
        config: Config,
        reason: ResetReason,
    ) -> Result<Self, EndpointError> {
        let server = endpoint::of(&config.server)?;
        Ok(Self::with(board, device, hardware_address, server, |seed| {
            Kubelet::new(config, Boot { reason, seed })
        }))
    }
}

impl<B: Board, D: Device, M: Machine> Shell<B, D, M> {
    /// As [`Shell::new`], around any state machine. `machine` gets a seed that is new at each boot.
    pub fn with(
        mut board: B,
        mut device: D,
        hardware_address: [u8; 6],
        server: IpEndpoint,
        machine: impl FnOnce(u64) -> M,
    ) -> Self {
        let mut random = Random::new(board.entropy() ^ hardware_seed(hardware_address));
        let mut interface_config = iface::Config::new(EthernetAddress(hardware_address).into());
        interface_config.random_seed = random.draw();
        let interface = Interface::new(interface_config, &mut device, instant(board.now()));
        let mut sockets = SocketSet::new(Vec::new());
        let network = Network::new(&mut sockets);
        let links = LINKS.map(|_| Link::new(&mut sockets));
        let ports = Ports::new(&mut random);
        let machine = machine(random.draw());
        Self { board, device, interface, sockets, network, links, server, ports, machine }
    }

    /// Runs the board until its power goes.
    pub fn run(mut self) -> ! {
        loop {
            let deadline = self.turn();
            self.board.idle_until(deadline);
        }
    }

    /// One pass over everything that may have happened. Returns when the next one is due, in microseconds
    /// since boot (possibly past), unless the card calls earlier; `None` means never.
    pub fn turn(&mut self) -> Option<u64> {
        let now = instant(self.board.now());
        let crowded = self.move_frames(now);
        for link in &mut self.links {
            link.dial(&mut self.sockets, self.interface.context(), self.server, &mut self.ports);
        }
        self.carry_out();
        self.look_at_network();
        for index in 0..LINKS.len() {
            self.look_at_link(index);
        }
        if self.moment().millis >= self.machine.deadline() {
            self.tell(Input::Tick);
        }
        for link in &mut self.links {
            link.flush(&mut self.sockets);
        }
        if crowded { Some(0) } else { self.deadline() }
    }

    /// Takes frames off the card and gives it those of the sockets; whether more wait than one turn takes.
    fn move_frames(&mut self, now: Instant) -> bool {
        let Self { interface, device, sockets, .. } = self;
        interface.poll_maintenance(now);
        let arrived = (0..BURST)
            .take_while(|_| {
                interface.poll_ingress_single(now, device, sockets) != PollIngressSingleResult::None
            })
            .count();
        while interface.poll_egress(now, device, sockets) != PollResult::None {}
        arrived == BURST
    }

    fn look_at_network(&mut self) {
        let carrier = self.board.link_up();
        while let Some(change) = self.network.step(carrier, &mut self.interface, &mut self.sockets) {
            match change {
                Change::Up { address, router } => {
                    let millis = self.moment().millis;
                    let line = match router {
                        Some(router) => {
                            format!("dhcp address={address} router={router} after {millis} ms")
                        }
                        None => format!("dhcp address={address} after {millis} ms"),
                    };
                    self.board.console(&line);
                    self.tell(Input::NetworkUp { address: address.address().octets() });
                }
                Change::CarrierLost => self.lose_network("network carrier lost"),
                Change::CarrierBack => self.board.console("network carrier back"),
                Change::LeaseLost => self.lose_network("dhcp lease lost"),
            }
        }
    }

    fn lose_network(&mut self, line: &str) {
        self.board.console(line);
        for index in 0..LINKS.len() {
            if self.links[index].in_use() {
                self.links[index].close(&mut self.sockets);
            }
        }
        self.tell(Input::NetworkDown);
    }

    fn look_at_link(&mut self, index: usize) {
        while let Some(event) = self.links[index].step(&mut self.sockets) {
            match event {
                Event::Connected => self.tell(Input::Connected(LINKS[index])),
                Event::Closed => self.tell(Input::Closed(LINKS[index])),
                Event::Readable => {
                    let now = self.moment();
                    let machine = &mut self.machine;
                    self.links[index].receive(&mut self.sockets, |bytes| {
                        machine.handle(now, Input::Received(LINKS[index], bytes));
                    });
                    self.carry_out();
                }
            }
        }
    }

    fn tell(&mut self, input: Input<'_>) {
        let now = self.moment();
        self.machine.handle(now, input);
        self.carry_out();
    }

    /// Carries out what the machine wants, in its order.
    fn carry_out(&mut self) {
        while let Some(output) = self.machine.next_output() {
            match output {
                Output::Open(id) => self.with_link(id, |link, sockets| link.open(sockets)),
                Output::Send(id, bytes) => self.with_link(id, |link, _| link.send(bytes)),
                Output::Close(id) => self.with_link(id, |link, sockets| link.close(sockets)),
                Output::Log(line) => self.board.console(&line),
            }
        }
    }

    fn with_link(&mut self, id: ConnId, act: impl FnOnce(&mut Link, &mut SocketSet<'static>)) {
        if let Some(link) = self.links.get_mut(usize::from(id.0)) {
            act(link, &mut self.sockets);
        }
    }

    fn moment(&mut self) -> Now {
        // What pods may take leaves the kubelet and the network enough to work with (KLET-07).
        let free_heap = self.board.free_heap().saturating_sub(WORKING_RESERVE);
        Now { millis: self.board.now() / 1000, free_heap }
    }

    fn deadline(&mut self) -> Option<u64> {
        if self.links.iter().any(Link::wants_dial) {
            return Some(0);
        }
        let now = instant(self.board.now());
        // A card that takes no packet says by itself when it does again; asking in a loop would only burn
        // time.
        let stack = match self.device.transmit(now) {
            Some(_) => self.interface.poll_at(now, &self.sockets).map(|at| at.total_micros().max(0) as u64),
            None => None,
        };
        let machine = match self.machine.deadline() {
            u64::MAX => None,
            millis => Some(millis.saturating_mul(1000)),
        };
        [stack, machine].into_iter().flatten().min()
    }
}

fn instant(micros: u64) -> Instant {
    Instant::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// Two boards that draw the same entropy still differ by their hardware address.
fn hardware_seed(address: [u8; 6]) -> u64 {
    address.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}
