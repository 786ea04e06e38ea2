//! The link between one board and the server: latency, delay, loss, cut and heal, as TCP over it would show them.
//!
//! Parcels of one connection and direction keep their order. While a link is cut nothing arrives: what is on the
//! way or sent meanwhile waits, and after the heal comes as TCP's retransmission would bring it, if the
//! connection is still wanted then. A lost packet comes later, too, or ends its connection when it was lost too often.
//! Generators of the link's own and one draw a message from each, so that one fate does not shift the next.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use rigor_model::act::Garbage;
use rigor_model::faults::FaultKind;

use crate::garbage::spoil;
use crate::retransmission::{Patience, retransmit};

/// One way through the network, in microseconds.
const LATENCY: RangeInclusive<u64> = 200..=2_000;
/// After a heal: how long until the next retransmission is tried, in microseconds; never longer than the cut was.
const RETRANSMISSION: RangeInclusive<u64> = 1_000..=400_000;

/// Most bytes in one packet: one TCP segment over Ethernet.
pub(crate) const SEGMENT: usize = 1_460;

/// A TCP connection of the trial; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Connection(pub(crate) u64);

/// Where a parcel goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Toward {
    /// From a board to the server.
    Server,
    /// From the server to a board.
    Board,
}

impl Toward {
    fn back(self) -> Self {
        match self {
            Toward::Server => Toward::Board,
            Toward::Board => Toward::Server,
        }
    }
}

/// What TCP carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Carried {
    /// A board asks for a connection.
    Open,
    /// The server's answer: there is one.
    Opened,
    /// Bytes of the stream.
    Bytes(Vec<u8>),
    /// The sender is done; there is no half-closed state here.
    End,
    /// Refused, or no such connection.
    Reset,
}

/// One message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parcel {
    pub(crate) connection: Connection,
    pub(crate) toward: Toward,
    pub(crate) carried: Carried,
}

impl Parcel {
    /// TCP repeats until it is acknowledged whatever it sent, but for a reset.
    fn is_retransmitted(&self) -> bool {
        self.carried != Carried::Reset
    }

    /// How often its sender repeats it.
    fn patience(&self) -> Patience {
        match self.carried {
            Carried::Open | Carried::Opened => Patience::OPENING,
            Carried::Bytes(_) | Carried::End => Patience::OPEN,
            Carried::Reset => Patience::NONE,
        }
    }

    /// In how many packets it travels.
    fn packets(&self) -> usize {
        match &self.carried {
            Carried::Bytes(bytes) => bytes.len().div_ceil(SEGMENT).max(1),
            Carried::Open | Carried::Opened | Carried::End | Carried::Reset => 1,
        }
    }
}

/// Names a parcel under way; void once the link was cut under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Number of the parcel on its link, in the order of sending.
    serial: u64,
    /// How many cuts the link had seen.
    cuts: u64,
}

/// A connection in one direction.
type Way = (Connection, Toward);

/// The state of one link.
#[derive(Debug)]
pub(crate) struct Link {
    draws: fastrand::Rng,
    luck: fastrand::Rng,
    /// What each message needs more, in microseconds.
    delay: u64,
    /// So many of a hundred packets are lost.
    loss: u8,
    /// What becomes of bytes that are sent to the board.
    garbage: Option<Garbage>,
    sent: u64,
    cuts: u64,
    cut_at: Option<u64>,
    under_way: BTreeMap<u64, Parcel>,
    latest: BTreeMap<Way, u64>,
    /// What goes this way is lost, to the end of the connection.
    holes: BTreeSet<Way>,
    /// Parcels that wait to be overtaken.
    held: BTreeSet<u64>,
    /// Parcels of which a packet was lost, or that are delayed as if one had been.
    repeating: BTreeSet<u64>,
}

impl Link {
    /// A link that is up, and draws its latencies from `draws` and from `luck` which packets are lost.
    pub(crate) fn new(draws: fastrand::Rng, luck: fastrand::Rng) -> Self {
        Self {
            draws,
            luck,
            delay: 0,
            loss: 0,
            garbage: None,
            sent: 0,
            cuts: 0,
            cut_at: None,
            under_way: BTreeMap::new(),
            latest: BTreeMap::new(),
            holes: BTreeSet::new(),
            held: BTreeSet::new(),
            repeating: BTreeSet::new(),
        }
    }

    /// From now on each message needs so many microseconds more, until the link is healed.
    pub(crate) fn set_delay(&mut self, micros: u64) {
        self.delay = micros;
    }

    /// From now on what the board is sent becomes garbage, until the link is healed.
    pub(crate) fn set_garbage(&mut self, garbage: Garbage) {
        self.garbage = Some(garbage);
    }

    /// From now on so many of a hundred packets are lost, until the link is healed.
    pub(crate) fn set_loss(&mut self, percent: u8) {
        self.loss = percent;
    }

    /// Whether nothing that is sent now will come through by itself.
    pub(crate) fn is_stuck(&self, connection: Connection, toward: Toward) -> bool {
        self.is_cut() || self.holes.contains(&(connection, toward))
    }

    /// Whether the link is cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut_at.is_some()
    }

    /// Sends a message: instants at which to call [`Link::arrive`], with tickets. None when the link is cut and the
    /// parcel waits, or when it is lost.
    pub(crate) fn send(
        &mut self,
        now: u64,
        mut parcel: Parcel,
        fault: Option<&FaultKind>,
    ) -> Vec<(u64, Ticket)> {
        if let (Some(garbage), Toward::Board, Carried::Bytes(bytes)) =
            (self.garbage, parcel.toward, &mut parcel.carried)
        {
            spoil(garbage, bytes);
        }
        let (latency, luck) = (self.draws.u64(LATENCY), self.luck.u64(..));
        let way = (parcel.connection, parcel.toward);
        let serial = self.sent;
        self.sent += 1;
        if self.holes.contains(&way) {
            return Vec::new();
        }
        if self.is_cut() {
            if parcel.is_retransmitted() {
                self.under_way.insert(serial, parcel);
            }
            return Vec::new();
        }
        let repeated = match retransmit(luck, self.loss, &parcel.patience(), parcel.packets()) {
            Ok(repeated) => repeated,
            Err(_) if !parcel.is_retransmitted() => return Vec::new(),
            Err(given_up) => {
                self.close_both_ways(way);
                return vec![self.reset(parcel.connection, parcel.toward.back(), now + given_up)];
            }
        };
        if repeated > 0 {
            self.repeating.insert(serial);
        }
        let at = now + latency + self.delay + repeated;
        match fault {
            Some(FaultKind::Lose {}) => {
                self.holes.insert(way);
                Vec::new()
            }
            Some(FaultKind::Cut { keep, silent }) => self.break_off(parcel, *keep, *silent, at),
            Some(
                FaultKind::Delay { micros: later } | FaultKind::Duplicate { after: later, second: true },
            ) => {
                // Only repeats keep a message on its way for so long: it is lost with whoever would repeat it.
                self.repeating.insert(serial);
                vec![self.launch(serial, parcel, at + later)]
            }
            Some(FaultKind::Reorder { at_most }) => {
                self.repeating.insert(serial);
                self.held.insert(serial);
                vec![self.launch(serial, parcel, at + at_most)]
            }
            None
            | Some(
                FaultKind::Duplicate { second: false, .. }
                | FaultKind::Clock { .. }
                | FaultKind::PowerCut { .. }
                | FaultKind::Kill { .. },
            ) => vec![self.launch(serial, parcel, at)],
        }
    }

    fn launch(&mut self, serial: u64, parcel: Parcel, at: u64) -> (u64, Ticket) {
        let at = self.in_order((parcel.connection, parcel.toward), at);
        self.under_way.insert(serial, parcel);
        (at, Ticket { serial, cuts: self.cuts })
    }

    /// Only the beginning of the parcel arrives, and nothing after it but a reset at both ends, unless it is `silent`.
    fn break_off(&mut self, mut parcel: Parcel, keep: u64, silent: bool, at: u64) -> Vec<(u64, Ticket)> {
        let (connection, toward) = (parcel.connection, parcel.toward);
        let mut arrivals = Vec::new();
        if let Carried::Bytes(bytes) = &mut parcel.carried
            && keep > 0
        {
            bytes.truncate(usize::try_from(keep).unwrap_or(usize::MAX));
            let serial = self.take_number();
            arrivals.push(self.launch(serial, parcel, at));
        }
        if silent {
            self.holes.insert((connection, toward));
        } else {
            self.close_both_ways((connection, toward));
            arrivals.push(self.reset(connection, toward, at));
            arrivals.push(self.reset(connection, toward.back(), at));
        }
        arrivals
    }

    fn close_both_ways(&mut self, (connection, toward): Way) {
        self.holes.extend([(connection, toward), (connection, toward.back())]);
    }

    /// A reset that arrives whatever the connection has come to.
    fn reset(&mut self, connection: Connection, toward: Toward, at: u64) -> (u64, Ticket) {
        let serial = self.take_number();
        self.launch(serial, Parcel { connection, toward, carried: Carried::Reset }, at)
    }

    fn take_number(&mut self) -> u64 {
        let serial = self.sent;
        self.sent += 1;
        serial
    }

    /// Those parcels that were held until one like `by` overtook them, and what waits behind them on their connections; it
    /// has arrived, and they arrive `now`.
    pub(crate) fn overtaken(&mut self, now: u64, by: &Parcel) -> Vec<Ticket> {
        let mut tickets = Vec::new();
        for serial in self.held.clone() {
            let Some(held) = self.under_way.get(&serial) else { continue };
            let way = (held.connection, held.toward);
            let on_the_way = |it: &Parcel| (it.connection, it.toward) == way;
            let is_first = self.under_way.range(..serial).all(|(_, it)| !on_the_way(it));
            if held.toward != by.toward || held.connection == by.connection || !is_first {
                continue;
            }
            self.held.remove(&serial);
            self.repeating.remove(&serial);
            let behind = self.under_way.range(serial..).filter(|(_, it)| on_the_way(it));
            let mut behind = behind.map(|(serial, _)| *serial).peekable();
            while let Some(serial) = behind.next_if(|serial| !self.repeating.contains(serial)) {
                tickets.push(Ticket { serial, cuts: self.cuts });
            }
            if behind.peek().is_none() {
                self.latest.insert(way, now);
            }
        }
        tickets
    }

    /// Takes the parcel that arrives now; nothing when the link was cut under it or its sender gave it up.
    pub(crate) fn arrive(&mut self, ticket: Ticket) -> Option<Parcel> {
        if self.is_cut() || ticket.cuts != self.cuts {
            return None;
        }
        let parcel = self.under_way.remove(&ticket.serial)?;
        self.held.remove(&ticket.serial);
        self.repeating.remove(&ticket.serial);
        if matches!(parcel.carried, Carried::End | Carried::Reset) {
            self.latest.remove(&(parcel.connection, parcel.toward));
        }
        Some(parcel)
    }

    /// From now on nothing arrives, nor does what is under way.
    pub(crate) fn cut(&mut self, now: u64) {
        if self.cut_at.is_none() {
            self.cut_at = Some(now);
            self.cuts += 1;
            self.under_way.retain(|_, parcel| parcel.is_retransmitted());
        }
    }

    /// Parcels arrive again, as soon as they did at first; what waited comes at the given instants.
    pub(crate) fn heal(&mut self, now: u64) -> Vec<(u64, Ticket)> {
        (self.delay, self.loss, self.garbage) = (0, 0, None);
        let retransmission = self.draws.u64(RETRANSMISSION);
        let Some(cut_at) = self.cut_at.take() else { return Vec::new() };
        let at = now + retransmission.min(now - cut_at) + LATENCY.start();
        self.latest.clear();
        let waiting: Vec<_> =
            self.under_way.iter().map(|(serial, it)| (*serial, (it.connection, it.toward))).collect();
        let cuts = self.cuts;
        waiting.into_iter().map(|(serial, way)| (self.in_order(way, at), Ticket { serial, cuts })).collect()
    }

    /// The sender of `connection` gave it up: what waits to be retransmitted `toward` the other end is lost, and what
    /// waits behind it.
    pub(crate) fn abandon(&mut self, connection: Connection, toward: Toward) {
        let is_meant = |it: &Parcel| it.connection == connection && it.toward == toward;
        let from = if self.is_cut() {
            0
        } else {
            let under_way = &self.under_way;
            let mut repeating = self.repeating.iter();
            match repeating.find(|serial| under_way.get(serial).is_some_and(is_meant)) {
                Some(serial) => *serial,
                None => return,
            }
        };
        self.under_way.retain(|serial, it| *serial < from || !is_meant(it));
        self.latest.remove(&(connection, toward));
    }

    /// Not before what was sent earlier on the same connection and direction.
    fn in_order(&mut self, way: Way, at: u64) -> u64 {
        let latest = self.latest.entry(way).or_default();
        *latest = at.max(*latest);
        *latest
    }
}

#[cfg(test)]
mod tests {
    use super::{Carried, Connection, Garbage, LATENCY, Link, Parcel, RETRANSMISSION, Ticket, Toward};
    use crate::queue::Queue;
    use crate::seed::generator;
    use rigor_model::faults::FaultKind;

    fn link(seed: u64) -> Link {
        Link::new(generator(seed, "link"), generator(seed, "loss"))
    }

    fn parcel(connection: u64, toward: Toward, carried: Carried) -> Parcel {
        Parcel { connection: Connection(connection), toward, carried }
    }

    /// Sends one byte at each instant, cuts and heals at the given ones, and says which byte arrived when.
    fn run(seed: u64, sends: &[u64], cut: u64, heal: u64) -> Vec<(u64, u8)> {
        enum Event {
            Send(u8),
            Cut,
            Heal,
            Arrive(Ticket),
        }
        let mut link = link(seed);
        let mut queue = Queue::new();
        queue.push(cut, Event::Cut);
        queue.push(heal, Event::Heal);
        for (number, at) in (0..).zip(sends) {
            queue.push(*at, Event::Send(number));
        }
        let mut arrived = Vec::new();
        while let Some((now, event)) = queue.pop(u64::MAX) {
            let on_the_way = match event {
                Event::Send(number) => {
                    let bytes = Carried::Bytes(vec![number]);
                    link.send(now, parcel(1, Toward::Server, bytes), None)
                }
                Event::Cut => {
                    link.cut(now);
                    Vec::new()
                }
                Event::Heal => link.heal(now),
                Event::Arrive(ticket) => {
                    if let Some(Parcel { carried: Carried::Bytes(bytes), .. }) = link.arrive(ticket) {
                        arrived.push((now, bytes[0]));
                    }
                    Vec::new()
                }
            };
            for (at, ticket) in on_the_way {
                queue.push(at, Event::Arrive(ticket));
            }
        }
        arrived
    }

    #[test]
    fn whatever_the_cut_bytes_arrive_once_in_order_and_never_while_it_lasts() {
        let sends: Vec<u64> = (0..60).map(|n| n * 500).collect();
        for seed in 0..200 {
            let mut draws = generator(seed, "cut");
            let cut = draws.u64(0..30_000);
            let heal = cut + draws.u64(1..30_000);
            let arrived = run(seed, &sends, cut, heal);
            let numbers: Vec<u8> = arrived.iter().map(|(_, number)| *number).collect();
            assert_eq!(numbers, (0..60).collect::<Vec<u8>>(), "seed {seed}");
            for (at, number) in arrived {
                assert!(at <= cut || at >= heal, "seed {seed}: byte {number} crossed the cut at {at}");
                let late = at - sends[usize::from(number)];
                assert!(late >= *LATENCY.start(), "seed {seed}: byte {number} after {late} us");
                let stall = (heal - cut) + RETRANSMISSION.end().min(&(heal - cut));
                let longest = LATENCY.end() + stall + LATENCY.start();
                assert!(late <= longest, "seed {seed}: byte {number} after {late} us");
            }
        }
    }

    #[test]
    fn what_its_sender_gave_up_is_not_retransmitted() {
        let mut link = link(1);
        link.cut(0);
        for connection in [1, 2] {
            assert_eq!(link.send(5, parcel(connection, Toward::Server, Carried::Open), None), []);
        }
        link.abandon(Connection(1), Toward::Server);
        assert_eq!(link.send(6, parcel(1, Toward::Server, Carried::Reset), None), []);
        let healed = link.heal(10);
        let left: Vec<_> =
            healed.iter().filter_map(|(_, ticket)| link.arrive(*ticket)).map(|it| it.connection).collect();
        assert_eq!(left, [Connection(2)]);
    }

    #[test]
    fn what_the_board_is_sent_is_garbage_until_the_link_is_healed_and_what_it_sends_is_not() {
        let mut link = link(1);
        let sent = |link: &mut Link, toward| {
            let arrivals = link.send(0, parcel(1, toward, Carried::Bytes(b"HTTP {}".to_vec())), None);
            let Some(Carried::Bytes(bytes)) = link.arrive(arrivals[0].1).map(|it| it.carried) else {
                panic!()
            };
            bytes
        };
        for (garbage, expected) in [
            (Garbage::Bodies, b"HTTP <}".to_vec()),
            (Garbage::Noise, b"HTTP {}".iter().map(|byte| byte | 0x80).collect()),
        ] {
            link.set_garbage(garbage);
            assert_eq!(sent(&mut link, Toward::Board), expected);
            assert_eq!(sent(&mut link, Toward::Server), b"HTTP {}");
        }
        link.heal(1);
        assert_eq!(sent(&mut link, Toward::Board), b"HTTP {}");
    }

    #[test]
    fn a_held_message_is_overtaken_by_one_of_another_connection_and_of_its_own_by_none() {
        let hold = FaultKind::Reorder { at_most: 100_000 };
        let mut link = link(3);
        let mut queue = Queue::new();
        let sends =
            [(1, 1, None), (1, 2, Some(&hold)), (1, 3, None), (2, 4, None), (1, 5, None), (2, 6, None)];
        for (number, (connection, byte, fault)) in (0..).zip(sends) {
            let bytes = Carried::Bytes(vec![byte]);
            for (at, ticket) in link.send(number * 10, parcel(connection, Toward::Server, bytes), fault) {
                queue.push(at, ticket);
            }
        }
        let mut order = Vec::new();
        while let Some((now, ticket)) = queue.pop(u64::MAX) {
            let Some(arrived) = link.arrive(ticket) else { continue };
            for overtaken in link.overtaken(now, &arrived) {
                queue.push(now, overtaken);
            }
            if let Carried::Bytes(bytes) = &arrived.carried {
                order.push((arrived.connection.0, bytes[0], now));
            }
        }
        let of = |wanted: u64| -> Vec<u8> {
            order.iter().filter(|(connection, ..)| *connection == wanted).map(|(_, byte, _)| *byte).collect()
        };
        assert_eq!((of(1), of(2)), (vec![1, 2, 3, 5], vec![4, 6]), "each connection keeps its order");
        let place = |byte: u8| order.iter().position(|(_, it, _)| *it == byte).unwrap();
        assert!(place(4) < place(2), "{order:?}");
        for byte in 1..=6 {
            assert!(order[place(byte)].2 < 10_000, "all go on when the held one is overtaken: {order:?}");
        }
        let later = link.send(20_000, parcel(1, Toward::Server, Carried::Bytes(vec![7])), None);
        assert!(later[0].0 < 30_000, "nothing is held up any more: {later:?}");
    }

    #[test]
    fn who_gives_a_connection_up_repeats_nothing_any_more() {
        let delay = FaultKind::Delay { micros: 5_000_000 };
        let mut link = link(3);
        let bytes = |byte: u8| Carried::Bytes(vec![byte]);
        let mut tickets = link.send(0, parcel(1, Toward::Server, bytes(1)), Some(&delay));
        tickets.extend(link.send(5, parcel(1, Toward::Server, bytes(2)), None));
        tickets.extend(link.send(5, parcel(2, Toward::Server, bytes(3)), None));
        link.abandon(Connection(1), Toward::Server);
        let reset = link.send(6, parcel(1, Toward::Server, Carried::Reset), None);
        assert!(reset[0].0 < 10_000, "it waits for nothing that is lost");
        tickets.extend(reset);
        let arrived: Vec<_> = tickets.iter().filter_map(|(_, it)| link.arrive(*it)).collect();
        assert_eq!(arrived, [parcel(2, Toward::Server, bytes(3)), parcel(1, Toward::Server, Carried::Reset)]);
    }
}
