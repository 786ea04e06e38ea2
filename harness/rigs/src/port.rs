//! A TCP port of the loopback interface that stays ours while the control plane behind it comes and goes.
//!
//! The port is held by a socket that is bound but never listens: with SO_REUSEADDR on both, the server can bind and
//! listen on it, while the kernel gives it to nobody who asks for any free port.

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

/// A reserved port; free again when dropped.
#[derive(Debug)]
pub struct ReservedPort {
    address: SocketAddr,
    _holder: OwnedFd,
}

impl ReservedPort {
    /// Reserves any free port, or `wanted` when that is not 0.
    ///
    /// # Errors
    /// Someone listens on `wanted` already, or no port is free.
    pub fn reserve(wanted: u16) -> io::Result<Self> {
        let holder = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&holder, true)?;
        bind(&holder, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, wanted))?;
        let address = SocketAddrV4::try_from(getsockname(&holder)?)?.into();
        Ok(Self { address, _holder: holder })
    }

    /// Address and port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_server_can_come_and_go_on_a_reserved_port() {
        let port = ReservedPort::reserve(0).unwrap();
        for _ in 0..3 {
            // The standard library sets SO_REUSEADDR, as tokio does.
            let server = TcpListener::bind(port.address()).unwrap();
            assert_eq!(server.local_addr().unwrap(), port.address());
        }
    }

    #[test]
    fn a_port_in_use_cannot_be_reserved() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let taken = server.local_addr().unwrap().port();
        let error = ReservedPort::reserve(taken).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
