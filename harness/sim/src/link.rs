//! The link between one board and the server: latency, cut and heal, as TCP over it would show them.
//!
//! Parcels of one connection and direction keep their order. While a link is cut nothing arrives: what is on the
//! way or sent meanwhile waits, and after the heal comes as TCP's retransmission would bring it, if the
//! connection is still wanted then. One generator a link and one draw a message, so that one fate does not
//! shift the next.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// One way through the network, in microseconds.
const LATENCY: RangeInclusive<u64> = 200..=2_000;
/// After a heal: how long until the next retransmission is tried, in microseconds; never longer than the cut was.
const RETRANSMISSION: RangeInclusive<u64> = 1_000..=400_000;

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
}

/// Names a parcel under way; void once the link was cut under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Number of the parcel on its link, in the order of sending.
    serial: u64,
    /// How many cuts the link had seen.
    cuts: u64,
}

/// The state of one link.
#[derive(Debug)]
pub(crate) struct Link {
    draws: fastrand::Rng,
    sent: u64,
    cuts: u64,
    cut_at: Option<u64>,
    under_way: BTreeMap<u64, Parcel>,
    latest: BTreeMap<(Connection, Toward), u64>,
}

impl Link {
    /// A link that is up and draws its latencies from `draws`.
    pub(crate) fn new(draws: fastrand::Rng) -> Self {
        Self { draws, sent: 0, cuts: 0, cut_at: None, under_way: BTreeMap::new(), latest: BTreeMap::new() }
    }

    /// Whether the link is cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut_at.is_some()
    }

    /// Sends a message: the instant at which to call [`Link::arrive`] and its ticket, or nothing when the link is
    /// cut and the parcel waits.
    pub(crate) fn send(
        &mut self,
        now: u64,
        connection: Connection,
        toward: Toward,
        carried: Carried,
    ) -> Option<(u64, Ticket)> {
        let latency = self.draws.u64(LATENCY);
        let serial = self.sent;
        self.sent += 1;
        let parcel = Parcel { connection, toward, carried };
        if !self.is_cut() {
            self.under_way.insert(serial, parcel);
            return Some((
                self.in_order((connection, toward), now + latency),
                Ticket { serial, cuts: self.cuts },
            ));
        }
        if parcel.is_retransmitted() {
            self.under_way.insert(serial, parcel);
        }
        None
    }

    /// Takes the parcel that arrives now; nothing when the link was cut under it or its sender gave it up.
    pub(crate) fn arrive(&mut self, ticket: Ticket) -> Option<Parcel> {
        if self.is_cut() || ticket.cuts != self.cuts {
            return None;
        }
        let parcel = self.under_way.remove(&ticket.serial)?;
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

    /// Parcels arrive again; what waited comes at the given instants.
    pub(crate) fn heal(&mut self, now: u64) -> Vec<(u64, Ticket)> {
        let retransmission = self.draws.u64(RETRANSMISSION);
        let Some(cut_at) = self.cut_at.take() else { return Vec::new() };
        let at = now + retransmission.min(now - cut_at) + LATENCY.start();
        self.latest.clear();
        let waiting: Vec<_> =
            self.under_way.iter().map(|(serial, it)| (*serial, (it.connection, it.toward))).collect();
        let cuts = self.cuts;
        waiting.into_iter().map(|(serial, way)| (self.in_order(way, at), Ticket { serial, cuts })).collect()
    }

    /// The sender of `connection` gave it up: what waits to be retransmitted `toward` the other end is lost.
    pub(crate) fn abandon(&mut self, connection: Connection, toward: Toward) {
        if self.is_cut() {
            self.under_way.retain(|_, it| it.connection != connection || it.toward != toward);
        }
    }

    /// Not before what was sent earlier on the same connection and direction.
    fn in_order(&mut self, way: (Connection, Toward), at: u64) -> u64 {
        let latest = self.latest.entry(way).or_default();
        *latest = at.max(*latest);
        *latest
    }
}

#[cfg(test)]
mod tests {
    use super::{Carried, Connection, LATENCY, Link, Parcel, RETRANSMISSION, Ticket, Toward};
    use crate::queue::Queue;
    use crate::seed::generator;

    /// Sends one byte at each instant, cuts and heals at the given ones, and says which byte arrived when.
    fn run(seed: u64, sends: &[u64], cut: u64, heal: u64) -> Vec<(u64, u8)> {
        enum Event {
            Send(u8),
            Cut,
            Heal,
            Arrive(Ticket),
        }
        let mut link = Link::new(generator(seed, "link"));
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
                    link.send(now, Connection(1), Toward::Server, bytes).into_iter().collect()
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
        let mut link = Link::new(generator(1, "link"));
        link.cut(0);
        for connection in [1, 2] {
            assert_eq!(link.send(5, Connection(connection), Toward::Server, Carried::Open), None);
        }
        link.abandon(Connection(1), Toward::Server);
        assert_eq!(link.send(6, Connection(1), Toward::Server, Carried::Reset), None);
        let healed = link.heal(10);
        let left: Vec<_> =
            healed.iter().filter_map(|(_, ticket)| link.arrive(*ticket)).map(|it| it.connection).collect();
        assert_eq!(left, [Connection(2)]);
    }
}
