//! One TCP connection of the kubelet: the socket, what the kubelet wants of it, and bytes that wait for room.
//! It turns socket states into the kubelet's `Connected`, `Received` and `Closed`, each said exactly once; it
//! knows neither HTTP nor time.

use crate::random::Ports;
use alloc::vec;
use alloc::vec::Vec;
use smoltcp::iface::{Context, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time::Duration;
use smoltcp::wire::IpEndpoint;

/// Receive window: less than three full segments, so that two connections fit a small board.
const RECEIVE_BYTES: usize = 4096;
/// Send buffer; longer requests wait in the outbox.
const SEND_BYTES: usize = 2048;
/// A silent peer is asked for a sign of life this often…
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// …and given up after this long without one, or without an answer to the first packet.
const GIVE_UP: Duration = Duration::from_secs(30);

/// Where the connection stands between the kubelet's wish and the socket's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The kubelet has no connection here.
    Idle,
    /// Wanted; the socket may still have a reset to send for its last connection.
    Wanted,
    /// The first packet is out.
    Connecting,
    /// Established, and the kubelet knows.
    Open,
}

/// What happened on a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Established.
    Connected,
    /// Bytes can be taken with [`Link::receive`].
    Readable,
    /// Refused, reset, timed out or ended by the peer.
    Closed,
}

/// One connection slot.
#[derive(Debug)]
pub(crate) struct Link {
    socket: SocketHandle,
    phase: Phase,
    outbox: Vec<u8>,
    sent: usize,
}

impl Link {
    pub(crate) fn new(sockets: &mut SocketSet<'static>) -> Self {
        let mut socket = tcp::Socket::new(
            tcp::SocketBuffer::new(vec![0; RECEIVE_BYTES]),
            tcp::SocketBuffer::new(vec![0; SEND_BYTES]),
        );
        socket.set_keep_alive(Some(KEEP_ALIVE));
        socket.set_timeout(Some(GIVE_UP));
        // Requests and answers alternate: a held-back segment or acknowledgement only adds latency.
        socket.set_nagle_enabled(false);
        socket.set_ack_delay(None);
        Self { socket: sockets.add(socket), phase: Phase::Idle, outbox: Vec::new(), sent: 0 }
    }

    /// The kubelet wants a connection; one that is still there is reset first.
    pub(crate) fn open(&mut self, sockets: &mut SocketSet<'static>) {
        self.close(sockets);
        self.phase = Phase::Wanted;
    }

    /// The kubelet gave the connection up. It hears nothing more of it.
    pub(crate) fn close(&mut self, sockets: &mut SocketSet<'static>) {
        sockets.get_mut::<tcp::Socket>(self.socket).abort();
        self.phase = Phase::Idle;
        self.outbox = Vec::new();
        self.sent = 0;
    }

    /// Whether the kubelet holds or awaits a connection here.
    pub(crate) fn in_use(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Whether [`Link::dial`] has work, which no packet and no timer will announce.
    pub(crate) fn wants_dial(&self) -> bool {
        self.phase == Phase::Wanted
    }

    /// Queues bytes. Without a connection they are dropped: the kubelet is about to hear `Closed`.
    pub(crate) fn send(&mut self, bytes: Vec<u8>) {
        if self.phase != Phase::Open {
            return;
        }
        if self.outbox.is_empty() {
            self.outbox = bytes;
        } else {
            self.outbox.extend_from_slice(&bytes);
        }
    }

    /// Moves queued bytes into the socket as far as there is room.
    pub(crate) fn flush(&mut self, sockets: &mut SocketSet<'static>) {
        let waiting = &self.outbox[self.sent..];
        if waiting.is_empty() {
            return;
        }
        let socket = sockets.get_mut::<tcp::Socket>(self.socket);
        // A socket that can no longer send says so through `step`; the bytes go with the connection.
        self.sent += socket.send_slice(waiting).unwrap_or(0);
        if self.sent == self.outbox.len() {
            self.outbox = Vec::new();
            self.sent = 0;
        }
    }

    /// Starts the connection that [`Link::open`] asked for. To be called right after the interface was
    /// polled, when the reset of the slot's last connection has left. Without a route the socket stays
    /// closed, which `step` reports.
    pub(crate) fn dial(
        &mut self,
        sockets: &mut SocketSet<'static>,
        context: &mut Context,
        server: IpEndpoint,
        ports: &mut Ports,
    ) {
        if self.phase == Phase::Wanted {
            self.phase = Phase::Connecting;
            let _ = sockets.get_mut::<tcp::Socket>(self.socket).connect(context, server, ports.next());
        }
    }

    /// Brings the phase up to the socket's state and says what the kubelet must hear. Call until `None`.
    pub(crate) fn step(&mut self, sockets: &mut SocketSet<'static>) -> Option<Event> {
        let socket = sockets.get_mut::<tcp::Socket>(self.socket);
        match self.phase {
            Phase::Idle | Phase::Wanted => None,
            Phase::Connecting if socket.may_send() => {
                self.phase = Phase::Open;
                Some(Event::Connected)
            }
            Phase::Connecting if socket.is_open() => None,
            Phase::Connecting => Some(self.ended(sockets)),
            Phase::Open if socket.can_recv() => Some(Event::Readable),
            Phase::Open if socket.may_recv() => None,
            Phase::Open => Some(self.ended(sockets)),
        }
    }

    /// Hands all bytes that arrived in one piece to `take`.
    pub(crate) fn receive(&mut self, sockets: &mut SocketSet<'static>, take: impl FnOnce(&[u8])) {
        let socket = sockets.get_mut::<tcp::Socket>(self.socket);
        // An error would mean that nothing can be received, and `step` has just said that something can.
        let _ = socket.recv(|bytes| {
            take(bytes);
            (bytes.len(), ())
        });
    }

    /// The peer ended the connection: answer its FIN and forget what was queued.
    fn ended(&mut self, sockets: &mut SocketSet<'static>) -> Event {
        sockets.get_mut::<tcp::Socket>(self.socket).close();
        self.phase = Phase::Idle;
        self.outbox = Vec::new();
        self.sent = 0;
        Event::Closed
    }
}
