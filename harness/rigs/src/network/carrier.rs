//! One connection's way on to the control plane: a real socket that does not block.

use super::port::is_passing;
use rigor_switch::{ConnectionId, Network};
use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Bytes read at once.
const READ: usize = 16 * 1024;

/// A connection to the control plane, or one that is being made.
#[derive(Debug)]
pub(super) struct Carrier {
    id: ConnectionId,
    socket: TcpStream,
    connecting: bool,
    /// The control plane has ended its side.
    heard_end: bool,
    /// It was told that the board has ended its side.
    told_end: bool,
}

/// How a carrier is after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Fine,
    /// The control plane's end is gone.
    Lost,
}

impl Carrier {
    /// Begins to connect.
    pub(super) fn open(id: ConnectionId, upstream: SocketAddr) -> io::Result<Self> {
        let family = if upstream.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        let connecting = match connect(&socket, &upstream) {
            Ok(()) => false,
            Err(rustix::io::Errno::INPROGRESS) => true,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { id, socket: TcpStream::from(socket), connecting, heard_end: false, told_end: false })
    }

    pub(super) fn id(&self) -> ConnectionId {
        self.id
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.connecting
    }

    /// What to wait for; nothing when only the network can bring it on.
    pub(super) fn interest(&self, network: &mut Network) -> PollFlags {
        if self.connecting {
            return PollFlags::OUT;
        }
        let mut interest = PollFlags::empty();
        if !self.heard_end && network.room(self.id) > 0 {
            interest |= PollFlags::IN;
        }
        if network.has_bytes(self.id) {
            interest |= PollFlags::OUT;
        }
        interest
    }

    /// Whether the connection is made now: an error where it is refused.
    pub(super) fn connected(&mut self) -> io::Result<()> {
        sockopt::socket_error(&self.socket)??;
        self.connecting = false;
        Ok(())
    }

    /// Reads for the board as much as there is room for.
    pub(super) fn read(&mut self, network: &mut Network) -> State {
        let mut buffer = [0; READ];
        let room = network.room(self.id).min(READ);
        if room == 0 || self.heard_end || self.connecting {
            return State::Fine;
        }
        match self.socket.read(&mut buffer[..room]) {
            Ok(0) => {
                self.heard_end = true;
                network.finish(self.id);
                State::Fine
            }
            Ok(length) => {
                network.give(self.id, &buffer[..length]);
                State::Fine
            }
            Err(error) if is_passing(&error) => State::Fine,
            Err(_) => State::Lost,
        }
    }

    /// Writes what the board has sent and may leave now.
    pub(super) fn write(&mut self, network: &mut Network) -> State {
        if self.connecting {
            return State::Fine;
        }
        while network.has_bytes(self.id) {
            let mut outcome = Ok(0);
            network.take(self.id, |bytes| {
                outcome = self.socket.write(bytes);
                *outcome.as_ref().unwrap_or(&0)
            });
            match outcome {
                Ok(_) => {}
                Err(error) if is_passing(&error) => return State::Fine,
                Err(_) => return State::Lost,
            }
        }
        if !self.told_end && network.has_ended(self.id) {
            self.told_end = true;
            if self.socket.shutdown(std::net::Shutdown::Write).is_err() {
                return State::Lost;
            }
        }
        State::Fine
    }

    /// Ends it: as both sides did, or with a reset where the board's side broke off.
    pub(super) fn close(self) {
        if !(self.heard_end && self.told_end) {
            // A socket that lingers for no time at all is reset when it is closed.
            let _ = sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
        }
    }
}
