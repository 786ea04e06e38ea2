//! The kubelet's connections as non-blocking sockets under one poll. Nothing here waits but `wait`, and a
//! connection that is slow to open, to read or to write holds up no other.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use kubelet::{ConnId, Server};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};

/// Bytes handed to the kubelet at once, at most.
const READ: usize = 4096;

/// Something happened on a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Connected,
    Received(Vec<u8>),
    Closed,
}

#[derive(Debug)]
enum Connection {
    Connecting(OwnedFd),
    Open {
        stream: TcpStream,
        unsent: Vec<u8>,
    },
    /// It failed before it was anything.
    Failed,
}

/// The connections of one kubelet.
#[derive(Debug)]
pub(crate) struct Sockets {
    server: Server,
    connections: BTreeMap<ConnId, Connection>,
}

impl Sockets {
    /// No connections yet.
    pub(crate) fn new(server: Server) -> Sockets {
        Sockets { server, connections: BTreeMap::new() }
    }

    /// The IPv4 address this host reaches the server from; loopback where it cannot tell.
    pub(crate) fn local_address(&self) -> [u8; 4] {
        let towards = || {
            let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
            socket.connect(self.server_address()?).ok()?;
            socket.local_addr().ok()
        };
        match towards().map(|address| address.ip()) {
            Some(IpAddr::V4(address)) => address.octets(),
            Some(IpAddr::V6(_)) | None => [127, 0, 0, 1],
        }
    }

    /// Begins to open a connection; what was there under its id is dropped.
    pub(crate) fn open(&mut self, id: ConnId) {
        let connection = self.begin().unwrap_or(Connection::Failed);
        self.connections.insert(id, connection);
    }

    /// Sends as much as the socket takes now, and the rest when it can.
    pub(crate) fn send(&mut self, id: ConnId, bytes: &[u8]) {
        if let Some(Connection::Open { stream, unsent }) = self.connections.get_mut(&id) {
            unsent.extend_from_slice(bytes);
            if flush(stream, unsent).is_err() {
                self.connections.insert(id, Connection::Failed);
            }
        }
    }

    /// Drops a connection.
    pub(crate) fn close(&mut self, id: ConnId) {
        self.connections.remove(&id);
    }

    /// Waits until some connection is ready or `millis` have passed (`None`: for ever); the ready ones.
    ///
    /// # Errors
    /// Whatever poll says, but for an interruption, which counts as nothing ready.
    pub(crate) fn wait(&self, millis: Option<u64>) -> std::io::Result<Vec<ConnId>> {
        let failed = |(id, connection): (&ConnId, &Connection)| {
            matches!(connection, Connection::Failed).then_some(*id)
        };
        let failed: Vec<ConnId> = self.connections.iter().filter_map(failed).collect();
        if !failed.is_empty() {
            return Ok(failed);
        }
        let mut ids = Vec::new();
        let mut polled = Vec::new();
        for (id, connection) in &self.connections {
            let (fd, flags) = match connection {
                Connection::Connecting(fd) => (fd.as_fd(), PollFlags::OUT),
                Connection::Open { stream, unsent } if unsent.is_empty() => (stream.as_fd(), PollFlags::IN),
                Connection::Open { stream, .. } => (stream.as_fd(), PollFlags::IN | PollFlags::OUT),
                Connection::Failed => continue,
            };
            ids.push(*id);
            polled.push(PollFd::from_borrowed_fd(fd, flags));
        }
        let timeout = millis.map(|millis| Timespec {
            tv_sec: i64::try_from(millis / 1000).unwrap_or(i64::MAX),
            tv_nsec: (millis % 1000) as i64 * 1_000_000,
        });
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        let ready = ids.into_iter().zip(&polled).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|(id, _)| id).collect())
    }

    /// What happened on a connection that may be ready; `None` when it was not.
    pub(crate) fn take(&mut self, id: ConnId) -> Option<Happened> {
        match self.connections.remove(&id)? {
            Connection::Failed => Some(Happened::Closed),
            Connection::Connecting(fd) => match sockopt::socket_error(&fd) {
                Ok(Ok(())) => {
                    let stream = TcpStream::from(fd);
                    // Requests are written in one piece; waiting to fill segments gains nothing.
                    let _unimportant = stream.set_nodelay(true);
                    self.connections.insert(id, Connection::Open { stream, unsent: Vec::new() });
                    Some(Happened::Connected)
                }
                Ok(Err(_)) | Err(_) => Some(Happened::Closed),
            },
            Connection::Open { mut stream, mut unsent } => {
                if flush(&mut stream, &mut unsent).is_err() {
                    return Some(Happened::Closed);
                }
                let mut buffer = [0; READ];
                let happened = match stream.read(&mut buffer) {
                    Ok(0) => return Some(Happened::Closed),
                    Ok(length) => Some(Happened::Received(buffer[..length].to_vec())),
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                        None
                    }
                    Err(_) => return Some(Happened::Closed),
                };
                self.connections.insert(id, Connection::Open { stream, unsent });
                happened
            }
        }
    }

    fn server_address(&self) -> Option<SocketAddr> {
        let mut addresses = (self.server.host.as_str(), self.server.port).to_socket_addrs().ok()?;
        addresses.find(SocketAddr::is_ipv4)
    }

    fn begin(&self) -> Option<Connection> {
        let address = self.server_address()?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP)).ok()?;
        match connect(&fd, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => Some(Connection::Connecting(fd)),
            Err(_) => None,
        }
    }
}

/// Writes what the socket takes; an error when the connection is gone.
fn flush(stream: &mut TcpStream, unsent: &mut Vec<u8>) -> std::io::Result<()> {
    while !unsent.is_empty() {
        match stream.write(unsent) {
            Ok(written) => drop(unsent.drain(..written)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
