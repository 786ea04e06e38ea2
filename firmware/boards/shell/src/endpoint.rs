//! The control plane's address, from the configuration's host and port.
//! A board resolves no names, so anything but an IPv4 literal is refused with a message that says so.

use alloc::string::String;
use core::net::Ipv4Addr;
use kubelet::Server;
use smoltcp::wire::{IpAddress, IpEndpoint};

/// A server address that a board cannot use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "server host `{host}`: host names are not resolved here; write an IPv4 address, as in `http://10.0.2.2:8080`"
)]
pub struct EndpointError {
    /// The host as configured.
    pub host: String,
}

pub(crate) fn of(server: &Server) -> Result<IpEndpoint, EndpointError> {
    let address: Ipv4Addr = server.host.parse().map_err(|_| EndpointError { host: server.host.clone() })?;
    Ok(IpEndpoint::new(IpAddress::Ipv4(address), server.port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, reachable: bool) {
        let server = Server { host: host.into(), port: 8080 };
        let expected = if reachable {
            Ok(IpEndpoint::new(IpAddress::Ipv4(host.parse().unwrap()), 8080))
        } else {
            Err(EndpointError { host: host.into() })
        };
        assert_eq!(of(&server), expected, "{host}");
    }

    #[test]
    fn only_ipv4_literals_are_reachable() {
        check("10.0.2.2", true);
        check("192.168.1.9", true);
        check("control-plane", false);
        check("localhost", false);
        check("::1", false);
        check("10.0.2", false);
    }
}
