//! The board's place in the network: carrier, DHCP lease, address and route. It turns them into the kubelet's
//! `NetworkUp` and `NetworkDown`; a lost carrier counts as down at once, and a carrier that returns starts
//! DHCP anew, because the board may sit on another network now.

use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::dhcpv4::{self, RetryConfig};
use smoltcp::time::Duration;
use smoltcp::wire::{IpCidr, Ipv4Address, Ipv4Cidr};

/// Unanswered DHCP messages are repeated this soon: the first may leave before the other end of the cable
/// listens.
const DHCP_RETRY: Duration = Duration::from_secs(1);

/// A change of the network that the kubelet and the console must hear.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// An address was leased.
    Up { address: Ipv4Cidr, router: Option<Ipv4Address> },
    /// The carrier went away.
    CarrierLost,
    /// The carrier is back; an address is asked for.
    CarrierBack,
    /// The lease ran out or was withdrawn.
    LeaseLost,
}

/// Carrier and lease as last reported.
#[derive(Debug)]
pub(crate) struct Network {
    dhcp: SocketHandle,
    carrier: bool,
    address: Option<Ipv4Cidr>,
}

impl Network {
    pub(crate) fn new(sockets: &mut SocketSet<'static>) -> Self {
        let mut dhcp = dhcpv4::Socket::new();
        let mut retry = RetryConfig::default();
        retry.discover_timeout = DHCP_RETRY;
        retry.initial_request_timeout = DHCP_RETRY;
        dhcp.set_retry_config(retry);
        Self { dhcp: sockets.add(dhcp), carrier: true, address: None }
    }

    /// Looks at the carrier, then at the lease. Call until `None`.
    pub(crate) fn step(
        &mut self,
        carrier: bool,
        interface: &mut Interface,
        sockets: &mut SocketSet<'static>,
    ) -> Option<Change> {
        let dhcp = sockets.get_mut::<dhcpv4::Socket>(self.dhcp);
        if carrier != self.carrier {
            self.carrier = carrier;
            dhcp.reset();
            self.forget(interface);
            return Some(if carrier { Change::CarrierBack } else { Change::CarrierLost });
        }
        match dhcp.poll()? {
            dhcpv4::Event::Configured(config) => {
                let (address, router) = (config.address, config.router);
                if self.address == Some(address) {
                    return None;
                }
                self.address = Some(address);
                interface.update_ip_addrs(|addresses| {
                    addresses.clear();
                    // The list was just emptied and holds at least one.
                    let _ = addresses.push(IpCidr::Ipv4(address));
                });
                interface.routes_mut().remove_default_ipv4_route();
                if let Some(router) = router {
                    // Likewise: the one default route was just removed.
                    let _ = interface.routes_mut().add_default_ipv4_route(router);
                }
                Some(Change::Up { address, router })
            }
            // Said also before the first lease and after a reset that was reported as a change of the
            // carrier.
            dhcpv4::Event::Deconfigured => self.address.is_some().then(|| {
                self.forget(interface);
                Change::LeaseLost
            }),
        }
    }

    fn forget(&mut self, interface: &mut Interface) {
        self.address = None;
        interface.update_ip_addrs(|addresses| addresses.clear());
        interface.routes_mut().remove_default_ipv4_route();
    }
}
