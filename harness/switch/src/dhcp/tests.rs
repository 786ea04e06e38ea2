use super::*;

fn message(kind: DhcpMessageType, hardware: EthernetAddress) -> DhcpRepr<'static> {
    DhcpRepr {
        message_type: kind,
        transaction_id: 99,
        secs: 0,
        client_hardware_address: hardware,
        client_ip: Ipv4Address::UNSPECIFIED,
        your_ip: Ipv4Address::UNSPECIFIED,
        server_ip: Ipv4Address::UNSPECIFIED,
        router: None,
        subnet_mask: None,
        relay_agent_ip: Ipv4Address::UNSPECIFIED,
        broadcast: false,
        requested_ip: None,
        client_identifier: Some(hardware),
        server_identifier: None,
        parameter_request_list: Some(&[1, 3, 6]),
        dns_servers: None,
        max_size: None,
        lease_duration: None,
        renew_duration: None,
        rebind_duration: None,
        additional_options: &[],
    }
}

/// A client's message as it comes over the wire: the server's writer with the ports turned round.
fn asked(message: &DhcpRepr<'_>) -> Vec<u8> {
    let mut bytes = frame(message, EthernetAddress::BROADCAST, Ipv4Address::BROADCAST);
    let mut ethernet = EthernetFrame::new_unchecked(&mut bytes[..]);
    ethernet.set_src_addr(message.client_hardware_address);
    let mut packet = Ipv4Packet::new_unchecked(ethernet.payload_mut());
    packet.set_src_addr(message.client_ip);
    packet.fill_checksum();
    let (source, destination) = (packet.src_addr().into(), packet.dst_addr().into());
    let mut datagram = UdpPacket::new_unchecked(packet.payload_mut());
    datagram.set_src_port(DHCP_CLIENT_PORT);
    datagram.set_dst_port(DHCP_SERVER_PORT);
    datagram.fill_checksum(&source, &destination);
    bytes
}

/// Kind of the answer, the address in it, and where it is sent on both layers.
fn answered(frame: &[u8]) -> (DhcpMessageType, Ipv4Address, EthernetAddress, Ipv4Address) {
    let frame = EthernetFrame::new_checked(frame).unwrap();
    let packet = Ipv4Packet::new_checked(frame.payload()).unwrap();
    assert!(packet.verify_checksum());
    let datagram = UdpPacket::new_checked(packet.payload()).unwrap();
    assert!(datagram.verify_checksum(&packet.src_addr().into(), &packet.dst_addr().into()));
    assert_eq!((datagram.src_port(), datagram.dst_port()), (DHCP_SERVER_PORT, DHCP_CLIENT_PORT));
    let message = DhcpPacket::new_checked(datagram.payload()).unwrap();
    let message = DhcpRepr::parse(&message).unwrap();
    assert_eq!(message.transaction_id, 99);
    assert_eq!(message.server_identifier, Some(address::GATEWAY));
    if message.message_type != DhcpMessageType::Nak {
        assert_eq!(message.router, Some(address::GATEWAY));
        assert_eq!(message.subnet_mask, Some(Ipv4Address::new(255, 255, 255, 0)));
        assert_eq!(message.lease_duration, Some(LEASE));
    }
    (message.message_type, message.your_ip, frame.dst_addr(), packet.dst_addr())
}

#[test]
fn an_address_goes_by_the_hardware_and_stays() {
    let mut server = Server::new(3);
    for _ in 0..3 {
        for index in 0..3 {
            let mac = address::board_mac(index);
            let ours = address::board(index);
            let offer = server.answer(&asked(&message(DhcpMessageType::Discover, mac))).unwrap();
            assert_eq!(answered(&offer), (DhcpMessageType::Offer, ours, mac, ours));
            let mut request = message(DhcpMessageType::Request, mac);
            request.requested_ip = Some(ours);
            request.server_identifier = Some(address::GATEWAY);
            let ack = server.answer(&asked(&request)).unwrap();
            assert_eq!(answered(&ack), (DhcpMessageType::Ack, ours, mac, ours));
        }
    }
}

#[test]
fn requests_are_granted_refused_or_another_servers() {
    let (mac, ours) = (address::board_mac(1), address::board(1));
    let mut server = Server::new(2);
    let mut check = |change: &dyn Fn(&mut DhcpRepr<'static>), expected| {
        let mut request = message(DhcpMessageType::Request, mac);
        change(&mut request);
        assert_eq!(server.answer(&asked(&request)).map(|frame| answered(&frame)), expected);
    };
    let all = (EthernetAddress::BROADCAST, Ipv4Address::BROADCAST);
    let nak = Some((DhcpMessageType::Nak, Ipv4Address::UNSPECIFIED, all.0, all.1));
    check(&|it| it.client_ip = ours, Some((DhcpMessageType::Ack, ours, mac, ours)));
    check(
        &|it| {
            it.requested_ip = Some(ours);
            it.broadcast = true;
        },
        Some((DhcpMessageType::Ack, ours, all.0, all.1)),
    );
    check(&|it| it.requested_ip = Some(address::board(0)), nak);
    check(&|it| it.requested_ip = Some(Ipv4Address::new(192, 168, 1, 7)), nak);
    check(
        &|it| {
            it.requested_ip = Some(ours);
            it.server_identifier = Some(Ipv4Address::new(10, 0, 2, 9));
        },
        None,
    );
    check(&|it| it.message_type = DhcpMessageType::Release, None);
    check(&|it| it.message_type = DhcpMessageType::Inform, None);
}

#[test]
fn foreign_hardware_gets_addresses_of_its_own_until_there_are_none() {
    let mut server = Server::new(2);
    let mut leased = std::collections::BTreeSet::new();
    let free = address::strangers().count();
    for number in 0..free + 5 {
        let mac = EthernetAddress([2, 0, 0, 0, 1, number as u8]);
        let offer = server.answer(&asked(&message(DhcpMessageType::Discover, mac)));
        assert_eq!(offer.is_some(), number < free, "the {number}th");
        leased.extend(offer.map(|offer| answered(&offer).1));
    }
    assert_eq!(leased.len(), free);
    assert!(!leased.contains(&address::board(0)) && !leased.contains(&address::board(1)));
    let known = address::board_mac(0);
    assert!(server.answer(&asked(&message(DhcpMessageType::Discover, known))).is_some());
}

#[test]
fn what_is_broken_in_any_byte_is_unanswered_or_the_same_request() {
    let whole = asked(&message(DhcpMessageType::Discover, address::board_mac(0)));
    assert!(Server::new(1).answer(&whole).is_some());
    for length in 0..whole.len() {
        assert_eq!(Server::new(1).answer(&whole[..length]), None, "{length} bytes of it");
    }
    // The hardware addresses in front are under no check sum.
    for place in 12..whole.len() {
        let mut broken = whole.clone();
        broken[place] ^= 0x55;
        assert_eq!(Server::new(1).answer(&broken), None, "byte {place}");
    }
    let mut fragment = whole;
    let mut ethernet = EthernetFrame::new_unchecked(&mut fragment[..]);
    let mut packet = Ipv4Packet::new_unchecked(ethernet.payload_mut());
    packet.set_more_frags(true);
    packet.fill_checksum();
    assert_eq!(Server::new(1).answer(&fragment), None);
}
