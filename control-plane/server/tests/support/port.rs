//! A port of the loopback interface for a server that may come and go.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A port that nobody else is given while this is held, whether its server runs or not.
///
/// A socket is bound to it that never listens. With SO_REUSEADDR on both, as servers have it, one can listen there beside it;
/// who asks for any free port, or connects from one, gets another.
#[derive(Debug)]
pub struct HeldPort {
    address: SocketAddr,
    _holder: TcpSocket,
}

impl HeldPort {
    /// Holds a port that was free.
    pub fn any() -> Self {
        let holder = TcpSocket::new_v4().unwrap();
        holder.set_reuseaddr(true).unwrap();
        holder.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        Self { address: holder.local_addr().unwrap(), _holder: holder }
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.address.port()
    }
}
