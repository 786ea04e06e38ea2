//! The DHCP server: a board's address is fixed by its hardware address, and lasts longer than any trial.
//!
//! It answers DISCOVER and REQUEST, and refuses an address that is another's. Everything else, and whatever is not
//! well-formed, is left unanswered, as it would be on a network of no DHCP server at all.

use crate::address;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    DHCP_CLIENT_PORT, DHCP_SERVER_PORT, DhcpMessageType, DhcpPacket, DhcpRepr, EthernetAddress,
    EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr, UdpPacket,
    UdpRepr,
};
use std::collections::BTreeMap;

/// How long an address is leased, in seconds.
const LEASE: u32 = 24 * 3600;

/// The server, with what it has leased.
#[derive(Debug)]
pub struct Server {
    leases: BTreeMap<EthernetAddress, Ipv4Address>,
    free: Vec<Ipv4Address>,
}

impl Server {
    /// A server with an address for each of this many boards, and a few more for other hardware.
    #[must_use]
    pub fn new(boards: usize) -> Self {
        let leases = (0..boards).map(|index| (address::board_mac(index), address::board(index))).collect();
        let mut free: Vec<_> = address::strangers().collect();
        free.reverse();
        Self { leases, free }
    }

    /// The frame that answers `frame`, if that is a request to a DHCP server that is to be answered.
    #[must_use]
    pub fn answer(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let datagram = request(frame)?;
        let packet = DhcpPacket::new_checked(datagram).ok()?;
        let request = DhcpRepr::parse(&packet).ok()?;
        let (kind, leased) = self.decide(&request)?;
        Some(reply(&request, kind, leased))
    }

    /// What a request gets: an answer, and the address in it.
    fn decide(&mut self, request: &DhcpRepr<'_>) -> Option<(DhcpMessageType, Ipv4Address)> {
        if request.server_identifier.is_some_and(|server| server != address::GATEWAY) {
            return None;
        }
        let hardware = request.client_hardware_address;
        match request.message_type {
            DhcpMessageType::Discover => Some((DhcpMessageType::Offer, self.lease(hardware)?)),
            DhcpMessageType::Request => {
                let leased = self.lease(hardware)?;
                // Asked for by name, or its own already.
                let asked = request.requested_ip.unwrap_or(request.client_ip);
                let kind = if asked == leased { DhcpMessageType::Ack } else { DhcpMessageType::Nak };
                Some((kind, leased))
            }
            DhcpMessageType::Offer
            | DhcpMessageType::Decline
            | DhcpMessageType::Ack
            | DhcpMessageType::Nak
            | DhcpMessageType::Release
            | DhcpMessageType::Inform
            | DhcpMessageType::Unknown(_) => None,
        }
    }

    /// The address of some hardware; nothing when all are taken.
    fn lease(&mut self, hardware: EthernetAddress) -> Option<Ipv4Address> {
        if let Some(leased) = self.leases.get(&hardware) {
            return Some(*leased);
        }
        let leased = self.free.pop().filter(|_| hardware.is_unicast())?;
        self.leases.insert(hardware, leased);
        Some(leased)
    }
}

/// The DHCP message in a frame that goes to a DHCP server.
fn request(frame: &[u8]) -> Option<&[u8]> {
    let frame =
        EthernetFrame::new_checked(frame).ok().filter(|it| it.ethertype() == EthernetProtocol::Ipv4)?;
    let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
    let ours = packet.dst_addr() == address::GATEWAY || packet.dst_addr().is_broadcast();
    let whole = !packet.more_frags() && packet.frag_offset() == 0;
    if packet.next_header() != IpProtocol::Udp || !ours || !whole || !packet.verify_checksum() {
        return None;
    }
    let (source, destination) = (packet.src_addr().into(), packet.dst_addr().into());
    let datagram = UdpPacket::new_checked(packet.payload()).ok()?;
    (datagram.dst_port() == DHCP_SERVER_PORT && datagram.verify_checksum(&source, &destination))
        .then(|| datagram.payload())
}

fn reply(request: &DhcpRepr<'_>, kind: DhcpMessageType, leased: Ipv4Address) -> Vec<u8> {
    let granted = kind != DhcpMessageType::Nak;
    let network = address::gateway();
    let answer = DhcpRepr {
        message_type: kind,
        transaction_id: request.transaction_id,
        secs: 0,
        client_hardware_address: request.client_hardware_address,
        client_ip: if granted { request.client_ip } else { Ipv4Address::UNSPECIFIED },
        your_ip: if granted { leased } else { Ipv4Address::UNSPECIFIED },
        server_ip: address::GATEWAY,
        router: granted.then_some(address::GATEWAY),
        subnet_mask: granted.then(|| network.netmask()),
        relay_agent_ip: Ipv4Address::UNSPECIFIED,
        broadcast: request.broadcast,
        requested_ip: None,
        client_identifier: None,
        server_identifier: Some(address::GATEWAY),
        parameter_request_list: None,
        dns_servers: None,
        max_size: None,
        lease_duration: granted.then_some(LEASE),
        renew_duration: None,
        rebind_duration: None,
        additional_options: &[],
    };
    let (hardware, to) = if !request.client_ip.is_unspecified() && granted {
        (request.client_hardware_address, request.client_ip)
    } else if request.broadcast || !granted {
        (EthernetAddress::BROADCAST, Ipv4Address::BROADCAST)
    } else {
        (request.client_hardware_address, leased)
    };
    frame(&answer, hardware, to)
}

/// A DHCP message of the server as a frame.
fn frame(message: &DhcpRepr<'_>, hardware: EthernetAddress, to: Ipv4Address) -> Vec<u8> {
    let checksums = ChecksumCapabilities::default();
    let udp = UdpRepr { src_port: DHCP_SERVER_PORT, dst_port: DHCP_CLIENT_PORT };
    let length = message.buffer_len();
    let ip = Ipv4Repr {
        src_addr: address::GATEWAY,
        dst_addr: to,
        next_header: IpProtocol::Udp,
        payload_len: udp.header_len() + length,
        hop_limit: 64,
    };
    let ethernet = EthernetRepr {
        src_addr: address::GATEWAY_MAC,
        dst_addr: hardware,
        ethertype: EthernetProtocol::Ipv4,
    };
    let mut bytes = vec![0; ethernet.buffer_len() + ip.buffer_len() + ip.payload_len];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes[..]);
    ethernet.emit(&mut frame);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    ip.emit(&mut packet, &checksums);
    let mut datagram = UdpPacket::new_unchecked(packet.payload_mut());
    udp.emit(
        &mut datagram,
        &address::GATEWAY.into(),
        &to.into(),
        length,
        |payload| {
            // The buffer has the length that the message says it needs.
            let written = message.emit(&mut DhcpPacket::new_unchecked(payload));
            debug_assert!(written.is_ok());
        },
        &checksums,
    );
    bytes
}

#[cfg(test)]
mod tests;
